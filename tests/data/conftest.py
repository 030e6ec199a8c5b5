"""Small tables, and ledgers that answer questions about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import residua as rz

pytest.importorskip("duckdb")
pytest.importorskip("opendp")
pytest.importorskip("sqlglot")
pytest.importorskip("pyarrow")

Rows = Sequence[tuple[Any, ...]]
SCHEMA = "person_id BIGINT, dept VARCHAR, salary DOUBLE, age INTEGER, active BOOLEAN, joined DATE"
DECLARED: dict[str, Any] = {
    "unit_column": "person_id",
    "max_groups": 2,
    "max_rows": 2,
    "bounds": {"salary": (0, 100, "0.1"), "age": (0, 120)},
    "keys": {"dept": ["eng", "ops", "hr"], "active": [True, False]},
    "budget": "survey",
}
STAFF: Rows = [
    (1, "eng", 50.0, 30, True, "2024-01-01"),
    (1, "ops", 500.0, 30, True, "2024-02-01"),
    (2, "eng", -3.0, None, False, "2024-02-10"),
    (2, "eng", float("nan"), 41, False, None),
    (3, "ops", None, 55, None, "2023-05-05"),
    (4, "elsewhere", 10.0, 20, True, "2024-01-01"),
    (5, None, 20.0, 20, True, "2024-01-01"),
]  # fmt: skip


def write(path: Path, rows: Rows = STAFF, schema: str = SCHEMA) -> Path:
    """A Parquet file of rows."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE made ({schema})")
        if rows:
            marks = ", ".join("?" for _ in rows[0])
            connection.executemany(f"INSERT INTO made VALUES ({marks})", [list(r) for r in rows])
        connection.execute(f"COPY made TO '{path}' (FORMAT PARQUET)")
    return path


@pytest.fixture
def staff(tmp_path: Path) -> Path:
    return write(tmp_path / "staff.parquet")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[rz.Ledger]:
    """A ledger with the budget `survey`, pure with eps 10."""
    with rz.open_ledger(f"sqlite:///{tmp_path}/budgets.db") as opened:
        opened.create_budget("survey", rz.PureFilter(10.0))
        yield opened


Declare = Callable[..., rz.Ledger]


@pytest.fixture
def declare(ledger: rz.Ledger, staff: Path) -> Declare:
    """Declares the table `staff`, with some fields that differ."""

    def made(**changes: Any) -> rz.Ledger:
        ledger.add_table("staff", **{"source": staff, **DECLARED, **changes})
        return ledger

    return made
