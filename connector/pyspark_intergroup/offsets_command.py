"""`intergroup offsets`: how far a streaming query has come, and how to let it go on from elsewhere."""

from __future__ import annotations

import json as encoding
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from intergroup_core.errors import OffsetsUnusable
from intergroup_core.ids import COUNTER_BITS, EPOCH_US, Service
from intergroup_core.log.cut import Cut
from intergroup_core.log.part import cut_timestamp
from pyspark_intergroup.checkpoint import BatchOffsets, Checkpoint
from pyspark_intergroup.offsets import Offsets, beginning, delivery_of

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)

Location = Annotated[
    Path, typer.Argument(metavar="CHECKPOINT", help="The query's checkpointLocation.", show_default=False)
]


@app.command("show")
def show(
    checkpoint: Location,
    everything: Annotated[bool, typer.Option("--all", help="Every batch that Spark still keeps.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One object for each batch.")] = False,
) -> None:
    """Print up to where a query has read each group.

    Example: intergroup offsets show /data/checkpoints/prices
    """
    opened = Checkpoint(checkpoint)
    for batch in opened.batches() if everything else [opened.last()]:
        if json:
            sources = [source.to_json() if source is not None else None for source in batch.sources]
            typer.echo(encoding.dumps({"batch": batch.batch, "done": batch.done, "sources": sources}))
        else:
            _print(batch)


@app.command("reset")
def reset(
    checkpoint: Location,
    to: Annotated[
        str,
        typer.Option(
            help="earliest, the number of a batch that `show --all` lists, or offsets as JSON.", show_default=False
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Let a query that does not run go on from other offsets. What it has in a state store stays as it is.

    Example: intergroup offsets reset /data/checkpoints/prices --to earliest
    """
    opened = Checkpoint(checkpoint)
    wanted = _wanted(opened, to)
    if not yes:
        typer.echo(f"The query of {checkpoint} will go on from {wanted.to_text()}")
        typer.confirm("It must not run now. Go on?", abort=True)
    kept = opened.reset(wanted)
    typer.echo(f"Done; what was there before is in {kept}.")


def _wanted(opened: Checkpoint, to: str) -> Offsets:
    last = next(source for source in opened.last().sources if source is not None)
    if to == "earliest":
        if any(delivery_of(cut) == "uu" for cut in last.values()):
            raise OffsetsUnusable("a query of uu has no earliest: its order exists in one log only; begin a new one")
        return Offsets({group: beginning(Service(delivery_of(cut))) for group, cut in last.items()})
    if to.isdigit():
        for batch in opened.batches():
            if batch.batch == int(to):
                return next(source for source in batch.sources if source is not None)
        raise OffsetsUnusable(f"the checkpoint has no batch {to} any more; `intergroup offsets show --all` lists them")
    try:
        value = encoding.loads(to)
    except ValueError:
        raise OffsetsUnusable(f"--to is {to!r:.60}; it must be earliest, a batch's number or offsets as JSON") from None
    return Offsets.of_json(value) if isinstance(value, dict) and "version" in value else Offsets.of_groups(value)


def _print(batch: BatchOffsets) -> None:
    typer.echo(f"batch {batch.batch} ({'done' if batch.done else 'planned, and to be done again'})")
    for number, source in enumerate(batch.sources):
        if source is None:
            typer.echo(f"  source {number}: not of intergroup, or nothing yet")
            continue
        for group, cut in source.items():
            typer.echo(f"  {group} ({delivery_of(cut)}): behind {cut}{_time(cut)}")


def _time(cut: Cut) -> str:
    at = cut_timestamp(cut)
    if not at:
        return ""
    moment = datetime.fromtimestamp(((at >> COUNTER_BITS) + EPOCH_US) / 1e6, tz=UTC)
    return f", {moment:%Y-%m-%d %H:%M:%S} UTC"
