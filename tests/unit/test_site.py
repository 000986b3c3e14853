from __future__ import annotations

import pytest

from intergroup_core.effects import Install
from intergroup_core.errors import LocalProtocolError
from intergroup_core.ids import MemberId, Service, group_tag, timestamp_span
from intergroup_core.site import Site
from intergroup_core.wire.messages import KeepAlive
from intergroup_core.wire.run import Run
from tests.builders import (
    START,
    T0,
    A,
    B,
    a_message,
    a_view,
    after,
    an_arrival,
    an_endpoint,
    bursts,
    delivered,
    millis,
    parsed,
)

ORDERS, TRADES = "orders", "trades"
PAIR = a_view(A, B)


def a_site(*groups: str) -> Site:
    site = Site()
    for group in groups:
        site.add(an_endpoint(A, group=group, view=PAIR, clock=site.clock), T0)
    return site


def test_a_member_starts_when_it_is_added() -> None:
    site = Site()
    effects = site.add(an_endpoint(A, view=PAIR, clock=site.clock), T0)
    assert effects[0] == Install(PAIR)
    assert [endpoint.group for endpoint in site.endpoints] == [ORDERS]


def test_a_site_has_one_member_in_a_group() -> None:
    site = a_site(ORDERS)
    with pytest.raises(LocalProtocolError, match="already has a member in group orders"):
        site.add(an_endpoint(MemberId(9), view=PAIR, clock=site.clock, service=Service.UU), T0)
    site.remove(ORDERS)
    site.add(an_endpoint(A, view=PAIR, clock=site.clock), T0)


def test_a_group_without_a_member_here_is_named() -> None:
    site = a_site(ORDERS)
    for call in (
        lambda: site.endpoint(TRADES),
        lambda: site.send(TRADES, [b"x"], T0),
        lambda: site.receive(TRADES, an_arrival(), T0),
    ):
        with pytest.raises(LocalProtocolError, match="no member in group trades"):
            call()


def test_stimuli_reach_the_member_of_their_group_only() -> None:
    site = a_site(ORDERS, TRADES)
    effects = site.send(TRADES, [b"x"], after(millis(1)))
    (run,) = [each for each in parsed(*bursts(effects), group=group_tag(TRADES)) if isinstance(each, Run)]
    assert (run.source, run.seq) == (A, 1)
    assert site.endpoint(TRADES).counters.messages_sent == 1
    assert site.endpoint(ORDERS).counters.messages_sent == 0


def test_what_a_site_reads_in_one_group_precedes_what_it_sends_in_another() -> None:
    site = a_site(ORDERS, TRADES)
    seen = START + timestamp_span(millis(500))
    effects = site.receive(ORDERS, an_arrival(*a_message([b"x"], sender=B, timestamp=seen)), after(millis(1)))
    assert delivered(effects) == [(B, 1)]
    effects = site.send(TRADES, [b"consequence"], after(millis(2)))
    (run,) = [each for each in parsed(*bursts(effects), group=group_tag(TRADES)) if isinstance(each, Run)]
    assert run.timestamp > seen


def test_a_tick_goes_to_the_members_that_wait_for_it() -> None:
    site = a_site(ORDERS)
    site.add(an_endpoint(A, group=TRADES, view=PAIR, clock=site.clock), after(millis(5)))
    deadlines = {endpoint.group: endpoint.next_deadline() for endpoint in site.endpoints}
    first = site.next_deadline()
    assert first is not None
    assert first == deadlines[ORDERS]
    assert deadlines[TRADES] is not None
    assert deadlines[TRADES] > first
    ((group, effects),) = site.tick(after(first - T0.mono))
    assert group == ORDERS
    assert any(isinstance(each, KeepAlive) for each in parsed(*bursts(effects)))
    assert site.tick(after(first - T0.mono)) == []


def test_a_site_without_members_waits_for_nothing() -> None:
    assert Site().next_deadline() is None
    assert Site().tick(T0) == []
    site = a_site(ORDERS)
    site.remove(ORDERS)
    site.remove(ORDERS)
    assert site.next_deadline() is None
