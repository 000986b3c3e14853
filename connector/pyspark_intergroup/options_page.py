"""Writes docs/spark-options.md from the table of options: `python -m pyspark_intergroup.options_page`."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark_intergroup.option_table import SECTIONS, Option

_HEAD = """\
# Options of Spark reads and writes

Written by `make docs` from `connector/pyspark_intergroup/option_table.py`; a test fails when it is out of date.

Given as `.option(name, value)` to `format("intergroup")` of `spark.readStream`, `spark.read`, `df.writeStream` and
`df.write`; the second column says which of them take an option (`streams` are those that are read). Names have no case.
An unknown name is refused with the nearest known one, a bad value with what is allowed, and so are options that
contradict one another. Sizes are written as `64m`, `1g` or a number of bytes, durations as `500ms`, `30s`, `5m`, `24h`
or a number of seconds. Settings that have no option here are given in a file: [options.md](options.md).
"""


def options_page() -> str:
    """The whole page."""
    return _HEAD + "".join(_section(title, options) for title, options in SECTIONS.items())


def _section(title: str, options: Iterable[Option]) -> str:
    rows = "\n".join(
        f"| `{option.name}` | {option.scope.value} | {option.default} | {option.meaning} |" for option in options
    )
    return f"\n## {title}\n\n| option | for | default | meaning |\n|---|---|---|---|\n{rows}\n"


if __name__ == "__main__":
    print(options_page(), end="")
