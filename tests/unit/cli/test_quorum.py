from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from intergroup_core.cli.quorum import app
from intergroup_core.errors import ConfigError
from intergroup_core.ids import MemberId, Timestamp, ViewId
from intergroup_core.membership.quorum import Quorum, QuorumRecord, key_of
from intergroup_core.runtime.home import Home

LAST = ViewId(Timestamp(5), MemberId(7), 3)


def a_home(directory: Path, *others: str) -> str:
    """A site that agreed with others to a view of the group."""
    home = Home(directory)
    store = home.state_of("prices")
    assert store is not None
    store.save(QuorumRecord(LAST, 4, keys(home.identity(), *others)).to_bytes())
    store.close()
    return home.identity()


def keys(*sites: str) -> frozenset[int]:
    return frozenset(map(key_of, sites))


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_a_site_shows_the_view_it_agreed_to(tmp_path: Path) -> None:
    me = a_home(tmp_path, "b" * 32)
    shown = run("show", "prices", "--home", str(tmp_path))
    assert str(LAST) in shown
    assert f"{key_of(me):016x}, this one" in shown
    assert f"{key_of('b' * 32):016x}" in shown


def test_after_an_override_the_site_has_the_quorum_alone_and_the_others_have_not(tmp_path: Path) -> None:
    me = a_home(tmp_path, "b" * 32, "c" * 32)
    before = QuorumRecord(LAST, 4, keys(me, "b" * 32, "c" * 32))
    assert not Quorum("majority").decide([before], keys(me))
    run("override", "prices", "--home", str(tmp_path), "--yes")
    store = Home(tmp_path).state_of("prices")
    assert store is not None
    after = QuorumRecord.from_bytes(store.load() or b"")
    store.close()
    assert after is not None
    assert Quorum("majority").decide([after], keys(me))
    assert not Quorum("majority").decide([after, before], keys("b" * 32, "c" * 32))


def test_an_override_wants_to_be_meant(tmp_path: Path) -> None:
    a_home(tmp_path, "b" * 32)
    with pytest.raises(ConfigError, match="--yes"):
        run("override", "prices", "--home", str(tmp_path))


def test_nothing_is_overridden_while_a_member_runs(tmp_path: Path) -> None:
    a_home(tmp_path)
    running = Home(tmp_path).state_of("prices")
    assert running is not None
    with pytest.raises(ConfigError, match="stop it first"):
        run("override", "prices", "--home", str(tmp_path), "--yes")
    running.close()


def test_a_site_that_agreed_to_nothing_has_nothing_to_override(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to override"):
        run("override", "prices", "--home", str(tmp_path), "--yes")
