"""Streams of several parts: read across those that continue each other, and holes that are known."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from intergroup_core.effects import Gap, Install
from intergroup_core.errors import LogDamaged, RangeUnavailable
from intergroup_core.ids import MemberId, Service
from intergroup_core.log.arrow import ArrowRows
from intergroup_core.log.chain import describe
from intergroup_core.log.cut import BEHIND_ALL, Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.entry import Kind
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.manifest import MANIFEST, Manifest, write_manifest
from intergroup_core.log.reader import LogReader
from intergroup_core.log.source_range import wanted_of
from intergroup_core.log.stream import StreamReader
from intergroup_core.log.transfer import RangeCut, RangeSink, RangeSource
from intergroup_core.log.writer import create_log, open_log
from intergroup_core.sim.disk import SimDisk
from intergroup_core.wire.chunk import Chunk
from tests.builders import GROUP, START, A, B
from tests.log_builders import a_chunk, a_history, an_install, messages_alike
from tests.sizes import sized
from tests.unit.log.stream_parts import a_part, a_writer, content, everything, fetched
from tests.unit.log.test_transfer import a_reader, cuts_of

SERVICES = (Service.RTO, Service.RSO)
BOTH = pytest.mark.parametrize("service", SERVICES)


def shortened(cut: RangeCut, source: LogReader) -> RangeCut:
    """In `rso` a cut may name all senders there ever were, or leave out those of which the views say where they are."""
    return source.lineage().shortened(cut) if isinstance(cut, SourceCut) else cut


def are_alike(source: LogReader, ones: Sequence[Cut | None], others: Sequence[Cut]) -> bool:
    """Whether nothing lies between cuts, whatever they name; of a gap nobody can tell by a cut whether he was told."""
    for one, other in zip(ones, others, strict=True):
        assert one is not None
        if isinstance(one, SourceCut):
            between = [*content(source, one, other), *content(source, other, one)]
            if any(not isinstance(each, Gap) for each in between):
                return False
        elif one != other:
            return False
    return True


def check_gaps(source: LogReader, found: list[object], start: Cut, stop: Cut) -> None:
    """What is told of gaps in `rso`: each of them once and in its order, unless the start is behind it, none that never
    was, and one for all that was skipped between the cuts, where the sender's row of messages has the hole."""
    assert isinstance(start, SourceCut)
    assert isinstance(stop, SourceCut)
    gaps = {entry.gap().incarnation: entry.header.entry for entry in source.entries(0) if entry.kind is Kind.GAP}
    told = {gaps[each.incarnation]: at for at, each in enumerate(found) if isinstance(each, Gap)}
    assert sum(isinstance(each, Gap) for each in found) == len(told)
    begins = source.place_of_view(start.view).entry if start.view is not None else source.first
    ahead = [entry for entry in told if entry > begins]
    assert ahead == sorted(ahead)
    wanted = wanted_of(source.lineage().all_named(start), source.lineage().all_named(stop))
    for skip in source.skips():
        if not skip.is_crossed(*wanted.get(skip.source, (0, 0))):
            continue
        places = [at for entry, at in told.items() if skip.first_gap <= entry <= skip.last_gap]
        assert places, f"{skip} between {start} and {stop}"
        own = [(at, each[1]) for at, each in enumerate(found) if isinstance(each, tuple) and each[0] == skip.source]
        assert all(at < places[-1] for at, seq in own if seq <= skip.low)
        assert all(at > places[0] for at, seq in own if seq > skip.high)


def gaps_in(found: list[object]) -> set[MemberId]:
    return {each.incarnation for each in found if isinstance(each, Gap)}


