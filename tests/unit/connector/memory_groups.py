"""Groups that are nowhere but in memory, and clients that stage and commit in them as a site's agent does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from intergroup_core.config import Config
from intergroup_core.errors import AckUnreached, MessageTooLarge, TransactionVoid
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.labels import Label
from intergroup_core.wire.records import Rows
from pyspark_intergroup import sending
from pyspark_intergroup.sending import Senders

THEIRS = 7
"""The sender that all rows come from."""


@dataclass
class MemoryGroup:
    """What a group's log would have."""

    visible: list[bytes] = field(default_factory=list)
    staged: dict[int, list[bytes]] = field(default_factory=dict)
    """By attempt."""
    committed: dict[str, int] = field(default_factory=dict)
    runs: dict[str, list[str]] = field(default_factory=dict)
    commits: list[tuple[str, int, bool]] = field(default_factory=list)
    abandoned: list[Label] = field(default_factory=list)

    def heard(self, app: str, run: str) -> None:
        runs = self.runs.setdefault(app, [])
        if run not in runs:
            runs.append(run)


@dataclass
class MemorySite:
    """Groups by name, and what is to go wrong."""

    groups: dict[str, MemoryGroup] = field(default_factory=dict)
    clients: list[MemoryClient] = field(default_factory=list)
    fails_to_commit: set[str] = field(default_factory=set)

    def opened(
        self, group: str, config: Config, home: str | None = None, *, name: str | None = None, timeout: float
    ) -> MemoryClient:
        client = MemoryClient(self, group, config)
        self.clients.append(client)
        return client

    def visible(self, group: str = "prices") -> list[bytes]:
        return self.groups[group].visible if group in self.groups else []


class MemoryClient:
    """One client, with the interface of TransactionClient."""

    def __init__(self, site: MemorySite, group: str, config: Config) -> None:
        self.name, self.config = group, config
        self._site = site
        self._group = site.groups.setdefault(group, MemoryGroup())
        self._attempt: int | None = None
        self._count = 0
        self.alive = True
        self.acks: list[tuple[str, float]] = []

    def stage(self, label: Label | None, rows: Rows) -> None:
        assert self.alive
        records = rows.values.to_list()
        if any(len(record) > self.config.group.max_message_bytes for record in records):
            raise MessageTooLarge("a record is too large; split it")
        if label is None:
            self._group.visible += records
        else:
            assert self._attempt in (None, label.attempt), "rows of another attempt were never asked for"
            self._group.heard(label.app, label.run)
            self._attempt = label.attempt
            self._group.staged.setdefault(label.attempt, []).extend(records)
        self._count += len(records)

    def staged(self, ack: str, seconds: float) -> Staged | None:
        self.acks.append((ack, seconds))
        attempt, count, self._attempt, self._count = self._attempt, self._count, None, 0
        return Staged(attempt or 0, THEIRS, 1, count, 1, count, count, count) if count else None

    def commit(
        self,
        app: str,
        run: str,
        version: int,
        attempts: Sequence[Staged],
        *,
        lasting: bool,
        ack: str,
        seconds: float,
        timeout_s: int,
    ) -> bool:
        if self.name in self._site.fails_to_commit:
            raise AckUnreached("too few sites have it")
        if self._group.committed.get(app, -1) >= version:
            return False
        if self._group.runs[app][-1] != run:
            raise TransactionVoid(f"a later run of {app} has begun")
        for staged in attempts:
            self._group.visible += self._group.staged.pop(staged.attempt)
        self._group.committed[app] = version
        self._group.commits.append((app, version, lasting))
        return True

    def abandon(self, label: Label) -> None:
        self._group.abandoned.append(label)

    def committed(self, app: str) -> int | None:
        return self._group.committed.get(app)

    def close(self) -> None:
        self.alive = False


@contextmanager
def memory_site() -> Iterator[MemorySite]:
    """In place of the one that this machine has."""
    site = MemorySite()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sending, "TransactionClient", site.opened)
        patch.setattr(Senders, "_pid", 0)
        yield site
