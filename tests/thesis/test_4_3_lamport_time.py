"""T4.3: a Lamport clock that is moved up to the local processor's time whenever it lags behind."""

from __future__ import annotations

from intergroup_core.ids import Instant, timestamp_at
from intergroup_core.wire.run import Run
from tests.builders import START, T0, A, B, R, a_message, a_view, after, an_arrival, an_endpoint, bursts, millis, said

PAIR = a_view(A, B)


def test_the_time_value_increases_in_the_absence_of_messages() -> None:
    sender = an_endpoint(A, view=PAIR)
    sender.start(T0)
    (early,) = said(sender.send([b"early"], after(millis(1))), Run)
    (late,) = said(sender.send([b"late"], after(millis(900))), Run)
    assert early.timestamp >= timestamp_at(after(millis(1)).wall)
    assert late.timestamp >= timestamp_at(after(millis(900)).wall)


def test_a_processor_whose_clock_stands_still_or_goes_back_still_counts_on() -> None:
    sender = an_endpoint(A, view=PAIR)
    sender.start(T0)
    stamps = []
    for step in range(5):
        now = Instant(T0.mono + millis(10 * step + 10), T0.wall - millis(100 * step))
        (run,) = said(sender.send([b"x"], now), Run)
        stamps.append(run.timestamp)
    assert stamps == sorted(set(stamps))


def test_causality_is_preserved_between_messages() -> None:
    # B's clock is a second behind A's, and yet its answer is ordered after what it answers.
    first, second, receiver = an_endpoint(A, view=PAIR), an_endpoint(B, view=PAIR), an_endpoint(R, view=PAIR)
    for member in (first, second, receiver):
        member.start(T0)
    question = first.send([b"question"], Instant(T0.mono + millis(5), T0.wall + millis(1_005)))
    second.receive(an_arrival(*bursts(question)), after(millis(6)))
    answer = second.send([b"answer"], after(millis(7)))
    (asked,), (answered,) = said(question, Run), said(answer, Run)
    assert answered.timestamp > asked.timestamp


def test_a_late_message_does_not_move_time_back() -> None:
    sender = an_endpoint(A, view=PAIR)
    sender.start(T0)
    (before,) = said(sender.send([b"x"], after(millis(50))), Run)
    sender.receive(an_arrival(*a_message([b"old"], sender=B, timestamp=START + 1)), after(millis(51)))
    (behind,) = said(sender.send([b"y"], after(millis(51))), Run)
    assert behind.timestamp > before.timestamp
