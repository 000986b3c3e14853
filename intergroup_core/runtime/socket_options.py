"""Socket options of Linux that the standard library has no names for, and how they are filled in."""

from __future__ import annotations

import logging
import socket
import struct

from intergroup_core.runtime.address import GroupAddress
from intergroup_core.runtime.interfaces import Interface

_log = logging.getLogger(__name__)

SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33
IP_RECVTTL = 12
IP_MULTICAST_ALL = 49
UDP_SEGMENT = 103
UDP_GRO = 104

_warned: set[str] = set()


def membership(address: GroupAddress, interface: Interface) -> bytes:
    """`struct ip_mreqn`: a group on an interface, by index because addresses need not be unique."""
    return struct.pack("4s4si", socket.inet_aton(address.host), socket.inet_aton(interface.address), interface.index)


def set_buffer(where: socket.socket, forced: int, asked: int, size: int) -> None:
    """Size a socket buffer, past the system's limit where we may."""
    try:
        where.setsockopt(socket.SOL_SOCKET, forced, size)
    except OSError:
        where.setsockopt(socket.SOL_SOCKET, asked, size)


def warn_without_offload(interface: Interface, error: OSError) -> None:
    """Say once per interface that segmentation offload is not to be had."""
    if interface.name not in _warned:
        _warned.add(interface.name)
        _log.warning(
            "no UDP segmentation offload on interface %s (%s): datagrams go one by one", interface, error.strerror
        )
