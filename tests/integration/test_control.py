"""Control processes on real sockets: they find each other on loopback, and take no nonsense."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random

from intergroup_core.config import Config
from intergroup_core.hierarchy.process import ControlProcess
from intergroup_core.hierarchy.states import ControlState
from intergroup_core.ids import SiteId
from intergroup_core.runtime.address import hashed_address
from intergroup_core.runtime.control import ControlRunner
from intergroup_core.runtime.control_sockets import ControlSockets
from intergroup_core.runtime.interfaces import resolve_interface
from tests.integration.groups import PATIENCE_SECONDS, a_group_name


def a_config(name: str) -> Config:
    config = Config.test()
    return dataclasses.replace(config, hierarchy=dataclasses.replace(config.hierarchy, name=name))


@asynccontextmanager
async def a_hierarchy(name: str, sites: int) -> AsyncIterator[list[ControlRunner]]:
    """Control processes in this process, each with its own sockets."""
    config = a_config(name)
    runners = []
    for number in range(1, sites + 1):
        process = ControlProcess(
            me=SiteId(number), name=f"site-{number}", config=config.hierarchy, system_ttl=1, rng=Random(number)
        )
        runners.append(ControlRunner(process, ControlSockets(resolve_interface("lo"), config)))
        runners[-1].start()
    try:
        yield runners
    finally:
        for runner in runners:
            runner.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():
            await asyncio.sleep(0.005)


def states(runners: list[ControlRunner]) -> list[ControlState]:
    return sorted((runner.process.state for runner in runners), key=lambda state: state.value)


def test_sites_of_one_host_become_one_local_group_and_measure_each_other() -> None:
    async def scenario() -> None:
        async with a_hierarchy(a_group_name(), 4) as runners:
            settled = [ControlState.CHILD] * 3 + [ControlState.COORDINATOR]
            await until(lambda: states(runners) == settled)
            chief = next(runner.process for runner in runners if runner.process.state is ControlState.COORDINATOR)
            await until(lambda: chief.children == 3)
            await until(
                lambda: all(
                    one.process.distance_us(other.process.me, chief.me) is not None
                    for one in runners
                    for other in runners
                )
            )

    asyncio.run(scenario())


def test_a_coordinator_that_goes_is_replaced() -> None:
    async def scenario() -> None:
        async with a_hierarchy(a_group_name(), 3) as runners:
            await until(lambda: states(runners) == [ControlState.CHILD] * 2 + [ControlState.COORDINATOR])
            chief = next(runner for runner in runners if runner.process.state is ControlState.COORDINATOR)
            chief.close()
            others = [runner for runner in runners if runner is not chief]
            await until(lambda: states(others) == [ControlState.CHILD, ControlState.COORDINATOR])

    asyncio.run(scenario())


def test_hierarchies_of_different_names_do_not_hear_each_other() -> None:
    async def scenario() -> None:
        async with a_hierarchy(a_group_name(), 2) as ones, a_hierarchy(a_group_name(), 2) as others:
            one_each = [ControlState.CHILD, ControlState.COORDINATOR]
            await until(lambda: states(ones) == states(others) == one_each)

    asyncio.run(scenario())


def test_malformed_datagrams_are_counted_and_change_nothing() -> None:
    async def scenario() -> None:
        name = a_group_name()
        async with a_hierarchy(name, 2) as runners:
            await until(lambda: states(runners) == [ControlState.CHILD, ControlState.COORDINATOR])
            chief = next(runner for runner in runners if runner.process.state is ControlState.COORDINATOR)
            everybody = hashed_address(f"control hierarchy {name}")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                stranger.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
                for datagram in (b"x", b"", bytes(48), bytes(range(200)) * 2, b"\xff" * 1_400):
                    stranger.sendto(datagram, (everybody.host, everybody.port))
            await until(lambda: sum(chief._sockets.counters.dropped.values()) >= 4)
            assert states(runners) == [ControlState.CHILD, ControlState.COORDINATOR]

    asyncio.run(scenario())
