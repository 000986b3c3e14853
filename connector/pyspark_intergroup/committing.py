"""What the driver does of a write: it makes visible what the tasks have staged, a group after the other."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from pyspark.sql.datasource import WriterCommitMessage

from intergroup_core.client.transacting import TransactionClient
from intergroup_core.errors import IntergroupError
from intergroup_core.wire.attempts import Staged
from pyspark_intergroup.sending import Senders
from pyspark_intergroup.write_options import WriteOptions
from pyspark_intergroup.writing import GroupSender, Transaction, Written

_log = logging.getLogger(__name__)

Messages = Sequence[WriterCommitMessage | None]


def commit_written(options: WriteOptions, messages: Messages) -> None:
    """Where a group's part was committed before, by whoever wrote the same, it is seen to it that this has come as far
    as is asked for: the commit may have failed for just that."""
    written = _written(messages)
    transaction = _transaction_of(written)
    staged = _by_group(written)
    carried, done = _send_carried(options, written, transaction)
    for group, attempt in carried.items():
        staged.setdefault(group, []).append(attempt)
    if transaction is None:
        return
    for group in done.union(*(each.done for each in written)):
        staged.setdefault(group, [])
    for group in sorted(staged):
        _commit(options, Senders.client(group, options), transaction, staged[group])


def abandon_written(options: WriteOptions, messages: Messages) -> None:
    """Let go of what was staged. Nothing is undone: the commit may be what failed, and have been heard all the same."""
    written = _written(messages)
    transaction = _transaction_of(written)
    if transaction is None:
        return
    label = transaction.label(options)
    for group in _by_group(written):
        try:
            Senders.client(group, options).abandon(label)
        except (IntergroupError, TimeoutError, OSError) as error:
            # Spark is about to say why the write failed, and the transaction ends by its timeout anyway.
            _log.info("group %s: what was staged is held until its time is over: %s", group, error)


def _commit(
    options: WriteOptions, client: TransactionClient, transaction: Transaction, attempts: Sequence[Staged]
) -> None:
    client.commit(
        transaction.app,
        transaction.run,
        transaction.version,
        attempts,
        lasting=transaction.lasting,
        ack=options.ack,
        seconds=options.ack_timeout_s,
        timeout_s=options.transaction_timeout_s,
    )


def _send_carried(
    options: WriteOptions, written: Iterable[Written], transaction: Transaction | None
) -> tuple[dict[str, Staged], frozenset[str]]:
    """What tasks have handed to the driver, as an attempt of its own; and groups that need it no more."""
    sender = GroupSender(options, transaction)
    try:
        for each in written:
            for group, parts in each.carried.items():
                for rows in parts:
                    sender.send(group, rows)
        return sender.finish(), sender.done
    except BaseException:
        sender.give_up()
        raise


def _written(messages: Messages) -> list[Written]:
    """A task that failed has left none."""
    return [message for message in messages if isinstance(message, Written)]


def _transaction_of(written: Sequence[Written]) -> Transaction | None:
    transactions = {each.transaction for each in written}
    assert len(transactions) <= 1, "the tasks of one write have one transaction"
    return next(iter(transactions), None)


def _by_group(written: Sequence[Written]) -> dict[str, list[Staged]]:
    found: dict[str, list[Staged]] = {}
    for each in written:
        for group, staged in each.staged.items():
            found.setdefault(group, []).append(staged)
    return found
