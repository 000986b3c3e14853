"""Labels: which transaction the records of a message are staged for, and by which attempt."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import msgpack

from intergroup_core.wire.fields import BadBody, array, integer, unpacked

MAX_APPLICATION_BYTES = 128
"""Of the text that names an application or a run."""
KEY_BYTES = 12
MAX_VERSION = 1 << 53
MAX_ATTEMPT = (1 << 64) - 1
MAX_TIMEOUT_S = 7 * 86_400
MAX_LABEL_BYTES = 320
"""Of a whole label; more than any has."""
_REMEMBERED = 1_024
"""Labels: those of one attempt are all alike."""


@dataclass(frozen=True, slots=True)
class Label:
    """What is written before staged records."""

    app: str
    """Who writes: a query, or whatever else counts its transactions up."""
    run: str
    """Of the application: a new one makes those before it void."""
    version: int
    """Of the application's transactions."""
    attempt: int
    """Random; of several attempts at the same records only the one that a proposal names counts."""
    timeout_s: int
    """How long after its first record, in the group's time, the transaction may be proposed."""

    @property
    def txn(self) -> str:
        return f"{self.app}/{self.version}"


def encode_label(label: Label) -> bytes:
    packed: bytes = msgpack.packb([label.app, label.run, label.version, label.attempt, label.timeout_s])
    return packed


def decode_label(data: bytes | memoryview) -> Label | None:
    """The label in these bytes, None where they are none."""
    try:
        app, run, version, attempt, timeout_s = array(unpacked(bytes(data)), 5)
        return Label(
            application(app),
            application(run),
            integer(version, MAX_VERSION),
            positive(attempt, MAX_ATTEMPT),
            positive(timeout_s, MAX_TIMEOUT_S),
        )
    except (BadBody, ValueError, TypeError, msgpack.UnpackException, RecursionError):
        return None


@lru_cache(maxsize=_REMEMBERED)
def remembered_label(data: bytes) -> Label | None:
    """The same, decoded once where it comes again."""
    return decode_label(data)


def application(value: object) -> str:
    """The name of an application or of a run."""
    if type(value) is not str or not value or len(value.encode()) > MAX_APPLICATION_BYTES:
        raise BadBody
    return value


@lru_cache(maxsize=1_024)
def key_of(name: str) -> bytes:
    """A name as it is remembered: short, whatever people call an application or a run."""
    return hashlib.blake2b(name.encode(), digest_size=KEY_BYTES).digest()


def application_key(value: object) -> bytes:
    if type(value) is not bytes or len(value) != KEY_BYTES:
        raise BadBody
    return value


def positive(value: object, most: int) -> int:
    number = integer(value, most)
    if not number:
        raise BadBody
    return number
