"""The views of a log, or of a stretch of several, in their order: what a cut of `rso` in one of them means there."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from intergroup_core.effects import Install
from intergroup_core.ids import MemberId, ViewId
from intergroup_core.log.cut import SourceCut
from intergroup_core.log.standings import Standings

KNOWN = 8
"""Views whose standings are kept at hand: those that a reader asks for are few, and near the end."""


class Return(NamedTuple):
    """A sender that was gone came back: the seqs (low, high] were agreed on by nobody on this side.

    A site may have some of them, because a repair left the sender behind a message that had been delivered here. They
    are in no range that ends behind the return.
    """

    source: MemberId
    low: int
    high: int
    view: int
    """The number of the view it returned with."""


class _Skipped(NamedTuple):
    """A gap, and the last messages before it."""

    reached: Mapping[MemberId, int]


class Lineage:
    """Views, each once, with the gaps between them."""

    def __init__(self) -> None:
        self._steps: list[Install | _Skipped] = []
        self._numbers: dict[ViewId, int] = {}
        """Which step a view is."""
        self._begin: Mapping[MemberId, int] = {}
        """Where those stand that were gone before the first view, as far as that is known."""
        self._latest = Standings()
        self._known: dict[int, Standings] = {}
        self.returns: list[Return] = []

    @property
    def views(self) -> list[ViewId]:
        return list(self._numbers)

    def begin(self, cut: SourceCut, members: Collection[MemberId]) -> None:
        """Where it begins, in a view with these members: of others that the cut names no view here speaks again."""
        self._begin = {source: seq for source, seq in cut.seqs.items() if source not in members}
        self._latest = self._nothing_said()

    def _nothing_said(self) -> Standings:
        standings = Standings()
        standings.seqs |= self._begin
        return standings

    def enter(self, install: Install) -> None:
        """The next view; one that is carried, or that two logs have, counts once, as the one says it that says more."""
        view = install.view.id
        known = self._numbers.get(view)
        if known is None:
            skipped = self._steps[self._numbers.get(self._latest.view, -1) + 1 :] if self._latest.view else self._steps
            self._numbers[view] = len(self._steps)
            self._steps.append(install)
            self._follow([*skipped, install])
        elif install.before and not _said(self._steps[known]):
            self._steps[known] = install
            self._follow_anew()

    def skip(self, reached: Mapping[MemberId, int]) -> None:
        """A gap behind these last messages of all senders; it belongs to the next view."""
        self._steps.append(_Skipped(reached))

    def take(self, other: Lineage) -> None:
        """What another log goes on with."""
        if not self._steps:
            self._begin = other._begin
            self._latest = self._nothing_said()
        for step in other._steps:
            if isinstance(step, Install):
                self.enter(step)
            else:
                self.skip(step.reached)

    def _follow(self, steps: Iterable[Install | _Skipped]) -> None:
        latest = self._latest
        for step in steps:
            if isinstance(step, _Skipped):
                latest.skip(step.reached)
                continue
            number, members = self._numbers[step.view.id], step.view.members
            for source, seq in step.before:
                if source in latest.ended and source in members and seq > latest.seqs[source]:
                    self.returns.append(Return(source, latest.seqs[source], seq, number))
            latest.enter(step)

    def _follow_anew(self) -> None:
        self._latest, self._known, self.returns = self._nothing_said(), {}, []
        self._follow(self._steps[: max(self._numbers.values()) + 1])

    # What a cut means

    def at(self, view: ViewId | None) -> Standings:
        """What is said up to a view; nothing where that is not known here."""
        number = self._numbers.get(view) if view is not None else None
        if number is None:
            return Standings()
        if view == self._latest.view:
            return self._latest
        found = self._known.get(number)
        if found is None:
            found = self._followed(number)
            while len(self._known) >= KNOWN:
                del self._known[next(iter(self._known))]
            self._known[number] = found
        return found

    def _followed(self, number: int) -> Standings:
        before = max((each for each in self._known if each < number), default=None)
        found = self._known[before].copy() if before is not None else self._nothing_said()
        for step in self._steps[0 if before is None else before + 1 : number + 1]:
            if isinstance(step, Install):
                found.enter(step)
            else:
                found.skip(step.reached)
        return found

    def all_named(self, cut: SourceCut) -> SourceCut:
        """The same cut, with everybody that is spoken of here."""
        return SourceCut(self.at(cut.view).all_named(cut.seqs), cut.view)

    def shortened(self, cut: SourceCut) -> SourceCut:
        """The same cut, without those whose place the views say."""
        return SourceCut(self.at(cut.view).named(cut.seqs), cut.view)

    def reached(self, last: Mapping[MemberId, int], view: ViewId | None) -> SourceCut:
        """The cut, all named, behind all that a log has that ends with these messages in a view."""
        return SourceCut(self.at(view).reached(last), view)

    def first_said(self, source: MemberId) -> int | None:
        """What the first view that speaks of a sender says."""
        said = (seq for step in self._steps if isinstance(step, Install) for each, seq in step.before if each == source)
        return next(said, None)

    def returns_behind(self, view: ViewId | None) -> list[Return]:
        """Those that came behind a view."""
        number = self._numbers.get(view, -1) if view is not None else -1
        return [each for each in self.returns if each.view > number]

    def lost_before(self, view: ViewId | None) -> dict[MemberId, list[tuple[int, int]]]:
        """Of senders that had returned by a view what nobody agreed on before."""
        number = self._numbers.get(view, -1) if view is not None else -1
        found: dict[MemberId, list[tuple[int, int]]] = {}
        for each in self.returns:
            if each.view <= number:
                found.setdefault(each.source, []).append((each.low, each.high))
        return found


def within(low: int, high: int, lost: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of the seqs (low, high] without those that are lost, which are in order."""
    left = []
    for begin, end in lost[bisect_left(lost, low, key=lambda each: each[1]) :]:
        if begin >= high:
            break
        if low < begin:
            left.append((low, begin))
        low = max(low, end)
    return [*left, (low, high)] if low < high else left


def _said(step: Install | _Skipped) -> bool:
    return isinstance(step, Install) and bool(step.before)
