"""What one unit changes, for every aggregate: exhaustively over small tables, and statistically."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlglot import exp

import residua as rz
from data.conftest import write
from residua.data import declarations, keys, noise, plans, queries, sources, statements

ROWS: list[tuple[str, Any]] = [("a", 40.0), ("a", None), ("b", 40.0), ("b", -7.0)]
"""The rows that a unit may have: a value below the bounds, one above them, and none."""
BASES: list[list[tuple[int, str, Any]]] = [
    [],
    [(1, "a", 3.0), (1, "a", 4.0), (1, "b", 5.0), (2, "b", None)],
    [(unit, group, 9.0) for unit in (1, 2) for group in ("a", "b", "c") for _ in range(3)],
]
"""The rows of the others."""
AGGREGATES = "COUNT(*), COUNT(v), COUNT(DISTINCT u), SUM(v), AVG(v), VARIANCE(v)"
CHOICES = "MEDIAN(v), MIN(v), QUANTILE_CONT(v, 0.75)"


class Memory(sources.Source):
    """A table in memory, whose rows change."""

    address, dialect = "memory", "duckdb"

    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"threads": "1"})
        self.connection.execute("CREATE TABLE made (u BIGINT, g VARCHAR, v DOUBLE)")

    def put(self, rows: list[tuple[int, str, Any]]) -> None:
        self.connection.execute("DELETE FROM made")
        for row in rows:
            self.connection.execute("INSERT INTO made VALUES (?, ?, ?)", row)

    def columns(self) -> dict[str, str]:
        return {"u": "integer", "g": "text", "v": "real"}

    def has_null(self, column: str) -> bool:
        return False

    def rows(self, columns: Any) -> exp.Expression:
        return exp.table_("made")

    def run(self, statement: Any, *_: Any) -> list[tuple[Any, ...]]:
        raise NotImplementedError


def table(max_groups: int, max_rows: int) -> declarations.Table:
    bounds = {"v": declarations._bounds("v", (-5, 20, "0.1"), {"v": "real"})}
    return declarations.Table(
        "t", "survey", 1, "memory", {"u": "integer", "g": "text", "v": "real"}, "u",
        max_groups, max_rows, bounds, {}, {"g": ("a", "b")}, "1", False,
    )  # fmt: skip


def text_of(plan: plans.Plan, source: Memory, key: str) -> str:
    made = statements.statement_of(
        plan.question, plan.totals, (plan.groups, plan.rows), source, key
    )
    return str(made.sql("duckdb"))


def totals_of(plan: plans.Plan, source: Memory, text: str) -> dict[tuple[Any, ...], list[Any]]:
    """The exact totals and scores of each group, by the text of the statement."""
    made = source.connection.execute(text).fetchall()
    width = len(plan.question.keys)
    found = {row[:width]: row[width:] for row in made}
    zeros = (0,) * len(plan.totals)
    groups = keys.groups_of(plan.question.keys)
    return {group: plan.exact(found.get(group, zeros)) for group in groups}


def distance(one: Any, other: Any) -> int:
    """How far apart two totals are, or two lists of scores at most."""
    if isinstance(one, int):
        return abs(one - int(other))
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def units() -> Iterator[list[tuple[str, Any]]]:
    """Every unit of up to three rows."""
    for count in range(4):
        for rows in itertools.combinations_with_replacement(ROWS, count):
            yield list(rows)


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize(("max_groups", "max_rows"), [(1, 1), (1, 2), (2, 1)])
def test_no_neighbour_changes_more_than_the_plan_says(
    grouped: bool, max_groups: int, max_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And some neighbour changes each total by as much, so that nothing is overstated."""
    monkeypatch.setattr(plans, "CANDIDATES", 4)
    sql = f"SELECT {AGGREGATES}, {CHOICES} FROM t" + (" GROUP BY g" if grouped else "")
    plan = plans.plan(queries.parse(sql, table(max_groups, max_rows)))
    source = Memory()
    text = text_of(plan, source, "key")
    largest = [0] * len(plan.measures)
    for number, base in enumerate(BASES):
        source.put(base)
        before = totals_of(plan, source, text)
        for unit in units():
            source.put([*base, *((9, group, value) for group, value in unit)])
            after = totals_of(plan, source, text)
            moved = [
                [distance(a, b) for a, b in zip(after[group], before[group], strict=True)]
                for group in before
            ]
            assert sum(any(each) for each in moved) <= plan.groups, (number, unit)
            for place, measure in enumerate(plan.measures):
                change = max(each[place] for each in moved)
                assert change <= measure.sensitivity, (number, unit, measure)
                largest[place] = max(largest[place], change)
    reached = [measure.sensitivity for measure in plan.measures]
    assert largest == reached


