"""What views say of the seqs before them: the same at everybody, and in `rso` nothing of that comes afterwards."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from intergroup_core.effects import Deliver, Effect, Gap, Install
from intergroup_core.ids import MemberId, Service, ViewId
from intergroup_core.sim.member import SimMember
from intergroup_core.sim.outcome import play
from tests.sim.live_stories import a_chosen_scenario
from tests.sizes import sized

SEEDS = (98, 124, 141, *range(61, 61 + sized(1, 40)))
"""Of the first three, two have a sender that is only added in the cut of a repair, and one has a sender that comes and
goes within one call."""


class Watched:
    """What all members of one run were told of the seqs before views."""

    def __init__(self) -> None:
        self.before: dict[tuple[ViewId | None, ViewId, MemberId], int] = {}
        self.departures = 0
        self.errors: list[str] = []

    def installed(self, old: ViewId | None, install: Install) -> None:
        """Of the members of a view everybody says the same, of others those who come from the same view."""
        view, before = install.view, dict(install.before)
        for member, seq in before.items():
            key = (None if member in view.members else old, view.id, member)
            if self.before.setdefault(key, seq) != seq:
                self.errors.append(f"{view.id} is behind {seq} and {self.before[key]} of {member:016x}")
        if old is not None:
            unknown = {*install.joined, *(gone.member for gone in install.departed)} - before.keys()
            self.errors += [f"{view.id} does not say where {member:016x} stands" for member in unknown]
            self.departures += len(install.departed)


class Following:
    """One incarnation."""

    def __init__(self, watched: Watched, service: Service) -> None:
        self._watched = watched
        self._service = service
        self._view: ViewId | None = None
        self._before: dict[MemberId, int] = {}

    def saw(self, effect: Effect) -> None:
        match effect:
            case Gap():
                self._view = None
                self._before.clear()
            case Install():
                self._watched.installed(self._view, effect)
                self._view = effect.view.id
                self._before |= dict(effect.before)
            case Deliver(chunk=chunk) if self._service is Service.RSO:
                if chunk.first_seq <= self._before.get(chunk.source, 0):
                    self._watched.errors.append(f"{chunk.first_seq} of {chunk.source:016x} comes behind {self._view}")
            case _:
                pass


def test_a_view_says_what_lies_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    perform = SimMember._perform
    following: dict[SimMember, Following] = {}
    watched = Watched()

    def observed(member: SimMember, effects: Iterable[Effect] | None) -> None:
        done = list(effects or ())
        seen = following.setdefault(member, Following(watched, member.endpoint.service))
        for effect in done:
            seen.saw(effect)
        perform(member, done)

    monkeypatch.setattr(SimMember, "_perform", observed)
    departures = 0
    for seed in SEEDS:
        watched = Watched()
        following.clear()
        outcome, _ = play(a_chosen_scenario(seed, "rso"))
        assert outcome.violations == []
        assert watched.errors == [], f"seed {seed}"
        departures += watched.departures
    assert departures > 5 * len(SEEDS)
