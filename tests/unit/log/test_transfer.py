"""Ranges on their way to another site: the same arrives, or nothing."""

from __future__ import annotations

from random import Random
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intergroup_core.errors import (
    IntergroupError,
    LocalProtocolError,
    LogFormat,
    RangeMalformed,
    RangeUnavailable,
)
from intergroup_core.ids import MemberId, Service
from intergroup_core.log.chain import describe
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.digest import checksum
from intergroup_core.log.entry import Kind
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.manifest import read_manifest
from intergroup_core.log.reader import LogReader
from intergroup_core.log.transfer import BLOCK_BYTES, RangeCut, RangeSink, RangeSource
from intergroup_core.log.writer import LogWriter, create_log, open_log
from intergroup_core.sim.disk import SimDisk
from tests.builders import GROUP, START, A, B
from tests.log_builders import (
    a_chunk,
    a_gap,
    a_history,
    a_log,
    an_install,
    messages_alike,
    rows_of,
    what_was_delivered,
)
from tests.sizes import sized

NOUGHT = OrderCut(0, MemberId(0))
MUTATIONS = 200


def a_reader(history: list[Delivered], service: Service = Service.RTO, segment_bytes: int = 2_000) -> LogReader:
    disk = SimDisk()
    log = a_log(disk, service=service, segment_bytes=segment_bytes)
    for delivered in history:
        log.append(delivered)
    return LogReader(disk)


def cuts_of(reader: LogReader) -> list[RangeCut]:
    """The cut behind every message and view of a log, in order."""
    cuts: list[RangeCut] = []
    seqs: dict[MemberId, int] = {}
    view = None
    for entry in reader.entries(reader.first):
        if entry.kind is Kind.DATA:
            names = [(message.timestamp, message.source, message.seq) for message in entry.chunk().messages()]
        elif entry.kind is Kind.VIEW and not entry.header.carried:
            view = entry.install().view.id
            names = [(view.start, view.leader, 0)]
        else:
            continue
        for timestamp, source, seq in names:
            if seq:
                seqs[source] = seq
            in_order = reader.manifest.service is Service.RTO
            cuts.append(OrderCut(timestamp, source, view) if in_order else SourceCut(dict(seqs), view))
    return cuts


def a_sink(start: RangeCut, stop: RangeCut, **fields: Any) -> tuple[SimDisk, LogWriter, RangeSink]:
    disk = SimDisk()
    service = Service.RTO if isinstance(start, OrderCut) else Service.RSO
    create_log(disk, log=0xF00, group=GROUP, service=service, after=start)
    writer = open_log(disk, segment_bytes=900)
    return disk, writer, RangeSink(writer, start, stop, **fields)


def content(reader: LogReader, start: Cut, stop: Cut) -> list[object]:
    """Messages, views and gaps of a range, bundled or not."""
    found: list[object] = []
    for piece in reader.pieces(start, stop):
        match piece.entry.kind:
            case Kind.DATA:
                found.append(what_was_delivered(piece.chunk()))
            case Kind.VIEW:
                found.append(piece.entry.install())
            case Kind.GAP:
                found.append(piece.entry.gap())
    return found


def rows(reader: LogReader, start: Cut, stop: Cut) -> list[dict[str, Any]]:
    return rows_of(reader._disk, start, stop)


@settings(max_examples=sized(20, 400), deadline=None)
@given(seed=st.integers(0, 9_999), service=st.sampled_from([Service.RTO, Service.RSO]))
def test_what_arrives_is_what_was_there(seed: int, service: Service) -> None:
    rng = Random(seed)
    source = a_reader(a_history(rng, 40, service), service)
    start, stop = (cuts_of(source)[at] for at in sorted(rng.sample(range(len(cuts_of(source))), 2)))
    disk, writer, sink = a_sink(start, stop, expected=describe(source, start, stop))
    for block in RangeSource(source, start, stop):
        assert not sink.finished
        sink.take(block)
    assert sink.finished
    sink.keep()
    there = LogReader(disk)
    assert content(there, start, stop) == content(source, start, stop)
    assert rows(there, start, stop) == rows(source, start, stop)
    assert describe(there, start, stop) == sink.described == describe(source, start, stop)
    assert rows_of(disk) == rows(source, start, stop)
    assert (there.manifest.after, there.manifest.upto) == (start, stop)
    writer.close()


