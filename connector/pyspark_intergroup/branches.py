"""Tells logs of one group apart that went different ways in a partition, when each side went on with views of its own.

Two logs are of one branch as long as, between two views that both have, only one of them has others: that one saw more.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from intergroup_core.errors import DivergedBranches
from intergroup_core.ids import ViewId
from intergroup_core.log.part import says_something
from intergroup_core.log.reader import LogReader
from intergroup_core.runtime.disk import FileDisk


class Seen(NamedTuple):
    """The views of one log, and the timestamps between which it saw everything."""

    views: Sequence[ViewId]
    first: int
    last: int


def of_one_branch(group: str, disks: Sequence[FileDisk], branch: ViewId | None) -> list[FileDisk]:
    """The logs that can be read together; with a branch, those that do not contradict the ones it is in."""
    seen = [_seen(disk) for disk in disks]
    apart = {
        (one, other): found
        for one, other in combinations(range(len(disks)), 2)
        if (found := parted(seen[one], seen[other])) is not None
    }
    if branch is None:
        for (one, other), (here, there) in apart.items():
            raise DivergedBranches(
                f"the logs of group {group} went different ways: {disks[one].where} has view {here} where "
                f"{disks[other].where} has view {there}; say which to follow with branch"
            )
        return list(disks)
    chosen = {at for at, log in enumerate(seen) if branch in log.views}
    if not chosen:
        raise DivergedBranches(f"no log of group {group} has view {branch}; branch must name a view that one has")
    against = {one for pair in apart for one in pair if chosen & set(pair) and one not in chosen}
    return [disk for at, disk in enumerate(disks) if at not in against]


def parted(one: Seen, other: Seen) -> tuple[ViewId, ViewId] | None:
    """Two views, one of each log, that cannot both have been installed by one member; None where there are none."""
    common = sorted(view.start for view in set(one.views) & set(other.views))
    for begin, end in pairwise([-1, *common, max(one.last, other.last) + 1]):
        here, there = _alone(one, other, begin, end), _alone(other, one, begin, end)
        if here is not None and there is not None:
            return here, there
    return None


def _alone(one: Seen, other: Seen, begin: int, end: int) -> ViewId | None:
    """The first view in a span of time that one log has and the other, which saw that time, has not."""
    for view in one.views:
        if begin < view.start < end and other.first <= view.start <= other.last and view not in other.views:
            return view
    return None


def _seen(disk: FileDisk) -> Seen:
    reader = LogReader(disk)
    if not says_something(reader) or not reader.segments:
        return Seen((), 0, 0)
    views = dict.fromkeys(place.view for segment in reader.segments for place in segment.index.view_places())
    first = next((found for segment in reader.segments if (found := segment.index.totals.first_timestamp)), 0)
    return Seen(tuple(views), first, reader.segments[-1].index.totals.highest)
