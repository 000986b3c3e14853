"""Plays stories in which things are killed, one for each seed, and says how to play one again."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

Story = Callable[[int], str]
"""Plays a seed, and tells what happened."""


def play_seeds(
    program: str,
    about: str,
    stories: Callable[[], AbstractContextManager[Story]],
    arguments: Sequence[str] | None = None,
    *,
    seeds: int = 20,
) -> int:
    """What all seeds need is there from the first to the last of them."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=seeds)
    chosen = parser.parse_args(arguments)
    with stories() as story:
        for seed in range(chosen.first, chosen.first + chosen.seeds):
            started = time.monotonic()
            try:
                found = story(seed)
            except BaseException:
                print(f"seed {seed}: replay with  python -m {program} --first {seed} --seeds 1")
                raise
            print(f"seed {seed}: {found}, {time.monotonic() - started:.1f} s", flush=True)
    return 0
