"""Turns what a member delivers into events with names, places and times."""

from __future__ import annotations

from collections.abc import Iterator

from intergroup_core.api.events import (
    LAST_RECORD,
    Batch,
    BatchEvent,
    Departed,
    Gap,
    Peer,
    ViewChange,
    position,
    time_of,
)
from intergroup_core.effects import Gap as GapEffect
from intergroup_core.effects import Install
from intergroup_core.ids import MemberId, Service, format_member
from intergroup_core.wire.chunk import Chunk


class Stream:
    """Remembers the view that deliveries belong to, and how its members are called."""

    def __init__(self, group: str, service: Service) -> None:
        self._group = group
        self._ordered = service is not Service.UU
        self._arrivals = 0
        self._view_id: str | None = None
        self._names: dict[MemberId, str] = {}
        self._lamport = 0
        self._last = (0, 0, 0)

    def events(self, delivered: Chunk | Install | GapEffect) -> Iterator[BatchEvent]:
        match delivered:
            case Chunk():
                yield from self._batches(delivered)
            case Install():
                yield self._view_change(delivered)
            case GapEffect():
                yield self._gap(delivered)

    def peer(self, member: MemberId) -> Peer:
        return Peer(self._names.get(member) or format_member(member), format_member(member))

    def _place(self, lamport: int) -> int:
        """What a position begins with: the group's time, or the number of the arrival where there is no order."""
        self._lamport = lamport
        self._arrivals += 1
        return lamport if self._ordered else self._arrivals

    def _batches(self, chunk: Chunk) -> Iterator[Batch]:
        sender = self.peer(chunk.source)
        for message in chunk.messages():
            # A message that is not made of records has its place too, as it has in a log.
            self._last = (self._place(message.timestamp), message.source, message.seq)
            rows = message.rows()
            if rows is None:
                continue
            label = message.label()
            yield Batch(
                group_name=self._group,
                sender=sender.name,
                sender_id=sender.id,
                seq=message.seq,
                timestamp=time_of(message.timestamp),
                lamport=message.timestamp,
                view_id=self._view_id,
                offsets=rows.values.offsets,
                data=rows.values.data,
                position=position(*self._last, 0),
                rows=rows,
                txn=label.txn if label is not None else None,
            )

    def _view_change(self, installed: Install) -> ViewChange:
        view = installed.view
        known = dict(zip(view.members, view.names, strict=False))
        # In rso a member that has left may still have messages under way, so the last view's names stay a while.
        self._names = {departure.member: departure.name for departure in installed.departed} | known
        if self._ordered:
            self._view_id = str(view.id)
        self._last = (self._place(view.id.start), view.id.leader, view.id.leader_seq)
        return ViewChange(
            group_name=self._group,
            view_id=str(view.id),
            members=tuple(map(self.peer, view.members)),
            joined=tuple(map(self.peer, installed.joined)),
            departed=tuple(
                Departed(peer.name, peer.id, departure.reason)
                for departure in installed.departed
                for peer in (self.peer(departure.member),)
            ),
            stayed=tuple(map(self.peer, installed.transitional)),
            branches=installed.branches,
            position=position(*self._last, 0),
            timestamp=time_of(self._lamport),
            lamport=self._lamport,
            before=tuple((format_member(member), seq) for member, seq in installed.before),
        )

    def _gap(self, gap: GapEffect) -> Gap:
        return Gap(
            group_name=self._group,
            reason=gap.reason,
            unsure=gap.unsure,
            member_id=format_member(gap.incarnation),
            position=position(*self._last, LAST_RECORD),
            timestamp=time_of(self._lamport),
            lamport=self._lamport,
        )
