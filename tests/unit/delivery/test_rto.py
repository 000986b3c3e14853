from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from intergroup_core.counters import Counters
from intergroup_core.delivery.rto import ReliableTimestampOrdered
from intergroup_core.ids import MAX_TIMESTAMP, MemberId
from intergroup_core.wire.membership import Change
from intergroup_core.wire.run import Run
from tests.builders import START, A, B, C, R, a_run, parsed
from tests.membership_builders import a_change_frame, a_leave
from tests.sizes import sized


def an_order(*sources: MemberId, me: MemberId = R, counters: Counters | None = None) -> ReliableTimestampOrdered:
    return ReliableTimestampOrdered(me, sources or (A, B, C), START, counters or Counters())


def taken(order: ReliableTimestampOrdered) -> list[tuple[int, int]]:
    """(timestamp after the start, source) of what is delivered now."""
    return [(m.timestamp - START, m.source) for chunk in order.take() for m in chunk.messages()]


def test_a_message_waits_until_every_other_source_has_promised_its_timestamp() -> None:
    order = an_order()
    order.ordered(a_run(A, 1, START + 10))
    assert taken(order) == []
    order.promised(B, START + 10)
    assert taken(order) == []
    order.promised(C, START + 9)
    assert taken(order) == []
    order.promised(C, START + 10)
    assert taken(order) == [(10, A)]


def test_data_is_a_promise_too() -> None:
    order = an_order()
    order.ordered(a_run(A, 1, START + 10))
    order.ordered(a_run(B, 1, START + 20))
    order.ordered(a_run(C, 1, START + 30))
    assert taken(order) == [(10, A)]
    order.promised(A, START + 25)
    assert taken(order) == [(20, B)]


def test_before_anything_is_heard_the_promise_of_a_source_is_the_start_of_the_view() -> None:
    order = an_order(A, B)
    order.ordered(a_run(A, 1, START))
    assert taken(order) == [(0, A)]


def test_equal_timestamps_are_ordered_by_sender_id_unsigned() -> None:
    order = an_order()
    for source in (C, B, A):
        order.ordered(a_run(source, 1, START + 10))
    for source in (A, B, C):
        order.promised(source, START + 11)
    assert taken(order) == [(10, A), (10, B), (10, C)]


def test_of_equal_timestamps_the_higher_id_waits_for_the_lower_ones_message_or_promise() -> None:
    order = an_order(A, C)
    order.ordered(a_run(C, 1, START + 10))
    order.promised(A, START + 9)
    assert taken(order) == []
    order.ordered(a_run(A, 1, START + 10))
    assert taken(order) == [(10, A), (10, C)]


def test_a_half_received_large_message_does_not_block_others() -> None:
    order = an_order(A, B)
    order.ordered(a_run(A, 1, START + 10, "..."))
    order.ordered(a_run(B, 1, START + 12))
    assert taken(order) == [(12, B)]
    order.ordered(a_run(A, 4, START + 13, "|"))
    order.promised(B, START + 13)
    assert taken(order) == [(13, A)]


def test_a_large_message_is_ordered_by_its_last_frame() -> None:
    order = an_order(A, B)
    order.ordered(a_run(A, 1, START + 10, "...|"))
    order.ordered(a_run(B, 1, START + 12))
    order.promised(A, START + 20)
    order.promised(B, START + 20)
    assert taken(order) == [(12, B), (13, A)]


def test_a_run_is_split_exactly_where_the_order_cuts_it() -> None:
    counters = Counters()
    order = an_order(A, B, counters=counters)
    order.ordered(a_run(A, 1, START + 10, "|||||"))
    order.ordered(a_run(B, 1, START + 12))
    chunks = order.take()
    assert [(chunk.source, chunk.first_timestamp - START, chunk.count) for chunk in chunks] == [(A, 10, 3), (B, 12, 1)]
    assert counters.run_splits == 1
    order.promised(B, START + 13)
    assert [(chunk.source, chunk.count) for chunk in order.take()] == [(A, 1)]
    assert counters.run_splits == 2
    order.promised(B, START + 99)
    assert [(chunk.source, chunk.count) for chunk in order.take()] == [(A, 1)]
    assert counters.run_splits == 2


def test_a_run_that_no_order_cuts_is_delivered_whole() -> None:
    counters = Counters()
    order = an_order(A, B, counters=counters)
    order.ordered(a_run(A, 1, START + 10, "|" * 40))
    order.promised(B, START + 100)
    (chunk,) = order.take()
    assert chunk.count == 40
    assert counters.run_splits == 0


