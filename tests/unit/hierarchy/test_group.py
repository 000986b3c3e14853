"""A member's view of its site's control process: one group, whatever the epoch."""

from __future__ import annotations

from random import Random

from intergroup_core.config import Config
from intergroup_core.hierarchy.distances import MeasuredDistances
from intergroup_core.hierarchy.group import GroupControl
from intergroup_core.hierarchy.process import ControlProcess
from intergroup_core.ids import Instant, MemberId, SiteId, Timestamp
from tests.builders import START, A, B

MILLISECOND = 1_000_000
FIRST, SECOND_EPOCH = 11, 12
CONFIG = Config.test().hierarchy


def alone(until_ms: int = 4_000) -> tuple[ControlProcess, GroupControl, Instant]:
    """A control process that found nobody and has listened long enough to speak for all."""
    process = ControlProcess(me=SiteId(5), name="here", config=CONFIG, system_ttl=1, rng=Random(1))
    control = GroupControl(process, "prices", 500_000)
    now = Instant(0, 0)
    process.start(now)
    while now.mono < until_ms * MILLISECOND:
        deadline = process.next_deadline()
        assert deadline is not None
        now = Instant(max(deadline, now.mono + 1), 0)
        process.tick(now)
        control.acknowledge(FIRST, Timestamp(START + 3), 40, pressing=False, now=now)
    return process, control, now


def test_alone_a_member_hears_of_itself() -> None:
    process, control, now = alone()
    told = control.told([FIRST], now.mono)
    assert told is not None
    assert (told.upto, told.members, told.room, told.slowest) == (START + 3, 1, 40, "here")
    assert control.counted(FIRST, now.mono)
    assert control.place == (process.me, process.me)
    assert control.roll(now.mono) == ("here",)


def test_a_member_that_goes_on_in_a_new_epoch_stays_counted_and_is_told_of_under_its_new_tag() -> None:
    _, control, now = alone()
    control.acknowledge(SECOND_EPOCH, Timestamp(START + 4), 40, pressing=False, now=now)
    assert control.counted(SECOND_EPOCH, now.mono)
    assert control.told([FIRST], now.mono) is None
    assert control.told([SECOND_EPOCH, FIRST], now.mono) is not None


def test_a_member_that_is_gone_is_not_told_of() -> None:
    _, control, now = alone()
    control.withdraw()
    assert control.told([FIRST], now.mono) is None
    assert not control.counted(FIRST, now.mono)


def test_what_a_member_has_of_an_epoch_is_told_until_the_repair_is_over() -> None:
    _, control, now = alone()
    control.reach(FIRST, {A: (7, Timestamp(START)), B: (9, Timestamp(START))}, now)
    assert control.cut(FIRST) == {A: (7, START), B: (9, START)}
    assert control.cut(SECOND_EPOCH) == {}
    control.reach(FIRST, {B: (9, Timestamp(START))}, now)
    assert control.cut(FIRST) == {B: (9, START)}
    control.withdraw()
    assert control.cut(FIRST) == {}


def test_distances_are_the_configured_one_until_a_place_is_known_and_measured() -> None:
    process, control, _ = alone()
    member = MemberId(77)
    assert control.distances.to(member) == 500_000
    control.placed(member, SiteId(99), None)
    assert control.distances.to(member) == 500_000
    control.placed(member, process.me, process.me)
    assert control.distances.to(member) == 0


class FewWays:
    """A hierarchy in which one site is near and another behind a coordinator."""

    NEAR, FAR, COORDINATOR = SiteId(1), SiteId(2), SiteId(3)

    def measured_us(self, site: SiteId) -> int | None:
        return 700 if site == self.NEAR else None

    def distance_us(self, site: SiteId, coordinator: SiteId | None) -> int | None:
        return self.measured_us(site) or (9_000 if coordinator == self.COORDINATOR else None)


def test_an_exchange_seeds_what_is_unknown_and_refines_what_goes_by_coordinators() -> None:
    distances = MeasuredDistances(FewWays(), 500_000)
    distances.exchanged(A, 20_000)
    assert distances.to(A) == 10_000_000
    distances.placed(A, FewWays.FAR, FewWays.COORDINATOR)
    assert distances.to(A) == 10_000_000
    distances.exchanged(A, 12_000)
    assert distances.to(A) == 9_000_000
    distances.placed(B, FewWays.FAR, FewWays.COORDINATOR)
    assert distances.to(B) == 9_000_000


def test_what_two_sites_measured_of_each_other_comes_before_an_exchange() -> None:
    distances = MeasuredDistances(FewWays(), 500_000)
    distances.exchanged(A, 20_000)
    distances.placed(A, FewWays.NEAR, FewWays.COORDINATOR)
    assert distances.to(A) == 700_000


def test_a_member_shares_the_hierarchy_if_its_coordinator_is_one_here() -> None:
    process, control, _ = alone()
    elsewhere = SiteId(77)
    assert not control.shares(A), "it has not said where it is"
    control.placed(A, elsewhere, None)
    assert not control.shares(A), "it has no place yet"
    control.placed(A, elsewhere, elsewhere)
    assert not control.shares(A)
    control.placed(A, elsewhere, process.me)
    assert control.shares(A)
