"""`intergroup`: finds the command, turns errors into one sentence and an exit code."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from intergroup_core import __version__
from intergroup_core.errors import ConfigError, IntergroupError, LocalProtocolError, NetworkUnavailable

COMMANDS = {
    "agent": "intergroup_core.cli.agent:agent",
    "bench": "intergroup_core.cli.bench:bench",
    "demo": "intergroup_core.cli.demo:demo",
    "log": "intergroup_core.cli.log:app",
    "holders": "intergroup_core.cli.holders:holders",
    "members": "intergroup_core.cli.members:members",
    "offsets": "pyspark_intergroup.offsets_command:app",
    "quorum": "intergroup_core.cli.quorum:app",
    "recv": "intergroup_core.cli.recv:recv",
    "send": "intergroup_core.cli.send:send",
    "sim": "intergroup_core.cli.sim:sim",
    "status": "intergroup_core.cli.status:status",
    "subscription": "intergroup_core.cli.subscription:app",
}
"""Command: module and the function or typer app in it. A command's imports are paid by those who run it."""

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NETWORK = 4
EXIT_INTERRUPTED = 130


class _Commands(TyperGroup):
    """Imports a command's module when the command is asked for."""

    # Typed with Any: some versions of typer bring their own click, others use the one installed.
    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name].split(":")
        target = getattr(import_module(module), attribute)
        if not isinstance(target, typer.Typer):
            function, target = target, typer.Typer(add_completion=False)
            target.command(name=cmd_name)(function)
        command = typer.main.get_command(target)
        command.name = cmd_name
        return command


app = typer.Typer(
    name="intergroup",
    cls=_Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog="Example: intergroup recv prices, and in another terminal: date | intergroup send prices",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"intergroup {__version__}")
        raise typer.Exit


@app.callback()
def intergroup(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Ordered group communication without a broker."""


def exit_code(error: IntergroupError) -> int:
    match error:
        case ConfigError() | LocalProtocolError():
            return EXIT_USAGE
        case NetworkUnavailable():
            return EXIT_NETWORK
        case _:
            return EXIT_FAILED


def main() -> NoReturn:
    try:
        app()
    except IntergroupError as error:
        print(f"intergroup: {error}", file=sys.stderr)
        sys.exit(exit_code(error))
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    sys.exit(0)
