"""Network interfaces of this host, found by name, by address or by the default route."""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from intergroup_core.errors import NetworkUnavailable

_GET_ADDRESSES, _GET_FLAGS, _GET_MTU = 0x8912, 0x8913, 0x8921
_REQUEST = struct.Struct("16s24x")
_MAX_ADDRESSES = 1_024
_UP, _LOOPBACK, _MULTICAST = 0x1, 0x8, 0x1000
_ROUTE_UP = 0x1
_ROUTES = Path("/proc/net/route")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """One IPv4 address of an interface."""

    name: str
    index: int
    address: str
    mtu: int
    up: bool
    loopback: bool
    multicast: bool

    def __str__(self) -> str:
        return f"{self.name} ({self.address})"


def interfaces() -> list[Interface]:
    """Every interface that has an IPv4 address, once for each."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return list(_listed(probe))


def _listed(probe: socket.socket) -> Iterator[Interface]:
    room = array.array("B", bytes(_MAX_ADDRESSES * _REQUEST.size))
    where, length = room.buffer_info()
    answer = fcntl.ioctl(probe, _GET_ADDRESSES, struct.pack("iP", length, where))
    used, _ = struct.unpack("iP", answer)
    for start in range(0, used, _REQUEST.size):
        entry = room[start : start + _REQUEST.size].tobytes()
        label = entry[:16].split(b"\0", 1)[0].decode()
        name = label.split(":", 1)[0]
        request = _REQUEST.pack(name.encode())
        try:
            flags = struct.unpack_from("H", fcntl.ioctl(probe, _GET_FLAGS, request), 16)[0]
            mtu = struct.unpack_from("i", fcntl.ioctl(probe, _GET_MTU, request), 16)[0]
            index = socket.if_nametoindex(name)
        except OSError:
            continue  # it went away between the two calls
        yield Interface(
            name=name,
            index=index,
            address=socket.inet_ntoa(entry[20:24]),
            mtu=mtu,
            up=bool(flags & _UP),
            loopback=bool(flags & _LOOPBACK),
            multicast=bool(flags & _MULTICAST),
        )


def resolve_interface(wanted: str) -> Interface:
    """The interface of that name or address; for an empty one the default route's, else loopback."""
    present = interfaces()
    found = _matching(present, wanted) if wanted else _default(present)
    if not found.up:
        raise NetworkUnavailable(f"interface {found} is down: bring it up with `ip link set {found.name} up`")
    if not (found.multicast or found.loopback):
        raise NetworkUnavailable(
            f"interface {found} does not do multicast: switch it on with `ip link set {found.name} multicast on`, "
            f"or set network.interface to another one{_choice(present)}"
        )
    return found


def _matching(present: list[Interface], wanted: str) -> Interface:
    for interface in present:
        if wanted in (interface.name, interface.address):
            return interface
    if wanted in [name for _, name in socket.if_nameindex()]:
        raise NetworkUnavailable(
            f"interface {wanted} has no IPv4 address: give it one with `ip addr add ADDRESS/PREFIX dev {wanted}`, "
            f"or set network.interface to another one{_choice(present)}"
        )
    raise NetworkUnavailable(
        f"there is no interface with the name or address {wanted!r}: set network.interface to one of this host's"
        f"{_choice(present)}"
    )


def _default(present: list[Interface]) -> Interface:
    name = default_route_interface()
    for interface in present:
        if interface.name == name:
            return interface
    for interface in present:
        if interface.loopback:
            return interface
    raise NetworkUnavailable(
        "there is no default route and no loopback interface with an address: bring one up with `ip link set lo up`"
    )


def default_route_interface() -> str | None:
    """The interface of the IPv4 default route with the least metric."""
    try:
        lines = _ROUTES.read_text().splitlines()[1:]
    except OSError:
        return None
    best: tuple[int, str] | None = None
    for line in lines:
        fields = line.split()
        name, destination, flags, metric, mask = fields[0], fields[1], fields[3], fields[6], fields[7]
        if int(destination, 16) == 0 and int(mask, 16) == 0 and int(flags, 16) & _ROUTE_UP:
            best = min(best or (int(metric), name), (int(metric), name))
    return best[1] if best else None


def _choice(present: list[Interface]) -> str:
    return f": {', '.join(str(interface) for interface in present)}" if present else " (it has none with an address)"