def test_a_cut_falls_before_a_tie_of_a_lower_sender_and_after_one_of_a_higher() -> None:
    for other, expected in ((A, [(10, B), (11, A), (11, B)]), (C, [(10, B), (11, B), (11, C)])):
        order = an_order(B, other)
        order.ordered(a_run(B, 1, START + 10, "||"))
        order.ordered(a_run(other, 1, START + 11))
        order.promised(B, START + 50)
        order.promised(other, START + 50)
        assert taken(order) == expected


def test_a_promise_never_sinks() -> None:
    order = an_order(A, B)
    order.promised(B, START + 20)
    order.promised(B, START + 5)
    order.ordered(a_run(A, 1, START + 15))
    assert taken(order) == [(15, A)]


def test_a_members_own_silence_does_not_block_what_it_delivers() -> None:
    order = an_order(A, B, me=A)
    order.ordered(a_run(B, 1, START + 10))
    assert taken(order) == [(10, B)]


def test_a_members_own_messages_wait_for_the_others() -> None:
    order = an_order(A, B, me=A)
    order.ordered(a_run(A, 1, START + 10))
    assert taken(order) == []
    order.promised(B, START + 10)
    assert taken(order) == [(10, A)]


def test_a_lone_sender_delivers_at_once() -> None:
    order = an_order(A, me=A)
    order.ordered(a_run(A, 1, START + 10, "|.|"))
    assert taken(order) == [(10, A), (12, A)]


def test_the_delivered_time_is_that_of_the_last_message() -> None:
    order = an_order(A, B)
    assert order.delivered == START
    order.ordered(a_run(A, 1, START + 10, "|||"))
    order.promised(B, START + 11)
    order.take()
    assert order.delivered == START + 11


def test_what_delivery_waits_for_can_be_asked_for() -> None:
    order = an_order()
    assert order.blocked_on() == []
    order.ordered(a_run(A, 1, START + 10))
    order.promised(B, START + 4)
    assert sorted(order.blocked_on()) == [(B, START + 10), (C, START + 10)]
    order.ordered(a_run(B, 1, START + 30))
    assert order.blocked_on() == [(C, START + 10)]
    order.promised(C, START + 40)
    order.take()
    assert order.blocked_on() == [(A, START + 30)]


def test_deliveries_that_a_keep_alive_made_possible_are_counted() -> None:
    counters = Counters()
    order = an_order(A, B, counters=counters)
    order.ordered(a_run(A, 1, START + 10))
    order.ordered(a_run(B, 1, START + 20))
    order.take()
    assert counters.keepalive_deliveries == 0
    order.promised(A, START + 20)
    order.take()
    assert counters.keepalive_deliveries == 1


def test_what_is_acknowledged_is_below_everything_not_delivered() -> None:
    order = an_order(A, B)
    own = START + 1_000
    assert order.acknowledged(own) == START
    order.ordered(a_run(A, 1, START + 10, ".|"))
    order.promised(B, START + 5)
    order.take()
    assert order.acknowledged(own) == START + 5
    order.promised(B, START + 10)
    order.take()
    assert order.acknowledged(own) == START + 9, "the first frame of the undelivered message has 10"
    order.promised(B, START + 50)
    order.take()
    assert order.acknowledged(own) == START + 11
    order.promised(A, START + 60)
    assert order.acknowledged(own) == START + 50
    assert order.acknowledged(START + 40) == START + 40, "nobody acknowledges beyond its own clock"


def test_a_message_in_progress_is_not_acknowledged_though_its_frames_promise() -> None:
    order = an_order(A, B)
    order.ordered(a_run(A, 1, START + 10, "|.."))
    order.promised(B, START + 99)
    order.take()
    assert order.acknowledged(START + 1_000) == START + 10


@dataclass
class History:
    """What one source sends: runs, as (first timestamp, ends), and promises, in order."""

    source: MemberId
    steps: list[tuple[int, str]] = field(default_factory=list)
    """A promise has no frames."""

    def messages(self, upto: int) -> list[tuple[int, MemberId]]:
        """(timestamp, source) of what is complete after some steps."""
        return [
            (first + index, self.source)
            for first, ends in self.steps[:upto]
            for index, mark in enumerate(ends)
            if mark == "|"
        ]

    def promise(self, upto: int) -> int:
        return max((first + max(0, len(ends) - 1) for first, ends in self.steps[:upto]), default=0)


