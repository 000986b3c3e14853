"""Stories of queries that are killed: each seed has sites and a directory of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.seeds import Story
from tests.integration.sites import Sites, sites
from tests.spark.home import environment

QueryStory = Callable[[Sites, Path, int], str]
"""Plays a seed in a directory, and tells what happened."""


@contextmanager
def of_queries(play: QueryStory) -> Iterator[Story]:
    os.environ.update(environment())

    def story(seed: int) -> str:
        directory = Path(tempfile.mkdtemp(prefix="ig-query-"))
        with sites() as there:
            found = play(there, directory / "query", seed)
        shutil.rmtree(directory)  # of one that failed it stays, to be looked at
        return found

    yield story
