"""One Spark for all tests of a worker; without Java there is none, and they are skipped."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pyspark_intergroup.demo.java import java_trouble
from pyspark_intergroup.demo.session import local_session
from tests.integration.sites import Sites, sites
from tests.spark.home import environment


@pytest.fixture(scope="session", autouse=True)
def _quick_spark() -> Iterator[None]:
    """Whatever starts Spark here starts that of `tests.spark.home`."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment().items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def java() -> None:
    """Needed by whoever starts a Spark of its own."""
    if (trouble := java_trouble()) is not None:
        pytest.skip(trouble)


@pytest.fixture(scope="session")
def spark(java: None, _quick_spark: None) -> Iterator[SparkSession]:
    # Python workers find the project as this process does, however that was started.
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    session = local_session("tests")
    yield session
    session.stop()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


@pytest.fixture
def there() -> Iterator[Sites]:
    with sites() as made:
        yield made
