"""Views: self inclusion, monotonicity, initial view, agreement, transitional sets (properties 1 to 5)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from intergroup_core.ids import MemberId, Service, format_member
from intergroup_core.sim.checkers.course import BEFORE_ANY, view_key
from intergroup_core.sim.checkers.history import NEVER, History
from intergroup_core.sim.checkers.violation import Violation
from intergroup_core.sim.trace import Installed, Left, Sent

ON_PURPOSE = frozenset({"left", "silence", "clock"})
"""Why a sender may deliver a view without itself: it went."""


def self_inclusion(history: History) -> Violation | None:
    """1. A sender that installs a view is in it, unless that is the view by which it goes."""
    for member, course in history.courses.items():
        for before, view in pairwise(course.events):
            if member in before.members and member not in view.members and not _went(member, view):
                return Violation(
                    property="1 self inclusion",
                    member=member,
                    detail="a sender installed a view without itself and had not left",
                    events=(before, view),
                )
    return None


def _went(member: MemberId, view: Installed) -> bool:
    return any(gone == member and reason in ON_PURPOSE for gone, reason in view.departed)


def local_monotonicity(history: History) -> Violation | None:
    """2. View ids strictly increase at a member."""
    for member, course in history.courses.items():
        for before, view in pairwise(course.events):
            if view_key(view.view) <= view_key(before.view):
                return Violation(
                    property="2 local monotonicity",
                    member=member,
                    detail="a view at or below the one before it",
                    events=(before, view),
                )
    return None


def initial_view(history: History) -> Violation | None:
    """3. Every send and delivery happens in some view; a send in one that its sender is in."""
    for stream in history.streams:
        if stream.service is Service.UU or not len(stream):
            continue
        member = stream.member.id
        if stream.ordinals[0] == BEFORE_ANY:
            return Violation(
                property="3 initial view",
                member=member,
                detail="a delivery before the first view",
                events=(history.delivery(stream, 0),),
            )
        if history.left.get(member, NEVER) < stream.positions[-1]:
            return Violation(
                property="3 initial view",
                member=member,
                detail="a delivery after the member had left",
                events=(history.events[history.left[member]], history.delivery(stream, -1)),
            )
    return _sends(history)


def _sends(history: History) -> Violation | None:
    current: dict[MemberId, Installed] = {}
    left: dict[MemberId, Left] = {}
    for event in history.events:
        if type(event) is Installed:
            current[event.member] = event
        elif type(event) is Left:
            left[event.member] = event
        elif type(event) is Sent:
            view = current.get(event.member)
            if view is not None and event.member in view.members and event.member not in left:
                continue
            return Violation(
                property="3 initial view",
                member=event.member,
                detail="sent before its first view, in one it is not in, or after it left",
                events=(*(shown for shown in (view, left.get(event.member)) if shown is not None), event),
            )
    return None


def view_agreement(history: History) -> Violation | None:
    """4. The same view id means the same membership everywhere, and the same start."""
    known: dict[str, Installed] = {}
    for course in history.courses.values():
        for view in course.events:
            other = known.setdefault(view.view, view)
            if set(view.members) != set(other.members) or view.start != other.start:
                return Violation(
                    property="4 view agreement",
                    member=view.member,
                    detail=f"another membership than at {format_member(other.member)}",
                    events=(other, view),
                )
            if len(set(view.members)) != len(view.members):
                return Violation(
                    property="4 view agreement",
                    member=view.member,
                    detail="a member is in the view twice",
                    events=(view,),
                )
    return None


def transitional_set(history: History) -> Violation | None:
    """5. The senders that came from this member's old view into the new one, and no others.

    What a view says of who joined and departed is held to the two memberships too.
    """
    came: dict[tuple[str, MemberId], str] = {}
    """From which view each member came into each view."""
    for member, course in history.courses.items():
        for before, view in pairwise(course.events):
            came[view.view, member] = before.view
    first = {(course.events[0].view, member) for member, course in history.courses.items() if len(course)}
    for member, course in history.courses.items():
        for before, view in pairwise(course.events):
            claimed = set(view.transitional)
            both = set(before.members) & set(view.members)
            wrong = claimed - both
            for other in both:
                if (view.view, other) in first:
                    wrong |= claimed & {other}
                elif (origin := came.get((view.view, other))) is not None and (
                    (origin == before.view) != (other in claimed)
                ):
                    wrong.add(other)
            if wrong:
                return Violation(
                    property="5 transitional set",
                    member=member,
                    detail=f"wrong about {', '.join(map(format_member, sorted(wrong)))}",
                    events=(before, view, *_installed_by(history, view.view, min(wrong))),
                )
            if (detail := _wrong_difference(before, view)) is not None:
                return Violation(property="5 transitional set", member=member, detail=detail, events=(before, view))
    return None


def _installed_by(history: History, view: str, member: MemberId) -> list[Installed]:
    """What a member saw around a view, for the reader."""
    course = history.courses.get(member)
    if course is None:
        return []
    at = np.flatnonzero(course.views == history.views[view])
    return course.events[max(0, int(at[0]) - 1) : int(at[0]) + 1] if len(at) else []


def _wrong_difference(before: Installed, view: Installed) -> str | None:
    old, new = set(before.members), set(view.members)
    joined, departed = set(view.joined), {member for member, _ in view.departed}
    if not new - old <= joined <= new - set(view.transitional):
        return "who joined does not fit the two memberships"
    if departed != old - new:
        return "who departed does not fit the two memberships"
    return None
