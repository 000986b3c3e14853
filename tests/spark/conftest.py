"""One Spark for all tests of a worker; without Java there is none, and they are skipped."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from pyspark_intergroup.demo.java import java_trouble
from pyspark_intergroup.demo.session import local_session


@pytest.fixture(scope="session", autouse=True)
def _compiled_pyspark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Python workers find PySpark where it is installed, not in an archive of sources that each would compile anew.

    Spark puts the archive of its home first on their path; this home is the same but for a directory in its place.
    """
    installed = Path(pyspark.__file__).parent
    home = tmp_path_factory.mktemp("spark")
    for each in installed.iterdir():
        if each.name != "python":
            (home / each.name).symlink_to(each)
    archives = home / "python" / "lib"
    archives.mkdir(parents=True)
    for each in (installed / "python" / "lib").iterdir():
        (archives / each.name).symlink_to(installed.parent if each.name == "pyspark.zip" else each)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(home))
        yield


@pytest.fixture(scope="session")
def java() -> None:
    """Needed by whoever starts a Spark of its own."""
    if (trouble := java_trouble()) is not None:
        pytest.skip(trouble)


@pytest.fixture(scope="session")
def spark(java: None, _compiled_pyspark: None) -> Iterator[SparkSession]:
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
