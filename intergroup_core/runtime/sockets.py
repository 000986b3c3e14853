"""The two sockets of a group member, and the room that fits them."""

from __future__ import annotations

import dataclasses

from intergroup_core.config import Config
from intergroup_core.ids import MemberId
from intergroup_core.runtime.address import group_address
from intergroup_core.runtime.interfaces import resolve_interface
from intergroup_core.runtime.listener import Listener
from intergroup_core.runtime.memory import keep_freed_memory
from intergroup_core.runtime.transmitter import Transmitter

BUFFER_PER_ROOM = 2
"""Socket buffer kept for each byte of room reported: the kernel charges a datagram more than its length."""
LEAST_ROOM_BYTES = 10_000
"""Some room is always reported: a sender that may send nothing would never learn more."""


def open_sockets(group: str, me: MemberId, config: Config, listen: type[Listener]) -> tuple[Listener, Transmitter]:
    keep_freed_memory()
    interface = resolve_interface(config.network.interface)
    address = group_address(group, config.network)
    listener = listen(address, interface, config.network, me)
    try:
        return listener, Transmitter(address, interface, config.network)
    except BaseException:
        listener.close()
        raise


def within_buffer(config: Config, granted: int) -> Config:
    """The room a member reports is never more than its socket holds while the member is busy (D10)."""
    room = min(config.report.room_bytes, max(LEAST_ROOM_BYTES, granted // BUFFER_PER_ROOM))
    return dataclasses.replace(config, report=dataclasses.replace(config.report, room_bytes=room))