@st.composite
def histories(draw: st.DrawFn) -> list[History]:
    found = []
    for source in draw(st.permutations((A, B, C)))[: draw(st.integers(1, 3))]:
        history, timestamp = History(source), 0
        for _ in range(draw(st.integers(0, 6))):
            timestamp += draw(st.integers(1, 3))
            ends = draw(st.text(alphabet="||.", max_size=5))
            history.steps.append((timestamp, ends))
            timestamp += max(0, len(ends) - 1)
        history.steps.append((timestamp + 1, "|"))
        history.steps.append((100, ""))
        found.append(history)
    return found


@settings(max_examples=sized(100, 3_000))
@given(histories(), st.data())
def test_any_interleaving_is_delivered_in_order_never_early_and_in_the_end_completely(
    sources: list[History], data: st.DataObject
) -> None:
    order = an_order(*(history.source for history in sources))
    done = dict.fromkeys((history.source for history in sources), 0)
    seqs = dict.fromkeys(done, 1)
    out: list[tuple[int, int]] = []
    while waiting := [history for history in sources if done[history.source] < len(history.steps)]:
        history = data.draw(st.sampled_from(waiting))
        source = history.source
        first, ends = history.steps[done[source]]
        if ends:
            run = a_run(source, seqs[source], START + first, ends)
            order.ordered(run)
            seqs[source] += run.count
        else:
            order.promised(source, START + first)
        done[source] += 1
        out += taken(order)

        promises = {each.source: each.promise(done[each.source]) for each in sources}
        complete = sorted(message for each in sources for message in each.messages(done[each.source]))
        due = []
        for message in complete:
            if any(promises[other] < message[0] for other in promises if other != message[1]):
                break
            due.append(message)
        assert out == due

        acknowledged = order.acknowledged(START + 1_000) - START
        future = [message for each in sources for message in each.messages(len(each.steps))]
        assert {message for message in future if message[0] <= acknowledged} <= set(out)
    assert out == sorted(message for each in sources for message in each.messages(len(each.steps)))


# Sources that come and go


def a_change(source: MemberId = A, seq: int = 1, timestamp: int = START + 10, change: Change | None = None) -> Run:
    (run,) = parsed(a_change_frame(change or a_leave(), source, seq, timestamp))
    assert isinstance(run, Run)
    return run


def test_an_added_source_is_waited_for_from_its_promise_on() -> None:
    order = an_order(A)
    order.add(B, START + 10, activation=5)
    order.ordered(a_run(A, 1, START + 10))
    order.ordered(a_run(A, 2, START + 11))
    assert taken(order) == [(10, A)]
    order.ordered(a_run(B, 5, START + 12))
    assert taken(order) == [(11, A)]
    assert order.activations() == {A: 3, B: 5}


def test_a_source_that_left_is_not_waited_for() -> None:
    order = an_order(A, B)
    order.ordered(a_run(A, 1, START + 10))
    assert taken(order) == []
    order.leave(B, START + 5)
    assert taken(order) == [(10, A)]
    assert B not in order


def test_a_source_that_is_added_again_before_its_departure_is_delivered_stays() -> None:
    order = an_order(A, B)
    order.add(B, START + 30, activation=7)
    order.leave(B, START + 20)
    assert B in order
    order.ordered(a_run(A, 1, START + 30))
    order.ordered(a_run(A, 2, START + 31))
    assert taken(order) == [(30, A)], "it promised no more than its Add"


def test_a_second_add_of_a_source_does_not_bring_it_back_after_it_left() -> None:
    order = an_order(A, B)
    order.add(C, START + 10, activation=1)
    order.add(C, START + 12, activation=1)
    order.leave(C, START + 50)
    assert C not in order


def test_the_departure_of_one_that_is_not_here_does_nothing() -> None:
    order = an_order(A)
    order.leave(B, START + 5)
    assert order.sources == [A]


# Ordered changes


def test_a_change_waits_for_its_release_though_it_is_next() -> None:
    order = an_order(A)
    order.ordered(a_run(A, 1, START + 9))
    order.ordered(a_change(A, 2))
    order.ordered(a_run(A, 3, START + 11))
    assert taken(order) == [(9, A)]
    assert order.held_change == START + 10
    assert taken(order) == []
    order.release(START + 10)
    assert taken(order) == [(10, A)], "a change ends what is taken, for it may change the sources"
    assert order.changed == START + 10
    assert taken(order) == [(11, A)]


