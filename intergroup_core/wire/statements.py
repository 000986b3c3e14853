"""Statements: ordered messages that are for the members of a group themselves and not for its applications.

They travel, are kept and are repaired as data is. Their payload begins, where others have the number of their records,
with a word whose upper byte says that there are none; the rest is a msgpack array that begins with a kind.

    HOLDING    [kind, site, name, holds, seconds]
    RESTATED   [kind, ledger]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgpack
import numpy as np

from intergroup_core.wire.chunk import Chunk, Message
from intergroup_core.wire.fields import BadBody, array, integer, ledger, site_key, text, truth, unpacked
from intergroup_core.wire.header import HEADER_WORDS
from intergroup_core.wire.records import COUNT_BYTES, Payload

LAYOUT_SHIFT = 24
STATEMENT = 0x80
"""The layout of a payload that is a statement."""
HOLDING, RESTATED = 1, 2
"""Kinds; append only."""
MAX_SECONDS = 10 * 366 * 86_400
_LOW32 = 0xFFFFFFFF
_BEGIN = (STATEMENT << LAYOUT_SHIFT).to_bytes(COUNT_BYTES, "little")


@dataclass(frozen=True, slots=True)
class Holding:
    """A site has the group's log, and others may rely on it for so many seconds; or, from here on, they may not."""

    site: int
    name: str
    holds: bool
    seconds: int


@dataclass(frozen=True, slots=True)
class Restated:
    """What those who come from one of several views know, for the others that met them."""

    ledger: bytes


Statement = Holding | Restated


def encode_statement(statement: Statement) -> Payload:
    match statement:
        case Holding(site=site, name=name, holds=holds, seconds=seconds):
            body = msgpack.packb([HOLDING, site, name, holds, seconds])
        case Restated(ledger=stated):
            body = msgpack.packb([RESTATED, stated])
    return Payload(_BEGIN, body)


def decode_statement(payload: bytes) -> Statement | None:
    """The statement in a payload, or None where it is not one that this version knows."""
    if payload[:COUNT_BYTES] != _BEGIN:
        return None
    try:
        kind, *fields = array(unpacked(payload[COUNT_BYTES:]))
        if kind == HOLDING:
            site, name, holds, seconds = array(fields, 4)
            return Holding(site_key(site), text(name), truth(holds), integer(seconds, MAX_SECONDS))
        if kind == RESTATED:
            return Restated(ledger(array(fields, 1)[0]))
    except (BadBody, ValueError, TypeError, msgpack.UnpackException, RecursionError):
        pass
    return None


def statements_in(chunk: Chunk) -> Iterator[tuple[Message, Statement]]:
    """The statements among the messages of a chunk; where there is none, that costs a look at their first words."""
    if not _may_state(chunk):
        return
    for message in chunk.messages():
        if message.payload[:COUNT_BYTES].tobytes() == _BEGIN:
            statement = decode_statement(message.payload.tobytes())
            if statement is not None:
                yield message, statement


def _may_state(chunk: Chunk) -> bool:
    run = chunk.run
    if run.frames.shape[1] == HEADER_WORDS:
        return False
    first = chunk.head[0].frames[0] if chunk.head else run.frames[0]
    if int(first[HEADER_WORDS]) & _LOW32 == STATEMENT << LAYOUT_SHIFT:
        return True
    if len(run.ends) == 1:
        return False
    starts = np.array(run.ends[:-1], dtype=np.int64) + 1
    words = run.frames[starts, HEADER_WORDS] & np.uint64(_LOW32)
    return bool((words == STATEMENT << LAYOUT_SHIFT).any())
