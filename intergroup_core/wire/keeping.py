"""What sites that hold a group's log say to each other: who has some of it, and who has read how far.

    KEEPER_QUERY    [serial, group tag]
    KEEPER_ANSWER   [serial, group tag, name, host, port, token]
    KEEPER_COMMIT   [group tag, service, name of a subscription, cut or nothing, stamp]
    HOLDING_QUERY   [serial, group tag, keys of the sites asked, spans, whether to wait for all of them]
    HOLDING_ANSWER  [serial, group tag, key of the site, spans that it has]

A span is a sender, and a first and a last seq.

All go under one tag of their own, whatever the group, because a site that keeps a log need not be in the group.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgpack

from intergroup_core.ids import MemberId, SiteId, Timestamp, group_tag
from intergroup_core.wire.fields import (
    BadBody,
    array,
    integer,
    many,
    octets,
    site_key,
    span,
    text,
    timestamp,
    truth,
    unpacked,
)
from intergroup_core.wire.header import FrameType

KEEPERS = "keepers of logs"
KEEPERS_TAG = group_tag(KEEPERS)
TOKEN_BYTES = 16
MAX_ASKED = 32
"""Sites in one question, so that no more than these answer at a time."""
MAX_SPANS = 32
_MAX_TAG = (1 << 64) - 1
_MAX_SERIAL = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperQuery:
    """Who has something of this group's log?"""

    site: SiteId
    serial: int
    """Comes back in the answers."""
    group: int
    """The tag of the group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperAnswer:
    """This site has; it is served there to who shows the token."""

    site: SiteId
    serial: int
    group: int
    name: str
    """What people call the site."""
    host: str
    port: int
    token: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperCommit:
    """A named subscription has come so far."""

    site: SiteId
    group: int
    service: str
    name: str
    cut: bytes
    """As msgpack; empty where the subscription ends."""
    stamp: Timestamp
    """The latest word counts."""


Span = tuple[MemberId, int, int]
"""A sender, and the first and the last seq of what is meant of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingQuery:
    """Do these sites have that in their logs?"""

    site: SiteId
    serial: int
    group: int
    asked: tuple[int, ...]
    """Keys of sites; all others are silent."""
    spans: tuple[Span, ...]
    waits: bool
    """Whether to answer once all of it is there, and not before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingAnswer:
    """What one of them has of it."""

    site: SiteId
    serial: int
    group: int
    holder: int
    spans: tuple[Span, ...]


KeepingMessage = KeeperQuery | KeeperAnswer | KeeperCommit | HoldingQuery | HoldingAnswer
KEEPING_MESSAGES = (KeeperQuery, KeeperAnswer, KeeperCommit, HoldingQuery, HoldingAnswer)
KEEPING_TYPES = frozenset(
    {
        FrameType.KEEPER_QUERY,
        FrameType.KEEPER_ANSWER,
        FrameType.KEEPER_COMMIT,
        FrameType.HOLDING_QUERY,
        FrameType.HOLDING_ANSWER,
    }
)


def encode_keeping(message: KeepingMessage) -> tuple[FrameType, bytes]:
    match message:
        case KeeperQuery(serial=serial, group=group):
            return FrameType.KEEPER_QUERY, msgpack.packb([serial, group])
        case KeeperAnswer(serial=serial, group=group):
            body = [serial, group, message.name, message.host, message.port, message.token]
            return FrameType.KEEPER_ANSWER, msgpack.packb(body)
        case KeeperCommit():
            commit = [message.group, message.service, message.name, message.cut, message.stamp]
            return FrameType.KEEPER_COMMIT, msgpack.packb(commit)
        case HoldingQuery(serial=serial, group=group):
            query = [serial, group, message.asked, message.spans, message.waits]
            return FrameType.HOLDING_QUERY, msgpack.packb(query)
        case HoldingAnswer(serial=serial, group=group):
            return FrameType.HOLDING_ANSWER, msgpack.packb([serial, group, message.holder, message.spans])


def decode_keeping(kind: FrameType, sender: int, body: bytes) -> KeepingMessage | None:
    """The message in a body, or None where the body is not one."""
    try:
        if kind is FrameType.KEEPER_QUERY:
            serial, group = array(unpacked(body), 2)
            return KeeperQuery(site=SiteId(sender), serial=integer(serial, _MAX_SERIAL), group=integer(group, _MAX_TAG))
        if kind is FrameType.KEEPER_COMMIT:
            group, service, name, cut, stamp = array(unpacked(body), 5)
            return KeeperCommit(
                site=SiteId(sender),
                group=integer(group, _MAX_TAG),
                service=text(service),
                name=text(name),
                cut=octets(cut),
                stamp=timestamp(stamp),
            )
        if kind is FrameType.HOLDING_QUERY:
            serial, group, asked, spans, waits = array(unpacked(body), 5)
            return HoldingQuery(
                site=SiteId(sender),
                serial=integer(serial, _MAX_SERIAL),
                group=integer(group, _MAX_TAG),
                asked=many(site_key)(asked),
                spans=many(span)(spans),
                waits=truth(waits),
            )
        if kind is FrameType.HOLDING_ANSWER:
            serial, group, holder, spans = array(unpacked(body), 4)
            return HoldingAnswer(
                site=SiteId(sender),
                serial=integer(serial, _MAX_SERIAL),
                group=integer(group, _MAX_TAG),
                holder=site_key(holder),
                spans=many(span)(spans),
            )
        serial, group, name, host, port, token = array(unpacked(body), 6)
        if len(octets(token)) != TOKEN_BYTES:
            return None
        return KeeperAnswer(
            site=SiteId(sender),
            serial=integer(serial, _MAX_SERIAL),
            group=integer(group, _MAX_TAG),
            name=text(name),
            host=text(host),
            port=integer(port, 65_535),
            token=octets(token),
        )
    except (BadBody, ValueError, TypeError, msgpack.UnpackException, RecursionError):
        return None
