"""Speaks to all sites at once about the logs they keep, and hears what they say."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import numpy as np

from intergroup_core.counters import Counters
from intergroup_core.errors import NetworkUnavailable
from intergroup_core.ids import MemberId, SiteId
from intergroup_core.runtime.address import hashed_address
from intergroup_core.runtime.interfaces import Interface
from intergroup_core.runtime.socket_options import IP_MULTICAST_ALL, membership
from intergroup_core.wire.frames import FrameMaker
from intergroup_core.wire.keeping import (
    KEEPERS,
    KEEPERS_TAG,
    KEEPING_MESSAGES,
    HoldingAnswer,
    HoldingQuery,
    KeeperAnswer,
    KeeperCommit,
    KeeperQuery,
    KeepingMessage,
    encode_keeping,
)
from intergroup_core.wire.parse import Arrival, parse

_log = logging.getLogger(__name__)

LARGEST = 2_048
MAX_RECEIVES = 64
"""Datagrams taken in one wake-up."""

Address = tuple[str, int]


class KeeperSocket:
    """Two sockets on an event loop: questions come to the one that all share, answers to the own one."""

    def __init__(
        self,
        interface: Interface,
        ttl: int,
        me: SiteId,
        *,
        asked: Callable[[KeeperQuery], KeeperAnswer | None],
        told: Callable[[KeeperAnswer], None],
        committed: Callable[[KeeperCommit], None],
        held: Callable[[HoldingQuery, Callable[[HoldingAnswer], None]], None],
        holds: Callable[[HoldingAnswer], None],
    ) -> None:
        self._maker = FrameMaker(KEEPERS_TAG, MemberId(me), 0, LARGEST)
        self._me = me
        self._asked = asked
        self._told = told
        self._committed = committed
        self._held = held
        self._holds = holds
        self._everybody = hashed_address(KEEPERS)
        self.counters = Counters()
        self._loop = asyncio.get_running_loop()
        self._ears = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        self._mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            member = membership(self._everybody, interface)
            self._ears.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._ears.setsockopt(socket.IPPROTO_IP, IP_MULTICAST_ALL, 0)
            self._ears.bind(("", self._everybody.port))
            self._ears.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
            self._mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, member)
            self._mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
            self._mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, ttl)
            self._mouth.bind((interface.address, 0))
        except OSError as error:
            self._ears.close()
            self._mouth.close()
            raise NetworkUnavailable(
                f"keepers of logs cannot be asked at {self._everybody} on interface {interface}: {error.strerror}; "
                "set network.interface to one that does multicast"
            ) from error
        for opened in (self._ears, self._mouth):
            self._loop.add_reader(opened.fileno(), self._readable, opened)

    def ask(self, serial: int, group: int) -> None:
        self._say_to_all(KeeperQuery(site=self._me, serial=serial, group=group))

    def commit(self, commit: KeeperCommit) -> None:
        self._say_to_all(commit)

    def ask_held(self, query: HoldingQuery) -> None:
        self._say_to_all(query)

    def close(self) -> None:
        for opened in (self._ears, self._mouth):
            self._loop.remove_reader(opened.fileno())
            opened.close()

    def _say_to_all(self, message: KeepingMessage) -> None:
        self._say(message, (self._everybody.host, self._everybody.port))

    def _say(self, message: KeepingMessage, to: Address) -> None:
        kind, body = encode_keeping(message)
        with suppress(OSError):  # lost, as any datagram may be
            self._mouth.sendto(self._maker.single(kind, 0, 0, body), to)

    def _readable(self, opened: socket.socket) -> None:
        for message, address in self._heard(opened):
            match message:
                case KeeperQuery() if message.site != self._me:
                    answer = self._asked(message)
                    if answer is not None:
                        self._say(answer, address)
                case KeeperAnswer():
                    self._told(message)
                case KeeperCommit() if message.site != self._me:
                    self._committed(message)
                case HoldingQuery() if message.site != self._me:
                    self._held(message, partial(self._say, to=address))
                case HoldingAnswer():
                    self._holds(message)

    def _heard(self, opened: socket.socket) -> Iterator[tuple[KeepingMessage, Address]]:
        for _ in range(MAX_RECEIVES):
            try:
                datagram, address = opened.recvfrom(LARGEST)
            except (BlockingIOError, ConnectionRefusedError):
                return
            padded = datagram + bytes(-len(datagram) % 8)
            arrival = Arrival(np.frombuffer(padded, dtype=np.uint8), [(0, len(datagram), len(datagram))])
            for message in parse(arrival, KEEPERS_TAG, self.counters):
                if isinstance(message, KEEPING_MESSAGES):
                    yield message, address
                else:
                    self.counters.drop("type")
