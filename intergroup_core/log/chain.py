"""Ranges as chains: what lies between two cuts, told so exactly that another log can say whether it holds the same.

In `rto` the range is one chain; in `rso` there is one for each sender, because only these are the same at every site,
and so a log of either service can serve it. What a description does not say is how messages were bundled into
entries: that differs from site to site.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from intergroup_core.effects import Gap
from intergroup_core.errors import RangeUnavailable
from intergroup_core.ids import MemberId, View
from intergroup_core.log.cut import Cut, SourceCut
from intergroup_core.log.digest import MASK64, frames_digest, view_digest
from intergroup_core.log.entry import Kind
from intergroup_core.log.reader import Piece, RangeReader
from intergroup_core.wire.chunk import Chunk

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


class Describer:
    """Follows a range from its start and says what it was."""

    def __init__(self, start: Cut) -> None:
        self._start = start
        self._by_source = isinstance(start, SourceCut)
        self._whole = Chain()
        self._sources: dict[MemberId, Chain] = {}
        self._views: list[str] = []
        self._gaps: list[tuple[int, str]] = []
        self._views_digest = 0

    def data(self, source: MemberId, link: Chain) -> None:
        if self._by_source:
            self._sources[source] = self._sources.get(source, Chain()).followed_by(link)
        else:
            self._whole = self._whole.followed_by(link)

    def view(self, view: View) -> None:
        self._views.append(str(view.id))
        self._views_digest = (self._views_digest + view_digest(view)) & MASK64

    def gap(self, gap: Gap) -> None:
        self._gaps.append((len(self._views), gap.reason))

    def piece(self, piece: Piece) -> None:
        """What a log holds; of a data entry mostly what its header says of it."""
        match piece.entry.kind:
            case Kind.DATA:
                self.data(MemberId(piece.entry.header.source), _link(piece))
            case Kind.VIEW:
                piece.entry.check()
                self.view(piece.entry.install().view)
            case Kind.GAP:
                piece.entry.check()
                self.gap(piece.entry.gap())

    def described(self, stop: Cut) -> Described:
        return Described(
            start=self._start,
            stop=stop,
            views=tuple(self._views),
            gaps=tuple(self._gaps),
            views_digest=self._views_digest,
            whole=None if self._by_source else self._whole,
            sources=self._sources,
        )


def describe(reader: RangeReader, start: Cut, stop: Cut) -> Described:
    """What a log holds between two cuts, mostly from the headers of its entries."""
    describer = Describer(start)
    for piece in reader.pieces(start, stop, check=False):
        describer.piece(piece)
    return describer.described(stop)


def serves(reader: RangeReader, described: Described) -> bool:
    """Whether a log holds exactly this; LogDamaged where it cannot tell."""
    try:
        return describe(reader, described.start, described.stop) == described
    except RangeUnavailable:
        return False


def link_of(chunk: Chunk) -> Chain:
    """The messages of a chunk."""
    run = chunk.run
    runs = (*chunk.head, run)
    return Chain(
        first=(chunk.source, run.seq + run.ends[0]),
        last=(chunk.source, chunk.last_seq),
        messages=chunk.count,
        frames=sum(part.count for part in runs),
        digest=sum(frames_digest(part.source, part.seq, part.first_words) for part in runs) & MASK64,
    )


def _link(piece: Piece) -> Chain:
    """The messages of a piece of a data entry, by its header where that says it all."""
    header = piece.entry.header
    if not piece.whole:
        piece.entry.check()
        return link_of(piece.chunk())
    source = MemberId(header.source)
    if header.messages == 1:
        first_end = header.last_seq
    else:
        run = piece.entry.chunk().run
        first_end = run.seq + run.ends[0]
    return Chain(
        first=(source, first_end),
        last=(source, header.last_seq),
        messages=header.messages,
        frames=header.frames,
        digest=header.digest,
    )
