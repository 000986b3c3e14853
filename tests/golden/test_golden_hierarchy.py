"""Bytes of the control hierarchy's frames, kept for ever: a change here is a new version of the wire format.

Written anew, after such a change, by:  python -m tests.golden.test_golden_hierarchy
"""

from __future__ import annotations

from pathlib import Path

import pytest

from intergroup_core.counters import Counters
from intergroup_core.hierarchy.voice import hierarchy_tag
from intergroup_core.ids import MemberId, SiteId, Timestamp
from intergroup_core.wire.frames import FrameMaker
from intergroup_core.wire.hierarchy import (
    Acknowledgment,
    CoordinatorControl,
    CoordinatorLeave,
    CutKey,
    GlobalControl,
    GroupKey,
    HierarchyMessage,
    LocalControl,
    Reach,
    RingAnswer,
    RingQuery,
    SiteLeave,
)
from intergroup_core.wire.hierarchy_codec import HIERARCHY_TYPES, encode_hierarchy
from tests.builders import a_block, parsed

FRAMES = Path(__file__).parent / "hierarchy"
SPEAKER, OTHER, THIRD = SiteId(0x0123_4567_89AB_CDEF), SiteId(0xFEDC_BA98_7654_3210), SiteId(7)
TIME, CLOCK = Timestamp(0x0777_8888_9999_AAAA), 0xFEDC_BA98
ECHOES = {OTHER: (CLOCK - 1_000, 250), THIRD: (0, (1 << 32) - 1)}
TABLE = {GroupKey(0xA1B2_C3D4_E5F6_0718, 0x1020_3040): Acknowledgment(TIME, 258, THIRD, "Bücher")}
CUTS = {CutKey(0xA1B2_C3D4_E5F6_0718, 0x1020_3040, MemberId(OTHER)): Reach(0x1122_3344_5566, TIME)}

MESSAGES: dict[str, HierarchyMessage] = {
    "local-control": LocalControl(
        site=SPEAKER,
        coordinator=OTHER,
        ttl=5,
        clock=CLOCK,
        part=1,
        parts=3,
        name="berlin",
        known=99,
        echoes=ECHOES,
        acknowledgments=TABLE,
        cuts=CUTS,
    ),
    "coordinator-control": CoordinatorControl(
        site=SPEAKER,
        ttl=16,
        clock=CLOCK,
        far_us=15_000,
        children=100,
        coordinators=12,
        counted=1_500_000,
        heir=THIRD,
        echoes=ECHOES,
        local_distances={THIRD: 1_500},
        coordinator_distances={OTHER: 70_000},
        acknowledgments=TABLE,
        cuts=CUTS,
    ),
    "coordinator-control-alone": CoordinatorControl(site=SPEAKER, ttl=1, clock=0),
    "global-control": GlobalControl(
        site=SPEAKER, clock=CLOCK, children=100, coordinators=12, echoes=ECHOES, acknowledgments=TABLE, cuts=CUTS
    ),
    "ring-query": RingQuery(site=SPEAKER, attempt=300, ttl=16, clock=CLOCK, leaving=OTHER, starting=False),
    "ring-query-starting": RingQuery(site=SPEAKER, attempt=1, ttl=1, clock=CLOCK, leaving=None, starting=True),
    "ring-answer": RingAnswer(
        site=SPEAKER,
        seeker=OTHER,
        attempt=300,
        query_clock=CLOCK,
        held=70,
        ttl=64,
        children=100,
        coordinators=12,
        takes=True,
    ),
    "coordinator-leave": CoordinatorLeave(site=SPEAKER, clock=CLOCK),
    "site-leave": SiteLeave(site=SPEAKER, coordinator=OTHER, clock=CLOCK),
    "site-leave-orphans": SiteLeave(site=SPEAKER, coordinator=SPEAKER, clock=CLOCK, orphans=True),
}


def a_frame(message: HierarchyMessage) -> bytes:
    kind, body = encode_hierarchy(message)
    return FrameMaker(hierarchy_tag("default"), MemberId(SPEAKER), 0, 1_400).single(kind, 0, 0, body)


def lines(frame: bytes) -> str:
    return "\n".join(frame[at : at + 32].hex() for at in range(0, len(frame), 32)) + "\n"


def golden(name: str) -> bytes:
    return bytes.fromhex((FRAMES / f"{name}.hex").read_text())


@pytest.mark.parametrize("name", MESSAGES)
def test_encoding_gives_the_bytes_on_file(name: str) -> None:
    assert a_frame(MESSAGES[name]).hex(" ", 8) == golden(name).hex(" ", 8)


@pytest.mark.parametrize("name", MESSAGES)
def test_the_frame_on_file_is_read_as_the_message_it_was(name: str) -> None:
    counters = Counters()
    assert parsed(a_block([golden(name)]), group=hierarchy_tag("default"), counters=counters) == [MESSAGES[name]]
    assert counters.dropped == {}


def test_every_file_is_tested_and_every_type_has_one() -> None:
    assert {path.stem for path in FRAMES.glob("*.hex")} == set(MESSAGES)
    assert {golden(name)[5] for name in MESSAGES} == HIERARCHY_TYPES


if __name__ == "__main__":
    for name, message in MESSAGES.items():
        (FRAMES / f"{name}.hex").write_text(lines(a_frame(message)))
