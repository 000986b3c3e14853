"""The checkers of views are held to definitions by pairs of members, on traces of all sorts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.ids import MemberId, Service
from intergroup_core.sim.checkers import History, Violation
from intergroup_core.sim.checkers.synchrony import same_view_delivery, virtual_synchrony
from intergroup_core.sim.checkers.views import (
    initial_view,
    local_monotonicity,
    self_inclusion,
    transitional_set,
    view_agreement,
)
from intergroup_core.sim.trace import Delivered, Event, Installed, Sent, Trace, TracedMember

MEMBERS = [MemberId(5), MemberId((1 << 63) | 2), MemberId(9)]
Name = tuple[MemberId, int]


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Three members that go through some of four views, send and deliver; everybody starts in the first view."""
    members = [
        TracedMember(id=member, name=str(index), service=Service.RTO, sender=False, counted=False)
        for index, member in enumerate(MEMBERS)
    ]
    trace = Trace(members, live=True)
    memberships = [tuple(MEMBERS), *(tuple(draw(st.sets(st.sampled_from(MEMBERS), min_size=1))) for _ in range(3))]
    current = dict.fromkeys(MEMBERS, 0)
    trace.events += [_install(0, member, 0, memberships, None) for member in MEMBERS]
    sent: list[Sent] = []
    for at in range(1, draw(st.integers(1, 25))):
        member = draw(st.sampled_from(MEMBERS))
        kind = draw(st.integers(0, 9))
        if kind < 3:
            sent.append(Sent(at, member, at, at, at, at, at))
            trace.events.append(sent[-1])
        elif kind < 8 and sent:
            message = draw(st.sampled_from(sent))
            trace.events.append(Delivered(at, member, message.member, message.seq, message.timestamp, message.digest))
        else:
            step = draw(st.sampled_from((1, 1, 1, 2, 0)))
            view = min(current[member] + step, 3)
            along = draw(st.sampled_from((None, None, None, (), tuple(MEMBERS))))
            trace.events.append(_install(at, member, view, memberships, current[member], along))
            current[member] = view
    return trace


def _install(
    at: int,
    member: MemberId,
    view: int,
    memberships: list[tuple[MemberId, ...]],
    before: int | None,
    along: tuple[MemberId, ...] | None = None,
) -> Installed:
    members, old = memberships[view], memberships[before] if before is not None else ()
    transitional = tuple(set(members) & set(old)) if along is None else along
    joined = tuple(set(members) - set(old))
    departed = tuple((gone, "failed") for gone in old if gone not in members)
    start = -1 if view == 0 else view
    return Installed(at, member, f"{view:016x}-{0:016x}-0", start, members, transitional, joined, departed)


def installs(events: list[Event], member: MemberId) -> list[Installed]:
    return [event for event in events if type(event) is Installed and event.member == member]


def by_view(events: list[Event], member: MemberId) -> list[tuple[str, set[Name]]]:
    """The views of a member in their order, each with what was delivered in it."""
    found: list[tuple[str, set[Name]]] = []
    for event in events:
        if type(event) is Installed and event.member == member:
            found.append((event.view, set()))
        elif type(event) is Delivered and event.member == member:
            found[-1][1].add((event.source, event.seq))
    return found


def repeats(events: list[Event]) -> bool:
    """Whether a member installs a view twice or goes back: then other definitions are not meant."""
    return any(
        later.view <= earlier.view for member in MEMBERS for earlier, later in pairwise(installs(events, member))
    )


def breaks_self_inclusion(events: list[Event]) -> bool:
    return any(
        member in before.members and member not in view.members
        for member in MEMBERS
        for before, view in pairwise(installs(events, member))
    )


def breaks_initial_view(events: list[Event]) -> bool:
    return any(
        type(event) is Sent and event.member not in installs(events[:place], event.member)[-1].members
        for place, event in enumerate(events)
    )


def breaks_transitional_set(events: list[Event]) -> bool:
    came: dict[tuple[MemberId, str], str] = {
        (member, view.view): before.view for member in MEMBERS for before, view in pairwise(installs(events, member))
    }
    for member in MEMBERS:
        for before, view in pairwise(installs(events, member)):
            for other in MEMBERS:
                both = other in before.members and other in view.members
                installed = any(theirs.view == view.view for theirs in installs(events, other))
                if other in view.transitional and not both:
                    return True
                if both and installed and (came.get((other, view.view)) == before.view) != (other in view.transitional):
                    return True
    return False


def breaks_same_view(events: list[Event]) -> bool:
    where: dict[Name, set[str]] = {}
    for member in MEMBERS:
        for view, delivered in by_view(events, member):
            for message in delivered:
                where.setdefault(message, set()).add(view)
    return any(len(views) > 1 for views in where.values())


def breaks_virtual_synchrony(events: list[Event]) -> bool:
    for one, other in combinations(MEMBERS, 2):
        for (view, here), (following, _) in pairwise(by_view(events, one)):
            for (their_view, there), (their_following, _) in pairwise(by_view(events, other)):
                if (view, following) == (their_view, their_following) and here != there:
                    return True
    return False


@pytest.mark.parametrize(
    ("checker", "broken"),
    [
        (self_inclusion, breaks_self_inclusion),
        (local_monotonicity, repeats),
        (initial_view, breaks_initial_view),
        (transitional_set, breaks_transitional_set),
        (same_view_delivery, breaks_same_view),
        (virtual_synchrony, breaks_virtual_synchrony),
    ],
)
def test_a_checker_agrees_with_the_definition(
    checker: Callable[[History], Violation | None], broken: Callable[[list[Event]], bool]
) -> None:
    verdicts: set[bool] = set()

    @given(trace=traces())
    def agrees(trace: Trace) -> None:
        if broken is not repeats and repeats(trace.events):
            return
        violation = checker(History(trace))
        assert (violation is not None) == broken(trace.events), violation
        verdicts.add(violation is not None)

    agrees()
    assert verdicts == {True, False}


@given(trace=traces())
def test_views_of_one_id_agree(trace: Trace) -> None:
    assert view_agreement(History(trace)) is None
    view = next(event for event in reversed(trace.events) if type(event) is Installed)
    other = next(member for member in MEMBERS if member != view.member)
    trace.events.append(view._replace(member=other, members=(*view.members, MemberId(77))))
    assert view_agreement(History(trace)) is not None
