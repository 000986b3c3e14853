"""What is wrong with a read, as its user is told: in one sentence, and with no harm to a checkpoint."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from intergroup_core.errors import ConfigError
from pyspark_intergroup.option_table import READ_OPTIONS, SECTIONS, Option, Scope
from pyspark_intergroup.source import InterGroupSource
from tests.integration.groups import a_group_name
from tests.integration.sites import Sites, stop_agent
from tests.log_builders import a_history
from tests.spark.numbered import Numbered, numbered, read_all
from tests.spark.query import COLUMNS, Sink
from tests.unit.connector.replay_logs import a_stored_log

BAD = {
    "group": "a" * 300,
    "delivery": "fifo",
    "isolation": "serial",
    "readLevel": "k:0",
    "path": "s3://bucket/logs",
    "branch": "main",
    "startingOffsets": "yesterday",
    "startingTimestamp": "noon",
    "startingView": "the first",
    "endingOffsets": "earliest",
    "endingTimestamp": "-1",
    "columns": "value,price",
    "kinds": "data,views",
    "includeViews": "yes",
    "senders": "a,,b",
    "failOnDataLoss": "no",
    "pushdown": "1",
    "valueFormat": "avro",
    "mode": "STRICT",
    "columnNameOfCorruptRecord": "_value",
    "maxRowsPerTrigger": "0",
    "maxOffsetsPerTrigger": "many",
    "maxBytesPerTrigger": "1 parsec",
    "minRowsPerTrigger": "1.5",
    "maxTriggerDelay": "soon",
    "subscription": "a" * 300,
    "minPartitions": "none",
    "maxRowsPerPartition": "-3",
    "config": "/nowhere/lan.toml",
    "interface": " ",
    "address": "10.0.0.1",
    "port": "70000",
    "ttl": "256",
    "transport": "carrier pigeon",
    "peers": "10.0.0.1",
    "quorum": "half",
    "agent": "here",
    "advertise": " ",
    "executors": "all",
    "fetchTimeout": "0s",
    "logDir": "logs",
    "retentionBytes": "lots",
    "retentionTime": "0",
    "slowReader": "wait",
    "security": "tls",
    "keyFile": "key",
    "trustFile": "keys",
}
"""A value for every option that it cannot have."""
WITH_SCHEMA = ("valueFormat", "mode", "columnNameOfCorruptRecord")


def sentence_in(error: BaseException) -> str:
    """The one that is ours, and that nothing but Spark's own notes follows."""
    lines = str(error).splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith("intergroup_core.errors.")]
    assert not [line for line in lines[at:] if "During handling" in line or "Traceback" in line], str(error)
    return re.sub("^intergroup_core.errors.[A-Za-z]+: ", "", lines[at])


def load(spark: SparkSession, options: dict[str, str], *, streaming: bool, schema: str | None = None) -> DataFrame:
    read: Any = (spark.readStream if streaming else spark.read).format("intergroup").options(**options)
    return (read.schema(schema) if schema is not None else read).load()


def refused(spark: SparkSession, options: dict[str, str], *, streaming: bool, schema: str | None = None) -> str:
    """What load() says; of a batch with a schema, whose options Spark does not look at before, its first action."""
    with pytest.raises(AnalysisException) as told:
        load(spark, options, streaming=streaming, schema=schema).isEmpty()
    return sentence_in(told.value)


def bad_options(option: Option) -> dict[str, str]:
    return {"group": "prices"} | {option.name: BAD[option.name]}


def check_bad_value(option: Option, said: str) -> None:
    assert option.name in said or BAD[option.name] in said, said
    assert ";" in said, f"it does not say what to do: {said}"


def test_every_bad_value_is_refused_by_what_load_calls() -> None:
    assert BAD.keys() == {option.name for option in READ_OPTIONS}
    for option in READ_OPTIONS:
        with pytest.raises(ConfigError) as told:
            loaded_by_spark(bad_options(option), with_schema=option.name in WITH_SCHEMA)
        check_bad_value(option, str(told.value))


