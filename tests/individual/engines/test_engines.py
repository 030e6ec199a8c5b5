"""The same spends give the same bits on every engine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import residua as rz
from individual.engine_runs import by_key, run, state_of, workload

# PySpark says so whenever a recent pandas is installed; only Arrow is used here.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")

SHAPES = [
    {"epochs": False, "texts": False, "options": {}},
    {"epochs": False, "texts": True, "options": {"unknown": "exclude"}},
    {"epochs": True, "texts": True, "options": {"epochs": True}},
    {"epochs": True, "texts": False, "options": {"epochs": True, "unit": "subject"}},
]


def enrolled(people: int, shape: dict[str, Any]) -> pa.Table:
    """The first third, half of them with less than the others."""
    some = range(people // 3)
    columns: dict[str, Any] = {
        "subject": [f"person {s}" for s in some] if shape["texts"] else list(some),
        "capacity": [1.0 if s % 2 else 0.4 for s in some],
    }
    if shape["epochs"]:
        columns["epoch"] = [0] * len(some)
    return pa.table(columns)


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("shape", SHAPES, ids=["plain", "texts", "epochs", "together"])
def test_disk_agrees_with_memory(make: Callable[..., Any], shape: dict[str, Any]) -> None:
    people = 900
    spends = workload(6, people, shape["epochs"], shape["texts"], 21)
    results = []
    for engine in ("memory", "duckdb", "parquet"):
        state = make(engine, **shape["options"])
        state.enroll(enrolled(people, shape))
        results.append((run(state, spends), state_of(state)))
        again = make(engine, **shape["options"]) if engine != "memory" else state
        assert run(again, spends) == results[-1][0], "a retry returns the same sets"
        assert state_of(again) == results[-1][1], "and spends nothing"
    assert results[0] == results[1] == results[2]
    sizes = [table.num_rows for table in results[0][0]]
    assert any(size < spend["losses"].num_rows for size, spend in zip(sizes, spends, strict=True))


@pytest.mark.needs("pyspark")
def test_spark_agrees_with_memory(make: Callable[..., Any], spark: Any, tmp_path: Path) -> None:
    with pytest.raises(rz.ArgumentError, match="address must be"):
        rz.individual.open(f"parquet:{tmp_path}/none", spark=spark)
    shape = {"epochs": False, "texts": False}
    spends = workload(3, 4000, False, False, 22)
    memory, cluster = make("memory"), make("spark", spark=spark)
    for state in (memory, cluster):
        state.enroll(enrolled(1200, shape))
    expected = run(memory, spends)
    # As a path, as a table and as a Spark frame.
    path = tmp_path / "losses.parquet"
    pq.write_table(spends[0]["losses"], path)
    pq.write_table(spends[2]["losses"], tmp_path / "frame.parquet")
    given = [path, spends[1]["losses"], spark.read.parquet(str(tmp_path / "frame.parquet"))]
    found = run(
        cluster, [one | {"losses": source} for one, source in zip(spends, given, strict=True)]
    )
    assert found == expected and state_of(cluster) == state_of(memory)
    again = cluster.spend(path, spend_id="q-0")
    assert again.replayed and by_key(again.active) == expected[0]
    with pytest.raises(rz.ArgumentError, match="another table"):
        cluster.spend({"subject": [1], "nu": [0.1]}, spend_id="q-0")
    with pytest.raises(rz.ArgumentError, match="1 repeated"):
        cluster.spend({"subject": [1, 1], "nu": [0.1, 0.1]}, spend_id="q-9")
    with pytest.raises(rz.ArgumentError, match="got 1 not finite"):
        cluster.spend({"subject": [1, 2], "nu": [0.1, float("nan")]}, spend_id="q-9")
    assert state_of(cluster) == state_of(memory), "errors leave the state as it was"
    # Another engine goes on where Spark stopped, and Spark after it.
    root = tmp_path / "state-spark"
    more = {"subject": [1, 2, 9_000_000], "nu": [0.01, 5.0, 0.01]}
    with rz.individual.open(f"parquet:{root}", engine="numpy") as other:
        assert by_key(other.spend(more, spend_id="q-10").active) == by_key(
            memory.spend(more, spend_id="n").active
        )
    found = by_key(cluster.spend(more, spend_id="q-11").active)
    assert found == by_key(memory.spend(more, spend_id="q-11").active)
    assert state_of(cluster) == state_of(memory)
    # What Spark says of a failure may show values: it is named, and not repeated.
    failing = spark.sql("SELECT 1 AS subject, CAST(raise_error('7.25') AS DOUBLE) AS nu")
    with pytest.raises(rz.ArgumentError, match="read by Spark: USER_RAISED_EXCEPTION") as caught:
        cluster.spend(failing, spend_id="q-12")
    assert "7.25" not in str(caught.value)
    # Subjects whose file is lost would start anew.
    lost = min((root / "budgets").glob("*/*.parquet"))
    lost.rename(tmp_path / "lost")
    with pytest.raises(rz.StateUnavailable, match="is missing"):
        cluster.spend(more, spend_id="q-12")
    # Subjects that stay together; here and not in a test of its own, to start Spark once.
    options = {"epochs": True, "unit": "subject", "name": "together"}
    spends = workload(2, 300, True, True, 23)
    memory, cluster = make("memory", **options), make("spark", spark=spark, **options)
    assert run(cluster, spends) == run(memory, spends)
    assert state_of(cluster) == state_of(memory)


@pytest.mark.needs("duckdb", "pandas")
def test_losses_come_in_many_forms(make: Callable[..., Any], tmp_path: Path) -> None:
    import pandas

    table = pa.table({"subject": pa.array([3, 1, 2], pa.int32()), "nu": [0.5, 1, 2.0]})
    path = tmp_path / "losses.parquet"
    pq.write_table(table, path)
    columns = {"subject": [3, 1, 2], "nu": [0.5, 1.0, 2.0]}
    for engine in ("memory", "duckdb"):
        state = make(engine)
        first = state.spend(path, spend_id="first").active
        assert first.column_names == ["subject"] and sorted(first["subject"].to_pylist()) == [1, 3]
        frames = [table.to_pandas(), pandas.DataFrame(columns), columns]
        forms = [table, table.to_batches()[0], table.to_reader(), path, str(path), *frames]
        for number, form in enumerate(forms):
            other = make(engine, name=f"{engine}-{number}")
            assert by_key(other.spend(form, spend_id="first").active) == by_key(first)


def test_order_and_batches_do_not_change_a_retry(make: Callable[..., Any]) -> None:
    state = make("memory")
    table = pa.table({"subject": list(range(100)), "nu": [0.01 * i for i in range(100)]})
    first = state.spend(table, spend_id="q").active
    mixed = pa.concat_tables([table.slice(60), table.slice(0, 60)])
    assert state.spend(mixed, spend_id="q").active == first
    changed = table.set_column(1, "nu", pa.array([0.01 * i for i in range(99)] + [0.5]))
    with pytest.raises(rz.ArgumentError, match="another table"):
        state.spend(changed, spend_id="q")


def test_another_mechanism_is_no_retry(make: Callable[..., Any]) -> None:
    """Even one that is shown alike: of many atoms, or of many parts, a `repr` has only some."""
    weights = [2.0**-6 * 1.05**i for i in range(20)]
    moved = [*weights[:9], weights[9] - 2.0**-8, weights[10] + 2.0**-8, *weights[11:]]
    rest = 0.5 * (1.0 - sum(weights))
    few, many = (rz.from_pair([*w, rest, rest], [*w[::-1], rest, rest]) for w in (weights, moved))
    assert repr(few) == repr(many) and few != many
    parts = sum((rz.pure_dp(0.001 * i) for i in range(1, 14)), start=few)
    others = sum((rz.pure_dp(0.002 * i) for i in range(1, 14)), start=few)
    assert repr(parts) == repr(others) and parts != others
    state = make("memory", filter=rz.PureFilter(eps=50.0))
    for number, (one, other) in enumerate([(few, many), (parts, others)]):
        spend = {"losses": {"subject": [1]}, "spend_id": f"q-{number}"}
        first = state.spend(**spend, mechanism=one).active
        assert state.spend(**spend, mechanism=one).active == first
        with pytest.raises(rz.ArgumentError, match="another mechanism"):
            state.spend(**spend, mechanism=other)
