"""Every message fits a datagram, however much there is to say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from intergroup_core.effects import Control, ControlEffect, CoordinatorGroup, LocalGroup
from intergroup_core.hierarchy.acknowledgments import Gathering, Whole
from intergroup_core.hierarchy.voice import MAX_CONTROL_BYTES, Voice
from intergroup_core.ids import MAX_TIMESTAMP, MemberId, SiteId, Timestamp
from intergroup_core.wire.hierarchy import Acknowledgment, CutKey, GroupKey, Reach
from tests.hierarchy_builders import CHIEF, ME, T, a_ccon, a_gcon, a_leadership, acks, an_attachment, an_lcon, clock

SITES = [SiteId((1 << 64) - number) for number in range(1, 200)]
LONG_NAME = "Ω" * 40
BIG = 1 << 63


def a_full_table(rows: int) -> dict[GroupKey, Acknowledgment]:
    own = Acknowledgment(Timestamp(MAX_TIMESTAMP), 900_000, SITES[0], "Ω" * 8, 1 << 40)
    return {GroupKey(BIG + number, (1 << 32) - 1): own for number in range(rows)}


def full_cuts(rows: int) -> dict[CutKey, Reach]:
    reach = Reach((1 << 48) - 1, Timestamp(MAX_TIMESTAMP))
    return {CutKey(BIG + number, (1 << 32) - 1, MemberId(BIG)): reach for number in range(rows)}


def local(voice: Voice, rows: int) -> int:
    child = an_attachment()
    for site in SITES:
        child.receive_sibling(an_lcon(site, clock=(1 << 32) - 1), 2, 0)
    return voice.local(child, a_full_table(rows), full_cuts(rows), T)


def coordinator(voice: Voice, rows: int) -> int:
    lead = a_leadership()
    lead.own(a_full_table(rows))
    for site in SITES:
        lead.receive_child(an_lcon(site, ME, clock=(1 << 32) - 1, echoes={ME: (clock(T), 0)}), 2, T, accepting=True)
        lead.sent(clock(T), T)
        lead.receive_fellow(a_gcon(SiteId(site - 500), clock=(1 << 32) - 1, echoes={ME: (clock(T), 0)}), 2, T)
    for peers in (lead.children, lead.fellows):
        for site in peers:
            known = peers.get(site)
            assert known is not None
            known.distance_us, known.received_at = 60_000_000, 0
    lead.roll.told({(site, BIG): "Ω" * 8 for site in SITES}, T)
    return voice.coordinator(lead, full_cuts(rows), T)


def global_(voice: Voice, rows: int) -> int:
    lead = a_leadership()
    lead.own(a_full_table(rows))
    for site in SITES:
        lead.receive_fellow(a_gcon(site, clock=(1 << 32) - 1), 2, 0)
    lead.local_roll.told({(site, BIG): "Ω" * 8 for site in SITES}, T)
    return voice.global_(lead, full_cuts(rows), T)


@pytest.mark.parametrize("speak", [local, coordinator, global_])
@pytest.mark.parametrize("rows", [0, 1, 4, 5, 16, 17, 100])
def test_the_fullest_message_fits_a_datagram_and_says_everything(speak: Callable[[Voice, int], int], rows: int) -> None:
    effects: list[ControlEffect] = []
    total = speak(Voice(ME, LONG_NAME, "default", 64, effects), rows)
    parts = [effect for effect in effects if isinstance(effect, Control)]
    assert max(len(part.frame) for part in parts) <= MAX_CONTROL_BYTES
    assert sum(len(part.frame) for part in parts) == total
    assert (len(parts) > 1) == (rows > 4)
    gathering: Gathering[object] = Gathering()
    wholes = [gathering.add(part.message) for part in parts]
    whole = wholes[-1]
    assert isinstance(whole, Whole)
    assert wholes[:-1] == [None] * (len(parts) - 1)
    assert len(whole.cuts) == rows
    assert whole.acknowledgments.keys() == a_full_table(rows).keys()


def test_each_message_goes_where_it_belongs_and_no_further() -> None:
    effects: list[ControlEffect] = []
    voice = Voice(ME, "here", "default", 64, effects)
    child = an_attachment()
    child.receive_coordinator(a_ccon(), 5, T)
    voice.local(child, acks(5), {}, T)
    lead = a_leadership()
    lead.receive_child(an_lcon(CHIEF, ME), 9, T, accepting=True)
    voice.coordinator(lead, {}, T)
    voice.global_(lead, {}, T)
    went = [(effect.to, effect.ttl) for effect in effects if isinstance(effect, Control)]
    assert went == [(LocalGroup(CHIEF), 6), (LocalGroup(ME), 10), (CoordinatorGroup(), 64)]
