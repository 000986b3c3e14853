"""A conversation with an agent without an event loop: a request, and its answer when it comes."""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from os import PathLike
from types import TracebackType
from typing import Any, NoReturn, Self

from intergroup_core.client.channel import VERSION, Decoder, Kind, encode, failure
from intergroup_core.client.starting import IDLE_S, reach_agent
from intergroup_core.errors import AgentGone, ChannelBroken, LocalProtocolError

READ_BYTES = 1 << 18
GREETING_SECONDS = 10.0
MOST_GREETINGS = 5
"""Agents that may go between being reached and being greeted before that is an error."""
GONE = "this site's agent has gone; what it had delivered is in its log: join again, and another is started"


class Connection:
    """For one thread at a time, which others wait for; not for a process that was forked later."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._decoder = Decoder()
        self._answers: dict[int, tuple[Kind, Any]] = {}
        self._forgotten: set[int] = set()
        self._lock = threading.RLock()
        self._next = 0
        self._pid = os.getpid()
        self._closed = False
        self._gone: AgentGone | None = None
        self.agent_version: str = self.request(Kind.HELLO, [VERSION, self._pid], GREETING_SECONDS)[1]

    @classmethod
    def to_agent(
        cls,
        home: str | PathLike[str] | None = None,
        *,
        start: bool = True,
        idle_s: float = IDLE_S,
        advertise: str = "",
    ) -> Connection:
        """With the site's agent, started where none is there.

        The kernel still connects to one that is killed or about to end, and then nobody answers: the next one is asked.
        """
        for _ in range(MOST_GREETINGS - 1):
            with suppress(AgentGone):
                return cls(reach_agent(home, start=start, idle_s=idle_s, advertise=advertise))
        return cls(reach_agent(home, start=start, idle_s=idle_s, advertise=advertise))

    def request(self, kind: Kind, body: Any = None, timeout: float | None = None) -> Any:
        """Ask, and wait for the answer; TimeoutError where none came in time, and then none is waited for."""
        with self._lock:
            number = self.ask(kind, body)
            try:
                return self.answer(number, timeout)
            except TimeoutError:
                self._forgotten.add(number)
                raise

    def ask(self, kind: Kind, body: Any = None) -> int:
        """Send a request; its number, by which `answer` finds what came."""
        with self._lock:
            self._check()
            self._next += 1
            try:
                self._socket.settimeout(None)
                self._socket.sendall(encode(kind, self._next, body))
            except OSError as error:
                self._lost(error)
            return self._next

    def answer(self, number: int, timeout: float | None = None) -> Any:
        """The answer to a request; after a TimeoutError it can be asked for again."""
        with self._lock:
            self._check()
            deadline = None if timeout is None else time.monotonic() + timeout
            while number not in self._answers:
                self._receive(deadline)
            kind, body = self._answers.pop(number)
        if kind is Kind.FAILURE:
            raise failure(body)
        return body

    @property
    def alive(self) -> bool:
        """Whether the agent is still there, as far as can be told without a word."""
        if self._closed or self._gone is not None or os.getpid() != self._pid:
            return False
        try:
            self._socket.settimeout(0)
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def interrupt(self) -> None:
        """End the conversation under whoever waits in it; that one sees the agent go."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """The agent forgets this client."""
        if not self._closed:
            self._closed = True
            self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self) -> None:
        if self._gone is not None:
            raise self._gone
        if self._closed:
            raise LocalProtocolError("this member is closed; open another one")
        if os.getpid() != self._pid:
            raise LocalProtocolError(
                f"this connection was opened in process {self._pid}, and this is {os.getpid()}; open one here"
            )

    def _receive(self, deadline: float | None) -> None:
        try:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                left = 1e-6  # what has come already is still taken
            self._socket.settimeout(left)
            data = self._socket.recv(READ_BYTES)
        except TimeoutError:
            raise TimeoutError("the agent has not answered yet") from None
        except OSError as error:
            self._lost(error)
        if not data:
            self._lost(None)
        try:
            for said in self._decoder.feed(data):
                if said.number in self._forgotten:
                    self._forgotten.discard(said.number)
                else:
                    self._answers[said.number] = said.kind, said.body
        except ChannelBroken:
            self.close()
            raise

    def _lost(self, error: OSError | None) -> NoReturn:
        self.close()
        self._gone = AgentGone(GONE)
        raise self._gone from error
