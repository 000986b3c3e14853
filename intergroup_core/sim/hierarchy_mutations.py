"""Bugs planted on purpose in the control hierarchy, one at a time, to see that its simulations catch them."""

from __future__ import annotations

from typing import Any

from intergroup_core.hierarchy import leadership as leadership_module
from intergroup_core.hierarchy.acknowledgments import Gathering, Ledger, Whole
from intergroup_core.hierarchy.attachment import Attachment
from intergroup_core.hierarchy.determination import Appropriateness, SelfDetermination
from intergroup_core.hierarchy.leadership import Leadership
from intergroup_core.hierarchy.peers import Known, Peers
from intergroup_core.hierarchy.process import ControlProcess
from intergroup_core.sim.mutations import Planting, Wrong, registry

HIERARCHY_PLANTINGS: dict[str, Planting] = {}
"""Every planted bug of the hierarchy: what it replaces, and how."""

_bug = registry(HIERARCHY_PLANTINGS)


# Who counts


@_bug(Ledger, "keep")
def the_dead_count_no_longer_at_once(right: Wrong) -> Wrong:
    return lambda self, site, until: self.drop(site)


@_bug(Ledger, "kept")
def new_coordinators_are_not_told_of_the_dead(right: Wrong) -> Wrong:
    return lambda self: iter(())


@_bug(leadership_module, "least")
def the_most_is_taken_for_the_least(right: Wrong) -> Wrong:
    def wrong(tables: Any) -> Any:
        found: dict[Any, Any] = {}
        for table in tables:
            for key, own in table.items():
                if key not in found or own.upto > found[key].upto:
                    found[key] = own
        return found

    return wrong


@_bug(Leadership, "knows_all")
def a_coordinator_speaks_for_those_it_has_not_heard(right: Wrong) -> Wrong:
    return lambda self, now: True


@_bug(Leadership, "rumour")
def rumours_are_ignored(right: Wrong) -> Wrong:
    return lambda self, site, until: None


@_bug(Leadership, "receive_child")
def children_are_not_counted(right: Wrong) -> Wrong:
    def wrong(self: Any, message: Any, *rest: Any, **named: Any) -> None:
        right(self, message, *rest, **named)
        self._of_children.drop(message.site)

    return wrong


@_bug(Leadership, "fellow_left")
def orphans_of_one_that_leaves_are_dropped(right: Wrong) -> Wrong:
    return lambda self, site, clock, now, keep_until=None: right(self, site, clock, now, keep_until=None)


# Who takes itself for counted


@_bug(Attachment, "sent")
def what_is_sent_counts_at_once(right: Wrong) -> Wrong:
    def wrong(self: Any, clock: int, keys: Any, now: int) -> None:
        right(self, clock, keys, now)
        self._settled_at = now
        self._counted_at.update(dict.fromkeys(keys, now))

    return wrong


@_bug(Attachment, "all_counted")
def the_old_place_is_left_before_the_new_one_counts(right: Wrong) -> Wrong:
    return lambda self, keys, since: True


@_bug(ControlProcess, "counted")
def once_counted_is_counted_for_ever(right: Wrong) -> Wrong:
    def wrong(self: Any, key: Any, now: int) -> bool:
        if right(self, key, now):
            self.was_counted = True
        return bool(getattr(self, "was_counted", False))

    return wrong


@_bug(ControlProcess, "_slept")
def who_stood_still_does_not_notice(right: Wrong) -> Wrong:
    return lambda self, now: False


@_bug(Attachment, "forget")
def what_was_said_before_it_was_taken_back_counts(right: Wrong) -> Wrong:
    return lambda self, key: self._counted_at.pop(key, None)


# Messages


@_bug(Gathering, "add")
def a_part_is_taken_for_the_whole(right: Wrong) -> Wrong:
    return lambda self, message: Whole(message, message.acknowledgments, message.cuts)


@_bug(Peers, "heard")
def an_older_message_replaces_a_newer_one(right: Wrong) -> Wrong:
    def wrong(self: Any, site: Any, *rest: Any) -> bool:
        known = self._known.get(site)
        if known is not None:
            known.clock = None
        found: bool = right(self, site, *rest)
        return found

    return wrong


@_bug(Known, "sample")
def the_round_trip_is_the_distance(right: Wrong) -> Wrong:
    return lambda self, round_trip_us: right(self, 2 * round_trip_us)


# Places


@_bug(SelfDetermination, "coordinator_goes_on")
def one_coordinator_too_many_is_taken_for_enough(right: Wrong) -> Wrong:
    def wrong(self: Any, appropriateness: Any, coordinators: int) -> bool:
        if appropriateness is Appropriateness.INAPPROPRIATE:
            return coordinators >= int(self._high)
        found: bool = right(self, appropriateness, coordinators)
        return found

    return wrong


@_bug(Leadership, "forget_silent")
def the_dead_are_never_noticed(right: Wrong) -> Wrong:
    return lambda self, *rest: []


@_bug(ControlProcess, "_finish_promotion")
def new_coordinators_never_leave_their_old_group(right: Wrong) -> Wrong:
    return lambda self, now: None
