"""Stretches of one source's sequence numbers, and what requests and repairs say about them (R1)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from intergroup_core.ids import MemberId, Timestamp


@dataclass(frozen=True, slots=True)
class Span:
    """Frames `first` to `last` of a source, both included."""

    source: MemberId
    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1


class Promise(NamedTuple):
    """A source's keep-alive that promises at least this timestamp (D13)."""

    source: MemberId
    timestamp: Timestamp


class Stretch(Protocol):
    """Something that is about consecutive seqs and can be divided."""

    first: int
    last: int

    def part(self, first: int, last: int) -> Self:
        """The same about some of the seqs."""


Item = TypeVar("Item", bound=Stretch)


class Disjoint(Generic[Item]):
    """Stretches of one source, ascending, no two of them overlapping.

    It grows with the gaps in what its owner holds, so whatever bounds the frames held out of order bounds it.
    """

    __slots__ = ("_firsts", "_items")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._items: list[Item] = []

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def overlapping(self, first: int, last: int) -> list[Item]:
        low, high = self._slice(first, last)
        return self._items[low:high]

    def uncovered(self, first: int, last: int) -> list[tuple[int, int]]:
        """What of `first` to `last` no stretch here is about."""
        holes = []
        for item in self.overlapping(first, last):
            if first < item.first:
                holes.append((first, item.first - 1))
            first = item.last + 1
        if first <= last:
            holes.append((first, last))
        return holes

    def add(self, item: Item) -> None:
        """Put in a stretch that overlaps none."""
        at = bisect_right(self._firsts, item.first)
        self._firsts.insert(at, item.first)
        self._items.insert(at, item)

    def take(self, first: int, last: int) -> tuple[list[Item], list[Item]]:
        """Cut `first` to `last` out; returns what was cut, and tails that became stretches of their own.

        A stretch that lies inside is returned itself. One that sticks out stays, shortened, and a part of it is
        returned; if it sticks out on both sides its tail is new.
        """
        low, high = self._slice(first, last)
        taken: list[Item] = []
        tails: list[Item] = []
        kept: list[Item] = []
        for item in self._items[low:high]:
            start, end = item.first, item.last
            if first <= start and end <= last:
                taken.append(item)
                continue
            taken.append(item.part(max(first, start), min(last, end)))
            kept.append(item)
            if first <= start:
                item.first = last + 1
                continue
            if end > last:
                tails.append(item.part(last + 1, end))
                kept.append(tails[-1])
            item.last = first - 1
        self._items[low:high] = kept
        self._firsts[low:high] = [item.first for item in kept]
        return taken, tails

    def retain(self, wanted: Callable[[Item], bool]) -> None:
        """Take out every stretch that is not wanted."""
        self._items = [item for item in self._items if wanted(item)]
        self._firsts = [item.first for item in self._items]

    def _slice(self, first: int, last: int) -> tuple[int, int]:
        low = bisect_right(self._firsts, first)
        if low and self._items[low - 1].last >= first:
            low -= 1
        return low, bisect_right(self._firsts, last, low)


def coalesced(spans: list[Span]) -> list[Span]:
    """The same frames in as few spans as possible, ascending per source."""
    joined: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.source, span.first)):
        if joined and joined[-1].source == span.source and span.first <= joined[-1].last + 1:
            joined[-1] = Span(span.source, joined[-1].first, max(joined[-1].last, span.last))
        else:
            joined.append(span)
    return joined


def without(first: int, last: int, cuts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of `first` to `last` when every cut is taken out."""
    left = []
    for start, end in sorted(cuts):
        if end < first or start > last:
            continue
        if first < start:
            left.append((first, start - 1))
        first = end + 1
    if first <= last:
        left.append((first, last))
    return left
