"""Digests of chains do not depend on how messages were bundled; checksums see every bit."""

from __future__ import annotations

import numpy as np

from intergroup_core.ids import MemberId
from intergroup_core.log.digest import MASK64, frames_checksum, frames_digest, view_digest
from tests.builders import A, B, C, a_run, a_view


def test_a_digest_is_the_sum_of_those_of_its_parts() -> None:
    run = a_run(seq=7, ends="..|.|||")
    whole = frames_digest(run.source, run.seq, run.frames)
    for cut in range(1, run.count):
        first, second = run.slice(0, cut), run.slice(cut, run.count)
        parts = sum(frames_digest(part.source, part.seq, part.frames) for part in (first, second))
        assert parts & MASK64 == whole


def test_sender_seq_and_checksum_all_count() -> None:
    run = a_run(seq=7, ends="||")
    whole = frames_digest(A, 7, run.frames)
    other = run.frames.copy()
    other[1, 0] ^= np.uint64(1)
    exchanged = run.frames[::-1]
    assert len({whole, frames_digest(B, 7, run.frames), frames_digest(A, 8, run.frames)}) == 3
    assert whole not in (frames_digest(A, 7, other), frames_digest(A, 7, exchanged))


def test_views_differ_by_id_and_members_and_not_by_the_order_of_members() -> None:
    assert view_digest(a_view(A, B)) == view_digest(a_view(B, A))
    assert view_digest(a_view(A, B)) != view_digest(a_view(A))
    assert view_digest(a_view(A, start=5)) != view_digest(a_view(A, start=6))


def test_the_checksum_is_that_of_first_words_and_what_is_beside() -> None:
    run = a_run(ends="..|")
    whole = frames_checksum([run.frames])
    assert frames_checksum([run.frames[:1], run.frames[1:]]) == whole
    assert frames_checksum([run.frames], b"table") != whole
    for row in range(run.count):
        for bit in range(64):
            frames = run.frames.copy()
            frames[row, 0] ^= np.uint64(1 << bit)
            assert frames_checksum([frames]) != whole


def test_one_frame_has_the_digest_of_a_run_of_one() -> None:
    run = a_run(source=C, seq=(1 << 47) + 5, ends="||")
    one, two = (frames_digest(C, run.seq + at, run.frames[at : at + 1]) for at in range(2))
    assert (one + two) & MASK64 == frames_digest(C, run.seq, run.frames)


def test_long_runs_are_summed_piece_by_piece() -> None:
    frames = np.arange(70_000 * 6, dtype=np.uint64).reshape(70_000, 6)
    parts = frames_digest(MemberId(1), 1, frames[:65_536]) + frames_digest(MemberId(1), 65_537, frames[65_536:])
    assert frames_digest(MemberId(1), 1, frames) == parts & MASK64
