"""Finding places in a log, and reading between them."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intergroup_core.errors import RangeUnavailable
from intergroup_core.ids import MemberId, Service, Timestamp
from intergroup_core.log import entries as entries_module
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.entry import Kind
from intergroup_core.log.manifest import Manifest
from intergroup_core.log.places import FOUND_CUTS
from intergroup_core.log.reader import LogReader, Place
from intergroup_core.log.writer import open_log
from intergroup_core.sim.disk import SimDisk
from intergroup_core.wire.chunk import Chunk
from tests.builders import START, A, B, C
from tests.log_builders import LOG, a_chunk, a_gap, a_history, a_log, an_install, messages_alike, rows_of
from tests.sizes import sized

SEGMENTS = (500, 2_000, 1 << 20)


def a_filled_log(seed: int, service: Service = Service.RTO, segment_bytes: int = 2_000) -> SimDisk:
    disk = SimDisk()
    log = a_log(disk, service=service, segment_bytes=segment_bytes)
    for delivered in a_history(Random(seed), 40, service):
        log.append(delivered)
    return disk


@settings(max_examples=sized(10, 100))
@given(seed=st.integers(0, 999), segment_bytes=st.sampled_from(SEGMENTS))
def test_every_message_of_rto_is_a_cut_and_what_follows_is_what_followed(seed: int, segment_bytes: int) -> None:
    disk = a_filled_log(seed, Service.RTO, segment_bytes)
    whole = rows_of(disk, columns=("kind", "lamport", "sender_id", "position"))
    reader = LogReader(disk)
    for at in Random(seed).sample(range(len(whole)), 5):
        row = whole[at]
        if row["kind"] != "data":
            continue
        sender = MemberId(int(row["sender_id"], 16))
        cut = OrderCut(row["lamport"], sender)
        last = max(
            n
            for n, each in enumerate(whole)
            if (each["lamport"], each["sender_id"]) == (row["lamport"], row["sender_id"])
        )
        columns = ("kind", "lamport", "sender_id", "position")
        assert rows_of(disk, cut, reader.end(), columns) == whole[last + 1 :]
        assert rows_of(disk, reader.start(), cut, columns) == whole[: last + 1]


@settings(max_examples=sized(10, 100))
@given(seed=st.integers(0, 999), segment_bytes=st.sampled_from(SEGMENTS))
def test_a_timestamp_is_found(seed: int, segment_bytes: int) -> None:
    disk = a_filled_log(seed, Service.RTO, segment_bytes)
    reader = LogReader(disk)
    whole = [row["lamport"] for row in rows_of(disk, columns=("lamport", "kind")) if row["kind"] != "gap"]
    for timestamp in (whole[0] - 1, whole[len(whole) // 2], whole[len(whole) // 2] + 1, whole[-1], whole[-1] + 1):
        place = reader.place_of_timestamp(timestamp)
        found = [row["lamport"] for row in rows_of(disk, place, None, ("lamport", "kind")) if row["kind"] != "gap"]
        assert found == [each for each in whole if each >= timestamp]


@settings(max_examples=sized(10, 100))
@given(seed=st.integers(0, 999), service=st.sampled_from(Service), segment_bytes=st.sampled_from(SEGMENTS))
def test_a_message_is_found_by_its_name(seed: int, service: Service, segment_bytes: int) -> None:
    disk = a_filled_log(seed, service, segment_bytes)
    reader = LogReader(disk)
    for entry in reader.entries(reader.first):
        if entry.kind is not Kind.DATA:
            continue
        run = entry.chunk().run
        for at, end in enumerate(run.ends):
            assert reader.place_of_message(run.source, run.seq + end) == Place(entry.header.entry, at)
    assert reader.place_of_message(A, 1 << 40) == reader.end()


def test_a_view_is_found_and_one_that_is_not_there_is_an_error() -> None:
    disk = SimDisk()
    log = a_log(disk, segment_bytes=300)
    first, second = an_install(A, B), an_install(B, start=START + 100)
    log.append(first)
    for at in range(5):
        log.append(a_chunk(b"x", seq=1 + at, timestamp=START + 1 + at))
    number = log.append(second)
    reader = LogReader(disk)
    assert reader.place_of_view(first.view.id) == Place(0)
    assert reader.place_of_view(second.view.id) == Place(number)
    with pytest.raises(RangeUnavailable, match="does not hold view"):
        reader.place_of_view(an_install(C).view.id)


def test_a_cut_in_a_view_is_found_although_the_order_began_again_after_a_gap() -> None:
    """After a gap the timestamps may be lower than before it; the view tells which of the two is meant."""
    disk = SimDisk()
    log = a_log(disk)
    early, late = an_install(A, start=START), an_install(B, start=START + 1_000)
    log.append(late)
    log.append(a_chunk(b"late", source=B, seq=1, timestamp=START + 1_001))
    log.append(a_gap())
    log.append(early)
    log.append(a_chunk(b"early", source=A, seq=1, timestamp=START + 1))
    log.append(a_chunk(b"next", source=A, seq=2, timestamp=START + 2))
    reader = LogReader(disk)
    assert reader.place_of(OrderCut(START + 1, A, early.view.id)) == Place(5)
    assert reader.place_of(OrderCut(START + 1_001, B, late.view.id)) == Place(2)


def test_a_range_of_rso_takes_of_each_sender_what_lies_between() -> None:
    disk = SimDisk()
    log = a_log(disk, service=Service.RSO)
    view = an_install(A, B)
    log.append(view)
    log.append(messages_alike(5, source=A, seq=1, timestamp=START + 1))
    log.append(messages_alike(5, source=B, seq=1, timestamp=START + 1))
    log.append(messages_alike(5, source=A, seq=6, timestamp=START + 6))
    start, stop = SourceCut({A: 2, B: 4}, view.view.id), SourceCut({A: 7, B: 4}, view.view.id)
    rows = rows_of(disk, start, stop, ("sender", "seq"))
    assert [(row["sender"], row["seq"]) for row in rows] == [("anna", seq) for seq in (3, 4, 5, 6, 7)]
    everything = rows_of(disk, SourceCut(), LogReader(disk).head())
    assert everything == rows_of(disk)
    with pytest.raises(RangeUnavailable, match="does not reach so far"):
        rows_of(disk, start, SourceCut({A: 70}, view.view.id))
    with pytest.raises(RangeUnavailable, match="both its ends"):
        rows_of(disk, start, LogReader(disk).end())


def test_in_rso_a_gap_belongs_to_the_view_behind_it() -> None:
    disk = SimDisk()
    log = a_log(disk, service=Service.RSO)
    first, second = an_install(A), an_install(A, start=START + 50)
    for delivered in (first, a_chunk(b"x", seq=1), a_gap(), second, a_chunk(b"y", seq=9, timestamp=START + 60)):
        log.append(delivered)
    rows = rows_of(disk, SourceCut({A: 1}, first.view.id), SourceCut({A: 9}, second.view.id), ("kind",))
    assert [row["kind"] for row in rows] == ["gap", "view", "data"]
    rows = rows_of(disk, SourceCut({}, first.view.id), SourceCut({A: 1}, first.view.id), ("kind",))
    assert [row["kind"] for row in rows] == ["data"]


@pytest.mark.parametrize("service", Service)
def test_the_head_is_behind_everything(service: Service) -> None:
    disk = a_filled_log(3, service)
    begin: Cut = {"uu": EntryCut(LOG, 0), "rso": SourceCut(), "rto": OrderCut(0, MemberId(0))}[service.value]
    assert rows_of(disk, begin, LogReader(disk).head()) == rows_of(disk)
    assert rows_of(disk, LogReader(disk).head(), LogReader(disk).head()) == []


def test_a_cut_of_another_log_is_refused() -> None:
    disk = a_filled_log(3, Service.UU)
    with pytest.raises(RangeUnavailable, match="the cut is of log 0000000000000005"):
        LogReader(disk).place_of(EntryCut(5, 3))
    with pytest.raises(RangeUnavailable, match="holds entries 0 to"):
        rows_of(disk, EntryCut(LOG, 3), EntryCut(LOG, 10_000))


def test_what_is_appended_is_seen_after_a_refresh() -> None:
    disk = SimDisk()
    log = a_log(disk, segment_bytes=700)
    log.append(an_install(A))
    reader = LogReader(disk)
    for at in range(12):
        log.append(a_chunk(b"x", seq=1 + at, timestamp=START + 1 + at))
        if at == 6:
            log.settle()
        assert reader.stop <= log.appended - 1
        reader.refresh()
        assert reader.stop == log.appended
        *_, last = reader.entries(reader.first)
        assert last.chunk().last_seq == 1 + at


def test_a_range_whose_beginning_was_removed_is_an_error_and_never_fewer_rows() -> None:
    for service in (Service.RTO, Service.RSO):
        disk = SimDisk()
        log = a_log(disk, service=service, segment_bytes=600)
        view = an_install(A)
        log.append(view)
        for at in range(12):
            log.append(a_chunk(b"x", seq=1 + at, timestamp=START + 1 + at))
        log.settle()
        log.remove(log.manifest.sealed[:2])
        open_log(disk, segment_bytes=600).close()
        reader = LogReader(disk)
        first = next(e.chunk() for e in reader.entries(reader.first) if e.kind is Kind.DATA)
        assert isinstance(first, Chunk)
        held, before = first.first_seq, first.first_seq - 1
        cuts: dict[int, Cut]
        if service is Service.RTO:
            cuts = {seq: OrderCut(START + seq, A, view.view.id) for seq in (before - 1, before, held)}
        else:
            cuts = {seq: SourceCut({A: seq}, view.view.id) for seq in (before - 1, before, held)}
        assert len(rows_of(disk, cuts[before], reader.head())) == 13 - held
        assert len(rows_of(disk, cuts[held], reader.head())) == 12 - held
        with pytest.raises(RangeUnavailable):
            rows_of(disk, cuts[before - 1], reader.head())


@pytest.mark.parametrize(
    ("settled", "when"),
    [(True, "the manifest was read"), (False, "the manifest was read"), (False, "the names were read")],
)
def test_a_segment_that_is_removed_while_one_looks_is_not_damage(
    monkeypatch: pytest.MonkeyPatch, settled: bool, when: str
) -> None:
    disk = SimDisk()
    log = a_log(disk, segment_bytes=600)
    for at in range(12):
        log.append(a_chunk(b"x", seq=1 + at, timestamp=START + 1 + at))
    if settled:
        log.settle()
    sealed = log.sealed
    read, look = entries_module.read_manifest, entries_module.tail_segments

    def read_and_remove(looked_at: SimDisk) -> Manifest:
        manifest = read(looked_at)
        monkeypatch.setattr(entries_module, "read_manifest", read)
        log.remove(sealed[:1])
        return manifest

    def look_and_remove(found: list[str], manifest: Manifest) -> list[int]:
        firsts = look(found, manifest)
        monkeypatch.setattr(entries_module, "tail_segments", look)
        log.remove(sealed[:1])
        return firsts

    if when == "the manifest was read":
        monkeypatch.setattr(entries_module, "read_manifest", read_and_remove)
    else:
        monkeypatch.setattr(entries_module, "tail_segments", look_and_remove)
    reader = LogReader(disk)
    assert (reader.damages, reader.first) == ((), sealed[1].first)


def test_a_cut_beyond_the_end_moves_with_the_log_and_one_within_it_stays() -> None:
    disk = SimDisk()
    log = a_log(disk)
    view = an_install(A)
    log.append(view)
    log.append(a_chunk(b"one", seq=1, timestamp=START + 10))
    reader = LogReader(disk)
    within = OrderCut(Timestamp(START + 10), A, view.view.id)
    beyond = OrderCut(Timestamp(START + 30), A, view.view.id)
    assert (reader.place_of(within), reader.place_of(beyond)) == (Place(2), Place(2))
    for number in (20, 40):
        log.append(a_chunk(b"more", seq=number, timestamp=START + number))
        reader.refresh()
        assert (reader.place_of(within), reader.place_of(beyond)) == (Place(2), Place(3))
    for at in range(2 * FOUND_CUTS):
        assert reader.place_of(OrderCut(Timestamp(START + at), A, view.view.id)).entry == 1 + (at >= 10) + (at >= 20)
