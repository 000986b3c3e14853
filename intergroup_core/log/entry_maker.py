"""Makes entries out of deliveries: a header and what is to be written after it, nothing copied."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from intergroup_core.effects import Gap, Install
from intergroup_core.errors import LocalProtocolError
from intergroup_core.log.body import message_flags, packed_gap, packed_install, run_table, stated_records
from intergroup_core.log.context import Context
from intergroup_core.log.digest import checksum, frames_checksum, frames_digest, view_digest
from intergroup_core.log.entry import MAX_PAYLOAD_BYTES, UNKNOWN_RECORDS, EntryFlag, EntryHeader, Kind
from intergroup_core.wire.chunk import Chunk

Delivered = Chunk | Install | Gap
Part = bytes | memoryview


class Where(NamedTuple):
    """What an entry is found by."""

    source: int
    first_seq: int
    last_seq: int
    first_timestamp: int
    last_timestamp: int


class Shape(NamedTuple):
    """How much is in a data entry, and how it is laid out."""

    messages: int
    records: int
    frames: int
    runs: int
    frame_words: int


NO_MESSAGES = Shape(0, 0, 0, 0, 0)


class MadeEntry(NamedTuple):
    """An entry that is still to be written: all parts, the header among them."""

    header: EntryHeader
    parts: list[Part]


class EntryMaker:
    """Makes the entries of one log; each continues a context and says how many words are durable before it."""

    def __init__(self, log: int) -> None:
        self._log = log

    def entry(self, delivered: Delivered, context: Context, synced_words: int) -> MadeEntry:
        match delivered:
            case Chunk():
                return self._data(delivered, context, synced_words)
            case Install(view=view):
                start, leader, seq = view.id.start, view.id.leader, view.id.leader_seq
                where = Where(leader, seq, seq, start, start)
                body = packed_install(delivered)
                return self._body(Kind.VIEW, body, context, synced_words, where=where, digest=view_digest(view))
            case Gap():
                return self._body(Kind.GAP, packed_gap(delivered), context, synced_words)

    def carried(self, install: Install, context: Context, synced_words: int) -> MadeEntry:
        """The view in force, at the beginning of a segment."""
        return self._body(Kind.VIEW, packed_install(install), context, synced_words, flags=EntryFlag.CARRIED)

    def _data(self, chunk: Chunk, context: Context, synced_words: int) -> MadeEntry:
        runs = (*chunk.head, chunk.run)
        words = chunk.run.first_words if not chunk.head else np.concatenate([run.first_words for run in runs])
        table = run_table(chunk)
        payload_bytes = len(table) + chunk.nbytes
        if payload_bytes > MAX_PAYLOAD_BYTES:
            raise LocalProtocolError(f"a chunk of {payload_bytes} bytes; an entry has at most {MAX_PAYLOAD_BYTES}")
        where = Where(chunk.source, chunk.first_seq, chunk.last_seq, chunk.first_timestamp, chunk.last_timestamp)
        shape = Shape(
            chunk.count,
            min(stated_records(chunk), UNKNOWN_RECORDS),
            len(words),
            len(runs),
            int(chunk.run.frames.shape[1]),
        )
        header = EntryHeader(
            Kind.DATA,
            message_flags(chunk),
            payload_bytes,
            synced_words,
            context.entry,
            context.place,
            *where,
            *shape,
            context.chain,
            frames_digest(chunk.source, chunk.first_seq, words),
            self._log,
            frames_checksum((words,), table),
        )
        frames = [np.ascontiguousarray(run.frames).reshape(-1).data.cast("B") for run in runs]
        return MadeEntry(header, [header.packed(), table, *frames])

    def _body(
        self,
        kind: Kind,
        body: bytes,
        context: Context,
        synced_words: int,
        *,
        where: Where | None = None,
        flags: int = 0,
        digest: int = 0,
    ) -> MadeEntry:
        """A view or a gap; one that has no place of its own has that of what came last."""
        last = Where(context.source, context.seq, context.seq, context.timestamp, context.timestamp)
        padded = body + bytes(-len(body) % 8)
        header = EntryHeader(
            kind,
            flags,
            len(body),
            synced_words,
            context.entry,
            context.place,
            *(where or last),
            *NO_MESSAGES,
            context.chain,
            digest,
            self._log,
            checksum(padded),
        )
        return MadeEntry(header, [header.packed(), padded])
