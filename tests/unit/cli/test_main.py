from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import ModuleType

import pytest
import typer
from typer.testing import CliRunner

from intergroup_core import Backpressure, ConfigError, IntergroupError, MessageTooLarge, NetworkUnavailable, __version__
from intergroup_core.cli import main as command_line


@pytest.fixture
def a_command(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    """Plants a command `probe` as a module would bring it."""

    def plant(target: object) -> None:
        module = ModuleType("planted_probe")
        module.probe = target  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "planted_probe", module)
        monkeypatch.setattr(command_line, "COMMANDS", {"probe": "planted_probe:probe"})
        monkeypatch.setattr(sys, "argv", ["intergroup", "probe"])

    return plant


def test_the_version_is_printed() -> None:
    result = CliRunner().invoke(command_line.app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"intergroup {__version__}\n")


def test_an_unknown_command_is_wrong_usage() -> None:
    assert CliRunner().invoke(command_line.app, ["no-such-command"]).exit_code == command_line.EXIT_USAGE


def test_a_command_may_be_a_function(a_command: Callable[[object], None]) -> None:
    def probe(times: int = 1) -> None:
        """Says so."""
        print("probed " * times)

    a_command(probe)
    result = CliRunner().invoke(command_line.app, ["probe", "--times", "2"])
    assert (result.exit_code, result.output.split()) == (0, ["probed", "probed"])
    assert "Says so." in CliRunner().invoke(command_line.app, ["--help"]).output


def test_a_command_may_have_commands_of_its_own(a_command: Callable[[object], None]) -> None:
    group = typer.Typer()

    @group.command()
    def first() -> None:
        print("first")

    @group.command()
    def second() -> None:
        print("second")

    a_command(group)
    assert CliRunner().invoke(command_line.app, ["probe", "second"]).output == "second\n"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("send.burst_bytes is 0; raise it"), 2),
        (MessageTooLarge("a record of 9 bytes; at most 8"), 2),
        (NetworkUnavailable("there is no interface eth9; name another"), 4),
        (Backpressure("the queue is full; wait"), 1),
    ],
)
def test_an_error_is_one_sentence_and_a_code(
    error: IntergroupError, code: int, a_command: Callable[[object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    def probe() -> None:
        raise error

    a_command(probe)
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert ended.value.code == code
    assert capsys.readouterr().err == f"intergroup: {error}\n"


def test_a_command_without_error_ends_with_its_own_code(a_command: Callable[[object], None]) -> None:
    def probe() -> None:
        raise typer.Exit(3)

    a_command(probe)
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert ended.value.code == 3


def test_finding_a_command_imports_no_other() -> None:
    program = (
        "import sys; from intergroup_core.cli import main; "
        "assert main.COMMANDS; print([m for m in sys.modules if m.startswith('intergroup_core.sim')])"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output == "[]\n"
