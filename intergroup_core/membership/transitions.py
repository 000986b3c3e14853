"""Every way from one state of the membership protocol to another: the table behind the drawing in docs/protocol.md.

Whatever simulations meet must be in it, and they must have met everything in it, so that no step can be forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping

from intergroup_core.membership.states import REPAIR, State

ANYWHERE_IN_REPAIR = "repair"
"""Stands for every state of a repair, where what happens does not depend on which."""

Origin = State | str

DRAWN: tuple[tuple[Origin, State, str], ...] = (
    (State.BOOTSTRAP, State.RECEIVER, "sponsored, or saw a first view"),
    (State.BOOTSTRAP, State.CONSENSUS, "wants to send and nobody is there, or a fellow newcomer calls"),
    (State.BOOTSTRAP, State.LEFT, "refused, or told to go"),
    (State.RECEIVER, State.TO_SENDER, "has data"),
    (State.RECEIVER, State.CONSENSUS, "has data and the view is empty"),
    (State.RECEIVER, State.SENDER, "somebody acted on a request of long ago"),
    (State.RECEIVER, State.RECEIVER_WAIT, "Join of a sender of the view"),
    (State.RECEIVER, State.RECEIVER_RECOVERY, "a change that ends the epoch"),
    (State.RECEIVER, State.BOOTSTRAP, "gap"),
    (State.RECEIVER, State.LEFT, "told to go"),
    (State.TO_SENDER, State.SENDER, "its Add is delivered"),
    (State.TO_SENDER, State.CONSENSUS, "Join, failure, foreign frame, accusation, no sender left"),
    (State.TO_SENDER, State.RECEIVER_RECOVERY, "a change that ends the epoch"),
    (State.TO_SENDER, State.BOOTSTRAP, "gap"),
    (State.TO_SENDER, State.LEFT, "told to go"),
    (State.SENDER, State.TO_RECEIVER, "silence, or told to go"),
    (State.SENDER, State.CONSENSUS, "Join, failure, foreign frame, accusation, excluded, no quorum"),
    (State.TO_RECEIVER, State.RECEIVER, "its Leave is delivered"),
    (State.TO_RECEIVER, State.SENDER, "it is the last sender"),
    (State.TO_RECEIVER, State.CONSENSUS, "Join, failure, accusation, excluded"),
    (State.RECEIVER_WAIT, State.RECEIVER_RECOVERY, "a change that ends the epoch"),
    (State.RECEIVER_WAIT, State.BOOTSTRAP, "gap"),
    (State.RECEIVER_WAIT, State.LEFT, "told to go"),
    (State.RECEIVER_RECOVERY, State.RECEIVER, "everything up to the cut is here"),
    (State.RECEIVER_RECOVERY, State.BOOTSTRAP, "gap"),
    (State.RECEIVER_RECOVERY, State.LEFT, "told to go"),
    (State.CONSENSUS, State.GATHER_CUT, "all said the same"),
    (State.GATHER_CUT, State.GATHER_RECOVERY, "time"),
    (State.GATHER_RECOVERY, State.RECOVERY, "everybody's information"),
    (State.RECOVERY, State.GATHER_READY, "everything up to the cut is here, and it leads"),
    (State.RECOVERY, State.WAIT_FOR_CHANGE, "everything up to the cut is here"),
    (State.GATHER_READY, State.WAIT_FOR_CHANGE, "all are ready"),
    (State.WAIT_FOR_CHANGE, State.SENDER, "the change"),
    (State.WAIT_FOR_CHANGE, State.RECEIVER, "the change, after it had left"),
    (State.GATHER_CUT, State.CONSENSUS, "restart"),
    (State.GATHER_RECOVERY, State.CONSENSUS, "restart"),
    (State.RECOVERY, State.CONSENSUS, "restart"),
    (State.GATHER_READY, State.CONSENSUS, "restart"),
    (State.WAIT_FOR_CHANGE, State.CONSENSUS, "restart"),
    (ANYWHERE_IN_REPAIR, State.SENDER, "the change of an earlier attempt for which it was ready"),
    (ANYWHERE_IN_REPAIR, State.RECEIVER, "the same, after it had left"),
    (ANYWHERE_IN_REPAIR, State.RECEIVER_RECOVERY, "a change without it, and it only wanted to join"),
    (ANYWHERE_IN_REPAIR, State.BOOTSTRAP, "gap"),
)
"""From, to, and why, in the order of the drawing."""

RESTARTS = ("failure", "join", "excluded", "block")
"""Why a repair goes back to consensus: a suspicion, other sets, being blamed by another, an accusation."""

_OF_REPAIR = frozenset(state.value for state in REPAIR)


def named(before: Origin, after: State) -> str:
    """How the drawing calls a step."""
    return f"{before.value if isinstance(before, State) else before}>{after.value}"


NAMES = tuple(named(before, after) for before, after, _ in DRAWN)


def drawn(transitions: Mapping[str, int]) -> dict[str, int]:
    """How often each step of the drawing was met, from counts of `state>state: reason`; zero where it never was.

    A step that is not drawn is a KeyError.
    """
    found = dict.fromkeys(NAMES, 0)
    for key, count in transitions.items():
        step = key.split(":", 1)[0]
        before, after = step.split(">")
        if step not in found and before in _OF_REPAIR:
            step = f"{ANYWHERE_IN_REPAIR}>{after}"
        found[step] += count
    return found


def restarted(restarts: Mapping[str, int]) -> dict[str, int]:
    """How often repairs began again for each reason, from counts of `state: reason`."""
    found = dict.fromkeys(RESTARTS, 0)
    for key, count in restarts.items():
        found[key.split(": ", 1)[1]] += count
    return found
