"""Spark's checkpoints: what is shown of them, and other offsets put in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from intergroup_core.errors import OffsetsUnusable
from intergroup_core.ids import Service
from intergroup_core.log.cut import EntryCut, OrderCut
from pyspark_intergroup.checkpoint import Checkpoint
from pyspark_intergroup.offsets import Offsets, beginning
from pyspark_intergroup.offsets_command import app
from tests.builders import START, A

NOTES = '{"batchWatermarkMs":0,"batchTimestampMs":1}'


def at(number: int, group: str = "prices") -> Offsets:
    return Offsets({group: OrderCut(START + number, A)})


def a_checkpoint(directory: Path, *batches: tuple[str, ...], done: int) -> Path:
    """One whose last batches are not done."""
    for which in ("offsets", "commits"):
        (directory / which).mkdir(parents=True)
    for number, sources in enumerate(batches):
        (directory / "offsets" / str(number)).write_text("\n".join(["v1", NOTES, *sources]))
        (directory / "offsets" / f".{number}.crc").write_bytes(b"checksum")
        if number < done:
            (directory / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return directory


def test_the_batches_of_a_query_and_whether_they_are_done(tmp_path: Path) -> None:
    directory = a_checkpoint(tmp_path, *((at(number).to_text(),) for number in range(3)), done=2)
    batches = Checkpoint(directory).batches()
    assert [(batch.batch, batch.done, batch.sources[0]) for batch in batches] == [
        (0, True, at(0)),
        (1, True, at(1)),
        (2, False, at(2)),
    ]


def test_sources_of_others_are_left_alone(tmp_path: Path) -> None:
    other = '{"topic":{"0":17}}'
    directory = a_checkpoint(tmp_path, ("-", other, at(1).to_text()), done=1)
    checkpoint = Checkpoint(directory)
    assert checkpoint.last().sources == (None, None, at(1))
    checkpoint.reset(at(0))
    lines = (directory / "offsets" / "0").read_text().split("\n")
    assert lines == ["v1", NOTES, "-", other, at(0).to_text()]


def test_after_a_reset_the_last_batch_is_done_with_the_new_offsets_and_the_old_ones_are_kept(tmp_path: Path) -> None:
    directory = a_checkpoint(tmp_path, (at(0).to_text(),), (at(1).to_text(),), done=1)
    kept = Checkpoint(directory).reset(at(7))
    last = Checkpoint(directory).last()
    assert (last.batch, last.done, last.sources) == (1, True, (at(7),))
    assert at(1).to_text() in kept.read_text()
    assert not (directory / "offsets" / ".1.crc").exists()


def test_offsets_of_groups_that_the_query_does_not_read_are_refused(tmp_path: Path) -> None:
    directory = a_checkpoint(tmp_path, (at(0).to_text(),), done=1)
    with pytest.raises(OffsetsUnusable, match="prices"):
        Checkpoint(directory).reset(at(7, group="other"))
    assert Checkpoint(directory).last().sources == (at(0),)


@pytest.mark.parametrize("content", ["", "v1", "nonsense\n\n"])
def test_what_is_no_checkpoint_of_ours_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(OffsetsUnusable, match="no checkpoint"):
        Checkpoint(tmp_path)
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text(content)
    with pytest.raises(OffsetsUnusable):
        Checkpoint(tmp_path).last()


def test_the_command_shows_where_a_query_is(tmp_path: Path) -> None:
    directory = a_checkpoint(tmp_path, (at(0).to_text(),), (at(1).to_text(),), done=1)
    said = CliRunner().invoke(app, ["show", str(directory)])
    assert said.exit_code == 0
    assert "batch 1 (planned" in said.output
    assert f"prices (rto): behind {at(1)['prices']}" in said.output
    listed = CliRunner().invoke(app, ["show", "--all", "--json", str(directory)]).output.splitlines()
    assert [json.loads(line)["done"] for line in listed] == [True, False]


@pytest.mark.parametrize(
    ("to", "wanted"),
    [
        ("earliest", Offsets({"prices": beginning(Service.RTO)})),
        ("0", at(0)),
        (at(9).to_text(), at(9)),
        (json.dumps(at(9).to_json()["groups"]), at(9)),
    ],
)
def test_the_command_resets_a_query(tmp_path: Path, to: str, wanted: Offsets) -> None:
    directory = a_checkpoint(tmp_path, (at(0).to_text(),), (at(1).to_text(),), done=1)
    done = CliRunner().invoke(app, ["reset", str(directory), "--to", to, "--yes"])
    assert done.exit_code == 0, done.output
    assert Checkpoint(directory).last().sources == (wanted,)


@pytest.mark.parametrize(
    ("to", "complaint"), [("yesterday", "earliest"), ("17", "no batch 17"), ("[]", "not the offsets")]
)
def test_the_command_refuses_what_is_no_offset(tmp_path: Path, to: str, complaint: str) -> None:
    directory = a_checkpoint(tmp_path, (at(0).to_text(),), done=1)
    refused = CliRunner().invoke(app, ["reset", str(directory), "--to", to, "--yes"])
    assert isinstance(refused.exception, OffsetsUnusable)
    assert complaint in str(refused.exception)
    assert Checkpoint(directory).last().sources == (at(0),)


def test_uu_has_no_earliest(tmp_path: Path) -> None:
    directory = a_checkpoint(tmp_path, (Offsets({"prices": EntryCut(1, 5)}).to_text(),), done=1)
    refused = CliRunner().invoke(app, ["reset", str(directory), "--to", "earliest", "--yes"])
    assert isinstance(refused.exception, OffsetsUnusable)


def test_nothing_is_done_without_consent(tmp_path: Path) -> None:
    directory = a_checkpoint(tmp_path, (at(0).to_text(),), done=1)
    assert CliRunner().invoke(app, ["reset", str(directory), "--to", "earliest"], input="n\n").exit_code == 1
    assert Checkpoint(directory).last().sources == (at(0),)
