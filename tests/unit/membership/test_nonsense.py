"""Sound messages that make no sense: whatever others say, a member may doubt it, leave or start anew, but not break."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from intergroup_core.endpoint import Endpoint
from intergroup_core.ids import MAX_TIMESTAMP, MemberId, Service, Timestamp, ViewId
from intergroup_core.wire.header import MAX_SEQ
from intergroup_core.wire.membership import RecoveryInfo
from tests.builders import (
    START,
    STRANGER,
    T0,
    VIEW,
    A,
    B,
    C,
    R,
    S,
    a_control_frame,
    a_keepalive,
    a_live_part,
    a_message,
    a_report,
    after,
    an_arrival,
    an_endpoint,
    hears,
    millis,
    parsed,
    said,
)
from tests.membership_builders import (
    a_change_frame,
    a_cut,
    a_failure_block,
    a_farewell,
    a_join,
    a_leave,
    a_live_receiver,
    a_membership_change,
    a_ready,
    a_recovery_info,
    a_solicitation,
    a_sponsorship,
    a_view_id,
    a_view_request,
    an_add,
    an_add_request,
    an_entry,
)
from tests.property.fuzz_frames import a_live_sender, a_newcomer, a_repairing_sender

SEEDS = 40
STEPS = 30
VIEWS = (VIEW.id, a_view_id(START + 50_000), a_view_id(START + 90_000, B), a_view_id(START + 10**9, C, MAX_SEQ))


class Nonsense:
    """Draws messages whose fields are each possible and together mean nothing."""

    def __init__(self, seed: int, me: MemberId) -> None:
        self._rng = Random(seed)
        self._pool = (me, A, B, C, R, S, STRANGER)
        self._me = me
        self.attempts = [1]
        """Of repairs that the member is in: replies to these are what it waits for."""

    def _one(self) -> MemberId:
        return self._rng.choice(self._pool)

    def _some(self) -> list[MemberId]:
        return self._rng.sample(self._pool, self._rng.randrange(len(self._pool)))

    def _other(self) -> MemberId:
        return self._rng.choice([member for member in self._pool if member != self._me])

    def _seq(self) -> int:
        return self._rng.choice((0, 1, 2, 5, 100, MAX_SEQ))

    def _stamp(self) -> int:
        return self._rng.choice((0, START, START + 10, START + 100_000, START + 10**12, MAX_TIMESTAMP))

    def _view(self) -> ViewId:
        return self._rng.choice(VIEWS)

    def _maybe_view(self) -> ViewId | None:
        return self._rng.choice((None, *VIEWS, VIEW.id, VIEW.id))

    def _cut(self) -> Any:
        return a_cut({member: self._seq() for member in self._some()}, epoch=self._view(), changes=self._stamp())

    def frame(self) -> bytes:
        rng, speaker = self._rng, self._other()
        attempt = rng.choice((*self.attempts, 7))
        draw = rng.randrange(14)
        if draw == 0:
            change = rng.choice((an_add(self._one(), self._seq()), a_leave(rng.choice(("left", "silence", "")))))
            seq = rng.choice((1, 1, 2, 3, 4, 5))
            return a_change_frame(change, speaker, seq, max(1, self._stamp()), view_tag=self._view().tag)
        if draw == 1:
            return a_keepalive(speaker, rng.randrange(6), self._stamp(), view_tag=self._view().tag)
        if draw == 2:
            frames = a_message(sender=speaker, seq=rng.randrange(1, 5), timestamp=max(1, min(self._stamp(), 1 << 62)))
            return frames[0]
        if draw == 3:
            live = a_live_part(
                counted=rng.random() < 0.5, counts=self._some(), ready=self._stamp(), name=rng.choice(("", "m"))
            )
            report = a_report(
                speaker,
                serial=rng.randrange(99),
                acknowledged=self._stamp(),
                contiguous={member: self._seq() for member in self._some()},
                room_frames=self._seq(),
                live=rng.choice((None, live)),
            )
            return a_control_frame(report, view_tag=self._view().tag)
        points = {member: self._seq() for member in self._some()}
        messages: tuple[Any, ...] = (
            a_solicitation(speaker, attempt=self._seq(), clock=self._stamp(), sends=rng.random() < 0.5),
            a_sponsorship(
                speaker,
                self._one(),
                refusal=rng.choice(("", "", "", "no")),
                position=self._stamp(),
                activations=points,
                promises={member: self._stamp() for member in points},
            ),
            an_add_request(speaker, self._one(), epoch=self._view(), first_seq=self._seq()),
            a_join(
                speaker,
                procs=self._some(),
                fails=self._some(),
                serial=rng.randrange(1 << 20),
                epoch=self._maybe_view(),
            ),
            a_failure_block(speaker, self._one(), self._seq(), serial=rng.randrange(1 << 20), epoch=self._view()),
            a_recovery_info(
                speaker,
                attempt=attempt,
                epoch=self._maybe_view(),
                last_seq=self._seq(),
                clock=self._stamp(),
                leaving=rng.random() < 0.3,
                changed=self._stamp(),
                failed=[(member, self._seq(), Timestamp(self._stamp())) for member in self._some()],
            ),
            a_ready(speaker, attempt=attempt, first_seq=self._seq(), cut=rng.choice((None, self._cut()))),
            a_membership_change(
                speaker,
                view=self._view(),
                entries=[an_entry(member, self._seq(), self._maybe_view()) for member in self._some()],
                cuts=[self._cut() for _ in range(rng.randrange(3))],
                attempt=attempt,
                left=self._some(),
                blocked=self._some(),
                primary=rng.random() < 0.5,
                again=rng.random() < 0.5,
            ),
            a_view_request(speaker, epoch=self._maybe_view(), tag=self._view().tag),
            a_farewell(speaker),
        )
        return a_control_frame(messages[draw - 4], view_tag=self._view().tag)


def a_waiting_sender() -> Endpoint:
    """One that agreed with B and C and waits for what they have."""
    member = a_repairing_sender()
    hears(member, a_control_frame(a_join(B, serial=2)), a_control_frame(a_join(C, serial=2)), now=T0)
    assert member.state == "gather cut"
    return member


MEMBERS = {
    "newcomer": a_newcomer,
    "receiver": lambda: a_live_receiver(R),
    "source-ordered receiver": lambda: a_live_receiver(R, service=Service.RSO),
    "sender": a_live_sender,
    "repairing": a_repairing_sender,
    "waiting": a_waiting_sender,
}


def feed(member: Endpoint, seed: int) -> list[bytes]:
    """What was fed, oldest first, up to what broke the member, if anything did."""
    nonsense = Nonsense(seed, member.me)
    fed: list[bytes] = []
    rng = Random(seed)
    ms = 5.0
    for _ in range(STEPS):
        fed.append(nonsense.frame())
        now = after(millis(ms))
        try:
            effects = member.receive(an_arrival(fed[-1]), now) + member.tick(now)
        except Exception as error:
            raise AssertionError(f"seed {seed}, state {member.state}, {parsed(fed[-1])}") from error
        nonsense.attempts += [info.attempt for info in said(effects, RecoveryInfo)]
        ms += rng.choice((0.1, 1, 10, 30, 100))
    return fed


@pytest.mark.parametrize("kind", MEMBERS)
def test_nonsense_breaks_no_member(kind: str) -> None:
    for seed in range(SEEDS):
        feed(MEMBERS[kind](), seed)


@pytest.mark.parametrize("service", [Service.RTO, Service.RSO, Service.UU])
@pytest.mark.parametrize("me", [A, R])
def test_what_is_said_about_membership_breaks_no_member_of_a_view_that_stays(me: MemberId, service: Service) -> None:
    for seed in range(SEEDS):
        member = an_endpoint(me, counted=(A, B, C, R), service=service)
        member.start(T0)
        feed(member, seed)