@settings(max_examples=sized(25, 600), deadline=None)
@example(seed=174, service=Service.RSO)
@example(seed=1_234, service=Service.RSO)
@example(seed=6_492, service=Service.RSO)
@example(seed=8_472, service=Service.RSO)
@given(seed=st.integers(0, 99_999), service=st.sampled_from(SERVICES))
def test_a_range_is_given_whole_where_the_parts_hold_it_and_refused_where_they_do_not(
    seed: int, service: Service
) -> None:
    rng = Random(seed)
    history = a_history(rng, 30, service)
    # In rso a gap has no place of its own, but for what it skipped: where it is told depends on the parts.
    vague = service is Service.RSO and any(isinstance(event, Gap) for event in history)
    source = a_reader(history, service)
    cuts = cuts_of(source)
    if rng.random() < 0.5:
        cuts = [shortened(cut, source) for cut in cuts]
    spans = [tuple(sorted(rng.sample(range(len(cuts)), 2))) for _ in range(rng.randint(1, 5))]
    bounds = sorted({at for span in spans for at in span})
    disks = [fetched(source, cuts[low], cuts[high], 1 + number) for number, (low, high) in enumerate(spans)]
    rng.shuffle(disks)
    stream = StreamReader(disks)
    merged: list[list[int]] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    holes = [(cuts[one[1]], cuts[other[0]]) for one, other in itertools.pairwise(merged)]
    assert len(stream.holes()) == len(holes)
    ends = [end for hole in stream.holes() for end in hole]
    assert are_alike(source, ends, [end for hole in holes for end in hole])
    assert are_alike(source, [stream.first(), stream.head()], [cuts[merged[0][0]], cuts[merged[-1][1]]])
    for _ in range(8):
        low, high = sorted(rng.choices([*bounds, *range(len(cuts))], k=2))
        start, stop = cuts[low], cuts[high]
        if any(one <= low and high <= other for one, other in merged):
            found, expected = content(stream, start, stop), content(source, start, stop)
            again = content(StreamReader([fetched(stream, start, stop, 99)]), start, stop)
            assert again == found, f"seed {seed}"
            if vague:
                check_gaps(source, found, start, stop)
                assert gaps_in(found) == gaps_in(expected), f"seed {seed}"
                found, expected = ([each for each in some if not isinstance(each, Gap)] for some in (found, expected))
            else:
                assert describe(stream, start, stop) == describe(source, start, stop)
            assert found == expected, f"seed {seed}"
        elif content(source, start, stop):
            with pytest.raises(RangeUnavailable):
                content(stream, start, stop)


def first_life() -> list[Delivered]:
    return [
        an_install(A, B, joined=(A, B)),
        messages_alike(4, source=A, seq=1, timestamp=START + 1),
        a_chunk(b"of bert", source=B, seq=1, timestamp=START + 8),
    ]


def meanwhile() -> list[Delivered]:
    return [
        messages_alike(3, source=B, seq=2, timestamp=START + 11),
        an_install(B, start=START + 20),
        messages_alike(3, source=B, seq=5, timestamp=START + 21),
    ]


def second_life() -> list[Delivered]:
    return [
        an_install(A, B, start=START + 40, joined=(A,)),
        messages_alike(5, source=B, seq=8, timestamp=START + 41),
        messages_alike(2, source=A, seq=1 << 20, timestamp=START + 50),
    ]


OTHERS_VIEW = an_install(B, start=START + 20).view.id
RETURN = SourceCut({A: 4, B: 7}, OTHERS_VIEW)
"""Where the second life begins."""


@BOTH
def test_a_site_that_was_away_has_a_hole_until_it_fetches_it(service: Service) -> None:
    keeper = a_reader([*first_life(), *meanwhile(), *second_life()], service)
    after = RETURN if service is Service.RSO else None
    parts = [a_part(first_life(), 1, service), a_part(second_life(), 2, service, after)]
    stream = StreamReader(parts)
    ((start, stop),) = stream.holes()
    first, head = stream.first(), stream.head()
    assert start == LogReader(parts[0]).head()
    assert first is not None
    assert head is not None
    with pytest.raises(RangeUnavailable, match=rf"the stream {service.value} of {GROUP} has a hole between .* fetch"):
        content(stream, first, keeper.head())
    parts.append(fetched(keeper, start, stop, 3))
    stream.refresh(parts)
    assert stream.holes() == []
    assert [reader.manifest.log for reader in stream.parts] == [1, 3, 2]
    assert everything(stream) == content(keeper, first, keeper.head())
    assert stream.head() == keeper.head()


