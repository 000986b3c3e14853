"""A member's standing without a network: what is said and emitted is kept in lists, the way of data is a stub."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from random import Random
from typing import Any, TypeVar

from intergroup_core.config import MembershipConfig
from intergroup_core.counters import Counters
from intergroup_core.delivery.clock import HybridClock
from intergroup_core.effects import Effect
from intergroup_core.ids import Instant, MemberId, Timestamp, View, ViewId
from intergroup_core.membership.blocks import BlockSet
from intergroup_core.membership.detector import FaultDetector
from intergroup_core.membership.process import Membership
from intergroup_core.membership.quorum import Quorum, QuorumRecord
from intergroup_core.membership.standing import Standing
from intergroup_core.wire.membership import Add, Change, MembershipMessage, Peer
from tests.builders import START, T0, VIEW, A, B, C, after, millis
from tests.membership_builders import a_peer, a_sponsorship

Said = TypeVar("Said")

SETTINGS: dict[str, float] = {
    "bootstrap_retry_ms": 50.0,
    "bootstrap_wait_ms": 400.0,
    "sponsor_ms": 100.0,
    "suspect_ms": 800.0,
    "suspect_max_ms": 4_000.0,
    "repeat_ms": 20.0,
    "cut_wait_ms": 5.0,
    "backoff_ms": 30.0,
    "block_ms": 3_000.0,
    "silence_ms": 5_000.0,
    "lease_ms": 1_000.0,
    "linger_ms": 500.0,
}
REBORN = MemberId(0xBEEF)


def a_membership_config(**settings: float) -> MembershipConfig:
    return MembershipConfig(**SETTINGS | settings)


class AStream:
    """The way of data, as far as the membership protocol asks for it; tests set what it answers."""

    def __init__(self, members: Collection[MemberId] = (A, B, C), last_seq: int = 0) -> None:
        self.acknowledged = Timestamp(START)
        self.position = Timestamp(START)
        self.departed: dict[MemberId, int] = {}
        self.learned: dict[MemberId, int] = {}
        self.members = tuple(members)
        self.permitted = True
        self.changed = Timestamp(START)
        self.last_seq = last_seq
        self.drained = True
        self.halted = False
        self.told_reach = False
        self.has_receivers = False
        self.fetches = 0
        self.reached = True
        self.passed = False
        self.received: set[tuple[MemberId, int]] = set()
        self.found: tuple[tuple[MemberId, int, Timestamp], ...] = ()
        self.wanted: dict[MemberId, int] = {}
        self.finished: dict[MemberId, int] | None = None
        self.emitted: list[Change] = []
        self.pins: dict[MemberId, int] = {}
        self.left: list[MemberId] = []
        self.views: list[tuple[MemberId, ...]] = []
        self.tag = 0
        self.closing = False
        self.before: tuple[int, ...] = ()
        self.held_until = 0
        self.ends: dict[MemberId, int] = dict.fromkeys(members, 0)
        self.ledger = b""
        self.restated = 0

    def stated(self) -> bytes:
        return self.ledger

    def learn_stated(self, ledger: bytes, upto: int) -> None:
        self.ledger = ledger

    def restate(self, now: Instant) -> None:
        self.restated += 1

    def halt(self) -> None:
        self.halted = True

    def tell_reach(self, now: Instant) -> None:
        self.told_reach = True

    def asks_receivers(self, survivors: Collection[MemberId]) -> bool:
        return self.has_receivers

    def fetch_from_receivers(self, survivors: Collection[MemberId], now: Instant) -> None:
        self.fetches += 1

    def reach(self, survivors: Collection[MemberId]) -> tuple[tuple[MemberId, int, Timestamp], ...]:
        return tuple(entry for entry in self.found if entry[0] not in survivors)

    def want(self, targets: Mapping[MemberId, int], now: Instant) -> None:
        self.wanted = dict(targets)

    def has_reached(self) -> bool:
        return self.reached

    def kept(
        self, bound: int, failed: Collection[MemberId], changed: int
    ) -> tuple[Timestamp, tuple[tuple[MemberId, int], ...]]:
        return Timestamp(changed), tuple(sorted(self.ends.items()))

    def last_before(self, source: MemberId) -> int:
        return 0

    def has_passed(self, last: Mapping[MemberId, int]) -> bool:
        return self.passed

    def learn(self, promises: Mapping[MemberId, int], survivors: Collection[MemberId]) -> None:
        self.learned = dict(promises)

    def knows_more(self, last: Mapping[MemberId, int]) -> bool:
        return False

    def finish(self, last: Mapping[MemberId, int], changes: int, now: Instant) -> None:
        self.finished = dict(last)

    def begin_epoch(
        self,
        view_tag: int,
        start: int,
        activations: Mapping[MemberId, int],
        last: Mapping[MemberId, int],
        left: Collection[MemberId],
        now: Instant,
    ) -> None:
        self.halted = False
        self.tag = view_tag
        self.members = tuple(activations)

    def come_from(self, epochs: Iterable[int]) -> None:
        self.before = tuple(epochs)

    def enter_view(self, members: Collection[MemberId], now: Instant) -> None:
        self.members = tuple(members)
        self.views.append(self.members)

    def source_left(self, source: MemberId, timestamp: int, seq: int) -> None:
        self.left.append(source)

    def start_sending(self, activation: int) -> None:
        self.last_seq = activation - 1

    def emit_change(self, change: Change, now: Instant) -> None:
        self.emitted.append(change)

    def sponsored(self) -> tuple[Timestamp, tuple[tuple[MemberId, int], ...], tuple[tuple[MemberId, Timestamp], ...]]:
        stamps = tuple((member, Timestamp(START)) for member in self.members)
        return Timestamp(START), tuple((member, 1) for member in self.members), stamps

    def pin(self, member: MemberId, until: int) -> None:
        self.pins[member] = until

    def hold_stability(self, start: int, until: int) -> None:
        self.held_until = until

    def has(self, source: MemberId, seq: int) -> bool:
        return (source, seq) in self.received


class Heard:
    """Keeps what a member says and emits."""

    def __init__(self) -> None:
        self.messages: list[MembershipMessage] = []
        self.effects: list[Effect] = []

    def said(self, kind: type[Said]) -> list[Said]:
        return [message for message in self.messages if isinstance(message, kind)]

    def emitted(self, kind: type[Said]) -> list[Said]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def clear(self) -> None:
        self.messages.clear()
        self.effects.clear()


class Bench(Heard):
    """A standing: by default A's, a sender in VIEW."""

    def __init__(
        self,
        me: MemberId = A,
        view: View | None = VIEW,
        *,
        rule: str = "none",
        record: QuorumRecord | None = None,
        site: str = "",
        seed: int = 1,
        **settings: float,
    ) -> None:
        super().__init__()
        config = a_membership_config(**settings)
        self.clock = HybridClock()
        self.clock.observe(START)
        self.stream = AStream(view.members if view is not None else ())
        self.standing = Standing(
            me=a_peer(me, site=site),
            config=config,
            counters=Counters(),
            rng=Random(seed),
            quorum=Quorum(rule, record or QuorumRecord()),
            detector=FaultDetector(config),
            blocks=BlockSet(config),
            say=self.messages.append,
            emit=self.effects.append,
            clock=lambda: self.clock.last,
            observe=self.clock.observe,
            stamp=lambda now: self.clock.stamp(1, now),
        )
        if view is not None:
            self.standing.path = self.stream
            self.standing.view = view
            self.standing.epoch = view.id
            self.standing.roster = {member: a_peer(member) for member in view.members}
            self.standing.history.entered(view.id, None)


