"""Streams of `rso` whose member once skipped something: nobody may miss it without being told."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intergroup_core.effects import Gap, Install
from intergroup_core.errors import RangeUnavailable
from intergroup_core.ids import MemberId, Service, ViewId
from intergroup_core.log.chain import describe, serves
from intergroup_core.log.cut import Cut, SourceCut
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.reader import LogReader
from intergroup_core.log.stream import StreamReader
from intergroup_core.wire.chunk import Chunk
from tests.builders import START, A, B, C
from tests.log_builders import a_chunk, a_gap, an_install
from tests.sizes import sized
from tests.unit.log.stream_parts import a_part, content, fetched
from tests.unit.log.test_transfer import cuts_of

OLD = an_install(A, B)
NEW = an_install(B, start=START + 100)
BEFORE = [OLD, a_chunk(b"of anna", seq=1, timestamp=START + 1), a_chunk(b"1", source=B, seq=1, timestamp=START + 5)]
SKIPPED = [a_chunk(b"%d" % seq, source=B, seq=seq, timestamp=START + 100 + seq) for seq in (2, 3, 4)]
AFTER = [a_chunk(b"%d" % seq, source=B, seq=seq, timestamp=START + 100 + seq) for seq in (5, 6)]
VIEWS = pytest.mark.parametrize("entered", [NEW, OLD], ids=["another view", "the same view"])


def a_stream(*histories: list[Delivered]) -> StreamReader:
    return StreamReader([a_part(history, 1 + at, Service.RSO) for at, history in enumerate(histories)])


def whole(entered: Install) -> StreamReader:
    return a_stream([*BEFORE, *([entered] if entered is NEW else []), *SKIPPED, *AFTER])


def gapped(entered: Install) -> StreamReader:
    return a_stream([*BEFORE, a_gap(), entered, *AFTER])


def cut(seq: int, view: Install) -> SourceCut:
    return SourceCut({A: 1, B: seq}, view.view.id)


@VIEWS
def test_a_cut_in_what_a_gap_skipped_is_not_held(entered: Install) -> None:
    stop = cut(6, entered)
    for seq in (2, 3):
        assert len(content(whole(entered), cut(seq, entered), stop)) == 6 - seq
        with pytest.raises(RangeUnavailable):
            content(gapped(entered), cut(seq, entered), stop)
        with pytest.raises(RangeUnavailable):
            content(gapped(entered), cut(1, OLD), cut(seq, entered))
        with pytest.raises(RangeUnavailable):
            gapped(entered).steps(cut(seq, entered))
    # Behind what was skipped there is nothing that is not here.
    assert content(gapped(entered), cut(4, entered), stop) == content(whole(entered), cut(4, entered), stop)


@VIEWS
def test_who_reads_over_what_was_skipped_is_told(entered: Install) -> None:
    """Also where his cut is in the view behind the gap: nobody can tell by it whether he heard of that already."""
    for start in (cut(0, OLD), cut(1, OLD), cut(1, entered)):
        found = content(gapped(entered), start, cut(6, entered))
        assert [each for each in found if isinstance(each, Gap)] == [a_gap()]
        assert _names(found[-2:]) == [(B, 5), (B, 6)]
        assert not serves(gapped(entered), describe(whole(entered), start, cut(6, entered)))
    assert a_gap() in content(gapped(entered), cut(1, entered), cut(4, entered))


@VIEWS
def test_of_other_senders_nothing_was_skipped(entered: Install) -> None:
    start, stop = SourceCut({B: 1}, OLD.view.id), SourceCut({A: 1, B: 1}, OLD.view.id)
    assert _names(content(gapped(entered), start, stop)) == [(A, 1)]


@VIEWS
def test_what_was_skipped_and_fetched_is_there(entered: Install) -> None:
    for start, stop in ((cut(1, OLD), cut(4, entered)), (cut(2, entered), cut(6, entered))):
        parts = [a_part([*BEFORE, a_gap(), entered, *AFTER], 1, Service.RSO)]
        parts.append(fetched(whole(entered), start, stop, 2))
        stream = StreamReader(parts)
        assert content(stream, start, stop) == content(whole(entered), start, stop)
        assert _names(content(stream, cut(4, entered), cut(6, entered))) == [(B, 5), (B, 6)]
        assert stream.head() == cut(6, entered)


def test_a_sender_of_whom_nothing_came_before_a_gap_was_skipped_where_the_beginning_is_known() -> None:
    history = [*BEFORE, a_gap(), NEW, a_chunk(b"late", source=C, seq=4, timestamp=START + 120)]
    view = NEW.view.id
    for after, silent in ((None, True), (SourceCut(), False)):
        stream = StreamReader([a_part(history, 1, Service.RSO, after)])
        start, stop = SourceCut({A: 1, B: 1}, view), SourceCut({A: 1, B: 1, C: 4}, view)
        if silent:  # nobody says that its first message is the first it sent
            with pytest.raises(RangeUnavailable):
                content(stream, start, stop)
        else:
            assert _names(content(stream, start, stop)) == [a_gap(), (C, 4)]


def test_who_has_read_what_was_fetched_goes_on_in_the_log_with_the_gaps() -> None:
    """Also where the next gap lies ahead: what was fetched for the first one ends here."""
    later = a_chunk(b"later", source=B, seq=9, timestamp=START + 150)
    again = a_gap(incarnation=A)
    parts = [a_part([*BEFORE, a_gap(), NEW, *AFTER, again, NEW, later], 1, Service.RSO)]
    parts.append(fetched(whole(NEW), cut(1, OLD), cut(4, NEW), 2))
    stream = StreamReader(parts)
    (((first, *_), reached),) = stream.steps(cut(1, OLD))
    assert (first.manifest.log, reached) == (2, cut(4, NEW))
    (((second, *_), reached),) = stream.steps(cut(4, NEW))
    assert (second.manifest.log, reached) == (1, cut(9, NEW))
    assert _names(content(stream, cut(4, NEW), cut(9, NEW))) == [(B, 5), (B, 6), again, (B, 9)]


def test_a_gap_in_two_parts_is_told_once() -> None:
    stream = StreamReader(
        [
            fetched(gapped(NEW), cut(0, OLD), cut(1, NEW), 1),
            fetched(gapped(NEW), cut(1, NEW), cut(6, NEW), 2),
        ]
    )
    assert stream.holes() == []
    assert content(stream, cut(0, OLD), cut(6, NEW)) == content(gapped(NEW), cut(0, OLD), cut(6, NEW))


def test_what_was_fetched_from_within_a_view_tells_of_gaps_before_it_only_for_what_they_skipped() -> None:
    entered, later = an_install(B, C, start=START + 100), an_install(B, C, start=START + 200)
    of_carl = [a_chunk(b"%d" % seq, source=C, seq=seq, timestamp=START + 150 * seq) for seq in (1, 2)]
    own = a_stream([*BEFORE, a_gap(), entered, of_carl[0], later, of_carl[1], *AFTER])
    start, stop = cut(1, entered), SourceCut({A: 1, B: 6, C: 2}, later.view.id)
    part = StreamReader([fetched(own, start, stop, 2)])
    assert a_gap() in content(part, start, stop)
    begin, end = (SourceCut({A: 1, B: 1, C: seq}, view.view.id) for seq, view in ((1, entered), (2, later)))
    for stream in (own, part):
        assert _names(content(stream, begin, end)) == [later, (C, 2)]
        assert a_gap() in content(stream, begin, stop)


def test_a_gap_skipped_nothing_of_what_lies_before_the_view_that_a_fetched_log_begins_in() -> None:
    """Bert is known to have come to 3 before that view, with messages that are none of an application's."""
    view, behind = an_install(A, B, start=START + 50, before=((B, 3),)), cut(6, NEW)
    for history, gaps in (([view, a_gap(), NEW], []), ([a_gap(), view, NEW], [a_gap()])):
        own = a_stream([*BEFORE, *history, a_chunk(b"4", source=B, seq=4, timestamp=START + 140), *AFTER])
        part = StreamReader([fetched(own, cut(1, view), behind, 2)])
        for stream in (own, part):
            found = content(stream, cut(1, NEW), behind)
            assert [each for each in found if isinstance(each, Gap)] == gaps
            assert _names(found[len(gaps) :]) == [(B, 4), (B, 5), (B, 6)]


