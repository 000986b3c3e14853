"""Hand-made traces: a run told as a few lines."""

from __future__ import annotations

from intergroup_core.ids import MemberId, Service
from intergroup_core.sim.trace import (
    Crashed,
    Delivered,
    Ended,
    GapAnnounced,
    Installed,
    Ordered,
    Promised,
    Sent,
    StableDropped,
    Trace,
    TracedMember,
)

A, B, C = MemberId(0x0A), MemberId(0x0B), MemberId(0xFFFF_FFFF_FFFF_FFFC)
R = MemberId(0x77)


def a_member(
    member: MemberId, service: Service = Service.RTO, *, sender: bool = True, counted: bool = True
) -> TracedMember:
    return TracedMember(id=member, name=f"m{member:x}", service=service, sender=sender, counted=counted)


def a_receiver(service: Service = Service.RTO) -> TracedMember:
    return a_member(R, service, sender=False, counted=service is not Service.UU)


class Story:
    """Builds a trace line by line; a message is named by what `sends` returned."""

    def __init__(self, *members: TracedMember) -> None:
        self.trace = Trace(members or (a_member(A), a_member(B), a_receiver()))
        self._last_seq: dict[MemberId, int] = {}
        self._time = 0

    def _at(self) -> int:
        self._time += 1_000
        return self._time

    def sends(self, member: MemberId, timestamp: int, *, frames: int = 1) -> Sent:
        seq = self._last_seq.get(member, 0) + frames
        self._last_seq[member] = seq
        sent = Sent(self._at(), member, seq - frames + 1, seq, timestamp - frames + 1, timestamp, 1_000 * seq)
        self.trace.events.append(sent)
        return sent

    def promises(self, member: MemberId, timestamp: int) -> None:
        self.trace.events.append(Promised(self._at(), member, self._last_seq.get(member, 0), timestamp))

    def delivers(self, member: MemberId, *messages: Sent, digest: int | None = None) -> None:
        for m in messages:
            seen = m.digest if digest is None else digest
            self.trace.events.append(Delivered(self._at(), member, m.member, m.seq, m.timestamp, seen))

    def orders(self, member: MemberId, *messages: Sent) -> None:
        for m in messages:
            self.trace.events.append(Ordered(self._at(), member, m.member, m.seq, m.timestamp, m.digest))

    def installs(self, member: MemberId, start: int) -> None:
        self.trace.events.append(Installed(self._at(), member, f"v{start}", start, (A, B)))

    def drops(self, member: MemberId, upto: int) -> None:
        self.trace.events.append(StableDropped(self._at(), member, upto))

    def gap(self, member: MemberId) -> None:
        self.trace.events.append(GapAnnounced(self._at(), member))

    def crashes(self, member: MemberId) -> None:
        self.trace.events.append(Crashed(self._at(), member))

    def ends(self, *members: MemberId, connected: bool = True, buffered: int = 0, unsent: int = 0) -> None:
        for member in members:
            self.trace.events.append(Ended(self._at(), member, connected, buffered, unsent))


def a_right_story() -> Story:
    """Two senders and a receiver in timestamp order, causes and a tie included, everything drained."""
    story = Story()
    for member in (A, B, R):
        story.installs(member, 5)
    a1 = story.sends(A, 10)
    story.promises(B, 12)
    story.delivers(A, a1)
    story.delivers(B, a1)
    b1 = story.sends(B, 20, frames=3)
    a2 = story.sends(A, 20)
    story.promises(A, 21)
    story.promises(B, 22)
    story.delivers(R, a1, a2)
    story.delivers(A, a2, b1)
    story.delivers(B, a2, b1)
    story.delivers(R, b1)
    story.drops(A, 20)
    story.ends(A, B, R)
    return story
