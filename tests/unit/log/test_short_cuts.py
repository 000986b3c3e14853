"""Cuts of `rso` of a group in which many came and went: as long as the group is large, not as it is old."""

from __future__ import annotations

import pytest

from intergroup_core.agent.levels import LOCAL
from intergroup_core.agent.plannable import Frontier, Heads
from intergroup_core.effects import Departure, Install
from intergroup_core.ids import MemberId, Service, Timestamp, View, ViewId
from intergroup_core.log.cut import SourceCut
from intergroup_core.log.cut_codec import cut_text
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.reader import LogReader
from intergroup_core.log.stream import StreamReader
from intergroup_core.sim.disk import SimDisk
from tests.builders import START, A, B
from tests.log_builders import LOG, a_chunk, a_gap, a_log, an_install
from tests.unit.log.stream_parts import a_part, content

GUESTS = 1_000
BOUND = 400
"""Characters of a cut of two senders."""


def a_view(at: int, *members: MemberId, before: dict[MemberId, int], gone: MemberId | None = None) -> Install:
    view = View(id=ViewId(Timestamp(at), A, 1), members=members, names=tuple(f"{each:x}" for each in members))
    departed = (Departure(gone, f"{gone:x}", "left"),) if gone is not None else ()
    return Install(view, departed=departed, before=tuple(before.items()))


def visits(count: int, *, left_by_repair: bool = False) -> list[Delivered]:
    """Senders that come one after the other, send twice and go."""
    found: list[Delivered] = [a_view(START, A, before={A: 0})]
    for number in range(count):
        guest, at = MemberId(1_000 + number), START + 10 * number
        found.append(a_chunk(b"%d" % number, source=A, seq=number + 1, timestamp=at + 1))
        found.append(a_view(at + 2, A, guest, before={guest: 0}))
        found += [a_chunk(b"hello", source=guest, seq=seq, timestamp=at + 2 + seq) for seq in (1, 2)]
        before = {guest: 3, A: number + 1} if left_by_repair else {guest: 3}
        found.append(a_view(at + 6, A, before=before, gone=guest))
    return found


def test_a_head_does_not_grow_with_those_who_came_and_went() -> None:
    history = visits(GUESTS)
    disk = a_part(history, LOG, Service.RSO, after=SourceCut())
    heads = Heads(Service.RSO, LOG)
    for entry, event in enumerate(history):
        heads.appended(entry, event)
    heads.advance(len(history), Frontier(0, 0))
    for head in (LogReader(disk).head(), StreamReader([disk]).head(), heads.cut(LOCAL)):
        assert head is not None
        assert len(cut_text(head)) < BOUND
        assert head == SourceCut({A: GUESTS}, history[-1].view.id)  # type: ignore[union-attr]


def test_what_retention_leaves_begins_at_a_short_cut() -> None:
    disk = SimDisk()
    writer = a_log(disk, service=Service.RSO, segment_bytes=3_000)
    writer.bound(after=SourceCut())
    for event in visits(60):
        writer.append(event)
    writer.settle()
    writer.remove(writer.manifest.sealed[:-1])
    after = writer.manifest.after
    assert isinstance(after, SourceCut)
    assert len(after.seqs) <= 2
    stream = StreamReader([disk])
    head = stream.head()
    assert isinstance(head, SourceCut)
    assert content(stream, after, head)


@pytest.mark.parametrize("left_by_repair", [False, True])
def test_both_forms_of_a_cut_mean_the_same(left_by_repair: bool) -> None:
    history = visits(20, left_by_repair=left_by_repair)
    stream = StreamReader([a_part(history, LOG, Service.RSO, after=SourceCut())])
    guests = {MemberId(1_000 + number): 2 for number in range(20)}
    middle = history[5 * 10].view.id  # type: ignore[union-attr]
    short = SourceCut({A: 10}, middle), stream.head()
    long = (
        SourceCut({A: 10} | dict(list(guests.items())[:10]), middle),
        SourceCut({A: 20} | guests, history[-1].view.id),  # type: ignore[union-attr]
    )
    found = [content(stream, start, stop) for start in (short[0], long[0]) for stop in (short[1], long[1])]  # type: ignore[arg-type]
    assert all(each == found[0] for each in found)
    assert len([each for each in found[0] if isinstance(each, tuple)]) == 10 * 3
    assert all(stream.steps(start) for start in (short[0], long[0]))


def test_what_a_repair_cut_off_is_in_no_range_behind_it() -> None:
    """This member had delivered more of bert than the others could recover; bert returns with other seqs."""
    views = [
        an_install(A, B, before=((A, 0), (B, 0))),
        an_install(A, start=START + 50, before=((A, 1), (B, 2))),
        an_install(A, B, start=START + 60, before=((B, 9),)),
    ]
    more = [a_chunk(b"%d" % seq, source=B, seq=seq, timestamp=START + seq) for seq in (1, 2, 3, 4)]
    back = a_chunk(b"back", source=B, seq=10, timestamp=START + 70)
    for held in (more, more[:2]):
        stream = StreamReader([a_part([views[0], *held, views[1], views[2], back], LOG, Service.RSO, SourceCut())])
        stop = SourceCut({A: 1, B: 10}, views[2].view.id)
        for seq in (1, 2, 4):
            for view in views[:2]:
                names = [
                    each[1]
                    for each in content(stream, SourceCut({B: seq}, view.view.id), stop)
                    if isinstance(each, tuple)
                ]
                assert names == ([2] if seq == 1 else []) + [10]
        assert stream.head() == stop


def test_who_is_missed_behind_a_gap_stays_named() -> None:
    """Nobody told this log where bert ended: others may have more of it."""
    history = [
        an_install(A, B, before=((A, 0), (B, 0))),
        a_chunk(b"1", source=B, seq=1, timestamp=START + 1),
        a_gap(),
        an_install(A, start=START + 50),
    ]
    head = StreamReader([a_part(history, LOG, Service.RSO, SourceCut())]).head()
    assert head == SourceCut({B: 1}, history[-1].view.id)  # type: ignore[union-attr]


def test_views_that_do_not_say_where_their_senders_stand_let_nobody_be_left_out() -> None:
    history = [
        an_install(A, B),
        a_chunk(b"1", source=B, seq=1, timestamp=START + 1),
        an_install(A, start=START + 50, departed=(Departure(B, "bert", "left"),)),
    ]
    head = StreamReader([a_part(history, LOG, Service.RSO, SourceCut())]).head()
    assert head == SourceCut({B: 1}, history[-1].view.id)  # type: ignore[union-attr]
