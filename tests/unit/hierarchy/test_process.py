"""A control process alone: starting, moving, losing its coordinator, leaving."""

from __future__ import annotations

from intergroup_core.effects import Control, CoordinatorGroup, Listen, LocalGroup, Lost, OneSite
from intergroup_core.hierarchy.process import ControlProcess
from intergroup_core.hierarchy.states import ControlState
from intergroup_core.ids import SiteId, Timestamp
from intergroup_core.wire.hierarchy import (
    CoordinatorControl,
    CoordinatorLeave,
    GlobalControl,
    LocalControl,
    RingAnswer,
    RingQuery,
    SiteLeave,
)
from tests.hierarchy_builders import (
    CHIEF,
    KEY,
    ME,
    MS,
    OTHER,
    THIRD,
    S,
    T,
    a_ccon,
    a_gcon,
    a_process,
    acks,
    an_lcon,
    at,
    clock,
    run,
    said,
)


def answer_to(query: RingQuery, site: SiteId = CHIEF, coordinators: int = 3) -> RingAnswer:
    return RingAnswer(
        site=site,
        seeker=query.site,
        attempt=query.attempt,
        query_clock=query.clock,
        held=0,
        ttl=64,
        children=3,
        coordinators=coordinators,
        takes=True,
    )


def a_child(coordinator: SiteId = CHIEF) -> ControlProcess:
    process = a_process()
    process.start(at(T))
    (query,) = [message for message in run(process, T) if isinstance(message, RingQuery)]
    process.receive(answer_to(query, coordinator), 100, 2, at(T + 10 * MS))
    run(process, T + 130 * MS)
    assert process.state is ControlState.CHILD
    return process


def a_coordinator() -> ControlProcess:
    process = a_process()
    process.start(at(T))
    run(process, T + S)
    assert process.state is ControlState.COORDINATOR
    return process


def test_who_finds_nobody_becomes_a_coordinator() -> None:
    process = a_process()
    (listen, *_) = process.start(at(T))
    assert listen == Listen(frozenset(), True)
    asked = [message.ttl for message in run(process, T + S) if isinstance(message, RingQuery)]
    assert asked == [1, 2, 4, 8, 16]
    assert process.state is ControlState.COORDINATOR
    assert (process.coordinator, process.coordinators, process.children) == (ME, 1, 0)


def test_who_finds_a_coordinator_becomes_its_child_by_speaking_to_its_group() -> None:
    process = a_child()
    assert process.coordinator == CHIEF
    spoken = run(process, T + S)
    assert all(isinstance(message, LocalControl) and message.coordinator == CHIEF for message in spoken)
    assert len(spoken) >= 3


def test_a_coordinator_answers_the_site_that_asks_and_takes_it() -> None:
    process = a_coordinator()
    query = RingQuery(site=OTHER, attempt=2, ttl=4, clock=77, leaving=None, starting=True)
    (effect,) = process.receive(query, 100, 2, at(T + S))
    assert isinstance(effect, Control)
    assert effect.to == OneSite(OTHER)
    assert isinstance(effect.message, RingAnswer)
    assert (effect.message.query_clock, effect.message.takes) == (77, True)
    process.receive(an_lcon(OTHER, ME, sent=T + S), 100, 2, at(T + S))
    assert process.children == 1


def test_a_full_coordinator_answers_that_it_is_there_and_sends_newcomers_on() -> None:
    process = a_coordinator()
    now = T + S
    for number in range(20):
        process.receive(an_lcon(SiteId(100 + number), ME, sent=now), 100, 2, at(now))
    assert process.children == 12
    query = RingQuery(site=OTHER, attempt=2, ttl=4, clock=77, leaving=None, starting=True)
    (answer,) = said(process.receive(query, 100, 2, at(now)))
    assert isinstance(answer, RingAnswer)
    assert not answer.takes
    (effect,) = process.receive(an_lcon(OTHER, ME, sent=now), 100, 2, at(now))
    assert isinstance(effect, Control)
    assert (type(effect.message), effect.to) == (CoordinatorLeave, OneSite(OTHER))


def test_who_is_no_coordinator_says_so_to_those_who_think_it_is() -> None:
    process = a_child()
    (effect,) = process.receive(an_lcon(OTHER, ME), 100, 2, at(T + S))
    assert isinstance(effect, Control)
    assert (type(effect.message), effect.to) == (CoordinatorLeave, OneSite(OTHER))


def test_the_heir_of_a_coordinator_that_fails_takes_over_and_waits_for_the_other_orphans() -> None:
    process = a_child()
    process.acknowledge(KEY, Timestamp(5), pressing=False, now=at(T + 200 * MS))
    process.receive(a_ccon(heir=ME, sent=T + 200 * MS), 100, 2, at(T + 200 * MS))
    lost = []
    while process.state is ControlState.CHILD:
        due = process.next_deadline()
        assert due is not None
        lost += [effect for effect in process.tick(at(due)) if isinstance(effect, Lost)]
    assert lost == [Lost((CHIEF,))]
    assert process.state is ControlState.COORDINATOR
    led = process.next_deadline()
    assert led is not None
    run(process, led + 2_900 * MS)
    assert process.stable(KEY) is None
    assert not process.counted(KEY, led + 2_900 * MS)
    run(process, led + 4 * S)
    told = process.stable(KEY)
    assert told is not None
    assert told.upto == 5
    assert process.counted(KEY, led + 4 * S)


