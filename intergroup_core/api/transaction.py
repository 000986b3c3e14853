"""Several records that become visible together, or not at all."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from intergroup_core.api.arguments import as_bytes, as_records
from intergroup_core.client.staging import Commit, plain_rows
from intergroup_core.errors import ConfigError, IntergroupError, LocalProtocolError
from intergroup_core.site_settings import AgentConfig
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.labels import MAX_APPLICATION_BYTES, MAX_TIMEOUT_S, MAX_VERSION, Label
from intergroup_core.wire.records import RecordBatch, Rows

ACK = "majority"
ACK_SECONDS = AgentConfig().ack_timeout_s
TIMEOUT_S = 3_600
WITHOUT_AGENT = "transactions need the site's agent and its log; join without in_process=True"


class TransactingSeat(Protocol):
    """What a member does for a transaction."""

    async def stage(self, label: Label, rows: Rows) -> None: ...

    async def staged(self, attempt: int, ack: str, seconds: float) -> Staged | None: ...

    async def commit_transaction(self, wanted: Commit) -> bool: ...

    async def abandon_transaction(self, label: Label) -> None: ...


class BlockingTransactingSeat(Protocol):
    """The same without an event loop."""

    def stage(self, label: Label, rows: Rows) -> None: ...

    def staged(self, attempt: int, ack: str, seconds: float) -> Staged | None: ...

    def commit_transaction(self, wanted: Commit) -> bool: ...

    def abandon_transaction(self, label: Label) -> None: ...


@dataclass(frozen=True, slots=True)
class Terms:
    """What somebody wants of a transaction, checked."""

    label: Label
    lasting: bool
    ack: str
    seconds: float

    @classmethod
    def of(cls, app: str | None, version: int | None, ack: str, seconds: float, timeout_s: int) -> Terms:
        if (app is None) != (version is None):
            raise ConfigError("an application counts its transactions: give both app and version, or neither")
        if app is not None and not 0 < len(app.encode()) <= MAX_APPLICATION_BYTES:
            raise ConfigError(f"app is {app!r:.60}; it must have 1 to {MAX_APPLICATION_BYTES} bytes")
        if version is not None and not 0 <= version <= MAX_VERSION:
            raise ConfigError(f"version is {version}; it must be 0 to {MAX_VERSION}, and more than the last one")
        if not 0 < timeout_s <= MAX_TIMEOUT_S:
            raise ConfigError(f"timeout_s is {timeout_s}; it must be 1 to {MAX_TIMEOUT_S} seconds")
        label = Label(app or str(uuid.uuid4()), str(uuid.uuid4()), version or 0, secrets.randbits(63) + 1, timeout_s)
        return cls(label, app is not None, ack, seconds)

    def commit(self, staged: Staged | None) -> Commit:
        label = self.label
        attempts = (staged,) if staged is not None else ()
        return Commit(
            label.app, label.run, label.version, attempts, self.lasting, self.ack, self.seconds, label.timeout_s
        )


class _Course:
    """Where a transaction is."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._rows = 0
        self._over = False
        self.committed: bool | None = None
        """Once it is: whether it was not before, by an earlier attempt at the same version."""

    @property
    def txn(self) -> str:
        """What the column of that name shows."""
        return self._terms.label.txn

    def _check_open(self) -> None:
        if self._over:
            raise LocalProtocolError(f"transaction {self.txn} is over; begin another one")


class Transaction(_Course):
    """`async with member.transaction() as txn`: committed at the end of the block, abandoned where that raises."""

    def __init__(self, seat: TransactingSeat, terms: Terms) -> None:
        super().__init__(terms)
        self._seat = seat

    async def send(self, value: bytes | bytearray | memoryview) -> None:
        """Stage one record; waits for room in the queue to the group."""
        await self.send_many([as_bytes(value)])

    async def send_many(self, values: Iterable[bytes] | RecordBatch) -> None:
        self._check_open()
        rows = plain_rows(as_records(values))
        await self._seat.stage(self._terms.label, rows)
        self._rows += len(rows)

    async def commit(self) -> bool:
        """Make what was staged visible; whether it was not before. Raises TransactionVoid and AckUnreached."""
        self._check_open()
        self._over = True
        terms, staged = self._terms, None
        if self._rows:
            staged = await self._seat.staged(terms.label.attempt, terms.ack, terms.seconds)
        self.committed = bool(staged) and await self._seat.commit_transaction(terms.commit(staged))
        return self.committed

    async def abandon(self) -> None:
        """Nothing of it will be visible."""
        self._over = True
        await self._seat.abandon_transaction(self._terms.label)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._over:
            return
        if error is None:
            await self.commit()
        elif isinstance(error, IntergroupError):
            self._over = True  # nobody may be there to be told; what is staged expires
        else:
            await self.abandon()


class BlockingTransaction(_Course):
    """The same for scripts and notebooks: `with member.transaction() as txn`."""

    def __init__(self, seat: BlockingTransactingSeat, terms: Terms) -> None:
        super().__init__(terms)
        self._seat = seat

    def send(self, value: bytes | bytearray | memoryview) -> None:
        """Stage one record; waits for room in the queue to the group."""
        self.send_many([as_bytes(value)])

    def send_many(self, values: Iterable[bytes] | RecordBatch) -> None:
        self._check_open()
        rows = plain_rows(as_records(values))
        self._seat.stage(self._terms.label, rows)
        self._rows += len(rows)

    def commit(self) -> bool:
        """Make what was staged visible; whether it was not before. Raises TransactionVoid and AckUnreached."""
        self._check_open()
        self._over = True
        terms, staged = self._terms, None
        if self._rows:
            staged = self._seat.staged(terms.label.attempt, terms.ack, terms.seconds)
        self.committed = bool(staged) and self._seat.commit_transaction(terms.commit(staged))
        return self.committed

    def abandon(self) -> None:
        """Nothing of it will be visible."""
        self._over = True
        self._seat.abandon_transaction(self._terms.label)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._over:
            return
        if error is None:
            self.commit()
        elif isinstance(error, IntergroupError):
            self._over = True  # nobody may be there to be told; what is staged expires
        else:
            self.abandon()
