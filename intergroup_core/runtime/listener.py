"""The receiving socket of a group member: buffers the kernel coalesced (GRO) where it can, else single datagrams."""

from __future__ import annotations

import logging
import socket
import struct

from intergroup_core.config import NetworkConfig
from intergroup_core.errors import NetworkUnavailable
from intergroup_core.ids import MemberId
from intergroup_core.runtime.address import GroupAddress
from intergroup_core.runtime.arena import ARENA_BYTES, ArenaPool
from intergroup_core.runtime.interfaces import Interface
from intergroup_core.runtime.own_frames import drop_own_frames
from intergroup_core.runtime.socket_options import (
    IP_MULTICAST_ALL,
    SO_RCVBUFFORCE,
    UDP_GRO,
    membership,
    set_buffer,
    warn_without_offload,
)
from intergroup_core.wire.header import padded
from intergroup_core.wire.parse import Arrival

_log = logging.getLogger(__name__)

Span = tuple[int, int, int]

MAX_DATAGRAM = 65_536
"""Free bytes a receive call is given; no datagram and no GRO buffer is larger."""
MAX_RECEIVES = 512
"""Receive calls for one arrival, whose cost they share; an arena's end comes earlier when buffers are large."""
_LAST_OFFSET = ARENA_BYTES - MAX_DATAGRAM
_ANCILLARY_BYTES = socket.CMSG_SPACE(4)
_segment_size = struct.Struct("i").unpack


class Listener:
    """Receives one group's datagrams from one interface, never blocking."""

    def __init__(self, address: GroupAddress, interface: Interface, network: NetworkConfig, me: MemberId) -> None:
        self._address = address
        self._interface = interface
        self._pool = ArenaPool()
        self._arena = self._pool.take()
        self._offset = 0
        self.drained = True
        """Whether the last receive left nothing behind."""
        self._socket = self._open()
        self.filters_own = False
        self.drop_frames_of(me)
        self.buffer_bytes = self._size_buffer(network.socket_buffer_bytes)
        self.coalesced = network.offload and self._kernel_coalesces()

    def _open(self) -> socket.socket:
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._bind(opened)
            self._join(opened)
        except NetworkUnavailable:
            opened.close()
            raise
        return opened

    def _bind(self, opened: socket.socket) -> None:
        try:
            opened.bind((self._address.host, self._address.port))
        except OSError as error:
            raise NetworkUnavailable(
                f"cannot listen on {self._address}: {error.strerror}; if another program has that port, "
                "set network.port to a free one at every member"
            ) from error

    def _join(self, opened: socket.socket) -> None:
        try:
            # Without this a socket also hears what other programs joined on other interfaces.
            opened.setsockopt(socket.IPPROTO_IP, IP_MULTICAST_ALL, 0)
            wanted = membership(self._address, self._interface)
            opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, wanted)
        except OSError as error:
            raise NetworkUnavailable(
                f"cannot join {self._address.host} on interface {self._interface}: {error.strerror}; "
                "set network.interface to one that does multicast, or raise "
                "`sysctl net.ipv4.igmp_max_memberships` if this host has joined too many groups"
            ) from error

    def _size_buffer(self, wanted: int) -> int:
        set_buffer(self._socket, SO_RCVBUFFORCE, socket.SO_RCVBUF, wanted)
        # The kernel doubles what it is asked for, to account for its own bookkeeping.
        granted = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2
        if granted < wanted:
            _log.warning(
                "the receive buffer for %s is %d bytes and not %d, so senders must go slower: "
                "`sysctl -w net.core.rmem_max=%d` as root, or lower network.socket_buffer_bytes",
                self._address,
                granted,
                wanted,
                wanted,
            )
        return granted

    def _kernel_coalesces(self) -> bool:
        try:
            self._socket.setsockopt(socket.IPPROTO_UDP, UDP_GRO, 1)
        except OSError as error:
            warn_without_offload(self._interface, error)
            return False
        return True

    def drop_frames_of(self, me: MemberId) -> None:
        """Do not receive what this member sent; a second call replaces the first."""
        self.filters_own = drop_own_frames(self._socket, me)

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self) -> Arrival | None:
        """What has come since the last call, up to an arena's end, as one slice that nothing will overwrite."""
        if self._offset and not self._arena.in_use:
            self._offset = 0  # nobody looks at it any more: the same few pages, still in the cache
        elif self._offset > _LAST_OFFSET:
            self._arena = self._pool.take(self._arena)
            self._offset = 0
        spans = self._receive_coalesced() if self.coalesced else self._receive_each()
        if not spans:
            return None
        offset, length, _ = spans[-1]
        start, self._offset = self._offset, self._offset + padded(offset + length)
        return Arrival(self._arena.array[start : self._offset], spans)

    def _receive_coalesced(self) -> list[Span]:
        receive_into, view = self._socket.recvmsg_into, self._arena.view
        start = offset = self._offset
        spans: list[Span] = []
        self.drained = False
        for _ in range(MAX_RECEIVES):
            if offset > _LAST_OFFSET:
                break
            try:
                length, ancillary, _, _ = receive_into((view[offset : offset + MAX_DATAGRAM],), _ANCILLARY_BYTES)
            except BlockingIOError:
                self.drained = True
                break
            if length:
                segment = _segment_size(ancillary[0][2])[0] if ancillary else length
                spans.append((offset - start, length, segment))
                offset += length + 7 & ~7
        return spans

    def _receive_each(self) -> list[Span]:
        receive_into, view = self._socket.recv_into, self._arena.view
        start = offset = self._offset
        spans: list[Span] = []
        self.drained = False
        for _ in range(MAX_RECEIVES):
            if offset > _LAST_OFFSET:
                break
            try:
                length = receive_into(view[offset : offset + MAX_DATAGRAM])
            except BlockingIOError:
                self.drained = True
                break
            if length:
                spans.append((offset - start, length, length))
                offset += length + 7 & ~7
        return spans

    def close(self) -> None:
        self._socket.close()
