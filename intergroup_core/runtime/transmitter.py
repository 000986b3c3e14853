"""The sending socket of a group member: bursts cut by the kernel (GSO) where it can, else datagram by datagram."""

from __future__ import annotations

import errno
import logging
import socket

from intergroup_core.config import NetworkConfig
from intergroup_core.errors import NetworkUnavailable
from intergroup_core.runtime.address import GroupAddress
from intergroup_core.runtime.interfaces import Interface
from intergroup_core.runtime.socket_options import (
    SO_SNDBUFFORCE,
    UDP_SEGMENT,
    membership,
    set_buffer,
    warn_without_offload,
)

_log = logging.getLogger(__name__)

MAX_BURST_BYTES = 65_507
MAX_BURST_SEGMENTS = 64
"""What one GSO call may carry."""
SEND_BUFFER_BYTES = 2_000_000
_IP_UDP_HEADERS = 28

_NO_OFFLOAD = {errno.EINVAL, errno.EIO, errno.EMSGSIZE, errno.EOPNOTSUPP}
"""What a kernel or a device answers when it does not segment for us."""


class Transmitter:
    """Multicasts to one group through one interface, never blocking."""

    def __init__(self, address: GroupAddress, interface: Interface, network: NetworkConfig) -> None:
        self._address = address
        self._interface = interface
        self._reasons: set[int] = set()
        self._segment = 0
        self._most = 0
        self.lost = 0
        """Sends refused for a reason other than congestion; repairs make up for them."""
        self._socket = self._open(network)
        set_buffer(self._socket, SO_SNDBUFFORCE, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        self.bursts = network.offload and self._kernel_segments()

    def _open(self, network: NetworkConfig) -> socket.socket:
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, membership(self._address, self._interface))
            opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, network.ttl)
            # Other members on this host hear us; a filter on our own listener spares ourselves.
            opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
            # Connected, the kernel looks up the route once and not per call.
            opened.connect((self._address.host, self._address.port))
        except OSError as error:
            opened.close()
            raise NetworkUnavailable(
                f"cannot send to {self._address} on interface {self._interface}: {error.strerror}; "
                "set network.interface to one that does multicast"
            ) from error
        return opened

    def _kernel_segments(self) -> bool:
        try:
            self._socket.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 0)
        except OSError as error:
            warn_without_offload(self._interface, error)
            return False
        return True

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, data: memoryview | bytes, segment: int, burst: int = 0) -> int:
        """Send datagrams of `segment` bytes, the last perhaps shorter; fewer bytes taken than given is congestion.

        A call of the kernel's gets `burst` bytes at most, whole datagrams; 0 for as many as it takes.
        """
        total = len(data)
        if total <= segment:
            if total > self._segment > 0:
                self._cut_by(0)
        elif not self.bursts or (segment != self._segment and not self._cut_by(segment)):
            return self._send_each(data, segment)
        elif total > (most := min(burst or self._most, self._most)):
            return self._send_bursts(data, segment, most)
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            return self._refused(data, segment, error)

    def _send_bursts(self, data: memoryview | bytes, segment: int, most: int) -> int:
        send, total = self._socket.send, len(data)
        at = start = 0
        while start < total:
            try:
                for at in range(start, total, most):
                    send(data[at : at + most])
                return total
            except BlockingIOError:
                return at
            except OSError as error:
                part = data[at : at + most]
                taken = self._refused(part, segment, error)
                start = at + taken
                if taken < len(part):
                    return start
                if not self.bursts:
                    return start + self._send_each(data[start:], segment)
        return total

    def _cut_by(self, segment: int) -> bool:
        """Set the size the kernel cuts what we send to; 0 for no cutting."""
        if segment + _IP_UDP_HEADERS > self._interface.mtu:
            self.bursts = False
            _log.warning(
                "frames of %d bytes are larger than interface %s carries in one packet (%d): they go one by one, in "
                "IP fragments; set group.frame_bytes to at most %d at every member",
                segment,
                self._interface,
                self._interface.mtu,
                (self._interface.mtu - _IP_UDP_HEADERS) & ~7,
            )
            return False
        self._socket.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, segment)
        self._segment = segment
        self._most = segment * min(MAX_BURST_SEGMENTS, MAX_BURST_BYTES // segment) if segment else 0
        return True

    def _refused(self, data: memoryview | bytes, segment: int, error: OSError) -> int:
        """A send failed: for want of segmentation its datagrams go one by one, else they count as lost."""
        if len(data) <= segment or error.errno not in _NO_OFFLOAD:
            return self._give_up(data, error)
        self.bursts = False
        warn_without_offload(self._interface, error)
        return self._send_each(data, segment)

    def _send_each(self, data: memoryview | bytes, segment: int) -> int:
        if self._segment:
            self._cut_by(0)
        send, total = self._socket.send, len(data)
        at = start = 0
        while start < total:
            try:
                for at in range(start, total, segment):
                    send(data[at : at + segment])
                return total
            except BlockingIOError:
                return at
            except OSError as error:
                start = at + self._give_up(data[at : at + segment], error)
        return total

    def _give_up(self, data: memoryview | bytes, error: OSError) -> int:
        """Treat what the network refuses as lost on the way."""
        self.lost += 1
        if error.errno not in self._reasons:
            self._reasons.add(error.errno or 0)
            _log.warning("interface %s refused to send to %s: %s", self._interface, self._address, error.strerror)
        return len(data)

    def close(self) -> None:
        self._socket.close()
