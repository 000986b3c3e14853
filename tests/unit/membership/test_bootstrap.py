from __future__ import annotations

from itertools import pairwise

import pytest

from intergroup_core.ids import MemberId, View, timestamp_span
from intergroup_core.membership.bootstrap import Newcomer, Sponsor
from intergroup_core.wire.membership import Solicitation, Sponsorship
from tests.builders import START, T0, VIEW, A, B, C, R, S, after, millis
from tests.membership_builders import a_solicitation, a_sponsorship
from tests.unit.membership.parts import Bench

EMPTY = View(id=VIEW.id, members=())
BOUND = millis(30_000)


def calls(bench: Bench, newcomer: Newcomer, ms: int, *, sends: bool = False) -> list[float]:
    """When the newcomer calls, in milliseconds."""
    times: list[float] = []
    while (due := newcomer.next_deadline()) <= T0.mono + millis(ms):
        said = len(bench.messages)
        newcomer.tick(after(due - T0.mono), sends=sends)
        times += [(due - T0.mono) / 1e6] * (len(bench.messages) - said)
    return times


# The newcomer


def test_a_newcomer_calls_at_once_and_says_who_it_is() -> None:
    bench = Bench(R, None, site="oslo")
    Newcomer(bench.standing, T0).tick(T0, sends=True)
    assert bench.messages == [Solicitation(member=R, name=f"m{R:x}", site="oslo", attempt=0, clock=START, sends=True)]


def test_calls_come_at_the_same_pace_for_a_while_and_then_less_and_less_often_up_to_a_limit() -> None:
    bench = Bench(R, None)
    times = calls(bench, Newcomer(bench.standing, T0), 30_000)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert all(37 <= gap <= 63 for gap in gaps[:4])
    assert gaps[8] > 3 * gaps[0]
    assert max(gaps) <= 50 * 32 * 1.25


def test_every_call_is_another_attempt() -> None:
    bench = Bench(R, None)
    calls(bench, Newcomer(bench.standing, T0), 1_000)
    attempts = [call.attempt for call in bench.said(Solicitation)]
    assert attempts == list(range(len(attempts)))


def test_a_newcomer_that_hears_the_group_hurries() -> None:
    bench = Bench(R, None)
    newcomer = Newcomer(bench.standing, T0)
    calls(bench, newcomer, 10_000)
    newcomer.hurry(after(millis(10_000)))
    assert newcomer.next_deadline() <= T0.mono + millis(10_050)


def test_fellow_newcomers_are_those_who_want_to_send_and_were_heard_lately() -> None:
    bench = Bench(R, None)
    newcomer = Newcomer(bench.standing, T0)
    newcomer.overheard(a_solicitation(A, sends=True), T0)
    newcomer.overheard(a_solicitation(B, sends=False), T0)
    newcomer.overheard(a_solicitation(C, sends=True), after(millis(300)))
    assert newcomer.fellows(after(millis(100))) == [A, C]
    assert newcomer.fellows(after(millis(400))) == [C]


def test_fellows_have_a_bound() -> None:
    newcomer = Newcomer(Bench(R, None).standing, T0)
    for member in range(1, Newcomer.MAX_FELLOWS + 9):
        newcomer.overheard(a_solicitation(MemberId(member), sends=True), T0)
    assert len(newcomer.fellows(T0)) == Newcomer.MAX_FELLOWS


# The sponsor


def test_the_sender_whose_turn_it_is_answers_and_nobody_else() -> None:
    for attempt, chosen in [(0, A), (1, B), (2, C), (3, A)]:
        answering = []
        for me in (A, B, C):
            bench = Bench(me)
            Sponsor(bench.standing, BOUND).called(a_solicitation(R, attempt=attempt), T0)
            answering += [answer.member for answer in bench.said(Sponsorship)]
        assert answering == [chosen]


def test_an_answer_says_where_the_group_is() -> None:
    bench = Bench(A)
    Sponsor(bench.standing, BOUND).called(a_solicitation(R), T0)
    (answer,) = bench.said(Sponsorship)
    assert (answer.newcomer, answer.epoch, answer.view, answer.refusal) == (R, VIEW.id, VIEW.id, "")
    assert [peer.id for peer in answer.peers] == [A, B, C]
    assert answer.activations == ((A, 1), (B, 1), (C, 1))


