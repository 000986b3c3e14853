"""What comes behind a cut: from this site's parts of a stream, completed with what other sites keep."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from intergroup_core.agent.keepers import Keepers
from intergroup_core.agent.levels import LOCAL
from intergroup_core.agent.own_order import OwnOrder
from intergroup_core.agent.stream import Stream
from intergroup_core.client.fetching import Held, Keeper, keeper_connection
from intergroup_core.errors import IntergroupError, RangeUnavailable
from intergroup_core.ids import Service, timestamp_at
from intergroup_core.log.cut import BEHIND_ALL, Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.entry import Kind
from intergroup_core.log.part import OrderPart, cut_timestamp, joined, part_of
from intergroup_core.log.range_order import RangeCut
from intergroup_core.log.reader import LogReader, Place
from intergroup_core.log.stream import StreamReader
from intergroup_core.log.transfer import RangeSink
from intergroup_core.log.writer import Durability, open_log
from intergroup_core.runtime.clock import now
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.runtime.stream_store import StreamStore
from intergroup_core.transaction.ledger import Ledger

_log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How long to wait for something to change before keepers are asked again."""
GAPS_AFTER = 3
"""Looks after which a range with a gap is taken from a site that has no better one."""
MOST_VIEWS = 3
"""Back to which another site's history is taken up, where it does not know the cut itself."""
SAID_AFTER = 5
"""Looks after which the agent's log says who waits for what."""
MISSING_SECONDS = 0.4
"""The same where it is known that something is missing here."""
MOST_LOOKS = 15
"""How often they are asked for a cut that nobody has, before that is an error."""


@dataclass(frozen=True, slots=True)
class Step:
    """A log of this site that goes on from a cut, and the cut that is reached when it was read."""

    path: Path
    start: Cut | Place
    stop: Cut | Place
    reached: Cut


@dataclass(frozen=True, slots=True)
class Live:
    """The log that grows goes on from here."""

    entry: int
    reached: Cut


class Holder(Protocol):
    """Who may have what is missing here: another site, or other logs of this one."""

    async def streams(self) -> list[Held]:
        """What it has of the group."""

    async def fetch(self, service: Service, start: RangeCut, stop: RangeCut, sink: RangeSink) -> None:
        """Everything between two cuts; RangeUnavailable where some of it is lacking."""


