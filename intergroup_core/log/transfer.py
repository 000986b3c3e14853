"""Ranges of a log on their way to another site, block by block, so that neither side ever holds a range whole.

A block is msgpack: [version, number, entry, ...], counted from 0, an entry one of

    [1, [[bytes of a frame, frames], ...]]    messages, run by run, the frames as they were received
    [2, body, checksum]                       a view
    [3, body, checksum, behind]               a gap, and timestamp, sender and seq of what it stands behind
    [4, body, checksum]                       the view in force where the range begins; before everything else
    [0, description]                          of the whole; after everything else

Frames are checked by the checksums that their senders gave them, everything by the description. That guards against
mistakes and decay. Who sends on purpose what is not so is found out where the caller knows from elsewhere what he is to
get.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import IntEnum
from typing import Any

import msgpack
import numpy as np

from intergroup_core.effects import Install
from intergroup_core.errors import IntergroupError, LocalProtocolError, LogFormat, RangeMalformed, RangeUnavailable
from intergroup_core.ids import Service, group_tag
from intergroup_core.log.body import packed_install
from intergroup_core.log.chain import Described, Describer, link_of
from intergroup_core.log.chain_codec import described_of_list, listed_described
from intergroup_core.log.cut import OrderCut, SourceCut
from intergroup_core.log.cut_codec import is_number, malformed
from intergroup_core.log.digest import checksum
from intergroup_core.log.entry import MAX_PAYLOAD_BYTES, Kind
from intergroup_core.log.range_order import RangeCut, RangeOrder
from intergroup_core.log.reader import Piece, RangeReader
from intergroup_core.log.received import BEHIND, received_chunk, received_gap, received_install
from intergroup_core.log.writer import LogWriter

TRANSFER_VERSION = 1
BLOCK_BYTES = 1 << 20
"""A block ends with the entry that reaches this."""
MAX_BLOCK_BYTES = 2 * MAX_PAYLOAD_BYTES
"""More than a block can have, whatever its last entry; a larger one is refused unseen."""


class Tag(IntEnum):
    """What an entry of a block is. Append only: a tag once given is never reused."""

    DESCRIPTION = 0
    DATA = 1
    VIEW = 2
    GAP = 3
    CARRIED = 4


class RangeSource:
    """The blocks of what lies between two cuts, made one by one as they are asked for."""

    def __init__(self, reader: RangeReader, start: RangeCut, stop: RangeCut, stated: bytes = b"") -> None:
        self._reader = reader
        self._start = start
        self._stop = stop
        self._stated = stated
        """What was stated up to the start, where that is known."""

    def __iter__(self) -> Iterator[bytes]:
        block = _Block(0)
        describer = Describer(self._start)
        install = self._reader.install_at(self._start)
        if install is not None:
            block.add_body(Tag.CARRIED, packed_install(replace(install, ledger=self._stated)))
        for piece in self._reader.pieces(self._start, self._stop):
            describer.piece(piece)
            block.add(piece)
            if block.size >= BLOCK_BYTES:
                yield block.packed()
                block = _Block(block.number + 1)
        block.entries.append([int(Tag.DESCRIPTION), listed_described(describer.described(self._stop))])
        yield block.packed()


class _Block:
    """Entries that go together."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.entries: list[Any] = []
        self.size = 0

    def add(self, piece: Piece) -> None:
        if piece.entry.kind is Kind.DATA:
            chunk = piece.chunk()
            runs = [[run.frame_bytes, np.ascontiguousarray(run.frames).tobytes()] for run in (*chunk.head, chunk.run)]
            self.entries.append([int(Tag.DATA), runs])
            self.size += chunk.nbytes
        elif piece.entry.kind is Kind.VIEW:
            self.add_body(Tag.VIEW, bytes(piece.entry.payload()))
        else:
            header = piece.entry.header
            body, behind = (
                bytes(piece.entry.payload()),
                BEHIND.pack(header.last_timestamp, header.source, header.last_seq),
            )
            self.entries.append([int(Tag.GAP), body, checksum(body + behind), behind])

    def add_body(self, tag: Tag, body: bytes) -> None:
        self.entries.append([int(tag), body, checksum(body)])
        self.size += len(body)

    def packed(self) -> bytes:
        packed: bytes = msgpack.packb([TRANSFER_VERSION, self.number, *self.entries])
        return packed


