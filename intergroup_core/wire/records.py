"""Records inside a message: a count, an array of lengths, then the bytes, as an Arrow column wants them.

The upper byte of the count names the layout. Of these three bits each adds something, in this order:

    count and layout u32
    LABELLED   length of the label u32 | label, padded with zeros to whole words of 4 bytes
    KEYED      lengths of the keys u32 each, NULL_KEY where there is none
    HEADED     lengths of the headers u32 each, 0 where there are none
               lengths of the values u32 each
    KEYED      keys
    HEADED     headers
               values
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intergroup_core.wire.labels import MAX_LABEL_BYTES, Label, remembered_label
from intergroup_core.wire.run import Bytes

COUNT_BYTES = 4
LENGTH_BYTES = 4
_ONE_RECORD = struct.Struct("<II")
LAYOUT_SHIFT = 24
MAX_RECORDS = (1 << LAYOUT_SHIFT) - 1
LABELLED, KEYED, HEADED = 1, 2, 4
LAST_LAYOUT = LABELLED | KEYED | HEADED
"""A payload of a layout beyond it is not made of records."""
NULL_KEY = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Record i is data[offsets[i]:offsets[i + 1]]."""

    offsets: NDArray[np.int64]
    data: Bytes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to_list(self) -> list[bytes]:
        data = self.data.tobytes()
        offsets = self.offsets.tolist()
        return [data[start:stop] for start, stop in itertools.pairwise(offsets)]


@dataclass(frozen=True, slots=True)
class Rows:
    """Records with what they may have beside their values."""

    values: RecordBatch
    keys: RecordBatch | None = None
    nulls: NDArray[np.bool_] | None = None
    """Which keys there are not; None where none is missing."""
    headers: RecordBatch | None = None
    """Packed (`wire/headers.py`); empty where a record has none."""

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class Outline:
    """All of a payload but its values."""

    lengths: NDArray[np.uint32]
    """Of the values."""
    before: int
    """Bytes before the first value."""
    label: Label | None = None
    keys: RecordBatch | None = None
    nulls: NDArray[np.bool_] | None = None
    headers: RecordBatch | None = None


