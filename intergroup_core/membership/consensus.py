"""Agreement on who is considered for the next view and who of them failed (T5.4.2, figure 5.5)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import Enum

from intergroup_core.ids import MemberId, ViewId
from intergroup_core.wire.membership import Join, Peer


class Verdict(Enum):
    """What a Join does to agreement."""

    NOTHING = "nothing"
    CHANGED = "changed"
    """This member's sets grew: it must say so."""
    ANSWER = "answer"
    """The other is behind: say the same again."""


class Consensus:
    """procSet and failSet, which only grow, and what each of the others said last.

    A Join carries its sender's epoch too: where a member comes from is part of what is agreed on, for each old view
    gets a cut of its own (M10).
    """

    def __init__(self, me: Peer, epoch: ViewId | None, procs: Iterable[MemberId]) -> None:
        self.me = me.id
        self.procs: set[MemberId] = {*procs, me.id}
        self.fails: set[MemberId] = set()
        self.peers: dict[MemberId, Peer] = {me.id: me}
        self.epochs: dict[MemberId, ViewId | None] = {me.id: epoch}
        self._said: dict[MemberId, tuple[frozenset[MemberId], frozenset[MemberId]]] = {}

    @property
    def members(self) -> set[MemberId]:
        """The proposed membership."""
        return self.procs - self.fails

    def has_room_for(self, join: Join, most: int) -> bool:
        """Whether the next view can hold everybody that a Join brings along."""
        return len(self.procs | set(join.procs) | {join.member}) <= 2 * most

    def considers(self, process: MemberId) -> bool:
        """A process was heard that is not part of this yet; whether that is new."""
        if process in self.procs:
            return False
        self.procs.add(process)
        return True

    def fail(self, process: MemberId) -> bool:
        """A process is suspected; whether that is new."""
        if process in self.fails or process == self.me:
            return False
        self.procs.add(process)
        self.fails.add(process)
        return True

    def heard(self, join: Join) -> Verdict:
        """processJoin of figure 5.5."""
        sender = join.member
        if sender in self.fails:
            return Verdict.NOTHING
        if self.me in join.fails:
            self.peers[sender] = Peer(sender, join.name, join.site)
            self.fail(sender)
            return Verdict.CHANGED
        if sender not in self.procs or not self._knows(join):
            self._incorporate(join)
            return Verdict.CHANGED
        moved = sender in self.epochs and self.epochs[sender] != join.epoch
        behind = self.procs > set(join.procs) or self.fails > set(join.fails)
        self._incorporate(join)
        return Verdict.CHANGED if moved else Verdict.ANSWER if behind else Verdict.NOTHING

    def agrees(self, join: Join) -> bool:
        """Whether a Join says exactly what this member says."""
        same = set(join.procs) == self.procs and set(join.fails) == self.fails
        return same and self.epochs.get(join.member, join.epoch) == join.epoch

    def _knows(self, join: Join) -> bool:
        return self.procs.issuperset(join.procs) and self.fails.issuperset(join.fails)

    def _incorporate(self, join: Join) -> None:
        sender = join.member
        self.procs.update(join.procs, (sender,))
        self.fails.update(process for process in join.fails if process != self.me)
        self._said[sender] = (frozenset(join.procs), frozenset(join.fails))
        self.peers[sender] = Peer(sender, join.name, join.site)
        self.epochs[sender] = join.epoch

    def reached(self) -> bool:
        """Whether all of the proposed membership said the same."""
        own = (frozenset(self.procs), frozenset(self.fails))
        return all(self._said.get(process) == own for process in self.members if process != self.me)

    def attempt(self) -> int:
        """A name for what was agreed: 63 bits of its digest (M1)."""
        parts = [f"{process:x}" for process in sorted(self.procs)]
        parts += [f"-{process:x}" for process in sorted(self.fails)]
        parts += [f"{process:x}@{self.epochs.get(process)}" for process in sorted(self.members)]
        digest = hashlib.blake2b("/".join(parts).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") >> 1
