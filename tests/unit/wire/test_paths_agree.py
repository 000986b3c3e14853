"""Many frames at once and each by itself: two ways to read the same bytes, which must never differ."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intergroup_core.counters import Counters
from intergroup_core.ids import MAX_TIMESTAMP
from intergroup_core.wire.header import MAX_SEQ
from intergroup_core.wire.parse import Parsed
from intergroup_core.wire.run import Run
from tests.builders import DATA, KEEP_ALIVE, REPAIR, REPORT, REQUEST, START, TAG, VIEW, A, C, a_frame, frames_of, parsed
from tests.sizes import sized

SIZE = 96
"""Of every frame here: room for a frame of 48 inside a repair."""


def flat(found: list[Parsed]) -> list[object]:
    """What was read, frame by frame, however it was cut into runs."""
    flattened: list[object] = []
    for each in found:
        if not isinstance(each, Run):
            flattened.append(each)
            continue
        ends = dict(zip(each.ends, each.end_lengths, strict=True))
        fragment = each.fragment
        for index, frame in enumerate(frames_of(each)):
            place = (each.source, each.seq + index, each.timestamp + index, each.view_tag, fragment)
            flattened.append((*place, each.repaired, ends.get(index), frame))
            fragment = 0 if index in ends else fragment + 1
    return flattened


def both_ways(frames: list[bytes]) -> tuple[list[object], dict[str, int]]:
    together, apart = Counters(), Counters()
    as_block = flat(parsed((b"".join(frames), SIZE), counters=together))
    one_by_one = [flat(parsed(frame, counters=apart)) for frame in frames]
    assert as_block == [each for found in one_by_one for each in found]
    assert together.dropped == apart.dropped
    return as_block, together.dropped


def sound(rng: Random, seq: int, sender: int) -> bytes:
    last = rng.random() < 0.5
    length = rng.randrange(SIZE - 47) if last else SIZE - 48
    return a_frame(
        sender=sender,
        seq=seq,
        timestamp=START + seq,
        flags=int(last),
        fragment=rng.choice((0, 0, 1, 2, 65_535)),
        payload=rng.randbytes(length),
        size=SIZE,
    )


Maker = Callable[[Random, int], bytes]


def wrong_field(rng: Random, seq: int) -> bytes:
    """A sound checksum over a field that is at, or beyond, the edge of what it may be."""
    fields = {"sender": A, "seq": seq, "timestamp": START + seq, "flags": 1, "epoch": 0, "length": SIZE - 48}
    fields |= {"kind": DATA, "view_tag": VIEW.id.tag, "group": TAG, "magic_version": 0xB1, "fragment": 0}
    edges = {
        "sender": (0, (1 << 64) - 1),
        "seq": (0, MAX_SEQ, MAX_SEQ + 1, (1 << 64) - 1),
        "timestamp": (0, MAX_TIMESTAMP, MAX_TIMESTAMP + 1, (1 << 64) - 1),
        "flags": (0, 1, 2, 3, 255),
        "epoch": (1, 255),
        "length": (0, 1, SIZE - 49, SIZE - 48, SIZE - 47, 65_535),
        "kind": (0, DATA, KEEP_ALIVE, REQUEST, REPAIR, REPORT, 6, 255),
        "view_tag": (0, (1 << 32) - 1),
        "group": (0, TAG ^ 1),
        "magic_version": (0xB0, 0xB2, 0xA1, 0),
        "fragment": (65_535,),
    }
    for name in rng.sample(sorted(edges), rng.choice((1, 1, 2))):
        fields[name] = rng.choice(edges[name])
    return a_frame(fields.pop("kind"), payload=rng.randbytes(SIZE - 48), size=SIZE, **fields)


def flipped_bit(rng: Random, seq: int) -> bytes:
    frame = bytearray(sound(rng, seq, A))
    bit = rng.randrange(8 * SIZE)
    frame[bit // 8] ^= 1 << bit % 8
    return bytes(frame)


def repaired(rng: Random, seq: int) -> bytes:
    inner = a_frame(
        rng.choice((DATA, DATA, KEEP_ALIVE, REPORT)), seq=seq, timestamp=START + seq, flags=rng.choice((0, 1))
    )
    if rng.random() < 0.2:
        inner = bytes([inner[0] ^ 1]) + inner[1:]
    outer = {"sender": C, "seq": 0, "timestamp": 0, "flags": 1, "epoch": 0, "view_tag": VIEW.id.tag}
    if rng.random() < 0.2:
        name = rng.choice(sorted(outer))
        outer[name] = rng.choice((0, 1, MAX_SEQ, (1 << 64) - 1)) & {"flags": 255, "epoch": 255, "view_tag": 99}.get(
            name, (1 << 64) - 1
        )
    return a_frame(REPAIR, payload=inner, size=SIZE, **outer)


def keepalive(rng: Random, seq: int) -> bytes:
    return a_frame(KEEP_ALIVE, seq=seq, payload=bytes(SIZE - 48 - rng.randrange(8)), size=SIZE)


MAKERS: dict[str, Maker] = {
    "sound": lambda rng, seq: sound(rng, seq, A),
    "other": lambda rng, seq: sound(rng, seq, C),
    "wrong": wrong_field,
    "flipped": flipped_bit,
    "repaired": repaired,
    "keepalive": keepalive,
    "noise": lambda rng, seq: rng.randbytes(SIZE),
}


def a_block_of(kinds: list[str], rng: Random) -> list[bytes]:
    return [MAKERS[kind](rng, 1 + index) for index, kind in enumerate(kinds)]


@settings(max_examples=sized(100, 5_000))
@given(st.lists(st.sampled_from(sorted(MAKERS)), min_size=1, max_size=24), st.randoms(use_true_random=False))
def test_a_mixed_block_is_read_as_its_frames_are(kinds: list[str], rng: Random) -> None:
    both_ways(a_block_of(kinds, rng))


@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_a_block_of_one_kind_is_read_as_its_frames_are(kind: str) -> None:
    for seed in range(40):
        both_ways(a_block_of([kind] * (2 + seed % 15), Random(seed)))


@pytest.mark.parametrize("seed", range(40))
def test_one_wrong_frame_in_a_run_is_found_by_both(seed: int) -> None:
    rng = Random(seed)
    frames = [
        a_frame(seq=1 + i, timestamp=START + 1 + i, payload=bytes(SIZE - 48), fragment=i, flags=i == 15)
        for i in range(16)
    ]
    frames[rng.randrange(16)] = MAKERS[rng.choice(["wrong", "flipped", "noise"])](rng, rng.randrange(1, 20))
    both_ways(frames)


def test_messages_of_several_frames_are_read_as_their_frames_are() -> None:
    for seed in range(30):
        rng = Random(seed)
        frames, fragment = [], 0
        for index in range(40):
            last = rng.random() < 0.2
            payload = struct.pack("<Q", index) * 6
            length = rng.randrange(49) if last else 48
            frames.append(
                a_frame(
                    seq=1 + index,
                    timestamp=START + 1 + index,
                    payload=payload[:length],
                    size=SIZE,
                    fragment=fragment,
                    flags=last,
                )
            )
            fragment = 0 if last else fragment + 1
        found, dropped = both_ways(frames)
        assert len(found) == 40
        assert dropped == {}


@pytest.mark.parametrize("field", ["seq", "timestamp"])
def test_a_run_that_climbs_past_the_highest_number_is_cut_there_by_both(field: str) -> None:
    highest = {"seq": MAX_SEQ, "timestamp": MAX_TIMESTAMP}[field]
    frames = []
    for index in range(8):
        numbers = {"seq": 1 + index, "timestamp": START + 1 + index} | {field: highest - 4 + index}
        frames.append(a_frame(**numbers, payload=bytes(SIZE - 48), fragment=index, flags=0))
    found, dropped = both_ways(frames)
    assert len(found) == 5
    assert dropped == {"field": 3}


def test_fragments_that_climb_past_the_highest_number_start_a_new_run() -> None:
    frames = [
        a_frame(seq=1 + index, timestamp=START + 1 + index, payload=bytes(SIZE - 48), flags=0, fragment=fragment)
        for index, fragment in enumerate([65_533, 65_534, 65_535, 0, 1, 2])
    ]
    found, dropped = both_ways(frames)
    assert len(found) == 6
    assert dropped == {}


@pytest.mark.parametrize(
    "wrong", [{"sender": 0}, {"seq": MAX_SEQ + 1}, {"timestamp": 1 << 63}, {"flags": 3}, {"group": 1}]
)
def test_repairs_whose_own_header_is_wrong_are_dropped_by_both(wrong: dict[str, int]) -> None:
    outer = {"sender": C, "seq": 0, "timestamp": 0} | wrong
    frames = [a_frame(REPAIR, payload=a_frame(seq=1 + i, timestamp=START + 1 + i), **outer) for i in range(4)]
    found, dropped = both_ways(frames)
    assert found == []
    assert sum(dropped.values()) == 4