class Payload:
    """A message's payload in two parts, count and lengths and then the records' bytes, copied only into frames."""

    __slots__ = ("_head", "_tail")

    def __init__(self, head: bytes, data: bytes | memoryview) -> None:
        self._head = head
        self._tail = data

    def __len__(self) -> int:
        return len(self._head) + len(self._tail)

    def copy_to(self, place: memoryview) -> None:
        """Write all of it at the beginning of a place that is large enough."""
        head = len(self._head)
        place[:head] = self._head
        place[head : head + len(self._tail)] = self._tail

    def slice(self, start: int, stop: int) -> Bytes:
        """Bytes [start, stop) of the two parts laid end to end."""
        head = len(self._head)
        data = np.frombuffer(self._tail, dtype=np.uint8)
        if start >= head:
            return data[start - head : stop - head]
        lengths = np.frombuffer(self._head, dtype=np.uint8)
        if stop <= head:
            return lengths[start:stop]
        return np.concatenate((lengths[start:], data[: stop - head]))

    def rows(self, count: int, width: int) -> Iterator[tuple[int, int, Bytes]]:
        """So many rows of this width from the beginning: first and last, and what is in them, end to end."""
        mixed = min(count, -(-len(self._head) // width))
        if mixed:
            yield 0, mixed, self.slice(0, mixed * width)
        if count > mixed:
            yield mixed, count, self.slice(mixed * width, count * width)


def pack_one(record: bytes | memoryview) -> Payload:
    """The payload of a message with a single record."""
    return Payload(_ONE_RECORD.pack(1, len(record)), record)


def pack_records(records: Sequence[bytes]) -> Payload:
    """The payload of a message made of these records."""
    sizes = np.fromiter(map(len, records), dtype="<u4", count=len(records))
    return pack_sized(sizes, b"".join(records))


def pack_sized(sizes: NDArray[np.integer[Any]], data: bytes | memoryview) -> Payload:
    """The same from lengths and bytes that lie end to end."""
    head = np.empty(len(sizes) + 1, dtype="<u4")
    head[0] = len(sizes)
    head[1:] = sizes
    return Payload(head.tobytes(), data)


def pack_rows(rows: Rows, label: bytes = b"") -> Payload:
    """The payload of a message of these rows, staged where there is a label."""
    sizes = [_sizes(rows.values)]
    before: list[bytes] = []
    layout = 0
    if rows.headers is not None:
        layout |= HEADED
        sizes.insert(0, _sizes(rows.headers))
        before.insert(0, _content(rows.headers).tobytes())
    if rows.keys is not None:
        layout |= KEYED
        lengths = _sizes(rows.keys)
        sizes.insert(0, lengths if rows.nulls is None else np.where(rows.nulls, NULL_KEY, lengths).astype("<u4"))
        before.insert(0, _content(rows.keys).tobytes())
    labelled = b""
    if label:
        layout |= LABELLED
        labelled = len(label).to_bytes(LENGTH_BYTES, "little") + label + bytes(-len(label) % LENGTH_BYTES)
    first = (len(rows) | layout << LAYOUT_SHIFT).to_bytes(COUNT_BYTES, "little")
    head = b"".join((first, labelled, *(each.tobytes() for each in sizes), *before))
    return Payload(head, _content(rows.values).data)


def _sizes(records: RecordBatch) -> NDArray[np.uint32]:
    sizes: NDArray[np.uint32] = np.diff(records.offsets).astype("<u4")
    return sizes


def _content(records: RecordBatch) -> Bytes:
    return np.ascontiguousarray(records.data[int(records.offsets[0]) : int(records.offsets[-1])])


def layout_of(word: int) -> int:
    """How a payload is laid out that begins with this word."""
    return word >> LAYOUT_SHIFT


def label_in(payload: Bytes) -> bytes:
    """The label of a payload, whatever else is in it; empty where there is none."""
    return _label_in(lambda wanted: payload[:wanted], len(payload)) or b""


def _label_in(begin: Callable[[int], Bytes], size: int) -> bytes | None:
    at = COUNT_BYTES + LENGTH_BYTES
    if size < at:
        return None
    first = begin(at).tobytes()
    layout = layout_of(int.from_bytes(first[:COUNT_BYTES], "little"))
    length = int.from_bytes(first[COUNT_BYTES:], "little")
    if layout > LAST_LAYOUT or not layout & LABELLED or not 0 < length <= MAX_LABEL_BYTES or at + length > size:
        return None
    return begin(at + length)[at:].tobytes()


def label_of(begin: Callable[[int], Bytes], size: int) -> Label | None:
    """The same as what it says, where `begin` gives the first bytes of a payload of this size."""
    packed = _label_in(begin, size)
    return remembered_label(packed) if packed else None


def outline(begin: Callable[[int], Bytes], size: int) -> Outline | None:
    """What a payload of `size` bytes says of itself, `begin` giving as many of its first bytes as are asked for.

    None where its lengths do not add up, or where its label is none.
    """
    if size < COUNT_BYTES:
        return None
    word = int.from_bytes(begin(COUNT_BYTES).tobytes(), "little")
    layout, count = layout_of(word), word & MAX_RECORDS
    if layout > LAST_LAYOUT:
        return None
    at, label = COUNT_BYTES, None
    if layout & LABELLED:
        packed = _label_in(begin, size)
        label = remembered_label(packed) if packed else None
        if packed is None or label is None:
            return None
        at += LENGTH_BYTES + len(packed) + -len(packed) % LENGTH_BYTES
    columns = 1 + bool(layout & KEYED) + bool(layout & HEADED)
    stop = at + LENGTH_BYTES * count * columns
    if stop > size:
        return None
    lengths: NDArray[np.uint32] = begin(stop)[at:].view("<u4").reshape(columns, count)
    if columns == 1:
        fits = stop + int(lengths.sum(dtype=np.int64)) == size
        return Outline(lengths[0], stop, label) if fits else None
    nulls = lengths[0] == NULL_KEY if layout & KEYED else None
    beside = [_offsets(each) for each in lengths[:-1]]
    if nulls is not None and nulls.any():
        beside[0] = _offsets(np.where(nulls, 0, lengths[0]))
    else:
        nulls = None
    before = stop + sum(int(each[-1]) for each in beside)
    if before + int(lengths[-1].sum(dtype=np.int64)) != size:
        return None
    content = begin(before)
    batches: list[RecordBatch] = []
    for each in beside:
        batches.append(RecordBatch(each, content[stop : stop + int(each[-1])]))
        stop += int(each[-1])
    keys = batches[0] if layout & KEYED else None
    return Outline(lengths[-1], before, label, keys, nulls, batches[-1] if layout & HEADED else None)


def _offsets(lengths: NDArray[np.uint32]) -> NDArray[np.int64]:
    offsets = np.empty(len(lengths) + 1, dtype=np.int64)
    offsets[0] = 0
    np.cumsum(lengths, out=offsets[1:], dtype=np.int64)
    return offsets


def unpack_records(payload: Bytes) -> RecordBatch | None:
    """The values of a payload, or None where its lengths do not add up."""
    rows = unpack_rows(payload)
    return rows.values if rows is not None else None


def unpack_rows(payload: Bytes) -> Rows | None:
    """The same with all that they have beside them."""
    size = len(payload)
    if size >= _ONE_RECORD.size and _ONE_RECORD.unpack_from(payload.data) == (1, size - _ONE_RECORD.size):
        # One record with nothing beside it, which somebody waits for.
        return Rows(RecordBatch(np.array((0, size - _ONE_RECORD.size), dtype=np.int64), payload[_ONE_RECORD.size :]))
    found = outline(lambda wanted: payload[:wanted], size)
    if found is None:
        return None
    values = RecordBatch(_offsets(found.lengths), payload[found.before :])
    return Rows(values, found.keys, found.nulls, found.headers)
