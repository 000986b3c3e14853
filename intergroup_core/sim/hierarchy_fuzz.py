"""Hierarchies in all kinds of trouble, seed after seed.

    python -m intergroup_core.sim.hierarchy_fuzz [--seeds 500] [--first 1]

Prints the command that replays each failing run, and exits with 1 if there was one.
"""

from __future__ import annotations

import argparse
import sys
from random import Random

from intergroup_core.sim.hierarchy_outcome import play
from intergroup_core.sim.hierarchy_scenario import TERRAINS, HierarchyScenario
from intergroup_core.sim.upheavals import MAKERS

SEEDS = 500
REPORT_EVERY = 25


def troubled_scenario(seed: int) -> HierarchyScenario:
    """A few dozen sites at most, short times, and anything that can go wrong."""
    rng = Random(f"{seed}/troubled")
    return HierarchyScenario(
        sites=rng.randrange(3, 40),
        seed=seed,
        duration=rng.choice((6.0, 10.0, 15.0)),
        loss=rng.choice((0.0, 0.0, 0.05, 0.1, 0.2, 0.3)),
        dup=rng.choice((0.0, 0.1)),
        reorder=rng.choice((0.0, 0.0, 0.1, 0.3)),
        faults=tuple(sorted(rng.sample(sorted(MAKERS), rng.randrange(2, 8)))),
        terrain=rng.choice(TERRAINS),
        preset="test",
        groups=rng.choice((1, 1, 1, 1, 6)),
        at_once=rng.random() < 0.3,
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, default=1)
    chosen = parser.parse_args(arguments)
    failed = 0
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        scenario = troubled_scenario(seed)
        outcome = play(scenario)
        if outcome.violations:
            failed += 1
            sys.stdout.write(f"{scenario.command()}\n  {len(outcome.violations)}, the first: {outcome.violations[0]}\n")
        if (seed - chosen.first + 1) % REPORT_EVERY == 0:
            sys.stdout.write(f"{seed - chosen.first + 1} hierarchies, {failed} failed\n")
        sys.stdout.flush()
    sys.stdout.write(f"{chosen.seeds} hierarchies, {failed} failed\n")
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
