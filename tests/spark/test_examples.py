"""The examples do what they say, all of them on one Spark; each asserts its own result."""

from __future__ import annotations

import importlib
import runpy
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "spark_examples"

SCRIPTS = ["dashboard", "ledger", "pipeline", "replay", "sensors", "windows"]
NOTEBOOKS = {"one_order": "one order: ", "replay_of_a_day": "replay of a day: "}


@pytest.fixture(autouse=True)
def _beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a script, whose directory is where it looks first."""
    monkeypatch.syspath_prepend(EXAMPLES)


def test_every_example_is_tested() -> None:
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == sorted([*SCRIPTS, "loopback_group"])
    assert sorted(path.stem for path in (EXAMPLES / "notebooks").glob("*.py")) == sorted(NOTEBOOKS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_comes_to_its_result(name: str, spark: SparkSession) -> None:
    result: str = importlib.import_module(name).run(spark)
    assert result.startswith(f"{name}: ")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_as_plain_python(name: str, spark: SparkSession) -> None:
    path = EXAMPLES / "notebooks" / f"{name}.py"
    assert path.read_text().startswith("# Databricks notebook source\n")
    result = runpy.run_path(str(path), init_globals={"spark": spark})["result"]
    assert result.startswith(NOTEBOOKS[name])
