"""A site's directory."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from intergroup_core.errors import ConfigError
from intergroup_core.runtime.home import (
    HOME_VARIABLE,
    MAX_RECORD_BYTES,
    FileStateStore,
    Home,
    StateUnavailable,
    chosen_home,
)


def a_store(directory: Path, group: str = "prices") -> FileStateStore:
    store = Home(directory).state_of(group)
    assert store is not None
    return store


def test_without_a_directory_there_is_no_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HOME_VARIABLE, raising=False)
    assert chosen_home(None) is None
    monkeypatch.setenv(HOME_VARIABLE, "")
    assert chosen_home(None) is None


def test_a_directory_is_named_by_the_caller_else_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, "/there")
    assert chosen_home(None) == Path("/there")
    assert chosen_home("/here") == Path("/here")


def test_a_site_keeps_its_identity(tmp_path: Path) -> None:
    here, there = tmp_path / "deep" / "here", tmp_path / "there"
    identity = Home(here).identity()
    assert Home(here).identity() == identity != Home(there).identity()
    assert len(identity) == 32
    assert [path.name for path in here.iterdir()] == ["site"], "nothing temporary stays"


def test_those_who_create_an_identity_together_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(lambda _: Home(tmp_path).identity(), range(32)))) == 1


def test_a_damaged_identity_is_not_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "site").write_text("not an identity\n")
    with pytest.raises(ConfigError, match="does not hold a site's identity"):
        Home(tmp_path).identity()


def test_a_directory_that_cannot_be_had_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=HOME_VARIABLE):
        Home(tmp_path / "file").identity()
    with pytest.raises(ConfigError, match=HOME_VARIABLE):
        Home(tmp_path / "file").state_of("prices")


def test_a_record_is_what_was_saved_last(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    assert store.load() is None
    store.save(b"first")
    store.save(b"second")
    store.close()
    store.close()
    assert a_store(tmp_path).load() == b"second"
    assert a_store(tmp_path, "other").load() is None


def test_one_process_at_a_time_has_the_memory_of_a_group(tmp_path: Path) -> None:
    first = a_store(tmp_path)
    assert Home(tmp_path).state_of("prices") is None
    first.close()
    assert a_store(tmp_path).load() is None


def test_a_record_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = a_store(tmp_path)
    store.save(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StateUnavailable, match="No space left"):
        store.save(b"new")
    assert store.load() == b"old"
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_file_that_is_no_record_is_refused(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    store.save(bytes(MAX_RECORD_BYTES + 1))
    with pytest.raises(StateUnavailable, match="not a record"):
        store.load()
