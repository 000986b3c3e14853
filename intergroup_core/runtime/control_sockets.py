"""The sockets of a site's control process: one that hears what is multicast, one that speaks and hears answers."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from intergroup_core.config import Config
from intergroup_core.counters import Counters
from intergroup_core.effects import Control, CoordinatorGroup, Listen, LocalGroup, OneSite
from intergroup_core.errors import NetworkUnavailable
from intergroup_core.hierarchy.voice import hierarchy_tag
from intergroup_core.ids import SiteId
from intergroup_core.runtime.address import GroupAddress, hashed_address
from intergroup_core.runtime.interfaces import Interface
from intergroup_core.runtime.socket_options import IP_MULTICAST_ALL, IP_RECVTTL, membership
from intergroup_core.wire.hierarchy import HIERARCHY_MESSAGES, HierarchyMessage, RingAnswer
from intergroup_core.wire.parse import Arrival, parse

_log = logging.getLogger(__name__)

Heard = tuple[HierarchyMessage, int, int | None]
"""A message, its bytes, and the routers it crossed where that can be told."""

LARGEST = 65_536
MAX_RECEIVES = 256
"""Datagrams taken from a socket in one wake-up."""
MAX_ADDRESSES = 20_000
"""Sites whose address is remembered; the oldest are forgotten."""


class ControlSockets:
    """Several sites of one host share the port: what is for one of them goes to the socket it speaks from."""

    def __init__(self, interface: Interface, config: Config) -> None:
        self._interface = interface
        self._tag = hierarchy_tag(config.hierarchy.name)
        self._name = config.hierarchy.name
        self._everybody = hashed_address(f"control hierarchy {config.hierarchy.name}")
        self._joined: set[str] = set()
        self._addresses: dict[SiteId, tuple[str, int]] = {}
        self._ttl: int | None = None
        self._buffer = bytearray(LARGEST)
        self.counters = Counters()
        self.lost = 0
        """Messages that the network refused."""
        self._ears = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            self._open()
        except OSError as error:
            self.close()
            raise NetworkUnavailable(
                f"the control hierarchy cannot use {self._everybody} on interface {interface}: {error.strerror}; "
                "set network.interface to one that does multicast, or hierarchy.name to another if the port is taken"
            ) from error

    def _open(self) -> None:
        ears, mouth = self._ears, self._mouth
        ears.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        ears.setsockopt(socket.IPPROTO_IP, IP_MULTICAST_ALL, 0)
        ears.bind(("", self._everybody.port))
        mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, membership(self._everybody, self._interface))
        mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        mouth.bind((self._interface.address, 0))
        for opened in (ears, mouth):
            opened.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)

    def filenos(self) -> tuple[int, int]:
        return self._ears.fileno(), self._mouth.fileno()

    def listen(self, listening: Listen) -> None:
        """Hear these local groups, and perhaps the coordinators, and nobody else."""
        wanted = {self._local_host(coordinator) for coordinator in listening.local_groups}
        if listening.coordinators:
            wanted.add(self._everybody.host)
        for host in self._joined - wanted:
            with suppress(OSError):
                self._ears.setsockopt(socket.IPPROTO_IP, socket.IP_DROP_MEMBERSHIP, self._member_of(host))
        for host in wanted - self._joined:
            try:
                self._ears.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, self._member_of(host))
            except OSError as error:
                raise NetworkUnavailable(
                    f"the control hierarchy cannot join {host} on interface {self._interface}: {error.strerror}; "
                    "set network.interface to one that does multicast"
                ) from error
        self._joined = wanted

    def _member_of(self, host: str) -> bytes:
        return membership(GroupAddress(host, self._everybody.port), self._interface)

    def _local_host(self, coordinator: SiteId) -> str:
        return hashed_address(f"local group {coordinator:016x} of {self._name}").host

    def send(self, control: Control) -> None:
        """Send one message; what the network refuses is lost, as any datagram may be."""
        match control.to:
            case CoordinatorGroup():
                target = (self._everybody.host, self._everybody.port)
            case LocalGroup(coordinator):
                target = (self._local_host(coordinator), self._everybody.port)
            case OneSite(site):
                known = self._addresses.get(site)
                if known is None:
                    return
                target = known
        try:
            if control.ttl != self._ttl:
                self._mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, control.ttl)
                self._ttl = control.ttl
            self._mouth.sendto(control.frame, target)
        except OSError as error:
            self.lost += 1
            _log.debug("a control message to %s was refused: %s", target, error)

    def receive(self) -> Iterator[Heard]:
        """What has come, checked; malformed datagrams are counted and dropped."""
        for opened in (self._ears, self._mouth):
            for _ in range(MAX_RECEIVES):
                try:
                    length, ancillary, _, address = opened.recvmsg_into([self._buffer], socket.CMSG_SPACE(4))
                except (BlockingIOError, ConnectionRefusedError):
                    break
                ttl = int.from_bytes(ancillary[0][2][:4], "little") if ancillary else None
                yield from self._parsed(bytes(self._buffer[:length]), ttl, address)

    def _parsed(self, datagram: bytes, ttl: int | None, address: tuple[str, int]) -> Iterator[Heard]:
        padded = datagram + bytes(-len(datagram) % 8)
        arrival = Arrival(np.frombuffer(padded, dtype=np.uint8), [(0, len(datagram), len(datagram))])
        for message in parse(arrival, self._tag, self.counters):
            if not isinstance(message, HIERARCHY_MESSAGES):
                self.counters.drop("type")
                continue
            self._addresses.pop(message.site, None)
            self._addresses[message.site] = address
            if len(self._addresses) > MAX_ADDRESSES:
                self._addresses.pop(next(iter(self._addresses)))
            sent_ttl = getattr(message, "ttl", None)
            hops = sent_ttl - ttl if ttl is not None and sent_ttl is not None and sent_ttl >= ttl else None
            yield message, len(datagram), None if isinstance(message, RingAnswer) else hops

    def close(self) -> None:
        self._ears.close()
        self._mouth.close()
