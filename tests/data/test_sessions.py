"""Sessions: answers against brute force, charges, repeated questions, failures and crashes."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from statistics import variance
from typing import Any

import pytest

import residua as rz
from data.conftest import DECLARED, SCHEMA, Declare, write
from residua.data import answers, session, sources
from residua.data.answers import Answer
from residua.errors import AlreadySpent, ArgumentError, KeyReused, MechanismFailed

COUNT = "SELECT COUNT(*) FROM staff"


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """No noise: answers are what the statement gives."""
    monkeypatch.setattr(
        "residua.data.noise.Noise.draw", lambda self, totals: [int(each) for each in totals]
    )


def sql(declare: Declare, text: str, **options: Any) -> Answer:
    return rz.open_session(declare()).sql(text, **{"eps": 1.0, **options})


@pytest.mark.usefixtures("exact")
def test_every_aggregate_against_brute_force(declare: Declare) -> None:
    """Of units with few rows, whom no bound touches; NULL and NaN are left out of values."""
    answer = sql(
        declare,
        "SELECT dept, COUNT(*) n, COUNT(salary) c, COUNT(DISTINCT person_id) u, SUM(salary) s,"
        " AVG(salary) a, AVG(age) b, VARIANCE(age) v FROM staff GROUP BY dept",
    )
    assert answer.columns == ("dept", "n", "c", "u", "s", "a", "b", "v")
    found = {row[0]: row[1:] for row in answer.rows}
    # Salaries are clipped to [0, 100].
    assert found["eng"] == (3, 2, 2, 50.0, 25.0, 35.5, pytest.approx(variance([30, 41])))
    assert found["ops"] == (2, 1, 2, 100.0, 100.0, 42.5, pytest.approx(variance([30, 55])))
    assert found["hr"] == (0, 0, 0, 0, None, None, None)
    assert [row[0] for row in answer.rows] == ["eng", "ops", "hr"]
    totals = sql(declare, "SELECT active, COUNT(*) n FROM staff GROUP BY active")
    assert totals.rows == ((True, 4), (False, 2))


@pytest.mark.usefixtures("exact")
def test_bins_and_dates_are_groups_of_the_declaration(declare: Declare) -> None:
    dates = {"joined": ("2024-01-15", "2024-04-01"), "age": (18, 60), "salary": (-5, 100)}
    ledger = declare(bounds=dates)
    asking = rz.open_session(ledger)
    binned = asking.sql("SELECT FLOOR(age / 20) * 20 AS a, COUNT(*) FROM staff GROUP BY a", eps=1.0)
    assert binned.rows == ((0, 0), (20, 4), (40, 2), (60, 0))
    wide = asking.sql(
        "SELECT FLOOR(salary / 2.5) * 2.5 AS s, COUNT(*) FROM staff GROUP BY s", eps=1.0
    )
    assert dict(wide.rows) == {
        place * 2.5: {-2: 1, 4: 1, 8: 1, 20: 1}.get(place, 0) for place in range(-2, 41)
    }
    by_month = asking.sql(
        "SELECT DATE_TRUNC('month', joined) m, COUNT(*) FROM staff GROUP BY m", eps=1.0
    )
    # The first of January is before the bounds.
    assert by_month.rows == (
        ("2024-01-01", 0), ("2024-02-01", 2), ("2024-03-01", 0), ("2024-04-01", 0),
    )  # fmt: skip
    weeks = asking.sql(
        "SELECT DATE_TRUNC('week', joined) w, COUNT(*) FROM staff GROUP BY w", eps=1.0
    )
    assert weeks.rows[0][0] == "2024-01-15" and dict(weeks.rows)["2024-01-29"] == 1
    assert len(weeks.rows) == 12


def test_percentiles_are_close_to_the_truth(ledger: rz.Ledger, tmp_path: Path) -> None:
    rows = [(n, "eng", n / 20, n % 100, True, "2024-01-01") for n in range(2000)]
    path = write(tmp_path / "many.parquet", rows)
    ledger.add_table("staff", source=path, **DECLARED)
    answer = rz.open_session(ledger).sql(
        "SELECT MEDIAN(salary), MIN(salary), MAX(salary), QUANTILE_CONT(age, 0.25) q FROM staff",
        eps=8.0,
    )
    for value, truth in zip(answer.rows[0], (50, 1, 99, 25), strict=True):
        assert abs(value - truth) < 4
    assert answer.intervals == (((None, None),) * 4,)
    assert answer.accuracy["q"] is None and "no interval" in answer._repr_html_()


def test_unknown_groups_appear_from_a_threshold_on(ledger: rz.Ledger, tmp_path: Path) -> None:
    rows = [(n, f"dept {n % 2}", 1.0, n, True, "2024-01-01") for n in range(400)]
    rows += [(1000 + n, f"rare {n}", 1.0, n, True, "2024-01-01") for n in range(400)]
    ledger.create_budget("basic", rz.BasicFilter(10.0, 1e-6))
    path = write(tmp_path / "many.parquet", rows)
    ledger.add_table("staff", source=path, **{**DECLARED, "keys": {}, "budget": "basic"})
    asking = rz.open_session(ledger)
    text = "SELECT dept, COUNT(*) n, SUM(salary) s FROM staff GROUP BY dept"
    answer = asking.sql(text, eps=3.0, delta=1e-7)
    assert [row[0] for row in answer.rows] == ["dept 0", "dept 1"]
    assert "rare" not in str(answer.to_dict())
    left = ledger.budget("basic").remaining
    assert (left.eps, left.delta) == (7.0, 9e-7)
    for wrong in ({"eps": 1.0}, {"eps": 1.0, "delta": 0.0}, {"accuracy": 5, "noise": "gaussian"}):
        with pytest.raises(ArgumentError):
            asking.sql(text, **wrong)
    with pytest.raises(ArgumentError, match="delta must be given if, and only if"):
        asking.sql(COUNT, eps=1.0, delta=1e-7)
    pytest.importorskip("flint")
    assert ledger.verify().ok


@pytest.mark.usefixtures("exact")
def test_contributions_are_bounded(ledger: rz.Ledger, tmp_path: Path) -> None:
    rows = [(n // 20, ["eng", "ops", "hr"][n % 3], 7.0, n, True, "2024-01-01") for n in range(400)]
    path = write(tmp_path / "many.parquet", rows)
    ledger.add_table("staff", source=path, **DECLARED)
    asking = rz.open_session(ledger)
    grouped = asking.sql("SELECT dept, COUNT(*), SUM(salary) FROM staff GROUP BY dept", eps=1)
    assert sum(row[1] for row in grouped.rows) == 20 * 2 * 2
    assert sum(row[2] for row in grouped.rows) == 20 * 2 * 2 * 7
    assert asking.sql(COUNT, eps=1).rows == ((20 * 4,),)
    units = asking.sql("SELECT COUNT(DISTINCT person_id) FROM staff", eps=1)
    assert units.rows == ((20,),)


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("kind", ["csv", "duckdb"])
def test_other_sources_give_the_same_answers(
    declare: Declare, staff: Path, tmp_path: Path, kind: str
) -> None:
    import duckdb

    text = "SELECT dept, COUNT(*) n, SUM(salary) s, AVG(age) a FROM staff WHERE joined IS NOT NULL"
    expected = sql(declare, text + " GROUP BY dept").rows
    other: Any = tmp_path / f"staff.{kind}"
    with duckdb.connect(str(other) if kind == "duckdb" else ":memory:") as connection:
        connection.execute(f"CREATE TABLE staff ({SCHEMA})")
        connection.execute(f"INSERT INTO staff SELECT * FROM '{staff}'")
        if kind == "csv":
            connection.execute(f"COPY staff TO '{other}' (HEADER)")
    if kind == "duckdb":
        other = f"{other}#staff"
    ledger = declare(source=other)
    assert rz.open_session(ledger).sql(text + " GROUP BY dept", eps=0.7).rows == expected


@pytest.mark.usefixtures("exact")
def test_nothing_in_a_csv_file_makes_a_statement_fail(
    declare: Declare, ledger: rz.Ledger, staff: Path, tmp_path: Path
) -> None:
    path = tmp_path / "staff.csv"
    head = "person_id,dept,salary,age,active,joined\n"
    path.write_text(head + "1,eng,5.5,30,true,2024-01-01\n")
    declare(source=path)
    path.write_text(head + '1,eng,x,30,maybe,never\nz,eng,1,1,1,1\n2,"eng,5\n\n3,eng,1e999,1\n')
    asking = rz.open_session(ledger)
    answer = asking.sql("SELECT COUNT(*) n, SUM(salary) s FROM staff", eps=1)
    assert answer.rows[0][0] <= 3


# -- charges ----------------------------------------------------------------------------------


def test_an_answer_is_charged_as_described_and_proven(ledger: rz.Ledger, staff: Path) -> None:
    ledger.create_budget("auto", rz.AutoFilter(1.0, 1e-6))
    ledger.add_table("staff", source=staff, **{**DECLARED, "budget": "auto"})
    asking = rz.open_session(ledger, principal="ann")
    options: list[dict[str, Any]] = [{}, {"eps": 0.1}, {"accuracy": 200}, {"scale": 100}]
    for option in options:
        answer = asking.sql("SELECT dept, COUNT(*) FROM staff GROUP BY dept", **option)
        assert answer, answer.reason
        hold, commit = ledger.history("auto")[-2:]
        assert (hold.type, commit.type, commit.body["by"]) == ("hold", "commit", "ann")
        assert hold.mechanism == commit.mechanism == answer.mechanism
        assert hold.body["question"]["version"] == 1
    assert asking.sql("SELECT SUM(salary), AVG(age) FROM staff", eps=0.1)
    pytest.importorskip("flint")
    assert ledger.verify().ok


@pytest.mark.parametrize(
    "filter",
    [
        rz.BasicFilter(3.0, 1e-6), rz.RenyiFilter(8.0, 3.0), rz.ZcdpFilter(2.0), rz.GdpFilter(1.0),
        rz.GdpResidueFilter(1.0), rz.ApproximateZcdpFilter(3.0, 1e-6, 5e-7),
    ],
    ids=lambda filter: filter.kind,
)  # fmt: skip
def test_every_filter_can_be_charged(ledger: rz.Ledger, staff: Path, filter: Any) -> None:
    """Some description of each question has a proof, of several measures too."""
    ledger.create_budget("other", filter)
    ledger.add_table("staff", source=staff, **{**DECLARED, "budget": "other"})
    asking = rz.open_session(ledger)
    grouped = "SELECT dept, COUNT(*), SUM(salary) FROM staff GROUP BY dept"
    for text, options in ((COUNT, {"accuracy": 100}), (grouped, {"eps": 0.1}), (grouped, {})):
        answer = asking.sql(text, **options)
        assert answer, (text, answer.reason)
    pytest.importorskip("flint")
    assert ledger.verify().ok


def test_asking_for_exactly_what_is_left_passes(declare: Declare) -> None:
    ledger = declare()
    asking = rz.open_session(ledger)
    for place in range(10):
        text = f"SELECT dept, COUNT(*), SUM(salary) FROM staff WHERE age > {place} GROUP BY dept"
        assert asking.sql(text, eps=1.0)
    refused = asking.sql("SELECT COUNT(*) FROM staff WHERE age = 3", eps=0.001)
    assert not refused and refused.rows == () and "refused" in refused.reason
    assert refused.receipt.admitted is False
    assert asking.sql(text, eps=1.0).repeated
    with pytest.raises(ArgumentError, match=r"eps must be given: .* has nothing left"):
        asking.sql("SELECT COUNT(*) FROM staff WHERE age = 4")


def test_a_quota_is_charged_with_the_budget(declare: Declare) -> None:
    ledger = declare()
    ledger.create_budget("ann", rz.PureFilter(1.0), parent="survey")
    asking = rz.open_session(ledger, "ann", budget="ann")
    assert asking.sql(COUNT, eps=0.5)
    assert str(ledger.budget("survey").remaining) == "pure_dp(9.5)"
    assert not asking.sql("SELECT COUNT(age) FROM staff", eps=0.75)
    ledger.create_budget("stranger", rz.PureFilter(1.0))
    with pytest.raises(ArgumentError, match="not in force under the budgets that are charged"):
        rz.open_session(ledger, budget="stranger").sql("SELECT COUNT(age) FROM staff", eps=0.5)


def test_previews_spend_nothing_and_hide_the_key(declare: Declare) -> None:
    ledger = declare()
    asking = rz.open_session(ledger)
    before = ledger.budget("survey").seq
    shown = asking.preview("SELECT COUNT(*) n, AVG(age) a FROM staff", eps=0.5)
    assert shown.accuracy["a"] is None and shown.accuracy["n"] == 72.0
    assert session.HIDDEN_KEY in shown.statement
    assert (shown.admitted, shown.repeated) == (True, False)
    assert shown.to_dict()["mechanism"]["kind"] == shown.mechanism.kind
    assert ledger.budget("survey").seq == before
    asking.sql("SELECT COUNT(*) n, AVG(age) a FROM staff", eps=0.5)
    assert asking.preview("SELECT COUNT(*) n, AVG(age) a FROM staff", eps=0.5).repeated


# -- repeated questions -----------------------------------------------------------------------


def test_a_repeated_question_costs_nothing(declare: Declare) -> None:
    ledger = declare()
    ann, bob = (rz.open_session(ledger, principal=name) for name in ("ann", "bob"))
    first = ann.sql(COUNT, eps=0.5, key="monday")
    left = ledger.budget("survey").remaining
    for again in (
        ann.sql("select  count(*)  from staff", eps=0.5),
        ann.sql(COUNT),
        ann.sql(COUNT, eps=0.5, key="monday"),
    ):
        assert again.repeated and not first.repeated
        assert (again.rows, again.intervals, again.key) == (first.rows, first.intervals, "monday")
    assert ledger.budget("survey").remaining == left
    with pytest.raises(KeyReused):
        ann.sql("SELECT COUNT(age) FROM staff", eps=0.5, key="monday")
    assert not ann.sql(COUNT, eps=0.25).repeated
    assert not bob.sql(COUNT, eps=0.5).repeated
    declare(data_version="2")
    assert not ann.sql(COUNT, eps=0.5).repeated


def test_answers_are_shared_only_where_the_table_says_so(declare: Declare) -> None:
    ledger = declare(shared_answers=True)
    first = rz.open_session(ledger, principal="ann").sql(COUNT, eps=0.5)
    other = rz.open_session(ledger, principal="bob").sql(COUNT, eps=0.5)
    assert other.repeated and other.rows == first.rows


# -- failures ---------------------------------------------------------------------------------


def test_failures_after_the_commit_show_one_constant_error(
    declare: Declare, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = declare()
    asking = rz.open_session(ledger)

    def fail(*_: Any) -> Any:
        raise ValueError("the salary of person 3 is 57")

    with monkeypatch.context() as patched, caplog.at_level(logging.CRITICAL):
        patched.setattr(sources.ParquetFile, "run", fail)
        with pytest.raises(MechanismFailed) as failed:
            asking.sql(COUNT, eps=1.0, key="once")
        assert "57" not in str(failed.value)
        assert failed.value.__cause__ is None and failed.value.__context__ is None
    assert str(ledger.budget("survey").remaining) == "pure_dp(9.0)"
    with pytest.raises(AlreadySpent):
        asking.sql(COUNT, eps=1.0, key="once")
    with monkeypatch.context() as patched, caplog.at_level(logging.CRITICAL):
        patched.setattr(answers, "store", fail)
        with pytest.raises(MechanismFailed):
            asking.sql(COUNT, eps=1.0, key="twice")
    with pytest.raises(AlreadySpent):
        asking.sql(COUNT, eps=1.0, key="twice")
    assert str(ledger.budget("survey").remaining) == "pure_dp(8.0)"


def test_what_fails_before_the_commit_spends_nothing(declare: Declare, staff: Path) -> None:
    ledger = declare()
    asking = rz.open_session(ledger)
    staff.unlink()
    with pytest.raises(ArgumentError, match="cannot be read as it was declared"):
        asking.sql(COUNT, eps=1.0)
    write(staff, [], "person_id BIGINT, dept BIGINT")
    with pytest.raises(ArgumentError, match="cannot be read as it was declared"):
        asking.sql(COUNT, eps=1.0)
    ledger.remove_table("staff")
    with pytest.raises(rz.ResiduaError, match="there is no table"):
        asking.sql(COUNT, eps=1.0)
    assert str(ledger.budget("survey").remaining) == "pure_dp(10.0)"


def test_a_cancelled_statement_stays_charged(
    declare: Declare, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = declare()
    asking = rz.open_session(ledger, timeout=30.0, memory_limit="1GB")
    real = sources.Running.of

    def cancelled(self: Any, connection: Any, seconds: float | None) -> Any:
        assert seconds == 30.0
        asking.cancel()
        return real(self, connection, seconds)

    monkeypatch.setattr(sources.Running, "of", cancelled)
    with caplog.at_level(logging.CRITICAL), pytest.raises(MechanismFailed):
        asking.sql(COUNT, eps=1.0)
    assert str(ledger.budget("survey").remaining) == "pure_dp(9.0)"
    with pytest.raises(ArgumentError, match="memory_limit must be such as '2GB'"):
        rz.open_session(ledger, memory_limit="2GB; DROP TABLE x")


def test_killed_between_commit_and_release(declare: Declare, tmp_path: Path) -> None:
    """The spend stays, and the key never draws noise again."""
    ledger = declare()
    url = str(ledger.store.place)
    ledger.close()
    script = f"""
        import os
        import residua as rz
        from residua.data import sources
        sources.ParquetFile.run = lambda *_: os._exit(9)
        with rz.open_ledger({f"sqlite:///{tmp_path}/budgets.db"!r}) as ledger:
            rz.open_session(ledger, principal="ann").sql({COUNT!r}, eps=1.0, key="once")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], env=dict(os.environ))
    assert done.returncode == 9, url
    with rz.open_ledger(f"sqlite:///{tmp_path}/budgets.db") as again:
        assert str(again.budget("survey").remaining) == "pure_dp(9.0)"
        with pytest.raises(AlreadySpent):
            rz.open_session(again, principal="ann").sql(COUNT, eps=1.0, key="once")


