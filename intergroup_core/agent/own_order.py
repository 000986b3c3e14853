"""This site's own logs of `rto`, from which a stream of `rso` here takes what it lacks as from another site's."""

from __future__ import annotations

import asyncio

from intergroup_core.client.fetching import Held
from intergroup_core.ids import Service
from intergroup_core.log.ordered_sources import OrderedSources
from intergroup_core.log.range_order import RangeCut
from intergroup_core.log.transfer import RangeSink, RangeSource
from intergroup_core.runtime.clock import now
from intergroup_core.runtime.stream_store import StreamStore

SETTLED_NS = 2_000_000_000
"""A file has the time at which the last write to it began, which may take long where the disk is slow."""


class OwnOrder:
    """Answers as a keeper does, about one group."""

    def __init__(self, store: StreamStore, group: str) -> None:
        self._store = store
        self._group = group
        self._held: tuple[object, list[Held]] = (None, [])
        """What was found when the logs were as they are here: who waits for more asks again and again."""

    def __str__(self) -> str:
        return "this site's own log by rto"

    async def streams(self) -> list[Held]:
        """What it has of each sender; nothing where the site has no logs of `rto`, or these do not say."""
        return await asyncio.to_thread(self._look)

    def _look(self) -> list[Held]:
        parts = self._store.parts(self._group, Service.RTO)
        # What is written into a file that was used before may leave its length as it is.
        state = [(part.where, part.bytes_used(), part.last_written()) for part in parts]
        known, held = self._held
        if known != state:
            settled = all(written < now().wall - SETTLED_NS for _, _, written in state)
            reader = OrderedSources(parts)
            first, head = reader.first(), reader.head()
            held = [Held(Service.RSO, first, head)] if first is not None and head is not None else []
            self._held = state if settled else None, held
        return held

    async def fetch(self, service: Service, start: RangeCut, stop: RangeCut, sink: RangeSink) -> None:
        """Everything between two cuts into a sink; RangeUnavailable where some of it is lacking."""
        await asyncio.to_thread(self._copy, start, stop, sink)

    def _copy(self, start: RangeCut, stop: RangeCut, sink: RangeSink) -> None:
        for block in RangeSource(self._reader(), start, stop):
            sink.take(block)

    def _reader(self) -> OrderedSources:
        return OrderedSources(self._store.parts(self._group, Service.RTO))
