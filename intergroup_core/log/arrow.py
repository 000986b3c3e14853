"""Rows of a log as Arrow batches with the columns of a Spark read; nothing else in the pure part knows Arrow."""

from __future__ import annotations

from bisect import bisect, bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from intergroup_core.effects import Install
from intergroup_core.errors import ConfigError
from intergroup_core.ids import COUNTER_BITS, EPOCH_US, MemberId, Service, format_member
from intergroup_core.log.cut import Cut
from intergroup_core.log.entry import EntryHeader, Kind
from intergroup_core.log.messages import MessageColumns
from intergroup_core.log.reader import LogReader, Piece, Place
from intergroup_core.log.text import POSITION_WIDTH, positions

BATCH_ROWS = 65_536
BATCH_BYTES = 16 << 20
"""A batch ends with the entry that reaches one of these."""
_GAP_RECORD = (1 << 32) - 1

_TIME = pa.timestamp("us", tz="UTC")
_NAMES = pa.list_(pa.string())
SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("group_name", pa.string()),
        ("sender", pa.string()),
        ("sender_id", pa.string()),
        ("seq", pa.int64()),
        ("record", pa.int32()),
        ("position", pa.string()),
        ("timestamp", _TIME),
        ("sent_timestamp", _TIME),
        ("lamport", pa.int64()),
        ("view_id", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("members", _NAMES),
        ("joined", _NAMES),
        ("departed", _NAMES),
        ("branches", _NAMES),
        ("txn", pa.string()),
    ]
)
MORE = pa.schema([("reason", pa.string())])
"""What a gap row says besides; only for those who ask for it."""
COLUMNS: tuple[str, ...] = tuple(SCHEMA.names)


def schema_of(columns: Sequence[str]) -> pa.Schema:
    known = {field.name: field for field in (*SCHEMA, *MORE)}
    unknown = [column for column in columns if column not in known]
    if unknown:
        raise ConfigError(f"there is no column {unknown[0]}; the columns are {', '.join(known)}")
    return pa.schema([known[column] for column in columns])


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """Which rows are wanted; what is left out is not decoded."""

    kinds: frozenset[str] = frozenset({"data", "view", "gap"})
    senders: frozenset[str] = frozenset()
    """Names or ids of those whose data rows are wanted; empty for all."""

    def takes(self, kind: Kind) -> bool:
        return kind.name.lower() in self.kinds


EVERYTHING = RowFilter()


