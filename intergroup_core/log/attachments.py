"""What the messages of a batch of rows have beside their values: keys, headers, and what they are staged for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from intergroup_core.wire.headers import Headers, decode_headers
from intergroup_core.wire.labels import Label
from intergroup_core.wire.records import Outline, RecordBatch
from intergroup_core.wire.run import Bytes


class Keys(NamedTuple):
    """Of all rows, those without one included."""

    offsets: NDArray[np.int32]
    data: Bytes
    valid: NDArray[np.bool_]


class _Staged(NamedTuple):
    """Messages with the same label, one after the other."""

    first: int
    stop: int
    label: Label
    ordinal: int
    """Of the first, among those that are staged."""


class Attachments:
    """Gathered as messages come; each is told by the number of its message, or of its first row."""

    def __init__(self) -> None:
        self._staged: list[_Staged] = []
        self._keys: list[tuple[int, RecordBatch, NDArray[np.bool_] | None]] = []
        self._headers: list[tuple[int, RecordBatch]] = []

    def label(self, first: int, stop: int, label: Label, ordinal: int) -> None:
        self._staged.append(_Staged(first, stop, label, ordinal))

    def add(self, row: int, found: Outline) -> None:
        if found.keys is not None:
            self._keys.append((row, found.keys, found.nulls))
        if found.headers is not None:
            self._headers.append((row, found.headers))

    def txns(self, messages: int) -> tuple[NDArray[np.int32], list[str]] | None:
        """For each message which of these transactions it belongs to, -1 where none; None where none of them does."""
        if not self._staged:
            return None
        which = np.full(messages, -1, dtype=np.int32)
        known: dict[str, int] = {}
        for staged in self._staged:
            which[staged.first : staged.stop] = known.setdefault(staged.label.txn, len(known))
        return which, list(known)

    def ordinals(self, messages: int) -> NDArray[np.uint64]:
        """The number of each message among those that are staged."""
        ordinals = np.zeros(messages, dtype=np.uint64)
        for staged in self._staged:
            count = staged.stop - staged.first
            ordinals[staged.first : staged.stop] = np.arange(staged.ordinal, staged.ordinal + count)
        return ordinals

    def keys(self, rows: int) -> Keys | None:
        """None where no row has one."""
        if not self._keys:
            return None
        offsets, valid = np.zeros(rows + 1, dtype=np.int32), np.zeros(rows, dtype=np.bool_)
        for row, batch, nulls in self._keys:
            offsets[row + 1 : row + 1 + len(batch)] = np.diff(batch.offsets)
            valid[row : row + len(batch)] = True if nulls is None else ~nulls
        np.cumsum(offsets, out=offsets)
        return Keys(offsets, np.concatenate([batch.data for _, batch, _ in self._keys]), valid)

    def headers(self) -> Iterator[tuple[int, Headers]]:
        """Rows that have some, and these."""
        known: dict[bytes, Headers] = {}
        for first, batch in self._headers:
            for row, packed in enumerate(batch.to_list(), first):
                if packed:
                    if packed not in known:
                        known[packed] = decode_headers(packed)
                    yield row, known[packed]
