"""What a client asked for ends with it: nobody waits for an answer that nobody will hear."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from intergroup_core.agent.readings import Readings
from intergroup_core.agent.streams import Streams
from intergroup_core.errors import LocalProtocolError
from intergroup_core.ids import MemberId, Service
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.cut_codec import listed_cut

NUMBER = 7


class EndlessHistory:
    """Nobody ever has what is asked for."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.ended = False

    async def behind(self, cut: object) -> None:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True


def a_reader(history: EndlessHistory) -> Readings:
    log = SimpleNamespace(kept=0)
    stream = SimpleNamespace(service=Service.RTO, directory=Path("/nowhere"), log=log, end_reading=lambda reading: None)
    stream.read = lambda pid, policy, latest: SimpleNamespace(entry=0)
    streams: Any = SimpleNamespace(there=lambda group, service: stream, history=lambda stream: history)
    readings = Readings(cast(Streams, streams))
    readings.subscribe(1, NUMBER, ["orders", "rto", "spill", False])
    return readings


@pytest.mark.parametrize("how", ["closed", "all end"])
def test_a_question_for_older_logs_ends_with_its_reader(how: str) -> None:
    async def story() -> None:
        history = EndlessHistory()
        readings = a_reader(history)
        asking = asyncio.create_task(readings.history([NUMBER, listed_cut(OrderCut(5, MemberId(1)))]))
        await history.asked.wait()
        if how == "closed":
            readings.close(NUMBER)
        else:
            readings.end()
        async with asyncio.timeout(1):
            with pytest.raises(LocalProtocolError, match="closed"):
                await asking
        assert history.ended

    asyncio.run(story())


def test_a_question_ends_with_the_connection_of_who_asked() -> None:
    async def story() -> None:
        history = EndlessHistory()
        asking = asyncio.create_task(a_reader(history).history([NUMBER, listed_cut(OrderCut(5, MemberId(1)))]))
        await history.asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert history.ended

    asyncio.run(story())