def a_small_history() -> list[Delivered]:
    return [
        an_install(A, B, joined=(A, B)),
        messages_alike(6, source=A, seq=1, timestamp=START + 1),
        a_chunk(b"long" * 60, source=B, seq=1, timestamp=START + 10, body=64),
        an_install(A, start=START + 30),
        messages_alike(4, source=A, seq=7, timestamp=START + 31, records=3, body=16),
        a_gap("behind", unsure=2),
        an_install(A, start=START + 90),
        messages_alike(6, source=A, seq=40, timestamp=START + 91),
    ]


def test_an_entry_is_cut_where_the_range_begins_and_ends() -> None:
    source = a_reader(a_small_history())
    start, stop = OrderCut(START + 3, A), OrderCut(START + 93, A)
    disk, _, sink = a_sink(start, stop)
    for block in RangeSource(source, start, stop):
        sink.take(block)
    found = rows_of(disk, columns=("kind", "seq", "sender", "record", "view_id"))
    assert [row["kind"] for row in found if row["kind"] != "data"] == ["view", "gap", "view"]
    assert [row["seq"] for row in found if row["record"] == 0][:3] == [4, 5, 6]
    assert [row["seq"] for row in found if row["kind"] == "data"][-3:] == [40, 41, 42]
    assert found[0]["sender"] == "anna"
    assert found[0]["view_id"] == str(an_install(A, B).view.id)


def test_any_log_of_rto_can_give_a_range_of_rso() -> None:
    """Also one that ends between two messages, where the log that took it has none of that seq."""
    source = a_reader(a_small_history())
    first, second = an_install(A, B).view.id, an_install(A, start=START + 30).view.id
    start, stop = SourceCut({A: 2}, first), SourceCut({A: 8, B: 4}, second)
    disk, _, sink = a_sink(start, stop)
    for block in RangeSource(source, start, stop):
        sink.take(block)
    sink.keep()
    assert content(LogReader(disk), start, stop) == content(source, start, stop)


def test_blocks_end_where_they_are_large_enough() -> None:
    size = 60_000
    history: list[Delivered] = [an_install(A)]
    history += [a_chunk(bytes(size), seq=1 + at, timestamp=START + 1 + at) for at in range(60)]
    source = a_reader(history, segment_bytes=1 << 20)
    start, stop = NOUGHT, OrderCut(START + 60, A)
    disk, _, sink = a_sink(start, stop)
    sizes = []
    for block in RangeSource(source, start, stop):
        sizes.append(len(block))
        sink.take(block)
    assert len(sizes) == 4
    assert max(sizes) < BLOCK_BYTES + size + 1_000
    assert content(LogReader(disk), start, stop) == content(source, start, stop)


def test_a_range_of_nothing_is_complete_too() -> None:
    source = a_reader(a_small_history())
    start, stop = OrderCut(START + 40, A), OrderCut(START + 41, A)
    disk, _, sink = a_sink(start, stop)
    for block in RangeSource(source, start, stop):
        sink.take(block)
    sink.keep()
    assert (LogReader(disk).stop, read_manifest(disk).upto) == (0, stop)


def blocks_of(source: LogReader, start: RangeCut, stop: RangeCut) -> list[list[Any]]:
    """Every entry in a block of its own, so that what is changed is one of many."""
    entries = [entry for block in RangeSource(source, start, stop) for entry in msgpack.unpackb(block)[2:]]
    return [[1, number, entry] for number, entry in enumerate(entries)]


def outcome(blocks: list[bytes], start: RangeCut, stop: RangeCut) -> list[dict[str, Any]] | None:
    """The rows that a sink believes to be the range; None where it refuses or waits for more."""
    disk, _, sink = a_sink(start, stop)
    try:
        for block in blocks:
            sink.take(block)
    except IntergroupError:
        assert not sink.finished
        return None
    return rows_of(disk) if sink.finished else None


