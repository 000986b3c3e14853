"""`intergroup demo`: senders and a Spark query on this machine, checked."""

from __future__ import annotations

from importlib import import_module

from intergroup_core.cli.ending import leaving_on_signals
from intergroup_core.errors import ConfigError

STORY = "pyspark_intergroup.demo.story"
"""By name: it is Spark's side of the house, which nothing here imports."""


def demo() -> None:
    """Show a Spark query over three senders on loopback: one is killed, another joins, and the outcome is checked.

    Nothing else has to run. Prints micro-batches in the one order with their view rows, and in the end what was
    verified; ends with 1 and a sentence where that did not hold. Needs Java 17 or later, and takes about a minute.

    Example: intergroup demo
    """
    try:
        import_module("pyspark")
        story = import_module(STORY)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the demonstration needs Spark, and there is no module {error.name}; type  pip install 'pyspark>=4.2'"
        ) from error
    with leaving_on_signals():
        story.run()
