from __future__ import annotations

import numpy as np
import pytest

from intergroup_core.counters import Counters
from intergroup_core.wire.checksum import UPPER_WEIGHTS, WEIGHTS, check_frame, check_frames, seal_frame, seal_frames
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
    of_upper_half = UPPER_WEIGHTS + (WEIGHTS << np.uint64(32))
    for weights in (WEIGHTS, of_upper_half):
        for bit in range(32):
            upper = (weights << np.uint64(bit)) >> np.uint64(32)
            assert (upper != 0).all()
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
            seal_frame(frame.data)
        seal_frames(frames)
        assert [frame.tobytes() for frame in frames] == expected
        assert [frame.tobytes() for frame in alone] == expected
        assert check_frames(frames).all()


def test_no_two_flipped_bits_escape() -> None:
    frame = words(a_frame(payload=bytes(range(80))))
    bits = 64 * len(frame)
    flips = np.zeros((bits, len(frame)), dtype=np.uint64)
    for bit in range(bits):
        flips[bit, bit // 64] = np.uint64(1) << np.uint64(bit % 64)
    for bit in range(bits - 1):
        assert not check_frames(frame ^ flips[bit] ^ flips[bit + 1 :]).any()


@pytest.mark.parametrize("bit", [0, 31, 32, 47, 62, 63])
def test_no_pattern_in_one_column_of_bits_escapes(bit: int) -> None:
    # Whatever several words lose of their topmost bits, or of any others, must show.
    rng = np.random.default_rng(bit)
    frame = words(a_frame(payload=bytes(1_352)))
    chosen = rng.integers(0, 2, (20_000, len(frame)), dtype=np.uint64)
    chosen[:, 0] = 0
    chosen = chosen[chosen.any(axis=1)]
    assert not check_frames(frame ^ (chosen << np.uint64(bit))).any()


def test_a_run_is_checked_alike_in_whatever_pieces() -> None:
    frames = np.random.default_rng(6).integers(0, 1 << 64, (700, 175), dtype=np.uint64)
    frames[:, 0] &= np.uint64(0xFFFFFFFF_00000000)
    seal_frames(frames)
    assert check_frames(frames).all()
    assert all(check_frame(frame, int(frame[0]) & 0xFFFFFFFF) for frame in frames)
    frames[350, 90] ^= np.uint64(1 << 63)
    frames[350, 91] ^= np.uint64(1 << 63)
    assert np.flatnonzero(~check_frames(frames)).tolist() == [350]
