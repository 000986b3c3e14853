"""Ranges of `rso` out of logs of `rto`."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from intergroup_core.effects import Gap, Install
from intergroup_core.errors import RangeUnavailable
from intergroup_core.ids import MemberId, Service
from intergroup_core.log.arrow import ArrowRows
from intergroup_core.log.chain import describe, serves
from intergroup_core.log.cut import Cut, OrderCut, SourceCut
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.jumps import jumps_of
from intergroup_core.log.manifest import read_manifest
from intergroup_core.log.ordered_sources import OrderedSources, holder_of, source_readers
from intergroup_core.log.reader import LogReader
from intergroup_core.log.stream import StreamReader
from intergroup_core.sim.disk import SimDisk
from tests.builders import START, A, B, C
from tests.log_builders import Row, a_chunk, a_gap, a_history, an_install, messages_alike
from tests.sizes import sized
from tests.unit.log.stream_parts import a_part, a_writer, content, fetched
from tests.unit.log.test_transfer import cuts_of

FIRST = an_install(A, B)
NOTHING = SourceCut({A: 0, B: 0}, FIRST.view.id)
"""Where the senders of the first view stand when it begins."""


def an_order(history: list[Delivered], sources: SourceCut | None = NOTHING, log: int = 1) -> SimDisk:
    """A log of `rto` that says where its senders stood."""
    disk = SimDisk()
    writer = a_writer(disk, log, Service.RTO)
    if sources is not None:
        writer.bound(sources=sources)
    for delivered in history:
        writer.append(delivered)
    return disk


def a_source(history: list[Delivered], after: Cut = NOTHING) -> StreamReader:
    """The same in a log of `rso`."""
    return StreamReader([a_part(history, 9, Service.RSO, after)])


def ones_of(reader: StreamReader) -> list[SourceCut]:
    return [cut for cut in cuts_of(reader.parts[0]) if isinstance(cut, SourceCut)]


@settings(max_examples=sized(10, 150), deadline=None)
@given(seed=st.integers(0, 99_999))
def test_a_log_of_rto_gives_what_one_of_rso_with_the_same_in_it_gives(seed: int) -> None:
    rng = Random(seed)
    history = a_history(rng, 30)
    source, ordered = a_source(history), OrderedSources([an_order(history)])
    assert (ordered.first(), ordered.head()) == (source.first(), source.head())
    cuts = ones_of(source)
    if rng.random() < 0.5:
        cuts = [source.parts[0].lineage().shortened(cut) for cut in cuts]
    for _ in range(12):
        start, stop = (cuts[at] for at in sorted(rng.choices(range(len(cuts)), k=2)))
        try:
            expected = content(source, start, stop)
        except RangeUnavailable:
            expected = []
        if not expected:
            continue
        assert content(ordered, start, stop) == expected, f"seed {seed}"
        assert serves(ordered, describe(source, start, stop))
        kept = StreamReader([fetched(ordered, start, stop, 5)])
        assert serves(kept, describe(source, start, stop))


@settings(max_examples=sized(6, 60), deadline=None)
@given(seed=st.integers(0, 99_999))
def test_a_site_of_several_lives_gives_the_same_once_it_has_what_it_missed(seed: int) -> None:
    """What it fetched by `rto` says nothing of its senders; that follows from the part before it."""
    rng = Random(seed)
    history = [event for event in a_history(rng, 40) if not isinstance(event, Gap)]
    source, keeper = a_source(history), LogReader(an_order(history))
    places = sorted(rng.sample(range(2, len(history) - 1), 2))
    lives = [history[: places[0]], _with_view(history, places[1])]
    ends = [LogReader(an_order(history[:at])).head() for at in places]
    assert all(isinstance(end, OrderCut) for end in ends)
    live = SimDisk()
    writer = a_writer(live, 3, Service.RTO)
    writer.begin_with(lives[1][0], ends[1])  # type: ignore[arg-type]
    for event in lives[1][1:]:
        writer.append(event)
    parts = [an_order(lives[0]), fetched(keeper, *ends, 2), live]
    rng.shuffle(parts)
    ordered = OrderedSources(parts)
    cuts = ones_of(source)
    assert len(ordered.parts) == 3
    for _ in range(8):
        start, stop = (cuts[at] for at in sorted(rng.choices(range(len(cuts)), k=2)))
        assert content(ordered, start, stop) == content(source, start, stop), f"seed {seed}"


def _with_view(history: list[Delivered], at: int) -> list[Delivered]:
    """What follows a place, behind the view in force there."""
    views = [event for event in history[:at] if isinstance(event, Install)]
    return [views[-1], *history[at:]]


def test_a_log_that_does_not_say_where_its_senders_stood_gives_nothing() -> None:
    history: list[Delivered] = [FIRST, a_chunk(b"one", seq=1)]
    ordered = OrderedSources([an_order(history, None)])
    assert (ordered.first(), ordered.head(), ordered.parts) == (None, None, [])
    with pytest.raises(RangeUnavailable, match=r"the stream rto of \w+, by senders"):
        content(ordered, NOTHING, SourceCut({A: 1}, FIRST.view.id))
    # Where it begins with a view that speaks of all its members, that says it.
    said = an_install(A, B, before=((A, 4), (B, 0)))
    ordered = OrderedSources([an_order([said, a_chunk(b"five", seq=5)], None)])
    assert ordered.first() == SourceCut({A: 4, B: 0}, said.view.id)
    assert len(content(ordered, SourceCut({A: 4}, said.view.id), SourceCut({A: 5}, said.view.id))) == 1


def test_what_was_sent_before_a_log_begins_is_not_held() -> None:
    disk = SimDisk()
    writer = a_writer(disk, 1, Service.RTO)
    begin = SourceCut({A: 6, B: 2}, FIRST.view.id)
    writer.bound(sources=begin)
    writer.begin_with(FIRST, OrderCut(START + 20, MemberId((1 << 64) - 1), FIRST.view.id))
    writer.append(messages_alike(3, source=A, seq=7, timestamp=START + 30))
    ordered = OrderedSources([disk])
    stop = SourceCut({A: 9, B: 2}, FIRST.view.id)
    assert (ordered.first(), ordered.head()) == (begin, stop)
    assert len(content(ordered, begin, stop)) == 3
    for start in (SourceCut({A: 5, B: 2}, FIRST.view.id), SourceCut({A: 6, B: 1}, FIRST.view.id), SourceCut()):
        with pytest.raises(RangeUnavailable):
            content(ordered, start, stop)


def test_a_cut_that_names_one_who_was_gone_before_is_held_only_if_nothing_is_wanted_of_it() -> None:
    history: list[Delivered] = [FIRST, a_chunk(b"one", seq=1)]
    ordered = OrderedSources([an_order(history)])
    stays = SourceCut({A: 1, C: 5}, FIRST.view.id)
    assert len(content(ordered, SourceCut({C: 5}, FIRST.view.id), stays)) == 1
    for stop in (SourceCut({A: 1}, FIRST.view.id), SourceCut({A: 1, C: 6}, FIRST.view.id)):
        with pytest.raises(RangeUnavailable):
            content(ordered, SourceCut({C: 5}, FIRST.view.id), stop)
    # It returns: from where it says so on all of it is here, and before that nobody knows.
    back = an_install(A, B, C, start=START + 50, before=((C, 9),))
    history += [back, a_chunk(b"again", source=C, seq=10, timestamp=START + 60)]
    ordered = OrderedSources([an_order(history)])
    stop = SourceCut({A: 1, C: 10}, back.view.id)
    assert len(content(ordered, SourceCut({A: 1, C: 9}, FIRST.view.id), stop)) == 2
    assert len(content(ordered, SourceCut({A: 1}, FIRST.view.id), stop)) == 2
    with pytest.raises(RangeUnavailable):
        content(ordered, SourceCut({A: 1, C: 5}, FIRST.view.id), stop)


def test_what_one_member_had_beyond_the_cut_of_a_repair_is_not_held() -> None:
    """Neither while the sender is gone nor when it has returned; a cut behind the repair does not want it."""
    without = an_install(A, start=START + 50, before=((A, 1), (B, 2)))
    back = an_install(A, B, start=START + 90, before=((B, 8),))
    history: list[Delivered] = [
        FIRST,
        a_chunk(b"of anna", seq=1),
        messages_alike(2, source=B, seq=1, timestamp=START + 10),
        without,
        a_chunk(b"alone", seq=2, timestamp=START + 60),
    ]
    returned = [*history, back, a_chunk(b"again", source=B, seq=9, timestamp=START + 95)]
    beyond, start = SourceCut({A: 1, B: 4}, FIRST.view.id), SourceCut({A: 1, B: 1}, FIRST.view.id)
    for events in (history, returned):
        ordered = OrderedSources([an_order(events)])
        with pytest.raises(RangeUnavailable):
            content(ordered, start, beyond)
        behind = content(ordered, beyond, SourceCut({A: 2}, without.view.id))
        assert [each for each in behind if each != without] == content(
            ordered, SourceCut({A: 1}, without.view.id), SourceCut({A: 2}, without.view.id)
        )


def test_a_gap_in_a_log_of_rto_is_told_by_rso_and_another_log_that_has_it_whole_goes_before() -> None:
    late = a_chunk(b"five", source=B, seq=5, timestamp=START + 40)
    missed = messages_alike(3, source=B, seq=2, timestamp=START + 20)
    first = a_chunk(b"one", source=B, seq=1, timestamp=START + 5)
    gapped = OrderedSources([an_order([FIRST, first, a_gap(), FIRST, late])])
    whole = OrderedSources([an_order([FIRST, first, missed, late], log=2)])
    start, stop = SourceCut({B: 1}, FIRST.view.id), SourceCut({B: 5}, FIRST.view.id)
    assert a_gap() in content(gapped, start, stop)
    assert holder_of([gapped, whole], start, stop) is whole
    assert holder_of([gapped, whole], SourceCut({B: 4}, FIRST.view.id), stop) is gapped
    with pytest.raises(RangeUnavailable, match="; and "):
        holder_of([gapped, whole], start, SourceCut({B: 6}, FIRST.view.id))


@settings(max_examples=sized(6, 60), deadline=None)
@given(seed=st.integers(0, 99_999))
def test_what_was_fetched_in_the_place_of_a_gap_is_read_there_by_rso_too(seed: int) -> None:
    rng = Random(seed)
    history = [event for event in a_history(rng, 40) if not isinstance(event, Gap)]
    keeper, source = LogReader(an_order(history)), a_source(history)
    low, high = sorted(rng.sample(range(2, len(history) - 2), 2))
    views = [event for event in history[:high] if isinstance(event, Install)]
    disk = an_order([*history[:low], a_gap(), views[-1], *history[high:]], log=4)
    behind = LogReader(disk)
    jumps = jumps_of(behind)
    filler = fetched(keeper, jumps[0].begin, jumps[0].end or keeper.head(), 5)
    # Where the member came back into the view that it had been in, `rto` does not tell its cuts apart either.
    assume(views[-1] in history[low:high])
    ordered = OrderedSources([disk, filler])
    assert len(ordered.parts) == 3
    cuts = ones_of(source)
    for _ in range(8):
        start, stop = (cuts[at] for at in sorted(rng.choices(range(len(cuts)), k=2)))
        assert content(ordered, start, stop) == content(source, start, stop), f"seed {seed}"
        assert describe(ordered, start, stop) == describe(source, start, stop)
    start, stop = cuts[0], cuts[-1]
    assert rows_between(ordered, start, stop) == rows_between(source, start, stop)


def rows_between(reader: StreamReader, start: Cut, stop: Cut) -> list[Row]:
    return [
        row
        for part in reader.ranges(start, stop)
        for batch in ArrowRows(part.reader).batches(part.start, part.stop)
        for row in batch.to_pylist()
    ]


def test_rows_are_those_of_a_log_of_rso() -> None:
    history = [event for event in a_history(Random(8), 40) if not isinstance(event, Gap)]
    readers = source_readers([an_order(history), a_part(history, 9, Service.RSO, NOTHING)])
    cuts = ones_of(readers[0])
    rows = [rows_between(reader, cuts[2], cuts[-2]) for reader in readers]
    assert rows[0] == rows[1]
    assert len(rows[0]) > 50


def test_where_senders_stand_is_known_when_the_oldest_segments_are_gone() -> None:
    disk = SimDisk()
    writer = a_writer(disk, 1, Service.RTO)
    writer.bound(sources=NOTHING)
    joined = an_install(A, B, C, start=START + 60, before=((C, 3),))
    history: list[Delivered] = [FIRST, a_chunk(b"one", source=B, seq=1, timestamp=START + 5), joined]
    history += [a_chunk(bytes(200), source=A, seq=seq, timestamp=START + 100 + seq) for seq in range(1, 41)]
    for event in history:
        writer.append(event)
    writer.remove(writer.sealed[:2])
    begin = read_manifest(disk).sources
    assert begin is not None
    first = LogReader(disk).first_seqs()[A] - 1
    assert begin == SourceCut({A: first, B: 1, C: 3}, joined.view.id)
    ordered, source = OrderedSources([disk]), a_source(history)
    assert (ordered.first(), ordered.head()) == (begin, source.head())
    head = source.head()
    assert head is not None
    assert content(ordered, begin, head) == content(source, begin, head)
    with pytest.raises(RangeUnavailable):
        content(ordered, SourceCut({A: first - 1, B: 1, C: 3}, joined.view.id), head)


@pytest.mark.parametrize("service", [Service.RTO, Service.RSO])
def test_it_is_not_known_of_one_that_is_silent_since_a_gap_that_is_gone(service: Service) -> None:
    for speaks in (False, True):
        disk = SimDisk()
        writer = a_writer(disk, 1, service, NOTHING if service is Service.RSO else None)
        if service is Service.RTO:
            writer.bound(sources=NOTHING)
        history: list[Delivered] = [FIRST, a_chunk(b"one", source=B, seq=1, timestamp=START + 5), a_gap(), FIRST]
        if speaks:
            history.append(a_chunk(b"five", source=B, seq=5, timestamp=START + 50))
        history += [a_chunk(bytes(200), source=A, seq=seq, timestamp=START + 100 + seq) for seq in range(1, 41)]
        for event in history:
            writer.append(event)
        writer.remove(writer.sealed[:2])
        manifest = read_manifest(disk)
        assert ((manifest.sources or manifest.after) is not None) is speaks


def test_parts_before_one_that_knows_its_senders_are_left_out() -> None:
    history: list[Delivered] = [FIRST, *(a_chunk(b"%d" % seq, seq=seq, timestamp=START + seq) for seq in range(1, 9))]
    keeper = LogReader(an_order(history))
    cuts = cuts_of(keeper)
    first = fetched(keeper, OrderCut(0, MemberId(0)), cuts[4], 7)
    live = SimDisk()
    writer = a_writer(live, 8, Service.RTO)
    writer.bound(sources=SourceCut({A: 4, B: 0}, FIRST.view.id))
    assert isinstance(cuts[4], OrderCut)
    writer.begin_with(FIRST, cuts[4])
    for event in itertools.islice(history, 5, None):
        writer.append(event)
    ordered = OrderedSources([first, live])
    assert [reader.manifest.log for reader in ordered.parts] == [8]
    assert ordered.first() == SourceCut({A: 4, B: 0}, FIRST.view.id)
