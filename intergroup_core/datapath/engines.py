"""The engines of one member in an epoch, and where its stream starts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from intergroup_core.config import Config
from intergroup_core.counters import Counters
from intergroup_core.delivery.clock import ClockGuard, HybridClock
from intergroup_core.delivery.flow import Pacer
from intergroup_core.delivery.outbox import Outbox
from intergroup_core.delivery.rso import ReliableSourceOrdered
from intergroup_core.delivery.rto import ReliableTimestampOrdered
from intergroup_core.delivery.sender import Sender
from intergroup_core.delivery.service import DeliveryService
from intergroup_core.delivery.undurable import Undurable
from intergroup_core.delivery.uu import UnreliableUnordered
from intergroup_core.effects import Multicast, Outcome
from intergroup_core.hierarchy.flat import FlatReports
from intergroup_core.hierarchy.relayed import Waits
from intergroup_core.ids import Instant, MemberId, Service, Timestamp, timestamp_span
from intergroup_core.multicast.archive import Archive
from intergroup_core.multicast.reliable import ReliableMulticast
from intergroup_core.ports import Control, Distances
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.wire.control import encode_control
from intergroup_core.wire.frames import FrameMaker
from intergroup_core.wire.membership import Change
from intergroup_core.wire.messages import ControlMessage, KeepAlive
from intergroup_core.wire.run import Run

Changed = Callable[[Change, MemberId, int, Timestamp, Instant], None]
"""An ordered membership message took its place: what it says, its sender, seq and timestamp."""
HeldBack = Callable[[Change, MemberId, Timestamp], None]
"""An ordered membership message is next, and others are about to be told that this member is ready for it."""
MILLISECOND = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """Where a member's stream starts: a view at its first message, or a sponsor's cut."""

    view_tag: int
    position: int
    """Of the last message that lies before it."""
    activations: Mapping[MemberId, int]
    promises: Mapping[MemberId, int]
    counted: frozenset[MemberId]


class Engines:
    """What a member is made of.

    Senders follow the timestamp order inside whatever service their application chose, so that causality holds (D6). So
    does every reliable member whose views change, for the order tells it where they do. A member that only wants `uu`
    takes part in nothing else.
    """

    def __init__(
        self,
        *,
        me: MemberId,
        maker: FrameMaker,
        service: Service,
        config: Config,
        clock: HybridClock,
        distances: Distances,
        rng: Random,
        counters: Counters,
        effects: Outcome,
        beginning: Beginning,
        sends: bool,
        live: bool = False,
        chosen: frozenset[MemberId] | None = None,
        outbox: Outbox | None = None,
        control: Control | None = None,
        undurable: Undurable | None = None,
        archive: Archive | None = None,
        recovered: Callable[[MemberId, int, int], None] | None = None,
        changed: Changed | None = None,
        held_back: HeldBack | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.me, self.service, self.counters = me, service, counters
        self.members: tuple[MemberId, ...] = tuple(beginning.activations)
        self._promised_before = beginning.promises
        self._present: set[MemberId] = set()
        """Senders by what was delivered so far, at the end of an epoch too, when views are not entered one by one."""
        self.view_tag = beginning.view_tag
        self._live = live
        self._config = config
        self._clock = clock
        self._control = control
        self._undurable = undurable
        self.epochs: tuple[int, ...] = (beginning.view_tag,)
        """Tags of the present epoch and of those before it whose members may still be on their way."""
        hierarchy = config.hierarchy
        self._waits = Waits(
            margin=2 * round(hierarchy.interval_ms * MILLISECOND),
            patience=2 * round((hierarchy.fault_ms + hierarchy.grace_ms) * MILLISECOND),
            notice=2 * round(hierarchy.fault_ms * MILLISECOND),
        )
        self._distances = distances
        self._maker = maker
        self._effects = effects
        self._chosen = chosen
        self._changed = changed
        self._held_back = held_back
        self._ledger = ledger
        self._announced = 0
        points = dict(beginning.activations)
        followed = {source: point for source, point in points.items() if self._chooses(source)}
        if not sends and not live:
            points = followed
        self._burst = max(1, config.send.burst_bytes // config.group.frame_bytes) * config.group.frame_bytes
        self.follows = live or sends or service is not Service.UU
        ordered = live or sends or service is Service.RTO
        self.order = self._make_order(beginning) if ordered else None
        self._delivery = self._make_delivery(followed, beginning)
        self._multicast = (
            ReliableMulticast(
                me, self.view_tag, points, beginning.position, config, distances, rng, counters, recovered, archive
            )
            if self.follows
            else None
        )
        if self._multicast is not None:
            for source, point in points.items():
                self._multicast.follow(source, point, beginning.promises[source])
        self.reports = FlatReports(
            me, self.view_tag, beginning.counted, points, config.report, config.group.frame_bytes
        )
        self.sender: Sender | None = None
        self._outbox = outbox
        self._pacer = Pacer(config.send, rng)
        if sends:
            self.start_sending(points.get(me, 1))
        self.stamping = sends
        """Whether this member may stamp: it sends, and no repair has closed the view (D11)."""
        self.permitted = True
        """Whether the quorum rule lets this member send data (M11)."""
        self.closing = False
        """Whether this member's Leave is under way: data after it would belong to no view, and waits."""
        self.delivering = True
        """Whether ordered messages reach the application: a repair halts that (T5.4.2)."""
        self._guard: ClockGuard | None = None
        self._clock_bound = 0
        self._app_room = config.report.room_bytes
        self._congested = False
        self._stalled_at: int | None = None
        self._heard = 0
        self._begun = beginning.position
        """Where the epoch begins, or this member in it: whoever is in it hears of all others before anybody rests."""
        self._more_at: int | None = None
        self._held: deque[Run] = deque()
        self._held_bytes = 0
        self._held_promises: dict[MemberId, KeepAlive] = {}
        self.departed: dict[MemberId, int] = {}
        """Sources that left in this epoch, and their last seq."""
        self._targets: dict[MemberId, int] = {}
        self._learned: dict[MemberId, int] = {}
        self._fetching: dict[MemberId, int] = {}
        """Seqs up to which sources are asked for because a receiver has them."""
        self.wild: set[MemberId] = set()
        """Sources whose last frame had a timestamp not to be believed (D4)."""
        self._hears_senders = False
        """Whether the hierarchy can speak for this member, as of when that was last looked at."""
        self._unpinned = Timestamp(beginning.position)
        self._behind: tuple[Timestamp, int] | None = None
        """Where a receiver stands still that others have left behind, and since when."""
        self.acknowledged = Timestamp(beginning.position)
        """Everything at or below is delivered here."""
        self.stable = Timestamp(0 if live else beginning.position)
        """Everything at or below is delivered at every counted member."""

    def _chooses(self, source: MemberId) -> bool:
        return self._chosen is None or source in self._chosen

    def _make_order(self, beginning: Beginning) -> ReliableTimestampOrdered:
        order = ReliableTimestampOrdered(self.me, (), beginning.position, self.counters)
        for source, activation in beginning.activations.items():
            order.add(source, beginning.promises[source], activation)
        return order

    def _make_delivery(self, followed: Mapping[MemberId, int], beginning: Beginning) -> DeliveryService:
        match self.service:
            case Service.UU:
                return UnreliableUnordered(self.counters)
            case Service.RSO:
                delivery = ReliableSourceOrdered({}, beginning.position)
                for source, activation in followed.items():
                    delivery.add(source, beginning.promises[source], activation)
                return delivery
            case Service.RTO:
                assert self.order is not None
                return self.order

    def start(self, now: Instant) -> None:
        bound = round(self._config.group.clock_bound_ms * MILLISECOND)
        self._clock_bound = timestamp_span(bound)
        self._guard = ClockGuard(self.members, self.acknowledged, bound, now.mono)
        for source in self.members:
            self._guard.begin(source, self._promised_before[source], now.mono)
        self._clock.observe(self.acknowledged)

    def start_sending(self, activation: int) -> None:
        """Make what sends; whether it may is said by `stamping`."""
        if self.sender is None:
            parts = (self._config, self._maker, self._clock, self._pacer, self.counters)
            self.sender = Sender(*parts, activation, self._outbox)

    def say(self, message: ControlMessage) -> None:
        kind, body = encode_control(message)
        frame = self._maker.single(kind, 0, 0, body)
        self._effects.append(Multicast(frame, len(frame)))

    @property
    def last_seq(self) -> int:
        return self.sender.seq if self.sender is not None else 0

    @property
    def position(self) -> Timestamp:
        """Of the last message delivered in order."""
        return Timestamp(self.order.delivered if self.order is not None else 0)

    @property
    def changed(self) -> Timestamp:
        """Of the last ordered membership message that took effect."""
        return Timestamp(self.order.changed if self.order is not None else 0)

    @property
    def undelivered(self) -> int:
        """Own frames that have not taken their place in the order here."""
        if self.sender is None or self.order is None:
            return 0
        return self.sender.seq + 1 - self.order.activations().get(self.me, self.sender.seq + 1)

    @property
    def drained(self) -> bool:
        """Whether nothing this member sent waits for anybody."""
        return self.buffered_bytes == 0 and (self.sender is None or self.sender.unstable_frames == 0)

    @property
    def buffered_bytes(self) -> int:
        return self._multicast.buffer.bytes if self._multicast is not None else 0

    @property
    def most_buffered_bytes(self) -> int:
        return self._multicast.buffer.most_bytes if self._multicast is not None else 0

    def _room_frames(self) -> int:
        room = self._config.report.room_bytes
        if self._multicast is not None:
            room = min(room, self._multicast.buffer.free)
        return self.reports.room_frames(min(room, self._app_room))

    def _own_activation(self) -> int | None:
        return self.sender.seq + 1 if self.sender is not None and self.stamping else None

    def _speak(self, now: Instant) -> None:
        """A sender's silence would block others (M2)."""
        assert self.sender is not None
        self.sender.keepalive.wanted(now.mono)
