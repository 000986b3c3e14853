"""The language of the local channel between a process and its site's agent: numbered requests, answers and events.

A message is a 32-bit length and a msgpack array [kind, number, body]. The number of a request comes back in its answer;
an event carries the number of the stream it belongs to. Kinds are append-only, and both sides say their version first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple

import msgpack

from intergroup_core import errors
from intergroup_core.errors import ChannelBroken, IntergroupError

VERSION = 1
MAX_MESSAGE_BYTES = 64_000_000
"""More is no message: what is sent at a time is cut smaller than this."""
_LENGTH = struct.Struct("<I")


class Kind(IntEnum):
    """What a message is; append only."""

    HELLO = 1
    """Both sides' first word: their version, and who the client is."""
    ANSWER = 2
    FAILURE = 3
    OPEN = 4
    """Be a member of a group, or use the one that this site has."""
    JOINED = 5
    """Answered once there is a view, or one with this member among the senders."""
    SEND = 6
    FLUSH = 7
    """Answered once all that this client sent has reached a level."""
    SUBSCRIBE = 8
    """Read the log from some place on."""
    NEXT = 9
    """So much was read; answered once there is more."""
    MEMBERS = 10
    CLOSE = 11
    STATUS = 12
    STOP = 13
    STREAMS = 14
    """Between sites: what is there of a group."""
    FETCH = 15
    """Between sites: a range, which comes as blocks before the answer."""
    BLOCK = 16
    HISTORY = 17
    """How to read on from a cut: in an older log, or in the one that grows."""
    HEAD = 18
    """Up to where a stream may be planned, at a level."""
    KEEP = 19
    """Stay in a group although no client uses it."""
    COMMIT = 20
    """A named subscription has come so far, or ends."""
    COMMITTED = 21
    """How far a named subscription has come."""
    PLAN = 22
    """Up to where a reader may plan, at a level, and up to which timestamp nothing more comes before that."""
    HOLD = 23
    """A reader needs nothing any more that lies before an entry."""
    EARLIEST = 24
    """The cut before everything that any site has."""
    KEEPERS = 25
    """Who has something of a group's log, this site first."""
    FILL = 26
    """Fetch a range that this site's log skipped, or in which it is damaged."""
    HOLDERS = 27
    """Sites on whose logs of a group others may rely."""
    RELEASE = 28
    """One of them is gone for good."""
    STAGE = 29
    """Messages that are made already, mostly of a transaction."""
    STAGED = 30
    """Answered once all that was staged has reached a level, with where it stands."""
    TRANSACT = 31
    """Make a transaction visible."""
    ABANDON = 32
    """Nobody will make a transaction visible any more."""
    COMMITTED_VERSION = 33
    """The last version of an application that is visible."""


class Said(NamedTuple):
    """One message."""

    kind: Kind
    number: int
    body: Any


def encode(kind: Kind, number: int, body: Any = None) -> bytes:
    packed: bytes = msgpack.packb([kind, number, body])
    if len(packed) > MAX_MESSAGE_BYTES:
        raise ChannelBroken(f"a message of {len(packed)} bytes does not fit the channel; send less at a time")
    return _LENGTH.pack(len(packed)) + packed


def encode_failure(number: int, error: IntergroupError) -> bytes:
    """An error that the other side raises as what it is."""
    return encode(Kind.FAILURE, number, [type(error).__name__, str(error)])


def failure(body: Any) -> IntergroupError:
    """The error that a failure is about; one that this version does not know is at least an IntergroupError."""
    match body:
        case [str(name), str(text)]:
            kind = getattr(errors, name, None)
            if isinstance(kind, type) and issubclass(kind, IntergroupError):
                return kind(text)
            return IntergroupError(text)
    return ChannelBroken(f"the other side failed and did not say why: {body!r:.100}")


class Decoder:
    """Puts messages together from bytes as they come."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes | memoryview) -> Iterator[Said]:
        """The messages that are complete now; ChannelBroken where the bytes are none."""
        self._rest += data
        start = 0
        try:
            while len(self._rest) - start >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(self._rest, start)
                if length > MAX_MESSAGE_BYTES:
                    raise ChannelBroken(f"a message says that it has {length} bytes, at most {MAX_MESSAGE_BYTES} go")
                end = start + _LENGTH.size + length
                if end > len(self._rest):
                    break
                message = bytes(self._rest[start + _LENGTH.size : end])
                start = end
                yield _decoded(message)
        finally:
            del self._rest[:start]


def _decoded(message: bytes) -> Said:
    try:
        kind, number, body = msgpack.unpackb(message)
        known = Kind(kind)
    except (ValueError, TypeError, msgpack.UnpackException, RecursionError) as error:
        raise ChannelBroken(f"what came is no message of this channel: {error}") from error
    if not isinstance(number, int) or isinstance(number, bool):
        raise ChannelBroken(f"a message has the number {number!r:.100}")
    return Said(known, number, body)
