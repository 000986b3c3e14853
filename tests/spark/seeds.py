"""Runs stories of queries that are killed, one for each seed, and says how to play one again."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.integration.sites import Sites, sites
from tests.spark.home import environment

Story = Callable[[Sites, Path, int], str]
"""Plays a seed in a directory of its own, and tells what happened."""


def play_seeds(program: str, about: str, story: Story, arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=20)
    chosen = parser.parse_args(arguments)
    os.environ.update(environment())
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        started = time.monotonic()
        directory = Path(tempfile.mkdtemp(prefix="ig-query-"))
        with sites() as there:
            try:
                found = story(there, directory / "query", seed)
            except BaseException:
                print(f"seed {seed}: replay with  python -m {program} --first {seed} --seeds 1")
                raise
        shutil.rmtree(directory)
        print(f"seed {seed}: {found}, {time.monotonic() - started:.1f} s", flush=True)
    return 0
