"""Hand-made traces: a run told as a few lines."""

from __future__ import annotations

from intergroup_core.ids import MemberId, Service
from intergroup_core.sim.trace import (
    Allowed,
    CountedChanged,
    Crashed,
    Delivered,
    Disturbed,
    Ended,
    GapAnnounced,
    Installed,
    Left,
    Ordered,
    Promised,
    Sent,
    StableDropped,
    Trace,
    TracedMember,
)

A, B, C = MemberId(0x0A), MemberId(0x0B), MemberId(0xFFFF_FFFF_FFFF_FFFC)
R = MemberId(0x77)
R2 = MemberId(0x78)
"""What goes on after a gap at R."""


def a_member(
    member: MemberId, service: Service = Service.RTO, *, sender: bool = True, counted: bool = True
) -> TracedMember:
    return TracedMember(id=member, name=f"m{member:x}", service=service, sender=sender, counted=counted)


def a_receiver(service: Service = Service.RTO) -> TracedMember:
    return a_member(R, service, sender=False, counted=service is not Service.UU)


def a_view_id(start: int, leader: int = 0) -> str:
    return f"{start:016x}-{leader:016x}-0"


class Story:
    """Builds a trace line by line; a message is named by what `sends` returned.

    Membership is fixed, in a view of all senders that starts at 0 and that everybody has, unless the story is live:
    then members install what they are told to.
    """

    def __init__(self, *members: TracedMember, live: bool = False) -> None:
        self.trace = Trace(members or (a_member(A), a_member(B), a_receiver()), live=live)
        self._last_seq: dict[MemberId, int] = {}
        self._time = 0
        self._views: dict[MemberId, Installed] = {}
        if not live:
            everybody = tuple(member.id for member in self.trace.members if member.sender)
            for member in self.trace.members:
                self.trace.events.append(Installed(self._at(), member.id, a_view_id(0), 0, everybody))

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

    def installs(
        self,
        member: MemberId,
        start: int,
        *members: MemberId,
        leader: int = 0,
        transitional: tuple[MemberId, ...] | None = None,
        departed: str = "failed",
    ) -> Installed:
        """By default who is in both views came along, and the difference is told truly."""
        before = self._views.get(member)
        old = before.members if before is not None else ()
        both = tuple(one for one in members if one in old) if transitional is None else transitional
        view = Installed(
            self._at(),
            member,
            a_view_id(start, leader),
            start,
            members,
            both,
            tuple(one for one in members if one not in both),
            tuple((one, departed) for one in old if one not in members),
        )
        self._views[member] = view
        self.trace.events.append(view)
        return view

    def all_install(self, start: int, *members: MemberId, receivers: tuple[MemberId, ...] = (R,)) -> None:
        for member in (*members, *receivers):
            self.installs(member, start, *members)

    def may_send(self, member: MemberId, number: int) -> None:
        """In the view it installed last, of this number among primary ones."""
        self.trace.events.append(Allowed(self._at(), member, self._views[member].view, number))

    def may_not_send(self, member: MemberId) -> None:
        self.trace.events.append(Allowed(self._at(), member, "", 0))

    def drops(self, member: MemberId, upto: int) -> None:
        self.trace.events.append(StableDropped(self._at(), member, upto))

    def counts(self, member: MemberId, counted: bool = True) -> None:
        self.trace.events.append(CountedChanged(self._at(), member, counted))

    def disturbs(self, member: MemberId) -> None:
        self.trace.events.append(Disturbed(self._at(), member))

    def gap(self, member: MemberId, incarnation: MemberId) -> None:
        """The member goes on under another id."""
        self.trace.events.append(GapAnnounced(self._at(), member, incarnation))
        old = next(one for one in self.trace.members if one.id == member)
        self.trace.members.append(a_member(incarnation, old.service, sender=old.sender, counted=old.counted))

    def leaves(self, member: MemberId, reason: str = "left") -> None:
        self.trace.events.append(Left(self._at(), member, reason))

    def crashes(self, member: MemberId) -> None:
        self.trace.events.append(Crashed(self._at(), member))

    def ends(
        self,
        *members: MemberId,
        connected: bool = True,
        buffered: int = 0,
        unsent: int = 0,
        senders: tuple[MemberId, ...] = (),
    ) -> None:
        for member in members:
            self.trace.events.append(Ended(self._at(), member, connected, buffered, unsent, member in senders))


def a_right_story() -> Story:
    """Two senders and a receiver in timestamp order, causes and a tie included, everything drained."""
    story = Story()
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


def a_right_live_story() -> Story:
    """Two senders, a third that joins and crashes, a receiver that bootstraps, a partition and its merge."""
    story = Story(a_member(A), a_member(B, Service.RSO), a_member(C), a_receiver(), live=True)
    for member in (A, B):
        story.installs(member, 5, A, B)
    a1 = story.sends(A, 10)
    story.delivers(A, a1)
    story.delivers(B, a1)
    story.orders(B, a1)
    story.installs(R, 5, A, B)  # at a cut above a1
    story.installs(C, 5, A, B)
    story.counts(R)
    b1 = story.sends(B, 20)
    for member in (A, C, R):
        story.delivers(member, b1)
    story.delivers(B, b1)
    story.orders(B, b1)
    story.all_install(30, A, B, C)
    c1, c2 = story.sends(C, 40), story.sends(C, 50)
    story.delivers(A, c1)
    story.delivers(B, c1, c2)  # source order goes on without the cut
    story.delivers(C, c1, c2)
    story.crashes(C)
    story.drops(A, 20)
    a2, b2 = story.sends(A, 51), story.sends(B, 52)
    story.delivers(A, a2)
    story.installs(A, 60, A)  # A is cut off from B and R, which excludes the others as well
    story.orders(B, c1)
    story.delivers(R, c1)
    story.delivers(B, b2)
    story.orders(B, b2)
    story.delivers(R, b2)
    for member in (B, R):
        story.installs(member, 61, B, leader=int(B))
    a3, b3 = story.sends(A, 70), story.sends(B, 71)
    story.delivers(A, a3)
    story.delivers(B, b3)
    story.orders(B, b3)
    story.delivers(R, b3)
    story.installs(A, 80, A, B, transitional=(A,))
    for member in (B, R):
        story.installs(member, 80, A, B, transitional=(B,))
    a4 = story.sends(A, 90)
    story.delivers(A, a4)
    story.delivers(B, a4)
    story.orders(B, a4)
    story.delivers(R, a4)
    story.drops(A, 90)
    story.ends(A, B, R, senders=(A, B))
    return story
