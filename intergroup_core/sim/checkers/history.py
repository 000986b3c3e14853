"""A trace laid out for the checkers: messages in tables, each member's deliveries as arrays.

Every checker then works on positions and maxima, never on pairs, so that thousands of messages at ten members
take a fraction of a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from intergroup_core.ids import MemberId, Service
from intergroup_core.sim.trace import (
    Crashed,
    Delivered,
    Ended,
    Event,
    GapAnnounced,
    Ordered,
    Sent,
    Trace,
    TracedMember,
)

Ints = NDArray[np.int64]
UNKNOWN = -1
"""The index of a message that nobody sent, or of a source that is not a member."""


@dataclass(slots=True, kw_only=True)
class Stream:
    """What one member delivered by one service, between two gaps."""

    member: TracedMember
    service: Service
    internal: bool
    """The timestamp order a sender keeps for itself when its application chose another service."""
    incarnation: int
    """How many gaps came before it."""
    opened: int
    """The place in the trace at which it begins."""
    positions: Ints
    messages: Ints
    sources: Ints
    seqs: Ints
    timestamps: Ints
    digests: Ints

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def reliable(self) -> bool:
        return self.service is not Service.UU

    @property
    def ordered(self) -> bool:
        return self.service is Service.RTO


class History:
    """The index of a trace."""

    def __init__(self, trace: Trace) -> None:
        self.events: list[Event] = trace.events
        self.members = {member.id: member for member in trace.members}
        # Sorted, so that comparing indices compares ids unsigned, as ties between timestamps are broken.
        self.senders = sorted(member.id for member in trace.members if member.sender)
        self._sender_index = {sender: index for index, sender in enumerate(self.senders)}
        self._table(trace.events)
        self.streams = self._streams(trace)
        self.crashed = {event.member for event in trace.events if type(event) is Crashed}
        self.dependencies: dict[bool, Ints] = {}
        """Causes of every message, once somebody worked them out."""
        self.ended = {event.member: event for event in trace.events if type(event) is Ended}

    def _table(self, events: list[Event]) -> None:
        sent = [
            (self._sender_index.get(event.member, UNKNOWN), event.seq, event.timestamp, event.digest, position)
            for position, event in enumerate(events)
            if type(event) is Sent
        ]
        sent.sort()
        table = np.array(sent, dtype=np.int64).reshape(-1, 5)
        self.source, self.seq, self.timestamp, self.digest, self.position = table.T.copy()
        self.index = {(source, seq): index for index, (source, seq, *_) in enumerate(sent)}
        self.count = len(sent)
        self.first = np.searchsorted(self.source, np.arange(len(self.senders) + 1))
        """Index of each sender's first message, and the end of the last one's."""
        self.rank = np.arange(self.count) - self.first[np.maximum(self.source, 0)]
        """Place of each message among its sender's."""
        self.place = np.empty(self.count, dtype=np.int64)
        """Place of each message in the order by timestamp and sender."""
        self.place[np.lexsort((self.source, self.timestamp))] = np.arange(self.count)

    def _streams(self, trace: Trace) -> list[Stream]:
        found: dict[tuple[MemberId, bool, int], list[tuple[int, ...]]] = {}
        opened: dict[tuple[MemberId, bool, int], int] = {}
        incarnation = dict.fromkeys(self.members, 0)
        for member in trace.members:
            for internal in (False, True) if member.sender and member.service is not Service.RTO else (False,):
                found[member.id, internal, 0] = []
                opened[member.id, internal, 0] = 0
        self.message_at = [UNKNOWN] * len(trace.events)
        """The message each event of the trace speaks of."""
        for position, event in enumerate(trace.events):
            kind = type(event)
            if kind is Delivered or kind is Ordered:
                assert isinstance(event, (Delivered, Ordered))
                source = self._sender_index.get(event.source, UNKNOWN)
                message = self.index.get((source, event.seq), UNKNOWN)
                self.message_at[position] = message
                key = (event.member, kind is Ordered, incarnation[event.member])
                found[key].append((position, message, source, event.seq, event.timestamp, event.digest))
            elif kind is Sent:
                source = self._sender_index.get(event.member, UNKNOWN)
                self.message_at[position] = self.index[source, event.seq]  # type: ignore[union-attr]
            elif kind is GapAnnounced:
                incarnation[event.member] += 1
                for member_id, internal, _ in [key for key in found if key[0] == event.member]:
                    key = (member_id, internal, incarnation[member_id])
                    found.setdefault(key, [])
                    opened.setdefault(key, position)
        return [self._stream(key, rows, opened[key]) for key, rows in found.items()]

    def _stream(self, key: tuple[MemberId, bool, int], rows: list[tuple[int, ...]], opened: int) -> Stream:
        member = self.members[key[0]]
        positions, messages, sources, seqs, timestamps, digests = np.array(rows, dtype=np.int64).reshape(-1, 6).T.copy()
        return Stream(
            member=member,
            service=Service.RTO if key[1] else member.service,
            internal=key[1],
            incarnation=key[2],
            opened=opened,
            positions=positions,
            messages=messages,
            sources=sources,
            seqs=seqs,
            timestamps=timestamps,
            digests=digests,
        )

    @property
    def reliable_streams(self) -> list[Stream]:
        return [stream for stream in self.streams if stream.reliable]

    @property
    def ordered_streams(self) -> list[Stream]:
        return [stream for stream in self.streams if stream.ordered]

    def delivery(self, stream: Stream, at: int | np.int64) -> Event:
        return self.events[int(stream.positions[at])]

    def sending(self, message: int | np.int64) -> Event:
        return self.events[int(self.position[message])]

    @cached_property
    def connected(self) -> frozenset[MemberId]:
        """Who was alive and reachable when the quiet phase ended."""
        return frozenset(member for member, end in self.ended.items() if end.connected) - self.crashed

    @cached_property
    def order_is_live(self) -> bool:
        """Whether timestamp order can go on: with a fixed membership it waits for ever for a sender that is gone."""
        return self.connected.issuperset(self.senders)
