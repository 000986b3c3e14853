"""Bugs planted in what members agree on: changes, cuts, quorums. Chance rarely shows them, so most have a scenario."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from intergroup_core.datapath.path import DataPath
from intergroup_core.delivery.rso import ReliableSourceOrdered
from intergroup_core.hierarchy.flat import FlatReports
from intergroup_core.ids import Timestamp
from intergroup_core.membership import repair as repair_module
from intergroup_core.membership.process import Membership
from intergroup_core.membership.quorum import Quorum
from intergroup_core.membership.repair import Repair
from intergroup_core.membership.standing import Standing
from intergroup_core.membership.states import State
from intergroup_core.sim.mutations import Planting, Wrong, registry

AGREEMENT_PLANTINGS: dict[str, Planting] = {}
"""Every planted bug of agreement: what it replaces, and how."""

_bug = registry(AGREEMENT_PLANTINGS)


# Ordered changes


@_bug(FlatReports, "all_ready")
def changes_wait_for_nobody(right: Wrong) -> Wrong:
    return lambda self, change: True


@_bug(Membership, "_add")
def requests_of_long_ago_are_acted_on(right: Wrong) -> Wrong:
    def wrong(self: Any, request: Any, now: Any) -> None:
        path = self.standing.path
        departed, path.departed = path.departed, {}
        right(self, replace(request, epoch=self.standing.epoch), now)
        path.departed = departed

    return wrong


@_bug(DataPath, "_add_source")
def a_returning_source_starts_where_it_once_did(right: Wrong) -> Wrong:
    def wrong(self: Any, source: Any, *rest: Any) -> None:
        departed, self.departed = self.departed, {}
        right(self, source, *rest)
        self.departed = {member: seq for member, seq in departed.items() if member != source}

    return wrong


@_bug(DataPath, "_add_source")
def a_second_add_begins_a_source_anew(right: Wrong) -> Wrong:
    def wrong(self: Any, *rest: Any) -> None:
        present, self._present = self._present, set()
        right(self, *rest)
        self._present = present

    return wrong


@_bug(ReliableSourceOrdered, "remove")
def departed_sources_are_forgotten(right: Wrong) -> Wrong:
    def wrong(self: Any, source: Any) -> None:
        self._sources.pop(source, None)

    return wrong


# Cuts


@_bug(repair_module, "ending_of")
def the_cut_is_at_the_best_promise(right: Wrong) -> Wrong:
    def wrong(*rest: Any) -> Any:
        found = right(*rest)
        return replace(found, bound=Timestamp(max(found.promises.values(), default=found.bound)))

    return wrong


@_bug(Repair, "change")
def the_leader_does_not_wait_for_all(right: Wrong) -> Wrong:
    def wrong(self: Any, now: Any) -> Any:
        readies, infos = self._readies.get(self._attempt, {}), self._infos.get(self._attempt, {})
        own = readies.get(self.consensus.me)
        if own is not None and self.state is State.GATHER_READY:
            for member in self.consensus.members - readies.keys():
                readies[member] = replace(own, member=member, first_seq=infos[member].last_seq + 1)
        return right(self, now)

    return wrong


# Quorums


@_bug(Quorum, "_suffices")
def half_is_a_majority(right: Wrong) -> Wrong:
    return lambda self, here, needed: 2 * len(here & needed) >= len(needed)


@_bug(Quorum, "attempting")
def attempts_are_not_remembered(right: Wrong) -> Wrong:
    return lambda self, *rest: None


@_bug(Standing, "persist")
def records_are_lost_with_the_process(right: Wrong) -> Wrong:
    return lambda self: None


@_bug(Quorum, "decide")
def only_the_last_view_is_asked(right: Wrong) -> Wrong:
    def wrong(self: Any, records: Any, sites: Any) -> bool:
        found: bool = right(self, [replace(record, pending=()) for record in records], sites)
        return found

    return wrong
