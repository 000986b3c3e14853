from __future__ import annotations

import numpy as np
import pytest

from intergroup_core.counters import Counters
from intergroup_core.wire.checksum import WEIGHTS, check_frame, check_frames, seal_frame, seal_frames
from intergroup_core.wire.header import MAX_FRAME_BYTES
from tests.builders import a_frame, a_keepalive, parsed, sealed


def flipped(frame: bytes, bit: int) -> bytes:
    changed = bytearray(frame)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def words(frame: bytes) -> np.ndarray:  # type: ignore[type-arg]
    return np.frombuffer(bytearray(frame), dtype=np.uint64)


SMALL = [a_keepalive(seq=5), a_frame(payload=b"payload", seq=5)]


@pytest.mark.parametrize("frame", SMALL, ids=["keep-alive", "data"])
def test_every_single_flipped_bit_is_caught_by_the_checksum_alone(frame: bytes) -> None:
    assert check_frame(words(frame), int.from_bytes(frame[:4], "little"))
    mutants = [flipped(frame, bit) for bit in range(8 * len(frame))]
    for mutant in mutants:
        assert not check_frame(words(mutant), int.from_bytes(mutant[:4], "little"))
    block = words(b"".join([*mutants, frame])).reshape(len(mutants) + 1, -1)
    assert check_frames(block).tolist() == [False] * len(mutants) + [True]


@pytest.mark.parametrize("frame", SMALL, ids=["keep-alive", "data"])
def test_every_single_flipped_bit_is_dropped_and_counted(frame: bytes) -> None:
    for bit in range(8 * len(frame)):
        counters = Counters()
        assert parsed(flipped(frame, bit), counters=counters) == []
        assert sum(counters.dropped.values()) == 1
    together = Counters()
    block = b"".join(flipped(frame, bit) for bit in range(8 * len(frame)))
    assert parsed((block, len(frame)), counters=together) == []
    assert sum(together.dropped.values()) == 8 * len(frame)


def test_no_weight_lets_a_flipped_bit_of_its_word_pass() -> None:
    # A flip adds or takes away weight * 2^bit; what is kept is the upper half, into which the lower may carry.
    for bit in range(64):
        upper = (WEIGHTS << np.uint64(bit)) >> np.uint64(32)
        assert (upper != 0).all()
        if bit < 32:
            assert (upper != 0xFFFFFFFF).all()


def test_swapped_words_and_moved_payloads_are_caught() -> None:
    frame = a_frame(payload=bytes(range(64)))
    at = 48
    swapped = frame[:at] + frame[at + 8 : at + 16] + frame[at : at + 8] + frame[at + 16 :]
    counters = Counters()
    assert parsed(swapped, counters=counters) == []
    assert counters.dropped == {"checksum": 1}


def test_sealing_one_frame_or_many_gives_what_the_definition_says() -> None:
    rng = np.random.default_rng(5)
    for size in (48, 56, 1_400, MAX_FRAME_BYTES):
        frames = rng.integers(0, 1 << 64, (3, size // 8), dtype=np.uint64)
        frames[:, 0] &= np.uint64(0xFFFFFFFF_00000000)
        expected = [sealed(frame.tobytes()) for frame in frames]
        alone = frames.copy()
        for frame in alone:
            seal_frame(frame)
        seal_frames(frames)
        assert [frame.tobytes() for frame in frames] == expected
        assert [frame.tobytes() for frame in alone] == expected
        assert check_frames(frames).all()


def test_two_flipped_bits_escape_only_where_one_is_among_the_topmost_of_its_word() -> None:
    # docs/decisions/0002: flips that only change the uppermost bits of several words are where it is weak.
    frame = words(a_frame(payload=bytes(range(80))))
    bits = 64 * len(frame)
    flips = np.zeros((bits, len(frame)), dtype=np.uint64)
    for bit in range(bits):
        flips[bit, bit // 64] = np.uint64(1) << np.uint64(bit % 64)
    pairs = escaped = 0
    for bit in range(bits - 1):
        passes = np.flatnonzero(check_frames(frame ^ flips[bit] ^ flips[bit + 1 :])) + bit + 1
        pairs += bits - bit - 1
        escaped += len(passes)
        in_checksum = bit < 32
        assert all(other % 64 >= 48 and (in_checksum or other % 64 == bit % 64) for other in passes)
    assert escaped / pairs < 0.001
