"""Many seeds of mixed scenarios, in parallel: `python -m intergroup_core.sim.fuzz --seeds 1000`.

Membership is live unless `--fixed` asks for one view for ever.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from random import Random
from statistics import median

from intergroup_core.membership.transitions import drawn, restarted
from intergroup_core.sim.faults import FAULT_NAMES
from intergroup_core.sim.live_plan import LIVE_FAULT_NAMES
from intergroup_core.sim.outcome import TOTALS, play
from intergroup_core.sim.scenario import DELIVERIES, Scenario
from intergroup_core.sim.scheduler import collect_seldom

WORST_LOSS = 0.3
LEAST_MESSAGES = 1_000
LIVE_MESSAGES = 500
LIVE_SECONDS = 20.0
CHUNK = 4
"""Seeds a process takes at once."""
LOWEST_PRIORITY = 19
"""Nothing waits for a seed: what else runs on the machine goes first."""


def mixed_scenario(seed: int) -> Scenario:
    """Loss up to 30 %, duplication and reordering with mixed services, three senders and two receivers."""
    rng = Random(f"{seed}/mixed")
    loss = rng.choice((0.0, rng.uniform(0, 0.05), rng.uniform(0, 0.1), rng.uniform(0, WORST_LOSS)))
    return Scenario(
        seed=seed,
        delivery=rng.choice(("mixed", "mixed", "mixed", "rto")),
        loss=round(loss, 3),
        burst=rng.choice((1.0, 1.0, 5.0)),
        dup=round(rng.uniform(0, 0.1), 3),
        reorder=round(rng.uniform(0, 0.1), 3),
        corrupt=rng.choice((0.0, 0.0, 0.01)),
        # Losses slow senders down, and what waits travels in fewer messages.
        rate=round(34 + 40 * loss, 1),
        messages=LEAST_MESSAGES,
        fixed=True,
    )


def wild_scenario(seed: int) -> Scenario:
    """The same with anything else that may vary: faults, numbers of members, sizes, presets."""
    rng = Random(f"{seed}/wild")
    scenario = mixed_scenario(seed)
    if rng.random() < 0.3:
        return scenario
    members = rng.choice((1, 2, 3, 3, 4, 6))
    return replace(
        scenario,
        members=members,
        receivers=rng.randint(0 if members > 1 else 1, 4),
        delivery=rng.choice(DELIVERIES),
        faults=tuple(rng.sample(FAULT_NAMES, rng.randint(0, 3))),
        rate=round(3 * scenario.rate / members, 1),
        size=rng.choice((1, 30, 100, 100, 300)),
        preset=rng.choice(("test", "test", "test", "lan", "wan")),
    )


LARGE = ((12, 0), (8, 2), (5, 5), (3, 20), (2, 12), (10, 1), (6, 8))
"""Senders and receivers of the groups that are not small."""
LARGE_EVERY = 70
WITH_HIERARCHY = 0.3
"""Part of the live seeds whose members have control processes."""
WITH_LOGS = 0.2
"""Part of them whose members have logs, some of which are slow."""
OPPOSED = 0.4
"""Part of the live seeds that have an adversary."""


def live_scenario(seed: int) -> Scenario:
    """A group whose members come and go: mostly a handful, now and then up to 12 senders and 20 receivers."""
    rng = Random(f"{seed}/live")
    members = rng.choice((2, 2, 2, 2, 3, 3, 3, 4))
    receivers = rng.choice((0, 0, 0, 1, 1, 1, 1, 2, 3))
    if seed % LARGE_EVERY == 0:
        members, receivers = LARGE[seed // LARGE_EVERY % len(LARGE)]
    loss = rng.choice((0.0, 0.0, rng.uniform(0, 0.05), rng.uniform(0, 0.1), rng.uniform(0, WORST_LOSS)))
    names = [name for name in LIVE_FAULT_NAMES if name != "adversary"]
    faults = rng.sample(names, rng.randint(0, 4))
    if rng.random() < OPPOSED:
        faults[2:] = ["adversary"]
    quorum = rng.choice(("none", "none", "none", "majority"))
    if quorum != "none":
        faults = [name for name in faults if name != "start"]  # a receiver's site would count and not come back
    scenario = Scenario(
        seed=seed,
        members=members,
        receivers=receivers,
        quorum=quorum,
        hierarchy=Random(f"{seed}/hierarchy").random() < WITH_HIERARCHY,
        log_ms=_log_ms(Random(f"{seed}/log")),
        delivery=rng.choice(("mixed", "mixed", "mixed", "rto", "rso")),
        loss=round(loss, 3),
        burst=rng.choice((1.0, 1.0, 5.0)),
        dup=rng.choice((0.0, round(rng.uniform(0, 0.1), 3))),
        reorder=rng.choice((0.0, round(rng.uniform(0, 0.1), 3))),
        corrupt=rng.choice((0.0, 0.0, 0.01)),
        duration=LIVE_SECONDS,
        messages=LIVE_MESSAGES,
        faults=tuple(faults),
        size=rng.choice((1, 20, 50, 100)),
    )
    return replace(scenario, rate=round((26 + 30 * loss) / _talkers(scenario), 1))


def _talkers(scenario: Scenario) -> float:
    """How many senders talk, on average over the run: where some are silent or come late, the others say as much."""
    if not {"silent", "join"} & set(scenario.faults):
        return scenario.members
    seats = scenario.seats()
    talking = sum(1 - (seat.joins_at or 0) / scenario.duration_ns for seat in seats if seat.sender and seat.busy)
    return max(1.0, talking)


def _log_ms(rng: Random) -> float:
    return round(10 ** rng.uniform(0, 2.7), 1) if rng.random() < WITH_LOGS else 0.0


@dataclass(slots=True)
class Tally:
    """What many runs came to together."""

    runs: int = 0
    sent: int = 0
    least_sent: int = 1 << 62
    least_virtual_ns: int = 1 << 62
    delivered: int = 0
    views: int = 0
    totals: Counter[str] = field(default_factory=Counter)
    transitions: Counter[str] = field(default_factory=Counter)
    restarts: Counter[str] = field(default_factory=Counter)
    gaps: Counter[str] = field(default_factory=Counter)
    settling_ns: list[int] = field(default_factory=list)
    pauses_ns: list[int] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.runs += other.runs
        self.sent += other.sent
        self.least_sent = min(self.least_sent, other.least_sent)
        self.least_virtual_ns = min(self.least_virtual_ns, other.least_virtual_ns)
        self.delivered += other.delivered
        self.views += other.views
        self.totals.update(other.totals)
        self.transitions.update(other.transitions)
        self.restarts.update(other.restarts)
        self.gaps.update(other.gaps)
        self.settling_ns += other.settling_ns
        self.pauses_ns += other.pauses_ns
        self.failures.extend(other.failures)

    def missing(self) -> list[str]:
        """What never happened in any run, so that nothing was tried."""
        return [name for name in TOTALS if not self.totals[name]]

    def unmet(self) -> list[str]:
        """Steps of the membership protocol, and reasons to start a repair again, that no run met."""
        counts = drawn(self.transitions) | restarted(self.restarts)
        return [name for name, count in counts.items() if not count]

    def __str__(self) -> str:
        totals = ", ".join(f"{self.totals[name]} {name}" for name in TOTALS)
        return f"{self.runs} runs, {self.sent} messages sent, {self.delivered} delivered; {totals}"

    def membership(self) -> str:
        """What live membership went through, a line each."""
        lines = [
            f"{self.views} views; settled after {_spread(self.settling_ns)}; delivery paused for "
            f"{_spread(self.pauses_ns)} in {len(self.pauses_ns)} repairs"
        ]
        for title, counts in (
            ("steps", drawn(self.transitions)),
            ("reasons to start a repair again", restarted(self.restarts)),
            ("steps by reason", self.transitions),
            ("restarts by state", self.restarts),
            ("gaps", self.gaps),
        ):
            lines.append(f"{title}:")
            lines.extend(f"{count:9} {name}" for name, count in sorted(counts.items()))
        return "\n".join(lines)


def _spread(values_ns: list[int]) -> str:
    if not values_ns:
        return "nothing"
    return f"{median(values_ns) / 1e6:.0f} ms (median), {max(values_ns) / 1e6:.0f} ms (worst)"


def run_scenarios(scenarios: list[Scenario]) -> Tally:
    """Play scenarios one after the other in this process."""
    collect_seldom()
    tally = Tally()
    for scenario in scenarios:
        tally.runs += 1
        try:
            outcome, _ = play(scenario, digest=False)
        except Exception:
            tally.failures.append(f"{scenario.command()}\n{traceback.format_exc()}")
            continue
        tally.sent += outcome.sent
        tally.least_sent = min(tally.least_sent, outcome.sent)
        tally.least_virtual_ns = min(tally.least_virtual_ns, outcome.virtual_ns)
        tally.delivered += outcome.delivered
        tally.views += outcome.views
        tally.totals.update(outcome.totals)
        tally.transitions.update(outcome.transitions)
        tally.restarts.update(outcome.restarts)
        tally.gaps.update(outcome.gaps)
        if not scenario.fixed:
            tally.settling_ns.append(outcome.settling_ns)
        tally.pauses_ns += outcome.pauses_ns
        if outcome.violations:
            shown = "\n".join(f"  {violation}" for violation in outcome.violations)
            tally.failures.append(f"{scenario.command()}\n{shown}")
    return tally


def run_parallel(scenarios: list[Scenario], jobs: int) -> Iterator[Tally]:
    """Play scenarios in several processes; tallies come as they are ready."""
    pending: set[Future[Tally]] = set()
    parts = iter([scenarios[start : start + CHUNK] for start in range(0, len(scenarios), CHUNK)])
    with ProcessPoolExecutor(
        jobs, mp_context=get_context("forkserver"), initializer=os.nice, initargs=(LOWEST_PRIORITY,)
    ) as pool:
        try:
            for part in parts:
                pending.add(pool.submit(run_scenarios, part))
                if len(pending) >= 2 * jobs:
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            while pending:
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            pool.shutdown(cancel_futures=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m intergroup_core.sim.fuzz",
        description="Simulates many seeds and holds every trace to the properties.",
        epilog="Example: python -m intergroup_core.sim.fuzz --seeds 1000 --jobs 2",
    )
    parser.add_argument("--seeds", type=int, default=1_000, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--fixed", action="store_true", help="one view for ever instead of live membership")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    scenarios = [wild_scenario(seed) if arguments.fixed else live_scenario(seed) for seed in seeds]
    tally = Tally()
    started = shown = time.monotonic()
    for part in run_parallel(scenarios, arguments.jobs):
        tally.add(part)
        for failure in part.failures:
            print(f"\nFAILED: {failure}", flush=True)
        if time.monotonic() - shown > 5 or tally.runs == len(scenarios):
            shown = time.monotonic()
            left = (shown - started) / tally.runs * (len(scenarios) - tally.runs)
            print(
                f"{tally.runs}/{len(scenarios)} seeds, {tally.sent} messages, "
                f"{len(tally.failures)} failures, {left:.0f} s to go",
                flush=True,
            )
    print(tally)
    if not arguments.fixed:
        print(tally.membership())
        if tally.unmet():
            print(f"never met: {', '.join(tally.unmet())}")
    if tally.missing():
        print(f"never happened: {', '.join(tally.missing())}")
    for failure in tally.failures:
        print(f"replay: {failure.splitlines()[0]}")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
