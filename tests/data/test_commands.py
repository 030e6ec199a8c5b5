"""`residua table` and `residua query`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from cli.running import refusal, run, run_json
from data.conftest import Declare

SQL = "SELECT dept, COUNT(*) n FROM staff GROUP BY dept"


@pytest.fixture
def store(ledger: object, tmp_path: Path) -> tuple[str, str]:
    return "--store", str(tmp_path / "budgets.db")


def test_tables_are_declared_listed_shown_and_removed(store: tuple[str, str], staff: Path) -> None:
    added = run_json(
        "table", "add", "staff", "--source", str(staff), "--unit", "person_id", "--budget",
        "survey", "--max-groups", "2", "--bounds", "salary=-5:100:0.1", "--bounds", "age=0:120",
        "--keys", 'dept=eng,"a,b"', "--keys", "active=true,false", *store,
    )  # fmt: skip
    assert added["bounds"] == {"salary": ["-5", "100", "0.1"], "age": ["0", "120", "1"]}
    assert added["keys"] == {"dept": ["eng", "a,b"], "active": [True, False]}
    assert (added["version"], added["max_groups"], added["max_rows"]) == (1, 2, 1)
    assert run_json("table", "show", "staff", *store) == added
    assert run_json("table", "list", *store) == {"tables": [added]}
    assert "survey" in run("table", "list", *store)
    assert "bounds of salary  -5 to 100" in run("table", "show", "staff", *store)
    wrong = ("table", "add", "staff", "--source", str(staff), "--unit", "person_id", "--budget")
    assert "--bounds must be COLUMN=" in refusal(*wrong, "survey", "--bounds", "salary", *store)
    assert "of the column's type" in refusal(*wrong, "survey", "--keys", "age=x", *store)
    run("table", "remove", "staff", *store)
    assert "no tables" in run("table", "list", *store)
    assert "no table 'staff'" in run("table", "remove", "staff", *store, code=4)


def test_questions_are_answered_shown_and_refused(declare: Declare, store: tuple[str, str]) -> None:
    declare()
    shown = run("query", SQL, "--eps", "2", "--dry-run", *store)
    assert "noise on rows  laplace 2" in shown and "WITH residua_rows" in shown
    assert run_json("query", SQL, "--eps", "2", "--dry-run", *store)["admitted"]
    answer = run_json("query", SQL, "--eps", "2", "--key", "k", *store)
    assert [row[0] for row in answer["rows"]] == ["eng", "ops", "hr"]
    again = run("query", SQL, *store)
    assert "repeated: released before, cost nothing" in again and "eng" in again
    rows = list(csv.reader(run("query", SQL, "--csv", *store).splitlines()))
    assert rows[0] == ["dept", "n", "n_low", "n_high"]
    assert [int(each) for each in rows[1][1:]] == [answer["rows"][0][1], *answer["intervals"][0][1]]
    refused = run("query", SQL, "--eps", "20", "--json", *store, code=3)
    assert json.loads(refused)["admitted"] is False
    assert "needs eps 20" in run("query", SQL, "--eps", "20", *store, code=3)
    assert "sql must not contain" in refusal("query", "SELECT 1 FROM staff", *store)
