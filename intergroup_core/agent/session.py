"""One client's conversation with the agent: its requests, and what it holds until it goes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, assert_never

from intergroup_core.agent.acknowledging import Acknowledging, check_ack
from intergroup_core.agent.levels import ack_of, read_level_of
from intergroup_core.agent.readings import Readings
from intergroup_core.agent.requests import (
    OpenRequest,
    SendRequest,
    StageRequest,
    TransactRequest,
    abandon_request,
    handle_of,
    open_request,
    seconds_of,
    send_request,
    stage_request,
    transact_request,
)
from intergroup_core.agent.sending import Sending, Sent
from intergroup_core.agent.staging import Staging
from intergroup_core.agent.stream import Stream
from intergroup_core.agent.streams import Streams
from intergroup_core.agent.transacting import Transacting
from intergroup_core.client.channel import VERSION, Kind, Said, encode, encode_failure
from intergroup_core.client.names import service_of
from intergroup_core.errors import (
    Backpressure,
    ChannelBroken,
    ConfigError,
    IntergroupError,
    LocalProtocolError,
    MemberEnded,
)
from intergroup_core.ids import format_member
from intergroup_core.log.cut_codec import cut_of_list, listed_cut
from intergroup_core.runtime.clock import now
from intergroup_core.runtime.roster import roster_of
from intergroup_core.version import VERSION as PACKAGE
from intergroup_core.wire.statements import Abandoned

_log = logging.getLogger(__name__)

MAX_UNSENT_BYTES = 128_000_000
"""Of one client that the group has not taken yet; a client that waits for its answers has far less."""
MAX_HANDLES = 1_000
LEAVE_SECONDS = 10.0
"""How long a member may take to leave when nobody says otherwise."""


@dataclass(slots=True, eq=False)
class Handle:
    """A client's use of a group."""

    stream: Stream
    opened: OpenRequest
    sending: Sending | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Sends of one handle go out in the order they came."""
    settled: int = 0
    """Records of the sending member for which this client has waited."""
    staging: Staging = field(default_factory=Staging)

    @property
    def lingers(self) -> float:
        """For how long a member that sent for this client is kept ready for the next one like it."""
        return self.opened.config.agent.linger_s if self.sending is not None else 0.0


class Session:
    """Answers requests as they can be answered, in any order; sends of one handle keep theirs."""

    def __init__(self, streams: Streams, status: Callable[[], dict[str, Any]], stop: Callable[[], None]) -> None:
        self._streams = streams
        self._status = status
        self._stop = stop
        self._handles: dict[int, Handle] = {}
        self._readings = Readings(streams)
        self._unsent_bytes = 0
        self.pid = 0
        self.greeted = False

    @property
    def handles(self) -> int:
        return len(self._handles)

    async def answer(self, said: Said) -> bytes:
        """What to say to a request, an error included."""
        try:
            return encode(Kind.ANSWER, said.number, await self._answer(said))
        except IntergroupError as error:
            return encode_failure(said.number, error)

    async def _answer(self, said: Said) -> Any:
        if not self.greeted and said.kind is not Kind.HELLO:
            raise ChannelBroken("a conversation begins with who is there; this client did not say")
        match said.kind:
            case Kind.HELLO:
                return self._greet(said.body)
            case Kind.OPEN:
                return await self._open(said.number, open_request(said.body))
            case Kind.JOINED:
                return await self._joined(self._handle(handle_of(said.body)))
            case Kind.SEND:
                return await self._send(send_request(said.body))
            case Kind.FLUSH:
                return await self._flush(said.body)
            case Kind.STAGE:
                return await self._stage(stage_request(said.body))
            case Kind.STAGED:
                return await self._staged(said.body)
            case Kind.TRANSACT:
                return await self._transact(transact_request(said.body))
            case Kind.ABANDON:
                return self._abandon(*abandon_request(said.body))
            case Kind.COMMITTED_VERSION:
                return self._committed_version(said.body)
            case Kind.SUBSCRIBE:
                return self._readings.subscribe(self.pid, said.number, said.body)
            case Kind.NEXT:
                return await self._readings.next(said.body)
            case Kind.HISTORY:
                return await self._readings.history(said.body)
            case Kind.PLAN:
                return await self._readings.plan(said.body)
            case Kind.HOLD:
                return self._readings.hold(said.body)
            case Kind.EARLIEST:
                return await self._readings.earliest(said.body)
            case Kind.KEEPERS:
                return await self._readings.keepers(said.body)
            case Kind.FILL:
                return await self._readings.fill(said.body)
            case Kind.HEAD:
                return await self._head(said.body)
            case Kind.KEEP:
                return await self._keep(open_request(said.body))
            case Kind.COMMIT:
                return self._commit(said.body)
            case Kind.COMMITTED:
                return self._committed(said.body)
            case Kind.MEMBERS:
                return self._members(said.body)
            case Kind.HOLDERS:
                stream = self._stream(said.body)
                return stream.holders() if stream is not None else None
            case Kind.RELEASE:
                return self._release_holder(said.body)
            case Kind.CLOSE:
                return await self._close(said.body)
            case Kind.STATUS:
                return self._status()
            case Kind.STOP:
                return self._stop()
            case Kind.ANSWER | Kind.FAILURE | Kind.BLOCK | Kind.STREAMS | Kind.FETCH:
                raise ChannelBroken("this is not for a client to say")
            case _:
                assert_never(said.kind)

    def _greet(self, body: Any) -> Any:
        match body:
            case [int(version), int(pid)]:
                if version != VERSION:
                    raise ConfigError(
                        f"this site's agent (intergroup {PACKAGE}) speaks version {VERSION} of the local channel, "
                        f"the client {version}; end it with `intergroup agent --stop`, and start again"
                    )
                self.greeted, self.pid = True, pid
                return [VERSION, PACKAGE]
        raise ChannelBroken(f"a client said who it is in words that are not known: {body!r:.100}")

    async def _open(self, number: int, wanted: OpenRequest) -> Any:
        if len(self._handles) >= MAX_HANDLES:
            raise LocalProtocolError(f"this client has {MAX_HANDLES} groups open; close one first")
        await self._streams.prepare(wanted.config)
        stream = self._streams.open(wanted.group, wanted.service, wanted.name, wanted.config, sender=wanted.sender)
        handle = Handle(stream, wanted)
        stream.leases.add(handle)
        self._handles[number] = handle
        if wanted.sender:
            self._sender(handle)
        return self._described(number, handle)

    def _described(self, number: int, handle: Handle) -> dict[str, Any]:
        member = handle.sending.member if handle.sending is not None else handle.stream.member
        endpoint = member.endpoint
        return {
            "handle": number,
            "name": endpoint.name,
            "id": format_member(endpoint.me),
            "state": endpoint.state,
            "path": str(handle.stream.directory),
        }

    def _handle(self, number: int) -> Handle:
        handle = self._handles.get(number)
        if handle is None:
            raise LocalProtocolError("this member is closed; open another one")
        return handle

    def _sender(self, handle: Handle) -> Sending:
        if handle.sending is None:
            handle.stream.check()
            handle.sending = self._streams.sending(handle.stream, handle.opened.name)
            handle.sending.users += 1
            if handle.lingers:
                handle.sending.stay()
            handle.settled = handle.sending.offered
        return handle.sending

    def _members(self, body: Any) -> Any:
        """Who is in a group that this client uses, or in one that somebody here does: None where nobody does."""
        match body:
            case [str(group)]:
                stream = self._streams.of_group(group)
                return roster_of(stream.member.endpoint, now()) if stream is not None else None
        handle = self._handle(handle_of(body))
        member = handle.sending.member if handle.sending is not None else handle.stream.member
        return roster_of(member.endpoint, now())

    def _stream(self, body: Any) -> Stream | None:
        """What a request begins with: a stream that this client uses, or a group that somebody here is in."""
        match body:
            case [str(group), *_]:
                return self._streams.of_group(group)
        return self._handle(handle_of(body)).stream

    async def _joined(self, handle: Handle) -> Any:
        member = handle.sending.member if handle.sending is not None else handle.stream.member
        if handle.opened.sender:
            member.become_sender()  # others may have opened it to read, or it was silent for too long
        await member.installed(as_sender=handle.opened.sender)
        if member is not handle.stream.member:
            await handle.stream.member.installed()
        return {"id": format_member(member.endpoint.me), "state": member.endpoint.state}

    async def _send(self, wanted: SendRequest) -> None:
        handle = self._handle(wanted.handle)
        check_ack(handle.stream, wanted.ack)
        async with self._room_for(len(wanted.records.data)), handle.turn:
            sending = self._sender(handle)
            self._streams.hold(handle.stream, sending)
            sent = await sending.send(wanted.records)
        await Acknowledging(handle.stream, sending, wanted.ack, wanted.seconds).reached(sent)

    @asynccontextmanager
    async def _room_for(self, size: int) -> AsyncIterator[None]:
        """Bytes that wait here for the group to take them; one who waits for his answers has few."""
        if self._unsent_bytes and self._unsent_bytes + size > MAX_UNSENT_BYTES:
            raise Backpressure(f"{self._unsent_bytes} bytes of this client wait for the group; wait for their answers")
        self._unsent_bytes += size
        try:
            yield
        finally:
            self._unsent_bytes -= size

    async def _stage(self, wanted: StageRequest) -> None:
        handle = self._handle(wanted.handle)
        async with self._room_for(sum(len(payload) for payload, _ in wanted.messages)), handle.turn:
            sending = self._sender(handle)
            self._streams.hold(handle.stream, sending)
            handle.staging.add(await sending.send_messages(wanted.messages), len(wanted.messages))

    async def _staged(self, body: Any) -> Any:
        """Where all stands that this client has staged since it asked last."""
        match body:
            case [int(number), level, *limit]:
                handle, ack = self._handle(number), ack_of(level)
                check_ack(handle.stream, ack)
                async with handle.turn:
                    staging, handle.staging = handle.staging, Staging()
                if not staging.messages or handle.sending is None:
                    return None
                return await staging.located(handle.stream, handle.sending, ack, seconds_of(limit))
        raise ChannelBroken(f"a request for what was staged is not understood: {body!r:.100}")

    async def _transact(self, wanted: TransactRequest) -> bool:
        handle = self._handle(wanted.handle)
        sending = self._sender(handle)
        self._streams.hold(handle.stream, sending)
        return await Transacting(handle.stream, sending).commit(wanted.proposed, wanted.ack, wanted.seconds)

    def _abandon(self, number: int, abandoned: Abandoned) -> None:
        self._sender(self._handle(number)).member.declare(abandoned)

    def _committed_version(self, body: Any) -> int | None:
        match body:
            case [int(number), str(app)]:
                return self._handle(number).stream.committed_version(app)
        raise ChannelBroken(f"a question for a version is not understood: {body!r:.100}")

    async def _flush(self, body: Any) -> None:
        match body:
            case [int(number), level, *limit]:
                handle, ack = self._handle(number), ack_of(level)
                check_ack(handle.stream, ack)
                async with handle.turn:
                    sending = handle.sending
                if sending is not None:
                    sent = Sent(handle.settled, sending.offered)
                    await Acknowledging(handle.stream, sending, ack, seconds_of(limit)).reached(sent)
                    handle.settled = max(handle.settled, sent.stop)
                return
        raise ChannelBroken(f"a request to flush names no level: {body!r:.100}")

    async def _head(self, body: Any) -> Any:
        match body:
            case [int(number), level]:
                cut = await self._handle(number).stream.next_head(read_level_of(level), None, 0.0)
                return listed_cut(cut) if cut is not None else None
        raise ChannelBroken(f"a request for a head is not understood: {body!r:.100}")

    def _commit(self, body: Any) -> Any:
        match body:
            case [str(group), str(delivery), str(name), cut]:
                done = cut_of_list(cut) if cut is not None else None
                self._streams.retain_soon()
                return self._streams.subscriptions.commit(group, service_of(delivery), name, done)
        raise ChannelBroken(f"a subscription's word is not understood: {body!r:.100}")

    def _committed(self, body: Any) -> Any:
        match body:
            case [str(group), str(delivery), str(name)]:
                cut = self._streams.subscriptions.committed(group, service_of(delivery), name)
                return listed_cut(cut) if cut is not None else None
        raise ChannelBroken(f"a question about a subscription is not understood: {body!r:.100}")

    def _release_holder(self, body: Any) -> None:
        match body:
            case [int() | str(), int(site)] if (stream := self._stream(body)) is not None:
                stream.release_holder(site)
                return
        raise ChannelBroken(f"a request to let go of a site is not understood: {body!r:.100}")

    async def _keep(self, wanted: OpenRequest) -> Any:
        await self._streams.prepare(wanted.config)
        stream = self._streams.keep(wanted.group, wanted.service, wanted.config)
        return {"name": stream.name, "path": str(stream.directory)}

    async def _close(self, body: Any) -> Any:
        match body:
            case [int(number), float() | int() as seconds]:
                if (stop := self._readings.close(number)) is not None:
                    return {"stop": stop}
                handle = self._handle(number)
                del self._handles[number]
                await self._let_go(handle, float(seconds))
                return {"stop": handle.stream.log.kept}
        raise ChannelBroken(f"a request to close is not understood: {body!r:.100}")

    async def _let_go(self, handle: Handle, seconds: float = LEAVE_SECONDS) -> None:
        """Let go of a group, at once or, where a sender is kept ready, when nobody has needed it for a while."""
        if handle.lingers and handle.sending is not None and not handle.stream.ended:
            await _all_sent(handle.sending, seconds)
            self._streams.later(handle.lingers, self._release(handle, seconds))
        else:
            await self._release(handle, seconds)

    async def _release(self, handle: Handle, seconds: float) -> None:
        """Whoever is the last to use a member makes it leave."""
        stream = handle.stream
        try:
            if handle.sending is not None:
                if handle.lingers:
                    handle.sending.stay_no_longer()
                if _is_last_to_send(handle):
                    stream.cease(handle.sending)
                await self._release_sender(stream, handle.sending, seconds)
        finally:
            stream.leases.discard(handle)
            if not stream.leases:
                linger = handle.opened.config.agent.linger_s if handle.sending is None else 0.0
                await self._streams.leave(stream, seconds, linger=linger)

    async def _release_sender(self, stream: Stream, sending: Sending, seconds: float) -> None:
        sending.users -= 1
        if sending is not stream.sending and not sending.users:
            await self._end_sender(stream, sending, seconds)
        elif len(stream.leases) > 1:
            await _all_sent(sending, seconds)

    async def _end_sender(self, stream: Stream, sending: Sending, seconds: float) -> None:
        member = sending.member
        member.begin_to_leave()
        try:
            async with asyncio.timeout(seconds):
                await member.ended()
        except TimeoutError:
            raise MemberEnded(
                f"{member.endpoint.name} went from group {stream.group} without being let go within {seconds:g} s"
            ) from None
        finally:
            member.close()
            self._streams.forget_sender(stream, sending)

    async def end(self) -> None:
        """The client is gone: nobody waits for it any more."""
        self._readings.end()
        handles, self._handles = list(self._handles.values()), {}
        for handle in handles:
            try:
                await self._let_go(handle)
            except IntergroupError as error:
                _log.warning("%s", error)


async def _all_sent(sending: Sending, seconds: float) -> None:
    """Until all that was handed over has gone to the network, as far as it goes in this time."""
    if not sending.member.closed:
        with suppress(MemberEnded, TimeoutError, LocalProtocolError):
            async with asyncio.timeout(seconds):
                await sending.left()


def _is_last_to_send(handle: Handle) -> bool:
    """Whether nobody else at this site sends to the group, or keeps it."""
    others = handle.stream.leases - {handle}
    return all(isinstance(other, Handle) and other.sending is None for other in others)
