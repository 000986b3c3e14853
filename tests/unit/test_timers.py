from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from intergroup_core.timers import Timers, earliest


def some_timers(**deadlines: int) -> Timers[str]:
    timers: Timers[str] = Timers()
    for key, at in deadlines.items():
        timers.arm(key, at)
    return timers


def test_no_deadline_without_a_key() -> None:
    timers = some_timers()
    assert timers.next_deadline() is None
    assert timers.pop_due(10**18) == []
    assert len(timers) == 0


def test_keys_are_popped_earliest_first_and_only_when_due() -> None:
    timers = some_timers(late=30, early=10, middle=20)
    assert timers.next_deadline() == 10
    assert timers.pop_due(20) == ["early", "middle"]
    assert "late" in timers
    assert timers.next_deadline() == 30


def test_a_deadline_is_due_at_its_own_instant() -> None:
    timers = some_timers(request=10)
    assert timers.pop_due(9) == []
    assert timers.pop_due(10) == ["request"]
    assert timers.pop_due(10) == []


def test_equal_deadlines_are_popped_in_the_order_armed() -> None:
    timers = some_timers(b=5, a=5, c=5)
    assert timers.pop_due(5) == ["b", "a", "c"]


def test_arming_again_moves_the_deadline_both_ways() -> None:
    timers = some_timers(request=10)
    timers.arm("request", 30)
    assert timers.pop_due(29) == []
    timers.arm("request", 5)
    assert timers.deadline("request") == 5
    assert timers.pop_due(29) == ["request"]
    assert timers.next_deadline() is None


def test_arm_before_never_postpones() -> None:
    timers = some_timers(report=10)
    timers.arm_before("report", 20)
    assert timers.deadline("report") == 10
    timers.arm_before("report", 5)
    assert timers.deadline("report") == 5
    timers.arm_before("idle", 7)
    assert timers.deadline("idle") == 7


def test_a_cancelled_key_is_gone_and_cancelling_it_again_is_harmless() -> None:
    timers = some_timers(request=10, report=20)
    timers.cancel("request")
    timers.cancel("request")
    assert timers.deadline("request") is None
    assert timers.next_deadline() == 20
    assert timers.pop_due(100) == ["report"]


def test_rearming_for_ever_keeps_the_queue_small() -> None:
    timers = some_timers(keepalive=0)
    for at in range(10_000):
        timers.arm("keepalive", at)
    assert len(timers._heap) < 200
    assert timers.pop_due(9_999) == ["keepalive"]


@given(
    st.lists(
        st.tuples(st.sampled_from(["arm", "arm_before", "cancel", "pop"]), st.integers(0, 5), st.integers(0, 50)),
        max_size=300,
    )
)
def test_timers_agree_with_a_plain_dictionary(steps: list[tuple[str, int, int]]) -> None:
    timers: Timers[int] = Timers()
    model: dict[int, int] = {}
    for action, key, at in steps:
        match action:
            case "arm":
                timers.arm(key, at)
                model[key] = at
            case "arm_before":
                timers.arm_before(key, at)
                model[key] = min(at, model.get(key, at))
            case "cancel":
                timers.cancel(key)
                model.pop(key, None)
            case _:
                due = {key for key, deadline in model.items() if deadline <= at}
                popped = timers.pop_due(at)
                assert set(popped) == due
                assert [model[key] for key in popped] == sorted(model[key] for key in popped)
                model = {key: deadline for key, deadline in model.items() if key not in due}
        assert timers.next_deadline() == min(model.values(), default=None)
        assert len(timers) == len(model)


def test_the_earliest_of_some_deadlines() -> None:
    assert earliest(None, 7, None, 3) == 3
    assert earliest(None, None) is None
    assert earliest() is None
    assert earliest(0, 5) == 0
