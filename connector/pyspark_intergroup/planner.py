"""Plans the reads of all groups of a query together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from intergroup_core.errors import AgentUnavailable
from intergroup_core.ids import COUNTER_BITS, EPOCH_US, Service
from intergroup_core.log.cut import Cut, OrderCut
from pyspark_intergroup.group_planner import GroupPlanner
from pyspark_intergroup.limits import Limits
from pyspark_intergroup.offsets import Offsets
from pyspark_intergroup.options import COMMITTED, ReadOptions
from pyspark_intergroup.order import is_behind
from pyspark_intergroup.points import AtCuts, AtTime, AtView, Earliest, End, Latest, Start
from pyspark_intergroup.slice import AnySlice
from pyspark_intergroup.slicing import SliceSizes

PATIENCE_SECONDS = 60.0
"""How long what a query cannot do without is asked for again before that is an error."""
RETRY_SECONDS = 0.2

T = TypeVar("T")


class Planner:
    """The groups of one query."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        assert options.delivery is not None
        self._service = Service(options.delivery)
        self._groups = {
            group: GroupPlanner(
                group,
                self._service,
                options.config,
                home=options.agent,
                level=options.read_level,
                fail_on_data_loss=options.fail_on_data_loss,
                fetch_timeout_s=options.fetch_timeout_s,
                committed=options.isolation == COMMITTED,
            )
            for group in sorted(options.groups)
        }

    def close(self) -> None:
        for planner in self._groups.values():
            planner.close()

    # Offsets

    def initial(self) -> Offsets:
        """Where a query begins that has no offsets yet."""
        return self._each(lambda planner: _cut_at(planner, self._options.starting))

    def final(self) -> Offsets:
        """Where a batch ends."""
        ending = self._options.ending
        assert ending is not None
        return self._each(lambda planner: _cut_at(planner, ending))

    def latest(self) -> Offsets:
        """Where everything ends that is there now."""
        return self._each(GroupPlanner.latest)

    def heads(self) -> Offsets | None:
        """Up to where each group can be planned; None where that cannot be said now."""
        cuts: dict[str, Cut] = {}
        for group, planner in self._groups.items():
            head = planner.attempt(planner.head)
            if head is None or head.cut is None:
                return None
            cuts[group] = head.cut
        return Offsets(cuts)

    def end(self, begin: Offsets, limits: Limits, *, target: Offsets | None, wait: float) -> Offsets:
        """Where a batch ends that begins there: nowhere else where there is nothing new, or where that cannot be said
        now. Up to a target it must be said, for a query that is told of nothing new there takes it that it is done."""
        stops = self._stops(begin, target, wait)
        if stops is None:
            return begin
        ends: dict[str, Cut] = dict(begin)
        share = limits.shared_by(len(stops) or 1)
        for group, stop in stops.items():
            planner = self._groups[group]
            ask = partial(planner.end, begin[group], stop, share)
            found = planner.attempt(ask) if target is None else _insist(planner, ask)
            if found is None:
                return begin
            ends[group] = found
        if len(self._groups) > 1 and self._service is Service.RTO:
            ends = self._at_one_time(begin, stops, ends)
        return Offsets(ends)

    def _stops(self, begin: Offsets, target: Offsets | None, wait: float) -> dict[str, Cut] | None:
        """Up to where groups that have something new can be read; None where that cannot be said now.

        Of several groups in one order none is read beyond the time up to which all are known.
        """
        if target is not None:
            return {group: stop for group, stop in target.items() if is_behind(stop, begin[group])}
        wait /= len(self._groups)
        stops: dict[str, Cut] = {}
        upto: int | None = None
        for group, planner in self._groups.items():
            head = planner.attempt(partial(planner.head, begin[group], wait))
            if head is None:
                return None
            if head.cut is None:
                continue  # nobody has ever sent there
            upto = head.upto if upto is None else min(upto, head.upto)
            if is_behind(head.cut, begin[group]):
                stops[group] = head.cut
        if len(self._groups) == 1 or self._service is not Service.RTO or upto is None:
            return stops
        return self._not_behind(upto, begin, stops)

    def _not_behind(self, timestamp: int, begin: Offsets, stops: Mapping[str, Cut]) -> dict[str, Cut] | None:
        """Of each group what is ordered at or before a timestamp."""
        found: dict[str, Cut] = {}
        for group, stop in stops.items():
            planner = self._groups[group]
            if isinstance(stop, OrderCut) and stop.timestamp > timestamp:
                earlier = planner.attempt(partial(planner.before, timestamp + 1, begin[group], stop))
                if earlier is None:
                    return None
                stop = earlier
            if is_behind(stop, begin[group]):
                found[group] = stop
        return found

    def _at_one_time(self, begin: Offsets, stops: Mapping[str, Cut], ends: Mapping[str, Cut]) -> dict[str, Cut]:
        """Where a limit ended one group, the others end at that time too."""
        limited = [
            end.timestamp for group, end in ends.items() if isinstance(end, OrderCut) and end != stops.get(group, end)
        ]
        if not limited:
            return dict(ends)
        last = (min(limited) >> COUNTER_BITS) + 1 << COUNTER_BITS
        earlier = self._not_behind(last - 1, begin, {group: ends[group] for group in stops})
        return {**begin, **(earlier or {})}

    def has_rows(self, begin: Offsets, end: Offsets, wanted: int) -> bool:
        """Whether there are so many rows between two offsets."""
        found = 0
        for group, planner in self._groups.items():
            found += planner.attempt(partial(planner.rows, begin[group], end[group], wanted - found)) or 0
        return found >= wanted

    # Batches

    def slices(self, begin: Offsets, end: Offsets) -> list[AnySlice]:
        """What tasks are to read between two offsets."""
        sizes = SliceSizes(least=self._options.min_partitions, most_rows=self._options.max_rows_per_partition)
        found: list[AnySlice] = []
        for group, planner in self._groups.items():
            if is_behind(end[group], begin[group]):
                found += _insist(planner, partial(planner.slices, begin[group], end[group], sizes))
        return found

    def commit(self, end: Offsets) -> None:
        """Everything before is done with; what cannot be said now is said with the next."""
        for group, planner in self._groups.items():
            planner.attempt(partial(planner.commit, end[group], self._options.subscription))

    def _each(self, cut_of: Callable[[GroupPlanner], Cut]) -> Offsets:
        return Offsets({group: _insist(planner, partial(cut_of, planner)) for group, planner in self._groups.items()})


def _cut_at(planner: GroupPlanner, point: Start | End) -> Cut:
    match point:
        case Earliest():
            return planner.earliest()
        case Latest():
            return planner.latest()
        case AtCuts(offsets):
            return offsets[planner.group]
        case AtTime(timestamp_us):
            lowest = max(0, timestamp_us - EPOCH_US) << COUNTER_BITS
            return planner.before(lowest, planner.earliest(), planner.latest())
        case AtView(view):
            return planner.before_view(view)


def _insist(planner: GroupPlanner, ask: Callable[[], T]) -> T:
    """An answer that a query cannot do without; what passes is waited for."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := planner.attempt(ask)) is None:
        if time.monotonic() > deadline:
            raise AgentUnavailable(
                f"group {planner.group} could not be planned for {PATIENCE_SECONDS:g} s: {planner.trouble}; "
                "see `intergroup status`"
            ) from planner.trouble
        time.sleep(RETRY_SECONDS)  # the agent is gone or being started, and nobody tells when it is there
    return found
