"""Source and sink through Spark Connect: the client names them, and the server finds them by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.groups import a_group_name
from tests.integration.sites import Sites
from tests.spark.drivers import SPARK_SECONDS, spark_environment
from tests.spark.numbered import numbered, read_all

CLIENT = str(Path(__file__).with_name("connect_client.py"))


@pytest.mark.usefixtures("java")
def test_a_client_of_spark_connect_reads_and_writes_though_tasks_fail_at_first(there: Sites, tmp_path: Path) -> None:
    group = a_group_name()
    told = {
        "options": {"group": group, "interface": "lo", "startingOffsets": "earliest"},
        "sink": {"group": a_group_name(), "interface": "lo"},
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    with numbered(group, [there.home("sender")]) as (sender,):
        sender.send([f"{sender.name}:{number}" for number in range(100)])
        sender.send_last()
        ended = subprocess.run(
            [sys.executable, CLIENT, json.dumps(told)],
            capture_output=True,
            text=True,
            timeout=2 * SPARK_SECONDS,
            env=spark_environment(there.home("query")),
            check=False,
        )
        assert ended.returncode == 0, ended.stderr[-4_000:]
        wanted = read_all(group, there.home("sender"))
    history, live, copied, named_by_query = json.loads(ended.stdout.splitlines()[-1])
    assert history == live == wanted
    assert [row["value"] for row in copied] == [row["value"] for row in wanted if row["kind"] == "data"]
    assert named_by_query
