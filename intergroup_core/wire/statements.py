"""Statements: ordered messages that are for the members of a group themselves and not for its applications.

They travel, are kept and are repaired as data is. Their payload begins, where others have the number of their records,
with a word whose upper byte says that there are none; the rest is a msgpack array that begins with a kind.

    HOLDING      [kind, site, name, holds, seconds, since when where it says so again]
    RESTATED     [kind, ledger]
    GATHERING    [kind, nonce]
    ESTABLISHED  [kind, nonce, probe, sites]
    PROPOSED     [kind, nonce, app, run, version, lasting, timeout_s, attempts]
    DECIDED      [kind, nonce, app, version, proposer, seq, probe, sites]
    ABANDONED    [kind, app, run, version]
    CARRIED      [kind, proposer, seq, and what a proposal says from its nonce on]

Whoever makes a statement finds it again by its nonce when it is delivered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgpack

from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.wire.attempts import Staged, attempts_of, packed_attempts
from intergroup_core.wire.chunk import Chunk, Message
from intergroup_core.wire.fields import (
    BadBody,
    array,
    integer,
    ledger,
    member,
    serial,
    site_key,
    text,
    timestamp,
    truth,
    unpacked,
)
from intergroup_core.wire.glance import is_plain
from intergroup_core.wire.labels import MAX_TIMEOUT_S, MAX_VERSION, application, application_key, positive
from intergroup_core.wire.records import COUNT_BYTES, LAYOUT_SHIFT, Payload

STATEMENT = 0x80
"""The layout of a payload that is a statement."""
HOLDING, RESTATED, GATHERING, ESTABLISHED, PROPOSED, DECIDED, ABANDONED, CARRIED = range(1, 9)
"""Kinds; append only."""
MAX_SECONDS = 10 * 366 * 86_400
FIRST_WORD = STATEMENT << LAYOUT_SHIFT
_BEGIN = FIRST_WORD.to_bytes(COUNT_BYTES, "little")


@dataclass(frozen=True, slots=True)
class Holding:
    """A site has the group's log, and others may rely on it for so many seconds; or, from here on, they may not."""

    site: int
    name: str
    holds: bool
    seconds: int
    since: int = 0
    """When it began to hold it, where it has said so before and not ceased; only the site itself can tell."""


@dataclass(frozen=True, slots=True)
class Restated:
    """What those who come from one of several views know, for the others that met them."""

    ledger: bytes


@dataclass(frozen=True, slots=True)
class Gathering:
    """Whoever is in the view is to say what it knows, once after each repair; said again it says nothing more."""

    nonce: int


@dataclass(frozen=True, slots=True)
class Established:
    """These sites have everything up to a place behind which all in the view had said what they know."""

    nonce: int
    probe: Timestamp
    sites: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Proposed:
    """A transaction is to become visible, with the rows of these attempts and no others."""

    nonce: int
    app: str
    run: str
    version: int
    lasting: bool
    """Whether the application goes on to other versions, so that its last one must be remembered."""
    timeout_s: int
    attempts: tuple[Staged, ...]