def loaded_by_spark(options: dict[str, str], *, with_schema: bool) -> None:
    source = InterGroupSource(options)
    if not with_schema:
        source.schema()


@pytest.mark.parametrize("section", [title for title, options in SECTIONS.items() if options[0] in READ_OPTIONS])
def test_a_bad_value_is_refused_by_load(spark: SparkSession, section: str) -> None:
    option = SECTIONS[section][0]
    schema = "price double" if option.name in WITH_SCHEMA else None
    said = refused(spark, bad_options(option), streaming=option.scope is Scope.STREAMS, schema=schema)
    check_bad_value(option, said)


def test_an_unknown_option_and_a_missing_group_are_refused_by_load(spark: SparkSession) -> None:
    for streaming in (True, False):
        said = refused(spark, {"group": "prices", "startingOffset": "latest"}, streaming=streaming)
        assert said == "there is no option 'startingoffset'; did you mean startingOffsets?"
        said = refused(spark, {"group": "prices", "valueFormat": "json"}, streaming=streaming)
        assert said.startswith("valueFormat is about how columns are decoded from values")
        assert refused(spark, {}, streaming=streaming).startswith("there is no group to read; name it")


def test_a_path_that_cannot_be_read_is_named(spark: SparkSession, tmp_path: Path) -> None:
    empty, damaged = tmp_path / "empty", tmp_path / "damaged"
    empty.mkdir()
    a_stored_log(damaged, a_history(Random(4), 30))
    damage(damaged)
    for path, word in ((tmp_path / "nowhere", "no such directory"), (empty, "no log in it"), (damaged, "is damaged")):
        with pytest.raises(PySparkException) as told:
            load(spark, {"path": str(path)}, streaming=False).collect()
        said = sentence_in(told.value)
        assert str(path) in said
        assert word in said
        assert ";" in said, f"it does not say what to do: {said}"


def run(rows: DataFrame, batches: Path) -> None:
    """All that is there, from the checkpoint on."""
    query = (
        rows.writeStream.foreachBatch(Sink(batches).write)
        .option("checkpointLocation", str(batches.parent / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)


def test_a_stream_that_was_refused_or_whose_log_is_damaged_reads_every_row_once(
    there: Sites, tmp_path: Path, spark: SparkSession
) -> None:
    group, batches = a_group_name(), tmp_path / "batches"
    batches.mkdir()
    options = {"group": group, "interface": "lo", "startingOffsets": "earliest", "agent": str(there.home("query"))}

    def rows(schema: str | None = None, **other: str) -> DataFrame:
        return load(spark, options | other, streaming=True, schema=schema)

    def fails(frame: DataFrame) -> str:
        with pytest.raises(StreamingQueryException) as told:
            run(frame, batches)
        return sentence_in(told.value)

    def fail_without_harm() -> None:
        before = len(list(batches.iterdir()))
        assert fails(rows(schema="_kind long")) == "column _kind of the schema has type bigint; it must be string"
        assert fails(rows(schema="price double", failOnDataLoss="false")).startswith("failOnDataLoss is 'false', and")
        assert fails(rows(path=str(tmp_path))) == "path is for batch reads; leave it out of a stream"
        assert fails(rows(delivery="rso")).startswith(f"the offset of group {group} is one of rto")
        assert len(list(batches.iterdir())) == before

    with numbered(group, [there.home("sender")]) as (sender,):
        send_some(sender)
        run(rows().select(*COLUMNS), batches)
        fail_without_harm()
        send_some(sender)
        sender.send_last()
        stop_agent(there.home("query"))
        damage(there.home("query") / "logs")
        run(rows().select(*COLUMNS), batches)
        found = [row for path in sorted(batches.iterdir()) for row in json.loads(path.read_text())]
        assert found == read_all(group, there.home("sender"))


def send_some(sender: Numbered) -> None:
    for _ in range(20):
        sender.send([f"{sender.name}:{len(sender.sent)}"])


def damage(directory: Path) -> None:
    """A byte in the middle of every log is another; an end that is all wrong would pass for one not yet written."""
    for path in directory.rglob("*.seg*"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
