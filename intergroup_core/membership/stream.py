"""What the membership protocol asks of the way of data, which it does not know otherwise."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from intergroup_core.ids import Instant, MemberId, Timestamp
from intergroup_core.wire.membership import Change


class Stream(Protocol):
    """What the membership protocol asks of the way of data, and tells it."""

    acknowledged: Timestamp
    members: tuple[MemberId, ...]
    departed: dict[MemberId, int]
    """Sources that left in this epoch, and their last seq."""
    permitted: bool
    """Whether the quorum rule lets this member send data."""
    closing: bool
    """Whether this member's Leave is under way: data after it would belong to no view, and waits."""

    @property
    def last_seq(self) -> int:
        """Of the last frame this member sent."""

    @property
    def position(self) -> Timestamp:
        """Of the last message delivered in order."""

    @property
    def drained(self) -> bool:
        """Whether nothing this member sent waits for anybody."""

    def halt(self) -> None:
        """Deliver nothing in order and stamp nothing until a repair ends."""

    def tell_reach(self, now: Instant) -> None:
        """Let the senders know, by way of the hierarchy, what a receiver has of the epoch."""

    def asks_receivers(self, survivors: Collection[MemberId]) -> bool:
        """Whether there are receivers that may have more of a source that does not come along."""

    def fetch_from_receivers(self, survivors: Collection[MemberId], now: Instant) -> None:
        """Ask for what receivers are known to have of such sources, and this member has not."""

    def reach(self, survivors: Collection[MemberId]) -> tuple[tuple[MemberId, int, Timestamp], ...]:
        """Source, last contiguous seq and promise of the epoch's sources that do not come along."""

    def want(self, targets: Mapping[MemberId, int], now: Instant) -> None:
        """Get everything of the epoch up to these seqs."""

    def has_reached(self) -> bool:
        """Whether all of that is here."""

    @property
    def changed(self) -> Timestamp:
        """Of the last ordered membership message that took effect."""

    def kept(
        self, bound: int, failed: Collection[MemberId], changed: int
    ) -> tuple[Timestamp, tuple[tuple[MemberId, int], ...]]:
        """Up to which membership messages take effect before the epoch ends, and every source's last seq in it."""

    def learn(self, promises: Mapping[MemberId, int], survivors: Collection[MemberId]) -> None:
        """What an attempt taught of the epoch's sources holds for later attempts too."""

    def knows_more(self, last: Mapping[MemberId, int]) -> bool:
        """Whether a cut leaves out a source that is known here: then its makers know less than this member."""

    def last_before(self, source: MemberId) -> int:
        """The last seq of a source that took its place in the order, or before which it begins there."""

    def has_passed(self, last: Mapping[MemberId, int]) -> bool:
        """Whether something beyond a cut was delivered here."""

    def finish(self, last: Mapping[MemberId, int], changes: int, now: Instant) -> None:
        """Deliver the rest of the epoch up to its cut."""

    def begin_epoch(
        self,
        view_tag: int,
        start: int,
        activations: Mapping[MemberId, int],
        last: Mapping[MemberId, int],
        left: Collection[MemberId],
        now: Instant,
    ) -> None:
        """Go on in a view that a repair installed, and that some left on purpose."""

    def come_from(self, epochs: Iterable[int]) -> None:
        """Wait for members of these epochs too, by their tags: they are on their way into the present one."""

    def enter_view(self, members: Collection[MemberId], now: Instant) -> None:
        """Go on in a view that an ordered message made."""

    def source_left(self, source: MemberId, timestamp: int, seq: int) -> None:
        """A source's Leave was delivered."""

    def start_sending(self, activation: int) -> None:
        """Make ready to send."""

    def emit_change(self, change: Change, now: Instant) -> None:
        """Multicast an ordered membership message."""

    def sponsored(self) -> tuple[Timestamp, tuple[tuple[MemberId, int], ...], tuple[tuple[MemberId, Timestamp], ...]]:
        """Where a newcomer may start."""

    def stated(self) -> bytes:
        """What a newcomer that starts there is to know of the statements before."""

    def learn_stated(self, ledger: bytes, upto: int) -> None:
        """What was stated before this member's beginning, which is at a timestamp."""

    def restate(self, now: Instant) -> None:
        """Tell those who come from other views what was stated in this member's."""

    def pin(self, member: MemberId, until: int) -> None:
        """Acknowledge no further for a newcomer's sake."""

    def hold_stability(self, start: int, until: int) -> None:
        """Nothing above a view's start becomes stable yet: its receivers have to be heard first."""

    def has(self, source: MemberId, seq: int) -> bool:
        """Whether a frame was received here."""
