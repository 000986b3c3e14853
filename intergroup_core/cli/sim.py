"""`intergroup sim`: a group, or the control hierarchy of thousands of sites, in virtual time, held to properties."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from intergroup_core.errors import ConfigError
from intergroup_core.sim.hierarchy_outcome import HierarchyOutcome
from intergroup_core.sim.hierarchy_outcome import play as play_hierarchy
from intergroup_core.sim.hierarchy_scenario import HierarchyScenario
from intergroup_core.sim.outcome import Outcome, play
from intergroup_core.sim.scenario import Scenario

EXIT_VIOLATIONS = 1

_DEFAULT = Scenario()
_HIERARCHY = HierarchyScenario()


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
            "silent, start, adversary; comma-separated. With --fixed only the first seven. With --sites some of crash, "
            "coordinators, third, moving, pause, partition, oneway, leave, join, withdraw, hold."
        ),
    ] = "",
    sites: Annotated[
        int, typer.Option(help="The control hierarchy of so many sites instead, alone, in the wan preset.")
    ] = 0,
    terrain: Annotated[str, typer.Option(help="With --sites: clustered or scattered.")] = _HIERARCHY.terrain,
    clusters: Annotated[
        int, typer.Option(help="With --sites: how many clusters; 0 for clusters of a hundred sites, at least ten.")
    ] = _HIERARCHY.clusters,
    groups: Annotated[int, typer.Option(help="With --sites: groups that each has a member in.")] = _HIERARCHY.groups,
    at_once: Annotated[bool, typer.Option("--at-once", help="With --sites: all start at the same instant.")] = False,
    rate: Annotated[float, typer.Option(help="Messages per second of each sender.")] = _DEFAULT.rate,
    size: Annotated[int, typer.Option(help="Bytes of an ordinary record; large ones have fifty times as many.")] = (
        _DEFAULT.size
    ),
    preset: Annotated[
        str | None, typer.Option(help="Settings and delays: lan, wan or test. Without --sites test, with it wan.")
    ] = None,
    quorum: Annotated[str, typer.Option(help="Which component may send: none, a number, majority or all.")] = (
        _DEFAULT.quorum
    ),
    hierarchy: Annotated[bool, typer.Option("--hierarchy", help="With a control process beside every member.")] = False,
    log_ms: Annotated[
        float, typer.Option(help="With a log at every member, which takes so many milliseconds at most; 0 for none.")
    ] = _DEFAULT.log_ms,
    fixed: Annotated[bool, typer.Option("--fixed", help="One view for ever instead of live membership.")] = False,
    trace: Annotated[Path | None, typer.Option(help="Write the trace to this file, a JSON line per event.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Simulate a group in virtual time and check every property of its trace.

    The same seed and flags give the same trace, byte for byte. Exits with 1 if a property was violated.

    Members join, leave, fail and return, and views change; --fixed keeps one view for ever.

    With --sites the control hierarchy runs alone: who is whose coordinator, what that costs, how soon all know what is
    stable, and whether anybody ever takes for stable what a live, counted member still needs.

    Example: intergroup sim --sites 1000 --faults crash,partition,pause --json

    Example: intergroup sim --seed 7 --members 5 --delivery rto --loss 0.1 --duration 10 --faults pause,partition
    """
    troubles = tuple(name.strip() for name in faults.split(",") if name.strip())
    if sites:
        alone = HierarchyScenario(
            sites=sites,
            seed=seed,
            duration=duration,
            loss=loss,
            dup=dup,
            reorder=reorder,
            faults=troubles,
            terrain=terrain,
            clusters=clusters,
            preset=preset or _HIERARCHY.preset,
            groups=groups,
            at_once=at_once,
        )
        _sim_hierarchy(alone, as_json)
        return
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
        faults=troubles,
        rate=rate,
        size=size,
        preset=preset or _DEFAULT.preset,
        quorum=quorum,
        hierarchy=hierarchy,
        log_ms=log_ms,
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


def _sim_hierarchy(scenario: HierarchyScenario, as_json: bool) -> None:
    with Console(stderr=True).status("") as status:
        outcome = play_hierarchy(scenario, status.update)
    print(json.dumps(outcome.to_json()) if as_json else _hierarchy_shown(outcome))
    if outcome.violations:
        typer.echo(f"replay with: {scenario.command()}", err=True)
        raise typer.Exit(EXIT_VIOLATIONS)


def _hierarchy_shown(outcome: HierarchyOutcome) -> str:
    latency, error = outcome.stability_latency_s, outcome.distance_error
    settling = "never" if outcome.settling_s is None else f"after {outcome.settling_s:.0f} s"
    return "\n".join(
        (
            f"seed {outcome.scenario.seed}: {outcome.alive} live sites, {outcome.coordinators} coordinators, largest "
            f"local group {outcome.largest_local_group}, settled {settling}",
            f"{outcome.messages_per_site_s:.2f} messages and {outcome.bytes_per_site_s:.0f} bytes per site and second "
            f"at rest, largest message {outcome.largest_message} bytes",
            f"stability latency {latency['median']:.1f} s (median), {latency['max']:.1f} s (worst); distances wrong by "
            f"{error['p50']:.0%} (median), {error['p90']:.0%} (p90); {outcome.counted:.0%} know themselves counted; "
            f"{outcome.gaps} gaps",
            f"violations {len(outcome.violations)}",
            *outcome.violations,
        )
    )


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
