"""What a checker returns: the property that failed, where, and the events that show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from intergroup_core.ids import MemberId, format_member
from intergroup_core.sim.trace import Event, describe


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """The first place at which a trace breaks a property."""

    property: str
    """Its number and name, as in `13a ascending`."""
    member: MemberId
    detail: str
    events: tuple[Event, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "property": self.property,
            "member": format_member(self.member),
            "detail": self.detail,
            "events": [describe(event) for event in self.events],
        }

    def __str__(self) -> str:
        lines = [f"{self.property} at {format_member(self.member)}: {self.detail}"]
        lines.extend(f"    {describe(event)}" for event in self.events)
        return "\n".join(lines)
