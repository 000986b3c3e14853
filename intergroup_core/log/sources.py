"""What a log has of each sender: from which seq to which, by its messages and by what its views say."""

from __future__ import annotations

from collections.abc import Mapping

from intergroup_core.ids import MemberId, ViewId
from intergroup_core.log.cut import SourceCut
from intergroup_core.log.log_lineage import LogLineage
from intergroup_core.log.places import LogPlaces
from intergroup_core.log.skips import Skip, skips_of


class LogSources(LogPlaces):
    """The log in one directory, with its senders."""

    _skips: tuple[tuple[int, int], list[Skip]] | None = None
    """As they were when the log held these entries."""
    _lineage: LogLineage | None = None
    _continued: SourceCut | None = None

    @property
    def senders_begin(self) -> SourceCut | None:
        return self._continued or super().senders_begin

    def continues(self, cut: SourceCut) -> None:
        """Say where senders stand when the log begins, where that is known from the one before it."""
        if cut != self._continued:
            self._continued, self._skips, self._lineage = cut, None, None

    def skips(self) -> list[Skip]:
        """What gaps skipped, by sender."""
        seen = (self.first, self.stop)
        if self._skips is None or self._skips[0] != seen:
            self._skips = seen, skips_of(self)
        return self._skips[1]

    def lineage(self) -> LogLineage:
        """Its views, and what they say."""
        if self._lineage is None or not self._lineage.follows(self):
            self._lineage = LogLineage(self)
            self._lineage.follows(self)
        return self._lineage

    def first_seqs(self) -> dict[MemberId, int]:
        """The first seq of each sender that is here."""
        firsts: dict[MemberId, int] = {}
        for segment in self._segments:
            for source, first, _ in segment.index.sources.tolist():
                firsts.setdefault(MemberId(source), first)
        return firsts

    def last_seqs(self) -> dict[MemberId, int]:
        """The last seq of each sender that is here."""
        seqs: dict[MemberId, int] = {}
        for segment in self._segments:
            seqs |= {MemberId(source): last for source, _, last in segment.index.sources.tolist()}
        return seqs

    def may_miss(self, lows: Mapping[MemberId, int]) -> set[MemberId]:
        """Of which senders something behind a seq may be missing: sent before this began, or in segments that went.

        That the first message here has a later seq does not say so: membership messages have seqs, too. Nor does a view
        that was carried in deny it, by what it says of the seqs before it: what was sent in it may be gone.
        """
        before = self.senders_before
        if not self.first and (self.senders_begin is not None or before is None):
            return set()
        firsts = self.first_seqs()
        unsure = {source: low for source, low in lows.items() if firsts.get(source, low + 2) > low + 1}
        if before is not None:
            reached = self.lineage().all_named(before).seqs
            return {source for source, low in unsure.items() if low < reached.get(source, 0)}
        joined = self.lineage().joined_at
        return {source for source, low in unsure.items() if low < joined.get(source, low + 1)}

    def own_reach(self) -> SourceCut:
        """Behind everything that is here, with everybody named whom the log knows."""
        return self.lineage().reached(self.last_seqs(), self._last_view())

    def reach(self) -> SourceCut:
        """The same with what was said of where the log begins and ends."""
        lineage, manifest = self.lineage(), self.manifest
        seqs = dict(self.own_reach().seqs)
        for cut in (self.senders_begin, manifest.upto):
            if isinstance(cut, SourceCut):
                for source, seq in lineage.all_named(cut).seqs.items():
                    seqs[source] = max(seq, seqs.get(source, 0))
        return SourceCut(seqs, self._last_view())

    def _last_view(self) -> ViewId | None:
        places = [place for segment in self._segments[-1:] for place in segment.index.view_places()]
        if places:
            return places[-1].view
        install = self.install_before(self.stop)
        return install.view.id if install is not None else None