def test_what_a_newcomer_needs_is_kept_for_it() -> None:
    bench = Bench(A, lease_ms=1_000)
    Sponsor(bench.standing, BOUND).called(a_solicitation(R), T0)
    assert bench.stream.pins == {R: T0.mono + millis(1_000)}


def test_a_newcomer_whose_clock_is_too_far_ahead_is_refused() -> None:
    bench = Bench(A)
    wild = START + timestamp_span(BOUND) + timestamp_span(millis(1))
    Sponsor(bench.standing, BOUND).called(a_solicitation(R, clock=wild), T0)
    (answer,) = bench.said(Sponsorship)
    assert answer.refusal == "clock"
    assert answer.ahead_us == 30_001_000
    assert bench.stream.pins == {}


def test_a_newcomer_whose_clock_is_behind_is_taken_and_told_so() -> None:
    bench = Bench(A)
    Sponsor(bench.standing, BOUND).called(a_solicitation(R, clock=START - timestamp_span(millis(90_000))), T0)
    (answer,) = bench.said(Sponsorship)
    assert (answer.refusal, answer.ahead_us) == ("", -90_000_000)


def test_a_sender_of_the_view_is_no_newcomer() -> None:
    bench = Bench(A)
    Sponsor(bench.standing, BOUND).called(a_solicitation(B), T0)
    assert bench.messages == []


def test_receivers_do_not_answer_where_there_are_senders() -> None:
    bench = Bench(S)
    sponsor = Sponsor(bench.standing, BOUND)
    for attempt in range(10):
        sponsor.called(a_solicitation(R, attempt=attempt), T0)
    assert (bench.messages, sponsor.next_deadline()) == ([], None)


def test_in_an_empty_view_a_receiver_answers_after_a_while() -> None:
    bench = Bench(S, EMPTY)
    sponsor = Sponsor(bench.standing, BOUND)
    sponsor.called(a_solicitation(R), T0)
    assert bench.messages == []
    due = sponsor.next_deadline()
    assert due is not None
    assert T0.mono <= due <= T0.mono + millis(25)
    sponsor.tick(after(due - T0.mono))
    assert [answer.newcomer for answer in bench.said(Sponsorship)] == [R]
    assert sponsor.next_deadline() is None


def test_receivers_answer_at_different_times() -> None:
    dues = set()
    for seed in range(8):
        sponsor = Sponsor(Bench(S, EMPTY, seed=seed).standing, BOUND)
        sponsor.called(a_solicitation(R), T0)
        dues.add(sponsor.next_deadline())
    assert len(dues) > 5


def test_a_receiver_that_hears_another_answer_keeps_silent() -> None:
    bench = Bench(S, EMPTY)
    sponsor = Sponsor(bench.standing, BOUND)
    sponsor.called(a_solicitation(R), T0)
    sponsor.called(a_solicitation(B), T0)
    sponsor.answered(a_sponsorship(C, R))
    sponsor.tick(after(millis(50)))
    assert [answer.newcomer for answer in bench.said(Sponsorship)] == [B]


def test_a_receiver_that_begins_a_repair_answers_nobody() -> None:
    bench = Bench(S, EMPTY)
    sponsor = Sponsor(bench.standing, BOUND)
    sponsor.called(a_solicitation(R), T0)
    sponsor.forget_all()
    sponsor.tick(after(millis(50)))
    assert bench.messages == []


def test_a_receiver_keeps_only_so_many_newcomers_in_mind() -> None:
    bench = Bench(S, EMPTY)
    sponsor = Sponsor(bench.standing, BOUND)
    for member in range(1, Sponsor.MAX_WAITING + 20):
        sponsor.called(a_solicitation(MemberId(member)), T0)
    sponsor.tick(after(millis(50)))
    assert len(bench.messages) == Sponsor.MAX_WAITING


@pytest.mark.parametrize("attempt", range(3))
def test_a_sponsor_without_a_view_says_nothing(attempt: int) -> None:
    bench = Bench(A, None)
    Sponsor(bench.standing, BOUND).called(a_solicitation(R, attempt=attempt), T0)
    assert bench.messages == []
