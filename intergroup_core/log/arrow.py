"""Rows of a log as Arrow batches with the columns of a Spark read."""

from __future__ import annotations

from bisect import bisect, bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from intergroup_core.effects import Install
from intergroup_core.errors import ConfigError
from intergroup_core.ids import COUNTER_BITS, EPOCH_US, MemberId, Service, format_member
from intergroup_core.log.choice import All, Choice
from intergroup_core.log.cut import Cut
from intergroup_core.log.data_batch import DataBatch, Moved
from intergroup_core.log.entry import EntryHeader, Kind
from intergroup_core.log.messages import MessageColumns
from intergroup_core.log.reader import LogReader, Piece, Place, each_gap_once

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

    def __init__(
        self,
        reader: LogReader,
        columns: Sequence[str] = COLUMNS,
        wanted: RowFilter = EVERYTHING,
        *,
        choice: Choice | None = None,
        moved: Moved | None = None,
        told: set[MemberId] | None = None,
    ) -> None:
        """Gaps in `told` are left out, and others put there: who reads several logs has each of them once."""
        self._reader = reader
        self._wanted = wanted
        self._choice = choice if choice is not None else All()
        self._moved = moved
        self._told = told
        self.ordinal = moved.ordinal if moved is not None else 0
        """Of the next message of a transaction."""
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
        gathered = self._columns()
        views = self._reader.view_entries()
        last: int | None = None
        # What is left out need not be sound, and is not looked through.
        chosen = not self._choice.every
        pieces = self._reader.pieces(begin, end, check=not chosen)
        for piece in pieces if self._told is None else each_gap_once(pieces, self._told):
            header = piece.entry.header
            if chosen and piece.entry.kind is Kind.DATA and not self._choice.may_take(piece):
                continue
            if chosen:
                piece.entry.check()
            # A range that leaves entries out may leave out the view between two of them.
            if last is None or (header.entry > last + 1 and bisect(views, last) < bisect_left(views, header.entry)):
                if gathered.rows:
                    yield self._data(gathered)
                    gathered = self._columns()
                self._install(self._reader.install_before(header.entry))
            last = header.entry
            if piece.entry.kind is Kind.DATA:
                if self._takes_data(header.source):
                    gathered.add(piece)
                elif self._moved is not None:
                    gathered.pass_over(piece)
                self.ordinal = gathered.ordinal
                if gathered.rows >= rows or gathered.value_bytes >= BATCH_BYTES:
                    yield self._data(gathered)
                    gathered = self._columns()
                continue
            if gathered.rows:
                yield self._data(gathered)
                gathered = self._columns()
            row = self._view(piece) if piece.entry.kind is Kind.VIEW else self._gap(piece)
            if self._wanted.takes(piece.entry.kind):
                yield row
        if gathered.rows:
            yield self._data(gathered)

    def _columns(self) -> MessageColumns:
        return MessageColumns(self._choice, self.ordinal)

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
        batch = DataBatch(gathered, self._group, self._view_id, self._name, self._ordered, self._moved)
        return batch.batch(self.schema)

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
