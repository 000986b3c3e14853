"""Every bit of an entry is under a checksum."""

from __future__ import annotations

from intergroup_core.log.entry import header_at
from intergroup_core.log.index import IndexBuilder
from intergroup_core.log.manifest import segment_name
from intergroup_core.log.segment import Scan
from intergroup_core.sim.disk import SimDisk
from tests.builders import START, A
from tests.log_builders import LOG, a_chunk, a_gap, a_log, an_install


def a_segment() -> bytes:
    """A view, a message of several runs, a gap, and a message that stays sound."""
    disk = SimDisk()
    log = a_log(disk)
    for delivered in (
        an_install(A),
        a_chunk(b"several", b"frames", body=16),
        a_gap(),
        a_chunk(b"the last", seq=9, timestamp=START + 9),
    ):
        log.append(delivered)
    return bytes(disk.map(segment_name(0), 0, disk.size(segment_name(0))))


def scanned(content: bytes) -> Scan:
    scan = Scan("f", LOG, IndexBuilder(0))
    scan.walk(memoryview(content), check_payloads=True)
    return scan


def test_a_sound_segment_is_walked_to_its_end() -> None:
    content = a_segment()
    scan = scanned(content)
    assert (scan.end, scan.damages, scan.builder.entries) == (len(content), [], 4)


def test_each_flipped_bit_damages_its_entry_and_no_other() -> None:
    content = a_segment()
    bounds = [0]
    while len(bounds) < 4:
        header = header_at(memoryview(content), bounds[-1])
        assert header is not None
        bounds.append(bounds[-1] + header.size)
    for offset in range(bounds[-1]):
        damaged = bytearray(content)
        damaged[offset] ^= 1 << offset % 8
        scan = scanned(bytes(damaged))
        start = max(bound for bound in bounds if bound <= offset)
        assert [damage.offset for damage in scan.damages] == [start], f"offset {offset}"
        assert scan.damages[0].stop in bounds
        assert (scan.builder.entries, scan.end) == (3, len(content))


def test_a_walk_goes_on_where_it_ended() -> None:
    content = a_segment()
    scan = Scan("f", LOG, IndexBuilder(0))
    for stop in range(0, len(content) + 1, 40):
        scan.walk(memoryview(content[:stop]), check_payloads=False)
    scan.walk(memoryview(content), check_payloads=False)
    assert scan.builder.index().packed() == scanned(content).builder.index().packed()


def test_entries_of_another_log_are_none() -> None:
    scan = Scan("f", LOG + 1, IndexBuilder(0))
    scan.walk(memoryview(a_segment()), check_payloads=True)
    assert (scan.end, scan.builder.entries) == (0, 0)
