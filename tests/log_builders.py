"""Builders for tests of the stable log: deliveries, logs on a simulated disk, and rows as a live reader sees them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from intergroup_core.api.events import Batch, Gap, Message, ViewChange
from intergroup_core.api.stream import Stream
from intergroup_core.delivery.assembly import Assembly
from intergroup_core.effects import Departure, Install
from intergroup_core.effects import Gap as GapEffect
from intergroup_core.ids import MemberId, Service, Timestamp, View, ViewId
from intergroup_core.log.arrow import COLUMNS, ArrowRows
from intergroup_core.log.cut import Cut
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.reader import LogReader, Place
from intergroup_core.log.writer import INDEX_EVERY, Durability, LogWriter, create_log, open_log
from intergroup_core.ports import Disk
from intergroup_core.sim.disk import SimDisk
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.headers import encode_headers
from intergroup_core.wire.labels import Label, encode_label
from intergroup_core.wire.run import Run
from tests.builders import GROUP, START, A, B, C, a_block, a_frame, a_message, laid_out, parsed

LOG = 0x1060
NAMES = {A: "anna", B: "bert", C: "carl"}
SOME_HEADERS = (b"", encode_headers([("trace", b"1"), ("of", None)]), encode_headers([("", b"")]), b"\xc1")
Row = dict[str, Any]


def chunk_of(frames: Sequence[bytes]) -> Chunk:
    """Whole messages out of frames that follow each other; a run ends where frames change their size."""
    assembly, found = Assembly(), None
    for _, alike in itertools.groupby(frames, key=len):
        for run in parsed(a_block(list(alike))):
            assert isinstance(run, Run)
            chunk = assembly.add(run)
            if chunk is not None:
                assert found is None, "these frames are several chunks"
                found = chunk
    assert found is not None
    return found


def a_chunk(
    *records: bytes, source: MemberId = A, seq: int = 1, timestamp: int = START + 1, body: int | None = None
) -> Chunk:
    """One message; `body` bytes of its payload are in each frame."""
    return chunk_of(a_message(records or (b"record",), sender=source, seq=seq, timestamp=timestamp, body=body))


def messages_alike(
    count: int,
    *,
    records: int = 1,
    source: MemberId = A,
    seq: int = 1,
    timestamp: int = START + 1,
    body: int | None = None,
) -> Chunk:
    """Several messages in one run."""
    frames: list[bytes] = []
    for number in range(count):
        each = [b"%04d:%03d" % (number, record) for record in range(records)]
        at = len(frames)
        frames += a_message(
            each, sender=source, seq=seq + at, timestamp=timestamp + at, body=body, even=body is not None
        )
    return chunk_of(frames)


def an_install(*members: MemberId, start: int = START, seq: int = 1, **fields: Any) -> Install:
    names = tuple(NAMES[member] for member in members)
    leader = min(members, default=A)
    return Install(View(id=ViewId(Timestamp(start), leader, seq), members=members, names=names), **fields)


def a_gap(reason: str = "behind the others", incarnation: MemberId = B, **fields: Any) -> GapEffect:
    return GapEffect(reason, incarnation, **fields)


def a_log(
    disk: Disk | None = None,
    *,
    service: Service = Service.RTO,
    durability: Durability = Durability.OS,
    segment_bytes: int = 1 << 20,
    index_every: int = INDEX_EVERY,
) -> LogWriter:
    """A new log on a disk of its own."""
    disk = disk if disk is not None else SimDisk()
    create_log(disk, log=LOG, group=GROUP, service=service)
    return open_log(disk, durability=durability, segment_bytes=segment_bytes, index_every=index_every)


def a_history(rng: Random, count: int, service: Service = Service.RTO) -> list[Delivered]:
    """Deliveries as a member of this service may see them: chunks of all shapes, views, and here and there a gap."""
    present, seqs, timestamp = [A, B], dict.fromkeys((A, B, C), 1), START
    history: list[Delivered] = [an_install(A, B, start=START, joined=(A, B))]
    while len(history) < count:
        timestamp += rng.randint(1, 5_000)
        choice = rng.random()
        if choice < 0.12:
            departed = tuple(Departure(member, NAMES[member], "left") for member in present if rng.random() < 0.3)
            stayed = [member for member in present if member not in {who.member for who in departed}]
            joined = [member for member in (A, B, C) if member not in present and rng.random() < 0.7] or (
                [] if stayed else [A]
            )
            present = sorted({*stayed, *joined})
            branches = ("elsewhere",) if rng.random() < 0.2 else ()
            history.append(
                an_install(
                    *present,
                    start=timestamp,
                    joined=tuple(joined),
                    departed=departed,
                    transitional=tuple(stayed),
                    branches=branches,
                    before=tuple((member, seqs[member] - 1) for member in (A, B, C) if rng.random() < 0.5),
                )
            )
        elif choice < 0.16:
            reborn = a_gap(incarnation=MemberId(1_000 + len(history)), unsure=rng.randint(0, 3))
            history += [reborn, an_install(*present, start=timestamp, seq=7)]
        else:
            source = rng.choice(present)
            chunk = _some_chunk(rng, source, seqs[source], timestamp)
            seqs[source] = chunk.last_seq + 1 + (rng.random() < 0.1)
            timestamp = chunk.last_timestamp
            history.append(chunk)
    return history


def _some_chunk(rng: Random, source: MemberId, seq: int, timestamp: int) -> Chunk:
    choice = rng.random()
    if choice < 0.3:
        shape = {"records": rng.randint(1, 3), "body": rng.choice((None, 16, 64))}
        return messages_alike(rng.randint(1, 6), source=source, seq=seq, timestamp=timestamp, **shape)
    if choice < 0.4:
        return chunk_of(
            [a_frame(sender=source, seq=seq, timestamp=timestamp, payload=rng.randbytes(rng.randint(0, 9)))]
        )
    records = [rng.randbytes(rng.randint(0, 40)) for _ in range(rng.randint(0, 8))]
    body = rng.choice((None, 16, 40, 64))
    if choice < 0.6:
        payload = a_payload_of_some_layout(rng, records)
        return chunk_of(
            a_message(sender=source, seq=seq, timestamp=timestamp, body=body, even=rng.random() < 0.5, payload=payload)
        )
    return chunk_of(a_message(records, sender=source, seq=seq, timestamp=timestamp, body=body, even=rng.random() < 0.5))


def a_payload_of_some_layout(rng: Random, values: Sequence[bytes]) -> bytes:
    """Some keys, headers, a label, or all of them; now and then one that is not sound."""
    keys = [rng.choice((None, b"", b"key", rng.randbytes(9))) for _ in values] if rng.random() < 0.5 else None
    headers = [rng.choice(SOME_HEADERS) for _ in values] if rng.random() < 0.5 else None
    label = rng.choice((b"", encode_label(a_label(version=rng.randint(0, 2))), b"none"))
    return laid_out(values, keys=keys, headers=headers, label=label) + b"!" * (rng.random() < 0.1)


def a_label(app: str = "query", version: int = 0, attempt: int = 1, run: str = "first") -> Label:
    return Label(app, run, version, attempt, 3_600)


def live_rows(history: Iterable[Delivered], service: Service = Service.RTO) -> list[Row]:
    """What somebody who reads the stream as it comes sees."""
    stream = Stream(GROUP, service)
    events = [
        event
        for delivered in history
        for found in stream.events(delivered)
        for event in (found.messages() if isinstance(found, Batch) else [found])
    ]
    return [_row(event) for event in events]


def _row(event: Message | ViewChange | Gap) -> Row:
    row: Row = dict.fromkeys(COLUMNS) | {
        name: getattr(event, name) for name in ("kind", "group_name", "position", "timestamp", "lamport")
    }
    match event:
        case Message():
            fields = ("sender", "sender_id", "seq", "record", "sent_timestamp", "view_id", "key", "value", "txn")
            headers = [{"key": key, "value": value} for key, value in event.headers]
            row |= {name: getattr(event, name) for name in fields} | {"headers": headers}
        case ViewChange():
            row |= {name: [peer.name for peer in getattr(event, name)] for name in ("members", "joined", "departed")}
            row |= {"view_id": event.view_id, "branches": list(event.branches)}
        case Gap():
            pass
    return row


def rows_of(
    disk: Disk, start: Cut | Place | None = None, stop: Cut | Place | None = None, columns: Sequence[str] = COLUMNS
) -> list[Row]:
    """What a log gives back."""
    rows = ArrowRows(LogReader(disk), columns)
    return [row for batch in rows.batches(start, stop) for row in batch.to_pylist()]


def what_was_delivered(delivered: Delivered) -> object:
    """A delivery by its content, to compare."""
    if isinstance(delivered, Chunk):
        return [(run.source, run.seq, run.frames.tobytes()) for run in (*delivered.head, delivered.run)]
    return delivered


def contents(reader: LogReader, first: int | None = None, stop: int | None = None) -> list[object]:
    """The deliveries a log holds, by their content; views that are only carried left out."""
    found: list[object] = []
    for entry in reader.entries(reader.first if first is None else first, stop):
        match entry.kind.name:
            case "DATA":
                found.append(what_was_delivered(entry.chunk()))
            case "VIEW" if not entry.header.carried:
                found.append(entry.install())
            case "GAP":
                found.append(entry.gap())
    return found
