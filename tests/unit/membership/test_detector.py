from __future__ import annotations

from intergroup_core.membership.detector import FaultDetector
from tests.builders import T0, A, B, C, millis
from tests.unit.membership.parts import a_membership_config

START = T0.mono
STEP = millis(10)


class Watch:
    """A detector that is ticked every ten milliseconds while members are heard at intervals of their own."""

    def __init__(self, **settings: float) -> None:
        self.detector = FaultDetector(a_membership_config(**settings))
        self.detector.watch([A, B], START)
        self.now = START
        self.suspected: dict[int, list[int]] = {}

    def run(self, ms: int, **heard_every_ms: int) -> None:
        intervals = {{"a": A, "b": B, "c": C}[name]: millis(every) for name, every in heard_every_ms.items()}
        start = self.now
        while self.now < start + millis(ms):
            self.now += STEP
            for member, interval in intervals.items():
                if (self.now - start) % interval == 0:
                    self.detector.heard(member, self.now)
            for member in self.detector.tick(self.now):
                self.suspected.setdefault(member, []).append((self.now - START) // millis(1))


def test_a_member_that_is_silent_for_the_time_out_is_suspected() -> None:
    watch = Watch(suspect_ms=800)
    watch.run(790, a=50)
    assert watch.suspected == {}
    watch.run(200, a=50)
    assert list(watch.suspected) == [B]
    assert 800 <= watch.suspected[B][0] <= 900


def test_a_suspicion_is_raised_once() -> None:
    watch = Watch(suspect_ms=800)
    watch.run(3_000, a=50)
    assert len(watch.suspected[B]) == 1


def test_a_suspected_member_that_is_heard_again_and_falls_silent_again_is_suspected_again() -> None:
    watch = Watch(suspect_ms=800, suspect_max_ms=800)
    watch.run(1_000, a=50)
    watch.run(1_000, a=50, b=100)
    watch.run(1_500, a=50)
    assert len(watch.suspected[B]) == 2


def test_a_member_whose_usual_silences_are_long_is_given_more_time() -> None:
    watch = Watch(suspect_ms=800, suspect_max_ms=10_000)
    watch.run(3_000, a=50, b=600)
    before = watch.now
    watch.run(1_200, a=50)
    assert watch.suspected == {}, "twice its usual silence is not unusual enough"
    watch.run(1_500, a=50)
    assert B in watch.suspected
    assert watch.suspected[B][0] * millis(1) + START - before < millis(2_000)


def test_however_irregular_a_member_is_there_is_a_longest_time_out() -> None:
    watch = Watch(suspect_ms=800, suspect_max_ms=1_000)
    watch.run(3_500, a=50, b=700)
    watch.run(1_200, a=50)
    assert B in watch.suspected


def test_an_old_irregularity_fades() -> None:
    watch = Watch(suspect_ms=800, suspect_max_ms=10_000)
    watch.run(1_400, a=50, b=700)
    watch.run(30_000, a=50, b=50)
    watch.run(1_000, a=50)
    assert B in watch.suspected


def test_a_member_that_stood_still_itself_blames_nobody() -> None:
    watch = Watch(suspect_ms=800)
    watch.run(1_000, a=50, b=50)
    watch.now += millis(60_000)
    watch.run(700, a=50)
    assert watch.suspected == {}
    assert watch.detector.pauses == 1
    watch.run(300, a=50)
    assert list(watch.suspected) == [B], "from then on silence counts again"


def test_a_pause_is_no_silence_of_those_who_are_heard_right_after_it() -> None:
    watch = Watch(suspect_ms=800, suspect_max_ms=100_000)
    watch.run(1_000, a=50, b=50)
    watch.now += millis(60_000)
    watch.run(100, a=50, b=50)
    watch.run(2_000, a=50)
    assert B in watch.suspected, "its time-out did not grow because this member was paused"


def test_what_arrives_after_a_pause_before_the_late_check_does_not_stretch_time_outs() -> None:
    watch = Watch(suspect_ms=800, suspect_max_ms=100_000)
    watch.run(1_000, a=50, b=50)
    watch.now += millis(60_000)
    watch.detector.heard(B, watch.now)
    watch.detector.heard(A, watch.now)
    watch.run(3_000, a=50)
    assert B in watch.suspected


def test_only_watched_members_are_suspected_and_new_ones_get_the_whole_time() -> None:
    watch = Watch(suspect_ms=800)
    watch.run(600)
    watch.detector.watch([B, C], watch.now)
    watch.run(300, b=100)
    assert watch.suspected == {}
    watch.run(700, b=100)
    assert list(watch.suspected) == [C]


def test_one_that_stays_watched_is_not_given_time_anew() -> None:
    watch = Watch(suspect_ms=800)
    watch.run(600, a=50)
    watch.detector.watch([A, B], watch.now)
    watch.run(300, a=50)
    assert list(watch.suspected) == [B]


def test_all_suspected_means_that_nobody_is_heard() -> None:
    watch = Watch(suspect_ms=800)
    watch.run(1_000, a=50)
    assert not watch.detector.all_suspected
    watch.run(1_000)
    assert watch.detector.all_suspected
    watch.detector.heard(B, watch.now)
    assert not watch.detector.all_suspected


def test_nobody_to_watch_needs_no_time() -> None:
    detector = FaultDetector(a_membership_config())
    assert detector.next_deadline() is None
    detector.watch([A], START)
    assert detector.next_deadline() is not None
    detector.watch([], START)
    assert detector.next_deadline() is None
    assert detector.all_suspected, "an empty view has no sender that is heard"


def test_watching_again_after_a_long_time_without_anybody_is_no_pause() -> None:
    detector = FaultDetector(a_membership_config())
    detector.watch([A], START)
    detector.watch([], START)
    later = START + millis(60_000)
    detector.watch([B], later)
    detector.tick(later + millis(1))
    assert detector.pauses == 0
