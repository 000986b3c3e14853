"""Ranges of `rso` from a log whose oldest segments were removed and whose beginning nobody stated: all, or nothing."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intergroup_core.effects import Gap
from intergroup_core.errors import RangeUnavailable
from intergroup_core.ids import Service
from intergroup_core.log.cut import SourceCut
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.manifest import read_manifest, write_manifest
from intergroup_core.log.reader import LogReader, RangeReader
from intergroup_core.log.stream import StreamReader
from intergroup_core.log.writer import LogWriter
from intergroup_core.sim.disk import SimDisk
from tests.builders import START, A, B, C
from tests.log_builders import a_chunk, a_gap, a_history, an_install
from tests.sizes import sized
from tests.unit.log.stream_parts import a_part, a_writer, content, fetched
from tests.unit.log.test_transfer import cuts_of

FIRST = an_install(A, B, before=((A, 0), (B, 0)))
AGAIN = an_install(A, B)
"""The same view, as one hears of it who comes into its midst."""
OF_BERT: list[Delivered] = [a_chunk(b"%d" % seq, source=B, seq=seq, timestamp=START + seq) for seq in (1, 2)]
OF_ANNA: list[Delivered] = [a_chunk(bytes(200), source=A, seq=seq, timestamp=START + 100 + seq) for seq in range(1, 21)]
NEXT = an_install(A, start=START + 500, before=((B, 3),))
"""Bert is gone: its third message was that it leaves."""


def removed(history: list[Delivered], segments: int = 2) -> tuple[SimDisk, LogWriter]:
    writer = a_writer(disk := SimDisk(), 1, Service.RSO)
    for delivered in history:
        writer.append(delivered)
    writer.remove(writer.sealed[:segments])
    return disk, writer


def readers(disk: SimDisk) -> list[RangeReader]:
    return [LogReader(disk), StreamReader([disk])]


def forgetful(disk: SimDisk) -> SimDisk:
    """As versions left it that did not write down what they removed."""
    write_manifest(disk, replace(read_manifest(disk), missing=None))
    return disk


@pytest.mark.parametrize("known", [True, False])
def test_what_was_sent_in_the_view_that_is_carried_may_be_gone(known: bool) -> None:
    """Whatever that view says of the seqs before it."""
    bert = a_chunk(b"3", source=B, seq=3, timestamp=START + 200)
    disk, _ = removed([FIRST, *OF_BERT, *OF_ANNA, bert])
    for reader in readers(disk if known else forgetful(disk)):
        for low in (0, 1):
            with pytest.raises(RangeUnavailable):
                content(reader, SourceCut({B: low}, FIRST.view.id), SourceCut({B: 2}, FIRST.view.id))
        assert len(content(reader, SourceCut({B: 2}, FIRST.view.id), SourceCut({B: 3}, FIRST.view.id))) == 1


def test_what_one_sent_who_is_silent_since_may_be_gone() -> None:
    """Nothing of it is left by which to tell, only a view that says how far it had come."""
    disk, _ = removed([FIRST, *OF_BERT, *OF_ANNA, NEXT])
    behind = SourceCut({A: 20}, NEXT.view.id)
    for reader in readers(disk):
        for low in (0, 1):
            with pytest.raises(RangeUnavailable):
                content(reader, SourceCut({A: 20, B: low}, FIRST.view.id), behind)
        assert content(reader, SourceCut({A: 20, B: 2}, FIRST.view.id), behind) == [NEXT]
    for reader in readers(forgetful(disk)):
        with pytest.raises(RangeUnavailable):
            content(reader, SourceCut({A: 20, B: 1}, FIRST.view.id), behind)


@pytest.mark.parametrize("known", [True, False])
def test_of_one_that_joined_since_everything_is_there(known: bool) -> None:
    """Its first record has a later seq than its first message, which was one of the group's."""
    joined = an_install(A, B, C, start=START + 500, joined=(C,), before=((C, 0),))
    carl: list[Delivered] = [a_chunk(b"%d" % seq, source=C, seq=seq, timestamp=START + 600 + seq) for seq in (2, 3)]
    disk, _ = removed([FIRST, *OF_BERT, *OF_ANNA, joined, *carl])
    reader = LogReader(disk if known else forgetful(disk))
    start, stop = SourceCut({A: 20, B: 2}, joined.view.id), SourceCut({A: 20, B: 2, C: 3}, joined.view.id)
    assert [each[:2] for each in content(reader, start, stop) if isinstance(each, tuple)] == [(C, 2), (C, 3)]


def test_membership_messages_between_what_was_removed_and_what_is_left_are_no_hole() -> None:
    bert = a_chunk(b"later", source=B, seq=7, timestamp=START + 200)
    disk, _ = removed([FIRST, *OF_BERT, *OF_ANNA, bert])
    start, stop = SourceCut({B: 2}, FIRST.view.id), SourceCut({B: 7}, FIRST.view.id)
    assert len(content(LogReader(disk), start, stop)) == 1


