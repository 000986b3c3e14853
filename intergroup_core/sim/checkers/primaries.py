"""Primary views: where a quorum is asked for, no two of them stand side by side (M11)."""

from __future__ import annotations

from dataclasses import dataclass

from intergroup_core.ids import MemberId
from intergroup_core.sim.checkers.course import view_key
from intergroup_core.sim.checkers.history import History
from intergroup_core.sim.checkers.violation import Violation
from intergroup_core.sim.trace import Allowed

NAME = "25 one primary"


@dataclass(slots=True)
class _Line:
    """Primary views that follow one another, by the last of them."""

    last: Allowed
    sites: frozenset[str]


def one_primary(history: History) -> Violation | None:
    """25. A view in which senders may send has a site in common with the one before it.

    By the numbers of primary views: each needed a quorum of the one before, so two neighbours without a common site
    stand side by side. Sites that never were in a primary view begin a line of their own, for nobody can know of it.
    """
    line_of: dict[str, _Line] = {}
    for allowed, sites in _primaries(history):
        lines = {id(line): line for site in sorted(sites) if (line := line_of.get(site)) is not None}
        followed = [line for line in lines.values() if line.sites & sites]
        if lines and not followed:
            other = next(iter(lines.values()))
            return Violation(
                property=NAME,
                member=allowed.member,
                detail=f"may send with {', '.join(sorted(sites))} while {', '.join(sorted(other.sites))} may",
                events=(other.last, allowed),
            )
        line = max(followed, key=lambda line: line.last.number) if followed else _Line(allowed, sites)
        line.last, line.sites = allowed, sites
        line_of.update(dict.fromkeys(sites, line))
    return None


def _primaries(history: History) -> list[tuple[Allowed, frozenset[str]]]:
    """Every view in which somebody might send, by its number, and its sites."""
    members: dict[str, tuple[MemberId, ...]] = {
        event.view: event.members for course in history.courses.values() for event in course.events
    }
    first: dict[str, Allowed] = {}
    for event in history.events:
        if type(event) is Allowed:
            first.setdefault(event.view, event)
    return [
        (event, frozenset(_site(history, member) for member in members.get(event.view, (event.member,))))
        for event in sorted(first.values(), key=lambda event: (event.number, view_key(event.view)))
    ]


def _site(history: History, member: MemberId) -> str:
    known = history.members.get(member)
    return str(member) if known is None else known.site or known.name
