"""What goes wrong on purpose, and when: plans made from names and a seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from intergroup_core.errors import ConfigError
from intergroup_core.sim.adversary import Rule
from intergroup_core.wire.header import FrameType


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """A member stops for good."""

    at: int
    member: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A member stands still: its arrivals wait, its timers do not fire, then everything comes at once."""

    at: int
    until: int
    member: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Nothing passes from one set of members to another; both ways unless one-way."""

    at: int
    until: int
    side: frozenset[int]
    other: frozenset[int]
    one_way: bool = False

    def links(self) -> set[tuple[int, int]]:
        there = {(one, other) for one in self.side for other in self.other}
        return there if self.one_way else there | {(other, one) for one, other in there}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowApplication:
    """A member's application stops reading for a while."""

    at: int
    until: int
    member: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Congestion:
    """A member's network refuses what it sends; the bursts wait in order and leave at the end."""

    at: int
    until: int
    member: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockStep:
    """Somebody sets a member's wall clock."""

    at: int
    member: int
    delta_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A process starts at a seat that is empty or whose process is gone."""

    at: int
    member: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """A member leaves the group in good order."""

    at: int
    member: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """A crashed member's process starts again: same name, site and record, another id."""

    at: int
    member: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartSending:
    """A receiver's application begins to send."""

    at: int
    member: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The network falls apart into several parts."""

    at: int
    until: int
    parts: tuple[frozenset[int], ...]

    def links(self) -> set[tuple[int, int]]:
        where = {member: number for number, part in enumerate(self.parts) for member in part}
        return {(one, other) for one in where for other in where if where[one] != where[other]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flap:
    """Links that go up and down, both ways."""

    at: int
    until: int
    side: frozenset[int]
    other: frozenset[int]
    down_ns: int
    up_ns: int

    def links(self) -> set[tuple[int, int]]:
        there = {(one, other) for one in self.side for other in self.other}
        return there | {(other, one) for one, other in there}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lossy:
    """One-way links that lose more than the others."""

    at: int
    until: int
    links: frozenset[tuple[int, int]]
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Oppose:
    """An adversary that knows the protocol: frames of some kinds on some one-way links are lost or late."""

    at: int
    until: int
    kinds: frozenset[FrameType]
    links: frozenset[tuple[int, int]]
    chance: float = 1.0
    late_ns: int = 0
    """By how much they are late; 0 for lost."""

    def rule(self) -> Rule:
        return Rule(kinds=self.kinds, links=self.links, chance=self.chance, late_ns=self.late_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Something happens to a victim the moment a member enters a state, if it does in time; later it is back."""

    at: int
    until: int
    member: int
    state: str
    act: Literal["crash", "leave", "pause", "apart"]
    victim: int


Fault = Crash | Pause | Partition | SlowApplication | Congestion | ClockStep
Change = Join | Leave | Restart | StartSending | Split | Flap | Lossy | Oppose | Moment
"""What only a group with live membership survives."""

FAULT_NAMES = ("crash", "partition", "oneway", "pause", "slow", "congestion", "clock")
LONGEST_PART = 0.15
"""A fault that ends lasts at most this part of the run, so that one run meets several."""


def plan_faults(names: Iterable[str], *, members: int, duration_ns: int, rng: Random) -> tuple[Fault, ...]:
    """A few faults of every kind named, spread over the run."""
    plan: list[Fault] = []
    for name in names:
        if name not in FAULT_NAMES:
            raise ConfigError(f"there is no fault {name!r}; there are {', '.join(FAULT_NAMES)}")
        # One crash leaves the most to look at; the others come and go.
        times = 1 if name == "crash" else rng.randint(1, 3)
        plan.extend(_fault(name, members, duration_ns, rng) for _ in range(times))
    return tuple(sorted(plan, key=lambda fault: fault.at))


def _fault(name: str, members: int, duration_ns: int, rng: Random) -> Fault:
    at = rng.randrange(duration_ns // 20, max(duration_ns * 4 // 5, duration_ns // 20 + 1))
    until = at + rng.randrange(duration_ns // 100, max(round(duration_ns * LONGEST_PART), duration_ns // 100 + 1))
    member = rng.randrange(members)
    match name:
        case "crash":
            return Crash(at=at, member=member)
        case "pause":
            return Pause(at=at, until=until, member=member)
        case "slow":
            return SlowApplication(at=at, until=until, member=member)
        case "congestion":
            return Congestion(at=at, until=until, member=member)
        case "clock":
            return ClockStep(at=at, member=member, delta_ns=rng.randrange(-2_000_000_000, 2_000_000_000))
        case _:
            side, other = _two_sides(range(members), rng)
            return Partition(at=at, until=until, side=side, other=other, one_way=name == "oneway")


def _two_sides(members: Sequence[int], rng: Random) -> tuple[frozenset[int], frozenset[int]]:
    side = frozenset(rng.sample(members, rng.randint(1, max(1, len(members) - 1))))
    return side, frozenset(members) - side