class RangeSink:
    """Takes the blocks of a range, in order, into a new log; IntergroupError for whatever is not such a block.

    After an error nothing more is taken: the log is to be removed and the range fetched anew.
    """

    def __init__(self, writer: LogWriter, start: RangeCut, stop: RangeCut, expected: Described | None = None) -> None:
        manifest = writer.manifest
        service = Service.RSO if isinstance(start, SourceCut) else Service.RTO
        alike = isinstance(start, OrderCut | SourceCut) and type(start) is type(stop)
        if writer.appended or not alike or manifest.service is not service:
            raise LocalProtocolError("a range is taken into an empty log of its own service; create one for it")
        if manifest.after not in (None, start):
            raise LocalProtocolError(
                f"the log begins behind {manifest.after} and the range behind {start}; create another"
            )
        self._writer = writer
        self._start = start
        self._stop = stop
        self._expected = expected
        self._group_tag = group_tag(manifest.group)
        self._describer = Describer(start)
        self._order = RangeOrder(start)
        self._blocks = 0
        self._begun = self._broken = False
        self.described: Described | None = None
        """What was taken, once all of it is there."""

    @property
    def finished(self) -> bool:
        """Whether everything came and was what it should be."""
        return self.described is not None

    def take(self, block: bytes) -> None:
        """The next block."""
        try:
            if self.finished or self._broken:
                raise RangeMalformed("there is a block behind the end of a range; fetch it anew, or from another site")
            for entry in _entries(block, self._blocks):
                self._take(entry)
            self._blocks += 1
        except IntergroupError:
            self._broken, self.described = True, None
            raise

    def keep(self) -> None:
        """Make the range durable, and say in its manifest between which cuts it is complete."""
        if not self.finished:
            raise LocalProtocolError("the range is not complete; take all of its blocks first")
        self._writer.bound(after=self._start, upto=self._stop)

    def _take(self, entry: Any) -> None:
        if self.finished:
            raise malformed("the end of a range", entry)
        match entry:
            case [tag, *_] if not is_number(tag):
                raise malformed("an entry of a range", entry)
            case [Tag.CARRIED, body, stated] if not self._begun:
                self._carry(received_install(body, stated))
            case _ if not self._begun and self._start.view is not None:
                raise RangeMalformed("a range does not begin with the view it begins in; fetch it from another site")
            case [Tag.DATA, runs]:
                chunk = received_chunk(runs, self._group_tag)
                self._order.data(chunk)
                self._writer.append(chunk)
                self._describer.data(chunk.source, link_of(chunk))
            case [Tag.VIEW, body, stated]:
                install = received_install(body, stated)
                self._order.view(install)
                self._writer.append(install)
                self._describer.view(install.view)
            case [Tag.GAP, body, stated, place]:
                gap, behind, seq = received_gap(body, stated, place)
                self._order.gap(behind)
                self._writer.stand_behind(behind, seq)
                self._writer.append(gap)
                self._describer.gap(gap)
            case [Tag.DESCRIPTION, described]:
                self._finish(described_of_list(described))
            case _:
                raise malformed("an entry of a range", entry)
        self._begun = True

    def _carry(self, install: Install) -> None:
        start = self._start
        if start.view not in (None, install.view.id):
            raise RangeMalformed(f"the range begins in view {start.view}, not in {install.view.id}; fetch it elsewhere")
        self._writer.carry(install)
        self._order.carry(install)
        if isinstance(start, OrderCut):
            self._writer.stand_behind(start)

    def _finish(self, stated: Described) -> None:
        taken = self._describer.described(self._stop)
        self._order.end(self._stop)
        if stated != taken:
            raise RangeMalformed(
                f"what came between {self._start} and {self._stop} is not what it is said to be; "
                "fetch it again, or from another site"
            )
        if self._expected is not None and self._expected != taken:
            raise RangeUnavailable(
                f"the other site holds something else between {self._start} and {self._stop} than was planned; "
                "fetch it from another one"
            )
        self.described = taken


def _entries(block: bytes, number: int) -> list[Any]:
    """The entries of a block of this number."""
    if len(block) > MAX_BLOCK_BYTES:
        raise RangeMalformed(f"a block of {len(block)} bytes; they have at most {MAX_BLOCK_BYTES}")
    try:
        unpacked = msgpack.unpackb(block, max_map_len=0, max_ext_len=0)
    except (ValueError, TypeError, msgpack.UnpackException, RecursionError):
        raise malformed("a block of a range", block) from None
    match unpacked:
        case [version, *_] if is_number(version) and version != TRANSFER_VERSION:
            raise LogFormat(
                f"a block of version {version}, and this version of intergroup takes version {TRANSFER_VERSION}; "
                "fetch it from a site with the same version"
            )
        case [version, stated, *entries] if is_number(version) and is_number(stated) and stated == number:
            return entries
        case _:
            raise malformed(f"block {number} of a range", block)