@BOTH
def test_rows_are_the_same_in_however_many_parts_they_lie(service: Service) -> None:
    source = a_reader(a_history(Random(5), 40, service), service)
    cuts = cuts_of(source)
    bounds = [0, 9, 10, 17, len(cuts) - 1]
    spans = itertools.pairwise(bounds)
    stream = StreamReader([fetched(source, cuts[low], cuts[high], 1 + low) for low, high in spans])
    found = [
        row
        for part in stream.ranges(cuts[3], cuts[-2])
        for batch in ArrowRows(part.reader).batches(part.start, part.stop)
        for row in batch.to_pylist()
    ]
    rows = ArrowRows(source).batches(cuts[3], cuts[-2])
    assert found == [row for batch in rows for row in batch.to_pylist()]


def test_a_damaged_part_is_a_hole_and_no_more_than_that() -> None:
    keeper = a_reader([*first_life(), *meanwhile(), *second_life()])
    first, last = a_part(first_life(), 1), a_part(second_life(), 3)
    ((start, stop),) = StreamReader([first, last]).holes()
    middle = fetched(keeper, start, stop, 2)
    stream = StreamReader([first, middle, last])
    assert (stream.holes(), stream.errors) == ([], [])
    middle.flip_bit(MANIFEST, 30, 1)
    stream.refresh()
    assert len(stream.holes()) == 1
    assert [type(error) for error in stream.errors] == [LogDamaged]


@BOTH
def test_a_hole_in_which_nothing_was_sent_is_closed_by_a_part_without_entries(service: Service) -> None:
    joined = an_install(A, B, start=START + 40)
    before, behind = first_life(), [joined, *second_life()[1:]]
    after: dict[Service, Cut] = {
        Service.RTO: OrderCut(START + 35, A, an_install(A, B).view.id),
        Service.RSO: SourceCut({A: 4, B: 3}, an_install(A, B).view.id),
    }
    keeper = a_reader([*before, *behind], service)
    parts = [a_part(before, 1, service), a_part(behind, 2, service, after[service])]
    stream = StreamReader(parts)
    ((start, stop),) = stream.holes()
    assert stop == after[service]
    part = SimDisk()
    writer = a_writer(part, 3, service, start)
    writer.bound(upto=stop)
    stream.refresh([*parts, part])
    assert stream.holes() == []
    assert everything(stream) == content(keeper, keeper_cut(keeper, 0), keeper.head())


def keeper_cut(keeper: LogReader, at: int) -> RangeCut:
    return cuts_of(keeper)[at]


@BOTH
def test_a_part_that_begins_where_another_ends_continues_it(service: Service) -> None:
    keeper = a_reader([*first_life(), *second_life()], service)
    first = a_part(first_life(), 1, service)
    second = a_part(second_life(), 2, service, LogReader(first).head())
    stream = StreamReader([second, first])
    assert stream.holes() == []
    assert everything(stream) == content(keeper, keeper_cut(keeper, 0), keeper.head())


def test_a_member_that_starts_in_the_midst_of_a_view_has_a_hole_before_it() -> None:
    """It is told the view, which began before it did."""
    view = an_install(A, B)
    before, behind = (messages_alike(3, source=A, seq=at, timestamp=START + at) for at in (1, 4))
    keeper = a_reader([view, before, behind])
    fetching = fetched(keeper, OrderCut(0, MemberId(0)), OrderCut(START, A, view.view.id), 1)
    stream = StreamReader([fetching, a_part([view, behind], 2)])
    ((start, stop),) = stream.holes()
    assert len(content(keeper, start, stop)) == 3
    first, head = stream.first(), stream.head()
    assert first is not None
    assert head is not None
    with pytest.raises(RangeUnavailable, match="has a hole"):
        content(stream, first, head)
    stream.refresh([fetching, fetched(keeper, start, stop, 3), a_part([view, behind], 2)])
    assert everything(stream) == content(keeper, first, head)


