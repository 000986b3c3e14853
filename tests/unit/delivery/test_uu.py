from __future__ import annotations

from intergroup_core.counters import Counters
from intergroup_core.delivery.uu import UnreliableUnordered
from intergroup_core.ids import MemberId
from tests.builders import START, A, B, a_run


def a_service(counters: Counters | None = None) -> UnreliableUnordered:
    return UnreliableUnordered(counters or Counters())


def taken(service: UnreliableUnordered) -> list[tuple[MemberId, int, int]]:
    """(source, seq, frames) of what is delivered now."""
    return [(m.source, m.seq, len(m.payload) // 8) for chunk in service.take() for m in chunk.messages()]


def test_what_arrives_is_delivered_at_once_in_any_order() -> None:
    service = a_service()
    for seq in (5, 2, 9):
        service.arrived(a_run(A, seq, START + seq))
        assert taken(service) == [(A, seq, 1)]


def test_a_copy_is_delivered_again() -> None:
    service = a_service()
    for _ in range(2):
        service.arrived(a_run(A, 5, START + 5))
    assert taken(service) == [(A, 5, 1), (A, 5, 1)]


def test_repairs_are_never_delivered_and_are_counted() -> None:
    counters = Counters()
    service = a_service(counters)
    service.arrived(a_run(A, 5, START + 5, "||", repaired=True))
    assert taken(service) == []
    assert counters.repairs_ignored == 1


def test_a_message_of_several_frames_is_delivered_when_all_came_in_a_row() -> None:
    service = a_service()
    service.arrived(a_run(A, 1, START + 1, "..", fragment=0))
    assert taken(service) == []
    service.arrived(a_run(B, 7, START + 7))
    service.arrived(a_run(A, 3, START + 3, ".|", fragment=2))
    assert taken(service) == [(B, 7, 1), (A, 4, 4)]


def test_a_message_that_lacks_a_frame_is_given_up_and_the_next_is_not() -> None:
    counters = Counters()
    service = a_service(counters)
    service.arrived(a_run(A, 1, START + 1, "..", fragment=0))
    service.arrived(a_run(A, 4, START + 4, "|.|", fragment=3))
    assert taken(service) == [(A, 6, 2)]
    assert counters.unreliable_incomplete >= 1


def test_the_rest_of_a_message_whose_beginning_was_lost_is_given_up() -> None:
    counters = Counters()
    service = a_service(counters)
    service.arrived(a_run(A, 3, START + 3, "..|", fragment=2))
    assert taken(service) == []
    assert counters.unreliable_incomplete == 1
    service.arrived(a_run(A, 6, START + 6, "|"))
    assert taken(service) == [(A, 6, 1)]


def test_a_repair_does_not_complete_a_message() -> None:
    service = a_service()
    service.arrived(a_run(A, 1, START + 1, "."))
    service.arrived(a_run(A, 2, START + 2, ".", fragment=1, repaired=True))
    service.arrived(a_run(A, 3, START + 3, "|", fragment=2))
    assert taken(service) == []


def test_frames_that_come_in_the_wrong_order_do_not_make_a_message() -> None:
    service = a_service()
    service.arrived(a_run(A, 2, START + 2, "|", fragment=1))
    service.arrived(a_run(A, 1, START + 1, "."))
    assert taken(service) == []


def test_it_needs_nothing_repaired_so_it_acknowledges_all_there_is() -> None:
    service = a_service()
    service.arrived(a_run(A, 1, START + 1, "."))
    assert service.acknowledged(START + 99) == START + 99


def test_what_it_remembers_of_sources_is_bounded() -> None:
    service = a_service()
    first = MemberId(1)
    service.arrived(a_run(first, 1, START + 1, "."))
    for source in range(2, service.MAX_SOURCES + 2):
        service.arrived(a_run(MemberId(source), 1, START + 1))
    service.take()
    service.arrived(a_run(first, 2, START + 2, "|", fragment=1))
    assert taken(service) == [], "the beginning was forgotten"
