"""Ranges as chains: what lies between two cuts, told so exactly that another log can say whether it holds the same.

In `rto` the range is one chain; in `rso` there is one for each sender, because only these are the same at every site,
and so a log of either service can serve it. What a description does not say is how messages were bundled into
entries: that differs from site to site.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from intergroup_core.errors import RangeUnavailable
from intergroup_core.ids import MemberId
from intergroup_core.log.cut import Cut, SourceCut
from intergroup_core.log.digest import MASK64, frames_digest
from intergroup_core.log.entry import Kind
from intergroup_core.log.reader import LogReader, Piece

Name = tuple[MemberId, int]
"""Sender and seq of a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Messages in one order, by their ends, number and digest."""

    first: Name | None = None
    """Its first message, by the seq of its last frame; None where there is none."""
    last: Name | None = None
    messages: int = 0
    frames: int = 0
    digest: int = 0

    def followed_by(self, link: Chain) -> Chain:
        return Chain(
            first=self.first or link.first,
            last=link.last or self.last,
            messages=self.messages + link.messages,
            frames=self.frames + link.frames,
            digest=(self.digest + link.digest) & MASK64,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """Everything in [start, stop) that two logs must agree on."""

    start: Cut
    stop: Cut
    views: tuple[str, ...] = ()
    """Ids of the views crossed, in order."""
    gaps: tuple[tuple[int, str], ...] = ()
    """How many views were crossed before each gap, and why it is there."""
    views_digest: int = 0
    whole: Chain | None = None
    """Of the one order; None in `rso`."""
    sources: Mapping[MemberId, Chain] = field(default_factory=dict)
    """Of each sender, in `rso`."""

    @property
    def messages(self) -> int:
        chains = [self.whole] if self.whole is not None else list(self.sources.values())
        return sum(chain.messages for chain in chains)


def describe(reader: LogReader, start: Cut, stop: Cut) -> Described:
    """What a log holds between two cuts, mostly from the headers of its entries."""
    by_source = isinstance(start, SourceCut)
    whole = Chain()
    sources: dict[MemberId, Chain] = {}
    views: list[str] = []
    gaps: list[tuple[int, str]] = []
    views_digest = 0
    for piece in reader.pieces(start, stop, check=False):
        match piece.entry.kind:
            case Kind.DATA if by_source:
                source = MemberId(piece.entry.header.source)
                sources[source] = sources.get(source, Chain()).followed_by(_link(piece))
            case Kind.DATA:
                whole = whole.followed_by(_link(piece))
            case Kind.VIEW:
                piece.entry.check()
                views.append(str(piece.entry.install().view.id))
                views_digest = (views_digest + piece.entry.header.digest) & MASK64
            case Kind.GAP:
                piece.entry.check()
                gaps.append((len(views), piece.entry.gap().reason))
    return Described(
        start=start,
        stop=stop,
        views=tuple(views),
        gaps=tuple(gaps),
        views_digest=views_digest,
        whole=None if by_source else whole,
        sources=sources,
    )


def serves(reader: LogReader, described: Described) -> bool:
    """Whether a log holds exactly this; LogDamaged where it cannot tell."""
    try:
        return describe(reader, described.start, described.stop) == described
    except RangeUnavailable:
        return False


def _link(piece: Piece) -> Chain:
    """The messages of a piece of a data entry."""
    header = piece.entry.header
    source = MemberId(header.source)
    if piece.whole and header.messages == 1:
        first_end, last_end, frames, digest = header.last_seq, header.last_seq, header.frames, header.digest
    else:
        chunk = piece.entry.chunk()
        run = chunk.run
        begin = run.ends[piece.first - 1] + 1 if piece.first else 0
        end = run.ends[piece.stop - 1]
        first_end, last_end = run.seq + run.ends[piece.first], run.seq + end
        head = chunk.head if piece.first == 0 else ()
        frames = end + 1 - begin + sum(part.count for part in head)
        digest = header.digest if piece.whole else _digest_of(piece, begin, end)
    return Chain(
        first=(source, first_end),
        last=(source, last_end),
        messages=piece.stop - piece.first,
        frames=frames,
        digest=digest,
    )


def _digest_of(piece: Piece, begin: int, end: int) -> int:
    """Of some messages of an entry, from their frames; these are checked first."""
    piece.entry.check()
    chunk = piece.entry.chunk()
    run = chunk.run
    runs = [run.slice(begin, end + 1), *(chunk.head if piece.first == 0 else ())]
    return sum(frames_digest(part.source, part.seq, part.frames) for part in runs) & MASK64