class Process(Heard):
    """A whole membership machine with a stub for its data; `at` moves its time, which ticks as its deadlines say."""

    def __init__(
        self,
        me: MemberId = A,
        *,
        rule: str = "none",
        record: QuorumRecord | None = None,
        seed: int = 1,
        bound_ms: float = 30_000,
        **settings: float,
    ) -> None:
        super().__init__()
        self.now = T0
        self.unsent = False
        self.streams: list[AStream] = []
        self.counters = Counters()
        self.clock = HybridClock()
        self.machine = Membership(
            me=a_peer(me),
            config=a_membership_config(**settings),
            clock_bound_ns=millis(bound_ms),
            quorum=Quorum(rule, record or QuorumRecord()),
            counters=self.counters,
            rng=Random(seed),
            say=self.messages.append,
            emit=self.effects.append,
            clock=lambda: self.clock.last,
            observe=self.clock.observe,
            stamp=lambda now: self.clock.stamp(1, now),
            begin=self._begin,
            reborn=self._reborn,
            has_unsent=lambda: self.unsent,
        )

    def _begin(
        self,
        activations: Mapping[MemberId, int],
        promises: Mapping[MemberId, int],
        position: int,
        epoch: ViewId,
        counted: frozenset[MemberId],
        now: Instant,
    ) -> AStream:
        self.streams.append(AStream(activations))
        return self.streams[-1]

    def _reborn(self, reason: str, now: Instant) -> Peer:
        return a_peer(REBORN)

    @property
    def stream(self) -> AStream:
        return self.streams[-1]

    @property
    def state(self) -> str:
        return self.machine.state.value

    @property
    def view(self) -> View:
        assert self.machine.view is not None
        return self.machine.view

    def at(self, ms: float) -> None:
        """Let time pass, with a tick at every deadline."""
        until = T0.mono + millis(ms)
        for _ in range(10_000):
            deadline = self.machine.next_deadline()
            if deadline is None or deadline > until:
                break
            self.now = after(max(deadline, self.now.mono) - T0.mono)
            self.machine.tick(self.now)
        else:
            raise AssertionError(f"spins: state {self.state}, deadline {deadline}")
        self.now = after(millis(ms))

    def hears(self, *messages: MembershipMessage) -> None:
        for message in messages:
            self.machine.receive(message, self.now)

    def delivers(self, change: Change, source: MemberId = B, seq: int = 1, timestamp: int = START + 10) -> None:
        self.machine.changed(change, source, seq, Timestamp(timestamp), self.now)
        self.machine.go_on_leaving(self.now)

    def keeps_hearing(self, *members: MemberId, until_ms: float) -> None:
        """Time passes while these are heard."""
        start = (self.now.mono - T0.mono) / 1e6
        steps = int((until_ms - start) // 50)
        for step in range(1, steps + 1):
            self.at(start + 50 * step)
            for member in members:
                self.machine.heard(member, self.now)


def a_newcomer(me: MemberId = A, *, sender: bool = False, **settings: Any) -> Process:
    process = Process(me, **settings)
    process.machine.start(sender=sender, now=T0)
    return process


def a_receiver(me: MemberId = A, *, view: View = VIEW, **settings: Any) -> Process:
    """A member that was sponsored at the start of a view; A is not in it where A is the member."""
    members = tuple(member for member in view.members if member != me)
    process = a_newcomer(me, **settings)
    process.hears(a_sponsorship(B, me, view=View(id=view.id, members=members)))
    process.clear()
    return process


def a_sender(me: MemberId = A, **settings: Any) -> Process:
    """A member that B and C added to their view."""
    process = a_receiver(me, **settings)
    process.machine.want_to_send(process.now)
    process.delivers(Add(peer=a_peer(me), first_seq=1))
    assert process.state == "sender"
    process.clear()
    return process