def test_a_newcomer_that_begins_where_another_log_ends_continues_it_though_it_knows_only_the_timestamp() -> None:
    view = an_install(A, B)
    before, behind = (messages_alike(3, source=A, seq=at, timestamp=START + at) for at in (1, 4))
    keeper = a_reader([view, before, behind])
    first = a_part([view, before], 1)
    head = LogReader(first).head()
    assert isinstance(head, OrderCut)
    second = SimDisk()
    writer = a_writer(second, 2, Service.RTO)
    writer.begin_with(view, OrderCut(head.timestamp, BEHIND_ALL, head.view))
    writer.append(behind)
    stream = StreamReader([first, second])
    assert stream.holes() == []
    assert everything(stream) == content(keeper, keeper_cut(keeper, 0), keeper.head())
    # And a keeper that has no more than that gives a newcomer all that comes before it.
    assert len(content(LogReader(first), OrderCut(START, A, head.view), OrderCut(head.timestamp, BEHIND_ALL))) == 3


def test_in_rso_a_part_of_which_nobody_said_where_it_begins_continues_nothing() -> None:
    """A sender of which it has nothing yet may have sent something in between."""
    keeper = a_reader([*first_life(), *meanwhile(), *second_life()], Service.RSO)
    parts = [a_part(first_life(), 1, Service.RSO), a_part(second_life(), 2, Service.RSO)]
    stream = StreamReader(parts)
    ((start, stop),) = stream.holes()
    stream.refresh([*parts, fetched(keeper, start, stop, 3)])
    assert len(stream.holes()) == 1


def test_in_rso_a_part_that_does_not_name_a_sender_does_not_continue_one_that_has_it() -> None:
    first = a_part(first_life(), 1, Service.RSO)
    view = an_install(A, B).view.id
    behind = messages_alike(2, source=A, seq=5, timestamp=START + 30)
    for after, holes in (
        (SourceCut({A: 4}, view), 1),
        (SourceCut({A: 4, B: 1}, view), 0),
        (SourceCut({A: 5, B: 1}), 1),
    ):
        assert len(StreamReader([first, a_part([behind], 2, Service.RSO, after)]).holes()) == holes


@settings(max_examples=sized(15, 300), deadline=None)
@given(seed=st.integers(0, 99_999), service=st.sampled_from(SERVICES))
def test_a_site_that_restarts_again_and_again_has_everything_once_its_holes_are_fetched(
    seed: int, service: Service
) -> None:
    rng = Random(seed)
    history = a_history(rng, 50, service)
    keeper = a_reader(history, service)
    cuts = cuts_of(keeper)
    views = [at for at, delivered in enumerate(history) if isinstance(delivered, Install)]
    starts = [at for at in views if not at or not isinstance(history[at - 1], Gap)]
    parts = []
    for number, (start, following) in enumerate(itertools.pairwise([*starts, len(history)])):
        if start and rng.random() < 0.4:
            continue
        life = history[start : rng.randint(start + 1, following)]
        before = sum(each.count if isinstance(each, Chunk) else isinstance(each, Install) for each in history[:start])
        beginning = OrderCut(0, MemberId(0)) if service is Service.RTO else SourceCut()
        stated = service is Service.RSO or rng.random() < 0.5
        parts.append(a_part(life, 1 + number, service, (cuts[before - 1] if before else beginning) if stated else None))
    stream = StreamReader(parts)
    for number in range(len(parts)):
        holes = stream.holes()
        if not holes:
            break
        parts.append(fetched(keeper, *rng.choice(holes), 1_000 + number))
        stream.refresh(parts)
        assert len(stream.holes()) < len(holes)
    assert stream.holes() == []
    first, head = stream.first(), stream.head()
    assert first is not None
    assert head is not None
    assert content(stream, first, head) == content(keeper, first, head)


