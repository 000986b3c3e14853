"""What is said to an agent of transactions: requests and answers, whoever carries them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from intergroup_core.config import Config
from intergroup_core.errors import ChannelBroken, MessageTooLarge
from intergroup_core.wire.attempts import Staged, packed_attempts
from intergroup_core.wire.labels import Label, encode_label
from intergroup_core.wire.records import LENGTH_BYTES, MAX_RECORDS, RecordBatch, Rows, pack_rows

PIECE_BYTES = 8_000_000
"""About what one request carries."""
ANSWER_SECONDS = 10.0
"""How much longer than an acknowledgment may take its answer may be under way."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Which rows are to become visible, and how far that must have come."""

    app: str
    run: str
    version: int
    attempts: tuple[Staged, ...]
    lasting: bool
    """Whether the application goes on to other versions, so that its last one must be remembered."""
    ack: str
    seconds: float
    """How long all of it may take."""
    timeout_s: int
    """How long after its first row it may be proposed."""

    def body(self, handle: int) -> list[Any]:
        attempts = packed_attempts(self.attempts)
        return [
            handle,
            self.app,
            self.run,
            self.version,
            self.lasting,
            self.timeout_s,
            attempts,
            self.ack,
            self.seconds,
        ]


def stage_bodies(handle: int, group: str, label: Label | None, rows: Rows, config: Config) -> Iterator[list[Any]]:
    """Requests that together stage rows; MessageTooLarge before the first where one of the rows is."""
    sizes, most = _sizes(rows), config.group.max_message_bytes
    if len(sizes) and sizes.max() > most:
        raise MessageTooLarge(
            f"row {int(sizes.argmax())} has {int(sizes.max())} bytes; group {group} takes at most {most}: "
            "split it or raise group.max_message_bytes at every member"
        )
    packed = encode_label(label) if label is not None else b""
    waiting: list[tuple[bytes, int]] = []
    size = 0
    columns = sum(beside is not None for beside in (rows.values, rows.keys, rows.headers))
    for part in _parts(rows, sizes + columns * LENGTH_BYTES, min(config.send.bundle_bytes, most)):
        payload = pack_rows(part, packed)
        content = payload.slice(0, len(payload)).tobytes()
        if waiting and size + len(content) > PIECE_BYTES:
            yield [handle, waiting]
            waiting, size = [], 0
        waiting.append((content, len(part)))
        size += len(content)
    if waiting:
        yield [handle, waiting]


def staged_of(answer: Any, attempt: int) -> Staged | None:
    match answer:
        case None:
            return None
        case [int(sender), int(first), int(last), int(begin), int(end), int(messages), int(rows)]:
            return Staged(attempt, sender, first, last, begin, end, messages, rows)
    raise ChannelBroken(f"the agent's answer is not understood: {answer!r:.200}")


def plain_rows(values: Sequence[bytes] | RecordBatch) -> Rows:
    """Rows that have nothing beside their values."""
    if isinstance(values, RecordBatch):
        return Rows(values)
    offsets = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, values), dtype=np.int64, count=len(values)), out=offsets[1:])
    return Rows(RecordBatch(offsets, np.frombuffer(b"".join(values), dtype=np.uint8)))


def _sizes(rows: Rows) -> NDArray[np.int64]:
    sizes: NDArray[np.int64] = np.diff(rows.values.offsets)
    for beside in (rows.keys, rows.headers):
        if beside is not None:
            sizes = sizes + np.diff(beside.offsets)
    return sizes


def _parts(rows: Rows, sizes: NDArray[np.int64], most: int) -> Iterator[Rows]:
    """Rows for one message each."""
    ends = np.cumsum(sizes)
    first, count = 0, len(sizes)
    while first < count:
        before = int(ends[first - 1]) if first else 0
        stop = max(first + 1, min(int(np.searchsorted(ends, before + most, side="right")), first + MAX_RECORDS))
        yield _slice(rows, first, stop)
        first = stop


def _slice(rows: Rows, first: int, stop: int) -> Rows:
    def part(records: RecordBatch) -> RecordBatch:
        return RecordBatch(records.offsets[first : stop + 1], records.data)

    return Rows(
        part(rows.values),
        part(rows.keys) if rows.keys is not None else None,
        rows.nulls[first:stop] if rows.nulls is not None else None,
        part(rows.headers) if rows.headers is not None else None,
    )