def test_the_others_look_for_a_place() -> None:
    process = a_child()
    process.receive(a_ccon(heir=OTHER, sent=T + 200 * MS), 100, 2, at(T + 200 * MS))
    spoken = run(process, T + 3 * S)
    assert [message for message in spoken if isinstance(message, RingQuery)]


def test_a_mover_belongs_to_both_places_until_the_new_one_counts() -> None:
    process = a_child()
    now = T + 200 * MS
    process.acknowledge(KEY, Timestamp(5), pressing=False, now=at(now))
    process.receive(a_ccon(sent=now), 100, 2, at(now))
    process.receive(CoordinatorLeave(site=CHIEF, clock=clock(now) + 1), 60, 2, at(now + MS))
    queries = [message for message in run(process, now + MS) if isinstance(message, RingQuery)]
    assert queries[0].leaving == CHIEF
    process.receive(answer_to(queries[0], OTHER), 100, 2, at(now + 20 * MS))
    spoken = run(process, now + 200 * MS)
    groups = {message.coordinator for message in spoken if isinstance(message, LocalControl)}
    assert groups == {CHIEF, OTHER}
    assert process.coordinator == CHIEF
    sent = [m for m in spoken if isinstance(m, LocalControl) and m.coordinator == OTHER][-1]
    told = a_ccon(OTHER, sent=now + 300 * MS, counted=1_000, echoes={ME: (sent.clock, 50_000)})
    process.receive(told, 200, 2, at(now + 300 * MS))
    assert process.coordinator == OTHER
    farewells = [message for message in run(process, now + 600 * MS) if isinstance(message, SiteLeave)]
    assert [message.coordinator for message in farewells] == [CHIEF] * 3


def test_an_old_leave_of_a_coordinator_that_stayed_is_ignored() -> None:
    process = a_child()
    process.receive(a_ccon(sent=T + S), 100, 2, at(T + S))
    process.receive(CoordinatorLeave(site=CHIEF, clock=clock(T)), 60, 2, at(T + S))
    assert not [message for message in run(process, T + S + 50 * MS) if isinstance(message, RingQuery)]


def test_one_more_member_that_has_less_is_not_counted_yet() -> None:
    process = a_coordinator()
    now = T + 3 * S
    run(process, now)
    process.acknowledge(KEY, Timestamp(50), pressing=False, now=at(now))
    assert process.counted(KEY, now + 1)
    hear = {"sent": now, "coordinators": 2, "acknowledgments": acks(60)}
    process.receive(a_gcon(OTHER, **hear), 200, 2, at(now))
    mine = [m for m in run(process, now + S) if isinstance(m, GlobalControl)][-1]
    later = now + S + MS
    process.receive(a_gcon(OTHER, sent=later, coordinators=2, echoes={ME: (mine.clock, 0)}), 200, 2, at(later))
    assert process.counted(KEY, later)
    process.acknowledge(KEY, Timestamp(40), members=2, pressing=False, now=at(later))
    assert not process.counted(KEY, later)


def test_a_lone_coordinator_that_stood_still_listens_again_before_it_takes_itself_for_counted() -> None:
    process = a_coordinator()
    now = T + 3 * S
    run(process, now)
    process.acknowledge(KEY, Timestamp(50), pressing=False, now=at(now))
    assert process.counted(KEY, now + 100 * MS)
    woken = now + 20 * S
    assert not process.counted(KEY, woken)
    process.tick(at(woken))
    assert not process.counted(KEY, woken + 100 * MS)
    run(process, woken + 2 * S)
    assert process.counted(KEY, woken + 2 * S)


def test_who_leaves_says_so_and_is_silent_then() -> None:
    process = a_coordinator()
    process.receive(an_lcon(OTHER, ME, sent=T + S), 100, 2, at(T + S))
    effects = process.leave(at(T + S))
    went = {(type(effect.message), effect.to) for effect in effects if isinstance(effect, Control)}
    assert went == {(CoordinatorLeave, LocalGroup(ME)), (SiteLeave, CoordinatorGroup())}
    leaves = [message for message in said(effects) if isinstance(message, SiteLeave)]
    assert [leave.orphans for leave in leaves] == [True] * 3
    assert process.next_deadline() is None
    assert process.receive(an_lcon(OTHER, ME, sent=T + 2 * S), 100, 2, at(T + 2 * S)) == []
    assert process.tick(at(T + 9 * S)) == []


def test_a_coordinator_tells_its_children_what_all_have_and_up_to_when_they_count() -> None:
    process = a_coordinator()
    run(process, T + 3 * S)
    now = T + 3 * S
    process.acknowledge(KEY, Timestamp(9), pressing=False, now=at(now))
    process.receive(an_lcon(OTHER, ME, sent=now, acknowledgments=acks(7)), 100, 2, at(now))
    spoken = [message for message in run(process, now + S) if isinstance(message, CoordinatorControl)]
    assert spoken[-1].acknowledgments[KEY].upto == 7
    assert spoken[-1].counted == 0
    assert OTHER in spoken[-1].echoes


def test_distances_follow_table_2_1() -> None:
    child = a_child()
    now = T + 200 * MS
    told = a_ccon(sent=now, local_distances={OTHER: 3_000}, coordinator_distances={THIRD: 40_000})
    child.receive(told, 200, 2, at(now))
    own = child.distance_us(CHIEF, CHIEF)
    assert own == 5_000
    assert child.distance_us(ME, CHIEF) == 0
    assert child.distance_us(OTHER, CHIEF) == own + 3_000
    assert child.distance_us(THIRD, THIRD) == own + 40_000
    assert child.distance_us(SiteId(0x999), THIRD) == own + 40_000
    assert child.distance_us(SiteId(0x999), None) is None
