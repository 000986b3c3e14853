"""The Spark source of InterGroup: `spark.readStream.format("intergroup")` and `spark.read.format("intergroup")`.

Spark finds this package by its name and asks it for `DefaultSource`; `register` is for where it does not. A package of
this kind that cannot be imported keeps Spark from finding any other, so this one imports nothing until it is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__version__ = "0.1.0"


def register(spark: SparkSession) -> None:
    """Make `format("intergroup")` known to a session."""
    from pyspark_intergroup.source import InterGroupSource

    spark.dataSource.register(InterGroupSource)


def __getattr__(name: str) -> Any:
    if name == "DefaultSource":
        from pyspark_intergroup.source import InterGroupSource

        return InterGroupSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["__version__", "register"]
