"""From a group into a group: every row that was sent is in one committed batch, once, whatever is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.sites import Sites
from tests.spark.exactly_once import play
from tests.spark.grounds import NO_HOSTS

LAST = "network" if NO_HOSTS is None else "driver"
SEEDS = {1: ("zombie", "worker"), 2: ("agent", "driver and agent"), 3: ("site", LAST)}


@pytest.mark.usefixtures("java")
@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_sent_is_committed_once_whatever_is_killed(there: Sites, tmp_path: Path, seed: int) -> None:
    play(there, tmp_path / "query", seed, SEEDS[seed])
