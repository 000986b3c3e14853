"""A trace laid out for the checkers: messages in tables, each member's deliveries as arrays.

Every checker then works on positions and maxima, never on pairs, so that thousands of messages at ten members
take a fraction of a second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from intergroup_core.ids import MemberId, Service
from intergroup_core.sim.checkers.course import BEFORE_ANY, Course, Ints
from intergroup_core.sim.trace import (
    Crashed,
    Delivered,
    Ended,
    Event,
    GapAnnounced,
    Installed,
    Left,
    Ordered,
    Sent,
    Trace,
    TracedMember,
)

Flags = NDArray[np.bool_]
UNKNOWN = -1
"""The index of a message that nobody sent, of a source that never was a sender, or of a view nobody installed."""
NEVER = 1 << 62
"""A place beyond the end of the trace."""


@dataclass(slots=True, kw_only=True)
class Stream:
    """What one member delivered by one service."""

    member: TracedMember
    service: Service
    internal: bool
    """The timestamp order a member keeps for itself when its application chose another service."""
    course: Course
    positions: Ints
    messages: Ints
    sources: Ints
    seqs: Ints
    timestamps: Ints
    digests: Ints
    ordinals: Ints
    """Which of the member's views each delivery fell into."""

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
        self.live = trace.live
        self.events: list[Event] = trace.events
        self.members = {member.id: member for member in trace.members}
        installs: dict[MemberId, list[tuple[int, Installed]]] = defaultdict(list)
        sources = {member.id for member in trace.members if member.sender}
        self.crashed: set[MemberId] = set()
        self.gapped: set[MemberId] = set()
        """Incarnations that ended in a gap."""
        self.left: dict[MemberId, int] = {}
        """Where in the trace members left for good."""
        self.ended: dict[MemberId, Ended] = {}
        for position, event in enumerate(trace.events):
            match event:
                case Sent():
                    sources.add(event.member)
                case Installed():
                    installs[event.member].append((position, event))
                    sources.update(event.members)
                case Crashed():
                    self.crashed.add(event.member)
                case GapAnnounced():
                    self.gapped.add(event.member)
                case Left():
                    self.left[event.member] = position
                case Ended():
                    self.ended[event.member] = event
        # Sorted, so that comparing indices compares ids unsigned, as ties between timestamps are broken.
        self.senders = sorted(sources)
        self.sender_index = {sender: index for index, sender in enumerate(self.senders)}
        self.views = _numbered(event.view for found in installs.values() for _, event in found)
        """A number for every view somebody installed."""
        self.courses = {
            member: Course(installs.get(member, ()), self.views, self.sender_index) for member in self.members
        }
        self._before_cut: dict[tuple[MemberId, bool], Flags] = {}
        self._table(trace.events)
        self.streams = self._streams(trace)
        self.dependencies: dict[bool, Ints] = {}
        """Causes of every message, once somebody worked them out."""

    def _table(self, events: list[Event]) -> None:
        sent = [
            (self.sender_index[event.member], event.seq, event.timestamp, event.digest, position)
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
        found: dict[tuple[MemberId, bool], list[tuple[int, ...]]] = {}
        for member in trace.members:
            found[member.id, False] = []
            if member.service is not Service.RTO and self._keeps_order(member):
                found[member.id, True] = []
        self.message_at = [UNKNOWN] * len(trace.events)
        """The message each event of the trace speaks of."""
        for position, event in enumerate(trace.events):
            kind = type(event)
            if kind is Delivered or kind is Ordered:
                assert isinstance(event, (Delivered, Ordered))
                source = self.sender_index.get(event.source, UNKNOWN)
                message = self.index.get((source, event.seq), UNKNOWN)
                self.message_at[position] = message
                row = (position, message, source, event.seq, event.timestamp, event.digest)
                found.setdefault((event.member, kind is Ordered), []).append(row)
            elif kind is Sent:
                self.message_at[position] = self.index[self.sender_index[event.member], event.seq]  # type: ignore[union-attr]
        return [self._stream(*key, rows) for key, rows in found.items()]

    def _keeps_order(self, member: TracedMember) -> bool:
        """Whether a member owes itself an internal order: senders do, and, live, all that follow views."""
        return member.sender or (self.live and len(self.courses[member.id]) > 0)

    def _stream(self, member_id: MemberId, internal: bool, rows: list[tuple[int, ...]]) -> Stream:
        member, course = self.members[member_id], self.courses[member_id]
        positions, messages, sources, seqs, timestamps, digests = np.array(rows, dtype=np.int64).reshape(-1, 6).T.copy()
        return Stream(
            member=member,
            service=Service.RTO if internal else member.service,
            internal=internal,
            course=course,
            positions=positions,
            messages=messages,
            sources=sources,
            seqs=seqs,
            timestamps=timestamps,
            digests=digests,
            ordinals=course.ordinal_at(positions),
        )

    @cached_property
    def reliable_streams(self) -> list[Stream]:
        return [stream for stream in self.streams if stream.reliable]

    @cached_property
    def ordered_streams(self) -> list[Stream]:
        return [stream for stream in self.streams if stream.ordered]

    @cached_property
    def sent_in(self) -> Ints:
        """The number of the view in which each message was sent, by its sender's own reckoning."""
        found = np.full(self.count, UNKNOWN, dtype=np.int64)
        for index, sender in enumerate(self.senders):
            course = self.courses.get(sender)
            first, end = self.first[index], self.first[index + 1]
            if course is not None and len(course) and first < end:
                ordinals = course.ordinal_at(self.position[first:end])
                found[first:end] = np.where(ordinals == BEFORE_ANY, UNKNOWN, course.views[ordinals])
        return found

    @cached_property
    def home(self) -> Ints:
        """The number of the view each message was delivered in, in timestamp order; else the one it was sent in.

        They differ where a view changed between the sending and its place in the order.
        """
        found = self.sent_in.copy()
        for stream in self.ordered_streams:
            known = (stream.messages != UNKNOWN) & (stream.ordinals != BEFORE_ANY)
            found[stream.messages[known]] = stream.course.views[stream.ordinals[known]]
        return found

    @cached_property
    def ordered_somewhere(self) -> Flags:
        """Whether anybody delivered a message in timestamp order."""
        found = np.zeros(self.count, dtype=bool)
        for stream in self.ordered_streams:
            found[stream.messages[stream.messages != UNKNOWN]] = True
        return found

    def before_cut(self, stream: Stream) -> Flags:
        """Messages that a member may lack because it bootstrapped above them.

        Its cut is not in the trace, but lies below the first it delivered, and below all that was sent after its
        first view was installed. In source order there is a cut for every source.
        """
        key = (stream.member.id, stream.internal)
        found = self._before_cut.get(key)
        if found is None:
            found = self._before_cut[key] = self._lies_before_cut(stream)
        return found

    def _lies_before_cut(self, stream: Stream) -> Flags:
        early: Flags = self.position < stream.course.opened
        known = stream.messages[stream.messages != UNKNOWN]
        if not len(known) or not early.any():
            return early
        if stream.ordered:
            early &= self.place < self.place[known].min()
            return early
        first = np.full(len(self.senders), NEVER, dtype=np.int64)
        np.minimum.at(first, self.source[known], self.rank[known])
        early &= self.rank < first[self.source]
        return early

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
        return self.live or self.connected.issuperset(self.senders)


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}
