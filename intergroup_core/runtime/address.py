"""Where a group lives: its multicast address and port, found from its name alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Network

from intergroup_core.config import NetworkConfig
from intergroup_core.errors import ConfigError

SCOPE = IPv4Network("239.192.0.0/14")
"""Organisation-local administratively scoped multicast (RFC 2365): routers keep it inside."""
HIGH_PORT = 0x8000
"""Set in every hashed port, so that it is never a well-known one."""


@dataclass(frozen=True, slots=True)
class GroupAddress:
    """A multicast address and a UDP port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def hashed_address(group: str) -> GroupAddress:
    """The address a name hashes to; names that collide are told apart by the group tag in every frame."""
    digest = int.from_bytes(hashlib.blake2b(group.encode(), digest_size=8, person=b"group-address").digest(), "little")
    host = int(SCOPE.network_address) + digest % SCOPE.num_addresses
    return GroupAddress(str(IPv4Address(host)), HIGH_PORT | (digest >> 48 & HIGH_PORT - 1))


def group_address(group: str, network: NetworkConfig) -> GroupAddress:
    """The hashed address, with what the configuration says instead of it."""
    hashed = hashed_address(group)
    if network.address:
        try:
            multicast = IPv4Address(network.address).is_multicast
        except AddressValueError:
            multicast = False
        if not multicast:
            raise ConfigError(
                f"network.address is {network.address!r}; it must be an IPv4 multicast address, "
                f"such as {hashed.host}, or empty for the one the group's name hashes to"
            )
    return GroupAddress(network.address or hashed.host, network.port or hashed.port)
