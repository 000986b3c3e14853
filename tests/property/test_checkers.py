"""The checkers count positions and maxima; here they are held to definitions by pairs, on traces of all sorts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.ids import MemberId, Service
from intergroup_core.sim.checkers import History, Violation
from intergroup_core.sim.checkers.causality import causal_order, reliable_causal
from intergroup_core.sim.checkers.delivery import no_duplication
from intergroup_core.sim.checkers.order import ascending, fifo, nothing_skipped, reliable_fifo, total_order
from intergroup_core.sim.checkers.stability import stability_is_true
from intergroup_core.sim.trace import Delivered, Event, Installed, Sent, StableDropped, Trace, TracedMember

MEMBERS = [MemberId(5), MemberId((1 << 63) | 2), MemberId(9)]
Name = tuple[MemberId, int]


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Three rto members, the first two of which send; deliveries mostly in timestamp order, with some mischief."""
    members = [
        TracedMember(id=member, name=str(index), service=Service.RTO, sender=index < 2, counted=True)
        for index, member in enumerate(MEMBERS)
    ]
    trace = Trace(members)
    view = f"{0:016x}-{0:016x}-0"
    trace.events += [Installed(0, member, view, -1, tuple(MEMBERS[:2])) for member in MEMBERS]
    clock, seqs = 0, dict.fromkeys(MEMBERS, 0)
    sent: list[Sent] = []
    pending: dict[MemberId, list[Sent]] = {member: [] for member in MEMBERS}
    for at in range(draw(st.integers(1, 25))):
        kind = draw(st.integers(0, 9))
        member = draw(st.sampled_from(MEMBERS))
        if kind < 4:
            source = draw(st.sampled_from(MEMBERS[:2]))
            clock += draw(st.integers(0, 2))
            seqs[source] += 1
            message = Sent(at, source, seqs[source], seqs[source], clock, clock, at)
            sent.append(message)
            trace.events.append(message)
            for waiting in pending.values():
                waiting.append(message)
        elif kind < 9 and pending[member]:
            waiting = sorted(pending[member], key=lambda message: (message.timestamp, message.member))
            chosen = waiting[0] if draw(st.integers(0, 4)) else draw(st.sampled_from(waiting))
            if draw(st.integers(0, 9)):
                pending[member].remove(chosen)
            trace.events.append(Delivered(at, member, chosen.member, chosen.seq, chosen.timestamp, chosen.digest))
        elif kind == 9:
            trace.events.append(StableDropped(at, member, draw(st.integers(0, clock))))
    return trace


def delivered(events: list[Event], member: MemberId) -> list[Delivered]:
    return [event for event in events if type(event) is Delivered and event.member == member]


def name(event: Delivered | Sent) -> Name:
    return (event.source if type(event) is Delivered else event.member), event.seq


def first_places(events: list[Event], member: MemberId) -> dict[Name, int]:
    places: dict[Name, int] = {}
    for place, event in enumerate(delivered(events, member)):
        places.setdefault(name(event), place)
    return places


def causes(events: list[Event]) -> dict[Name, set[Name]]:
    """By the definition: what a sender sent and delivered before, and all that these depend on."""
    past: dict[MemberId, set[Name]] = {member: set() for member in MEMBERS}
    found: dict[Name, set[Name]] = {}
    for event in events:
        if type(event) is Sent:
            found[name(event)] = set(past[event.member])
            past[event.member].add(name(event))
        elif type(event) is Delivered:
            past[event.member] |= found[name(event)] | {name(event)}
    return found


def breaks_no_duplication(events: list[Event]) -> bool:
    return any(len({name(e) for e in delivered(events, m)}) < len(delivered(events, m)) for m in MEMBERS)


def breaks_fifo(events: list[Event]) -> bool:
    return any(
        one.source == other.source and other.seq < one.seq
        for member in MEMBERS
        for one, other in combinations(delivered(events, member), 2)
    )


def breaks_total_order(events: list[Event]) -> bool:
    places = [[name(event) for event in delivered(events, member)] for member in MEMBERS]
    return any(
        one.index(a) < one.index(b) and _some_inversion(other, a, b)
        for one, other in combinations(places, 2)
        for a in set(one) & set(other)
        for b in set(one) & set(other)
    )


def _some_inversion(places: list[Name], a: Name, b: Name) -> bool:
    return places.index(b) < places.index(a)


def breaks_ascending(events: list[Event]) -> bool:
    for member in MEMBERS:
        keys = [(event.timestamp, event.source) for event in delivered(events, member)]
        if any(later <= earlier for earlier, later in pairwise(keys)):
            return True
    return False


def breaks_nothing_skipped(events: list[Event]) -> bool:
    sent = {name(event): event for event in events if type(event) is Sent}
    for member in MEMBERS:
        seen = set(first_places(events, member))
        for here in seen:
            for other, message in sent.items():
                earlier = (message.timestamp, message.member) < (sent[here].timestamp, sent[here].member)
                same_source = other[0] == here[0] and other[1] < here[1]
                if other not in seen and (earlier or same_source):
                    return True
    return False


def breaks_causal_order(events: list[Event]) -> bool:
    needs = causes(events)
    for member in MEMBERS:
        places = first_places(events, member)
        if any(cause in places and places[cause] > place for m, place in places.items() for cause in needs[m]):
            return True
    return False


def breaks_reliable_causal(events: list[Event]) -> bool:
    needs = causes(events)
    for member in MEMBERS:
        places = first_places(events, member)
        if any(places.get(cause, 1 << 60) > place for m, place in places.items() for cause in needs[m]):
            return True
    return False


def breaks_stability(events: list[Event]) -> bool:
    sent = [event for event in events if type(event) is Sent]
    for position, event in enumerate(events):
        if type(event) is not StableDropped:
            continue
        held = first_places(events, event.member)
        dropped = [message for message in sent if message.timestamp <= event.upto and name(message) in held]
        for member in MEMBERS:
            seen = set(first_places(events[:position], member))
            if any(name(message) not in seen for message in dropped):
                return True
    return False


@pytest.mark.parametrize(
    ("checker", "broken"),
    [
        (no_duplication, breaks_no_duplication),
        (fifo, breaks_fifo),
        (ascending, breaks_ascending),
        (nothing_skipped, breaks_nothing_skipped),
        (causal_order, breaks_causal_order),
        (reliable_causal, breaks_reliable_causal),
        (stability_is_true, breaks_stability),
    ],
)
def test_a_checker_agrees_with_the_definition(
    checker: Callable[[History], Violation | None], broken: Callable[[list[Event]], bool]
) -> None:
    verdicts: set[bool] = set()

    @given(trace=traces())
    def agrees(trace: Trace) -> None:
        violation = checker(History(trace))
        assert (violation is not None) == broken(trace.events), violation
        verdicts.add(violation is not None)

    agrees()
    assert verdicts == {True, False}


@given(trace=traces())
def test_total_order_agrees_with_the_definition_where_nothing_comes_twice(trace: Trace) -> None:
    if not breaks_no_duplication(trace.events):
        assert (total_order(History(trace)) is not None) == breaks_total_order(trace.events)


@given(trace=traces())
def test_a_hole_between_two_deliveries_of_a_source_is_a_skip_too(trace: Trace) -> None:
    history = History(trace)
    if reliable_fifo(history) is not None and fifo(history) is None:
        assert nothing_skipped(history) is not None
