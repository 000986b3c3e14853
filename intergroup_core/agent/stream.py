"""A group's member at this site by one service, its log, and those who read it or send through it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from intergroup_core.agent.beginning import LogBeginning
from intergroup_core.agent.levels import STABLE, Wanted
from intergroup_core.agent.plannable import Frontier, Heads
from intergroup_core.agent.reading import Lengths, Reading, SlowReader
from intergroup_core.agent.reliance import Reliance
from intergroup_core.agent.retention import StreamRetention
from intergroup_core.agent.sending import Sending
from intergroup_core.config import Config
from intergroup_core.effects import Gap, Install
from intergroup_core.errors import ConfigError, MemberEnded
from intergroup_core.ids import Service, wall_us
from intergroup_core.log.cut import Cut, OrderCut
from intergroup_core.log.entry import ENTRY_BYTES
from intergroup_core.log.writer import Durability, LogWriter
from intergroup_core.runtime.clock import now
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.runtime.inbox import Event
from intergroup_core.runtime.member import Member
from intergroup_core.runtime.member_log import MemberLog
from intergroup_core.runtime.subscription_store import Subscription
from intergroup_core.wire.chunk import Chunk
from intergroup_core.wire.labels import key_of
from intergroup_core.wire.statements import Holding

_log = logging.getLogger(__name__)

HEAD_SECONDS = 0.002
"""How often it is looked whether what is kept here may be planned, while somebody waits for that."""
SURVEY_SECONDS = 0.02
"""The same where other sites have to be asked."""

Opener = Callable[[MemberLog, Callable[[], None]], Member]
"""Opens the member whose log this is; the second is called when the member is closed."""


class Stream:
    """What one site has of one group by one service."""

    def __init__(
        self,
        *,
        group: str,
        service: Service,
        config: Config,
        disk: FileDisk,
        writer: LogWriter,
        open_member: Opener,
        reliance: Reliance | None = None,
    ) -> None:
        self.group, self.service, self.config = group, service, config
        self.leases: set[object] = set()
        self.reliance = reliance
        """Where other sites may be counted on; nobody counts on what `uu` delivers."""
        self._disk = disk
        self._writer = writer
        self._lengths = Lengths()
        self._readings: set[Reading] = set()
        self._senders: list[Sending] = []
        self._grown = 0
        self._look_at = config.log.segment_bytes
        self._refusal = ""
        self._crowded = False
        durability = Durability[config.log.durability.upper()]
        self.beginning = LogBeginning(service, writer)
        self.heads = Heads(service, writer.manifest.log)
        self._watching: set[asyncio.Future[None]] = set()
        self.log = MemberLog(
            writer,
            durability,
            self,
            free=config.network.app_queue_bytes,
            release=disk.close,
            begins_behind=self._begins_behind,
        )
        self._retention = StreamRetention(service, config.log, self.log, disk)
        self.member = open_member(self.log, self._closed)
        self.sending = Sending(self.member)
        self._senders.append(self.sending)

    @property
    def directory(self) -> Path:
        """Where readers find the log."""
        return Path(self._disk.where)

    @property
    def name(self) -> str:
        return self.member.endpoint.name

    @property
    def ended(self) -> bool:
        return self.member.closed

    async def changed(self, seconds: float) -> None:
        """Until something was kept or the member ended, or so long."""
        waiter = asyncio.get_running_loop().create_future()
        self._watching.add(waiter)
        try:
            async with asyncio.timeout(seconds):
                await waiter
        except TimeoutError:
            pass
        finally:
            self._watching.discard(waiter)

    def check(self) -> None:
        """Refuse to go on with a member that is out of its group."""
        self.member.check_failure()
        if self.member.closed:
            raise MemberEnded(f"{self.name} has left group {self.group}; join it again")

    # Those who use it

    def add_sender(self, sending: Sending) -> None:
        """A member with a name of its own: what it sends comes back through this log."""
        self._senders.append(sending)

    def remove_sender(self, sending: Sending) -> None:
        self._senders.remove(sending)

    def read(self, pid: int, policy: SlowReader, *, latest: bool = True) -> Reading:
        """Begin to read at the end of what is kept, or hold all of it for one who reads older logs first."""
        entry = self.log.kept if latest else self._writer.manifest.first
        reading = Reading(pid, policy, entry, in_history=not latest)
        self._readings.add(reading)
        return reading

    async def next(self, reading: Reading, entry: int) -> None:
        """A reader has read everything below an entry; until there is more, or there will be none."""
        reading.entry = max(reading.entry, min(entry, self.log.kept))
        reading.in_history = False
        self._changed()
        while reading.entry >= self.log.kept and not self.ended and reading in self._readings:
            await reading.more()
        if reading.policy is SlowReader.GAP and not self.ended:
            self._skip(reading)

    def hold(self, reading: Reading, entry: int) -> None:
        """A reader that asks for ranges, not for what comes next, needs nothing any more before an entry."""
        reading.entry = max(reading.entry, min(entry, self.log.kept))
        reading.in_history = False
        self._changed()

    @property
    def reads_history(self) -> bool:
        """Whether somebody reads older logs, or may be about to."""
        return any(reading.in_history for reading in self._readings)

    def end_reading(self, reading: Reading) -> None:
        self._readings.discard(reading)
        reading.wake()
        self._changed()

    def _skip(self, reading: Reading) -> None:
        behind = self._lengths.behind(reading.entry)
        if behind > self.config.log.reader_bytes:
            reading.skips += 1
            reading.skipped_bytes += behind
            reading.entry = self.log.kept

    def holders_at(self, timestamp: int) -> dict[int, str]:
        """Sites on whose logs of the group others may rely, by name."""
        return self.member.endpoint.ledger.holders.at(timestamp)

    def holders(self) -> list[list[Any]]:
        """The same for people: site, name, whether it is this one, and when it was heard last."""
        ledger, me = self.member.endpoint.ledger, self.reliance.witnesses.key if self.reliance is not None else 0
        live = self.holders_at(self.member.endpoint.acknowledged)
        return [
            [word.site, word.name, word.site == me, wall_us(word.said)] for word in ledger.holders if word.site in live
        ]

    def release_holder(self, site: int) -> None:
        """Say that a site is gone for good, so that nobody waits for it any more."""
        word = self.member.endpoint.ledger.holders.word_on(site)
        if word is None or not word.holds:
            raise ConfigError(f"no log-holding site of group {self.group} has the key {site:016x}")
        seconds = max(word.seconds, round(self.config.log.holder_expiry_s))
        self.member.declare(Holding(site, word.name, False, seconds))

    def committed_version(self, app: str) -> int | None:
        """The last version of an application that is known here to be visible."""
        application = self.member.endpoint.ledger.transactions.applications.get(key_of(app))
        return application.version if application is not None and application.version >= 0 else None

    def head(self, level: Wanted) -> Cut | None:
        """Up to where this stream may be planned."""
        if not self.ended:
            self.heads.advance(self.log.kept, self._frontier)
        return self.heads.cut(level)

    async def next_head(self, level: Wanted, known: Cut | None, seconds: float) -> Cut | None:
        """The head once it is another than the one known, or after so many seconds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        look = SURVEY_SECONDS if level.counts_sites else HEAD_SECONDS
        await self._survey(level)
        while (head := self.head(level)) == known and not self.ended and loop.time() < deadline:
            # What is kept is heard of at once; that others have it too, by looking.
            left = deadline - loop.time()
            await self.changed(min(left, look if self.heads.waits(level) else left))
            await self._survey(level)
        return head

    def waits_for(self, level: Wanted) -> str:
        """Of whom a head that stays where it is lacks something, as far as that is known; empty where it does not."""
        if not self.heads.waits(level):
            return ""
        if level.counts_sites:
            return self.reliance.lacking.get(level, "") if self.reliance is not None else ""
        told = self.member.endpoint.told(now()) if level == STABLE else None
        return f"{told.slowest} has not acknowledged what comes next" if told is not None and told.slowest else ""

    async def _survey(self, level: Wanted) -> None:
        if level.counts_sites and self.reliance is not None and not self.ended:
            endpoint = self.member.endpoint
            await self.reliance.survey(self.heads, level, self.log.kept, self._frontier, endpoint.ledger)

    @property
    def _frontier(self) -> Frontier:
        endpoint = self.member.endpoint
        return Frontier(endpoint.acknowledged, endpoint.stable)

    def _begins_behind(self, install: Install) -> OrderCut | None:
        own = [sending.member.endpoint.me for sending in self._senders]
        return self.beginning.begins(install, self.member.endpoint, own)

    # What the log says

    def appended(self, entry: int, event: Event) -> None:
        first = not entry
        self.heads.appended(
            entry, event, self.beginning.behind if first else None, self.beginning.seqs if first else None
        )
        if self.reliance is not None:
            self.reliance.appended(entry, event)
        self._grown += ENTRY_BYTES
        if isinstance(event, Chunk):
            self._grown += event.nbytes
            for sending in self._senders:
                sending.appended(entry, event)
        elif isinstance(event, Gap):
            for sending in self._senders:
                sending.skipped(event.reason)

    def kept(self, stop: int) -> None:
        self._lengths.grew(stop, self._grown)
        self._grown = 0
        if self.reliance is not None:
            self.reliance.kept(stop, self.member.endpoint.ledger)
        self.heads.advance(stop, self._frontier)
        for sending in self._senders:
            sending.kept(stop)
        for reading in self._readings:
            reading.wake()
        self._wake_watching()
        self._measure()
        if self._lengths.total >= self._look_at:
            self._look_at = self._lengths.total + self.config.log.segment_bytes
            asyncio.get_running_loop().call_soon(self.retain, None)

    def refused(self, reason: str) -> None:
        self._refusal = reason
        self._measure()

    # How much more is taken

    def _measure(self) -> None:
        """Tell the group how much room there is: none on a full disk, and what slow readers leave."""
        self._lengths.forget(min((reading.entry for reading in self._readings), default=self.log.kept))
        held = max(
            (self._lengths.behind(reading.entry) for reading in self._readings if reading.policy is SlowReader.BLOCK),
            default=0,
        )
        free = min(self.config.network.app_queue_bytes, max(0, self.config.log.reader_bytes - held))
        if self._refusal or self._crowded:
            free = 0
        self.log.free = free

    def _changed(self) -> None:
        """Something else than the member's own doing changed how much is taken."""
        before = self.log.free
        self._measure()
        if self.log.free != before:
            self.member.log_changed()

    def _blocks(self, reading: Reading) -> bool:
        """Whether senders wait for this reader, or soon will."""
        behind = self._lengths.behind(reading.entry)
        return reading.policy is SlowReader.BLOCK and behind > self.config.log.reader_bytes // 2

    def retain(self, subscriptions: Sequence[Subscription] | None) -> None:
        """Remove what is beyond the limits and what nobody who is here still reads."""
        if self._writer.busy or self.ended:
            return
        floor = min((reading.entry for reading in self._readings), default=None)
        endpoint, open_since = self.member.endpoint, None
        if self.service is Service.RTO:
            open_since = endpoint.ledger.transactions.open_since(endpoint.acknowledged)
        self._crowded = self._retention.retain(floor, subscriptions, open_since)
        self._changed()

    # How it ends

    def cease(self, sending: Sending | None = None) -> None:
        """About to leave in good order: nobody is to count on this site's log any more, as one who sends says."""
        if self.reliance is not None:
            self.reliance.end((sending or self.sending).member)

    async def leave(self, seconds: float) -> None:
        """Out of the group, after all that was accepted is sent; MemberEnded where that takes too long."""
        self.cease()
        self.member.begin_to_leave()
        try:
            async with asyncio.timeout(seconds):
                await self.member.ended()
        except TimeoutError:
            raise MemberEnded(
                f"{self.name} went from group {self.group} without being let go within {seconds:g} s"
            ) from None
        finally:
            self.member.close()
            await self.log.finished()

    def _closed(self) -> None:
        if self.reliance is not None:
            self.reliance.closed()
        for sending in self._senders:
            sending.ended()
        for reading in self._readings:
            reading.wake()
        self._wake_watching()

    def _wake_watching(self) -> None:
        for waiter in self._watching:
            if not waiter.done():
                waiter.set_result(None)

    def status(self) -> dict[str, Any]:
        endpoint = self.member.endpoint
        return {
            "group": self.group,
            "delivery": self.service.value,
            "name": self.name,
            "id": f"{endpoint.me:016x}",
            "state": endpoint.state,
            "clients": len(self.leases),
            "unsent_bytes": endpoint.unsent_bytes,
            "unstable_bytes": endpoint.buffered_bytes,
            "failure": str(self.member.failure) if self.member.failure is not None else None,
            "holds": self.reliance is not None and self.reliance.holds,
            "holders": sorted(self.holders_at(endpoint.acknowledged).values()),
            "log": {
                "path": self._disk.where,
                "durability": self.config.log.durability,
                "first": self._writer.manifest.first,
                "stop": self.log.kept,
                "bytes": self._writer.size,
                "refusal": self._refusal or ("readers hold more than the log may have" if self._crowded else None),
            },
            "readers": [
                {
                    "pid": reading.pid,
                    "slow_reader": reading.policy.value,
                    "behind_entries": self.log.kept - reading.entry,
                    "behind_bytes": self._lengths.behind(reading.entry),
                    "skips": reading.skips,
                    "skipped_bytes": reading.skipped_bytes,
                    "blocks": self._blocks(reading),
                }
                for reading in self._readings
            ],
        }
