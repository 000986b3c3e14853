"""How others come to a site's logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intergroup_core.agent.entrance import Entrance
from intergroup_core.wire.keeping import TOKEN_BYTES


def test_a_site_that_starts_again_has_the_same_tokens_and_ports(tmp_path: Path) -> None:
    first = Entrance(tmp_path / "entrance")
    assert first.port_of("127.0.0.1") == 0
    first.listens("127.0.0.1", 4_242)

    again = Entrance(tmp_path / "entrance")

    assert again.port_of("127.0.0.1") == 4_242
    assert again.port_of("10.0.0.1") == 0
    assert again.token_of("prices") == first.token_of("prices")
    assert len(again.token_of("prices")) == TOKEN_BYTES


def test_groups_and_sites_have_tokens_of_their_own(tmp_path: Path) -> None:
    one, other = Entrance(tmp_path / "one"), Entrance(tmp_path / "other")
    tokens = {site.token_of(group) for site in (one, other) for group in ("prices", "trades")}
    assert len(tokens) == 4


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    Entrance(tmp_path / "entrance").listens("127.0.0.1", 4_242)
    assert (tmp_path / "entrance").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        json.dumps({"format": 2, "secret": "00" * 32, "ports": {}}).encode(),
        json.dumps({"format": 1, "secret": "00", "ports": {}}).encode(),
        json.dumps({"format": 1, "secret": "zz" * 32, "ports": {}}).encode(),
        json.dumps({"format": 1, "secret": "00" * 32, "ports": {"127.0.0.1": 70_000}}).encode(),
        json.dumps({"format": 1, "secret": "00" * 32, "ports": {"127.0.0.1": "1"}}).encode(),
    ],
)
def test_what_is_not_an_entrance_is_made_anew(tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "entrance"
    path.write_bytes(content)
    entrance = Entrance(path)
    assert str(path) in caplog.text
    assert entrance.port_of("127.0.0.1") == 0
    assert entrance.token_of("prices") != Entrance(path).token_of("prices")
    entrance.listens("127.0.0.1", 4_242)
    assert Entrance(path).token_of("prices") == entrance.token_of("prices")


def test_a_site_that_cannot_keep_it_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    entrance = Entrance(tmp_path / "not there" / "entrance")
    entrance.listens("127.0.0.1", 4_242)
    assert entrance.port_of("127.0.0.1") == 4_242
    assert "cannot be written" in caplog.text