def test_a_change_that_is_not_next_is_not_held() -> None:
    order = an_order(A, B)
    order.ordered(a_change(A))
    assert taken(order) == []
    assert order.held_change is None
    assert order.blocked, "it waits for B's promise"


# The end of an epoch


def test_at_the_end_nobody_is_waited_for() -> None:
    order = an_order(A, B)
    order.ordered(a_run(A, 1, START + 10))
    order.ordered(a_run(B, 1, START + 5))
    order.close({A: 1, B: 1}, START)
    assert taken(order) == [(5, B), (10, A)]
    assert not order.blocked


def test_what_lies_after_the_cut_is_discarded() -> None:
    order = an_order(A, B)
    order.ordered(a_run(A, 1, START + 10, "||||"))
    order.ordered(a_run(B, 1, START + 11, "|"))
    order.close({A: 2, B: 0}, START)
    assert taken(order) == [(10, A), (11, A)]


def test_a_source_without_a_cut_keeps_only_what_was_delivered() -> None:
    order = an_order(A, B)
    order.ordered(a_run(B, 1, START + 5))
    order.ordered(a_run(A, 1, START + 10))
    order.promised(A, START + 5)
    order.close({A: 1}, START)
    assert taken(order) == [(10, A)]


def test_what_a_source_said_that_is_added_last_before_the_cut_is_discarded() -> None:
    order = an_order(A)
    order.ordered(a_change(A, 1, START + 10))
    order.close({A: 1}, START + 10)
    assert taken(order) == [(10, A)]
    order.add(B, START + 10, 1)
    order.ordered(a_run(B, 1, START + 20))
    assert taken(order) == []
    assert order.activations()[B] == 1
    assert order.promises()[B] == MAX_TIMESTAMP, "and nobody waits for it"


def test_half_a_message_is_discarded() -> None:
    order = an_order(A)
    order.ordered(a_run(A, 1, START + 10, "|.."))
    order.close({A: 3}, START)
    assert taken(order) == [(10, A)]


def test_a_message_that_ends_after_the_cut_goes_as_a_whole() -> None:
    order = an_order(A)
    order.ordered(a_run(A, 1, START + 10, "|...|"))
    order.close({A: 3}, START)
    assert taken(order) == [(10, A)]


def test_changes_up_to_the_last_that_counts_take_effect_and_later_ones_do_not() -> None:
    order = an_order(A)
    order.ordered(a_change(A, 1, START + 10))
    order.ordered(a_change(A, 2, START + 20))
    order.ordered(a_run(A, 3, START + 30))
    order.close({A: 3}, START + 10)
    assert [taken(order), taken(order)] == [[(10, A)], [(30, A)]]


def test_the_last_whole_message_at_or_below_a_bound_is_kept() -> None:
    order = an_order(A, B)
    order.ordered(a_run(A, 1, START + 10, "|..||"))
    assert [order.kept_seq(A, START + bound) for bound in (9, 10, 12, 13, 14, 99)] == [0, 1, 1, 4, 5, 5]
    assert order.kept_seq(B, START + 99) == 0


def test_what_was_delivered_is_kept() -> None:
    order = an_order(A)
    order.ordered(a_run(A, 1, START + 10, "|||"))
    assert len(taken(order)) == 3
    assert order.kept_seq(A, START) == 3


def test_the_next_change_is_one_that_the_end_of_the_epoch_leaves() -> None:
    order = an_order(A, B)
    order.ordered(a_change(A, 1, START + 20))
    order.ordered(a_change(B, 1, START + 30))
    assert order.next_change(START + 99, (), START) == START + 20
    assert order.next_change(START + 99, (), START + 20) == START + 30
    assert order.next_change(START + 15, (A,), START) == START + 30, "of a failed sender, above the bound"
    assert order.next_change(START + 15, (A, B), START) is None


def test_a_newcomer_that_starts_here_is_told_promises_below_what_is_not_delivered() -> None:
    order = an_order(A, B)
    order.ordered(a_run(A, 1, START + 10, "|"))
    order.ordered(a_run(B, 1, START + 20, ".."))
    assert order.promises() == {A: START + 9, B: START + 19}
    assert order.activations() == {A: 1, B: 1}