@pytest.mark.parametrize("service", [Service.RTO, Service.RSO])
def test_a_block_that_was_changed_on_the_way_is_refused_or_harmless(service: Service) -> None:
    source = a_reader(a_history(Random(11), 40, service), service)
    cuts = cuts_of(source)
    start, stop = cuts[2], cuts[-3]
    whole = [msgpack.packb(block) for block in blocks_of(source, start, stop)]
    expected = rows(source, start, stop)
    assert outcome(whole, start, stop) == expected
    refused = 0
    for seed in range(MUTATIONS):
        rng = Random(seed)
        blocks = [bytearray(block) for block in whole]
        at = rng.randrange(len(blocks))
        match rng.randrange(7):
            case 0:
                blocks[at][rng.randrange(len(blocks[at]))] ^= 1 << rng.randrange(8)
            case 1:
                del blocks[at]
            case 2:
                blocks.insert(at, bytearray(whole[rng.randrange(len(whole))]))
            case 3:
                other = rng.randrange(len(blocks))
                blocks[at], blocks[other] = blocks[other], blocks[at]
            case 4:
                del blocks[at][rng.randrange(len(blocks[at])) :]
            case 5:
                blocks[at] = bytearray(rng.randbytes(rng.randint(0, 60)))
            case _:
                where = rng.randrange(len(blocks[at]))
                blocks[at][where : where + 8] = rng.randbytes(8)
        found = outcome([bytes(block) for block in blocks], start, stop)
        assert found in (None, expected), f"mutation {seed} brought other rows"
        refused += found is None
    assert refused > MUTATIONS * 3 // 4


NONSENSE: list[Any] = [None, True, -1, 1 << 63, 1.5, "text", b"", b"x" * 48, [], [1], [[8, b"x"]], [[48, b"x" * 48]]]


@pytest.mark.parametrize("tag", range(6))
def test_nonsense_in_any_place_of_an_entry_is_refused(tag: int) -> None:
    source = a_reader(a_small_history())
    start, stop = NOUGHT, OrderCut(START + 93, A)
    sound = {block[2][0]: block[2] for block in blocks_of(source, start, stop)}
    entry = sound.get(tag, [tag, b"body", checksum(b"body")])
    for value in NONSENSE:
        for at in range(len(entry)):
            *_, sink = a_sink(start, stop)
            block = msgpack.packb([1, 0, [*entry[:at], value, *entry[at + 1 :]]])
            with pytest.raises((RangeMalformed, LogFormat)):
                sink.take(block)
    for body in (msgpack.packb(each) for each in (7, [], [1] * 3, [1] * 7, ["x", 1, -1], ["x" * 9_999, 1, 1])):
        *_, sink = a_sink(start, stop)
        with pytest.raises(RangeMalformed):
            sink.take(msgpack.packb([1, 0, [tag, body, checksum(body)]]))


def test_another_version_is_named() -> None:
    *_, sink = a_sink(NOUGHT, OrderCut(START, A))
    with pytest.raises(LogFormat, match="a block of version 9, and this version of intergroup takes version 1"):
        sink.take(msgpack.packb([9]))


def test_what_was_not_planned_is_refused() -> None:
    history = a_small_history()
    source = a_reader(history)
    history[2] = a_chunk(b"LONG" * 60, source=B, seq=1, timestamp=START + 10, body=64)
    start, stop = OrderCut(START + 3, A), OrderCut(START + 93, A)
    *_, sink = a_sink(start, stop, expected=describe(a_reader(history), start, stop))
    (block,) = RangeSource(source, start, stop)
    with pytest.raises(RangeUnavailable, match="than was planned; fetch it from another one"):
        sink.take(block)
    assert not sink.finished
    with pytest.raises(LocalProtocolError, match="not complete"):
        sink.keep()


def test_messages_of_another_group_are_refused() -> None:
    source = a_reader(a_small_history())
    start, stop = NOUGHT, OrderCut(START + 93, A)
    disk = SimDisk()
    create_log(disk, log=3, group="another", service=Service.RTO)
    sink = RangeSink(open_log(disk), start, stop)
    (block,) = RangeSource(source, start, stop)
    with pytest.raises(RangeMalformed, match="not one, or not sound"):
        sink.take(block)


def test_a_range_is_taken_into_an_empty_log_of_its_service() -> None:
    start, stop = NOUGHT, OrderCut(START + 93, A)
    filled = a_log()
    filled.append(an_install(A))
    for writer in (filled, a_log(service=Service.RSO)):
        with pytest.raises(LocalProtocolError, match="an empty log of its own service"):
            RangeSink(writer, start, stop)
    with pytest.raises(LocalProtocolError, match="an empty log of its own service"):
        RangeSink(a_log(service=Service.UU), EntryCut(1, 0), EntryCut(1, 4))  # type: ignore[arg-type]
    _, writer, _ = a_sink(start, stop)
    with pytest.raises(LocalProtocolError, match="begins behind 0000"):
        RangeSink(writer, stop, stop)


def test_a_log_that_was_begun_cannot_begin_with_a_view_from_before() -> None:
    log = a_log()
    log.append(an_install(A))
    with pytest.raises(LocalProtocolError, match="has entries already"):
        log.carry(an_install(B))
