"""Which segments may go."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.ids import timestamp_at
from intergroup_core.log.manifest import SealedSegment
from intergroup_core.log.reader import LogReader
from intergroup_core.log.retention import Limits, removable
from intergroup_core.log.writer import open_log
from intergroup_core.sim.disk import Crashed, SimDisk
from tests.builders import START, T0, A
from tests.log_builders import a_chunk, a_log, an_install, contents

HOUR_NS = 3600 * 10**9


def segments(count: int = 6, size: int = 100) -> tuple[SealedSegment, ...]:
    """An hour of entries each; the last ended when the test's time begins."""
    return tuple(
        SealedSegment(
            first=10 * at,
            stop=10 * (at + 1),
            size=size,
            last_timestamp=timestamp_at(T0.wall - (count - 1 - at) * HOUR_NS),
            chain=at,
        )
        for at in range(count)
    )


def test_within_both_limits_everything_stays() -> None:
    assert removable(segments(), limits=Limits(bytes=600, age_ns=6 * HOUR_NS), now=T0) == ()


def test_beyond_the_bytes_the_oldest_go() -> None:
    assert removable(segments(), limits=Limits(bytes=350), now=T0) == segments()[:3]
    assert removable(segments(), limits=Limits(bytes=350), now=T0, active_bytes=100) == segments()[:4]


def test_beyond_the_age_the_oldest_go() -> None:
    assert removable(segments(), limits=Limits(age_ns=2 * HOUR_NS), now=T0) == segments()[:3]


@pytest.mark.parametrize(("floor", "gone"), [(0, 0), (9, 0), (10, 1), (25, 2), (1_000, 6)])
def test_what_somebody_holds_beats_the_limits(floor: int, gone: int) -> None:
    assert removable(segments(), limits=Limits(bytes=0), now=T0, floor=floor) == segments()[:gone]


@given(st.integers(0, 700), st.integers(0, 8), st.one_of(st.none(), st.integers(0, 70)))
def test_only_the_oldest_go_and_no_more_than_needed(limit: int, hours: int, floor: int | None) -> None:
    limits = Limits(bytes=limit, age_ns=hours * HOUR_NS)
    gone = removable(segments(), limits=limits, now=T0, floor=floor)
    assert gone == segments()[: len(gone)]
    if gone:
        assert floor is None or gone[-1].stop <= floor
        kept_before_last = sum(each.size for each in segments()[len(gone) - 1 :])
        old = timestamp_at(T0.wall - limits.age_ns)
        assert kept_before_last > limit or gone[-1].last_timestamp < old


@pytest.mark.parametrize("settled", [True, False])
def test_a_crash_while_removing_leaves_the_old_log_or_the_new_one(settled: bool) -> None:
    outcomes = set()
    for seed in range(60):
        rng = Random(seed)
        disk = SimDisk()
        log = a_log(disk, segment_bytes=600)
        log.append(an_install(A))
        for at in range(12):
            log.append(a_chunk(b"%02d" % at, seq=1 + at, timestamp=START + 1 + at))
        if settled:
            log.close()
        whole = contents(LogReader(disk))
        sealed = removable(log.sealed, limits=Limits(bytes=900), now=T0)
        assert len(sealed) > 1
        rest = contents(LogReader(disk), sealed[-1].stop)
        disk.crash_at = disk.operations + rng.randint(1, 10)
        try:
            log.remove(sealed)
        except Crashed:
            disk = disk.after_crash(rng)
        disk.crash_at = None
        log = open_log(disk, segment_bytes=600)
        assert log.report.damages == []
        found = contents(LogReader(disk))
        left = rest if log.manifest.first else whole
        # What was not synced may be lost at the end, never in the midst.
        assert found == left if settled else found == left[: len(found)]
        assert log.manifest.first in (0, sealed[-1].stop)
        outcomes.add(log.manifest.first)
    assert len(outcomes) == 2
