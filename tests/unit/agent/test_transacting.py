"""Which sites are asked for a message until a majority of every electorate has it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

from intergroup_core.agent.transacting import Transacting
from intergroup_core.agent.witnesses import Known
from intergroup_core.ids import Service
from intergroup_core.transaction.committing import Ask
from tests.builders import A

ME = 1


class Quickest:
    """Of those that are asked just as many answer as are enough, always the same ones first."""

    key = ME

    def __init__(self, having: Collection[int]) -> None:
        self._having = having
        self.asked: list[frozenset[int]] = []

    async def have(self, _say: Any, _group: Any, spans: Any, sites: Any, *, enough: int, seconds: float) -> Any:
        self.asked.append(frozenset(sites))
        answering = [site for site in sorted(sites) if site in self._having][:enough]
        if len(answering) < enough:
            await asyncio.sleep(seconds)
        known: Known = {source: (first, last) for source, first, last in spans}
        return dict.fromkeys(answering, known)


async def having(ask: Ask, witnesses: Quickest, *, own: bool = True) -> frozenset[int]:
    async def changed(_seconds: float) -> None:
        await asyncio.sleep(0)

    reliance = SimpleNamespace(witnesses=witnesses, has=lambda _span: own, ask=None)
    stream: Any = SimpleNamespace(service=Service.RTO, reliance=reliance, group="prices", changed=changed)
    sending: Any = SimpleNamespace()
    return await Transacting(stream, sending).having(ask, 0.01)


def test_sites_that_were_not_among_the_first_to_answer_are_asked_for_the_other_electorate() -> None:
    ask = Ask(A, 5, (frozenset({1, 2, 3}), frozenset({3, 4, 5})))
    witnesses = Quickest({2, 3, 4, 5})
    assert ask.is_answered_by(asyncio.run(having(ask, witnesses)))
    assert witnesses.asked == [{2, 3, 4, 5}, {4, 5}]


def test_no_more_are_asked_than_are_needed() -> None:
    ask = Ask(A, 5, (frozenset({1, 2, 3}),))
    witnesses = Quickest({2, 3})
    assert asyncio.run(having(ask, witnesses)) == {1, 2}
    assert len(witnesses.asked) == 1


def test_a_site_that_has_not_kept_it_itself_does_not_count_itself() -> None:
    ask = Ask(A, 5, (frozenset({1, 2, 3}),))
    assert asyncio.run(having(ask, Quickest({2, 3}), own=False)) == {2, 3}
    assert asyncio.run(having(ask, Quickest({2}), own=False)) == {2}
    assert asyncio.run(having(Ask(A, 5, (frozenset({ME}),)), Quickest(()), own=False)) == set()