def test_what_a_gap_skipped_is_told_although_what_came_before_it_was_removed() -> None:
    bert = a_chunk(b"later", source=B, seq=7, timestamp=START + 200)
    disk, _ = removed([FIRST, *OF_BERT, *OF_ANNA, a_gap(), AGAIN, bert])
    found = content(LogReader(disk), SourceCut({B: 2}, FIRST.view.id), SourceCut({B: 7}, FIRST.view.id))
    assert [isinstance(each, Gap) for each in found] == [True, False]


def test_views_that_were_removed_are_not_left_out() -> None:
    disk, _ = removed([FIRST, *OF_BERT, *OF_ANNA, NEXT])
    for reader in readers(disk):
        with pytest.raises(RangeUnavailable):
            content(reader, SourceCut({A: 20, B: 3}), SourceCut({A: 20}, NEXT.view.id))


def test_what_was_fetched_is_read_before_what_is_left() -> None:
    history = [FIRST, *OF_BERT, *OF_ANNA, NEXT]
    whole = LogReader(a_part(history, 9, Service.RSO, SourceCut()))
    start, stop = SourceCut(), SourceCut({A: 20}, NEXT.view.id)
    disk, _ = removed(history)
    stream = StreamReader([disk, fetched(whole, start, stop, 2)])
    assert content(stream, start, stop) == content(whole, start, stop)


def test_what_was_removed_is_known_however_often_that_was_done() -> None:
    disk, writer = removed([FIRST, *OF_BERT, *OF_ANNA], 1)
    writer.remove(writer.sealed[:1])
    manifest = read_manifest(disk)
    first = LogReader(disk).first_seqs()[A]
    assert (manifest.after, manifest.missing) == (None, SourceCut({A: first - 1, B: 2}, FIRST.view.id))


def test_how_far_one_was_that_is_silent_since_a_gap_that_is_gone_is_not_known() -> None:
    disk, writer = removed([FIRST, *OF_BERT, a_gap(), AGAIN, *OF_ANNA], 1)
    assert (read_manifest(disk).first > 0, read_manifest(disk).missing) == (True, None)
    writer.remove(writer.sealed[:1])
    assert read_manifest(disk).missing is None


@settings(max_examples=sized(15, 300), deadline=None)
@given(seed=st.integers(0, 99_999))
def test_a_pair_of_cuts_gives_the_same_or_nothing_however_much_is_removed(seed: int) -> None:
    rng = Random(seed)
    history = [delivered for delivered in a_history(rng, 30, Service.RSO) if not isinstance(delivered, Gap)]
    disk, writer = removed(history, 0)
    cuts = cuts_of(LogReader(disk))
    pairs = [[cuts[at] for at in sorted(rng.choices(range(len(cuts)), k=2))] for _ in range(30)]
    before = [[_if_held(reader, *pair) for pair in pairs] for reader in readers(disk)]
    while writer.sealed:
        writer.remove(writer.sealed[: rng.randint(1, 3)])
        for reader, all_found in zip(readers(disk), before, strict=True):
            for (start, stop), found in zip(pairs, all_found, strict=True):
                assert found is None or _if_held(reader, start, stop) in (found, None), f"{start} to {stop}"


def _if_held(reader: RangeReader, start: SourceCut, stop: SourceCut) -> list[object] | None:
    try:
        return content(reader, start, stop)
    except RangeUnavailable:
        return None


@pytest.mark.parametrize("segments", [1, 2])
def test_all_that_is_left_is_given_from_where_it_begins(segments: int) -> None:
    """The beginning names those of whom nothing is left, for a view may speak of them later."""
    disk, writer = removed([FIRST, *OF_BERT, *OF_ANNA], segments)
    stream = StreamReader([disk])
    first, head = stream.first(), stream.head()
    assert isinstance(first, SourceCut)
    assert first.seqs[B] == 2
    before = content(stream, first, head)
    assert len(before) == len([seq for seq in range(1, 21) if seq > first.seqs[A]])
    writer.append(NEXT)
    stream = StreamReader([disk])
    assert content(stream, first, stream.head()) == [*before, NEXT]
    assert content(stream, head, stream.head()) == [NEXT]


def test_who_came_late_gives_nothing_of_what_was_said_before() -> None:
    """Of a sender that was silent since, only a view says how far it had come."""
    writer = a_writer(disk := SimDisk(), 1, Service.RSO)
    writer.bound(missing=SourceCut({A: 5, B: 2}, AGAIN.view.id))
    for delivered in (AGAIN, *OF_ANNA[5:], NEXT):
        writer.append(delivered)
    for reader in readers(disk):
        for seqs in ({}, {A: 5}, {A: 4, B: 2}, {A: 5, B: 1}):
            with pytest.raises(RangeUnavailable):
                content(reader, SourceCut(seqs, AGAIN.view.id), SourceCut({A: 20}, NEXT.view.id))
        assert len(content(reader, SourceCut({A: 5, B: 2}, AGAIN.view.id), SourceCut({A: 20}, NEXT.view.id))) == 16
    stream = StreamReader([disk])
    assert len(content(stream, stream.first(), stream.head())) == 16