class ArrowRows:
    """The rows of ranges of one log, with only the columns that are wanted."""

    def __init__(self, reader: LogReader, columns: Sequence[str] = COLUMNS, wanted: RowFilter = EVERYTHING) -> None:
        self._reader = reader
        self._wanted = wanted
        self.schema = schema_of(columns)
        self._group = reader.manifest.group
        self._ordered = reader.manifest.service is not Service.UU
        self._names: dict[int, str] = {}
        self._view_id: str | None = None

    def batches(
        self, start: Cut | Place | None = None, stop: Cut | Place | None = None, *, rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Rows between two points, by default of everything held; a view or gap is a batch of its own."""
        begin = self._reader.start() if start is None else start
        end = self._reader.end() if stop is None else stop
        gathered = MessageColumns()
        views = self._reader.view_entries()
        last: int | None = None
        for piece in self._reader.pieces(begin, end):
            header = piece.entry.header
            # A range that leaves entries out may leave out the view between two of them.
            if last is None or (header.entry > last + 1 and bisect(views, last) < bisect_left(views, header.entry)):
                if gathered.rows:
                    yield self._data(gathered)
                    gathered = MessageColumns()
                self._install(self._reader.install_before(header.entry))
            last = header.entry
            if piece.entry.kind is Kind.DATA:
                if not self._takes_data(header.source):
                    continue
                gathered.add(piece)
                if gathered.rows >= rows or gathered.value_bytes >= BATCH_BYTES:
                    yield self._data(gathered)
                    gathered = MessageColumns()
                continue
            if gathered.rows:
                yield self._data(gathered)
                gathered = MessageColumns()
            row = self._view(piece) if piece.entry.kind is Kind.VIEW else self._gap(piece)
            if self._wanted.takes(piece.entry.kind):
                yield row
        if gathered.rows:
            yield self._data(gathered)

    def _takes_data(self, source: int) -> bool:
        senders = self._wanted.senders
        if not self._wanted.takes(Kind.DATA):
            return False
        return not senders or self._name(source) in senders or format_member(MemberId(source)) in senders

    def _install(self, install: Install | None) -> None:
        if install is None:
            return
        view = install.view
        # As in a stream that is read live: one that has left may still have messages under way.
        self._names = {departure.member: departure.name for departure in install.departed}
        self._names |= dict(zip(view.members, view.names, strict=False))
        if self._ordered:
            self._view_id = str(view.id)

    def _name(self, member: int) -> str:
        return self._names.get(member) or format_member(MemberId(member))

    def _data(self, gathered: MessageColumns) -> pa.RecordBatch:
        return _DataBatch(gathered, self._group, self._view_id, self._name, self._ordered).batch(self.schema)

    def _view(self, piece: Piece) -> pa.RecordBatch:
        install = piece.entry.install()
        self._install(install)
        header = piece.entry.header
        return self._row(
            header,
            place=header.last_timestamp if self._ordered else header.place + 1,
            kind="view",
            view_id=str(install.view.id),
            members=[self._name(member) for member in install.view.members],
            joined=[self._name(member) for member in install.joined],
            departed=[self._name(departure.member) for departure in install.departed],
            branches=list(install.branches),
        )

    def _gap(self, piece: Piece) -> pa.RecordBatch:
        header = piece.entry.header
        place = header.last_timestamp if self._ordered else header.place
        return self._row(header, place=place, record=_GAP_RECORD, kind="gap", reason=piece.entry.gap().reason)

    def _row(self, header: EntryHeader, *, place: int, record: int = 0, **values: Any) -> pa.RecordBatch:
        values |= {
            "group_name": self._group,
            "position": f"{place:016x}-{header.source:016x}-{header.last_seq:016x}-{record:08x}",
            "timestamp": (header.last_timestamp >> COUNTER_BITS) + EPOCH_US,
            "lamport": header.last_timestamp,
        }
        arrays = [pa.array([values.get(field.name)], type=field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class _DataBatch:
    """Columns of data rows, each made when it is asked for."""

    def __init__(
        self, gathered: MessageColumns, group: str, view_id: str | None, name: Callable[[int], str], ordered: bool
    ) -> None:
        self._gathered = gathered
        self._group = group
        self._view_id = view_id
        self._name = name
        self._ordered = ordered
        self._rows = gathered.rows
        self._counts = gathered.counts
        self._made: dict[str, pa.Array] = {}

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([self._column(field) for field in schema], schema=schema)

    def _column(self, field: pa.Field) -> pa.Array:
        match field.name:
            case "value":
                offsets, data = self._gathered.values()
                return pa.Array.from_buffers(pa.binary(), self._rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
            case "seq":
                return self._per_message(self._gathered.seqs)
            case "lamport":
                return self._shared("lamport", lambda: self._per_message(self._gathered.timestamps))
            case "timestamp" | "sent_timestamp":
                return self._shared("timestamp", self._times)
            case "record":
                return pa.array(self._records())
            case "position":
                return self._positions()
            case "sender":
                return self._of_senders(self._name)
            case "sender_id":
                return self._of_senders(lambda member: format_member(MemberId(member)))
            case "kind":
                return pa.repeat(pa.scalar("data"), self._rows)
            case "group_name":
                return pa.repeat(pa.scalar(self._group), self._rows)
            case "view_id":
                return pa.repeat(pa.scalar(self._view_id, pa.string()), self._rows)
            case "headers":
                empty = pa.py_buffer(np.zeros(self._rows + 1, dtype=np.int32))
                return pa.Array.from_buffers(
                    field.type, self._rows, [None, empty], children=[pa.array([], type=field.type.value_type)]
                )
            case _:
                return pa.nulls(self._rows, field.type)

    def _shared(self, name: str, make: Callable[[], pa.Array]) -> pa.Array:
        """A column that is asked for twice, made once."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def _per_message(self, numbers: NDArray[np.uint64]) -> pa.Array:
        return pa.array(np.repeat(numbers.astype(np.int64), self._counts))

    def _times(self) -> pa.Array:
        times = (self._gathered.timestamps >> np.uint64(COUNTER_BITS)).astype(np.int64) + EPOCH_US
        return pa.array(np.repeat(times, self._counts)).view(_TIME)

    def _records(self) -> NDArray[np.int32]:
        begins = np.cumsum(self._counts) - self._counts
        return np.arange(self._rows, dtype=np.int32) - np.repeat(begins.astype(np.int32), self._counts)

    def _positions(self) -> pa.Array:
        gathered = self._gathered
        places = gathered.timestamps if self._ordered else gathered.places
        text = positions(places, gathered.senders, gathered.seqs, self._counts, self._records())
        offsets = np.arange(self._rows + 1, dtype=np.int32) * np.int32(POSITION_WIDTH)
        return pa.Array.from_buffers(
            pa.string(), self._rows, [None, pa.py_buffer(offsets), pa.py_buffer(text.reshape(-1))]
        )

    def _of_senders(self, name: Callable[[int], str]) -> pa.Array:
        found, inverse = np.unique(self._gathered.senders, return_inverse=True)
        names = pa.array([name(member) for member in found.tolist()], type=pa.string())
        if len(found) == 1:
            return pa.repeat(names[0], self._rows)
        indices = pa.array(np.repeat(inverse.astype(np.int32), self._counts))
        return names.take(indices)
