"""`intergroup sim`: a group in virtual time, held to its properties."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from intergroup_core.errors import ConfigError
from intergroup_core.sim.outcome import Outcome, play
from intergroup_core.sim.scenario import Scenario

EXIT_VIOLATIONS = 1

_DEFAULT = Scenario()


def sim(
    seed: Annotated[int, typer.Option(help="Everything random comes from it.")] = _DEFAULT.seed,
    members: Annotated[int, typer.Option(help="Members that send and receive.")] = _DEFAULT.members,
    receivers: Annotated[int, typer.Option(help="Members beside them that only receive.")] = _DEFAULT.receivers,
    delivery: Annotated[str, typer.Option(help="uu, rso, rto, or mixed: each member its own.")] = _DEFAULT.delivery,
    loss: Annotated[float, typer.Option(help="Part of the datagrams each receiver loses.")] = _DEFAULT.loss,
    burst: Annotated[float, typer.Option(help="Datagrams lost in a row on average.")] = _DEFAULT.burst,
    dup: Annotated[float, typer.Option(help="Part of the datagrams that arrive twice.")] = _DEFAULT.dup,
    reorder: Annotated[float, typer.Option(help="Part of the datagrams that arrive late.")] = _DEFAULT.reorder,
    corrupt: Annotated[float, typer.Option(help="Part of the datagrams that arrive damaged.")] = _DEFAULT.corrupt,
    duration: Annotated[float, typer.Option(help="Virtual seconds of work, before the quiet end.")] = _DEFAULT.duration,
    messages: Annotated[int, typer.Option(help="Go on until so many messages were sent.")] = _DEFAULT.messages,
    faults: Annotated[
        str,
        typer.Option(
            help="Some of crash, partition, oneway, pause, slow, congestion, clock, restart, join, leave, flap, lossy, "
            "silent, start, adversary; comma-separated. With --fixed only the first seven."
        ),
    ] = "",
    rate: Annotated[float, typer.Option(help="Messages per second of each sender.")] = _DEFAULT.rate,
    size: Annotated[int, typer.Option(help="Bytes of an ordinary record; large ones have fifty times as many.")] = (
        _DEFAULT.size
    ),
    preset: Annotated[str, typer.Option(help="Settings and delays: lan, wan or test.")] = _DEFAULT.preset,
    quorum: Annotated[str, typer.Option(help="Which component may send: none, a number, majority or all.")] = (
        _DEFAULT.quorum
    ),
    hierarchy: Annotated[bool, typer.Option("--hierarchy", help="With a control process beside every member.")] = False,
    fixed: Annotated[bool, typer.Option("--fixed", help="One view for ever instead of live membership.")] = False,
    trace: Annotated[Path | None, typer.Option(help="Write the trace to this file, a JSON line per event.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Simulate a group in virtual time and check every property of its trace.

    The same seed and flags give the same trace, byte for byte. Exits with 1 if a property was violated.

    Members join, leave, fail and return, and views change; --fixed keeps one view for ever.

    Example: intergroup sim --seed 7 --members 5 --delivery rto --loss 0.1 --duration 10 --faults pause,partition
    """
    scenario = Scenario(
        seed=seed,
        members=members,
        receivers=receivers,
        delivery=delivery,
        loss=loss,
        burst=burst,
        dup=dup,
        reorder=reorder,
        corrupt=corrupt,
        duration=duration,
        messages=messages,
        faults=tuple(name.strip() for name in faults.split(",") if name.strip()),
        rate=rate,
        size=size,
        preset=preset,
        quorum=quorum,
        hierarchy=hierarchy,
        fixed=fixed,
    )
    outcome, recorded = play(scenario)
    if trace is not None:
        try:
            trace.write_bytes(recorded.to_bytes())
        except OSError as error:
            raise ConfigError(f"--trace {trace} cannot be written: {error.strerror}") from error
    if as_json:
        print(json.dumps(outcome.to_json()))
    else:
        print(_shown(outcome))
    if outcome.violations:
        typer.echo(f"replay with: {scenario.command()}", err=True)
        raise typer.Exit(EXIT_VIOLATIONS)


def _shown(outcome: Outcome) -> str:
    lines = [
        f"seed {outcome.scenario.seed}: {outcome.scenario.members} senders, {outcome.scenario.receivers} receivers, "
        f"{outcome.virtual_ns / 1e9:.2f} virtual seconds",
        f"sent {outcome.sent}, delivered {outcome.delivered}, datagrams dropped {outcome.dropped}, "
        f"views {outcome.views}",
        f"latency p50 {outcome.latency_ms['p50']:.2f} ms, p99 {outcome.latency_ms['p99']:.2f} ms; "
        f"largest buffer {outcome.buffers_max_bytes} bytes",
        f"requests per loss {outcome.requests_per_loss:.2f}, repairs per loss {outcome.repairs_per_loss:.2f}",
        ", ".join(f"{name} {count}" for name, count in outcome.totals.items()),
        *([] if outcome.scenario.fixed else [_membership(outcome)]),
        f"trace {outcome.digest}",
        f"violations {len(outcome.violations)}",
    ]
    lines.extend(str(violation) for violation in outcome.violations)
    return "\n".join(lines)


def _membership(outcome: Outcome) -> str:
    pause = outcome.to_json()["pause_ms"]
    gaps = ", ".join(f"{count} times {reason}" for reason, count in outcome.gaps.items())
    return (
        f"one view of all senders {outcome.settling_ns / 1e6:.0f} ms after the last trouble; delivery paused for "
        f"{pause['median']:.0f} ms (median), {pause['worst']:.0f} ms (worst) in repairs; gaps: {gaps or 'none'}"
    )
