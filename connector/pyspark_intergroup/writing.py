"""What a task stages, and what it tells the driver of it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage

from intergroup_core.client.transacting import TransactionClient
from intergroup_core.errors import ConfigError
from intergroup_core.wire.attempts import Staged
from intergroup_core.wire.labels import MAX_ATTEMPT, Label
from intergroup_core.wire.records import Rows
from pyspark_intergroup.row_encoder import RowEncoder
from pyspark_intergroup.sending import MAX_GROUPS, Senders
from pyspark_intergroup.write_options import WriteOptions
from pyspark_intergroup.write_schema import RowLayout

if TYPE_CHECKING:
    import pyarrow as pa

MAX_CARRIED_BYTES = 16 << 20
"""That a task hands to the driver: all of them are in its memory at once."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """Rows that become visible together, in each group by itself."""

    app: str
    run: str
    version: int
    lasting: bool
    """Whether it can be tried again under the same name."""

    def label(self, options: WriteOptions) -> Label:
        """Of one more attempt."""
        attempt = 1 + secrets.randbelow(MAX_ATTEMPT)
        return Label(self.app, self.run, self.version, attempt, options.transaction_timeout_s)

    def is_done(self, client: TransactionClient) -> bool:
        """Whether it, or one behind it, is known to be committed in a group."""
        return self.lasting and (done := client.committed(self.app)) is not None and done >= self.version


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What one task has done."""

    transaction: Transaction | None
    """None where rows were sent without one."""
    staged: dict[str, Staged] = field(default_factory=dict)
    """By group."""
    carried: dict[str, list[Rows]] = field(default_factory=dict)
    """By group, for the driver to send."""
    done: frozenset[str] = frozenset()
    """Groups in which the transaction was committed before."""


class TaskWriter:
    """Of a frame's rows; a copy of it is in every task."""

    def __init__(self, options: WriteOptions, layout: RowLayout) -> None:
        self._options = options
        self._layout = layout

    def write(self, batches: Iterable[pa.RecordBatch], transaction: Transaction | None) -> Written:
        """One attempt; what it leaves unfinished counts for nothing."""
        encoder = RowEncoder(self._layout, self._options.group)
        if self._options.send_from == "driver":
            return Written(transaction, carried=_carried(encoder, batches))
        sender = GroupSender(self._options, transaction)
        try:
            for batch in batches:
                for group, rows in encoder.encoded(batch):
                    sender.send(group, rows)
            return Written(transaction, sender.finish(), done=sender.done)
        except BaseException:
            sender.give_up()
            raise


class GroupSender:
    """One attempt at rows of several groups, through this site's agent."""

    def __init__(self, options: WriteOptions, transaction: Transaction | None) -> None:
        self._options = options
        self._transaction = transaction
        self._label = transaction.label(options) if transaction is not None else None
        self._clients: dict[str, TransactionClient | None] = {}
        """None for a group in which there is nothing to do any more."""

    def send(self, group: str, rows: Rows) -> None:
        if group not in self._clients:
            self._clients[group] = self._opened(group)
        client = self._clients[group]
        if client is not None:
            client.stage(self._label, rows)

    @property
    def done(self) -> frozenset[str]:
        """Groups in which it was committed before."""
        return frozenset(group for group, client in self._clients.items() if client is None)

    def finish(self) -> dict[str, Staged]:
        """Until everything has come as far as was asked for."""
        options = self._options
        found = {
            group: client.staged(options.ack, options.ack_timeout_s)
            for group, client in self._clients.items()
            if client is not None
        }
        return {group: staged for group, staged in found.items() if staged is not None}

    def give_up(self) -> None:
        for group in self._clients:
            Senders.forget(group, self._options)

    def _opened(self, group: str) -> TransactionClient | None:
        if len(self._clients) >= MAX_GROUPS:
            raise ConfigError(
                f"a task has rows for more than {MAX_GROUPS} groups; is group_name a column of groups? If so, "
                "repartition by it"
            )
        client = Senders.client(group, self._options)
        return None if self._transaction is not None and self._transaction.is_done(client) else client


def _carried(encoder: RowEncoder, batches: Iterable[pa.RecordBatch]) -> dict[str, list[Rows]]:
    carried: dict[str, list[Rows]] = {}
    nbytes = 0
    for batch in batches:
        for group, rows in encoder.encoded(batch):
            nbytes += sum(len(part.data) for part in (rows.values, rows.keys, rows.headers) if part is not None)
            if nbytes > MAX_CARRIED_BYTES:
                raise ConfigError(
                    f"sendFrom is 'driver', and a task has more than {MAX_CARRIED_BYTES >> 20} MB of rows for it; "
                    "repartition into more tasks, or let executors send"
                )
            carried.setdefault(group, []).append(rows)
    return carried