# -- answers ----------------------------------------------------------------------------------


def test_an_answer_is_a_table_with_intervals(declare: Declare) -> None:
    answer = sql(declare, "SELECT dept, COUNT(*) n, AVG(age) a FROM staff GROUP BY dept")
    assert answer.table.column_names == ["dept", "n", "a"]
    assert answer.table.num_rows == 3
    for row, ends in zip(answer.rows, answer.intervals, strict=True):
        assert ends[0] is None
        assert ends[1][1] - row[1] == row[1] - ends[1][0] == answer.accuracy["n"]
    assert answer.noise["rows"]["kind"] == "laplace"
    assert "<table>" in answer._repr_html_()
    assert answer.remaining is not None
    assert answer.to_dict()["rows"][0][0] == "eng"


def test_intervals_contain_the_value_without_noise(ledger: rz.Ledger, tmp_path: Path) -> None:
    """At least 95 of 100 of them, up to chance, for each aggregate."""
    keys = list(range(300))
    rows = [(10 * k + n, k, float(n)) for k in keys for n in range(10)]
    path = write(tmp_path / "t.parquet", rows, "u BIGINT, g BIGINT, v DOUBLE")
    ledger.create_budget("wide", rz.PureFilter(100.0))
    ledger.add_table(
        "t", source=path, unit_column="u", keys={"g": keys}, bounds={"v": (0, 10, "0.1")},
        budget="wide",
    )  # fmt: skip
    answer = rz.open_session(ledger).sql(
        "SELECT COUNT(*), SUM(v), AVG(v), VARIANCE(v) FROM t GROUP BY g", eps=8.0
    )
    truth = (10, 45.0, 4.5, variance(range(10)))
    for place, value in enumerate(truth):
        ends = [row[place] for row in answer.intervals]
        inside = sum(low is None or low <= value <= high for low, high in ends)
        assert inside >= 0.95 * 300 - 4 * (300 * 0.05 * 0.95) ** 0.5, place
