"""One Spark session for all tests that can share one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.spark.drivers import a_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with warnings.catch_warnings():
        # pyspark 4.3 says so of every pandas that is newer than itself, and nothing here uses pandas.
        warnings.filterwarnings("ignore", message=".*pandas.*", module="pyspark")
        session = a_session("local[2]")
    yield session
    session.stop()
