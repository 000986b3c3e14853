"""Ledgers in groups that change: whoever ends in one view knows the same of what was stated in any that led to it."""

from __future__ import annotations

import pytest

from intergroup_core.effects import Install
from intergroup_core.errors import LocalProtocolError, NoQuorum
from intergroup_core.ids import Service
from intergroup_core.sim.fuzz import live_scenario
from intergroup_core.sim.live_member import LiveMember
from intergroup_core.sim.outcome import play
from intergroup_core.wire.statements import Holding

SEEDS = range(300, 312)
DAY = 86_400


def play_with_holders(monkeypatch: pytest.MonkeyPatch, seed: int) -> list[LiveMember]:
    """A run in which every sender says in its first view that its site holds the log; the members it ends with."""
    members: list[LiveMember] = []
    installed = LiveMember._installed

    def announcing(member: LiveMember, effect: Install) -> None:
        installed(member, effect)
        if member not in members:
            members.append(member)
            if member.endpoint.is_sender:
                member._scheduler.after(0, lambda: declare(member))

    monkeypatch.setattr(LiveMember, "_installed", announcing)
    outcome, _ = play(live_scenario(seed))
    monkeypatch.undo()
    assert outcome.violations == []
    return [member for member in members if member.alive and member.service is not Service.UU]


def declare(member: LiveMember) -> None:
    if member.alive and not member._paused:
        try:
            effects = member.endpoint.declare(Holding(member.index, member.name, True, DAY), member.clock.now())
        except (NoQuorum, LocalProtocolError):
            return
        member._perform(effects)
        member._rearm()


@pytest.mark.parametrize("seed", SEEDS)
def test_who_ends_in_one_view_knows_the_same(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    members = play_with_holders(monkeypatch, seed)
    views = {member.endpoint.view.id for member in members if member.endpoint.view is not None}
    for view in views:
        known = {
            member.endpoint.ledger.to_bytes()
            for member in members
            if member.endpoint.view is not None and member.endpoint.view.id == view
        }
        assert len(known) == 1
    assert any(member.endpoint.ledger.version for member in members)
