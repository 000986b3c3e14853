"""Where a member stands: its view, its epoch, whom it knows, and its ways to speak."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from random import Random

from intergroup_core.config import MembershipConfig
from intergroup_core.counters import Counters
from intergroup_core.effects import Departure, Effect, Install, Persist
from intergroup_core.ids import Instant, MemberId, Timestamp, View, ViewId, format_member
from intergroup_core.membership.blocks import BlockSet
from intergroup_core.membership.detector import FaultDetector
from intergroup_core.membership.history import History
from intergroup_core.membership.quorum import Quorum, key_of
from intergroup_core.membership.stream import Stream
from intergroup_core.wire.membership import MembershipMessage, Peer

MILLISECOND = 1_000_000


@dataclass(slots=True, kw_only=True)
class Standing:
    """Shared by the parts of the membership protocol at one member."""

    me: Peer
    config: MembershipConfig
    counters: Counters
    rng: Random
    quorum: Quorum
    detector: FaultDetector
    blocks: BlockSet
    say: Callable[[MembershipMessage], None]
    emit: Callable[[Effect], None]
    clock: Callable[[], Timestamp]
    """The highest timestamp given or seen."""
    observe: Callable[[int], None]
    """Later timestamps of this member exceed this one."""
    stamp: Callable[[Instant], Timestamp]
    """A timestamp above all given or seen."""
    path: Stream | None = None
    view: View | None = None
    epoch: ViewId | None = None
    roster: dict[MemberId, Peer] = field(default_factory=dict)
    """The members of the view."""
    history: History = field(default_factory=History)

    def ns(self, milliseconds: float) -> int:
        return round(milliseconds * MILLISECOND)

    @property
    def senders(self) -> tuple[MemberId, ...]:
        return self.view.members if self.view is not None else ()

    def is_sender(self) -> bool:
        return self.me.id in self.roster

    def is_last_sender(self) -> bool:
        return self.senders == (self.me.id,)

    def sponsor(self, attempt: int) -> MemberId | None:
        """Whose turn it is to answer: another one with every attempt, so that a dead one costs one of them."""
        return sorted(self.senders)[attempt % len(self.senders)] if self.senders else None

    def install(
        self,
        view: ViewId,
        peers: Collection[Peer],
        *,
        transitional: Collection[MemberId],
        reasons: dict[MemberId, str],
        branches: Collection[str] = (),
        last: Mapping[MemberId, int] | None = None,
        spoken_for: bool = False,
    ) -> None:
        """Tell the application of a view, at this place in its stream."""
        before = self.roster
        self.roster = {peer.id: peer for peer in sorted(peers, key=lambda peer: peer.id)}
        members = tuple(self.roster)
        self.view = View(id=view, members=members, names=tuple(peer.name for peer in self.roster.values()))
        departed = tuple(
            Departure(member, peer.name, reasons.get(member, "failed"))
            for member, peer in before.items()
            if member not in self.roster
        )
        joined = tuple(member for member in members if member not in before)
        self.counters.views_installed += 1
        before_it = tuple(sorted((last or {}).items()))
        together, met = tuple(sorted(transitional)), tuple(sorted(branches))
        self.emit(Install(self.view, together, joined, departed, met, before_it, spoken_for=spoken_for))

    def watch(self, members: Collection[MemberId], now: Instant) -> None:
        self.detector.watch((member for member in members if member != self.me.id), now.mono)

    def sites(self, peers: Collection[Peer]) -> list[int]:
        """The identities that quorums count; a member without a site counts as one by itself."""
        return [key_of(peer.site or format_member(peer.id)) for peer in peers]

    def persist(self) -> None:
        """Make the quorum record durable, for senders vote with it."""
        self.emit(Persist(self.quorum.record.to_bytes()))
