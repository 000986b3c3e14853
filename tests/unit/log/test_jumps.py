"""Where logs of `rto` jump, and what is read in their place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from intergroup_core.errors import LogDamaged
from intergroup_core.ids import Service
from intergroup_core.log.chain import describe
from intergroup_core.log.cut import BEHIND_ALL, OrderCut
from intergroup_core.log.entry import header_at
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.jumps import jumps_of
from intergroup_core.log.manifest import segment_name, told_name
from intergroup_core.log.reader import LogReader
from intergroup_core.log.stream import StreamReader
from intergroup_core.log.transfer import RangeSink, RangeSource
from intergroup_core.log.writer import create_log, open_log
from intergroup_core.sim.disk import SimDisk
from tests.builders import GROUP, START, A, B
from tests.log_builders import a_chunk, a_gap, an_install, contents

OLD, MISSED, NEW = an_install(A), an_install(A, B, start=START + 20, seq=2), an_install(A, start=START + 40, seq=3)
BEFORE_ALL = OrderCut(START - 1, BEHIND_ALL)
GAP = a_gap("a long pause")


def numbered(first: int, stop: int) -> list[Delivered]:
    return [a_chunk(b"%d" % number, seq=number, timestamp=START + number) for number in range(first, stop)]


WHOLE: list[Delivered] = [
    OLD,
    *numbered(1, 20),
    MISSED,
    *numbered(21, 40),
    NEW,
    *numbered(41, 60),
]
"""What the group said."""
SKIPPING: list[Delivered] = [OLD, *numbered(1, 10), GAP, NEW, *numbered(50, 60)]
"""What a member that was away from 10 to 49 had of it, the third view being half over when it came back."""


def at(number: int) -> OrderCut:
    view = OLD if number < 20 else MISSED if number < 40 else NEW
    return OrderCut(START + number, A, view.view.id)


VIEW = OrderCut(START + 40, A, NEW.view.id)
"""The place of the view that the member came back into."""


def a_disk(history: Sequence[Delivered], log: int = 1, segment_bytes: int = 1 << 20) -> SimDisk:
    disk = SimDisk()
    create_log(disk, log=log, group=GROUP, service=Service.RTO, after=BEFORE_ALL)
    writer = open_log(disk, segment_bytes=segment_bytes)
    for delivered in history:
        writer.append(delivered)
    writer.close()
    return disk


def fetched(start: OrderCut, stop: OrderCut, log: int = 7) -> SimDisk:
    """A range out of a log that has everything, as another site gets it."""
    source = StreamReader([a_disk(WHOLE, log=99)])
    disk = SimDisk()
    create_log(disk, log=log, group=GROUP, service=Service.RTO, after=start, fetching=True)
    writer = open_log(disk)
    sink = RangeSink(writer, start, stop)
    for block in RangeSource(source, start, stop):
        sink.take(block)
    sink.keep()
    writer.close()
    return disk


def values(reader: StreamReader, start: OrderCut, stop: OrderCut) -> list[int]:
    pieces = [piece for piece in reader.pieces(start, stop) if piece.entry.kind.name == "DATA"]
    return [piece.entry.header.last_timestamp - START for piece in pieces]


def kinds(reader: StreamReader, start: OrderCut, stop: OrderCut) -> list[str]:
    return [piece.entry.kind.name for piece in reader.pieces(start, stop) if piece.entry.kind.name != "DATA"]


def test_a_jump_goes_from_the_last_thing_before_it_to_the_first_message_behind_it() -> None:
    (jump,) = jumps_of(LogReader(a_disk(SKIPPING)))
    assert (jump.begin, jump.end, jump.incarnations) == (at(9), at(50), (GAP.incarnation,))
    assert "a long pause" in jump.why
    (ending,) = jumps_of(LogReader(a_disk(SKIPPING[:12])))
    assert (ending.begin, ending.end) == (at(9), None)
    assert jumps_of(LogReader(a_disk(WHOLE))) == []


def test_gaps_with_no_message_in_between_are_one_jump() -> None:
    again = a_gap("another pause", incarnation=A)
    disk = a_disk([OLD, *numbered(1, 10), GAP, MISSED, again, NEW, *numbered(50, 60)])
    (jump,) = jumps_of(LogReader(disk))
    assert (jump.begin, jump.end, jump.incarnations) == (at(9), at(50), (GAP.incarnation, again.incarnation))


@pytest.mark.parametrize("segment_bytes", [1 << 20, 700])
def test_what_was_fetched_is_read_where_the_log_jumps(segment_bytes: int) -> None:
    own = a_disk(SKIPPING, segment_bytes=segment_bytes)
    skipping, whole = StreamReader([own]), StreamReader([a_disk(WHOLE, log=99)])
    filled = StreamReader([own, fetched(at(9), at(50))])
    assert values(skipping, at(5), at(55)) == [*range(6, 10), *range(50, 56)]
    assert len(skipping.jumps(at(5), at(55))) == 1
    assert filled.jumps(at(5), at(55)) == []
    assert (filled.first(), filled.head(), filled.holes()) == (skipping.first(), skipping.head(), [])
    # From and to anywhere: before it, within, where only what was fetched has the cut, at its ends, and behind.
    cuts = [at(5), at(9), at(15), MISSED_PLACE, at(30), VIEW, at(45), at(50), at(55)]
    for first, start in enumerate(cuts):
        for stop in cuts[first + 1 :]:
            assert describe(filled, start, stop) == describe(whole, start, stop), f"{start} to {stop}"


MISSED_PLACE = OrderCut(START + 20, A, MISSED.view.id)


def test_what_does_not_reach_over_the_jump_is_not_taken_for_it() -> None:
    own = a_disk(SKIPPING)
    for start, stop in ((at(3), at(9)), (at(50), at(55))):
        reader = StreamReader([own, fetched(start, stop)])
        assert values(reader, at(5), at(55)) == [*range(6, 10), *range(50, 56)]
        assert len(reader.jumps(at(5), at(55))) == 1


def test_who_stands_at_the_view_behind_a_jump_that_was_filled_up_to_there_misses_the_rest_of_it() -> None:
    own = a_disk(SKIPPING)
    # Nothing was told of the gap to who came by what was fetched, so the messages behind the view are due.
    reader = StreamReader([own, fetched(at(9), VIEW)])
    assert values(reader, at(5), VIEW) == [*range(6, 20), *range(21, 40)]
    assert len(reader.jumps(VIEW, at(55))) == 1
    assert StreamReader([own]).jumps(VIEW, at(55)) == []
    more = StreamReader([own, fetched(at(9), VIEW), fetched(at(9), at(50), log=8)])
    assert more.jumps(VIEW, at(55)) == []
    assert values(more, VIEW, at(55)) == list(range(41, 56))


def test_a_gap_that_somebody_was_given_stays_one() -> None:
    own = a_disk(SKIPPING)
    skipping = describe(StreamReader([own]), at(5), at(55))
    own.create(told_name(GAP.incarnation))
    reader = StreamReader([own, fetched(at(9), at(50))])
    assert describe(reader, at(5), at(55)) == skipping
    (jump,) = reader.jumps(at(5), at(55))
    assert jump.told
    assert contents(LogReader(own))  # a log with such a file is a log
    assert not open_log(own).report.removed_files


def test_what_is_damaged_is_a_jump_and_can_be_filled() -> None:
    own = a_disk(WHOLE)
    name = segment_name(0)
    data, offset = own.map(name, 0, own.size(name)), 0
    for _ in range(30):
        header = header_at(data, offset)
        assert header is not None
        offset += header.size
    own.flip_bit(name, offset + 3, 1)
    reader = StreamReader([own])
    with pytest.raises(LogDamaged, match=f"{name} is damaged at offset {offset}"):
        values(reader, at(5), at(55))
    (jump,) = reader.jumps(at(5), at(55))
    assert (jump.begin, jump.incarnations, jump.told) == (at(29), (), False)
    assert jump.end is not None
    assert jump.end.timestamp == START + 31
    filled = StreamReader([own, fetched(jump.begin, jump.end)])
    assert filled.jumps(at(5), at(55)) == []
    assert describe(filled, at(5), at(55)) == describe(StreamReader([a_disk(WHOLE, log=99)]), at(5), at(55))
