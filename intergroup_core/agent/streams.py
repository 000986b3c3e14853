"""The streams of a site: one for each group and service that somebody uses, opened on first use."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from intergroup_core.agent.entrance import Entrance
from intergroup_core.agent.history import History, Step
from intergroup_core.agent.holdership import Holdership
from intergroup_core.agent.keepers import Keepers
from intergroup_core.agent.members import Members
from intergroup_core.agent.old_parts import OldParts
from intergroup_core.agent.reliance import Reliance
from intergroup_core.agent.sending import Sending
from intergroup_core.agent.stream import Stream
from intergroup_core.agent.subscriptions import Subscriptions
from intergroup_core.client.directories import SiteDirectories
from intergroup_core.config import Config
from intergroup_core.delivery.clock import HybridClock
from intergroup_core.effects import Gap
from intergroup_core.errors import ConfigError, IntergroupError, LocalProtocolError, RangeUnavailable
from intergroup_core.ids import Service, timestamp_at
from intergroup_core.log.cut import Cut, EntryCut, OrderCut, SourceCut
from intergroup_core.log.jumps import Jump, jumps_of
from intergroup_core.log.reader import LogReader
from intergroup_core.log.recovery import Cut as TornEnd
from intergroup_core.log.stream import StreamReader
from intergroup_core.log.writer import Durability, open_log
from intergroup_core.membership.quorum import key_of
from intergroup_core.runtime.clock import now
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.runtime.home import Home
from intergroup_core.runtime.inbox import Event
from intergroup_core.runtime.ledger_store import LedgerStore
from intergroup_core.runtime.log_archive import LogArchive
from intergroup_core.runtime.member import Member
from intergroup_core.runtime.member_log import MemberLog
from intergroup_core.runtime.stream_store import StreamStore
from intergroup_core.runtime.subscription_store import SubscriptionStore
from intergroup_core.site_settings import LogConfig
from intergroup_core.transaction.ledger import Ledger

_log = logging.getLogger(__name__)

OF_ONE_CLIENT = frozenset(
    {
        "log.slow_reader",
        "agent.idle_s",
        "agent.linger_s",
        "agent.ack_timeout_s",
        "agent.advertise",
        "log.directory",
    }
)
"""Settings in which those who share a member may differ; where a log lies is looked at apart from the others."""

FILL_SECONDS = 0.5
FILL_TRIES = 20
"""How often others are asked for what a log-holding site skipped; it may take a while until they can give it."""

KEEPER = object()
"""The lease of a stream that is kept without a client."""

Key = tuple[str, Service]


class Streams:
    """Members that share the site's clock and, one of each group, its control process."""

    def __init__(self, name: str, directories: SiteDirectories, advertise: str = "") -> None:
        self._name = name
        self._directories = directories
        self._clock = HybridClock()
        self._members = Members(name, directories, self._clock)
        self._streams: dict[Key, Stream] = {}
        self._named: dict[tuple[Key, str], Sending] = {}
        self._lingering: set[asyncio.Task[None]] = set()
        self._going: set[Stream] = set()
        """Left, and their logs may not be let go of yet: those who waited for that were told to stop."""
        self._store = StreamStore(directories.logs)
        self._key = key_of(Home(directories.state).identity())
        self.keepers = Keepers(name, self._key, self._store, Entrance(directories.entrance), advertise)
        self._histories: dict[Stream, History] = {}
        self._ledgers = LedgerStore(directories.ledgers)
        self._old = OldParts(self._store)
        self.subscriptions = Subscriptions(SubscriptionStore(directories.subscriptions), self.keepers, self._clock)

    def __iter__(self) -> Iterator[Stream]:
        return iter(list(self._streams.values()))

    def __len__(self) -> int:
        return len(self._streams)

    def open(self, group: str, service: Service, name: str | None, config: Config, *, sender: bool) -> Stream:
        """The stream of a group, there or new; it carries the name that its first user gave it."""
        if config.log.directory:
            site = Home(self._directories.state).identity()
            self._store.put_elsewhere(group, Path(config.log.directory) / site)
        stream = self._streams.get((group, service))
        if stream is not None and not stream.ended:
            difference = stream.config.difference(config, apart_from=OF_ONE_CLIENT)
            if difference is not None:
                raise ConfigError(
                    f"this site is in group {group} already, with other settings: {difference}; give the same, or keep "
                    "this member in its own process (in_process=True)"
                )
            return stream
        older = self._older(group, service)
        stream = self._opened(group, service, name or self._name, config, sender=sender)
        self._streams[group, service] = stream
        if stream.reliance is not None:
            stream.reliance.bind(stream.member, self._old_logs(stream))
            if service is Service.RTO:
                stream.reliance.skipped = lambda: self._background(self._fill_skipped(stream))
        self._histories[stream] = History(stream, self._store, self.keepers)
        self.keepers.refresh()
        stream.member.start()
        self.retain_soon()
        if older is not None and not isinstance(older, EntryCut):
            self._background(self._complete(stream, older))
        return stream

    def _older(self, group: str, service: Service) -> Cut | None:
        """The end of what this site has of a stream from earlier days; its clock goes on from there."""
        for report in self._store.recover(group, service):
            for cut in report.cuts:
                _log.warning("%s was cut at %d: %d bytes had not been written whole", *_cut_words(cut))
            for damage in report.damages:
                _log.error("%s", damage.error())
        self._store.remove_empty(group, service)
        reader = StreamReader(self._store.parts(group, service))
        self._clock.observe(reader.highest)
        return reader.head()

    async def _complete(self, stream: Stream, cut: OrderCut | SourceCut) -> None:
        """Fetch what this site missed since it was last in the group."""
        try:
            step = await self._histories[stream].behind(cut)
            while isinstance(step, Step) and not isinstance(step.reached, EntryCut):
                step = await self._histories[stream].behind(step.reached)
        except RangeUnavailable as error:
            _log.warning("what this site missed of group %s is not to be had: %s", stream.group, error)
        if stream.reliance is not None:
            stream.reliance.has_older(self._old_logs(stream))

    async def _fill_skipped(self, stream: Stream) -> None:
        """Fetch what the member of a site skipped on whose log others rely: who sent it may wait for that."""
        refused: dict[str, str] = {}
        for _ in range(FILL_TRIES):
            await stream.changed(FILL_SECONDS)
            if stream.ended or stream.reliance is None:
                return
            jumps = [jump for jump in await asyncio.to_thread(_last_jumps, stream.directory) if not jump.told]
            if not jumps:
                return
            end = jumps[-1].end
            if end is None:
                continue  # nothing has come yet behind which it would be complete
            filled, refused = await self._histories[stream].fill(jumps[-1].begin, end)
            if filled:
                stream.reliance.has_older(self._old_logs(stream))
                return
        _log.warning("what this site skipped of group %s is not to be had: %s", stream.group, refused)

    def _old_logs(self, stream: Stream) -> list[LogReader]:
        """What there is of a stream besides the log that grows."""
        reader = StreamReader(self._store.parts(stream.group, stream.service))
        return [log for log in reader.logs if Path(log.where) != stream.directory]

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._lingering.add(task)
        task.add_done_callback(self._lingering.discard)

    async def prepare(self, config: Config) -> None:
        """Be found by other sites on the interface that a member will use."""
        await self.keepers.use(config)

    def history(self, stream: Stream) -> History:
        return self._histories[stream]

    def keep(self, group: str, service: Service, config: Config) -> Stream:
        """Be in a group for its log alone, until the agent ends."""
        stream = self.open(group, service, None, config, sender=False)
        if KEEPER not in stream.leases:
            stream.leases.add(KEEPER)
            # Only senders can agree where a view ends whose other senders died: without one there would be a gap.
            stream.sending.stay()
        self.hold(stream, stream.sending)
        return stream

    def hold(self, stream: Stream, sending: Sending) -> None:
        """Others may rely on this site's log of a group that it sends to or keeps."""
        if stream.reliance is not None:
            stream.reliance.begin(sending.member)

    @property
    def keeps(self) -> bool:
        """Whether there is a stream that nobody needs to use."""
        return any(KEEPER in stream.leases for stream in self._streams.values())

    def kept(self) -> list[dict[str, Any]]:
        """What is on this site's disk, of streams that are open and of others."""
        return [
            {
                "group": group,
                "delivery": service.value,
                "parts": len(parts),
                "bytes": sum(part.bytes_used() for part in parts),
            }
            for group, service in self._store.streams()
            for parts in [self._store.parts(group, service)]
        ]

    def retain_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self.retain)

    def retain(self) -> None:
        """Remove what is beyond the limits: of the logs that grow, and of older parts that nobody is reading."""
        for stream in self:
            stream.retain(self.subscriptions.of(stream.group, stream.service))
        for group, service in self._store.streams():
            open_one = self._streams.get((group, service))
            if open_one is not None and open_one.reads_history:
                continue
            self._old.retain(
                group,
                service,
                open_one.config.log if open_one is not None else LogConfig(),
                now(),
                live=open_one.log.writer.manifest.log if open_one is not None else None,
                live_bytes=open_one.log.writer.size if open_one is not None else 0,
            )
        self.keepers.refresh()

    def there(self, group: str, service: Service) -> Stream:
        """A stream that somebody has opened."""
        stream = self._streams.get((group, service))
        if stream is None:
            raise LocalProtocolError(f"nobody at this site is in group {group} by {service.value}; open it first")
        return stream

    def of_group(self, group: str) -> Stream | None:
        """The stream that knows most of a group."""
        for service in (Service.RTO, Service.RSO):
            if (stream := self._streams.get((group, service))) is not None and not stream.ended:
                return stream
        return None

    def sending(self, stream: Stream, name: str | None) -> Sending:
        """What sends for a client of a stream: the site's member, or one with a name of its own."""
        if name is None or name == stream.name:
            return stream.sending
        key = (stream.group, stream.service), name
        sending = self._named.get(key)
        if sending is None or sending.member.closed:
            sending = self._named[key] = self._open_sender(stream, name)
            stream.add_sender(sending)
            sending.member.start()
        return sending

    def forget_sender(self, stream: Stream, sending: Sending) -> None:
        key = (stream.group, stream.service), sending.member.endpoint.name
        if self._named.get(key) is sending:
            del self._named[key]
            stream.remove_sender(sending)

    async def leave(self, stream: Stream, seconds: float, *, linger: float) -> None:
        """Nobody uses a stream any more: it leaves its group, at once or after a while in which nobody came."""
        if linger and not stream.ended:
            self.later(linger, self._leave_unused(stream, seconds))
        else:
            await self._leave(stream, seconds)

    def later(self, seconds: float, work: Coroutine[Any, Any, None]) -> None:
        """Do something after a while, or never, where the agent ends before that."""
        self._background(_after(seconds, work))

    async def _leave_unused(self, stream: Stream, seconds: float) -> None:
        if not stream.leases:
            await self._leave(stream, seconds)

    async def _leave(self, stream: Stream, seconds: float) -> None:
        if self._streams.get((stream.group, stream.service)) is stream:
            del self._streams[stream.group, stream.service]
        try:
            await stream.leave(seconds)
        except asyncio.CancelledError:
            self._going.add(stream)
            raise
        finally:
            self._histories.pop(stream, None)

    async def leave_all(self, seconds: float) -> None:
        """The agent ends: everybody leaves, at the same time."""
        for task in self._lingering:
            task.cancel()
        await asyncio.gather(*self._lingering, return_exceptions=True)
        members = [sending.member for sending in self._named.values()]
        members += [stream.member for stream in self]
        for stream in self:
            stream.cease()
        for member in members:
            member.begin_to_leave()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(member.ended() for member in members))
        for member in members:
            member.close()
        for stream in (*self, *self._going):
            await stream.log.finished()
        await self.keepers.close()
        self._members.close()

    def _opened(self, group: str, service: Service, name: str, config: Config, *, sender: bool) -> Stream:
        disk = self._store.create_part(group, service, timestamp_at(now().wall))
        try:
            writer = open_log(
                disk,
                durability=Durability[config.log.durability.upper()],
                segment_bytes=config.log.segment_bytes,
                stated=Ledger() if service is Service.RTO else None,
            )

            def open_member(member_log: MemberLog, closed: Callable[[], None]) -> Member:
                return self._members.open(
                    group,
                    service,
                    name,
                    config,
                    sender=sender,
                    log=member_log,
                    archive=None if service is Service.UU else LogArchive(Path(disk.where)),
                    ledger=self._ledgers.load(group),
                    on_closed=closed,
                )

            return Stream(
                group=group,
                service=service,
                config=config,
                disk=disk,
                writer=writer,
                open_member=open_member,
                reliance=self._reliance(group, name, config) if service is not Service.UU else None,
            )
        except BaseException:
            disk.close()
            raise

    def _reliance(self, group: str, name: str, config: Config) -> Reliance:
        holdership = Holdership(self._key, name, config.log.holder_expiry_s)
        return Reliance(group, holdership, self.keepers.witnesses, self.keepers.ask_held, self._ledgers)

    def _open_sender(self, stream: Stream, name: str) -> Sending:
        service = Service.RTO if stream.service is Service.UU else stream.service
        sending: Sending | None = None

        def noted(event: Event) -> None:
            """It reads nothing, but what it has sent may be lost with an incarnation."""
            if isinstance(event, Gap) and sending is not None:
                sending.skipped(event.reason)

        def closed() -> None:
            if sending is not None:
                sending.ended()

        member = self._members.open(
            stream.group,
            service,
            name,
            stream.config,
            sender=True,
            ledger=self._ledgers.load(stream.group),
            on_event=noted,
            on_closed=closed,
        )
        sending = Sending(member)
        return sending


async def _after(seconds: float, work: Coroutine[Any, Any, None]) -> None:
    try:
        await asyncio.sleep(seconds)
        await work
    except IntergroupError as error:
        _log.warning("%s", error)
    finally:
        work.close()  # it may not have begun


def _cut_words(cut: TornEnd) -> tuple[str, int, int]:
    return cut.file, cut.offset, cut.removed_bytes


def _last_jumps(directory: Path) -> list[Jump]:
    """Where the log in a directory jumps."""
    return jumps_of(LogReader(FileDisk(directory)))
