"""Parts of streams on disks of their own, and what lies in them."""

from __future__ import annotations

from intergroup_core.ids import Service
from intergroup_core.log.cut import Cut, OrderCut, SourceCut
from intergroup_core.log.entry import Kind
from intergroup_core.log.entry_maker import Delivered
from intergroup_core.log.reader import RangeReader
from intergroup_core.log.stream import StreamReader
from intergroup_core.log.transfer import RangeSink, RangeSource
from intergroup_core.log.writer import LogWriter, create_log, open_log
from intergroup_core.sim.disk import SimDisk
from tests.builders import GROUP


def a_part(history: list[Delivered], log: int, service: Service = Service.RTO, after: Cut | None = None) -> SimDisk:
    disk = SimDisk()
    writer = a_writer(disk, log, service, after)
    for delivered in history:
        writer.append(delivered)
    return disk


def a_writer(disk: SimDisk, log: int, service: Service, after: Cut | None = None) -> LogWriter:
    create_log(disk, log=log, group=GROUP, service=service, after=after)
    return open_log(disk, segment_bytes=1_500)


def fetched(source: RangeReader, start: Cut, stop: Cut, log: int) -> SimDisk:
    """A part that holds a range of another site's log."""
    assert isinstance(start, OrderCut | SourceCut)
    assert isinstance(stop, OrderCut | SourceCut)
    disk = SimDisk()
    service = Service.RTO if isinstance(start, OrderCut) else Service.RSO
    sink = RangeSink(a_writer(disk, log, service, start), start, stop)
    for block in RangeSource(source, start, stop):
        sink.take(block)
    sink.keep()
    return disk


def content(reader: RangeReader, start: Cut, stop: Cut) -> list[object]:
    """Messages, views and gaps one by one, however they are bundled."""
    found: list[object] = []
    for piece in reader.pieces(start, stop):
        match piece.entry.kind:
            case Kind.DATA:
                found += [(each.source, each.seq, each.payload.tobytes()) for each in piece.chunk().messages()]
            case Kind.VIEW:
                found.append(piece.entry.install())
            case Kind.GAP:
                found.append(piece.entry.gap())
    return found


def everything(stream: StreamReader) -> list[object]:
    start, stop = stream.first(), stream.head()
    assert start is not None
    assert stop is not None
    return content(stream, start, stop)
