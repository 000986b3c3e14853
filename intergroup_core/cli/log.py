"""`intergroup log`: looks at stable logs, checks them, and copies them out."""

from __future__ import annotations

import json as encoding
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from intergroup_core.api.events import time_of
from intergroup_core.cli.ending import leaving_on_signals, write_line
from intergroup_core.cli.export import export_rows
from intergroup_core.cli.progress import bar
from intergroup_core.cli.rows import row_of_columns
from intergroup_core.client.directories import site_directories
from intergroup_core.errors import ConfigError
from intergroup_core.ids import MAX_TIMESTAMP, Service, timestamp_at
from intergroup_core.log.arrow import COLUMNS, ArrowRows
from intergroup_core.log.manifest import read_manifest
from intergroup_core.log.reader import LogReader
from intergroup_core.log.verification import bytes_to_verify, verify
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.runtime.stream_store import logs_under

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)

LogPath = Annotated[Path, typer.Argument(metavar="PATH", help="The directory of one log.")]
SomePath = Annotated[
    Path | None, typer.Argument(metavar="[PATH]", help="A directory with logs in it.", show_default="this site's logs")
]
From = Annotated[
    str | None, typer.Option("--from", help="Only what is not before this: ISO 8601, or milliseconds since 1970.")
]
To = Annotated[str | None, typer.Option("--to", help="Only what is before this.")]

_EXAMPLE_PATH = "/var/lib/intergroup/logs/prices-rto"


@app.command("ls", epilog="Example: intergroup log ls /var/lib/intergroup")
def list_logs(
    path: SomePath = None,
    json: Annotated[bool, typer.Option("--json", help="One object a line.")] = False,
) -> None:
    """List the streams that have a log: entries, bytes, first and last time, segments."""
    directory = path or site_directories().logs
    found = [_described(each) for each in _logs_in(directory)] if path or directory.is_dir() else []
    if json:
        for log in found:
            write_line(encoding.dumps(log))
        return
    if not found:
        write_line(f"no stable log in {directory}")
        return
    heading = {name: name for name in found[0]}
    rows = [heading, *({name: _shown(value) for name, value in log.items()} for log in found)]
    widths = {name: max(len(row[name]) for row in rows) for name in heading}
    for row in rows:
        write_line("  ".join(row[name].ljust(widths[name]) for name in heading).rstrip())


@app.command(epilog=f"Example: intergroup log cat {_EXAMPLE_PATH} --from 2026-03-01T08:00 --count 10")
def cat(
    path: LogPath,
    start: From = None,
    stop: To = None,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many records.", show_default="all")] = None,
) -> None:
    """Print what a log holds, a line each, as `intergroup recv --json` prints it."""
    reader = LogReader(FileDisk(path))
    records = 0
    with leaving_on_signals():
        batches = _batches(ArrowRows(reader, (*COLUMNS, "reason")), reader, start, stop)
        for columns in (columns for batch in batches for columns in batch.to_pylist()):
            write_line(encoding.dumps(row_of_columns(columns)))
            records += columns["kind"] == "data"
            if records == count:
                break


@app.command("verify", epilog=f"Example: intergroup log verify {_EXAMPLE_PATH}")
def verify_logs(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A log, or a directory with logs in it.")],
) -> None:
    """Check every byte against its checksum; end with 1 on damage and say which file and where.

    An entry that its writer had not finished when it ended is no damage: it is cut when the log is opened again.
    """
    logs = list(_logs_in(path))
    if not logs:
        raise ConfigError(f"there is no stable log in {path}; name a directory that has one")
    damaged = 0
    for directory in logs:
        disk = FileDisk(directory)
        manifest = read_manifest(disk)
        with bar("verifying", bytes_to_verify(disk, manifest), directory.name) as advance:
            found = verify(disk, manifest, advance)
        for note in found.notes:
            write_line(note)
        for damage in found.damages:
            write_line(f"{damage.file}: damaged at offset {damage.offset}, to {damage.stop}: {damage.what}")
        damaged += len(found.damages)
        if not found.damages:
            write_line(
                f"{directory}: {found.entries} entries in {found.segments} segments, {found.size} bytes, all sound"
            )
    if damaged:
        raise typer.Exit(1)


@app.command(epilog=f"Example: intergroup log export {_EXAMPLE_PATH} prices.parquet --from 2026-03-01")
def export(
    path: LogPath,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new file: .parquet, or .arrow (Arrow IPC).")],
    start: From = None,
    stop: To = None,
) -> None:
    """Copy a log into a file that other programs read, with the columns of a Spark read."""
    reader = LogReader(FileDisk(path))
    rows = ArrowRows(reader)
    records = sum(segment.index.totals.records for segment in reader.segments)
    with leaving_on_signals(), bar("exporting", records, out.name) as advance:
        written = export_rows(_batches(rows, reader, start, stop), rows.schema, out, advance)
    write_line(f"{written} rows in {out}")


def _logs_in(directory: Path) -> Iterator[Path]:
    """Directories with a manifest, this one or any below it."""
    if not directory.is_dir():
        raise ConfigError(f"{directory} is not a directory; name one that has a log in it")
    yield from logs_under(directory)


def _described(directory: Path) -> dict[str, Any]:
    reader = LogReader(FileDisk(directory))
    totals = [segment.index.totals for segment in reader.segments]
    carried = sum(int((segment.index.views["own"] == 0).sum()) for segment in reader.segments)
    firsts = [each.first_timestamp for each in totals if each.first_timestamp]
    return {
        "group": reader.manifest.group,
        "delivery": reader.manifest.service.value,
        "log": f"{reader.manifest.log:016x}",
        "entries": sum(each.entries for each in totals) - carried,
        "records": sum(each.records for each in totals),
        "bytes": sum(each.size for each in totals),
        "first": _iso(firsts[0]) if firsts else None,
        "last": _iso(totals[-1].highest) if firsts else None,
        "segments": len(totals),
        "damaged": len(reader.damages),
        "path": str(directory),
    }


def _batches(rows: ArrowRows, reader: LogReader, start: str | None, stop: str | None) -> Iterator[pa.RecordBatch]:
    """What lies between two times, given as options."""
    low, high = _time(start, "--from"), _time(stop, "--to")
    begin = reader.start() if low is None else reader.place_of_timestamp(low)
    if reader.manifest.service is Service.RTO:
        yield from rows.batches(begin, reader.end() if high is None else reader.place_of_timestamp(high))
        return
    # Only in the one order are timestamps in order too; elsewhere each row is looked at.
    for batch in rows.batches(begin):
        lamport = batch.column("lamport").to_numpy()
        wanted = (lamport >= (low or 0)) & (lamport < (MAX_TIMESTAMP if high is None else high))
        yield batch.filter(pa.array(wanted))


def _time(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    try:
        if text.isdigit():
            return timestamp_at(int(text) * 1_000_000)
        at = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{option} is {text!r}; it must be a time such as 2026-03-01T08:00:00, or milliseconds since 1970"
        ) from None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return timestamp_at(round(at.timestamp() * 1_000_000) * 1_000)


def _iso(timestamp: int) -> str:
    return time_of(timestamp).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)
