"""Where a member is on its course through the states of T5.3, and what it remembers on the way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from random import Random

from intergroup_core.config import MembershipConfig
from intergroup_core.counters import Counters
from intergroup_core.effects import Effect
from intergroup_core.ids import Instant, MemberId, Timestamp, ViewId
from intergroup_core.membership.blocks import BlockSet
from intergroup_core.membership.bootstrap import Newcomer, Sponsor
from intergroup_core.membership.detector import FaultDetector
from intergroup_core.membership.quorum import Quorum
from intergroup_core.membership.repair import Repair
from intergroup_core.membership.standing import Standing
from intergroup_core.membership.states import State
from intergroup_core.membership.stream import Stream
from intergroup_core.wire.membership import Join, MembershipChange, MembershipMessage, Peer

Begin = Callable[[Mapping[MemberId, int], Mapping[MemberId, int], int, ViewId, frozenset[MemberId], Instant], Stream]
"""Makes the way of data: activations, promises, position, epoch, who is counted."""


class Course(ABC):
    """What the parts of the protocol share; each of them is a file of its own."""

    def __init__(
        self,
        *,
        me: Peer,
        config: MembershipConfig,
        clock_bound_ns: int,
        quorum: Quorum,
        counters: Counters,
        rng: Random,
        say: Callable[[MembershipMessage], None],
        emit: Callable[[Effect], None],
        clock: Callable[[], Timestamp],
        observe: Callable[[int], None],
        stamp: Callable[[Instant], Timestamp],
        begin: Begin,
        reborn: Callable[[str, Instant], Peer],
        has_unsent: Callable[[], bool],
    ) -> None:
        self.standing = Standing(
            me=me,
            config=config,
            counters=counters,
            rng=rng,
            quorum=quorum,
            detector=FaultDetector(config),
            blocks=BlockSet(config),
            say=say,
            emit=emit,
            clock=clock,
            observe=observe,
            stamp=stamp,
        )
        self._config = config
        self._counters = counters
        self._begin = begin
        self._reborn = reborn
        self._has_unsent = has_unsent
        self._sponsor = Sponsor(self.standing, clock_bound_ns)
        self._newcomer: Newcomer | None = None
        self._repair: Repair | None = None
        self._following: MembershipChange | None = None
        self._wants_to_send = False
        self._leaving: str | None = None
        """Why this member goes for good, once it does."""
        self._leave_sent = False
        self._linger_until: int | None = None
        self._serials: dict[MemberId, int] = {}
        self._serial = 0
        self._asked: dict[MemberId, int] = {}
        self._ask_attempt = 0
        self._ask_at = 0
        self._foreign_since: int | None = None
        self._change_request_at = 0
        self._hopes_since: int | None = None
        """Since when a receiver waits for what nobody repaired because the senders are about to end the view."""
        self._help_at = 0
        self._silent_since = 0
        self.stays = False
        """Whether somebody will send again: silence is then no reason to go."""
        self._finishing = False
        self._floor = 0
        """What an earlier incarnation delivered last: this one begins above it."""
        self.state = State.BOOTSTRAP

    def _enter(self, state: State, reason: str) -> None:
        if state is not self.state:
            key = f"{self.state.value}>{state.value}: {reason}"
            self._counters.transitions[key] = self._counters.transitions.get(key, 0) + 1
            self.state = state

    def _settled(self, state: State, reason: str, now: Instant) -> None:
        """In one of the stable states: watch the senders, and go on to where this member wants to be."""
        self._newcomer = None
        self._repair = None
        self._following = None
        self._foreign_since = None
        self._silent_since = now.mono
        self._linger_until = None
        self.standing.watch(self.standing.senders, now)
        self._enter(state, reason)
        if state is State.RECEIVER and self._wants_to_send and self._leaving is None:
            self._to_sender(now)

    @abstractmethod
    def _to_sender(self, now: Instant) -> None:
        """Ask to be added, for there is data."""

    @abstractmethod
    def _start_repair(
        self,
        reason: str,
        now: Instant,
        *,
        failed: MemberId | None = None,
        join: Join | None = None,
        fellows: Iterable[MemberId] = (),
    ) -> None:
        """Agree on the next view."""

    @abstractmethod
    def _heard_change(self, change: MembershipChange, now: Instant) -> None:
        """The next view is known."""

    @abstractmethod
    def _take_gap(self, reason: str, now: Instant) -> None:
        """Start anew as another incarnation."""
