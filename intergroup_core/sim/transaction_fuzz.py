"""Groups in trouble while applications write in transactions, seed after seed.

    python -m intergroup_core.sim.transaction_fuzz [--seeds 500] [--first 1] [--jobs 2]

Prints the command that replays each failing run, and exits with 1 if there was one.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from intergroup_core.sim.fuzz import LOWEST_PRIORITY
from intergroup_core.sim.scheduler import collect_seldom
from intergroup_core.sim.transaction_scenario import TransactionOutcome, play_transactions

SEEDS = 500
REPORT_EVERY = 25


def play_seed(seed: int) -> TransactionOutcome | str:
    """The outcome of a seed, or how it fell over."""
    collect_seldom()
    try:
        return play_transactions(seed)
    except Exception:
        return traceback.format_exc()


def _report(outcomes: Iterable[TransactionOutcome | str], first: int) -> int:
    failed = told = visible = eras = strikes = 0
    for number, outcome in enumerate(outcomes):
        found = outcome if isinstance(outcome, str) else "\n".join(map(str, outcome.violations))
        if found:
            failed += 1
            command = f"python -m intergroup_core.sim.transaction_fuzz --first {first + number} --seeds 1"
            sys.stdout.write(f"FAILED: {command}\n{found}\n")
        if not isinstance(outcome, str):
            told, visible = told + outcome.told, visible + outcome.visible
            eras, strikes = eras + outcome.eras, strikes + outcome.strikes
        if (number + 1) % REPORT_EVERY == 0:
            sys.stdout.write(f"{number + 1} groups, {failed} failed\n")
            sys.stdout.flush()
    sys.stdout.write(
        f"{failed} failed; {told} transactions told to their applications, visible {visible} times; "
        f"{eras} eras, {strikes} strikes\n"
    )
    return failed


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    chosen = parser.parse_args(arguments)
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    if chosen.seeds == 1 or chosen.jobs == 1:
        raise SystemExit(bool(_report(map(play_seed, seeds), chosen.first)))
    with ProcessPoolExecutor(
        chosen.jobs, mp_context=get_context("forkserver"), initializer=os.nice, initargs=(LOWEST_PRIORITY,)
    ) as pool:
        raise SystemExit(bool(_report(pool.map(play_seed, seeds, chunksize=4), chosen.first)))


if __name__ == "__main__":
    main()