@settings(max_examples=sized(30, 800), deadline=None)
@given(seed=st.integers(0, 99_999))
def test_a_member_that_skipped_something_gives_what_others_give_or_tells_of_a_gap(seed: int) -> None:
    rng = Random(seed)
    history = _a_history(rng, 24)
    other = a_stream(history)
    stream = a_stream(_with_gaps(rng, history))
    own = LogReader(a_part(history, 1, Service.RSO))
    cuts = [*cuts_of(own), *_elsewhere(rng, history)]
    for _ in range(40):
        start, stop = rng.sample(cuts, 2)
        try:
            wanted = content(other, start, stop)
            found = content(stream, start, stop)
        except RangeUnavailable:
            continue
        if not any(isinstance(each, Gap) for each in found):
            assert _by_source(found) == _by_source(wanted), f"{start} to {stop}"


def _names(found: list[object]) -> list[object]:
    return [each[:2] if isinstance(each, tuple) else each for each in found]


def _a_history(rng: Random, count: int) -> list[Delivered]:
    history: list[Delivered] = [an_install(A, B, C)]
    seqs = dict.fromkeys((A, B, C), 0)
    for at in range(1, count):
        timestamp = START + 10 * at
        if rng.random() < 0.15:
            history.append(an_install(A, B, C, start=timestamp))
            continue
        source = rng.choice((A, B, C))
        seqs[source] += 1
        history.append(a_chunk(b"%d" % at, source=source, seq=seqs[source], timestamp=timestamp))
    return history


def _with_gaps(rng: Random, history: list[Delivered]) -> list[Delivered]:
    """What a member has of it that skipped stretches of it, and was told each time in which view it is."""
    found, at, view = list(history[:1]), 1, history[0]
    while at < len(history):
        if rng.random() < 0.1:
            skipped = history[at : at + rng.randint(1, 8)]
            at += len(skipped)
            view = next((each for each in reversed(skipped) if isinstance(each, Install)), view)
            found += [a_gap(incarnation=MemberId(1_000 + at)), view]
            continue
        delivered = history[at]
        view = delivered if isinstance(delivered, Install) else view
        found.append(delivered)
        at += 1
    return found


def _elsewhere(rng: Random, history: list[Delivered]) -> list[Cut]:
    """Cuts of members to which the same came in other turns."""
    views = [each.view.id for each in history if isinstance(each, Install)]
    last: dict[MemberId, int] = {each.source: each.last_seq for each in history if isinstance(each, Chunk)}
    return [
        SourceCut({source: rng.randint(0, seq) for source, seq in last.items()}, rng.choice(views)) for _ in range(20)
    ]


def _by_source(found: list[object]) -> tuple[list[ViewId], dict[MemberId, list[object]]]:
    sources: dict[MemberId, list[object]] = {}
    views: list[ViewId] = []
    for each in found:
        if isinstance(each, Install):
            views.append(each.view.id)
        else:
            assert isinstance(each, tuple)
            sources.setdefault(each[0], []).append(each)
    return views, sources
