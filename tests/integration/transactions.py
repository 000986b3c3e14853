"""Transactions through agents, as tests make and read them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from pathlib import Path

from intergroup_core.client.staging import plain_rows
from intergroup_core.client.transacting import TransactionClient
from intergroup_core.config import Config
from intergroup_core.effects import Gap, Install
from intergroup_core.ids import Service
from intergroup_core.log.entry import Kind
from intergroup_core.log.reader import LogReader
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.runtime.site import SiteRunner
from intergroup_core.transaction.ledger import Ledger, Noted
from intergroup_core.transaction.transactions import Decision
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.labels import Label
from intergroup_core.wire.records import RecordBatch, Rows
from intergroup_core.wire.statements import Carried, Proposed, statements_in
from tests.integration.agents import QUICK, logs_of
from tests.integration.groups import PATIENCE_SECONDS

HOUR = 3_600


def a_client(group: str, home: Path, name: str | None, config: Config = QUICK) -> TransactionClient:
    return TransactionClient(group, config, home, name=name, timeout=PATIENCE_SECONDS)


class Writer:
    """An application that counts its transactions up."""

    def __init__(self, client: TransactionClient, app: str, run: str | None = None) -> None:
        self.client = client
        self.app = app
        self.run = run or secrets.token_hex(8)

    def stage(
        self,
        version: int,
        values: Iterable[bytes],
        ack: str = "majority",
        seconds: float = 10.0,
        timeout_s: int = HOUR,
    ) -> Staged:
        label = Label(self.app, self.run, version, secrets.randbits(63) + 1, timeout_s)
        self.client.stage(label, plain_rows(list(values)))
        staged = self.client.staged(ack, seconds)
        assert staged is not None
        return staged

    def stage_all(self, version: int, parts: Iterable[RecordBatch], seconds: float = 60.0) -> Staged:
        """One attempt at many rows."""
        label = Label(self.app, self.run, version, secrets.randbits(63) + 1, HOUR)
        for part in parts:
            self.client.stage(label, Rows(part))
        staged = self.client.staged("majority", seconds)
        assert staged is not None
        return staged

    def commit(self, version: int, *attempts: Staged, ack: str = "majority", seconds: float = 10.0) -> bool:
        return self.client.commit(
            self.app, self.run, version, attempts, lasting=True, ack=ack, seconds=seconds, timeout_s=HOUR
        )

    def proposal(self, version: int, *attempts: Staged) -> Proposed:
        return Proposed(secrets.randbits(62) + 1, self.app, self.run, version, True, HOUR, attempts)


async def propose(group: str, proposed: Proposed, *, leaves: bool) -> Noted:
    """What a driver does that does not come to the decision: it leaves, or is gone without a word."""
    site = SiteRunner("driver")
    member = site.open(group=group, service=Service.RTO, config=QUICK, sender=True)
    try:
        member.start()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await member.installed(as_sender=True)
            ledger = member.endpoint.ledger
            ledger.expect(proposed.nonce)
            member.declare(proposed)
            while (noted := ledger.noted(proposed.nonce)) is None:
                await asyncio.sleep(0.005)
            if leaves:
                member.begin_to_leave()
                await member.ended()
        return noted
    finally:
        member.close()
        site.close()


def remembered(home: Path) -> Ledger:
    """What a site remembers of its only group."""
    (file,) = (home / "ledgers").iterdir()
    ledger = Ledger()
    ledger.learn(file.read_bytes())
    return ledger


def visible(home: Path, group: str | None = None) -> list[list[bytes]]:
    """The rows of each transaction that is visible in a site's logs, in the order in which they became so.

    Those that the logs do not have, because the site came later, are left out. Parts of a log may overlap, where some
    were fetched, and are not in order.
    """
    found: dict[Decision, list[bytes]] = {}
    staged: dict[int, dict[tuple[int, int], list[bytes]]] = {}
    proposals: dict[tuple[int, int], Proposed] = {}
    for log in logs_of(home, group):
        reader = LogReader(FileDisk(log))
        ledger = Ledger()
        for entry in reader.entries(reader.first):
            match entry.kind:
                case Kind.VIEW:
                    install: Install = entry.install()
                    ledger.enter(install)
                case Kind.GAP:
                    assert isinstance(entry.gap(), Gap)
                case Kind.DATA:
                    chunk = entry.chunk()
                    for message in chunk.messages():
                        label = message.label()
                        if label is not None:
                            staged.setdefault(label.attempt, {})[message.source, message.seq] = message.records()
                    for message, statement in statements_in(chunk):
                        match statement:
                            case Proposed():
                                proposals[message.source, message.seq] = statement
                            case Carried(proposed=proposed):
                                proposals[message.source, message.seq] = proposed
                    for decision in ledger.deliver(chunk):
                        sender, seq, _ = decision.said
                        proposed = proposals.get((sender, seq))
                        attempts = [each.attempt for each in proposed.attempts] if proposed is not None else [0]
                        if all(attempt in staged for attempt in attempts):
                            rows = (each for attempt in attempts for each in staged[attempt].values())
                            found[decision] = [row for records in rows for row in records]
    return [found[decision] for decision in sorted(found)]
