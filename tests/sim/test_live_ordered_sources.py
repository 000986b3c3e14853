"""Ranges of `rso` out of logs of `rto`, in groups that change: the same as out of logs of `rso`, or refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from random import Random

import pytest

from intergroup_core.effects import Deliver, Effect, Gap, Install
from intergroup_core.errors import RangeUnavailable
from intergroup_core.ids import Service
from intergroup_core.log.chain import describe
from intergroup_core.log.cut import SourceCut
from intergroup_core.log.ordered_sources import OrderedSources
from intergroup_core.log.stream import StreamReader
from intergroup_core.log.writer import LogWriter
from intergroup_core.sim.disk import SimDisk
from intergroup_core.sim.member import SimMember
from intergroup_core.sim.outcome import play
from tests.log_builders import a_log
from tests.sim.live_stories import a_chosen_scenario
from tests.sim.test_live_cuts import Kept
from tests.sizes import sized

SEEDS = (61, 68, 124)[: sized(2, 3)]
RANGES = sized(20, 200)
"""Compared in each run."""


class Run:
    """The logs of a run: of those who take `rso`, with their cuts, and of those who take `rto`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
        self._by_source: dict[SimMember, Kept] = {}
        self._ordered: dict[SimMember, tuple[SimDisk, LogWriter]] = {}
        perform = SimMember._perform

        def observed(member: SimMember, effects: Iterable[Effect] | None) -> None:
            done = list(effects or ())
            for effect in done:
                if isinstance(effect, Deliver | Install | Gap):
                    self._take(member, effect)
            perform(member, done)

        monkeypatch.setattr(SimMember, "_perform", observed)
        outcome, _ = play(a_chosen_scenario(seed, "mixed"))
        monkeypatch.undo()
        assert outcome.violations == []

    @property
    def by_source(self) -> list[Kept]:
        return [log for log in self._by_source.values() if log.cuts]

    @property
    def ordered(self) -> list[OrderedSources]:
        return [OrderedSources([disk]) for disk, _ in self._ordered.values()]

    def _take(self, member: SimMember, effect: Deliver | Install | Gap) -> None:
        """By the member, not its id, which a gap changes: see `Kept`."""
        endpoint = member.endpoint
        if endpoint.service is Service.RSO:
            self._by_source.setdefault(member, Kept()).observe(effect, endpoint.beginning)
        elif endpoint.service is Service.RTO:
            disk = SimDisk()
            _, writer = self._ordered.setdefault(member, (disk, a_log(disk, segment_bytes=4_000)))
            if isinstance(effect, Install) and not writer.appended:
                activations = endpoint.beginning.activations if endpoint.beginning is not None else {}
                seqs = {source: first - 1 for source, first in activations.items()}
                writer.bound(sources=SourceCut(seqs, effect.view.id))
            writer.append(effect.chunk if isinstance(effect, Deliver) else effect)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_log_of_rto_gives_what_a_log_of_rso_gives(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    run = Run(monkeypatch, seed)
    rng = Random(seed)
    logs = [(log, StreamReader([log.disk])) for log in run.by_source]
    streams = run.ordered
    compared: dict[str, int] = defaultdict(int)
    for _ in range(RANGES):
        log, own = rng.choice(logs)
        low, high = sorted(rng.choices(range(len(log.cuts)), k=2))
        start, stop = log.cuts[low][0], log.cuts[high][0]
        expected = describe(own, start, stop)
        for stream in streams:
            try:
                found = describe(stream, start, stop)
            except RangeUnavailable:
                compared["refused"] += 1
                continue
            if found.views != expected.views:
                compared["of another side of a partition"] += 1
                continue
            if found.gaps or expected.gaps:
                compared["with a gap"] += 1  # what it skipped is missing, and whoever reads it is told
                continue
            compared["the same"] += 1
            assert found == expected, f"seed {seed}: {start} to {stop}"
    assert compared["the same"] > RANGES // 3, dict(compared)
