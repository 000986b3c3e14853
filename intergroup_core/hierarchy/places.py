"""Where a control process belongs: as a child of one or two coordinators, as a coordinator, or looking for a place."""

from __future__ import annotations

from enum import Enum
from random import Random

from intergroup_core.config import HierarchyConfig
from intergroup_core.effects import ControlEffect, CoordinatorGroup, Listen, LocalGroup
from intergroup_core.hierarchy.attachment import Attachment
from intergroup_core.hierarchy.determination import SelfDetermination
from intergroup_core.hierarchy.interval import Interval
from intergroup_core.hierarchy.leadership import Leadership
from intergroup_core.hierarchy.search import RingSearch
from intergroup_core.hierarchy.states import ControlState
from intergroup_core.hierarchy.voice import Voice
from intergroup_core.ids import SiteId
from intergroup_core.timers import Timers
from intergroup_core.wire.exchange import clock_at
from intergroup_core.wire.hierarchy import Acknowledgment, CutKey, GroupKey, Reach, SiteLeave

MILLISECOND = 1_000_000
MICROSECOND = 1_000


class Timer(Enum):
    """What a control process waits for."""

    LOCAL = "local control message"
    GLOBAL = "global control message"
    CHECK = "faults and self-determination"
    CHANGE = "second look at a change"
    SEARCH = "ring search"
    FAREWELL = "saying again that it left"


class Places:
    """The parts of a control process, and what it listens to because of them."""

    FAREWELLS = 3
    """Times that a departure is said: a lost one costs the others a grace."""
    FAULT_INTERVALS = 6
    """Intervals of silence after which a peer is taken for gone, where those are long."""
    MAX_PEERS = 20_000
    """Sites that any table holds."""

    def __init__(self, *, me: SiteId, name: str, config: HierarchyConfig, system_ttl: int, rng: Random) -> None:
        self.me = me
        self.state = ControlState.STARTING
        self._config = config
        self._system_ttl = max(1, system_ttl)
        self._rng = rng
        self._effects: list[ControlEffect] = []
        self._voice = Voice(me, name, config.name, self._system_ttl, self._effects)
        self._determination = SelfDetermination(config, rng)
        self._timers: Timers[Timer] = Timers()
        self._local = Interval(config, rng)
        self._global = Interval(config, rng)
        self._lead: Leadership | None = None
        self._attached: Attachment | None = None
        self._next: Attachment | None = None
        """Where a site on the move is about to belong."""
        self._attachments: tuple[Attachment, ...] = ()
        self._search: RingSearch | None = None
        self._heard_coordinators: int | None = None
        self._rumoured: set[SiteId] = set()
        self._own: dict[GroupKey, Acknowledgment] = {}
        self._included_at: dict[GroupKey, int] = {}
        self._cuts: dict[CutKey, Reach] = {}
        self._farewells: list[tuple[SiteId, int]] = []
        self._listening: Listen | None = None
        self._basis: tuple[object, ...] = ()
        self.moves = 0
        """Times that it changed its coordinator or its role."""

    @property
    def coordinator(self) -> SiteId | None:
        """Whose local group this site belongs to."""
        if self._attached is not None:
            return self._attached.coordinator
        return self.me if self._lead is not None else None

    @property
    def children(self) -> int:
        return len(self._lead.children) if self._lead is not None else 0

    @property
    def coordinators(self) -> int:
        """In the system, as far as this site knows."""
        if self._lead is not None:
            return self._lead.coordinators
        return self._attached.coordinators if self._attached is not None else 0

    def _attach(self, attached: Attachment | None, following: Attachment | None = None) -> None:
        """Belong to one local group and be about to belong to another."""
        self._attached, self._next = attached, following
        self._attachments = tuple(place for place in (attached, following) if place is not None)

    def _listen(self) -> None:
        """Say whom to listen to, where that has changed."""
        basis = (self._attachments, self._lead, self._search)
        if basis == self._basis:
            return
        self._basis = basis
        groups = {attachment.coordinator for attachment in self._attachments}
        if self._lead is not None:
            groups.add(self.me)
        # Who looks for a place hears of coordinators by what they say to each other.
        wanted = Listen(frozenset(groups), self._lead is not None or self._search is not None)
        if wanted != self._listening:
            self._listening = wanted
            # First of all: an answer may come at once.
            self._effects.insert(0, wanted)

    def _farewell(self, coordinator: SiteId, now: int) -> None:
        """No child of a coordinator any more, or no coordinator: said several times."""
        self._farewells.append((coordinator, self.FAREWELLS))
        self._timers.arm(Timer.FAREWELL, now)

    def _forget_farewell(self, coordinator: SiteId) -> None:
        """It comes back before it has said for the last time that it went."""
        self._farewells = [entry for entry in self._farewells if entry[0] != coordinator]

    def _say_farewells(self, now: int) -> None:
        for coordinator, _ in self._farewells:
            # Children of one that goes for good count on while they look for a place.
            orphans = coordinator == self.me and self._lead is not None and self._lead.holds_for_others()
            leave = SiteLeave(site=self.me, coordinator=coordinator, clock=clock_at(now), orphans=orphans)
            self._voice.say(leave, CoordinatorGroup() if coordinator == self.me else LocalGroup(coordinator))
        self._farewells = [(coordinator, left - 1) for coordinator, left in self._farewells if left > 1]
        if self._farewells:
            self._timers.arm(Timer.FAREWELL, now + self._interval_ns // 4)

    @property
    def _interval_ns(self) -> int:
        return round(self._config.interval_ms * MILLISECOND)

    @property
    def _grace_ns(self) -> int:
        return round(self._config.grace_ms * MILLISECOND)

    @property
    def _belief_ns(self) -> int:
        """How long what was known to be counted is taken for it: less than others keep it, which is the fault time and
        a grace since they heard it."""
        return self._grace_ns + round(self._config.fault_ms * MILLISECOND) // 2

    def _fault_ns(self, interval: Interval) -> int:
        return max(round(self._config.fault_ms * MILLISECOND), self.FAULT_INTERVALS * interval.mean_ns)

    @property
    def _closeness_us(self) -> int:
        return round(self._config.closeness_ms * MILLISECOND / MICROSECOND)
