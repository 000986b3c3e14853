from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.delivery.rso import ReliableSourceOrdered
from intergroup_core.ids import MemberId
from intergroup_core.wire.run import Run
from tests.builders import START, A, B, C, a_run, parsed
from tests.membership_builders import a_change_frame, a_leave

OWN = START + 10_000


def a_service(**activations: int) -> ReliableSourceOrdered:
    names = {"a": A, "b": B, "c": C}
    return ReliableSourceOrdered({names[name]: point for name, point in activations.items()}, START)


def taken(service: ReliableSourceOrdered) -> list[tuple[MemberId, int]]:
    return [(m.source, m.seq) for chunk in service.take() for m in chunk.messages()]


def test_messages_are_delivered_at_once_without_waiting_for_other_sources() -> None:
    service = a_service(a=1, b=1)
    service.ordered(a_run(B, 1, START + 50, "||"))
    assert taken(service) == [(B, 1), (B, 2)]
    service.ordered(a_run(A, 1, START + 10))
    assert taken(service) == [(A, 1)]
    assert taken(service) == []


def test_the_activation_point_is_the_first_message_delivered() -> None:
    service = a_service(a=3)
    service.ordered(a_run(A, 1, START + 1, "|||||"))
    assert taken(service) == [(A, 3), (A, 4), (A, 5)]


def test_every_source_has_its_own_activation_point_and_others_are_ignored() -> None:
    service = a_service(a=2, b=4)
    for source in (A, B, C):
        service.ordered(a_run(source, 1, START + 1, "|||||"))
    assert taken(service) == [(A, 2), (A, 3), (A, 4), (A, 5), (B, 4), (B, 5)]
    service.promised(C, START + 5)


def test_what_lies_wholly_before_the_activation_point_is_not_delivered() -> None:
    service = a_service(a=6)
    service.ordered(a_run(A, 1, START + 1, "|||"))
    service.ordered(a_run(A, 4, START + 4, "||"))
    assert taken(service) == []
    service.ordered(a_run(A, 6, START + 6, "|"))
    assert taken(service) == [(A, 6)]


def test_a_large_message_is_delivered_when_it_is_whole() -> None:
    service = a_service(a=1)
    service.ordered(a_run(A, 1, START + 1, "|.."))
    assert taken(service) == [(A, 1)]
    service.ordered(a_run(A, 4, START + 4, ".|"))
    assert taken(service) == [(A, 5)]


def test_it_acknowledges_the_least_of_its_sources_promises() -> None:
    service = a_service(a=1, b=1)
    assert service.acknowledged(OWN) == START
    service.ordered(a_run(A, 1, START + 10, "||"))
    assert service.acknowledged(OWN) == START
    service.promised(B, START + 30)
    assert service.acknowledged(OWN) == START + 11
    service.promised(A, START + 20)
    service.promised(A, START + 5)
    assert service.acknowledged(OWN) == START + 20
    assert service.acknowledged(START + 15) == START + 15


def test_a_message_in_progress_holds_the_acknowledgment_below_its_first_frame() -> None:
    service = a_service(a=1)
    service.ordered(a_run(A, 1, START + 10, "|.."))
    assert service.acknowledged(OWN) == START + 10
    service.ordered(a_run(A, 4, START + 40, "|"))
    assert service.acknowledged(OWN) == START + 40


@given(st.text(alphabet="|.", min_size=1, max_size=20), st.integers(1, 20), st.data())
def test_each_source_comes_out_in_order_once_from_its_activation_point(
    ends: str, first: int, data: st.DataObject
) -> None:
    # An activation point is the first frame of a message (D8).
    starts = [1] + [index + 2 for index, mark in enumerate(ends) if mark == "|"]
    activation = max(start for start in starts if start <= first)
    service = a_service(a=activation)
    run, at, out = a_run(A, 1, START + 1, ends), 0, []
    while at < run.count:
        stop = data.draw(st.integers(at + 1, run.count))
        service.ordered(run.slice(at, stop))
        out += taken(service)
        at = stop
    assert out == [(A, index + 1) for index, mark in enumerate(ends) if mark == "|" and index + 1 >= activation]


def test_a_source_that_is_added_is_delivered_from_its_activation_point_on() -> None:
    service = a_service(a=1)
    service.add(B, START + 20, activation=3)
    service.ordered(a_run(B, 2, START + 22, "|||"))
    assert taken(service) == [(B, 3), (B, 4)]
    assert service.acknowledged(OWN) == START


def test_a_source_that_is_here_goes_on_when_it_is_added_again() -> None:
    service = a_service(a=1)
    service.ordered(a_run(A, 1, START + 1, "||"))
    service.add(A, START + 9, activation=2)
    service.ordered(a_run(A, 3, START + 10, "|"))
    assert taken(service) == [(A, 1), (A, 2), (A, 3)]


def test_half_a_message_before_a_later_activation_point_is_discarded() -> None:
    service = a_service(a=1)
    service.ordered(a_run(A, 1, START + 1, "|.."))
    service.add(A, START + 9, activation=6)
    service.ordered(a_run(A, 6, START + 10, "|"))
    assert taken(service) == [(A, 1), (A, 6)]


def test_a_departed_source_holds_no_acknowledgment_back_and_what_it_said_is_delivered() -> None:
    service = a_service(a=1, b=1)
    service.ordered(a_run(A, 1, START + 50, "|"))
    service.remove(B)
    assert service.sources == [A]
    assert service.acknowledged(OWN) == START + 50
    assert taken(service) == [(A, 1)]


def test_a_source_that_returns_goes_on_where_it_was() -> None:
    """What it said after its return may have been delivered before views, which lag behind, say that it had left."""
    service = a_service(a=1)
    service.ordered(a_run(A, 1, START + 1, "||."))
    service.remove(A)
    service.add(A, START + 9, activation=2)
    service.ordered(a_run(A, 2, START + 2, "|.|"))
    assert taken(service) == [(A, 1), (A, 2), (A, 4)]


def test_departed_sources_are_forgotten_in_the_end() -> None:
    service = a_service()
    for number in range(ReliableSourceOrdered.MAX_GONE + 1):
        service.add(MemberId(1 + number), START, activation=5)
        service.remove(MemberId(1 + number))
    service.add(MemberId(1), START, activation=1)
    service.ordered(a_run(MemberId(1), 1, START + 1, "|"))
    assert taken(service) == [(MemberId(1), 1)]


def test_an_ordered_change_is_not_for_the_application_and_takes_a_seq() -> None:
    service = a_service(a=1)
    (change,) = parsed(a_change_frame(a_leave(), A, 1, START + 5))
    assert isinstance(change, Run)
    service.ordered(change)
    service.ordered(a_run(A, 2, START + 6, "|"))
    assert taken(service) == [(A, 2)]
