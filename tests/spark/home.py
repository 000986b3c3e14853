"""The Spark that tests start: the installed one, laid out so that its many short-lived processes come up quickly.

python -m tests.spark.home

Python workers find PySpark where it is installed, not in an archive of sources that each would compile anew; and JVMs
map the classes that a query needs from a file in which a first one left them, which halves what their start costs.
Without that file everything is the same, only slower. All of it is beside the Python that runs this.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    SimpleDataSourceStreamReader,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

HOME = Path(sys.prefix) / f"spark-home-{pyspark.__version__}"
CLASSES = HOME / "classes.jsa"
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Of a JVM that lives for seconds: nothing is worth compiling twice."""
ROWS = 4
BATCHES = 2


def environment() -> Mapping[str, str]:
    """For processes that start Spark."""
    if not HOME.exists():
        lay_out()
    if not CLASSES.exists():
        return {"SPARK_HOME": str(HOME), "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM}
    shared = f"-XX:SharedArchiveFile={CLASSES} -Xlog:disable"
    given = (f"--conf spark.{of}.defaultJavaOptions='{shared}'" for of in ("driver", "executor"))
    return {
        "SPARK_HOME": str(HOME),
        "SPARK_DAEMON_JAVA_OPTS": f"{QUICK_JVM} {shared}",
        "PYSPARK_SUBMIT_ARGS": " ".join([*given, "pyspark-shell"]),
    }


def lay_out() -> None:
    """The same as what is installed, but for a directory in the place of the archive of sources."""
    installed = Path(pyspark.__file__).parent
    made = Path(tempfile.mkdtemp(prefix=f"{HOME.name}.", dir=HOME.parent))
    for each in installed.iterdir():
        if each.name != "python":
            (made / each.name).symlink_to(each)
    archives = made / "python" / "lib"
    archives.mkdir(parents=True)
    for each in (installed / "python" / "lib").iterdir():
        (archives / each.name).symlink_to(installed.parent if each.name == "pyspark.zip" else each)
    try:
        made.rename(HOME)
    except OSError:  # another process was first
        shutil.rmtree(made)


class _Stream(SimpleDataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"at": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[str]], dict[str, int]]:
        return self.readBetweenOffsets(start, end := {"at": start["at"] + ROWS}), end

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[tuple[str]]:  # noqa: N802
        return iter([(str(at),) for at in range(start["at"], end["at"])])


class _Discard(DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        list(iterator)
        return WriterCommitMessage()


class _Source(DataSource):
    """Takes the ways that a query of this project takes, with nothing behind them."""

    @classmethod
    def name(cls) -> str:
        return "warming"

    def schema(self) -> str:
        return "value string"

    def simpleStreamReader(self, schema: StructType) -> _Stream:  # noqa: N802
        return _Stream()

    def streamWriter(self, schema: StructType, overwrite: bool) -> _Discard:  # noqa: N802
        return _Discard()


def _collect(batch: DataFrame, number: int) -> None:
    batch.where("value <> ''").collect()


def save_classes() -> None:
    """Run a JVM that leaves the classes of a small query behind when it ends."""
    written = CLASSES.with_name(f"{CLASSES.name}.{os.getpid()}")
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", f"{QUICK_JVM} -XX:ArchiveClassesAtExit={written} -Xlog:disable")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    session.dataSource.register(_Source)
    session.createDataFrame([("a", 1)], "name string, number int").groupBy("name").count().collect()
    rows = session.readStream.format("warming").load()
    ways = (
        rows.writeStream.format("warming"),
        rows.writeStream.foreachBatch(_collect),
        rows.writeStream.format("noop"),
    )
    with tempfile.TemporaryDirectory() as directory:
        for number, writer in enumerate(ways):
            query = writer.option("checkpointLocation", f"{directory}/{number}").start()
            while query.isActive and (query.lastProgress is None or query.lastProgress.batchId < BATCHES):
                query.awaitTermination(0.1)
            query.stop()
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    written.rename(CLASSES)


if __name__ == "__main__":
    os.environ |= environment()
    if not CLASSES.exists():
        save_classes()
