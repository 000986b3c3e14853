"""The agent of a site is killed under load: what it acknowledged is there, and what was read is read again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.agent_crashes import Crash
from tests.integration.sites import Sites, sites

SEEDS = 10


@pytest.fixture(scope="module")
def there() -> Iterator[Sites]:
    # One site stays for all seeds, and its agent with it.
    with sites() as made:
        yield made


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_a_killed_agent_acknowledged_is_read_at_both_sites_and_its_member_comes_back(
    there: Sites, seed: int
) -> None:
    Crash(there, seed).run()
