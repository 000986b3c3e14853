"""The records of many messages as columns: one copy of their bytes, and numbers for each message.

Messages of one frame each, all alike, are taken by the run; of longer ones each costs a few calls, whatever the number
of its records.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from intergroup_core.config import HEADER_BYTES
from intergroup_core.log.attachments import Attachments
from intergroup_core.log.choice import All, Choice
from intergroup_core.log.entry import EntryHeader
from intergroup_core.log.reader import Piece
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.glance import labels_in
from intergroup_core.wire.labels import Label
from intergroup_core.wire.records import (
    COUNT_BYTES,
    LABELLED,
    LENGTH_BYTES,
    MAX_RECORDS,
    label_of,
    layout_of,
    outline,
)
from intergroup_core.wire.run import Bytes, Run

_SENDER, _SEQ, _TIMESTAMP, _PLACE, _COUNT = range(5)
"""What is known of a message, a column each."""
_COUNTED_UP = np.array([0, 1, 1, 1, 0], dtype=np.uint64)
"""What grows from one message of one frame to the next."""
_LENGTH_AT = 12
"""Where a frame's header has the length of its payload."""

_Named = tuple[int, int, int, int]
"""Sender, seq, timestamp and place of a message."""


class MessageColumns:
    """What names and orders each message that is made of records, how many there are, and their bytes."""

    def __init__(self, choice: Choice | None = None, ordinal: int = 0) -> None:
        self._choice = choice if choice is not None else All()
        self.rows = 0
        self.messages = 0
        self.value_bytes = 0
        self.ordinal = ordinal
        """How many messages with a label were taken, those included that lie before; sound or not."""
        self.attachments = Attachments()
        self._blocks: list[NDArray[np.uint64]] = []
        self._waiting: list[tuple[int, int, int, int, int]] = []
        """Messages that came one by one, not yet a block."""
        self._lengths: list[NDArray[np.uint32]] = []
        """Of the records."""
        self._parts: list[_Part] = []

    @property
    def senders(self) -> NDArray[np.uint64]:
        return self._column(_SENDER)

    @property
    def seqs(self) -> NDArray[np.uint64]:
        return self._column(_SEQ)

    @property
    def timestamps(self) -> NDArray[np.uint64]:
        return self._column(_TIMESTAMP)

    @property
    def places(self) -> NDArray[np.uint64]:
        return self._column(_PLACE)

    @property
    def counts(self) -> NDArray[np.int64]:
        return self._column(_COUNT).astype(np.int64)

    def _column(self, which: int) -> NDArray[np.uint64]:
        self._settle()
        if len(self._blocks) > 1:
            self._blocks = [np.concatenate(self._blocks)]
        return self._blocks[0][:, which]

    def _settle(self) -> None:
        if self._waiting:
            self._blocks.append(np.array(self._waiting, dtype=np.uint64))
            self._waiting = []

    def add(self, piece: Piece) -> None:
        """The messages of a piece of a data entry."""
        header = piece.entry.header
        if not self._choice.plain and not header.staged:
            return
        if header.frames == 1:
            self._add_short(header, piece.entry.payload())
            return
        chunk = piece.entry.chunk()
        run, head = chunk.run, chunk.head
        place, first = header.place, piece.first
        if first == 0 and head:
            self._add_long(chunk, 0, place)
            first = 1
        if first >= piece.stop:
            return
        begin = run.ends[first - 1] + 1 if first else 0
        frames_each_one = run.ends[piece.stop - 1] - begin == piece.stop - 1 - first
        all_wanted = self._choice.every or not header.staged
        if frames_each_one and all_wanted and self._add_alike(run, first, piece.stop, begin, place):
            return
        for at in range(first, piece.stop):
            self._add_long(chunk, at, place)

    def pass_over(self, piece: Piece) -> None:
        """Messages that are not wanted for another reason: they have their place among those that are staged."""
        source = piece.entry.header.source
        if piece.entry.header.staged:
            self.ordinal += sum(self._choice.takes(each.label, source, each.seq) for each in labels_in(piece.chunk()))

    def _add_short(self, header: EntryHeader, payload: memoryview) -> None:
        """The usual entry of a quiet group: one message in one frame."""
        size = int.from_bytes(payload[_LENGTH_AT : _LENGTH_AT + 2], "little")
        body = payload[HEADER_BYTES : HEADER_BYTES + size]
        count = int.from_bytes(body[:COUNT_BYTES], "little")
        if count > MAX_RECORDS:
            octets = np.frombuffer(body, dtype=np.uint8)
            named = header.source, header.last_seq, header.last_timestamp, header.place + 1
            self._add_outlined(named, count, lambda wanted: octets[:wanted], octets.reshape(1, -1), (), size)
            return
        start = COUNT_BYTES + LENGTH_BYTES * count
        if size < COUNT_BYTES or start > size:
            return
        lengths = np.frombuffer(body, dtype="<u4", count=count, offset=COUNT_BYTES)
        if start + int(lengths.sum(dtype=np.int64)) != size:
            return
        self._waiting.append((header.source, header.last_seq, header.last_timestamp, header.place + 1, count))
        self._lengths.append(lengths)
        self._add_part(_Part(np.frombuffer(body, dtype=np.uint8).reshape(1, -1), (), start), 1, count)

    def _add_alike(self, run: Run, first: int, stop: int, begin: int, place: int) -> bool:
        """Messages of one frame with the same label whose records have the same lengths, all at once."""
        lengths = run.end_lengths[first:stop]
        if len(set(lengths)) != 1 or lengths[0] < COUNT_BYTES:
            return False
        octets = run.payload(begin, begin + stop - first)
        found = outline(lambda wanted: octets[0, :wanted], lengths[0])
        if found is None or not len(found.lengths) or found.keys is not None or found.headers is not None:
            return False
        start, count = found.before, len(found.lengths)
        heads = octets[:, :start]
        if not (heads == heads[0]).all():
            return False
        messages = stop - first
        block = np.empty((messages, 5), dtype=np.uint64)
        base = (run.source, run.seq + begin, run.timestamp + begin, place + first + 1, count)
        np.add(np.array(base, dtype=np.uint64), _COUNTED_UP * np.arange(messages, dtype=np.uint64)[:, None], out=block)
        self._settle()
        self._blocks.append(block)
        self._lengths.append(np.tile(found.lengths, messages))
        if found.label is not None:
            self._staged(found.label, messages)
        self._add_part(_Part(octets[:, start : lengths[0]], (), 0), messages, messages * count)
        return True

    def _add_long(self, chunk: Chunk, at: int, place: int) -> None:
        """One message, of however many frames."""
        run = chunk.run
        begin = run.ends[at - 1] + 1 if at else 0
        end = run.ends[at]
        body = run.payload(begin, end + 1)
        head = () if at else tuple(part.payload(0, part.count) for part in chunk.head)
        size = sum(part.size for part in head) + (len(body) - 1) * body.shape[1] + run.end_lengths[at]
        if size < COUNT_BYTES:
            return
        named = run.source, run.seq + end, run.timestamp + end, place + at + 1
        first_bytes = partial(_begin, head, body)
        word = int.from_bytes(first_bytes(COUNT_BYTES).tobytes(), "little")
        self._add_outlined(named, word, first_bytes, body, head, size)

    def _add_outlined(
        self, named: _Named, word: int, begin: Callable[[int], Bytes], body: Bytes, head: tuple[Bytes, ...], size: int
    ) -> None:
        """One message of any layout, where it is wanted."""
        label = None
        if layout_of(word) & LABELLED:
            label = label_of(begin, size)
            if label is None or not self._choice.takes(label, named[0], named[1]):
                return
        elif not self._choice.plain:
            return
        found = outline(begin, size)
        if found is None:
            self.ordinal += label is not None
            return
        if label is not None:
            self._staged(label, 1)
        self.attachments.add(self.rows, found)
        self._waiting.append((*named, len(found.lengths)))
        self._lengths.append(found.lengths)
        self._add_part(_Part(body, head, found.before, size), 1, len(found.lengths))

    def _staged(self, label: Label, messages: int) -> None:
        self.attachments.label(self.messages, self.messages + messages, label, self.ordinal)
        self.ordinal += messages

    def _add_part(self, part: _Part, messages: int, rows: int) -> None:
        self._parts.append(part)
        self.messages += messages
        self.rows += rows
        self.value_bytes += part.value_bytes

    def values(self) -> tuple[NDArray[np.int32], Bytes]:
        """Offsets and bytes of all records, laid end to end by one copy.

        A message is copied whole, so that its lengths land on the end of the one before it, which is copied after
        it and puts that right.
        """
        slack = max((part.skipped for part in self._parts), default=0)
        place = np.empty(slack + self.value_bytes, dtype=np.uint8)
        stop = len(place)
        for part in reversed(self._parts):
            part.copy_to(place, stop)
            stop -= part.value_bytes
        offsets = np.zeros(self.rows + 1, dtype=np.int32)
        if self._lengths:
            np.cumsum(np.concatenate(self._lengths), out=offsets[1:], dtype=np.int32)
        return offsets, place[slack:]


