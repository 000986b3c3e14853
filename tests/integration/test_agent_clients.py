"""Clients that come and go, many of them without a word: nothing of them stays in the agent."""

from __future__ import annotations

from collections.abc import Callable

from tests.integration.short_clients import run_clients
from tests.integration.sites import sites

CLIENTS = 1_000


def test_a_thousand_clients_half_of_them_killed_leave_nothing_behind(
    record_property: Callable[[str, object], None],
) -> None:
    with sites() as there:
        record_property("short-lived clients", run_clients(there.home(), CLIENTS, seed=1))
