"""What clients may ask for, checked: a body that does not fit is refused before anything is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from intergroup_core.agent.levels import Wanted, ack_of
from intergroup_core.agent.reading import SlowReader
from intergroup_core.client.names import checked_name, service_of
from intergroup_core.config import Config
from intergroup_core.errors import ChannelBroken, ConfigError
from intergroup_core.ids import Service
from intergroup_core.site_settings import AgentConfig
from intergroup_core.wire.fields import BadBody, integer
from intergroup_core.wire.labels import MAX_VERSION, application
from intergroup_core.wire.records import Payload, RecordBatch, outline
from intergroup_core.wire.statements import Abandoned, Proposed, proposed_of

MAX_SECONDS = 1e6
ACK_SECONDS = AgentConfig().ack_timeout_s
"""How long a level at which others count may take where the client does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequest:
    """Use a group."""

    group: str
    service: Service
    sender: bool
    name: str | None
    config: Config


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRequest:
    """Multicast records."""

    handle: int
    records: RecordBatch
    ack: Wanted
    seconds: float | None
    """How long that may take, where the client says so."""


def open_request(body: Any) -> OpenRequest:
    match body:
        case {"group": str(group), "delivery": str(delivery), "sender": bool(sender), "config": Mapping() as settings}:
            name = body.get("name")
            if name is not None:
                name = checked_name(name, "a member's name")
            return OpenRequest(
                group=checked_name(group, "a group's name"),
                service=service_of(delivery),
                sender=sender,
                name=name,
                config=Config.from_mapping(settings),
            )
    raise ChannelBroken(f"this does not open a group: {body!r:.200}")


def send_request(body: Any) -> SendRequest:
    match body:
        case [int(handle), bytes(sizes), bytes(data), str(ack), *limit] if len(sizes) % 4 == 0:
            offsets = np.zeros(len(sizes) // 4 + 1, dtype=np.int64)
            np.cumsum(np.frombuffer(sizes, dtype="<u4"), out=offsets[1:], dtype=np.int64)
            if offsets[-1] == len(data):
                records = RecordBatch(offsets, np.frombuffer(data, dtype=np.uint8))
                return SendRequest(handle=handle, records=records, ack=ack_of(ack), seconds=seconds_of(limit))
    raise ChannelBroken("what came to be sent is no list of records")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRequest:
    """Multicast messages that are made already."""

    handle: int
    messages: list[tuple[Payload, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactRequest:
    """Make a transaction visible."""

    handle: int
    proposed: Proposed
    ack: Wanted
    seconds: float


def stage_request(body: Any) -> StageRequest:
    match body:
        case [int(handle), list(messages)]:
            return StageRequest(handle=handle, messages=[_message(each) for each in messages])
    raise ChannelBroken("what came to be staged is no list of messages")


def _message(value: Any) -> tuple[Payload, int]:
    match value:
        case [bytes(payload), int(rows)] if rows > 0:
            outlined = outline(lambda wanted: np.frombuffer(payload, dtype=np.uint8, count=wanted), len(payload))
            if outlined is not None and len(outlined.lengths) == rows:
                return Payload(b"", payload), rows
    raise ChannelBroken("what came to be staged is no message of records")


def transact_request(body: Any) -> TransactRequest:
    match body:
        case [int(handle), *proposal, ack, seconds]:
            try:
                proposed = proposed_of(0, proposal)
            except BadBody:
                raise ChannelBroken(f"a transaction is not understood: {body!r:.200}") from None
            limit = seconds_of([seconds])
            return TransactRequest(
                handle=handle, proposed=proposed, ack=ack_of(ack), seconds=limit if limit is not None else ACK_SECONDS
            )
    raise ChannelBroken(f"a transaction is not understood: {body!r:.200}")


def abandon_request(body: Any) -> tuple[int, Abandoned]:
    match body:
        case [int(handle), app, run, version]:
            try:
                return handle, Abandoned(application(app), application(run), integer(version, MAX_VERSION))
            except BadBody:
                pass
    raise ChannelBroken(f"a transaction is not understood: {body!r:.200}")


def seconds_of(limit: Any) -> float | None:
    """How long an acknowledgment may take: nothing, or a number that ends a request."""
    match limit:
        case [] | [None]:
            return None
        case [int() | float() as seconds] if 0 < seconds < MAX_SECONDS:
            return float(seconds)
    raise ConfigError(f"ack_timeout is {limit!r:.60}; it must be a number of seconds above 0 and below {MAX_SECONDS:g}")


def slow_reader_of(policy: Any) -> SlowReader:
    try:
        return SlowReader(policy)
    except ValueError:
        allowed = ", ".join(each.value for each in SlowReader)
        raise ConfigError(f"slow_reader is {policy!r:.40}; it must be one of {allowed}") from None


def handle_of(body: Any) -> int:
    """The handle that a request begins with."""
    match body:
        case [int(handle), *_] | int(handle):
            return handle
    raise ChannelBroken(f"a request names no handle: {body!r:.100}")