def test_values_are_rounded_and_clipped_whatever_they_are() -> None:
    """Infinite, huge and tiny values, and those between two steps."""
    plan = plans.plan(queries.parse("SELECT SUM(v), COUNT(v) FROM t", table(1, 1)))
    source = Memory()
    text = text_of(plan, source, "key")
    for value, steps in [
        (math.inf, 200), (-math.inf, -50), (1e308, 200), (-1e308, -50), (5e-324, 0), (-0.0, 0),
        (0.25, 3), (-0.25, -2), (19.9999999999, 200), (20.1, 200), (-5.1, -50), (3.24, 32),
    ]:  # fmt: skip
        source.put([(1, "a", value)])
        assert totals_of(plan, source, text)[()] == [steps, 1], value
    for missing in (None, math.nan):
        source.put([(1, "a", missing)])
        assert totals_of(plan, source, text)[()] == [0, 0]


def test_which_rows_are_chosen_depends_on_the_key_and_on_the_unit_alone() -> None:
    plan = plans.plan(queries.parse("SELECT SUM(v) FROM t GROUP BY g", table(1, 1)))
    source = Memory()
    texts = [text_of(plan, source, f"key {n}") for n in range(40)]
    own = [(1, group, float(value)) for group in ("a", "b") for value in range(6)]
    source.put(own)
    alone = [totals_of(plan, source, text) for text in texts]
    assert len({str(each) for each in alone}) > 6
    source.put([*reversed(own), *((unit, "a", 1.0) for unit in range(2, 9))])
    with_others = [totals_of(plan, source, text) for text in texts]
    for one, other in zip(alone, with_others, strict=True):
        assert other[("a",)][0] - one[("a",)][0] == 7 * 10  # seven units, a value of ten steps
        assert other[("b",)] == one[("b",)]


# -- the distribution of what is released --------------------------------------------------------

GROUPS = 1000


def released(ledger: rz.Ledger, path: Path, rows: list[tuple[Any, ...]], name: str) -> list[int]:
    """The noisy counts of many groups at eps 1, in each of which one unit may have many rows."""
    source = write(path / f"{name}.parquet", rows, "u BIGINT, g BIGINT")
    listed = {"g": list(range(GROUPS))}
    ledger.add_table(name, source=source, unit_column="u", max_rows=2, keys=listed, budget="survey")
    sql = f"SELECT g, COUNT(*) FROM {name} GROUP BY g"
    return [row[1] for row in rz.open_session(ledger).sql(sql, eps=1.0).rows]


def exceeds(ledger: rz.Ledger, path: Path) -> bool:
    """Whether the noisy counts of two neighbours show a larger loss than eps 1."""
    without = released(ledger, path, [], "without")
    with_one = released(ledger, path, [(n, n) for n in range(GROUPS) for _ in range(5)], "one")
    for least in range(8):
        p = sum(each >= least for each in without) / GROUPS
        q = sum(each >= least for each in with_one) / GROUPS
        deviation = math.sqrt(q * (1 - q) / GROUPS) + math.e * math.sqrt(p * (1 - p) / GROUPS)
        if q > math.e * p + 4 * deviation:
            return True
    return False


def test_released_counts_lose_no_more_than_was_charged(ledger: rz.Ledger, tmp_path: Path) -> None:
    assert not exceeds(ledger, tmp_path)


def test_halved_noise_would_be_noticed(
    ledger: rz.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = noise._sampler
    monkeypatch.setattr(noise, "_sampler", lambda kind, scale: real(kind, scale / 2))
    assert exceeds(ledger, tmp_path)


def test_unbounded_contributions_would_be_noticed(
    ledger: rz.Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = statements._at_most
    monkeypatch.setattr(statements, "_at_most", lambda name, most: real(name, 1000 * most))
    assert exceeds(ledger, tmp_path)
