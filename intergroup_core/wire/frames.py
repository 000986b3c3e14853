"""Building frames: one message's burst at a time, or a single control frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from intergroup_core.config import HEADER_BYTES
from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.wire import native
from intergroup_core.wire.checksum import Words, seal_frame, seal_frames
from intergroup_core.wire.exchange import Exchange
from intergroup_core.wire.header import (
    FLAG_SHIFT,
    FRAGMENT_SHIFT,
    HEADER,
    HEADER_WORDS,
    LENGTH_SHIFT,
    MAGIC_VERSION,
    TYPE_SHIFT,
    Flag,
    FrameType,
    padded,
)
from intergroup_core.wire.records import Payload
from intergroup_core.wire.run import Bytes, Run

PADDED_FRAMES = 8
"""From so many frames on a message's last frame is padded to full size, so that bursts line up in memory."""

_RAMP = np.arange(65_536, dtype=np.uint64)
_STEPS = np.zeros((65_536, HEADER_WORDS), dtype=np.uint64)
"""What a frame's header adds to that of the first: fragment, seq and timestamp count up."""
_STEPS[:, 1] = _RAMP << np.uint64(FRAGMENT_SHIFT)
_STEPS[:, 4] = _STEPS[:, 5] = _RAMP
_DATA_WORD = (MAGIC_VERSION | FrameType.DATA << TYPE_SHIFT) << 32
_LAST = int(Flag.LAST)
_LAST_BIT = np.uint64(Flag.LAST << FLAG_SHIFT << 32)


def fill_frames(frames: Words, header: Words, payload: Bytes, firsts: Words) -> None:
    """Frames of one message from the header of the first of them and what all carry, sealed; their first words."""
    if native.compiled is not None:
        native.compiled.fill(frames, header, payload, firsts)
        return
    count = len(frames)
    frames.view(np.uint8)[:, HEADER_BYTES:] = payload.reshape(count, -1)
    # One pass over the headers: each of them is a cache line of its own.
    np.add(_STEPS[:count], header, out=frames[:, :HEADER_WORDS])
    firsts[:] = seal_frames(frames)


@dataclass(frozen=True, slots=True)
class Emission:
    """A stamped message: its bytes for the wire and the same bytes as runs."""

    data: memoryview
    segment: int
    runs: list[Run]


