"""The program of one process of a benchmark: reads its task from standard input and plays that role."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from intergroup_core.benchmarks.catching_up import catch_up, pulse, watch
from intergroup_core.benchmarks.channel import Fields, hear, say
from intergroup_core.benchmarks.members import flood, stall, stamp
from intergroup_core.benchmarks.raw import raw_answer, raw_exchange, raw_ping, raw_receive, raw_send
from intergroup_core.errors import IntergroupError

ROLES: dict[str, Callable[[Fields], None]] = {
    "raw-send": raw_send,
    "raw-receive": raw_receive,
    "raw-exchange": raw_exchange,
    "raw-ping": raw_ping,
    "raw-answer": raw_answer,
    "flood": flood,
    "stamp": stamp,
    "stall": stall,
    "pulse": pulse,
    "watch": watch,
    "catch-up": catch_up,
}


def main() -> None:
    task = hear()
    try:
        ROLES[task["role"]](task)
    except IntergroupError as error:
        say(kind="failed", error=str(error))
    # A thread may still wait for a line of standard input; it must not keep this process.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
