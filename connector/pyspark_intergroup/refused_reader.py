"""A stream that cannot be: says why when it is asked for anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from intergroup_core.errors import ConfigError


class RefusedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark trips over its own feet where `streamReader` itself raises, and a user would read of an UnboundLocalError
    in Spark last. It asks for an offset or a plan before it writes anything into the checkpoint."""

    def __init__(self, error: ConfigError) -> None:
        self._error = error

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        self._refuse()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        self._refuse()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._refuse()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._refuse()

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise self._error.with_traceback(None)
