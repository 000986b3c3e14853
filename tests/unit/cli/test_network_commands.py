"""What `send`, `recv` and `members` say before they use the network."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from intergroup_core.cli import main as command_line


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["recv", "g", "--delivery", "best"], 2, "delivery is 'best'; it must be uu, rso or rto"),
        (["recv", "g", "--transport", "unicast"], 2, "--transport is 'unicast'; only multicast is possible for now"),
        (["send", "g", "--peers", "10.0.0.1"], 2, "--peers names members to reach by unicast"),
        (["send", "g", "--ack", "most"], 2, "ack is 'most'; it must be one of taken, sent, delivered, k:N, majority"),
        (["send", "g", "--file", "/does/not/exist"], 2, "--file /does/not/exist cannot be read"),
        (["send", "g", "--config", "/does/not/exist"], 2, "cannot read settings from /does/not/exist"),
        (["members", ""], 2, "a group's name is ''"),
        (["recv", "g", "--interface", "wlan9"], 4, "there is no interface with the name or address 'wlan9'"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_a_code(
    arguments: list[str],
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["intergroup", *arguments])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    output = capfd.readouterr()
    assert ended.value.code == code
    assert output.err.startswith(f"intergroup: {said}")
    assert (output.err.count("\n"), output.out) == (1, "")


@pytest.mark.parametrize("command", ["send", "recv", "members"])
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    result = CliRunner().invoke(command_line.app, [command, "--help"])
    assert result.exit_code == 0
    assert f"intergroup {command} prices" in result.output
    assert all(option in result.output for option in ("--interface", "--transport", "--peers", "--config"))