class _Part:
    """Bytes of records that lie next to each other but for what stands between frames."""

    __slots__ = ("_body", "_head", "_size", "skipped", "value_bytes")

    def __init__(self, body: Bytes, head: tuple[Bytes, ...], skipped: int, size: int | None = None) -> None:
        self._body = body
        self._head = head
        self._size = body.size if size is None else size
        self.skipped = skipped
        self.value_bytes = self._size - skipped

    def copy_to(self, place: Bytes, stop: int) -> None:
        """Write it so that it ends at `stop`; what is skipped goes before its beginning."""
        at = stop - self._size
        for part in self._head:
            place[at : at + part.size].reshape(part.shape)[:] = part
            at += part.size
        count, width = self._body.shape
        full = (stop - at) // width
        if full:
            place[at : at + full * width].reshape(full, width)[:] = self._body[:full]
            at += full * width
        if at < stop:
            place[at:stop] = self._body[count - 1, : stop - at]


def _begin(head: tuple[Bytes, ...], body: Bytes, wanted: int) -> Bytes:
    """The first bytes of a message, copied where they are not in one frame."""
    if not head and wanted <= body.shape[1]:
        whole: Bytes = body[0, :wanted]
        return whole
    taken: list[Bytes] = []
    for part in (*head, body):
        rows = part[: -(-wanted // part.shape[1])].reshape(-1)[:wanted]
        taken.append(rows)
        wanted -= len(rows)
        if not wanted:
            break
    return np.concatenate(taken)
