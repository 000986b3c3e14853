"""Bugs planted on purpose in live membership, one at a time, to see that the checkers catch them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from intergroup_core.datapath.path import DataPath
from intergroup_core.endpoint import Endpoint
from intergroup_core.hierarchy.flat import FlatReports
from intergroup_core.ids import Timestamp
from intergroup_core.membership import repair as repair_module
from intergroup_core.membership.detector import FaultDetector
from intergroup_core.membership.process import Membership
from intergroup_core.membership.repair import Repair
from intergroup_core.membership.standing import Standing
from intergroup_core.sim.mutations import SOME_TIME, Planting, Wrong, registry

LIVE_PLANTINGS: dict[str, Planting] = {}
"""Every planted bug of live membership: what it replaces, and how."""

_bug = registry(LIVE_PLANTINGS)


# Views


@_bug(Standing, "install")
def everybody_came_along(right: Wrong) -> Wrong:
    def wrong(self: Any, view: Any, peers: Any, **named: Any) -> None:
        right(self, view, peers, **(named | {"transitional": [peer.id for peer in peers]}))

    return wrong


@_bug(Standing, "install")
def nobody_came_along(right: Wrong) -> Wrong:
    return lambda self, view, peers, **named: right(self, view, peers, **(named | {"transitional": ()}))


@_bug(Standing, "install")
def members_of_a_view_disagree(right: Wrong) -> Wrong:
    def wrong(self: Any, view: Any, peers: Any, **named: Any) -> None:
        others = [peer for peer in peers if peer.id != self.me.id]
        kept = peers if view.leader == self.me.id or not others else [peer for peer in peers if peer is not others[-1]]
        right(self, view, kept, **named)

    return wrong


@_bug(Membership, "_go")
def who_leaves_just_goes(right: Wrong) -> Wrong:
    return lambda self, reason, now: self._gone(reason)


# The end of an epoch


@_bug(DataPath, "finish")
def the_rest_of_a_view_is_not_delivered(right: Wrong) -> Wrong:
    def wrong(self: Any, *rest: Any) -> None:
        self.delivering = True

    return wrong


@_bug(DataPath, "halt")
def stamping_goes_on_in_a_repair(right: Wrong) -> Wrong:
    def wrong(self: Any) -> None:
        self.delivering = False

    return wrong


@_bug(DataPath, "has_reached")
def what_ends_a_view_is_not_recovered(right: Wrong) -> Wrong:
    return lambda self: True


@_bug(DataPath, "has_passed")
def a_receiver_ahead_of_the_cut_goes_on(right: Wrong) -> Wrong:
    return lambda self, *rest: False


@_bug(repair_module, "ending_of")
def the_cut_is_too_low(right: Wrong) -> Wrong:
    def wrong(*rest: Any) -> Any:
        found = right(*rest)
        return replace(found, bound=Timestamp(found.bound - 8 * SOME_TIME))

    return wrong


@_bug(Repair, "said_ready_for")
def any_change_is_installed(right: Wrong) -> Wrong:
    return lambda self, attempt: True


@_bug(DataPath, "receive_run")
def frames_of_any_view_are_taken(right: Wrong) -> Wrong:
    def wrong(self: Any, run: Any, now: Any) -> bool:
        run.view_tag = self.view_tag
        found: bool = right(self, run, now)
        return found

    return wrong


# Coming


@_bug(DataPath, "sponsored")
def newcomers_start_one_frame_late(right: Wrong) -> Wrong:
    def wrong(self: Any) -> Any:
        position, activations, promises = right(self)
        return position, tuple((source, seq + 1) for source, seq in activations), promises

    return wrong


@_bug(DataPath, "begin_epoch")
def an_epoch_starts_one_frame_late(right: Wrong) -> Wrong:
    def wrong(self: Any, view_tag: int, start: int, activations: Any, *rest: Any) -> None:
        late = {source: seq + (source != self.me) for source, seq in activations.items()}
        right(self, view_tag, start, late, *rest)

    return wrong


@_bug(Endpoint, "_reborn")
def a_gap_is_kept_secret(right: Wrong) -> Wrong:
    def wrong(self: Any, reason: str, now: Any) -> Any:
        before = self.me
        peer = right(self, reason, now)
        self.me = before
        self._effects.pop()
        return replace(peer, id=before)

    return wrong


# Noticing


@_bug(FaultDetector, "tick")
def the_dead_are_never_suspected(right: Wrong) -> Wrong:
    return lambda self, now: right(self, now) and []


@_bug(Membership, "stranger")
def other_components_are_never_met(right: Wrong) -> Wrong:
    return lambda self, *rest: False


# Stability


@_bug(FlatReports, "_least")
def receivers_are_left_out_of_stability(right: Wrong) -> Wrong:
    def wrong(self: Any) -> Timestamp:
        others = self._others
        self._others = {member: None for member in others if member in self._senders}
        found: Timestamp = right(self)
        self._others = others
        return found

    return wrong


@_bug(DataPath, "pin")
def sponsors_do_not_wait_for_their_newcomers(right: Wrong) -> Wrong:
    return lambda self, *rest: None
