"""The states of the membership protocol and the events that move it (T5.2.1, T5.3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from intergroup_core.ids import MemberId, Timestamp
from intergroup_core.wire.membership import Change


class State(Enum):
    """Bootstrap, the two stable states, the ways between them, and the states of both repair algorithms."""

    BOOTSTRAP = "bootstrap"
    RECEIVER = "receiver"
    TO_SENDER = "to sender"
    SENDER = "sender"
    TO_RECEIVER = "to receiver"
    CONSENSUS = "consensus"
    GATHER_CUT = "gather cut"
    GATHER_RECOVERY = "gather recovery"
    RECOVERY = "recovery"
    GATHER_READY = "gather ready"
    WAIT_FOR_CHANGE = "wait for change"
    RECEIVER_WAIT = "receiver wait"
    RECEIVER_RECOVERY = "receiver recovery"
    LEFT = "left"


REPAIR = frozenset(
    {
        State.CONSENSUS,
        State.GATHER_CUT,
        State.GATHER_RECOVERY,
        State.RECOVERY,
        State.GATHER_READY,
        State.WAIT_FOR_CHANGE,
    }
)
"""The membership repair algorithm (T5.4)."""
RECEIVER_REPAIR = frozenset({State.RECEIVER_WAIT, State.RECEIVER_RECOVERY})
"""The receivers' algorithm (T5.5)."""


@dataclass(frozen=True, slots=True)
class Failed:
    """PFailure: a watched member has been silent for too long."""

    process: MemberId


@dataclass(frozen=True, slots=True)
class Foreign:
    """PForeign: a frame of a view that is not in this member's history."""

    process: MemberId
    tag: int


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Nobody repaired a frame for too long (R2)."""

    process: MemberId
    seq: int


@dataclass(frozen=True, slots=True)
class ToSender:
    """This member has something to send."""


@dataclass(frozen=True, slots=True)
class ToReceiver:
    """This member stops sending."""

    reason: str


@dataclass(frozen=True, slots=True)
class Changed:
    """An ordered membership message was delivered."""

    change: Change
    source: MemberId
    seq: int
    timestamp: Timestamp
