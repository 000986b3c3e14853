"""Digests of chains do not depend on how messages were bundled; checksums see every bit."""

from __future__ import annotations

import numpy as np

from intergroup_core.ids import MemberId
from intergroup_core.log.digest import MASK64, frames_checksum, frames_digest, view_digest
from tests.builders import A, B, C, a_run, a_view


def test_a_digest_is_the_sum_of_those_of_its_parts() -> None:
    run = a_run(seq=7, ends="..|.|||")
    whole = frames_digest(run.source, run.seq, run.first_words)
    for cut in range(1, run.count):
        first, second = run.slice(0, cut), run.slice(cut, run.count)
        parts = sum(frames_digest(part.source, part.seq, part.first_words) for part in (first, second))
        assert parts & MASK64 == whole


def test_sender_seq_and_checksum_all_count() -> None:
    run = a_run(seq=7, ends="||")
    whole = frames_digest(A, 7, run.first_words)
    other = run.first_words.copy()
    other[1] ^= np.uint64(1)
    exchanged = run.first_words[::-1]
    assert len({whole, frames_digest(B, 7, run.first_words), frames_digest(A, 8, run.first_words)}) == 3
    assert whole not in (frames_digest(A, 7, other), frames_digest(A, 7, exchanged))


def test_views_differ_by_id_and_members_and_not_by_the_order_of_members() -> None:
    assert view_digest(a_view(A, B)) == view_digest(a_view(B, A))
    assert view_digest(a_view(A, B)) != view_digest(a_view(A))
    assert view_digest(a_view(A, start=5)) != view_digest(a_view(A, start=6))


def test_the_checksum_is_that_of_first_words_and_what_is_beside() -> None:
    run = a_run(ends="..|")
    whole = frames_checksum([run.first_words])
    assert frames_checksum([run.first_words[:1], run.first_words[1:]]) == whole
    assert frames_checksum([run.first_words], b"table") != whole
    for row in range(run.count):
        for bit in range(64):
            words = run.first_words.copy()
            words[row] ^= np.uint64(1 << bit)
            assert frames_checksum([words]) != whole


def test_one_frame_has_the_digest_of_a_run_of_one() -> None:
    run = a_run(source=C, seq=(1 << 47) + 5, ends="||")
    one, two = (frames_digest(C, run.seq + at, run.first_words[at : at + 1]) for at in range(2))
    assert (one + two) & MASK64 == frames_digest(C, run.seq, run.first_words)


def test_long_runs_are_summed_piece_by_piece() -> None:
    words = np.arange(70_000, dtype=np.uint64)
    parts = frames_digest(MemberId(1), 1, words[:65_536]) + frames_digest(MemberId(1), 65_537, words[65_536:])
    assert frames_digest(MemberId(1), 1, words) == parts & MASK64
