"""Where senders stand by what views say of them, so that cuts of `rso` need not name everybody there ever was.

A view says which seqs lie before it (`Install.before`), the same at everybody who comes from the same view. So of a
sender that is gone a cut need say nothing: whoever reads it puts the seq in its place at which the views let it end.
"""

from __future__ import annotations

from collections.abc import Mapping

from intergroup_core.effects import Install
from intergroup_core.ids import MemberId, ViewId
from intergroup_core.log.cut import SourceCut


class Standings:
    """What the views up to one of them say."""

    def __init__(self) -> None:
        self.view: ViewId | None = None
        self.members: frozenset[MemberId] = frozenset()
        self.seqs: dict[MemberId, int] = {}
        """The last seq of each sender before the last view that speaks of it."""
        self.ended: set[MemberId] = set()
        """Who is gone, as everybody knows: a view said where it ended."""
        self.cut_off: set[MemberId] = set()
        """Of these whom a repair left behind: what one site has beyond, another need not have."""

    def copy(self) -> Standings:
        other = Standings()
        other.view, other.members, other.seqs = self.view, self.members, dict(self.seqs)
        other.ended, other.cut_off = set(self.ended), set(self.cut_off)
        return other

    def enter(self, install: Install) -> None:
        """The next view."""
        before, members = dict(install.before), frozenset(install.view.members)
        # Only a repair says it of all members; who goes by its own message is told of alone.
        repaired = bool(members) and members <= before.keys()
        unsaid = (members ^ self.members) - before.keys()
        gone = before.keys() - members
        self.seqs |= before
        self.ended -= members | unsaid
        self.cut_off -= members | unsaid | gone
        self.ended |= gone
        if repaired:
            self.cut_off |= gone
        self.view, self.members = install.view.id, members

    def skip(self, reached: Mapping[MemberId, int]) -> None:
        """A gap: what views said meanwhile was not heard. Who is gone behind it ended, for this log, where it was."""
        for source, seq in reached.items():
            if source not in self.cut_off:
                self.seqs[source] = max(seq, self.seqs.get(source, 0))

    def named(self, seqs: Mapping[MemberId, int]) -> dict[MemberId, int]:
        """Of the seqs that senders have come to, those that the views do not say."""
        return {source: seq for source, seq in seqs.items() if self._must_name(source, seq)}

    def _must_name(self, source: MemberId, seq: int) -> bool:
        if source not in self.ended:
            return seq > 0
        # What a repair cut off is reached by no cut; but somebody may have stayed behind where the sender ended.
        return seq < self.seqs[source] if source in self.cut_off else seq != self.seqs[source]

    def all_named(self, seqs: Mapping[MemberId, int]) -> dict[MemberId, int]:
        """Of everybody that is spoken of or named where it stands."""
        return self.seqs | dict(seqs)

    def placed(self, seqs: Mapping[MemberId, int]) -> dict[MemberId, int]:
        """The same, of whom a repair left behind no further than there: nobody misses what one site has beyond."""
        found = self.all_named(seqs)
        for source in self.cut_off & seqs.keys():
            found[source] = min(found[source], self.seqs[source])
        return found

    def reached(self, last: Mapping[MemberId, int]) -> dict[MemberId, int]:
        """Where a log stands that has messages up to these seqs; of whom nothing can be missing, where views say."""
        found = dict(self.seqs)
        for source, seq in last.items():
            if source not in self.cut_off:
                found[source] = max(seq, found.get(source, 0))
        return found


class Passed:
    """How far somebody is who goes through a log: where all senders stand, and the cut that says so."""

    def __init__(
        self,
        standings: Standings | None = None,
        seqs: Mapping[MemberId, int] | None = None,
        view: ViewId | None = None,
    ) -> None:
        self._standings = standings.copy() if standings is not None else Standings()
        self._standings.view = view or self._standings.view
        self._seqs = dict(seqs or {})
        """Of all whom the views do not speak of, or not so."""

    @property
    def cut(self) -> SourceCut:
        return SourceCut(self._standings.named(self._seqs), self._standings.view)

    def reached(self, source: MemberId) -> int:
        """Where a sender stands."""
        return self._seqs.get(source, self._standings.seqs.get(source, 0))

    def data(self, source: MemberId, seq: int) -> None:
        self._seqs[source] = seq

    def begin(self, seqs: Mapping[MemberId, int]) -> None:
        """What senders had come to before the log begins."""
        self._seqs |= seqs

    def enter(self, install: Install) -> None:
        """A view: nothing comes behind it that lies before it."""
        standings = self._standings
        standings.enter(install)
        for source, seq in install.before:
            last = self._seqs.pop(source, 0)
            if source in standings.members or (source not in standings.cut_off and last > seq):
                self._seqs[source] = max(seq, last)

    def skip(self) -> None:
        self._standings.skip(self._seqs)
