"""What a site does because others rely on its log: it says nothing that it could forget."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from intergroup_core.agent import reliance
from intergroup_core.agent.holdership import Holdership
from intergroup_core.agent.reliance import Reliance
from intergroup_core.agent.witnesses import Witnesses
from intergroup_core.ids import SiteId
from intergroup_core.runtime.ledger_store import LedgerStore
from intergroup_core.runtime.member import Member
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.wire.statements import Holding
from tests.builders import A
from tests.log_builders import a_chunk
from tests.unit.transaction.stories import Story

GROUP = "prices"
SPAN = (A, 1, 1)


def a_ledger() -> Ledger:
    """One that has heard something worth remembering."""
    ledger = Ledger()
    Story(ledger).say(Holding(7, "there", True, 60))
    assert ledger.version
    assert ledger.remembered()
    return ledger


def a_reliance(directory: Path, ledger: Ledger) -> Reliance:
    made = Reliance(
        GROUP, Holdership(2, "here", 60), Witnesses(SiteId(2), 2), lambda query: None, LedgerStore(directory)
    )
    made.bind(cast("Member", SimpleNamespace(endpoint=SimpleNamespace(ledger=ledger))), ())
    made.appended(0, a_chunk(b"row", source=A, seq=1, timestamp=1_001))
    return made


def test_what_was_stated_is_saved_before_a_site_says_what_it_has(tmp_path: Path) -> None:
    async def scenario() -> None:
        ledger = a_ledger()
        site = a_reliance(tmp_path, ledger)
        assert not site.has(SPAN)
        site.kept(1, ledger)
        assert site.has(SPAN)
        assert LedgerStore(tmp_path).load(GROUP) == ledger.remembered()

    asyncio.run(scenario())


def test_a_site_that_cannot_save_has_nothing_until_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reliance, "SAVE_SECONDS", 0.001)
    in_the_way = tmp_path / "ledgers"
    in_the_way.write_text("no directory can be made here")

    async def scenario() -> None:
        ledger = a_ledger()
        site = a_reliance(in_the_way, ledger)
        site.kept(1, ledger)
        assert not site.has(SPAN)
        in_the_way.unlink()
        async with asyncio.timeout(10):
            while not site.has(SPAN):
                await asyncio.sleep(0)
        assert LedgerStore(in_the_way).load(GROUP) == ledger.remembered()
        site.closed()

    asyncio.run(scenario())


def test_a_stream_that_ends_does_not_go_on_saving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reliance, "SAVE_SECONDS", 0.0)
    in_the_way = tmp_path / "ledgers"
    in_the_way.write_text("")

    async def scenario() -> None:
        ledger = a_ledger()
        site = a_reliance(in_the_way, ledger)
        site.kept(1, ledger)
        site.closed()
        in_the_way.unlink()
        for _ in range(3):
            await asyncio.sleep(0)
        assert not in_the_way.exists()

    asyncio.run(scenario())
