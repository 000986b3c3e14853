"""Descriptions of ranges: the same at every site that holds the same, and at no other."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intergroup_core.errors import LogDamaged
from intergroup_core.ids import MemberId, Service
from intergroup_core.log.chain import describe, serves
from intergroup_core.log.cut import Cut, OrderCut, SourceCut
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.manifest import segment_name
from intergroup_core.log.reader import LogReader
from intergroup_core.sim.disk import SimDisk
from intergroup_core.wire.chunk import Chunk
from tests.builders import START, A, B
from tests.log_builders import a_chunk, a_gap, a_history, a_log, an_install, messages_alike, rows_of
from tests.sizes import sized

NOUGHT = OrderCut(0, MemberId(0))


def a_reader(history: list[Delivered], service: Service = Service.RTO, segment_bytes: int = 2_000) -> LogReader:
    disk = SimDisk()
    log = a_log(disk, service=service, segment_bytes=segment_bytes)
    for delivered in history:
        log.append(delivered)
    return LogReader(disk)


def split(history: list[Delivered], rng: Random) -> list[Delivered]:
    """The same messages, some of them in chunks of their own, as another site may have received them."""
    apart: list[Delivered] = []
    for delivered in history:
        if isinstance(delivered, Chunk) and delivered.count > 1 and rng.random() < 0.8:
            bound = delivered.run.timestamp + rng.choice(delivered.run.ends[:-1])
            apart += delivered.cut(bound)
        else:
            apart.append(delivered)
    return apart


def some_cuts(reader: LogReader, rng: Random) -> tuple[Cut, Cut]:
    names = [
        (message.timestamp, message.source)
        for entry in reader.entries(reader.first)
        if entry.kind.name == "DATA"
        for message in entry.chunk().messages()
    ]
    low, high = sorted(rng.sample(names, 2))
    return OrderCut(*low), OrderCut(*high)


@settings(max_examples=sized(25, 300))
@given(seed=st.integers(0, 9_999))
def test_a_range_of_rto_is_described_the_same_however_it_was_bundled(seed: int) -> None:
    rng = Random(seed)
    history = a_history(rng, 30)
    here, there = a_reader(history), a_reader(split(history, rng), segment_bytes=700)
    start, stop = some_cuts(here, rng)
    described = describe(here, start, stop)
    assert describe(there, start, stop) == described
    assert serves(there, described)
    assert described.messages == sum(piece.stop - piece.first for piece in here.pieces(start, stop))


@settings(max_examples=sized(25, 300))
@given(seed=st.integers(0, 9_999))
def test_a_range_of_rso_can_be_served_by_any_order_of_the_senders(seed: int) -> None:
    """Each sender's messages are in the same order everywhere; the senders are not."""
    rng = Random(seed)
    view = an_install(A, B)
    of_a = [
        messages_alike(rng.randint(1, 4), source=A, seq=1 + 5 * at, timestamp=START + 1 + 5 * at) for at in range(6)
    ]
    of_b = [
        messages_alike(rng.randint(1, 4), source=B, seq=1 + 5 * at, timestamp=START + 3 + 5 * at) for at in range(6)
    ]
    here = a_reader([view, *of_a, *of_b], Service.RSO)
    mixed = sorted([*of_a, *of_b], key=lambda chunk: (chunk.last_timestamp, chunk.source))
    there = a_reader([view, *split([*mixed], rng)], Service.RTO, segment_bytes=700)
    start = SourceCut({A: of_a[1].last_seq, B: of_b[0].last_seq}, view.view.id)
    stop = SourceCut({A: of_a[3].last_seq, B: of_b[5].last_seq}, view.view.id)
    described = describe(here, start, stop)
    assert described.whole is None
    assert set(described.sources) == {A, B}
    assert serves(there, described)
    assert described.messages == sum(chunk.count for chunk in (*of_a[2:4], *of_b[1:6]))


def a_small_history() -> list[Delivered]:
    return [
        an_install(A, B),
        a_chunk(b"one", source=A, seq=1, timestamp=START + 1),
        a_chunk(b"two", source=B, seq=1, timestamp=START + 2),
        an_install(A, start=START + 5),
        a_chunk(b"three", source=A, seq=2, timestamp=START + 6),
        a_gap("behind"),
        an_install(A, start=START + 9),
        a_chunk(b"four", source=A, seq=5, timestamp=START + 10),
    ]


END = OrderCut(START + 10, A)


def test_views_gaps_ends_and_counts_are_told() -> None:
    described = describe(a_reader(a_small_history()), NOUGHT, END)
    assert [view[:16] for view in described.views] == [f"{START + at:016x}" for at in (0, 5, 9)]
    assert described.gaps == ((2, "behind"),)
    assert described.whole is not None
    assert (described.whole.first, described.whole.last) == ((A, 1), (A, 5))
    assert (described.whole.messages, described.whole.frames) == (4, 4)


@pytest.mark.parametrize("left_out", range(8))
def test_a_log_that_lacks_anything_does_not_serve(left_out: int) -> None:
    described = describe(a_reader(a_small_history()), NOUGHT, END)
    history = a_small_history()
    del history[left_out]
    assert not serves(a_reader(history), described)


def test_a_log_with_another_message_of_the_same_name_does_not_serve() -> None:
    described = describe(a_reader(a_small_history()), NOUGHT, END)
    history = a_small_history()
    history[2] = a_chunk(b"TWO", source=B, seq=1, timestamp=START + 2)
    assert not serves(a_reader(history), described)
    history[2] = a_chunk(b"two", source=B, seq=1, timestamp=START + 2)
    assert serves(a_reader(history), described)


def test_a_log_with_a_view_of_that_id_and_other_members_does_not_serve() -> None:
    described = describe(a_reader(a_small_history()), NOUGHT, END)
    history = a_small_history()
    history[3] = an_install(A, B, start=START + 5)
    other = a_reader(history)
    assert describe(other, NOUGHT, END).views == described.views
    assert not serves(other, described)


def test_ranges_join() -> None:
    reader = a_reader(a_small_history())
    middle = OrderCut(START + 6, A)
    first, second, both = (describe(reader, *ends) for ends in ((NOUGHT, middle), (middle, END), (NOUGHT, END)))
    assert first.whole is not None
    assert second.whole is not None
    assert first.whole.followed_by(second.whole) == both.whole
    assert first.views + second.views == both.views


def test_a_log_that_is_behind_or_damaged_says_so() -> None:
    described = describe(a_reader(a_small_history()), NOUGHT, END)
    assert not serves(a_reader(a_small_history()[:-1]), described)
    disk = SimDisk()
    log = a_log(disk)
    for delivered in a_small_history():
        log.append(delivered)
    disk.flip_bit(segment_name(0), 20, 1)
    with pytest.raises(LogDamaged):
        rows_of(disk)
    with pytest.raises(LogDamaged):
        serves(LogReader(disk), described)