class History:
    """Finds and fetches what a stream had before its present log begins."""

    def __init__(self, stream: Stream, store: StreamStore, keepers: Keepers) -> None:
        self._stream = stream
        self._store = store
        self._keepers = keepers
        self._turn = asyncio.Lock()
        self._own_order = OwnOrder(store, stream.group) if stream.service is Service.RSO else None
        self.fetched_bytes = 0

    async def earliest(self) -> Cut | None:
        """The cut before everything that this site or another has; None where nobody has anything."""
        firsts = [first for first in [self._own_first()] if first is not None]
        if self._own_order is not None:
            firsts += [held.first for held in await self._own_order.streams()]
        for keeper in await self._keepers.find(self._stream.group, self._stream.config):
            firsts += [held.first for held in await self._held_by(keeper)]
        return min(firsts, key=_earliness, default=None)

    def _own_first(self) -> Cut | None:
        """The cut behind which this site's logs hold something."""
        reader = self._reader()
        parts = reader.parts
        if not parts or Path(parts[0].where) == self._stream.directory:
            # Of senders that have sent nothing since, only the member knows where the log begins.
            return self._live_begin() or reader.first()
        return reader.first()

    async def behind(self, cut: RangeCut) -> Step | Live:
        """How to read on from a cut; waits until there is more, RangeUnavailable where nobody has what comes next."""
        looks = 0
        helped = False
        while True:
            try:
                step = self._local(cut)
                missing: IntergroupError | None = None
            except RangeUnavailable as error:
                step, missing = None, error
            if step is not None:
                return step
            # What did not help the last time would not help the next. Other sites' gaps are better than nothing only.
            helped = not helped and (
                await self._fetched_behind(cut)
                or self._continues_alone(cut)
                or (missing is None and looks >= GAPS_AFTER and await self._fetched_behind(cut, gaps=True))
            )
            if helped:
                continue
            looks += 1
            if looks == SAID_AFTER:
                live = self._live_begin()
                _log.warning("%s waits at %s, the log that grows begins at %s: %s", self._reader(), cut, live, missing)
            if missing is not None and looks >= MOST_LOOKS:
                raise missing
            await self._stream.changed(LOOK_SECONDS if missing is None else MISSING_SECONDS)

    def _reader(self) -> StreamReader:
        return StreamReader(self._store.parts(self._stream.group, self._stream.service))

    def _live(self) -> LogReader:
        return LogReader(FileDisk(self._stream.directory))

    def _local(self, cut: RangeCut) -> Step | Live | None:
        log = self._stream.log.writer.manifest.log
        if isinstance(cut, OrderCut) and (live := self._live_place(cut)) is not None and not live.message:
            return Live(live.entry, cut)
        for found, reached in self._reader().steps(cut):
            if found.reader.manifest.log == log:
                begin = found.start
                if isinstance(begin, Place):
                    if begin.message:
                        return Step(self._stream.directory, begin, found.stop, reached)
                    return Live(begin.entry, cut)
                assert isinstance(cut, SourceCut)
                assert isinstance(begin, SourceCut)
                return self._in_live(cut, begin, found.reader)
            if reached != cut:
                return Step(Path(found.reader.where), found.start, found.stop, reached)
        return Live(self._live().first, cut) if self._live_follows(cut) else None

    def _live_follows(self, cut: RangeCut) -> bool:
        """Whether the log that grows begins where an older one ends, though it has nothing yet to tell that by."""
        match cut, self._live_begin():
            case OrderCut(), OrderCut() as begin:
                return begin == OrderCut(cut.timestamp, BEHIND_ALL, cut.view)
            case SourceCut(), SourceCut() as begin:
                return cut.view == begin.view and all(cut.seqs.get(each, 0) == seq for each, seq in begin.seqs.items())
            case _:
                return False

    def _live_place(self, cut: OrderCut) -> Place | None:
        """Where a cut lies in the log that grows; an older one that is just like it so far has no say."""
        live = self._live()
        if live.stop == live.first:
            return None
        part = part_of(live)
        return part.place_of(cut) if isinstance(part, OrderPart) and part.holds(cut) else None

    def _in_live(self, cut: SourceCut, begin: SourceCut, live: LogReader) -> Step | Live | None:
        """How to read on from a cut of `rso` in the log that grows, which has no one place there.

        What it has besides comes first, as a range, and the rest as it grows; where all of it is behind the cut, that
        may take a while.
        """
        before, lineage = self._stream.beginning.seqs, live.lineage()
        here = lineage.at(cut.view).placed(cut.seqs)
        if before is not None and any(seq > here.get(source, 0) for source, seq in before.seqs.items()):
            return None  # it was sent before the log begins, be there anything in it by which to tell that or not
        firsts = live.first_seqs()
        views = [place.view for segment in live.segments for place in segment.index.view_places()]
        touched = any(here.get(source, 0) >= first for source, first in firsts.items())
        if not touched and begin.view in (None, *views[:1]):
            return Live(live.first, cut)
        kept = self._stream.head(LOCAL)
        entry = self._stream.log.kept
        assert isinstance(kept, SourceCut)
        there = lineage.all_named(kept).seqs
        if any(seq > there.get(source, 0) for source, seq in here.items() if source in firsts):
            return None  # others had it kept before this site
        more = any(seq > here.get(source, 0) for source, seq in there.items())
        if more or (kept.view is not None and (cut.view is None or kept.view > cut.view)):
            reached = joined(SourceCut(here, cut.view), SourceCut(there, kept.view))
            return Step(self._stream.directory, SourceCut(here, begin.view), kept, lineage.shortened(reached))
        while entry > live.first and next(live.entries(entry - 1, entry, check=False)).kind is Kind.GAP:
            entry -= 1  # of which no cut tells
        return Live(entry, cut)

    async def _fetched_behind(self, cut: RangeCut, *, gaps: bool = False) -> bool:
        """Whether another site had something that comes next, and this one has it now."""
        async with self._turn:
            stop = self._live_begin()
            if self._own_order is not None and await self._fetch(self._own_order, cut, stop, gaps=gaps):
                return True
            for keeper in await self._keepers.find(self._stream.group, self._stream.config):
                try:
                    async with keeper_connection(keeper, self._stream.group) as connection:
                        if await self._fetch(connection, cut, stop, gaps=gaps):
                            return True
                except IntergroupError as error:
                    _log.info("%s does not have what comes behind %s: %s", keeper, cut, error)
        return False

    async def fill(self, start: RangeCut, stop: RangeCut) -> tuple[bool, dict[str, str]]:
        """Fetch a range that this site has not whole into a part of its own; else who was asked, and what they said."""
        refused: dict[str, str] = {}
        async with self._turn:
            for keeper in await self._keepers.find(self._stream.group, self._stream.config):
                try:
                    async with keeper_connection(keeper, self._stream.group) as connection:
                        if await self._taken(connection, start, stop, gaps=False) is not None:
                            return True, {}
                    refused[str(keeper)] = "it has a gap there, too"
                except IntergroupError as error:
                    refused[str(keeper)] = str(error)
        return False, refused

    def _live_begin(self) -> RangeCut | None:
        """Where the present log begins; None where it has not begun."""
        live = self._live()
        if live.stop == live.first:
            return None
        if live.manifest.after is None and self._stream.service is Service.RSO:
            return self._stream.beginning.seqs
        begin: RangeCut = part_of(live).begin
        return begin

    async def _held_by(self, keeper: Keeper) -> list[Held]:
        try:
            async with keeper_connection(keeper, self._stream.group) as connection:
                return await self._held(connection)
        except IntergroupError as error:
            _log.info("%s does not say what it holds: %s", keeper, error)
            return []

    async def _held(self, connection: Holder) -> list[Held]:
        """What somebody has of this stream: by `rso` perhaps twice, in logs of that service and in those of `rto`."""
        service = self._stream.service
        return [held for held in await connection.streams() if held.service is service]

    async def _fetch(self, connection: Holder, cut: RangeCut, stop: RangeCut | None, *, gaps: bool) -> bool:
        """A range into a part of its own; what is not complete and sound in the end is removed."""
        for held in await self._held(connection):
            if not isinstance(held.head, EntryCut) and await self._fetch_of(
                connection, held.head, cut, stop, gaps=gaps
            ):
                return True
        return False

    async def _fetch_of(
        self, connection: Holder, head: RangeCut, cut: RangeCut, stop: RangeCut | None, *, gaps: bool
    ) -> bool:
        if isinstance(stop, SourceCut) and isinstance(head, SourceCut):
            stop = self._with_departed(stop, head)
        for start in self._starts(cut):
            for end in _ends(cut, stop, head):
                log = await self._fetched(connection, start, end, gaps=gaps)
                if log is None:
                    continue
                if isinstance(end, SourceCut) and end is stop:
                    self._stream.beginning.follows(end)
                if self._leads_on(cut):
                    return True
                self._store.remove_part(self._stream.group, self._stream.service, log)
        return False

    def _leads_on(self, cut: RangeCut) -> bool:
        """Whether there is more behind a cut; what is fetched in vain is not kept, for it would be fetched again."""
        try:
            return self._local(cut) is not None
        except RangeUnavailable:
            return False

    def _starts(self, cut: RangeCut) -> list[RangeCut]:
        """The cut itself; else the last views before it: the end of a log may be something that nobody else came to."""
        if not isinstance(cut, OrderCut):
            return [cut]
        parts = [part_of(reader) for reader in self._reader().parts]
        views = [view for part in parts for view in part.views if view.start < cut.timestamp]
        return [cut, *(OrderCut(view.start, view.leader, view) for view in views[: -MOST_VIEWS - 1 : -1])]

    def _with_departed(self, stop: SourceCut, head: SourceCut) -> SourceCut:
        """The present log knows nothing of senders that were gone when it began: all of theirs lies before it."""
        known = {*stop.seqs, *self._live().own_reach().seqs}
        gone = {source: seq for source, seq in head.seqs.items() if source not in known}
        return SourceCut(gone | dict(stop.seqs), stop.view)

    async def _fetched(self, connection: Holder, start: RangeCut, stop: RangeCut, *, gaps: bool) -> int | None:
        """The id of the part that has it now; None where it is not to be had there."""
        try:
            return await self._taken(connection, start, stop, gaps=gaps)
        except RangeUnavailable as error:
            _log.info("a range of %s is not to be had there: %s", self._stream.group, error)
            return None

    async def _taken(self, connection: Holder, start: RangeCut, stop: RangeCut, *, gaps: bool) -> int | None:
        """The same where that raises; None only where there are gaps in it, and may not be."""
        group, service = self._stream.group, self._stream.service
        disk = self._store.create_part(group, service, timestamp_at(now().wall), after=start, fetching=True)
        writer = open_log(
            disk,
            durability=Durability.OS,
            segment_bytes=self._stream.config.log.segment_bytes,
            stated=Ledger() if service is Service.RTO else None,
        )
        log = writer.manifest.log
        kept = False
        try:
            sink = RangeSink(writer, start, stop)
            await connection.fetch(service, start, stop, sink)
            if gaps or not (sink.described is not None and sink.described.gaps):
                await asyncio.to_thread(sink.keep)
                self.fetched_bytes += writer.size
                kept = True
        finally:
            writer.close()
            disk.close()
            if not kept:
                self._store.remove_part(group, service, log)
        return log if kept else None

    def _continues_alone(self, cut: RangeCut) -> bool:
        """Who begins alone from a log goes on with its lineage: nobody else has anything behind the cut."""
        return self._stream.beginning.continues(cut)


def _earliness(cut: Cut) -> tuple[int, int]:
    """Of two sites that came into one view, in `rso`, the one has more to which less had been sent before."""
    return cut_timestamp(cut), sum(cut.seqs.values()) if isinstance(cut, SourceCut) else 0


def _is_within(stop: RangeCut, cut: RangeCut) -> bool:
    """Whether a cut of `rso` lies in the log that begins at another one: it does where a gap skipped what follows."""
    if not isinstance(stop, SourceCut) or not isinstance(cut, SourceCut):
        return False
    return any(seq > stop.seqs.get(source, seq) for source, seq in cut.seqs.items())


def _ends(cut: RangeCut, stop: RangeCut | None, head: RangeCut) -> list[RangeCut]:
    """Up to where to fetch from a cut: where the present log begins, if that lies ahead, else all that there is."""
    if stop is None or cut_timestamp(stop) < cut_timestamp(cut) or _is_within(stop, cut):
        wanted = [head]
    elif cut_timestamp(head) < cut_timestamp(stop):
        wanted = [stop, head]
    else:
        wanted = [stop]  # what follows is here
    return [end for end in wanted if end != cut and cut_timestamp(end) >= cut_timestamp(cut)]
