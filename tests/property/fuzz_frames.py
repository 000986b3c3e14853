"""Malformed frames by the million: nothing may raise, nothing may change, everything is counted by cause.

python tests/property/fuzz_frames.py --frames 1000000 --seed 1
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from intergroup_core.endpoint import Endpoint
from intergroup_core.ids import Instant, Service, View
from tests.builders import (
    START,
    T0,
    VIEW,
    A,
    B,
    C,
    R,
    a_control_frame,
    a_keepalive,
    a_live_part,
    a_message,
    a_report,
    after,
    an_arrival,
    an_endpoint,
    hears,
    millis,
)
from tests.membership_builders import a_change_frame, a_join, a_live_endpoint, a_live_receiver, an_add
from tests.property.malformed import FIRST_SEQ, Malformed
from tests.property.state import differences, state_of

BATCH = 400
"""Frames between two comparisons of the whole state."""
MOST_IN_ARRIVAL = 48
PROGRESS = 100_000
UNDER_FIRE = after(millis(3))

HOSTILE_TO_UNRELIABLE = ("stranger's data", "other view's data", "stranger's data in a repair")
"""Unreliable delivery hands over what the network brings, whoever sent it (T4.6)."""
NEWS_TO_LIVE = (
    *HOSTILE_TO_UNRELIABLE,
    "stranger's keep-alive",
    "other view's keep-alive",
    "other view's frame in a repair",
    "stranger's report",
    "stranger's request",
    "other view's report",
    "other view's request",
)
"""Where views change, strangers and other views are what membership is about; none of it is malformed."""
LIVE = ("newcomer", "live receiver", "live sender", "repairing sender")


def a_live_sender() -> Endpoint:
    """A member that B and C took in, in the view that frames name by default."""
    member = a_live_receiver(A, view=View(id=VIEW.id, members=(B, C)), sender=True)
    hears(
        member,
        a_change_frame(an_add(A), B, 1, START + 2_000),
        a_keepalive(C, 0, START + 2_500),
        *(a_control_frame(a_report(each, live=a_live_part(ready=START + 2_000))) for each in (B, C)),
        now=T0,
    )
    assert member.state == "sender"
    return member


def a_repairing_sender() -> Endpoint:
    member = a_live_sender()
    hears(member, a_control_frame(a_join(B)), now=T0)
    assert member.state == "consensus"
    return member


def first_of_b(me: str) -> int:
    """The first data of B, which took a live sender in before."""
    return 2 if me in ("live sender", "repairing sender") else 1


def a_newcomer() -> Endpoint:
    member = a_live_endpoint(R)
    member.start(T0)
    return member


def a_member_with_a_history(me: str = "sender") -> Endpoint:
    """A member in the midst of things: own data unstable, a gap, half a message, a message that waits for promises."""
    member = {
        "sender": lambda: an_endpoint(A, counted=(A, B, C, R)),
        "receiver": lambda: an_endpoint(R, counted=(A, B, C, R)),
        "source-ordered receiver": lambda: an_endpoint(R, counted=(A, B, C, R), service=Service.RSO),
        "unreliable sender": lambda: an_endpoint(A, counted=(A, B, C, R), service=Service.UU),
        "newcomer": a_newcomer,
        "live receiver": lambda: a_live_receiver(R),
        "live sender": a_live_sender,
        "repairing sender": a_repairing_sender,
    }[me]()
    if me not in LIVE:
        member.start(T0)
    if me == "newcomer":
        member.tick(UNDER_FIRE)
        return member
    known = [
        *a_message([b"first"], sender=B, seq=first_of_b(me), timestamp=START + 4_000),
        *a_message([b"second"], sender=B, seq=first_of_b(me) + 2, timestamp=START + 4_010),
        *a_message([b"half of it" * 20], sender=C, seq=1, timestamp=START + 4_100, body=80)[:2],
        a_keepalive(C, 2, START + 5_000),
        a_keepalive(B, FIRST_SEQ - 1, START + 6_000),
        a_control_frame(a_report(C, serial=4, acknowledged=START + 100, contiguous={A: 1}, room_frames=9)),
    ]
    member.receive(an_arrival(*known), after(millis(1)))
    if member.is_sender:
        member.send([b"mine", b"my own"], after(millis(2)))
    member.tick(UNDER_FIRE)
    return member


MEMBERS = (*LIVE, "sender", "receiver", "source-ordered receiver", "unreliable sender")


@dataclass
class Finding:
    """A frame that did what no malformed frame may."""

    member: str
    kind: str
    frame: bytes
    what: str

    def __str__(self) -> str:
        shown = self.frame.hex() if len(self.frame) <= 512 else f"{self.frame[:512].hex()}... ({len(self.frame)} bytes)"
        return f"{self.kind}, to a {self.member}: {self.what}\n  {shown}"


@dataclass
class Outcome:
    frames: int = 0
    dropped: dict[str, Counter[str]] = field(default_factory=dict)
    """By kind of frame, then by the cause it was counted under."""
    findings: list[Finding] = field(default_factory=list)

    def causes(self) -> Counter[str]:
        return sum(self.dropped.values(), Counter[str]())

    def table(self) -> str:
        width = max(map(len, self.dropped), default=0)
        rows = [
            f"{kind:{width}}  {', '.join(f'{cause} {count}' for cause, count in sorted(causes.items()))}"
            for kind, causes in sorted(self.dropped.items())
        ]
        return "\n".join([*rows, f"{'all':{width}}  {', '.join(f'{c} {n}' for c, n in sorted(self.causes().items()))}"])


class Fire:
    """Feeds malformed frames to one member, many in an arrival, and looks whether it noticed."""

    def __init__(self, member: str, malformed: Malformed, kinds: Sequence[str], rng: Random) -> None:
        self._name = member
        self._malformed = malformed
        sound = {"unreliable sender": HOSTILE_TO_UNRELIABLE} | dict.fromkeys(LIVE, NEWS_TO_LIVE)
        self.kinds = [kind for kind in kinds if kind not in sound.get(member, ())]
        self._rng = rng
        self.member = a_member_with_a_history(member)
        self._before = state_of(self.member)

    def batch(self, frames: int, outcome: Outcome) -> None:
        fed: list[tuple[str, bytes]] = []
        while len(fed) < frames:
            kind = self._rng.choice(self.kinds)
            count = min(self._rng.choice((1, 1, 2, 8, MOST_IN_ARRIVAL)), frames - len(fed))
            together = [(kind, self._malformed.frame(kind)) for _ in range(count)]
            fed += together
            if not self._receive(together, outcome):
                return
        outcome.frames += len(fed)
        if state_of(self.member) != self._before:
            outcome.findings.append(self._culprit(fed))

    def aftermath(self) -> Finding | None:
        """What a member that was under fire does next is what one that never was does."""
        twin = a_member_with_a_history(self._name)
        arriving = {
            5: a_message([b"missing"], sender=B, seq=first_of_b(self._name) + 1, timestamp=START + 4_005),
            9: a_message([b"half of it" * 20], sender=C, seq=1, timestamp=START + 4_100, body=80)[2:],
            20: [a_keepalive(C, 3, START + 9_000), a_keepalive(A, 1, START + 9_000), a_control_frame(a_report(B))],
        }
        for at in range(4, 400):
            now, frames = after(millis(at)), arriving.get(at, [])
            if _effects(self.member, frames, now) != _effects(twin, frames, now):
                return Finding(self._name, "all", b"", f"differs after {at} ms from one that was left in peace")
        return None

    def _receive(self, together: list[tuple[str, bytes]], outcome: Outcome) -> bool:
        kind = together[0][0]
        counted = dict(self.member.counters.dropped)
        arrival = an_arrival(*(frame for _, frame in together))
        try:
            effects = self.member.receive(arrival, UNDER_FIRE)
        except Exception as error:
            outcome.findings.append(self._first(together, f"raised {error!r}"))
            return False
        new = Counter(self.member.counters.dropped)
        new.subtract(counted)
        outcome.dropped.setdefault(kind, Counter()).update(+new)
        if effects:
            outcome.findings.append(self._first(together, f"had effects: {effects}"[:300]))
        elif new.total() != len(together):
            outcome.findings.append(self._first(together, f"{len(together)} frames, counted as {dict(+new)}"))
        return not outcome.findings

    def _first(self, together: list[tuple[str, bytes]], what: str) -> Finding:
        """The first of some frames that goes wrong by itself; the first of all where only together they do."""
        for kind, frame in together:
            member = a_member_with_a_history(self._name)
            try:
                effects = member.receive(an_arrival(frame), UNDER_FIRE)
            except Exception as error:
                return Finding(self._name, kind, frame, f"raised {error!r}")
            if effects or sum(member.counters.dropped.values()) != 1:
                return Finding(self._name, kind, frame, f"{effects}, counted as {member.counters.dropped}"[:300])
        return Finding(self._name, *together[0], f"{what}, in an arrival of {len(together)}")

    def _culprit(self, fed: list[tuple[str, bytes]]) -> Finding:
        changed = differences(self._before, state_of(self.member))
        for kind, frame in fed:
            member = a_member_with_a_history(self._name)
            before = state_of(member)
            member.receive(an_arrival(frame), UNDER_FIRE)
            if (now := state_of(member)) != before:
                return Finding(self._name, kind, frame, f"changed {differences(before, now)}")
        return Finding(self._name, fed[0][0], fed[0][1], f"changed {changed}, in a batch of {len(fed)}")


def fuzz(
    frames: int,
    seed: int,
    *,
    kinds: Sequence[str] | None = None,
    members: Sequence[str] = MEMBERS,
    malformed: Malformed | None = None,
    progress: Callable[[Outcome], None] = lambda _: None,
) -> Outcome:
    """Feed so many malformed frames to the members in turn; stops at the first finding."""
    malformed = malformed or Malformed(seed)
    rng = Random(seed)
    outcome = Outcome()
    fires = [Fire(member, malformed, kinds or malformed.kinds, rng) for member in members]
    fires = [fire for fire in fires if fire.kinds]
    told = 0
    while outcome.frames < frames and not outcome.findings:
        for fire in fires:
            wanted = min(BATCH, frames - outcome.frames)
            if wanted and not outcome.findings:
                fire.batch(wanted, outcome)
        if outcome.frames - told >= PROGRESS:
            told = outcome.frames
            progress(outcome)
    if not outcome.findings:
        outcome.findings += [finding for fire in fires if (finding := fire.aftermath()) is not None]
    return outcome


def _effects(member: Endpoint, frames: list[bytes], now: Instant) -> list[str]:
    effects = member.receive(an_arrival(*frames), now) + member.tick(now)
    return [_shown(effect) for effect in effects]


def _shown(effect: object) -> str:
    chunk = getattr(effect, "chunk", None)
    if chunk is not None:
        return f"{type(effect).__name__} {[(m.source, m.seq, m.payload.tobytes()) for m in chunk.messages()]}"
    data = getattr(effect, "data", None)
    return repr(effect) if data is None else bytes(data).hex()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Feed malformed frames to group members.")
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    started = time.monotonic()

    def progress(outcome: Outcome) -> None:
        print(f"{outcome.frames:>9} frames, {time.monotonic() - started:5.0f} s: no state changed", flush=True)

    outcome = fuzz(chosen.frames, chosen.seed, progress=progress)
    print(f"{outcome.frames} malformed frames, seed {chosen.seed}, dropped by cause:")
    print(outcome.table())
    for finding in outcome.findings:
        print(f"FOUND {finding}")
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
