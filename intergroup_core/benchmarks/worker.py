"""The program of one process of a benchmark: reads its task from standard input and plays that role."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from intergroup_core.benchmarks import members, raw
from intergroup_core.benchmarks.channel import Fields, hear, say
from intergroup_core.errors import IntergroupError

ROLES: dict[str, Callable[[Fields], None]] = {
    "raw-send": raw.raw_send,
    "raw-receive": raw.raw_receive,
    "raw-exchange": raw.raw_exchange,
    "raw-ping": raw.raw_ping,
    "raw-answer": raw.raw_answer,
    "flood": members.flood,
    "stamp": members.stamp,
    "stall": members.stall,
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
