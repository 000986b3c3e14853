"""What ordered statements add up to at a place of a stream, from its logs: who reads there need not have been there."""

from __future__ import annotations

from bisect import bisect_right

from intergroup_core.errors import LogDamaged, RangeUnavailable
from intergroup_core.ids import MemberId
from intergroup_core.log.cut import OrderCut
from intergroup_core.log.entry import Kind
from intergroup_core.log.reader import LogReader, Piece, Place
from intergroup_core.log.stream import StreamReader
from intergroup_core.transaction.ledger import Ledger
from intergroup_core.transaction.transactions import Decision


def ledger_at(stream: StreamReader, cut: OrderCut) -> Ledger:
    """The ledger of who has delivered everything before a cut; RangeUnavailable where the stream does not hold that."""
    if not stream.holders(cut):
        raise RangeUnavailable(f"{stream} does not hold {cut}; fetch it from another site, or wait")
    return _ledger_at(stream, cut, set())


def _ledger_at(stream: StreamReader, cut: OrderCut, passed: set[int]) -> Ledger:
    holders = [part for part in stream.holders(cut) if part.reader.manifest.log not in passed]
    for part in holders:
        place = part.place_of(cut)
        if (first := _checkpoint_before(part.reader, place)) is not None:
            try:
                return _followed(Ledger(), part.reader, first, place)
            except LogDamaged:
                return _followed_around(stream, part.reader, first, cut)
    if not holders:
        return Ledger()
    # What was fetched may begin without a word on what was stated before; then whatever leads to it knows.
    part = holders[0]
    passed.add(part.reader.manifest.log)
    ledger = _ledger_at(stream, part.begin, passed)
    return _followed(ledger, part.reader, part.reader.first, part.place_of(cut))


def _checkpoint_before(log: LogReader, place: Place) -> int | None:
    """The last segment's beginning up to a place that says what was stated before it."""
    segments = log.segments
    for segment in reversed(segments[: bisect_right(segments, place.entry, key=lambda each: each.first)]):
        if segment.readable == segment.first:
            continue  # nothing has been written to it yet, or nothing of it can be read
        (first,) = log.entries(segment.first, segment.first + 1, check=False)
        begins = segment.first < place.entry or place.message or first.header.carried
        if begins and first.kind is Kind.VIEW and first.install().ledger:
            return segment.first
    return None


def _followed_around(stream: StreamReader, log: LogReader, first: int, cut: OrderCut) -> Ledger:
    """The same where a log is damaged, by what was fetched in the place of that; LogDamaged where nothing was."""
    (begin,) = log.entries(first, first + 1)
    install = begin.install()
    ledger = Ledger()
    ledger.enter(install)
    start = OrderCut(begin.header.last_timestamp, MemberId(begin.header.source), install.view.id)
    for piece in stream.pieces(start, cut, check=False):
        if piece.entry.kind is not Kind.VIEW or piece.entry.install().view.id != install.view.id:
            follow(ledger, piece)
    return ledger


def _followed(ledger: Ledger, log: LogReader, first: int, place: Place) -> Ledger:
    """After what lies in a log up to a place."""
    stop = place.entry + bool(place.message)
    for entry in log.entries(first, stop, check=False):
        follow(ledger, Piece(entry, 0, place.message if entry.header.entry == place.entry else entry.header.messages))
    if not place.message and place.entry < log.stop:
        # A view that is carried stands behind the place up to which it says what was stated.
        (behind,) = log.entries(place.entry, place.entry + 1, check=False)
        if behind.header.carried:
            follow(ledger, Piece(behind, 0, 0))
    return ledger


def follow(ledger: Ledger, piece: Piece) -> list[Decision]:
    """What a log holds next; what becomes visible with it."""
    header = piece.entry.header
    match piece.entry.kind:
        case Kind.VIEW:
            install = piece.entry.install()
            if install.ledger or not header.carried:
                ledger.enter(install)
        case Kind.DATA if header.staged or header.states:
            return ledger.deliver(piece.chunk())
    return []
