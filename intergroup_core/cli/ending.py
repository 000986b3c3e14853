"""How a command that is in a group ends: it leaves, whether by a signal or because nobody reads its output."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import typer

EXIT_TIMEOUT = 3
EXIT_TERMINATED = 128 + signal.SIGTERM
EXIT_BROKEN_PIPE = 128 + signal.SIGPIPE


class Terminated(BaseException):
    """SIGTERM came; like KeyboardInterrupt it passes everything that handles errors, so that blocks end."""


@contextmanager
def leaving_on_signals() -> Iterator[None]:
    """Turn SIGTERM and a reader that went away into the end of the block and an exit code; Ctrl-C is one already."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    except Terminated:
        raise typer.Exit(EXIT_TERMINATED) from None
    except BrokenPipeError:
        _forget_output()
        raise typer.Exit(EXIT_BROKEN_PIPE) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def write_line(line: str) -> None:
    """To standard output, there at once."""
    sys.stdout.buffer.write(f"{line}\n".encode(sys.stdout.encoding or "utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def _forget_output() -> None:
    # The interpreter flushes standard output once more when it ends, and would complain.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