def test_parts_of_a_removed_beginning_continue_what_was_fetched() -> None:
    """Where the oldest segments of a log are gone, it begins with a carried view, which knows what came before."""
    keeper = a_reader([*first_life(), *meanwhile(), *second_life()])
    disk = SimDisk()
    writer = a_writer(disk, 1, Service.RTO)
    for delivered in [*first_life(), *meanwhile(), *second_life()]:
        writer.append(delivered)
    for number in range(40):
        writer.append(a_chunk(bytes(200), source=B, seq=20 + number, timestamp=START + 100 + number))
    writer.settle()
    writer.remove(writer.manifest.sealed[:1])
    stream = StreamReader([disk])
    begin = stream.first()
    assert begin is not None
    assert begin != OrderCut(0, MemberId(0))
    whole = a_reader(
        [
            *first_life(),
            *meanwhile(),
            *second_life(),
            *(a_chunk(bytes(200), source=B, seq=20 + at, timestamp=START + 100 + at) for at in range(40)),
        ]
    )
    start = keeper_cut(keeper, 0)
    stream.refresh([disk, fetched(whole, start, begin, 2)])
    assert stream.holes() == []
    assert everything(stream) == content(whole, start, whole.head())


def test_a_part_of_rso_whose_beginning_was_removed_is_still_continued() -> None:
    """Of a sender whose messages were all removed it still knows that they were here."""
    writer = a_writer(disk := SimDisk(), 1, Service.RSO, SourceCut())
    for delivered in first_life():
        writer.append(delivered)
    for number in range(40):
        writer.append(a_chunk(bytes(200), source=B, seq=2 + number, timestamp=START + 100 + number))
    writer.settle()
    writer.remove(writer.manifest.sealed[:2])
    head = LogReader(disk).head()
    assert isinstance(head, SourceCut)
    assert A not in head.seqs
    after = SourceCut({A: 4, B: 41}, an_install(A, B).view.id)
    behind: list[Delivered] = [messages_alike(2, source=A, seq=5, timestamp=START + 300)]
    stream = StreamReader([disk, a_part(behind, 2, Service.RSO, after)])
    assert (stream.holes(), writer.manifest.after) == ([], stream.first())
    assert stream.head() == SourceCut({A: 6, B: 41}, an_install(A, B).view.id)


def test_a_part_grows_and_goes() -> None:
    first = a_part(first_life(), 1)
    second = SimDisk()
    writer = a_writer(second, 2, Service.RTO, LogReader(first).head())
    stream = StreamReader([first, second])
    assert [reader.manifest.log for reader in stream.parts] == [1]
    assert stream.head() == LogReader(first).head()
    for delivered in second_life():
        writer.append(delivered)
    stream.refresh()
    assert [reader.manifest.log for reader in stream.parts] == [1, 2]
    assert stream.head() == LogReader(second).head()
    stream.refresh([second])
    assert (len(stream.parts), stream.first()) == (1, LogReader(first).head())
    stream.refresh([])
    assert (stream.parts, stream.first(), stream.head(), stream.holes(), stream.highest) == ([], None, None, [], 0)


def test_what_is_being_fetched_is_not_read_before_it_is_complete() -> None:
    keeper = a_reader([*first_life(), *meanwhile()])
    start, stop = cuts_of(keeper)[0], cuts_of(keeper)[-1]
    assert isinstance(start, OrderCut)
    disk = SimDisk()
    create_log(disk, log=1, group=GROUP, service=Service.RTO, after=start, fetching=True)
    sink = RangeSink(open_log(disk), start, stop)
    for block in RangeSource(keeper, start, stop):
        sink.take(block)
    stream = StreamReader([disk])
    assert (LogReader(disk).stop > 0, stream.parts) == (True, [])
    sink.keep()
    stream.refresh()
    assert everything(stream) == content(keeper, start, stop)


