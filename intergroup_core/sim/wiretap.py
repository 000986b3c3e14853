"""Listens to what members emit: what was sent and promised, and what losses, requests and repairs there were."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from intergroup_core.config import HEADER_BYTES
from intergroup_core.ids import MemberId
from intergroup_core.sim.network import Dropped
from intergroup_core.sim.trace import Promised, Sent, Trace, digest_of, payload_of
from intergroup_core.wire.control import decode_control
from intergroup_core.wire.header import HEADER, Flag, FrameType
from intergroup_core.wire.messages import RepairRequest
from intergroup_core.wire.records import MAX_RECORDS

Frame = tuple[MemberId, int]
"""A frame's source and seq."""
_DATA, _KEEP_ALIVE, _LAST = int(FrameType.DATA), int(FrameType.KEEP_ALIVE), int(Flag.LAST)
"""As plain numbers, which compare quickly."""
MAX_RANGE = 100_000
"""Frames of one requested range that are counted; only a planted bug asks for more."""


class _Outgoing:
    """What one sender's application handed over and the message its frames are in the middle of."""

    __slots__ = ("count", "first_seq", "first_timestamp", "records", "statement", "unsure")

    def __init__(self) -> None:
        self.records: deque[bytes] = deque()
        self.first_seq = 0
        self.first_timestamp = 0
        self.count = 0
        self.statement = bytearray()
        """Of a message that no application handed over, what has gone out."""
        self.unsure = False
        """Whether some of the records may have been dropped, at a gap."""

    def taken(self) -> list[bytes]:
        """The records of the message that is going out."""
        return [self.records.popleft() for _ in range(min(self.count, len(self.records)))]

    def resume(self, payload: bytes) -> None:
        """Let go of records that were dropped: what is sent now begins with this."""
        self.unsure = False
        for _ in range(len(self.records)):
            head = payload_of([self.records[at] for at in range(min(self.count, len(self.records)))])
            if head.startswith(payload):
                return
            self.records.popleft()


class WireTap:
    """Reads headers on its own, so that a codec which is wrong on both sides still shows.

    A message's records are those its application handed over, in order; the wire says only how many they are.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._outgoing: dict[MemberId, _Outgoing] = {}
        self.lost: set[Frame] = set()
        """Data frames that somebody did not get."""
        self.requests: Counter[Frame] = Counter()
        """How often each frame was asked for."""
        self.repairs: Counter[Frame] = Counter()
        """How often each frame was repaired."""
        self.promise_requests = 0
        self.promise_repairs = 0
        self.frames: Counter[int] = Counter()
        """Frames by type."""
        self.bytes: Counter[int] = Counter()

    def taken(self, member: MemberId, records: Sequence[bytes]) -> None:
        """A sender's endpoint took these records."""
        self._of(member).records.extend(records)

    def untaken(self, member: MemberId, count: int) -> None:
        """It turned out that the last records were refused."""
        for _ in range(count):
            self._of(member).records.pop()

    def renamed(self, member: MemberId, incarnation: MemberId) -> None:
        """A member goes on under another id; what its endpoint took may have been dropped or kept."""
        outgoing = self._outgoing[incarnation] = self._of(member)
        outgoing.unsure = True

    def emitted(self, at: int, member: MemberId, data: bytes | memoryview, segment: int) -> None:
        """A member multicasts a burst."""
        if len(data) <= segment:
            self._frame(at, member, data)
            return
        burst = memoryview(data)
        for start in range(0, len(data), segment):
            self._frame(at, member, burst[start : start + segment])

    def _frame(self, at: int, member: MemberId, frame: bytes | memoryview) -> None:
        (_, _, kind, flags, _, view_tag, length, fragment, _, sender, seq, timestamp) = HEADER.unpack_from(frame)
        self.frames[kind] += 1
        self.bytes[kind] += len(frame)
        if kind == _DATA:
            self._data(at, member, frame, length, flags, fragment, seq, timestamp)
        elif kind == _KEEP_ALIVE:
            self._trace.events.append(Promised(at, member, seq, timestamp))
        elif kind == FrameType.REQUEST:
            body = bytes(frame[HEADER_BYTES : HEADER_BYTES + length])
            request = decode_control(FrameType.REQUEST, sender, view_tag, body)
            assert isinstance(request, RepairRequest)
            self.promise_requests += len(request.promises)
            for source, first, last in request.ranges:
                last = min(last, first + MAX_RANGE)
                self.requests.update((source, asked) for asked in range(first, last + 1))
        elif kind == FrameType.REPAIR:
            (_, _, inner, _, _, _, _, _, _, source, repaired, _) = HEADER.unpack_from(frame, HEADER_BYTES)
            if inner == _DATA:
                self.repairs[source, repaired] += 1
            else:
                self.promise_repairs += 1

    def _data(
        self,
        at: int,
        member: MemberId,
        frame: bytes | memoryview,
        length: int,
        flags: int,
        fragment: int,
        seq: int,
        timestamp: int,
    ) -> None:
        outgoing = self._of(member)
        if fragment == 0:
            outgoing.first_seq, outgoing.first_timestamp = seq, timestamp
            outgoing.count = int.from_bytes(frame[HEADER_BYTES : HEADER_BYTES + 4], "little")
            outgoing.statement.clear()
            if outgoing.unsure and outgoing.count <= MAX_RECORDS:
                outgoing.resume(bytes(frame[HEADER_BYTES : HEADER_BYTES + length]))
        if outgoing.count > MAX_RECORDS:
            outgoing.statement += frame[HEADER_BYTES : HEADER_BYTES + length]
        if flags & _LAST:
            digest = digest_of(bytes(outgoing.statement) or payload_of(outgoing.taken()))
            self._trace.events.append(
                Sent(at, member, outgoing.first_seq, seq, outgoing.first_timestamp, timestamp, digest)
            )

    def dropped(self, dropped: Dropped) -> None:
        """The network lost a datagram on its way to somebody."""
        (_, _, kind, _, _, _, _, _, _, sender, seq, _) = HEADER.unpack_from(dropped.data)
        if kind == _DATA:
            self.lost.add((sender, seq))

    def _of(self, member: MemberId) -> _Outgoing:
        outgoing = self._outgoing.get(member)
        if outgoing is None:
            outgoing = self._outgoing[member] = _Outgoing()
        return outgoing

    @property
    def requests_per_loss(self) -> float:
        return sum(self.requests.values()) / len(self.lost) if self.lost else 0.0

    @property
    def repairs_per_loss(self) -> float:
        return sum(self.repairs.values()) / len(self.lost) if self.lost else 0.0
