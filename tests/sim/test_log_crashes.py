"""Logs on a disk that loses, tears and reorders what was not synced, fills up and decays.

Properties 17 and 18: what was acknowledged at `disk` is there, what is there is a prefix of what was appended, a pair
of cuts gives the same rows for ever, and damage is always reported. In every other life old segments are removed, whose
files are used again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import pytest

from intergroup_core.errors import DiskFull, LogDamaged, RangeUnavailable
from intergroup_core.ids import Service
from intergroup_core.log.cut import Cut
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.manifest import MANIFEST, SEGMENT_SUFFIX, segment_name
from intergroup_core.log.reader import LogReader
from intergroup_core.log.writer import INDEX_EVERY, Durability, LogWriter, open_log
from intergroup_core.sim.disk import Crashed, SimDisk
from tests.log_builders import Row, a_history, a_log, contents, rows_of, what_was_delivered
from tests.sizes import sized

SEEDS = sized(60, 1_000)
DECAYED_SEEDS = sized(24, 300)
PARTS = 2
DELIVERIES = 25
MOST_OPERATIONS = 80
"""About as many as a life has; the few that end before their crash are sound to the end."""
COLUMNS = ("position", "value")
SERVICES = (Service.RTO, Service.RSO, Service.UU)


@dataclass
class Life:
    """A log from its beginning to a crash, and what its user knows of it."""

    rng: Random
    service: Service
    history: list[Delivered]
    disk: SimDisk
    segment_bytes: int
    durability: Durability
    beside: bool
    """Whether some syncs are jobs, with appends going on."""
    index_every: int
    removes: bool
    """Whether old segments are removed now and then."""
    numbers: list[int] = field(default_factory=list)
    """Of the entries that append returned, for one delivery after another."""
    acknowledged: int = 0
    """Deliveries that were durable when the user asked."""
    ranges: list[tuple[Cut, Cut, list[Row]]] = field(default_factory=list)
    full: int = 0
    jobs: int = 0
    """Syncs that ended well while appending went on."""

    @classmethod
    def of(cls, seed: int) -> Life:
        rng = Random(seed)
        service = SERVICES[seed % 3]
        return cls(
            rng,
            service,
            a_history(rng, DELIVERIES, service),
            SimDisk(),
            rng.choice((500, 1_500, 6_000)),
            rng.choice(list(Durability)),
            beside=seed // 4 % 2 == 0,
            index_every=(2, 5, INDEX_EVERY)[seed // 3 % 3],
            removes=seed // 2 % 2 == 0,
        )

    def run(self, crash_at: int | None) -> None:
        """Append everything, or until the crash."""
        self.disk.crash_at = crash_at
        try:
            log = a_log(
                self.disk,
                service=self.service,
                durability=self.durability,
                segment_bytes=self.segment_bytes,
                index_every=self.index_every,
            )
            self.go_on(log, 0)
        except Crashed:
            pass
        self.disk.crash_at = None

    def go_on(self, log: LogWriter, first: int) -> None:
        last_cut: Cut | None = None
        waiting = iter(self.history[first:])
        for delivered in waiting:
            if self.rng.random() < 0.1:
                self.disk.capacity = self.disk.used() + self.rng.randint(0, 400)
            self.numbers.append(self._append(log, delivered))
            if self.beside and self.rng.random() < 0.3:
                self._sync_beside(log, waiting)
            if self.removes and self.rng.random() < 0.3:
                self._remove(log)
            if self.rng.random() < 0.2:
                self._flush(log)
                reader = LogReader(self.disk)
                cut = reader.head()
                if last_cut is not None and (rows := rows_between(self.disk, last_cut, cut)) is not None:
                    self.ranges.append((last_cut, cut, rows))
                last_cut = cut

    def _append(self, log: LogWriter, delivered: Delivered) -> int:
        try:
            return log.append(delivered)
        except DiskFull:
            self.full += 1
            self.disk.capacity = None
            return log.append(delivered)

    def _sync_beside(self, log: LogWriter, waiting: Iterator[Delivered]) -> None:
        """A job as another thread runs it: between any two of its steps entries may be appended and segments sealed."""
        self.disk.capacity = None
        job = log.begin_sync()
        if job is None:
            return
        for step in job.steps():
            self._append_some(log, waiting)
            step()
        self._append_some(log, waiting)
        durable = log.end_sync(job)
        self.acknowledged = sum(number < durable for number in self.numbers)
        self.jobs += 1

    def _append_some(self, log: LogWriter, waiting: Iterator[Delivered]) -> None:
        for delivered in itertools.islice(waiting, self.rng.choice((0, 0, 1, 3))):
            self.numbers.append(self._append(log, delivered))

    def _remove(self, log: LogWriter) -> None:
        """Some of the oldest segments, while somebody reads them or not."""
        self.disk.mapped = self.rng.random() < 0.3
        self.disk.capacity = None
        sealed = log.sealed
        log.remove(sealed[: self.rng.randint(0, len(sealed))])

    def _flush(self, log: LogWriter) -> None:
        try:
            durable = log.flush(Durability.DISK)
        except DiskFull:
            self.full += 1
            self.disk.capacity = None
            durable = log.flush(Durability.DISK)
        self.acknowledged = sum(number < durable for number in self.numbers)

    def expected(self, first: int = 0) -> list[object]:
        """What there was to deliver, from an entry on."""
        return [what_was_delivered(delivered) for delivered in self.history[self.before(first) :]]

    def before(self, first: int) -> int:
        """Deliveries that stand before an entry."""
        return sum(number < first for number in self.numbers)


def rows_between(disk: SimDisk, start: Cut, stop: Cut) -> list[Row] | None:
    """None where that may have been removed."""
    removed = LogReader(disk).first
    try:
        return rows_of(disk, start, stop, COLUMNS)
    except RangeUnavailable:
        assert removed, "nothing was removed"
        return None


def recovered(disk: SimDisk, life: Life, rng: Random) -> tuple[SimDisk, LogWriter]:
    """Open what is left, now and then with another crash on the way."""
    if rng.random() < 0.3:
        disk.crash_at = rng.randint(1, 6)
        try:
            log = open_log(disk, segment_bytes=life.segment_bytes, index_every=life.index_every)
        except Crashed:
            disk = disk.after_crash(rng)
        else:
            disk.crash_at = None
            return disk, log
    return disk, open_log(disk, segment_bytes=life.segment_bytes, index_every=life.index_every)


@pytest.mark.parametrize("part", range(PARTS))
def test_after_a_crash_a_prefix_with_all_that_was_acknowledged_is_there(part: int) -> None:
    kept = cut = acknowledged = full = jobs = reused = 0
    for seed in range(part, SEEDS, PARTS):
        life, rng = Life.of(seed), Random(seed + 1)
        life.run(rng.randint(1, MOST_OPERATIONS))
        killed = rng.random() < 0.3
        disk = life.disk.after_kill() if killed else life.disk.after_crash(rng)
        disk.capacity = None
        if MANIFEST not in disk.names():
            assert life.acknowledged == 0, f"seed {seed}"
            continue
        disk, log = recovered(disk, life, rng)
        reader = LogReader(disk)
        gone, found, expected = life.before(reader.first), contents(reader), life.expected(reader.first)
        assert found == expected[: len(found)], f"seed {seed}: holes or inventions"
        have = gone + len(found)
        assert have >= life.acknowledged, f"seed {seed}: lost what was acknowledged"
        if killed and life.durability is not Durability.MEMORY:
            assert have >= len(life.numbers), f"seed {seed}: the kernel had it"
        assert not log.report.damages, f"seed {seed}: {log.report.damages}"
        kept, acknowledged, cut = kept + have, acknowledged + life.acknowledged, cut + bool(log.report.cuts)
        reused += life.disk.reused
        life.disk = disk
        for start, stop, rows in life.ranges:
            assert rows_between(disk, start, stop) in (rows, None), f"seed {seed}: a pair of cuts gives other rows"
        life.numbers[have:] = []
        life.numbers += [log.appended - 1] * (have - len(life.numbers))  # of one that was written when the crash came
        life.go_on(log, have)
        disk.capacity = None
        log.close()
        reader = LogReader(disk)
        expected = life.expected(reader.first)
        assert contents(reader) == expected, f"seed {seed}: the log went on wrongly"
        assert contents(LogReader(disk.after_crash(rng))) == expected, f"seed {seed}: closing did not make it durable"
        full, jobs, reused = full + life.full, jobs + life.jobs, reused + disk.reused
    # The runs are worth something: much was acknowledged, tails were torn, disks were full, jobs ended.
    tried = SEEDS // PARTS
    assert acknowledged > 4 * tried
    assert kept > acknowledged
    assert cut > tried / 5
    assert full > tried / 5
    assert jobs > tried
    assert reused > tried / 3


@pytest.mark.parametrize("part", range(PARTS))
def test_decay_is_always_reported_and_the_rest_can_be_read(part: int) -> None:
    isolated = 0
    for seed in range(part, DECAYED_SEEDS, PARTS):
        life, rng = Life.of(seed), Random(seed + 2)
        life.run(None)
        expected = life.expected(LogReader(life.disk).first)
        with_index = rng.random() < 0.5
        disk = life.disk.after_kill()
        disk.capacity = None
        if with_index:
            open_log(disk, segment_bytes=life.segment_bytes, index_every=life.index_every).close()
        whole = contents(LogReader(disk))
        assert whole == expected[: len(whole)]
        # Not what a file has behind its end.
        sizes = {segment_name(each.first): each.index.totals.size for each in LogReader(disk).segments}
        if not whole:
            continue  # all that there was before was removed
        name = rng.choice([name for name in disk.names() if sizes.get(name)])
        offset = rng.randrange(sizes[name])
        disk.flip_bit(name, offset, rng.randrange(8))
        seen, errors = readable(disk)
        assert errors or seen != whole, f"seed {seed}: a flipped bit at {offset} of {name} went unnoticed"
        assert all(error.file == f"sim/{name}" and error.offset <= offset for error in errors), f"seed {seed}"
        log = open_log(disk, segment_bytes=life.segment_bytes, index_every=life.index_every)
        report = log.report
        after, errors = readable(disk)
        assert in_order(after, expected), f"seed {seed}: an invention"
        if not errors:
            assert report.cuts, f"seed {seed}: nothing said of a flipped bit"
            assert after == expected[: len(after)], f"seed {seed}: a hole that nobody told of"
            assert report.cuts[0].whole_entries >= 0
            assert not with_index, f"seed {seed}: the log was closed, and this is no crash"
        else:
            isolated += 1
            assert len(after) >= len(whole) - 1, f"seed {seed}: more than the damaged entry is gone"
    assert isolated > DECAYED_SEEDS // PARTS / 2


@pytest.mark.parametrize("part", range(PARTS))
def test_what_decays_at_the_end_of_a_closed_log_is_never_taken_for_a_crash(part: int) -> None:
    ends = 0
    for seed in range(part, SEEDS, PARTS):
        life, rng = Life.of(seed), Random(seed + 3)
        life.run(None)
        disk = life.disk.after_kill()
        disk.capacity = None
        open_log(disk, segment_bytes=life.segment_bytes, index_every=life.index_every).close()
        disk = disk.after_crash(rng)
        whole, stop = contents(LogReader(disk)), LogReader(disk).stop
        if not whole:
            continue  # all that there was before was removed
        name = max(name for name in disk.names() if name.endswith(SEGMENT_SUFFIX) and disk.size(name))
        before = bytes(disk.map(name, 0, disk.size(name)))
        if rng.random() < 0.3:
            disk.flip_bit(name, rng.randrange(len(before)), rng.randrange(8))
        else:
            disk.spoil_end(name, rng.randrange(len(before)), rng)
        now = bytes(disk.map(name, 0, disk.size(name)))
        if now == before:
            continue  # zeros that were zeros
        same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False))
        offset = sum(1 for _ in same)
        seen, errors = readable(disk)
        ends += LogReader(disk).readable < stop
        assert LogReader(disk).stop == stop, f"seed {seed}: the log is shorter, and nobody knows"
        assert {error.file for error in errors} == {f"sim/{name}"}, f"seed {seed}: {errors}"
        assert errors[0].offset <= offset, f"seed {seed}"
        assert in_order(seen, whole), f"seed {seed}: an invention"
        disk, log = recovered(disk, life, rng)
        # What is listed with an index is looked at by who reads it.
        listed = name in {segment_name(seal.first) for seal in log.manifest.sealed}
        assert log.report.damages or listed, f"seed {seed}: nothing said"
        assert not log.report.cuts, f"seed {seed}: cut {log.report.cuts}"
        assert log.appended == stop, f"seed {seed}: numbers are used again"
        more = a_history(rng, 6, life.service)
        for delivered in more:
            log.append(delivered)
        log.close()
        disk = disk.after_crash(rng)
        assert open_log(disk).report.damages or listed, f"seed {seed}: forgotten"
        after, errors = readable(disk)
        assert errors, f"seed {seed}: forgotten"
        assert after == seen + [what_was_delivered(delivered) for delivered in more], f"seed {seed}: went on wrongly"
    assert ends > SEEDS // PARTS * 2 / 5


def readable(disk: SimDisk) -> tuple[list[object], list[LogDamaged]]:
    """Every entry that can be read, by asking for one after another, and what the others raise."""
    reader = LogReader(disk)
    seen: list[object] = []
    errors: list[LogDamaged] = []
    for number in range(reader.first, reader.stop):
        try:
            seen += contents(reader, number, number + 1)
        except LogDamaged as error:
            errors.append(error)
    return seen, errors


def in_order(found: list[object], expected: list[object]) -> bool:
    """Whether one list can be had from another by leaving some out."""
    rest = iter(expected)
    return all(any(each == other for other in rest) for each in found)
