"""What tasks stage and the driver commits: once, whatever is tried again."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest

from intergroup_core.errors import (
    AckUnreached,
    AgentUnavailable,
    ConfigError,
    LocalProtocolError,
    MessageTooLarge,
    TransactionVoid,
)
from pyspark_intergroup import sending, writing
from pyspark_intergroup.batch_writer import GroupBatchWriter
from pyspark_intergroup.committing import abandon_written, commit_written
from pyspark_intergroup.sending import LINGER_S, Senders
from pyspark_intergroup.stream_writer import GroupStreamWriter
from pyspark_intergroup.write_options import WriteOptions
from pyspark_intergroup.write_schema import RowLayout
from pyspark_intergroup.writing import TaskWriter, Transaction, Written
from tests.unit.connector.memory_groups import MemorySite, memory_site
from tests.unit.connector.writes import a_write

RAW = RowLayout(encode="raw", value=0)
ROUTED = RowLayout(encode="raw", value=0, group=1)
BATCH_5 = Transaction("query", "run-1", 5, lasting=True)
AGAIN = Transaction("query", "run-2", 5, lasting=True)


@pytest.fixture
def site() -> Iterator[MemorySite]:
    with memory_site() as made:
        yield made


def rows(*values: bytes) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(values, pa.binary())})


def routed(**groups: list[bytes]) -> pa.RecordBatch:
    pairs = [(value, group) for group, values in groups.items() for value in values]
    return pa.record_batch(
        {"value": pa.array([value for value, _ in pairs]), "group_name": pa.array([group for _, group in pairs])}
    )


def task(
    *batches: pa.RecordBatch,
    options: WriteOptions | None = None,
    layout: RowLayout = RAW,
    transaction: Transaction | None = BATCH_5,
) -> Written:
    """A message as the driver gets it."""
    written = TaskWriter(options or a_write(), layout).write(iter(batches), transaction)
    arrived = pickle.loads(pickle.dumps(written))
    assert isinstance(arrived, Written)
    return arrived


def failing(*batches: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    yield from batches
    raise RuntimeError("what was before in the task failed")


def test_rows_are_visible_once_their_batch_is_committed(site: MemorySite) -> None:
    messages = [task(rows(b"1", b"2"), rows(b"3")), task(rows(b"4")), task()]
    assert site.visible() == []
    commit_written(a_write(), messages)
    assert site.visible() == [b"1", b"2", b"3", b"4"]
    assert site.groups["prices"].commits == [("query", 5, True)]


def test_a_task_waits_for_the_level_that_was_asked_for(site: MemorySite) -> None:
    task(rows(b"1"), options=a_write(ack="k:2", ackTimeout="5s"))
    assert site.clients[0].acks == [("k:2", 5.0)]


def test_a_batch_without_rows_commits_nothing(site: MemorySite) -> None:
    commit_written(a_write(), [task(), task(rows()), None])
    assert site.clients == []


def test_a_task_that_is_tried_again_counts_once(site: MemorySite) -> None:
    with pytest.raises(RuntimeError):
        TaskWriter(a_write(), RAW).write(failing(rows(b"1")), BATCH_5)
    commit_written(a_write(), [task(rows(b"1")), task(rows(b"2"))])
    assert site.visible() == [b"1", b"2"]


def test_of_two_attempts_that_both_end_one_counts(site: MemorySite) -> None:
    first, speculative = task(rows(b"1")), task(rows(b"1"))
    assert first.staged["prices"].attempt != speculative.staged["prices"].attempt
    commit_written(a_write(), [speculative])
    assert site.visible() == [b"1"]


def test_a_batch_that_was_committed_is_neither_staged_nor_committed_again(site: MemorySite) -> None:
    commit_written(a_write(), [task(rows(b"1"))])
    again = task(rows(b"1"), transaction=AGAIN)
    assert again.staged == {}
    commit_written(a_write(), [again])
    assert site.visible() == [b"1"]


def test_a_batch_that_was_committed_is_not_done_before_that_has_come_as_far_as_was_asked(site: MemorySite) -> None:
    commit_written(a_write(), [task(rows(b"1"))])
    again = task(rows(b"1"), transaction=AGAIN)
    site.fails_to_commit.add("prices")
    with pytest.raises(AckUnreached):
        commit_written(a_write(), [again])
    carried = task(rows(b"1"), transaction=AGAIN, options=a_write(sendFrom="driver"))
    with pytest.raises(AckUnreached):
        commit_written(a_write(sendFrom="driver"), [carried])


def test_a_commit_that_was_heard_before_its_answer_is_success(site: MemorySite) -> None:
    messages = [task(rows(b"1"))]
    commit_written(a_write(), messages)
    commit_written(a_write(), messages)
    assert site.visible() == [b"1"]


def test_an_older_run_commits_nothing_any_more(site: MemorySite) -> None:
    old = task(rows(b"1"))
    new = task(rows(b"1"), transaction=AGAIN)
    with pytest.raises(TransactionVoid):
        commit_written(a_write(), [old])
    commit_written(a_write(), [new])
    assert site.visible() == [b"1"]


def test_groups_are_committed_each_by_itself_and_only_where_they_were_not(site: MemorySite) -> None:
    site.fails_to_commit = {"b"}
    with pytest.raises(AckUnreached):
        commit_written(a_write(), [task(routed(b=[b"1"], a=[b"2", b"3"]), layout=ROUTED)])
    assert (site.visible("a"), site.visible("b")) == ([b"2", b"3"], [])
    site.fails_to_commit = set()
    again = task(routed(b=[b"1"], a=[b"2", b"3"]), layout=ROUTED, transaction=AGAIN)
    assert again.staged.keys() == {"b"}
    commit_written(a_write(), [again])
    assert (site.visible("a"), site.visible("b")) == ([b"2", b"3"], [b"1"])


def test_what_is_aborted_is_let_go_of_and_nothing_is_undone(site: MemorySite) -> None:
    messages = [task(rows(b"1")), None, task(rows(b"2"))]
    abandon_written(a_write(), messages)
    (label,) = site.groups["prices"].abandoned
    assert (label.app, label.run, label.version) == ("query", "run-1", 5)
    abandon_written(a_write(), [None, None])

    committed = [task(rows(b"3"), transaction=AGAIN)]
    commit_written(a_write(), committed)
    abandon_written(a_write(), committed)
    assert site.visible() == [b"3"]


def test_an_abort_that_cannot_be_told_says_nothing(site: MemorySite, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [task(rows(b"1"))]

    def unreachable(*_: object, **__: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(sending.Senders, "client", unreachable)
    abandon_written(a_write(), messages)


def test_without_transactions_rows_are_there_at_once_and_again_with_every_attempt(site: MemorySite) -> None:
    options = a_write(transactional="false")
    first = task(rows(b"1"), options=options, transaction=None)
    assert site.visible() == [b"1"]
    task(rows(b"1"), options=options, transaction=None)
    commit_written(options, [first])
    abandon_written(options, [first])
    assert site.visible() == [b"1", b"1"]
    assert site.groups["prices"].commits == []


def test_a_row_that_is_too_large_fails_its_task(site: MemorySite) -> None:
    with pytest.raises(MessageTooLarge):
        task(rows(b"1", bytes(8_000_001)))
    commit_written(a_write(), [task(rows(b"2"))])
    assert site.visible() == [b"2"]


@pytest.mark.parametrize("transactional", [True, False])
def test_the_driver_sends_what_tasks_hand_to_it(site: MemorySite, transactional: bool) -> None:
    options = a_write(sendFrom="driver", transactional=str(transactional))
    transaction = BATCH_5 if transactional else None
    messages = [
        task(routed(a=[b"1"], b=[b"2"]), options=options, layout=ROUTED, transaction=transaction),
        task(routed(a=[b"3"]), options=options, layout=ROUTED, transaction=transaction),
    ]
    assert site.clients == []
    commit_written(options, messages)
    assert (site.visible("a"), site.visible("b")) == ([b"1", b"3"], [b"2"])


def test_the_driver_sends_no_batch_twice(site: MemorySite) -> None:
    options = a_write(sendFrom="driver")
    commit_written(options, [task(rows(b"1"), options=options)])
    commit_written(options, [task(rows(b"1"), options=options, transaction=AGAIN)])
    assert site.visible() == [b"1"]
    assert site.groups["prices"].staged == {}


def test_more_than_the_driver_takes_is_refused(site: MemorySite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MAX_CARRIED_BYTES", 2 << 20)
    with pytest.raises(ConfigError, match="sendFrom is 'driver', and a task has more than 2 MB of rows for it"):
        task(rows(bytes(1 << 20)), rows(bytes(1 << 20)), rows(b"x"), options=a_write(sendFrom="driver"))


# Senders


def test_a_worker_stays_in_a_group_from_task_to_task(site: MemorySite) -> None:
    task(rows(b"1"))
    task(rows(b"2"), transaction=AGAIN)
    (client,) = site.clients
    assert client.config.agent.linger_s == LINGER_S


def test_a_client_whose_agent_went_is_replaced(site: MemorySite) -> None:
    task(rows(b"1"))
    site.clients[0].alive = False
    commit_written(a_write(), [task(rows(b"2"))])
    assert len(site.clients) == 2
    assert site.visible() == [b"2"]


def test_a_group_that_cannot_be_joined_is_named(site: MemorySite, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object, **__: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(sending, "TransactionClient", silent)
    with pytest.raises(AgentUnavailable, match="this site's agent was not in group prices within 30 s; look at"):
        task(rows(b"1"))


def test_other_settings_are_another_client(site: MemorySite) -> None:
    for options in (a_write(), a_write(agent="/var/site"), a_write(interface="lo"), a_write(ack="sent")):
        task(rows(b"1"), options=options)
    assert len(site.clients) == 3


def test_a_worker_is_in_so_many_groups_at_most(site: MemorySite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "MAX_GROUPS", 2)
    monkeypatch.setattr(writing, "MAX_GROUPS", 2)
    for name in ("a", "b", "c"):
        task(routed(**{name: [b"1"]}), layout=ROUTED)
    assert [client.alive for client in site.clients] == [False, True, True]
    with pytest.raises(ConfigError, match="a task has rows for more than 2 groups; is group_name a column of groups"):
        task(routed(a=[b"1"], b=[b"1"], c=[b"1"]), layout=ROUTED)


def test_a_forked_worker_has_clients_of_its_own(site: MemorySite, monkeypatch: pytest.MonkeyPatch) -> None:
    task(rows(b"1"))
    monkeypatch.setattr(Senders, "_pid", -1)
    task(rows(b"2"))
    assert [client.alive for client in site.clients] == [True, True]


# Writers


def test_a_batch_write_is_one_transaction_that_nobody_can_name_again(site: MemorySite) -> None:
    writer = pickle.loads(pickle.dumps(GroupBatchWriter(a_write(), RAW)))
    writer.commit([writer.write(iter([rows(b"1")])), writer.write(iter([rows(b"2")]))])
    assert site.visible() == [b"1", b"2"]
    ((_, version, lasting),) = site.groups["prices"].commits
    assert (version, lasting) == (0, False)
    GroupBatchWriter(a_write(), RAW).abort([None])


def test_a_batch_write_with_a_name_is_done_once(site: MemorySite) -> None:
    for version in ("3", "3", "4", "2"):
        writer = GroupBatchWriter(a_write(txnAppId="nightly", txnVersion=version), RAW)
        writer.commit([writer.write(iter([rows(version.encode())]))])
    assert site.visible() == [b"3", b"4"]
    assert site.groups["prices"].commits == [("nightly", 3, True), ("nightly", 4, True)]


def test_a_stream_is_only_written_where_spark_says_whose_it_is(site: MemorySite) -> None:
    writer = GroupStreamWriter(a_write(streaming=True), RAW)
    with pytest.raises(LocalProtocolError, match="Spark does not tell a task of a streaming query"):
        writer.write(iter([rows(b"1")]))
    writer.abort([None], 0)
    plain = GroupStreamWriter(a_write(streaming=True, transactional="false"), RAW)
    plain.commit([plain.write(iter([rows(b"1")]))], 0)
    assert site.visible() == [b"1"]
