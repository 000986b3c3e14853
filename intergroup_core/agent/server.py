"""The agent's end of the local channel: a Unix socket for processes of the same user."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from intergroup_core.agent.session import Session
from intergroup_core.agent.streams import Streams
from intergroup_core.client.channel import Decoder, Kind, Said, encode_failure
from intergroup_core.errors import AgentUnavailable, ChannelBroken, IntergroupError

_log = logging.getLogger(__name__)

BACKLOG = 1_024
READ_BYTES = 1 << 18
MAX_REQUESTS = 1_000
"""Of one client that are not answered yet; more are read once some are."""
_CREDENTIALS = struct.Struct("3i")


class Server:
    """Listens, and keeps a session for each client as long as its connection lasts."""

    def __init__(self, streams: Streams, status: Callable[[], dict[str, Any]], stop: Callable[[], None]) -> None:
        self._streams = streams
        self._status = status
        self._stop = stop
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._conversations: set[asyncio.Task[None]] = set()
        self.sessions: set[Session] = set()
        self.changed: Callable[[], None] = lambda: None
        """Called when a client came or went."""

    async def listen(self, path: Path) -> None:
        """Take the place of whatever agent was there; the caller holds the site's lock."""
        new = path.with_suffix(".new")
        new.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        try:
            before = os.umask(0o177)
            try:
                listening.bind(str(new))
            finally:
                os.umask(before)
            listening.listen(BACKLOG)
            new.replace(path)  # whoever finds it there finds somebody listening
        except OSError as error:
            listening.close()
            raise AgentUnavailable(f"cannot listen at {path}: {error.strerror}; make its directory writable") from error
        self._path = path
        self._server = await asyncio.start_unix_server(self._meet, sock=listening, backlog=BACKLOG)

    async def close(self) -> None:
        """Nobody comes any more; those who are here are told no more."""
        if self._server is not None:
            self._server.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        for task in self._conversations:
            task.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._converse(reader, writer))
        self._conversations.add(task)
        task.add_done_callback(self._conversations.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = Session(self._streams, self._status, self._stop)
        if not _is_own_user(writer):
            writer.close()
            return
        self.sessions.add(session)
        self.changed()
        answering: set[asyncio.Task[None]] = set()
        try:
            await self._hear(session, reader, writer, answering)
        except (ChannelBroken, OSError) as error:
            _log.info("a client (process %d) is let go: %s", session.pid, error)
        finally:
            for task in answering:
                task.cancel()
            writer.close()
            try:
                await session.end()
            finally:
                self.sessions.discard(session)
                self.changed()

    async def _hear(
        self,
        session: Session,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answering: set[asyncio.Task[None]],
    ) -> None:
        decoder = Decoder()
        while data := await reader.read(READ_BYTES):
            for said in decoder.feed(data):
                task = asyncio.create_task(self._answer(session, said, writer))
                answering.add(task)
                task.add_done_callback(answering.discard)
                if said.kind is Kind.HELLO:
                    await task
            while len(answering) >= MAX_REQUESTS:
                await asyncio.wait(answering, return_when=asyncio.FIRST_COMPLETED)

    @staticmethod
    async def _answer(session: Session, said: Said, writer: asyncio.StreamWriter) -> None:
        try:
            answer = await session.answer(said)
        except Exception as error:
            _log.exception("a request of kind %s failed", said.kind.name)
            # A client that hears nothing would wait for ever.
            failed = IntergroupError(f"the agent could not do it ({error!r}); its log says more")
            answer = encode_failure(said.number, failed)
        writer.write(answer)


def _is_own_user(writer: asyncio.StreamWriter) -> bool:
    """The directory keeps others out; this does so where somebody has opened it up."""
    sock: socket.socket = writer.get_extra_info("socket")
    _, uid, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    if uid in (os.getuid(), 0):
        return True
    _log.warning("user %d wanted to use this agent of user %d", uid, os.getuid())
    return False
