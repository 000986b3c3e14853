from __future__ import annotations

import pytest

from intergroup_core.sim.cluster import MILLISECOND, SECOND
from intergroup_core.sim.faults import Flap
from intergroup_core.sim.live_cluster import LiveCluster, Seat
from intergroup_core.sim.trace import Crashed, Disturbed, Ended, GapAnnounced, Installed, Sent


def a_cluster(**settings: object) -> LiveCluster:
    return LiveCluster(**({"seed": 1, "senders": 2, "receivers": 1} | settings))  # type: ignore[arg-type]


def test_processes_start_when_their_seats_say() -> None:
    cluster = a_cluster(seats=[Seat(name="now"), Seat(name="soon", joins_at=SECOND), Seat(name="told", joins_at=None)])
    cluster.run_for(SECOND // 2)
    assert [member.name for member in cluster.members] == ["now"]
    cluster.run_for(SECOND)
    assert [member.name for member in cluster.members] == ["now", "soon"]
    cluster.join(2)
    assert [member.name for member in cluster.alive] == ["now", "soon", "told"]


def test_joining_where_somebody_is_changes_nothing() -> None:
    cluster = a_cluster()
    cluster.run_for(SECOND)
    assert cluster.join(0) is cluster[0]
    assert len(cluster.processes) == 3


def test_a_restart_is_another_process_with_the_same_name_and_record() -> None:
    cluster = a_cluster()
    cluster.run_for(2 * SECOND)
    before, record = cluster[0], cluster.store["s0"]
    assert record
    cluster.crash(0)
    cluster.restart(0)
    assert cluster[0] is not before
    assert (cluster[0].name, cluster[0].index) == (before.name, before.index)
    assert cluster[0].id != before.id
    assert [event.member for event in cluster.trace.events if type(event) is Crashed] == [before.id]
    ids = [member.id for member in cluster.trace.members]
    assert len(ids) == len(set(ids)) == 4


@pytest.mark.parametrize("before", [False, True], ids=["after", "before"])
def test_a_hook_acts_the_moment_a_member_enters_a_state(before: bool) -> None:
    cluster = a_cluster(senders=1, receivers=0)
    cluster.run_for(1)
    seen: list[tuple[str, int]] = []

    def look() -> None:
        installed = sum(type(event) is Installed for event in cluster.trace.events)
        seen.append((cluster[0].state, installed))

    cluster[0].when("sender", look, before=before)
    cluster.run_for(2 * SECOND)
    assert seen == [("sender", 0 if before else 1)]
    assert cluster[0].hooks == []


def test_what_a_member_does_is_lost_when_it_crashes_before() -> None:
    cluster = a_cluster(senders=1, receivers=0)
    cluster.run_for(1)
    cluster[0].when("sender", lambda: cluster.crash(0), before=True)
    cluster.run_for(2 * SECOND)
    assert not cluster[0].alive
    assert not [event for event in cluster.trace.events if type(event) is Installed]


def test_trouble_is_noted_where_it_strikes() -> None:
    flap = Flap(
        at=SECOND,
        until=2 * SECOND,
        side=frozenset({0}),
        other=frozenset({1}),
        down_ns=300 * MILLISECOND,
        up_ns=300 * MILLISECOND,
    )
    cluster = a_cluster(faults=[flap])
    cluster.run_for(3 * SECOND)
    noted = [event for event in cluster.trace.events if type(event) is Disturbed]
    assert {event.member for event in noted} == {cluster[0].id, cluster[1].id}
    assert {event.at for event in noted} == {at * MILLISECOND for at in (1_000, 1_300, 1_600, 1_900)}


def test_a_gap_gives_a_member_another_id_and_its_application_goes_on() -> None:
    seats = [Seat(name="dies", busy=0), Seat(name="stays", busy=0), Seat(name="r2", sender=False)]
    cluster = a_cluster(seats=seats)
    cluster.run_for(2 * SECOND)
    before = cluster[2].id
    cluster.network.cut({(0, 1), (2, 1)})
    cluster[0].send([b"only r2 hears this"])
    cluster.run_for(500 * MILLISECOND)
    cluster.crash(0)
    cluster.network.heal_all()
    cluster.run_for(3 * SECOND)
    (gap,) = [event for event in cluster.trace.events if type(event) is GapAnnounced]
    assert (gap.member, gap.incarnation) == (before, cluster[2].id)
    assert cluster.name_of(cluster[2].id).startswith("r2/")
    cluster.start_sending(2)
    cluster.run_for(3 * SECOND)
    assert [event for event in cluster.trace.events if type(event) is Sent and event.member == cluster[2].id]


def test_settling_ends_all_trouble_and_tells_how_everybody_stands() -> None:
    cluster = a_cluster()
    cluster.run_for(2 * SECOND)
    cluster[0].pause()
    cluster.split((0,), (1, 2))
    cluster.run_for(3 * SECOND)
    cluster.settle()
    assert cluster.ended
    assert cluster.agreed()
    assert cluster.settling_ns > 0
    ends = {event.member: event for event in cluster.trace.events if type(event) is Ended}
    assert {member: end.sender for member, end in ends.items()} == {
        cluster[0].id: True,
        cluster[1].id: True,
        cluster[2].id: False,
    }


def test_pauses_of_delivery_are_measured() -> None:
    cluster = a_cluster(senders=3)
    cluster.run_for(2 * SECOND)
    assert not cluster[1].pauses
    cluster.crash(0)
    cluster.run_for(3 * SECOND)
    (pause,) = cluster[1].pauses
    assert 0 < pause < SECOND
