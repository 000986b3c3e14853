"""`intergroup log` on logs in files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from intergroup_core.api.events import Batch, time_of
from intergroup_core.api.stream import Stream
from intergroup_core.cli import main as command_line
from intergroup_core.cli.log import app
from intergroup_core.cli.rows import row_of
from intergroup_core.ids import Service
from intergroup_core.log.entry import header_at
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.manifest import segment_name
from intergroup_core.runtime.disk import FileDisk
from tests.builders import GROUP, START, A
from tests.log_builders import a_chunk, a_gap, a_history, a_log, an_install

FIRST = segment_name(0)


def a_log_in(directory: Path, history: list[Delivered], service: Service = Service.RTO, *, closed: bool = True) -> Path:
    disk = FileDisk.locked(directory)
    log = a_log(disk, service=service, segment_bytes=4_000)
    for delivered in history:
        log.append(delivered)
    if closed:
        log.close()
    disk.close()
    return directory


def run(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def objects(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def received(history: list[Delivered], service: Service = Service.RTO) -> list[dict[str, Any]]:
    """What `recv --json` would have printed."""
    stream = Stream(GROUP, service)
    return [
        json.loads(json.dumps(row_of(event)))
        for delivered in history
        for found in stream.events(delivered)
        for event in (found.messages() if isinstance(found, Batch) else [found])
    ]


@pytest.mark.parametrize("service", Service)
def test_cat_prints_what_recv_would_have_printed(tmp_path: Path, service: Service) -> None:
    history = [
        *a_history(Random(8), 60, service),
        a_gap("too slow"),
        a_chunk(b"\xff\xfe", seq=900, timestamp=START + 10**6),
    ]
    shown = objects(run("cat", a_log_in(tmp_path / "log", history, service)))
    assert shown == received(history, service)
    assert list(shown[0]) == list(received(history, service)[0])
    assert "value_base64" in shown[-1]


def test_cat_takes_times_and_a_count(tmp_path: Path) -> None:
    second = 1_000_000 << 12
    history: list[Delivered] = [
        an_install(A),
        *(a_chunk(b"%d" % at, seq=1 + at, timestamp=START + at * second) for at in range(1, 6)),
    ]
    log = a_log_in(tmp_path / "log", history)
    begin, end = (time_of(START + at * second).isoformat() for at in (2, 4))

    def values(*more: str) -> list[str | None]:
        return [row["value"] for row in objects(run("cat", log, *more))]

    assert values("--from", begin, "--to", end) == ["2", "3"]
    assert values("--from", str(round(time_of(START + 4 * second).timestamp() * 1_000))) == ["4", "5"]
    assert values("--count", "2") == [None, "1", "2"]


def test_times_are_looked_at_row_by_row_where_there_is_no_one_order(tmp_path: Path) -> None:
    second = 1_000_000 << 12
    history: list[Delivered] = [
        a_chunk(b"%d" % at, seq=1 + at, timestamp=START + at * second) for at in (3, 1, 4, 2, 5)
    ]
    log = a_log_in(tmp_path / "log", history, Service.UU)
    begin, end = (time_of(START + at * second).isoformat() for at in (2, 5))
    shown = objects(run("cat", log, "--from", begin, "--to", end))
    assert [row["value"] for row in shown] == ["3", "4", "2"]


def test_ls_finds_logs_below_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_log_in(tmp_path / "one", [an_install(A), a_chunk(b"x", b"y", timestamp=START + 4_096_000)])
    a_log_in(tmp_path / "deep" / "two", a_history(Random(1), 200), Service.RSO)
    two, one = objects(run("ls", tmp_path, "--json"))
    assert (one["group"], one["delivery"], one["entries"], one["records"], one["segments"]) == (GROUP, "rto", 2, 2, 1)
    assert (one["first"], one["last"]) == ("2025-06-15T15:06:40.000Z", "2025-06-15T15:06:40.001Z")
    assert (two["delivery"], two["entries"], two["segments"] > 2) == ("rso", 200, True)
    assert two["bytes"] == sum(path.stat().st_size for path in (tmp_path / "deep" / "two").glob("*.segment"))
    assert run("ls", tmp_path / "deep").count("\n") == 2
    monkeypatch.setenv("INTERGROUP_HOME", str(tmp_path / "home"))
    assert run("ls") == f"no stable log in {tmp_path}/home/logs\n"
    a_log_in(tmp_path / "home" / "logs" / "three", [an_install(A)])
    heading, three = run("ls").splitlines()
    assert heading.split()[:4] == ["group", "delivery", "log", "entries"]
    assert three.endswith("home/logs/three")


def test_verify_says_that_a_log_is_sound(tmp_path: Path) -> None:
    log = a_log_in(tmp_path / "log", a_history(Random(1), 100))
    assert f"{log}: " in run("verify", log)
    assert "all sound" in run("verify", tmp_path)


def test_verify_names_file_and_offset_of_damage(tmp_path: Path) -> None:
    log = a_log_in(tmp_path / "log", a_history(Random(1), 100))
    content = bytearray((log / FIRST).read_bytes())
    header = header_at(memoryview(bytes(content)), 0)
    assert header is not None
    content[header.size + 140] ^= 4
    (log / FIRST).write_bytes(content)
    assert f"{log}/{FIRST}: damaged at offset {header.size}, to " in run("verify", log, code=1)
    (log / FIRST).unlink()
    assert f"{log}/{FIRST}: damaged at offset 0" in run("verify", log, code=1)


@pytest.mark.parametrize(("lost", "code"), [(1, 0), (130, 0), (0, 0)])
def test_an_entry_that_was_not_finished_is_told_and_is_no_damage(tmp_path: Path, lost: int, code: int) -> None:
    log = a_log_in(tmp_path / "log", [an_install(A), a_chunk(b"x")], closed=False)
    with (log / FIRST).open("r+b") as file:
        file.truncate((log / FIRST).stat().st_size - lost)
    shown = run("verify", log, code=code)
    assert ("with part of an entry, which its writer will cut" in shown) == bool(lost)


@pytest.mark.parametrize(
    ("closed", "what"), [(False, "an entry is not what was written"), (True, "what was durable here is not whole")]
)
def test_the_last_entry_can_be_damaged_too(tmp_path: Path, closed: bool, what: str) -> None:
    log = a_log_in(tmp_path / "log", [an_install(A), a_chunk(b"x")], closed=closed)
    content = bytearray((log / FIRST).read_bytes())
    content[-3] ^= 1
    (log / FIRST).write_bytes(content)
    assert what in run("verify", log, code=1)


def test_what_a_closed_log_lacks_at_its_end_is_damage(tmp_path: Path) -> None:
    log = a_log_in(tmp_path / "log", [an_install(A), a_chunk(b"x")])
    with (log / FIRST).open("r+b") as file:
        file.truncate(file.seek(0, 2) - 1)
    assert "what was durable here is not whole" in run("verify", log, code=1)
    (log / FIRST).unlink()
    assert f"{log}/{FIRST}: damaged at offset 0" in run("verify", log, code=1)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_an_export_holds_the_rows(tmp_path: Path, suffix: str) -> None:
    history = a_history(Random(8), 60)
    log, out = a_log_in(tmp_path / "log", history), tmp_path / f"out{suffix}"
    shown = run("export", log, out)
    if suffix == ".parquet":
        table = pa.parquet.read_table(out)
    else:
        with pa.ipc.open_file(str(out)) as file:
            table = file.read_all()
    rows = received(history)
    assert shown == f"{len(rows)} rows in {out}\n"
    assert table.column("position").to_pylist() == [row["position"] for row in rows]
    assert table.column("members").to_pylist() == [row["members"] for row in rows]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("out")] == [out.name]


def test_a_failed_export_leaves_nothing(tmp_path: Path) -> None:
    log = a_log_in(tmp_path / "log", a_history(Random(8), 60))
    content = bytearray((log / FIRST).read_bytes())
    content[1_000] ^= 1
    (log / FIRST).write_bytes(content)
    result = CliRunner().invoke(app, ["export", str(log), str(tmp_path / "out.parquet")])
    assert "is damaged at offset" in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["cat", "{log}", "--from", "soon"], 2, "--from is 'soon'; it must be a time such as"),
        (["cat", "{nowhere}"], 1, "cannot list {nowhere}: No such file or directory"),
        (["cat", "{empty}"], 1, "{empty} holds no stable log: it has no file manifest; name a directory that has one"),
        (["ls", "{nowhere}"], 2, "{nowhere} is not a directory"),
        (["verify", "{empty}"], 2, "there is no stable log in {empty}"),
        (["export", "{log}", "{empty}/out.csv"], 2, "{empty}/out.csv must end in .parquet"),
        (["export", "{log}", "{there}"], 2, "{there} is there already; remove it, or name another file"),
    ],
)
def test_an_error_is_one_sentence_and_a_code(
    arguments: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    places = {name: str(tmp_path / name) for name in ("log", "nowhere", "empty", "there")}
    places["there"] += ".parquet"
    a_log_in(tmp_path / "log", [an_install(A)])
    (tmp_path / "empty").mkdir()
    Path(places["there"]).touch()
    monkeypatch.setattr(sys, "argv", ["intergroup", "log", *(each.format(**places) for each in arguments)])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    output = capfd.readouterr()
    assert ended.value.code == code
    assert output.err.startswith(f"intergroup: {said.format(**places)}")
    assert (output.err.count("\n"), output.out) == (1, "")


@pytest.mark.parametrize("command", ["ls", "cat", "verify", "export"])
def test_every_command_has_help_with_an_example(command: str) -> None:
    assert f"Example: intergroup log {command}" in " ".join(run(command, "--help").split())
