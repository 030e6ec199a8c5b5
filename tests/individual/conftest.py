"""Stores of every engine, and one Spark session for all tests."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import residua as rz

STORES = ("memory", "duckdb", "parquet")
"""Those that need no Java."""


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("residua tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "3")
        # Tables are tiny: compiling for speed costs more than it saves.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "700")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """`make(engine, **options)` creates a state there, or opens it again."""
    made = []

    def create(engine: str, *, name: str = "state", filter: Any = None, **options: Any) -> Any:
        chosen = rz.GdpResidueFilter(mu=1.0) if filter is None else filter
        address = {
            "memory": "memory:",
            "duckdb": f"duckdb:///{tmp_path}/{name}.db?threads=1",
            "parquet": f"parquet:{tmp_path}/{name}",
            "spark": f"parquet:{tmp_path}/{name}-spark",
        }[engine]
        if engine == "parquet":
            options["engine"] = "numpy"
        state = rz.individual.create(address, filter=chosen, **options)
        made.append(state)
        return state

    yield create
    for state in made:
        state.close()