@dataclass(frozen=True, slots=True)
class Decided:
    """These sites have a proposal: it is visible from here on."""

    nonce: int
    app: bytes
    """The key by which an application is remembered."""
    version: int
    proposer: MemberId
    seq: int
    probe: Timestamp
    """A place that these sites have, not before the one where it became a candidate."""
    sites: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Nobody will propose this any more; what has been proposed stays."""

    app: str
    run: str
    version: int


@dataclass(frozen=True, slots=True)
class Carried:
    """A proposal that may be a candidate and that some do not have, because they were elsewhere: what it said."""

    proposer: MemberId
    seq: int
    proposed: Proposed


Statement = Holding | Restated | Gathering | Established | Proposed | Decided | Abandoned | Carried


def encode_statement(statement: Statement) -> Payload:
    match statement:
        case Holding(site=site, name=name, holds=holds, seconds=seconds, since=since):
            body: list[Any] = [HOLDING, site, name, holds, seconds, *([since] if since else ())]
        case Restated(ledger=stated):
            body = [RESTATED, stated]
        case Gathering(nonce=nonce):
            body = [GATHERING, nonce]
        case Established(nonce=nonce, probe=probe, sites=sites):
            body = [ESTABLISHED, nonce, probe, sites]
        case Proposed():
            body = [PROPOSED, *_listed(statement)]
        case Decided():
            body = [DECIDED, statement.nonce, statement.app, statement.version, statement.proposer, statement.seq]
            body += [statement.probe, statement.sites]
        case Abandoned(app=app, run=run, version=version):
            body = [ABANDONED, app, run, version]
        case Carried(proposer=proposer, seq=seq, proposed=proposed):
            body = [CARRIED, proposer, seq, *_listed(proposed)]
    return Payload(_BEGIN, msgpack.packb(body))


def _listed(proposed: Proposed) -> list[Any]:
    stated = [proposed.nonce, proposed.app, proposed.run, proposed.version, proposed.lasting, proposed.timeout_s]
    return [*stated, packed_attempts(proposed.attempts)]


def decode_statement(payload: bytes) -> Statement | None:
    """The statement in a payload, or None where it is not one that this version knows."""
    if payload[:COUNT_BYTES] != _BEGIN:
        return None
    try:
        kind, *fields = array(unpacked(payload[COUNT_BYTES:]))
        return _statement(kind, fields)
    except (BadBody, ValueError, TypeError, msgpack.UnpackException, RecursionError):
        return None


def _statement(kind: object, fields: list[Any]) -> Statement | None:
    match kind:
        case 1:
            site, name, holds, seconds, *since = array(fields)
            begun = timestamp(*since) if since else 0
            return Holding(site_key(site), text(name), truth(holds), integer(seconds, MAX_SECONDS), begun)
        case 2:
            return Restated(ledger(array(fields, 1)[0]))
        case 3:
            return Gathering(serial(array(fields, 1)[0]))
        case 4:
            nonce, probe, sites = array(fields, 3)
            return Established(serial(nonce), timestamp(probe), _sites(sites))
        case 5:
            return _proposed(fields)
        case 6:
            nonce, app, version, proposer, seq, probe, sites = array(fields, 7)
            return Decided(
                serial(nonce),
                application_key(app),
                integer(version, MAX_VERSION),
                member(proposer),
                integer(seq),
                timestamp(probe),
                _sites(sites),
            )
        case 7:
            app, run, version = array(fields, 3)
            return Abandoned(application(app), application(run), integer(version, MAX_VERSION))
        case 8:
            proposer, seq, *proposal = fields
            return Carried(member(proposer), integer(seq), _proposed(proposal))
    return None


def _proposed(fields: list[Any]) -> Proposed:
    nonce, *proposal = array(fields, 7)
    return proposed_of(serial(nonce), proposal)


def proposed_of(nonce: int, fields: object) -> Proposed:
    """What is proposed, of fields that somebody else sent; BadBody where they are none."""
    app, run, version, lasting, timeout_s, attempts = array(fields, 6)
    return Proposed(
        nonce,
        application(app),
        application(run),
        integer(version, MAX_VERSION),
        truth(lasting),
        positive(timeout_s, MAX_TIMEOUT_S),
        attempts_of(attempts),
    )


def _sites(value: object) -> tuple[int, ...]:
    return tuple(site_key(site) for site in array(value))


def statements_in(chunk: Chunk) -> Iterator[tuple[Message, Statement]]:
    """The statements among the messages of a chunk; where there is none, that costs a look at their first words."""
    if is_plain(chunk):
        return
    for message in chunk.messages():
        if message.payload[:COUNT_BYTES].tobytes() == _BEGIN:
            statement = decode_statement(message.payload.tobytes())
            if statement is not None:
                yield message, statement
