"""Lines of JSON between a benchmark and one of its processes, over the process's standard input and output."""

from __future__ import annotations

import json
import sys
from typing import Any

Fields = dict[str, Any]


def say(**fields: Any) -> None:
    """Tell the benchmark something, from inside a process of it."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def hear() -> Fields:
    """The next thing the benchmark says; it ends with this process when it is gone."""
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return parse_line(line)


def parse_line(line: str | bytes) -> Fields:
    fields = json.loads(line)
    assert isinstance(fields, dict)
    return fields
