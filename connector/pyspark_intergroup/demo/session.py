"""A Spark session on this machine alone, and a place for what its JVM says at length."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    # Rows go from Python workers to the JVM through a Unix socket: about a third less per micro-batch.
    "spark.python.unix.domain.socket.enabled": "true",
    # Of a JVM that lives for a minute: nothing is worth compiling twice.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def local_session(name: str) -> SparkSession:
    """Two cores of this machine, no UI, few words; Python workers run the Python that runs this."""
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ.setdefault(variable, sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName(name)
    with warnings.catch_warnings():
        # PySpark 4.3 warns of every pandas from 3 on; nothing here uses pandas.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        spark = builder.config(map=SETTINGS).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def standard_error_to(file: Path) -> Iterator[None]:
    """What is started meanwhile has its standard error there, for as long as it lives."""
    sys.stderr.flush()
    before = os.dup(2)
    try:
        with file.open("ab") as opened:
            os.dup2(opened.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)