def test_a_directory_without_a_log_is_left_out() -> None:
    stream = StreamReader([SimDisk(), a_part(first_life(), 1)])
    assert len(stream.parts) == 1


def test_the_highest_timestamp_is_that_of_all_parts() -> None:
    late: list[Delivered] = [an_install(A, start=START + 900), a_chunk(b"x", seq=1, timestamp=START + 901)]
    parts = [a_part(late, 2), a_part(first_life(), 1)]
    assert StreamReader(parts).highest == START + 901
    empty = SimDisk()
    write_manifest(empty, Manifest(log=3, group=GROUP, service=Service.RTO, after=OrderCut(START + 5_000, A)))
    assert StreamReader([*parts, empty]).highest == START + 5_000


def test_the_order_may_begin_again_in_another_part() -> None:
    """After a gap timestamps may be lower; the view tells which part is meant."""
    late, early = an_install(B, start=START + 1_000), an_install(A, start=START)
    stream = StreamReader(
        [
            a_part([late, a_chunk(b"late", source=B, seq=1, timestamp=START + 1_001)], 1),
            a_part([early, a_chunk(b"early", source=A, seq=1, timestamp=START + 1_001)], 2),
        ]
    )
    for log, install in ((1, late), (2, early)):
        reader, place = stream.place_of(OrderCut(START + 1_001, install.view.members[0], install.view.id))
        assert (reader.manifest.log, place.entry) == (log, 2)


def test_a_cut_in_a_hole_or_beyond_the_end_is_refused() -> None:
    stream = StreamReader([a_part(first_life(), 1), a_part(second_life(), 2)])
    old, new = an_install(A, B).view.id, an_install(A, B, start=START + 40).view.id
    first, head = stream.first(), stream.head()
    assert isinstance(first, OrderCut)
    assert isinstance(head, OrderCut)
    for cut in (
        OrderCut(0, MemberId(0)),
        OrderCut(START + 9, A, old),
        OrderCut(START + 30, A),
        OrderCut(START + 30, A, an_install(B, start=START + 20).view.id),
        OrderCut(START + 99, A, new),
    ):
        with pytest.raises(RangeUnavailable, match="does not hold"):
            stream.place_of(cut)
    with pytest.raises(RangeUnavailable, match="both its ends"):
        stream.ranges(first, SourceCut())
    assert stream.ranges(head, head)[0].reader.manifest.log == 2


def parts_end(part: SimDisk) -> EntryCut:
    reader = LogReader(part)
    return EntryCut(reader.manifest.log, reader.stop)


def test_in_uu_every_part_is_its_own_order_and_they_are_read_one_after_another() -> None:
    parts = [a_part(first_life(), 7, Service.UU), a_part(second_life(), 2, Service.UU)]
    stream = StreamReader(parts)
    assert ([reader.manifest.log for reader in stream.parts], stream.holes()) == ([7, 2], [])
    assert (stream.first(), stream.head()) == (EntryCut(7, 0), EntryCut(2, 3))
    assert len(content(stream, EntryCut(7, 0), EntryCut(7, 2))) == 5
    assert stream.place_of(EntryCut(2, 1))[0].manifest.log == 2
    assert stream.install_at(EntryCut(2, 2)) == second_life()[0]
    older = content(stream, EntryCut(7, 1), parts_end(parts[0]))
    newer = content(stream, EntryCut(2, 0), EntryCut(2, 2))
    assert content(stream, EntryCut(7, 1), EntryCut(2, 2)) == older + newer
    with pytest.raises(RangeUnavailable, match="of an older log"):
        stream.ranges(EntryCut(2, 0), EntryCut(7, 1))
    with pytest.raises(RangeUnavailable, match="has no log 0000000000000009"):
        stream.place_of(EntryCut(9, 0))
