"""Blocks reserved ahead of the end of a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from intergroup_core.runtime import reservation
from intergroup_core.runtime.disk import FileDisk
from intergroup_core.runtime.reservation import AHEAD_BYTES, FAST_BYTES, Reservation

PIECE = bytes(range(256)) * 4_096


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What the system was asked to reserve: offset and length."""
    calls: list[tuple[int, int]] = []

    def reserve(opened: int, offset: int, length: int) -> bool:
        calls.append((offset, length))
        return True

    monkeypatch.setattr(reservation, "_reserve", reserve)
    return calls


def test_a_small_file_takes_no_more_than_it_holds(asked: list[tuple[int, int]]) -> None:
    Reservation(-1).ahead_of(FAST_BYTES - 1, 10)
    assert asked == []


def test_a_file_that_grows_fast_is_reserved_for_once_and_again_where_that_ends(asked: list[tuple[int, int]]) -> None:
    ahead = Reservation(-1)
    end = FAST_BYTES + 100 + AHEAD_BYTES
    ahead.ahead_of(FAST_BYTES, 100)
    ahead.ahead_of(end - 100, 100)
    assert asked == [(FAST_BYTES, 100 + AHEAD_BYTES)]
    ahead.ahead_of(end, 1)
    assert asked[1:] == [(end, 1 + AHEAD_BYTES)]


def test_a_system_that_refuses_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(reservation, "_reserve", lambda opened, offset, length: calls.append(offset))
    ahead = Reservation(-1)
    for size in (FAST_BYTES, FAST_BYTES + 100):
        ahead.ahead_of(size, 100)
    assert calls == [FAST_BYTES]


def test_readers_see_nothing_of_it_and_nothing_of_it_stays(tmp_path: Path) -> None:
    file = FileDisk(tmp_path).create("f")
    for count in range(1, 8):
        file.appendv([PIECE])
        assert (tmp_path / "f").stat().st_size == file.size == count * len(PIECE)
    file.close()
    assert (tmp_path / "f").read_bytes() == PIECE * 7
    assert (tmp_path / "f").stat().st_blocks * 512 < 7 * len(PIECE) + AHEAD_BYTES // 2


def test_what_a_killed_process_reserved_goes_when_the_file_is_opened_again(tmp_path: Path) -> None:
    file = FileDisk(tmp_path).create("f")
    for _ in range(6):
        file.appendv([PIECE])
    killed = os.dup(file._opened)  # as a process that ends without a word: nothing is released
    reopened = FileDisk(tmp_path).reopen("f")
    reopened.appendv([b"more"])
    reopened.close()
    os.close(killed)
    assert (tmp_path / "f").read_bytes() == PIECE * 6 + b"more"
    assert (tmp_path / "f").stat().st_blocks * 512 < 7 * len(PIECE) + AHEAD_BYTES // 2
