"""What somebody who joins a group or sends to it may say, checked before anything is started."""

from __future__ import annotations

import dataclasses
import itertools
import os
import socket
from collections.abc import Iterable, Sequence

from intergroup_core.client.following import EARLIEST
from intergroup_core.client.names import checked_name, service_of
from intergroup_core.config import Config
from intergroup_core.errors import ConfigError, LocalProtocolError, LogError
from intergroup_core.ids import Service
from intergroup_core.log.cut import Cut, OrderCut, SourceCut
from intergroup_core.log.cut_codec import cut_of_text
from intergroup_core.runtime.interfaces import resolve_interface
from intergroup_core.wire.records import RecordBatch

LATEST = "latest"

_members_here = itertools.count(1)


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody who joins asked for, checked."""

    service: Service
    config: Config
    start: Cut | str | None
    """Where to read from; None for the latest."""


def checked(
    group: str,
    delivery: str,
    name: str | None,
    config: Config | None,
    interface: str | None,
    *,
    start: str,
    in_process: bool,
) -> Wanted:
    """Refuse what cannot be before anything is started."""
    config = config or Config()
    if interface is not None:
        config = dataclasses.replace(config, network=dataclasses.replace(config.network, interface=interface))
    checked_name(group, "a group's name")
    if name is not None:
        checked_name(name, "a member's name")
    service = service_of(delivery)
    resolve_interface(config.network.interface)  # no agent is started for one that is not there
    return Wanted(service, config, _start_of(start, service, in_process=in_process))


def _start_of(start: str, service: Service, *, in_process: bool) -> Cut | str | None:
    if start == LATEST:
        return None
    if in_process:
        raise ConfigError(f"start is {start!r:.40}; a member without a log begins at the latest: leave it out")
    if service is Service.UU:
        raise ConfigError(f"start is {start!r:.40}; what uu delivers is in no order to start in: leave it out")
    if start == EARLIEST:
        return start
    try:
        cut = cut_of_text(start)
    except LogError:
        raise ConfigError(f"start is {start!r:.40}; it must be latest, earliest or a cut as JSON") from None
    if not isinstance(cut, OrderCut if service is Service.RTO else SourceCut):
        raise ConfigError(f"start is a cut of another service than {service.value}; give one of that")
    return cut


def default_name() -> str:
    """Host and process, and a number from the second member of a process on."""
    number = next(_members_here)
    base = f"{socket.gethostname()}-{os.getpid()}"
    return base if number == 1 else f"{base}-{number}"


def as_records(values: Iterable[bytes] | RecordBatch) -> Sequence[bytes] | RecordBatch:
    if isinstance(values, (bytes, bytearray, memoryview, str)):
        raise LocalProtocolError("send_many takes several records; use send for one")
    return values if isinstance(values, RecordBatch) else [as_bytes(value) for value in values]


def as_bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)  # the caller may do with its buffer what it likes
    raise TypeError(f"a record is bytes, not {type(value).__name__}: encode it first")
