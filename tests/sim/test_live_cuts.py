"""Cuts of `rso` in groups that change: short, and at every log of the same views the same as those that name all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from intergroup_core.datapath.engines import Beginning
from intergroup_core.effects import Deliver, Effect, Gap, Install
from intergroup_core.errors import RangeUnavailable
from intergroup_core.ids import MemberId, Service, ViewId
from intergroup_core.log.cut import SourceCut
from intergroup_core.log.entry import Kind
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.reader import LogReader
from intergroup_core.log.standings import Passed
from intergroup_core.log.stream import StreamReader
from intergroup_core.sim.disk import SimDisk
from intergroup_core.sim.member import SimMember
from intergroup_core.sim.outcome import play
from intergroup_core.wire.chunk import Chunk
from tests.log_builders import a_log
from tests.sim.live_stories import a_chosen_scenario
from tests.sizes import sized

SEEDS = (61, 98, 124, 141)[: sized(2, 4)]
RANGES = sized(40, 200)
"""Compared in each run."""

Row = tuple[MemberId, Any]


class Kept:
    """What a member delivered, in a log as its agent writes it, with the cut behind each: short, and naming all.

    A gap ends an incarnation and not the log. The stimulus that brings it may bring deliveries before it, and the
    member has its next id by the time they are looked at: a log that went by the id would begin with what belongs to
    another one, behind nobody knows what, and without the gap.
    """

    def __init__(self) -> None:
        self.disk = SimDisk()
        self.writer = a_log(self.disk, service=Service.RSO, segment_bytes=4_000)
        self.delivered: list[Delivered] = []
        self.cuts: list[tuple[SourceCut, SourceCut]] = []
        self._passed = Passed()
        self._seqs: dict[MemberId, int] = {}
        self.view: ViewId | None = None
        self.members: list[tuple[MemberId, ...]] = []

    @property
    def gaps(self) -> bool:
        return any(isinstance(event, Gap) for event in self.delivered)

    def observe(self, effect: Effect, beginning: Beginning | None) -> None:
        """What the agent would write of an effect."""
        match effect:
            case Deliver(chunk=chunk):
                self.take(chunk)
            case Install():
                if not self.delivered and beginning is not None:
                    self.begin(beginning.activations, effect.view.id)
                self.take(effect)
            case Gap():
                self.take(effect)
            case _:
                pass

    def begin(self, activations: Mapping[MemberId, int], view: ViewId) -> None:
        """Where senders are when the log begins."""
        self._seqs = {source: first - 1 for source, first in activations.items()}
        self._passed.begin(self._seqs)
        self.writer.bound(after=SourceCut(dict(self._seqs), view))

    def take(self, event: Delivered) -> None:
        self.writer.append(event)
        self.delivered.append(event)
        match event:
            case Chunk():
                self._seqs[event.source] = event.last_seq
                self._passed.data(event.source, event.last_seq)
            case Install():
                self.view = event.view.id
                self._passed.enter(event)
                self.members.append(event.view.members)
            case Gap():
                self._passed.skip()
        if self.view is not None and not isinstance(event, Gap):
            self.cuts.append((self._passed.cut, SourceCut(dict(self._seqs), self.view)))


@lru_cache(maxsize=len(SEEDS))
def runs(seed: int) -> list[Kept]:
    """The logs of a run in which everybody takes `rso`; nobody writes to them any more."""
    perform = SimMember._perform
    kept: dict[SimMember, Kept] = {}

    def observed(member: SimMember, effects: Iterable[Effect] | None) -> None:
        done = list(effects or ())
        for effect in done:
            if isinstance(effect, Deliver | Install | Gap):
                kept.setdefault(member, Kept()).observe(effect, member.endpoint.beginning)
        perform(member, done)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimMember, "_perform", observed)
        outcome, _ = play(a_chosen_scenario(seed, "rso"))
    assert outcome.violations == []
    return [log for log in kept.values() if log.cuts]


def rows(reader: LogReader | StreamReader, start: SourceCut, stop: SourceCut) -> list[Row]:
    """Messages of each sender and views; the order of the rest differs from site to site."""
    found: list[Row] = []
    for piece in reader.pieces(start, stop):
        if piece.entry.kind is Kind.DATA:
            found += [(each.source, each.seq) for each in piece.chunk().messages()]
        elif piece.entry.kind is Kind.VIEW:
            found.append((MemberId(0), str(piece.entry.install().view.id)))
    return sorted(found, key=lambda row: row[0])


def crosses_a_gap(reader: StreamReader, start: SourceCut, stop: SourceCut) -> bool:
    return any(piece.entry.kind is Kind.GAP for piece in reader.pieces(start, stop))


class Strays:
    """What some logs of a run have of a sender that another one was told had ended before, until it returned."""

    def __init__(self, logs: Iterable[Kept]) -> None:
        self._spans: dict[MemberId, list[tuple[int, int]]] = defaultdict(list)
        for log in logs:
            lineage = LogReader(log.disk).lineage()
            for each in lineage.returns:
                self._spans[each.source].append((each.low, each.high))
            last = lineage.at(log.view)
            for source in last.ended:
                self._spans[source].append((last.seqs[source], 1 << 60))

    def has(self, source: MemberId, seq: int) -> bool:
        return any(low < seq <= high for low, high in self._spans.get(source, ()))

    def among(self, *cuts: SourceCut) -> set[MemberId]:
        return {source for cut in cuts for source, seq in cut.seqs.items() if self.has(source, seq)}


@pytest.mark.parametrize("seed", SEEDS)
def test_short_cuts_mean_the_same_in_all_logs_of_the_same_views(seed: int) -> None:
    logs = runs(seed)
    rng = Random(seed)
    strays = Strays(logs)
    readers = {log: LogReader(log.disk) for log in logs}
    streams = {log: StreamReader([log.disk]) for log in logs}
    compared: dict[str, int] = defaultdict(int)
    for _ in range(RANGES):
        log = rng.choice(logs)
        low, high = sorted(rng.choices(range(len(log.cuts)), k=2))
        (start, long_start), (stop, long_stop) = log.cuts[low], log.cuts[high]
        expected = rows(readers[log], start, stop)
        assert rows(streams[log], start, stop) == expected
        beyond = strays.among(long_start, long_stop)
        if not beyond:
            compared["forms"] += 1
            for one, other in ((start, long_stop), (long_start, stop), (long_start, long_stop)):
                assert rows(readers[log], one, other) == expected, f"seed {seed}: {one} to {other}"
        for another in logs:
            if another is log or not same_views(log, another, start, stop):
                continue
            try:
                found = rows(streams[another], start, stop)
            except RangeUnavailable:
                compared["not there"] += 1
                continue
            if any(crosses_a_gap(streams[each], start, stop) for each in (log, another)):
                # Something is missing there, or is nowhere else because the others did not recover it: the gap says so.
                compared["with a gap"] += 1
                continue
            compared["sites"] += 1
            both = [[row for row in each if row[0] not in beyond] for each in (found, expected)]
            assert both[0] == both[1], f"seed {seed}: {start} to {stop}"
    assert compared["forms"] > RANGES // 5
    assert compared["sites"] > RANGES // 5


def same_views(one: Kept, other: Kept, start: SourceCut, stop: SourceCut) -> bool:
    spans = []
    for log in (one, other):
        views = [event.view.id for event in log.delivered if isinstance(event, Install)]
        if start.view not in views or stop.view not in views:
            return False
        spans.append(views[views.index(start.view) : views.index(stop.view) + 1])
    return spans[0] == spans[1]


@pytest.mark.parametrize("seed", SEEDS)
def test_who_reads_from_cut_to_cut_misses_nothing_and_gets_nothing_twice(seed: int) -> None:
    rng = Random(seed)
    logs = runs(seed)
    strays = Strays(logs)
    for log in logs:
        stream = StreamReader([log.disk])
        steps = sorted({0, len(log.cuts) - 1, *rng.choices(range(len(log.cuts)), k=min(40, len(log.cuts)))})
        got: list[Row] = []
        for low, high in pairwise(steps):
            got += rows(stream, log.cuts[low][0], log.cuts[high][0])
        if not log.gaps:
            assert len(got) == len(set(got)), f"seed {seed}"
        got = [row for row in got if row[0]]  # who comes back into a view behind a gap is told of it again
        assert len(got) == len(set(got)), f"seed {seed}"
        begin = log.cuts[0][1].seqs
        said = {
            (message.source, message.seq)
            for event in log.delivered
            if isinstance(event, Chunk)
            for message in event.messages()
            if message.seq > begin.get(event.source, 0)
        }
        missed = {row for row in said - set(got) if not strays.has(*row)}
        assert not missed, f"seed {seed}: {sorted(missed)[:5]}"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cut_names_few_besides_the_members_of_its_view(seed: int) -> None:
    for log in runs(seed):
        head = StreamReader([log.disk]).head()
        assert isinstance(head, SourceCut)
        assert head == log.cuts[-1][0]
        # Of who is gone behind a gap no view says where it ended.
        assert log.gaps or set(head.seqs) <= set(log.members[-1])
