"""A maker of frames that no member may believe: each comes with the name of what is wrong with it.

Whatever is wrong in a field has its checksum recomputed, so that the checks behind the checksum are reached too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from typing import Any

import msgpack

from intergroup_core.ids import MAX_TIMESTAMP, MemberId, Timestamp
from intergroup_core.multicast.ranges import Promise, Span
from intergroup_core.wire.fields import MAX_RECORD, MAX_TEXT
from intergroup_core.wire.header import MAX_FRAME_BYTES, MAX_SEQ, FrameType
from intergroup_core.wire.membership import MembershipMessage
from tests.builders import (
    CHANGE,
    DATA,
    HEADER_BYTES,
    KEEP_ALIVE,
    REPAIR,
    REPORT,
    REQUEST,
    START,
    STRANGER,
    TAG,
    VIEW,
    A,
    B,
    C,
    R,
    a_control_frame,
    a_frame,
    a_keepalive,
    a_message,
    a_repair,
    a_report,
    a_request,
    packed,
    sealed,
)
from tests.membership_builders import (
    a_change_frame,
    a_cut,
    a_failure_block,
    a_farewell,
    a_join,
    a_leave,
    a_membership_change,
    a_ready,
    a_recovery_info,
    a_solicitation,
    a_sponsorship,
    a_view_request,
    an_add,
    an_add_request,
    an_entry,
)

FIRST_SEQ = 10
"""The next frame of each source that the members under fire lack."""
NEXT_TIMESTAMP = START + 5_000_000
OTHER_VIEW = VIEW.id.tag ^ 0x5A5A
FIRST_MEMBERSHIP, FAREWELL = 7, 16
"""Frame types of what is said about membership."""
UNKNOWN = range(max(FrameType) + 1, 256)
NOT_A_FIELD: tuple[Any, ...] = (-(1 << 63), 0.5, {}, [[]], [None, True], "x" * (MAX_TEXT + 1), bytes(MAX_RECORD + 1))
"""Values that no field of any message takes."""


class Malformed:
    """Draws frames from one seed; `kinds` are the names of what can be wrong."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)
        self._genuine = _genuine_frames()
        self._makers: dict[str, Callable[[], bytes]] = {
            "noise": self._noise,
            "noise behind a header": self._noise_behind_a_header,
            "flipped bits": self._flipped,
            "flipped columns": self._flipped_column,
            "overwritten bytes": self._overwritten,
            "zeroed range": self._zeroed,
            "truncated": self._truncated,
            "oversized": self._oversized,
            "spliced": self._spliced,
            "swapped words": self._swapped,
            "wrong version": lambda: self._with_field(magic_version=0xB0 | self._other_than(1, 16)),
            "wrong magic": lambda: self._with_field(magic_version=self._other_than(0xB, 16) << 4 | 1),
            "wrong group": lambda: self._with_field(group=TAG ^ 1 << self._rng.randrange(64)),
            "wrong type": lambda: self._with_field(kind=self._rng.choice((0, *UNKNOWN))),
            "wrong flags": lambda: self._with_field(flags=self._rng.randrange(2, 256)),
            "wrong seq": self._wrong_seq,
            "wrong timestamp": self._wrong_timestamp,
            "no sender": lambda: self._with_field(sender=0),
            "wrong length": self._wrong_length,
            "body of noise": lambda: self._control(self._rng.randbytes(self._rng.randrange(64)), guard=True),
            "body of another shape": self._misshapen_body,
            "body of huge arrays": self._huge_body,
            "body cut short": self._cut_body,
            "range that is none": self._bad_range,
            "number out of bounds": self._bad_number,
            "field that is none": self._bad_field,
            "field too many": lambda: self._reshaped(lambda fields: [*fields, self._rng.choice((0, None, []))]),
            "field too few": lambda: self._reshaped(lambda fields: fields[1:] or [0]),
            "change without a place": self._placeless_change,
            "change that says nothing": self._empty_change,
            "repair in a repair": lambda: a_repair(a_repair(self._rng.choice(self._genuine)[:128])),
            "control in a repair": lambda: a_repair(a_control_frame(self._a_control(C))),
            "broken frame in a repair": lambda: a_repair(self._flipped()[: MAX_FRAME_BYTES - 2 * HEADER_BYTES]),
            "cut frame in a repair": self._cut_repair,
            "stranger's data": lambda: self._data(sender=STRANGER),
            "stranger's keep-alive": lambda: self._keepalive(sender=STRANGER),
            "stranger's data in a repair": lambda: a_repair(self._data(sender=STRANGER)),
            "other view's data": lambda: self._data(view_tag=OTHER_VIEW),
            "other view's keep-alive": lambda: self._keepalive(view_tag=OTHER_VIEW),
            "other view's frame in a repair": self._other_view_in_a_repair,
            "stranger's report": lambda: a_control_frame(self._a_report(STRANGER)),
            "stranger's request": lambda: a_control_frame(self._a_request(STRANGER)),
            "other view's report": lambda: a_control_frame(self._a_report(C), view_tag=OTHER_VIEW),
            "other view's request": lambda: a_control_frame(self._a_request(C), view_tag=OTHER_VIEW),
        }

    @property
    def kinds(self) -> list[str]:
        return list(self._makers)

    def frame(self, kind: str) -> bytes:
        return self._makers[kind]()

    # Bytes that no longer fit their checksum

    def _noise(self) -> bytes:
        size = self._rng.choice((0, 1, 7, 8, 40, 47, 48, 49, 56, 64, 128, 256, 1_400, 1_401))
        return self._rng.randbytes(size)

    def _noise_behind_a_header(self) -> bytes:
        genuine = self._some()
        noise = self._rng.randbytes(8 * self._rng.randrange(1, 20))
        return genuine[:HEADER_BYTES] + noise

    def _flipped(self) -> bytes:
        frame = bytearray(self._some())
        for bit in self._rng.sample(range(8 * len(frame)), self._rng.randrange(1, 9)):
            frame[bit // 8] ^= 1 << bit % 8
        return bytes(frame)

    def _flipped_column(self) -> bytes:
        """The same bit or bits in several words, as a stuck line of a bus or of a memory would have it."""
        frame = bytearray(self._some())
        width = self._rng.choice((4, 8, 16))
        mask = self._rng.choice((1, 1 << 8 * width - 1, 1 << self._rng.randrange(8 * width)))
        if self._rng.random() < 0.5:
            mask |= self._rng.getrandbits(8 * width)
        units = range(0, len(frame) // width * width, width)
        for at in self._rng.sample(units, self._rng.randrange(1, len(units) + 1)):
            unit = int.from_bytes(frame[at : at + width], "little") ^ mask
            frame[at : at + width] = unit.to_bytes(width, "little")
        return bytes(frame)

    def _overwritten(self) -> bytes:
        """Whole bytes anywhere, next to each other or not."""
        frame = bytearray(self._some())
        if self._rng.random() < 0.5:
            count = self._rng.randrange(1, min(64, len(frame)))
            start = self._rng.randrange(len(frame) - count)
            places = list(range(start, start + count))
        else:
            places = self._rng.sample(range(len(frame)), self._rng.randrange(1, 17))
        for at in places:
            frame[at] ^= self._rng.randrange(1, 256)
        return bytes(frame)

    def _zeroed(self) -> bytes:
        frame = self._some()
        count = self._rng.randrange(1, len(frame) + 1)
        start = self._rng.randrange(len(frame) - count + 1)
        zeroed = frame[:start] + bytes(count) + frame[start + count :]
        return zeroed if zeroed != frame else self._flipped()

    def _truncated(self) -> bytes:
        frame = self._rng.choice([frame for frame in self._genuine if len(frame) > HEADER_BYTES])
        if self._rng.random() < 0.3:
            return frame[: self._rng.randrange(len(frame))]
        # Cut into its payload at a whole word and sealed again: only its length still tells.
        cut = HEADER_BYTES + 8 * self._rng.randrange((len(frame) - HEADER_BYTES) // 8)
        return sealed(frame[:cut])

    def _oversized(self) -> bytes:
        if self._rng.random() < 0.1:
            size = MAX_FRAME_BYTES + 8 * self._rng.randrange(1, 4)
            return self._some().ljust(size, b"\0")
        return self._some() + bytes([self._rng.randrange(1, 256)]) * (8 * self._rng.randrange(1, 40))

    def _spliced(self) -> bytes:
        one, other = self._rng.sample(self._genuine, 2)
        at = 8 * self._rng.randrange(1, 6)
        spliced = one[:at] + other[at:]
        return spliced if spliced not in (one, other) else self._flipped()

    def _swapped(self) -> bytes:
        frame = self._some()
        size = self._rng.choice((2, 4, 8))
        words = [frame[at : at + size] for at in range(0, len(frame), size)]
        first, second = self._rng.sample(range(len(words)), 2)
        if words[first] == words[second]:
            return self._flipped()
        words[first], words[second] = words[second], words[first]
        return b"".join(words)

    # Fields out of bounds under a sound checksum

    def _with_field(self, kind: int | None = None, **fields: Any) -> bytes:
        chosen = self._any_type() if kind is None else kind
        payload = {
            CHANGE: msgpack.packb([2, "left"]),
            DATA: packed([b"believe me"]),
            REQUEST: msgpack.packb([[[B, 1, 3]], []]),
            REPORT: msgpack.packb([9, NEXT_TIMESTAMP, [[A, 1]], 9]),
            REPAIR: self._rng.choice(self._genuine)[:256],
        }.get(chosen, b"")
        defaults = {"sender": self._rng.choice((B, C)), "seq": FIRST_SEQ, "timestamp": NEXT_TIMESTAMP}
        return a_frame(chosen, payload=payload, **defaults | fields)

    def _wrong_seq(self) -> bytes:
        if self._rng.random() < 0.3:
            return self._with_field(self._rng.choice((DATA, CHANGE)), seq=0)
        return self._with_field(seq=self._rng.randrange(MAX_SEQ + 1, 1 << 64))

    def _wrong_timestamp(self) -> bytes:
        if self._rng.random() < 0.3:
            return self._with_field(self._rng.choice((DATA, CHANGE)), timestamp=0)
        return self._with_field(timestamp=self._rng.randrange(MAX_TIMESTAMP + 1, 1 << 64))

    def _wrong_length(self) -> bytes:
        payload = self._rng.randbytes(8 * self._rng.randrange(1, 12))
        seq, sender = FIRST_SEQ, self._rng.choice((B, C))
        longer = self._rng.randrange(len(payload) + 1, 65_536)
        if self._rng.random() < 0.5:
            kind = self._any_type()
            return a_frame(kind, sender=sender, seq=seq, timestamp=NEXT_TIMESTAMP, payload=payload, length=longer)
        if self._rng.random() < 0.5:
            shorter = self._rng.randrange(len(payload))
            return a_frame(sender=sender, seq=seq, timestamp=NEXT_TIMESTAMP, payload=payload, flags=0, length=shorter)
        kind = self._rng.choice((KEEP_ALIVE, REQUEST, REPORT, REPAIR, CHANGE, FIRST_MEMBERSHIP, FAREWELL))
        return a_frame(kind, sender=sender, seq=seq, payload=payload + bytes(8), length=len(payload))

    # Bodies

    def _control(self, body: bytes, kind: int | None = None, *, guard: bool = False) -> bytes:
        """A control frame of a known member; `guard` makes sure that noise is not a message by accident."""
        if guard:
            body = b"\xc1" + body
        chosen = kind or self._rng.choice((REQUEST, REPORT, *range(FIRST_MEMBERSHIP, FAREWELL)))
        return a_frame(chosen, sender=self._rng.choice((B, C)), seq=0, timestamp=0, payload=body)

    def _misshapen_body(self) -> bytes:
        value: Any = self._rng.choice((None, True, -1, 0.5, "text", b"bytes", [], {}, [1], [[], [], []], 1 << 63))
        for _ in range(self._rng.randrange(4)):
            value = [value] * self._rng.choice((1, 3, 5))
        return self._control(msgpack.packb(value))

    def _huge_body(self) -> bytes:
        rng = self._rng
        return self._control(
            rng.choice(
                (
                    b"\xdd" + struct.pack(">I", rng.randrange(1 << 12, 1 << 32)),
                    b"\xdc\x10\x00" * rng.randrange(1, 400),
                    b"\x91" * rng.randrange(1, 4_000),
                    b"\xdb" + struct.pack(">I", rng.randrange(1 << 32)),
                    b"\xdf" + struct.pack(">I", rng.randrange(1 << 32)),
                    b"\xc9" + struct.pack(">Ib", rng.randrange(1 << 32), rng.randrange(-128, 128)),
                    msgpack.packb([[[B, 1, 1]] * rng.randrange(4_097, 4_200), []]),
                )
            )
        )

    def _cut_body(self) -> bytes:
        frame = a_control_frame(self._a_control(self._rng.choice((B, C))))
        length = struct.unpack_from("<H", frame, 12)[0]
        return self._control(frame[HEADER_BYTES : HEADER_BYTES + self._rng.randrange(length)], kind=frame[5])

    def _bad_range(self) -> bytes:
        first = self._rng.randrange(2, 1_000)
        ranges = self._rng.choice(
            (
                [B, 0, first],
                [B, first, first - 1],
                [B, -first, first],
                [B, 1, MAX_SEQ + first],
                [B, first],
                [B, 1, 2, 3],
            )
        )
        good = [[C, 1, 3]] * self._rng.randrange(3)
        return self._control(msgpack.packb([[*good, ranges], []]), kind=REQUEST)

    def _bad_number(self) -> bytes:
        fields: list[Any] = [9, NEXT_TIMESTAMP, [[A, 5]], 100]
        bad = self._rng.choice((-1, 1 << 63, (1 << 64) - 1, 1.0, True, None, "9"))
        at = self._rng.randrange(4)
        fields[at] = [[A, bad]] if at == 2 else bad
        return self._control(msgpack.packb(fields), kind=REPORT)

    def _reshaped(self, change: Callable[[list[Any]], list[Any]]) -> bytes:
        """What is said about membership, but for the shape of its body."""
        frame = a_control_frame(self._a_membership_message(self._rng.choice((B, C))))
        length = struct.unpack_from("<H", frame, 12)[0]
        fields = msgpack.unpackb(frame[HEADER_BYTES : HEADER_BYTES + length])
        return self._control(msgpack.packb(change(fields)), kind=frame[5])

    def _bad_field(self) -> bytes:
        def spoil(fields: list[Any]) -> list[Any]:
            at = self._rng.randrange(len(fields) or 1)
            return [*fields[:at], self._rng.choice(NOT_A_FIELD), *fields[at + 1 :]]

        return self._reshaped(spoil)

    def _placeless_change(self) -> bytes:
        wrong = self._rng.choice(({"seq": 0}, {"timestamp": 0}, {"flags": 0}))
        place: dict[str, Any] = {"seq": FIRST_SEQ, "timestamp": NEXT_TIMESTAMP}
        return a_change_frame(self._a_change(), self._rng.choice((B, C)), **place | wrong)

    def _empty_change(self) -> bytes:
        body = self._rng.choice((b"", b"\xc1", msgpack.packb([3, "left"]), msgpack.packb([1, [0, "", ""], 1])))
        return a_frame(CHANGE, sender=self._rng.choice((B, C)), seq=FIRST_SEQ, timestamp=NEXT_TIMESTAMP, payload=body)

    # Repairs

    def _cut_repair(self) -> bytes:
        frame = self._some()
        return a_repair(frame[: self._rng.randrange(0, HEADER_BYTES, 8)])

    def _other_view_in_a_repair(self) -> bytes:
        inner = self._rng.choice((self._data, self._keepalive))
        return a_repair(inner(view_tag=OTHER_VIEW))

    # Sound frames of those who have no say here

    def _data(self, **fields: Any) -> bytes:
        defaults: dict[str, Any] = {"sender": self._rng.choice((B, C)), "seq": self._rng.randrange(1, 30)}
        record = self._rng.randbytes(self._rng.choice((5, 40)))
        timestamp = NEXT_TIMESTAMP + self._rng.randrange(100)
        return a_frame(payload=packed([record]), **{"timestamp": timestamp} | defaults | fields)

    def _keepalive(self, **fields: Any) -> bytes:
        sender = fields.pop("sender", self._rng.choice((B, C)))
        return a_keepalive(sender, self._rng.randrange(30), NEXT_TIMESTAMP + self._rng.randrange(100), **fields)

    def _a_report(self, member: MemberId) -> Any:
        return a_report(
            member,
            serial=self._rng.randrange(100, MAX_SEQ),
            acknowledged=self._rng.choice((0, NEXT_TIMESTAMP, MAX_TIMESTAMP)),
            contiguous={A: self._rng.choice((0, 3, MAX_SEQ))},
            room_frames=self._rng.choice((0, 5, MAX_SEQ)),
        )

    def _a_request(self, requester: MemberId) -> Any:
        return a_request(
            requester,
            Span(self._rng.choice((A, B, C)), 1, self._rng.choice((3, MAX_SEQ))),
            Promise(self._rng.choice((A, B, C)), Timestamp(self._rng.choice((START, NEXT_TIMESTAMP)))),
        )

    def _a_control(self, member: MemberId) -> Any:
        makers = (self._a_report, self._a_request, self._a_membership_message)
        return self._rng.choice(makers)(member)

    def _a_membership_message(self, member: MemberId) -> MembershipMessage:
        return self._rng.choice(_membership_messages(member))

    def _a_change(self) -> Any:
        return self._rng.choice((a_leave(), an_add(R)))

    def _any_type(self) -> int:
        return self._rng.randrange(DATA, FAREWELL + 1)

    def _some(self) -> bytes:
        return self._rng.choice(self._genuine)

    def _other_than(self, value: int, limit: int) -> int:
        return self._rng.choice([other for other in range(limit) if other != value])


def _membership_messages(member: MemberId) -> list[MembershipMessage]:
    """One of each kind."""
    survivors = [an_entry(B, FIRST_SEQ), an_entry(C, FIRST_SEQ)]
    cut = a_cut({A: 1, B: FIRST_SEQ, C: FIRST_SEQ})
    return [
        a_solicitation(member, clock=NEXT_TIMESTAMP, sends=True),
        a_sponsorship(member, R),
        an_add_request(member, A),
        a_join(member, fails=[C]),
        a_failure_block(member, A, FIRST_SEQ),
        a_recovery_info(member, failed=[(C, FIRST_SEQ, NEXT_TIMESTAMP)]),
        a_ready(member, cut=cut),
        a_membership_change(member, entries=survivors, cuts=[cut]),
        a_view_request(member),
        a_farewell(member),
    ]


def _genuine_frames() -> list[bytes]:
    """Frames that would change a member's state, were they let through as they are."""
    large = a_message([bytes(range(200))], sender=B, seq=FIRST_SEQ, timestamp=NEXT_TIMESTAMP, body=80)
    small = a_message([b"small"], sender=C, seq=FIRST_SEQ, timestamp=NEXT_TIMESTAMP + 50)
    return [
        *large,
        *small,
        a_keepalive(B, FIRST_SEQ - 1, NEXT_TIMESTAMP + 60),
        a_keepalive(C, FIRST_SEQ + 5, NEXT_TIMESTAMP + 60),
        a_repair(large[0], sender=R),
        a_repair(a_keepalive(B, FIRST_SEQ - 1, NEXT_TIMESTAMP + 70), sender=R),
        a_control_frame(a_report(B, serial=50, acknowledged=NEXT_TIMESTAMP, contiguous={A: 2}, room_frames=3)),
        a_control_frame(a_request(C, Span(A, 1, 2), Span(B, 1, 4), Promise(B, Timestamp(START + 9)))),
        a_change_frame(an_add(R), B, FIRST_SEQ, NEXT_TIMESTAMP),
        a_repair(a_change_frame(a_leave(), C, FIRST_SEQ, NEXT_TIMESTAMP), sender=R),
        *map(a_control_frame, _membership_messages(B)),
    ]
