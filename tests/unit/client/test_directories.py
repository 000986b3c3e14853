"""Where a site's agent lives."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from intergroup_core.client import directories
from intergroup_core.client.directories import MAX_SOCKET_PATH, machine_key, site_directories
from intergroup_core.errors import ConfigError


@pytest.fixture(autouse=True)
def _no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("INTERGROUP_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")


def test_a_named_home_has_everything(tmp_path: Path) -> None:
    found = site_directories(tmp_path)
    assert (found.runtime, found.state) == (tmp_path / "run", tmp_path)


def test_the_environment_names_one_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERGROUP_HOME", str(tmp_path))
    assert site_directories().state == tmp_path


def test_without_a_home_machines_and_containers_have_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = site_directories()
    assert here.state == tmp_path / "state" / "intergroup" / machine_key()
    assert here.runtime == Path("/run/user/7/intergroup") / machine_key()
    monkeypatch.setattr(directories.socket, "gethostname", lambda: "another container")
    assert site_directories().state != here.state
    assert site_directories().runtime != here.runtime


def test_without_a_runtime_directory_there_is_one_for_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert site_directories().runtime == Path(f"/tmp/intergroup-{os.getuid()}") / machine_key()


def test_a_socket_always_has_a_path_that_it_takes(tmp_path: Path) -> None:
    long = tmp_path / ("a" * MAX_SOCKET_PATH)
    found, other = site_directories(long), site_directories(long / "b")
    assert len(os.fsencode(found.socket)) <= MAX_SOCKET_PATH
    assert found.runtime != other.runtime
    assert found.state == long


def test_they_are_made_for_their_owner_only(tmp_path: Path) -> None:
    found = site_directories(tmp_path / "site")
    found.make()
    found.make()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (found.runtime, found.state)] == [0o700, 0o700]


def test_a_directory_that_others_write_to_is_refused(tmp_path: Path) -> None:
    found = site_directories(tmp_path / "site")
    found.make()
    found.runtime.chmod(0o777)
    with pytest.raises(ConfigError, match="chmod 700"):
        found.make()


def test_one_that_cannot_be_made_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="INTERGROUP_HOME"):
        site_directories(tmp_path / "file" / "site").make()