@dataclass(frozen=True, slots=True)
class FrameMaker:
    """Makes the frames of one sender in one group and view."""

    group_tag: int
    sender: MemberId
    view_tag: int
    frame_bytes: int

    def frames_for(self, payload_bytes: int) -> int:
        """How many frames a payload takes."""
        return max(1, -(-payload_bytes // (self.frame_bytes - HEADER_BYTES)))

    def message(self, payload: Payload, seq: int, timestamp: Timestamp) -> Emission:
        """One message, stamped whole: its frames take consecutive seqs and timestamps (D11)."""
        body = self.frame_bytes - HEADER_BYTES
        size = len(payload)
        count = self.frames_for(size)
        if count == 1:
            return self._single_message(payload, seq, timestamp)
        tail = size - (count - 1) * body
        even = count >= PADDED_FRAMES or padded(tail) == body
        full = count if even else count - 1
        words = self.frame_bytes // 8
        buffer = np.empty(full * words + (0 if even else (HEADER_BYTES + padded(tail)) // 8), dtype=np.uint64)
        runs: list[Run] = []
        if full:
            frames = buffer[: full * words].reshape(full, words)
            first_words = self._write_full(frames, payload, seq, timestamp, tail if even else None)
            ends, lengths = ([full - 1], [tail]) if even else ([], [])
            runs.append(
                Run(self.sender, seq, timestamp, self.view_tag, frames, 0, ends, lengths, first_words=first_words)
            )
        if not even:
            last = buffer[full * words :]
            self._write_short(last, payload.slice(full * body, size), seq + full, timestamp + full, full)
            frames = last.reshape(1, -1)
            runs.append(Run(self.sender, seq + full, timestamp + full, self.view_tag, frames, full, [0], [tail]))
        return Emission(buffer.data.cast("B"), self.frame_bytes if full else len(buffer) * 8, runs)

    def _single_message(self, payload: Payload, seq: int, timestamp: Timestamp) -> Emission:
        """A message of one frame, which somebody wants there soon."""
        frame = bytearray(HEADER_BYTES + padded(len(payload)))
        frame[:HEADER_BYTES] = self._header(FrameType.DATA, len(payload), 0, seq, timestamp)
        payload.copy_to(memoryview(frame)[HEADER_BYTES:])
        seal_frame(frame)
        words = np.frombuffer(frame, dtype=np.uint64).reshape(1, -1)
        run = Run(self.sender, seq, timestamp, self.view_tag, words, 0, [0], [len(payload)])
        return Emission(memoryview(frame), len(frame), [run])

    def _write_full(self, frames: Words, payload: Payload, seq: int, timestamp: int, tail: int | None) -> Words:
        count = len(frames)
        body = self.frame_bytes - HEADER_BYTES
        whole = count if tail is None else count - 1
        first = (_DATA_WORD, self.view_tag | body << LENGTH_SHIFT, self.group_tag, self.sender, seq, timestamp)
        header = np.array(first, dtype=np.uint64)
        firsts = np.empty(count, dtype=np.uint64)
        for start, stop, content in payload.rows(whole, body):
            fill_frames(frames[start:stop], header + _STEPS[start], content, firsts[start:stop])
        if tail is not None:
            octets = frames[whole].view(np.uint8)[HEADER_BYTES:]
            octets[:tail] = payload.slice(whole * body, whole * body + tail)
            octets[tail:] = 0
            header += _STEPS[whole]
            header[0] |= _LAST_BIT
            header[1] = self.view_tag | tail << LENGTH_SHIFT | whole << FRAGMENT_SHIFT
            frames[whole, :HEADER_WORDS] = header
            firsts[whole:] = seal_frames(frames[whole:])
        return firsts

    def _write_short(self, frame: Words, source: Bytes, seq: int, timestamp: int, fragment: int) -> None:
        frame[-1] = 0
        octets = frame.view(np.uint8)
        octets.data[:HEADER_BYTES] = self._header(FrameType.DATA, len(source), fragment, seq, timestamp)
        octets[HEADER_BYTES : HEADER_BYTES + len(source)] = source
        seal_frame(octets.data)

    def _header(self, kind: FrameType, length: int, fragment: int, seq: int, timestamp: int) -> bytes:
        """The header of a frame that ends what it belongs to, its checksum still to be written."""
        prefix = (0, MAGIC_VERSION, kind, _LAST, 0, self.view_tag, length, fragment)
        return HEADER.pack(*prefix, self.group_tag, self.sender, seq, timestamp)

    def single(self, kind: FrameType, seq: int, timestamp: int, payload: bytes = b"") -> bytes:
        """One frame that stands alone: a keep-alive or a control message."""
        header = self._header(kind, len(payload), 0, seq, timestamp)
        octets = bytearray(header + payload + bytes(padded(len(payload)) - len(payload)))
        seal_frame(octets)
        return bytes(octets)

    def change(self, body: bytes, seq: int, timestamp: Timestamp) -> tuple[bytes, Run]:
        """An ordered membership message: one frame with a seq, kept and repaired like data (M1)."""
        frame = self.single(FrameType.CHANGE, seq, timestamp, body)
        words = np.frombuffer(frame, dtype=np.uint64).reshape(1, -1)
        return frame, Run(self.sender, seq, timestamp, self.view_tag, words, 0, [0], [len(body)], change=True)

    def repairs(self, stored: Words, exchange: Exchange | None = None) -> tuple[memoryview, int]:
        """Stored frames of equal size, each verbatim inside a Repair frame (R5); the bytes and the segment."""
        count, inner = stored.shape
        words = HEADER_WORDS + inner
        frames = np.empty((count, words), dtype=np.uint64)
        frames[:, 0] = (MAGIC_VERSION | FrameType.REPAIR << TYPE_SHIFT | Flag.LAST << FLAG_SHIFT) << 32
        frames[:, 1] = self.view_tag | (inner * 8) << LENGTH_SHIFT
        frames[:, 2] = self.group_tag
        frames[:, 3] = self.sender
        frames[:, 4:HEADER_WORDS] = exchange.packed() if exchange is not None else 0
        frames[:, HEADER_WORDS:] = stored
        seal_frames(frames)
        return frames.reshape(-1).data.cast("B"), words * 8

    def repair(self, stored: bytes) -> bytes:
        """One stored frame of any kind, verbatim inside a Repair frame."""
        return self.single(FrameType.REPAIR, 0, 0, stored)
