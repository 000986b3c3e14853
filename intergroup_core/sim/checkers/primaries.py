"""Primary views: where a quorum is asked for, no two of them stand side by side (M11)."""

from __future__ import annotations

from dataclasses import dataclass

from intergroup_core.ids import MemberId
from intergroup_core.sim.checkers.course import view_key
from intergroup_core.sim.checkers.history import History
from intergroup_core.sim.checkers.violation import Violation
from intergroup_core.sim.trace import Allowed, Crashed, GapAnnounced, Left

NAME = "25 one primary"


@dataclass(slots=True)
class _Line:
    """Primary views that follow one another, by the last of them."""

    last: Allowed
    sites: frozenset[str]


def one_primary(history: History) -> Violation | None:
    """25. Of the views in which senders may send no two stand side by side.

    By the numbers of primary views: each needed a quorum of the one before, so two neighbours have a site in common.
    And at any time: most of a view's sites must have left it before another takes its place, so no two views without
    a common site are both held by most of their sites. Sites that never were in a primary view begin a line of their
    own, for nobody can know of it.
    """
    primaries = _primaries(history)
    lines: dict[str, int] = {}
    return _neighbours(primaries, lines) or _held(history, {event.view: sites for event, sites in primaries}, lines)


def _neighbours(primaries: list[tuple[Allowed, frozenset[str]]], lines: dict[str, int]) -> Violation | None:
    """Whether two that follow one another have nothing in common; which line each is on goes into `lines`."""
    line_of: dict[str, _Line] = {}
    for allowed, sites in primaries:
        known = {id(line): line for site in sorted(sites) if (line := line_of.get(site)) is not None}
        followed = [line for line in known.values() if line.sites & sites]
        if known and not followed:
            other = next(iter(known.values()))
            return _violation(other.last, other.sites, allowed, sites)
        line = max(followed, key=lambda line: line.last.number) if followed else _Line(allowed, sites)
        line.last, line.sites = allowed, sites
        lines[allowed.view] = id(line)
        line_of.update(dict.fromkeys(sites, line))
    return None


def _held(history: History, sites_of: dict[str, frozenset[str]], lines: dict[str, int]) -> Violation | None:
    """Whether two views without a common site are ever both held by most of their sites."""
    current: dict[MemberId, Allowed] = {}
    for event in history.events:
        if isinstance(event, (Crashed, Left, GapAnnounced)):
            current.pop(event.member, None)
        elif type(event) is Allowed:
            current.pop(event.member, None)
            if not event.view:
                continue
            current[event.member] = event
            sites = sites_of[event.view]
            if not _holds(history, event.view, sites, current):
                continue
            for other in current.values():
                others = sites_of[other.view]
                apart = lines[other.view] == lines[event.view] and not others & sites
                if apart and _holds(history, other.view, others, current):
                    return _violation(other, others, event, sites)
    return None


def _holds(history: History, view: str, sites: frozenset[str], current: dict[MemberId, Allowed]) -> bool:
    holding = {_site(history, member) for member, event in current.items() if event.view == view}
    return 2 * len(holding & sites) > len(sites)


def _violation(one: Allowed, ones: frozenset[str], other: Allowed, others: frozenset[str]) -> Violation:
    return Violation(
        property=NAME,
        member=other.member,
        detail=f"may send with {', '.join(sorted(others))} while {', '.join(sorted(ones))} may",
        events=(one, other),
    )


def _primaries(history: History) -> list[tuple[Allowed, frozenset[str]]]:
    """Every view in which somebody might send, by its number, and its sites."""
    members: dict[str, tuple[MemberId, ...]] = {
        event.view: event.members for course in history.courses.values() for event in course.events
    }
    first: dict[str, Allowed] = {}
    for event in history.events:
        if type(event) is Allowed and event.view:
            first.setdefault(event.view, event)
    return [
        (event, frozenset(_site(history, member) for member in members.get(event.view, (event.member,))))
        for event in sorted(first.values(), key=lambda event: (event.number, view_key(event.view)))
    ]


def _site(history: History, member: MemberId) -> str:
    known = history.members.get(member)
    return str(member) if known is None else known.site or known.name
