from __future__ import annotations

from random import Random

import pytest

from intergroup_core.config import Config
from intergroup_core.ids import Service
from intergroup_core.sim.faults import Crash, Flap, Leave, Pause, Split
from intergroup_core.sim.live_plan import LIVE_FAULT_NAMES, LONGEST_NS, Trouble, plan_live_faults, plan_seats, slower

DURATION = 20_000_000_000
SERVICES = [Service.RTO, Service.RSO, Service.UU, Service.RTO]


def a_plan(*names: str, seed: int = 1) -> tuple[Trouble, ...]:
    return plan_live_faults(names, seats=4, duration_ns=DURATION, rng=Random(seed))


@pytest.mark.parametrize("name", LIVE_FAULT_NAMES)
@pytest.mark.parametrize("seed", range(5))
def test_every_fault_begins_inside_the_run_and_ends(name: str, seed: int) -> None:
    for fault in a_plan(name, seed=seed):
        assert 0 < fault.at < DURATION + LONGEST_NS
        assert fault.at < getattr(fault, "until", 2 * DURATION)
        assert 0 <= getattr(fault, "member", 0) < 4


def test_one_sender_never_goes_for_good() -> None:
    for seed in range(50):
        plan = a_plan("crash", "leave", seed=seed)
        back = {fault.member for fault in plan if not isinstance(fault, (Crash, Leave)) and hasattr(fault, "member")}
        assert 0 not in {fault.member for fault in plan if isinstance(fault, (Crash, Leave))} - back


def test_some_pauses_outlast_every_time_out() -> None:
    pauses = [fault for seed in range(30) for fault in a_plan("pause", seed=seed) if isinstance(fault, Pause)]
    patience = Config.test().membership.suspect_max_ms * 1e6
    assert max(pause.until - pause.at for pause in pauses) > patience
    assert min(pause.until - pause.at for pause in pauses) < Config.test().membership.suspect_ms * 1e6


def test_the_network_falls_into_two_parts_and_three() -> None:
    splits = [fault for seed in range(30) for fault in a_plan("partition", seed=seed) if isinstance(fault, Split)]
    assert {len(split.parts) for split in splits} == {2, 3}
    for split in splits:
        assert all(split.parts)
        assert frozenset().union(*split.parts) == frozenset(range(4))


def test_links_of_a_split_join_members_of_different_parts_only() -> None:
    split = Split(at=0, until=1, parts=(frozenset({0, 1}), frozenset({2}), frozenset({3})))
    assert (0, 1) not in split.links()
    assert {(0, 2), (2, 0), (2, 3), (3, 1)} <= split.links()
    assert len(split.links()) == 10


def test_a_flapping_link_is_down_both_ways() -> None:
    flap = Flap(at=0, until=10, side=frozenset({0}), other=frozenset({1}), down_ns=2, up_ns=3)
    assert flap.links() == {(0, 1), (1, 0)}


def test_seats_are_senders_first_then_receivers_then_late_comers() -> None:
    seats = plan_seats(SERVICES, senders=2, faults=["join"], duration_ns=DURATION, rng=Random(1))
    assert [seat.sender for seat in seats[:4]] == [True, True, False, False]
    assert [seat.service for seat in seats[:4]] == SERVICES
    late = seats[4:]
    assert late
    assert all(seat.joins_at is not None and seat.joins_at >= 1_000_000_000 for seat in late)
    assert len({seat.name for seat in seats}) == len(seats)


def test_the_first_sender_is_never_silent() -> None:
    for seed in range(20):
        seats = plan_seats(SERVICES, senders=2, faults=["silent"], duration_ns=DURATION, rng=Random(seed))
        assert seats[0].busy


def test_slower_timers_are_still_allowed_settings() -> None:
    config = slower(Config.test(), Random(1))
    assert config.send.keepalive_idle_ms > Config.test().send.keepalive_idle_ms
    assert config.group == Config.test().group
