"""Frames of the control hierarchy that are damaged or nonsense raise nothing, and a control process stays as it was."""

from __future__ import annotations

from random import Random
from typing import Any

import msgpack
import pytest

from intergroup_core.counters import Counters
from intergroup_core.hierarchy.process import ControlProcess
from intergroup_core.hierarchy.voice import hierarchy_tag
from intergroup_core.ids import MemberId, SiteId
from intergroup_core.wire.frames import FrameMaker
from intergroup_core.wire.header import FrameType
from intergroup_core.wire.hierarchy_codec import HIERARCHY_TYPES, decode_hierarchy, encode_hierarchy
from tests.builders import a_block, parsed
from tests.golden.test_golden_hierarchy import MESSAGES, a_frame
from tests.hierarchy_builders import S, T, a_process, an_lcon, at, run
from tests.property.state import differences, state_of

FRAMES = 3_000
SPEAKER = MemberId(0x5EA)


def a_coordinator_with_a_child() -> ControlProcess:
    process = a_process()
    process.start(at(T))
    run(process, T + S)
    process.receive(an_lcon(SiteId(9), process.me, sent=T + S), 100, 2, at(T + S))
    return process


def hear(process: ControlProcess, frame: bytes, counters: Counters) -> int:
    """What a datagram that is not one whole frame, or does not say anything, does to a control process."""
    found = parsed(a_block([frame]), group=hierarchy_tag("default"), counters=counters)
    for message in found:
        process.receive(message, len(frame), 2, at(T + S))
    return len(found)


def damaged(rng: Random) -> bytes:
    frame = bytearray(a_frame(rng.choice(list(MESSAGES.values()))))
    match rng.randrange(4):
        case 0:
            frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(6)
        case 1:
            del frame[8 * rng.randrange(len(frame) // 8) :]
        case 2:
            frame += rng.randbytes(8 * rng.randrange(1, 9))
        case _:
            start = rng.randrange(len(frame) - 8)
            frame[start : start + 8] = bytes(255 - byte for byte in frame[start : start + 8])
    return bytes(frame)


def spoilt(rng: Random) -> bytes:
    """Sound outside, nonsense inside."""
    kind, body = encode_hierarchy(rng.choice(list(MESSAGES.values())))
    fields: list[Any] = msgpack.unpackb(body)
    place = rng.randrange(len(fields))
    nonsense = rng.choice((-1, 0.5, {}, [[]], [[1, 2, 3, 4]], [None, True], "x" * 3_000, b"\0" * 9, [[[1]]]))
    match rng.randrange(3):
        case 0:
            fields[place] = nonsense
        case 1:
            del fields[place]
        case _:
            fields.insert(place, nonsense)
    if rng.random() < 0.2:
        kind, fields = rng.choice(sorted(HIERARCHY_TYPES)), [nonsense] * rng.randrange(20)
    return FrameMaker(hierarchy_tag("default"), SPEAKER, 0, 8_000).single(kind, 0, 0, msgpack.packb(fields))


@pytest.mark.parametrize("make", [damaged, spoilt])
def test_what_is_no_message_raises_nothing_and_changes_nothing(make: Any) -> None:
    process, counters, rng = a_coordinator_with_a_child(), Counters(), Random(1)
    before = state_of(process)
    assert sum(hear(process, make(rng), counters) for _ in range(FRAMES)) == 0
    assert differences(before, state_of(process)) == {}
    assert sum(counters.dropped.values()) == FRAMES


def test_a_sound_message_does_change_something() -> None:
    process, counters = a_coordinator_with_a_child(), Counters()
    before = state_of(process)
    assert hear(process, a_frame(MESSAGES["global-control"]), counters) == 1
    assert differences(before, state_of(process)) != {}


@pytest.mark.parametrize("kind", sorted(HIERARCHY_TYPES))
def test_noise_is_no_message(kind: FrameType) -> None:
    rng = Random(kind)
    for _ in range(500):
        assert decode_hierarchy(kind, 1, rng.randbytes(rng.randrange(200))) is None
