"""A member of a group as the tests of its membership protocol put it: in a view, in a repair, about to be."""

from __future__ import annotations

from intergroup_core.ids import MemberId, View
from intergroup_core.wire.membership import (
    MembershipChange,
    RecoveryInfo,
)
from tests.builders import START, STRANGER, T0, VIEW, A, B, C
from tests.membership_builders import (
    a_cut,
    a_join,
    a_membership_change,
    a_recovery_info,
    a_sponsorship,
    a_view_id,
    an_add,
    an_entry,
)
from tests.unit.membership.parts import Process, a_sender

NEXT, OTHER = a_view_id(START + 10**6, B), a_view_id(START + 2 * 10**6, STRANGER, 7)
ENDS = {B: 0, C: 0}


def a_repairing_sender(me: MemberId = A, **settings: float) -> Process:
    process = a_sender(me, **settings)
    process.hears(a_join(B))
    assert process.state == "consensus"
    process.clear()
    return process


def a_next_view(*members: MemberId, **fields: object) -> MembershipChange:
    return a_membership_change(
        B,
        view=NEXT,
        entries=[an_entry(member) for member in members],
        cuts=[a_cut({**ENDS, A: 0})],
        **fields,  # type: ignore[arg-type]
    )


def ready_process(me: MemberId = C) -> tuple[Process, int]:
    """One that waits for the leader's word, and the name of the attempt."""
    process = Process(me)
    process.machine.start(sender=False, now=T0)
    process.hears(a_sponsorship(A, me, view=View(id=VIEW.id, members=(A, B))))
    process.machine.want_to_send(T0)
    process.delivers(an_add(me), A)
    process.hears(a_join(A, serial=1), a_join(B, serial=1))
    process.at(10)
    attempt = process.said(RecoveryInfo)[0].attempt
    process.hears(a_recovery_info(A, attempt=attempt), a_recovery_info(B, attempt=attempt))
    assert process.state == "wait for change"
    return process, attempt
