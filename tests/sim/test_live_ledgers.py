"""Ledgers in groups that change: whoever ends in one view knows the same of what was stated in any that led to it.

And what members say that they hold, they have: whatever parted, met and was left behind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest

from intergroup_core.agent.held import Held
from intergroup_core.effects import Deliver, Effect, Gap, Install
from intergroup_core.errors import LocalProtocolError, NoQuorum
from intergroup_core.ids import MemberId, Service, Timestamp
from intergroup_core.sim.cluster import SECOND
from intergroup_core.sim.fuzz import live_scenario
from intergroup_core.sim.live_cluster import LiveCluster, Seat
from intergroup_core.sim.live_member import LiveMember
from intergroup_core.sim.member import SimMember
from intergroup_core.sim.outcome import play
from intergroup_core.transaction.holders import Holder
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.wire.statements import Holding
from tests.sizes import sized

SEEDS = range(301, 301 + sized(4, 30))
HELD_SEEDS = range(301, 301 + sized(3, 20))
DAY = 86_400
LONG_AGO = 1_000


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


class Log:
    """What one member delivered, and what it would say that it holds."""

    def __init__(self) -> None:
        self.held = Held()
        self.has: dict[MemberId, set[int]] = defaultdict(set)
        self._entry = 0

    def take(self, effect: Deliver | Install | Gap) -> None:
        event = effect.chunk if isinstance(effect, Deliver) else effect
        self.held.appended(self._entry, event)
        self._entry += 1
        self.held.kept(self._entry)
        if isinstance(effect, Deliver):
            self.has[effect.chunk.source].update(message.seq for message in effect.chunk.messages())


@pytest.mark.parametrize("seed", HELD_SEEDS)
def test_nobody_says_that_it_holds_what_it_did_not_deliver(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    logs: dict[SimMember, Log] = {}
    perform = SimMember._perform

    def observed(member: SimMember, effects: Iterable[Effect] | None) -> None:
        done = list(effects or ())
        for effect in done:
            if isinstance(effect, Deliver | Install | Gap) and member.service is not Service.UU:
                logs.setdefault(member, Log()).take(effect)
        perform(member, done)

    monkeypatch.setattr(SimMember, "_perform", observed)
    play(live_scenario(seed))
    sent: dict[MemberId, set[int]] = defaultdict(set)
    for log in logs.values():
        for source, seqs in log.has.items():
            sent[source] |= seqs
    claims = 0
    for log in logs.values():
        for source, first, last in log.held.within((source, 1, 1 << 40) for source in sent):
            claims += 1
            assert {seq for seq in sent[source] if first <= seq <= last} <= log.has[source]
    assert claims


def remembering(site: int, said: int) -> bytes:
    ledger = Ledger()
    ledger.holders.say(Holder(site, f"s{site}", True, Timestamp(said), DAY, Timestamp(said)))
    return ledger.to_bytes()


def test_who_begins_a_group_anew_tells_receivers_what_it_remembers() -> None:
    seats = [Seat(name="s0", busy=0.0), Seat(name="r1", sender=False)]
    cluster = LiveCluster(seed=1, seats=seats)
    cluster.ledgers = {"s0": remembering(7, LONG_AGO), "r1": remembering(8, LONG_AGO)}
    cluster.run_for(3 * SECOND)
    sender, receiver = cluster[0].endpoint.ledger, cluster[1].endpoint.ledger
    assert [word.site for word in sender.holders] == [7]
    assert receiver.to_bytes() == sender.to_bytes()
    assert receiver.unstated, "what it remembers besides is not for others to guess"


def test_a_site_says_since_when_it_holds_the_log_and_a_break_ends_that() -> None:
    cluster = LiveCluster(seed=1, seats=[Seat(name="s0", busy=0.0), Seat(name="s1", busy=0.0)])
    cluster.run_for(3 * SECOND)

    def word(*, holds: bool) -> Holder:
        assert cluster[0].declare(Holding(7, "s0", holds, DAY))
        cluster.run_for(SECOND)
        found = cluster[1].endpoint.ledger.holders.word_on(7)
        assert found is not None
        return found

    first, again = word(holds=True), word(holds=True)
    assert again.said > first.said == again.since
    word(holds=False)
    assert word(holds=True).since > again.said
