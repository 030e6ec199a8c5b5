"""SQL: what is read, in one normal form, and what is refused with which advice."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import residua as rz
from data.conftest import DECLARED, STAFF, Declare, write
from residua.data.declarations import Table, table
from residua.data.queries import parse, table_named
from residua.errors import ArgumentError, ResiduaError


@pytest.fixture
def known(declare: Declare) -> Table:
    return table(declare(), "staff")


@pytest.mark.parametrize(
    ("sql", "normal"),
    [
        ("select count(*) from STAFF", 'SELECT COUNT(*) AS "count" FROM "staff"'),
        ('SELECT Count(person_id) FROM "staff" s;', 'SELECT COUNT(*) AS "count" FROM "staff"'),
        (
            "select s.DEPT, sum(s.salary) as total from staff as s where not (age >= 18 and"
            " active) group by s.dept -- comment",
            'SELECT "dept" AS "dept", SUM("salary") AS "total" FROM "staff"'
            ' WHERE NOT ("age" >= 18 AND "active") GROUP BY "dept"',
        ),
        (
            "SELECT AVG(age) FROM staff WHERE dept IN ('eng', 'o''ps') AND salary BETWEEN -1 AND"
            " 2.5 AND joined > DATE '2024-01-01' AND dept LIKE 'e%' AND age IS NOT NULL",
            'SELECT AVG("age") AS "avg_age" FROM "staff" WHERE "dept" IN (\'eng\', \'o\'\'ps\')'
            ' AND "salary" BETWEEN -1.0 AND 2.5'
            ' AND "joined" > CAST(\'2024-01-01\' AS DATE) AND "dept" LIKE \'e%\''
            ' AND NOT "age" IS NULL',
        ),
        (
            "select floor(age/10)*10 as decade, median(age), percentile_cont(0.9) within group"
            " (order by salary) p from staff group by decade",
            'SELECT FLOOR("age" / 10) * 10 AS "decade", QUANTILE_CONT("age", 0.50) AS'
            ' "median_age", QUANTILE_CONT("salary", 0.90) AS "p" FROM "staff"'
            ' GROUP BY FLOOR("age" / 10) * 10',
        ),
    ],
)  # fmt: skip
def test_questions_have_one_normal_form(known: Table, sql: str, normal: str) -> None:
    assert table_named(sql).lower() == "staff"
    assert parse(sql, known).sql == normal
    assert parse(normal, known).sql == normal


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("", "sql must have 1 to 10000 characters"),
        ("SELECT", "without a table|one column|at most"),
        ("SELECT COUNT(* FROM staff", "can be parsed"),
        ("SELECT COUNT(*) FROM staff; DROP TABLE staff", "one statement, got 2"),
        ("DELETE FROM staff", "must not contain DELETE; what works: SELECT"),
        ("SELECT 1", "a query without a table"),
        ("SELECT * FROM staff", r"must not contain \*; what works: COUNT"),
        ("SELECT salary FROM staff", "column 'salary' without an aggregate"),
        ("SELECT dept FROM staff GROUP BY dept", "SELECT without an aggregate"),
        ("SELECT COUNT(*) FROM read_parquet('/etc/x')", "must not contain FROM"),
        ("SELECT COUNT(*) FROM main.staff", "must not contain FROM main.staff"),
        ("SELECT COUNT(*) FROM (SELECT * FROM staff) s", "must not contain|without a table"),
        ("SELECT COUNT(*) FROM staff JOIN staff b USING (dept)", "JOINS; what works: declare"),
        ("SELECT COUNT(*) FROM staff, staff b", "must not contain"),
        ("SELECT COUNT(*) FROM staff TABLESAMPLE 10%", "must not contain"),
        ("WITH a AS (SELECT 1) SELECT COUNT(*) FROM staff", "WITH; what works: write one SELECT"),
        ("SELECT COUNT(*) FROM staff UNION SELECT COUNT(*) FROM staff", "UNION"),
        ("SELECT DISTINCT COUNT(*) FROM staff", "DISTINCT; what works"),
        ("SELECT COUNT(*) FROM staff ORDER BY 1", "ORDER; what works: sort the answer"),
        ("SELECT COUNT(*) FROM staff LIMIT 1", "LIMIT; what works"),
        ("SELECT dept, COUNT(*) FROM staff GROUP BY dept HAVING COUNT(*) > 1", "HAVING; what"),
        ("SELECT COUNT(*) FROM staff GROUP BY ROLLUP (dept)", "GROUP BY"),
        ("SELECT COUNT(*) FROM staff GROUP BY 1", "GROUP BY 1; what works"),
        ("SELECT COUNT(*) FROM staff GROUP BY age", "has no public keys to group by"),
        ("SELECT COUNT(*) FROM staff GROUP BY dept, dept", "must name each column once"),
        ("SELECT COUNT(*), COUNT(*) FROM staff", "must have different names; use AS"),
        ("SELECT COUNT(*) OVER () FROM staff", "must not contain"),
        ("SELECT COUNT(*) FILTER (WHERE age > 3) FROM staff", "must not contain"),
        ("SELECT SUM(person_id) FROM staff", "has no bounds: its values cannot be clipped"),
        ("SELECT SUM(salary * 2) FROM staff", "SUM of a column with declared bounds"),
        ("SELECT SUM(DISTINCT salary) FROM staff", r"SUM\(DISTINCT ...\)"),
        ("SELECT COUNT(DISTINCT dept) FROM staff", r"what works: COUNT\(DISTINCT person_id\)"),
        ("SELECT MAX(person_id) FROM staff", "has no bounds"),
        ("SELECT MAX(salary + 1) FROM staff", r"QUANTILE_CONT\(column, 0.25\), in whole percents"),
        ("SELECT QUANTILE_CONT(salary, 0.255) FROM staff", "in whole percents from 1 to 99"),
        ("SELECT QUANTILE_CONT(salary, 1.0) FROM staff", "in whole percents from 1 to 99"),
        ("SELECT STDDEV(salary) FROM staff", "what works"),
        ("SELECT COUNT(*) FROM staff GROUP BY FLOOR(age / 10)", "GROUP BY FLOOR"),
        ("SELECT COUNT(*) FROM staff GROUP BY FLOOR(age / 10) * 5", "GROUP BY FLOOR"),
        ("SELECT COUNT(*) FROM staff GROUP BY FLOOR(age / 1.5) * 1.5", "whole for integers"),
        ("SELECT COUNT(*) FROM staff GROUP BY FLOOR(salary / 1e-9) * 1e-9", "bins must be at most"),
        ("SELECT COUNT(*) FROM staff GROUP BY DATE_TRUNC('month', joined)", "no bounds of dates"),
        ("SELECT COUNT(*) FROM staff GROUP BY DATE_TRUNC('century', joined)", "are truncated to"),
        ("SELECT FLOOR(age / 10) * 10, COUNT(*) FROM staff", "without GROUP BY|without an"),
        ("SELECT COUNT(*) + 1 FROM staff", "must not contain"),
        ("SELECT GETENV('HOME'), COUNT(*) FROM staff", "must not contain"),
        ("SELECT COUNT(wage) FROM staff", "has no column 'wage'"),
        ("SELECT COUNT(x.age) FROM staff", "must not contain column x.age"),
        ("SELECT COUNT(*) FROM staff WHERE person_id = 3", "condition on the unit column"),
        ("SELECT COUNT(*) FROM staff WHERE 1 / (age - 40) > 0", "the condition"),
        ("SELECT COUNT(*) FROM staff WHERE age + 1 > 3", "compare a column|the condition"),
        ("SELECT COUNT(*) FROM staff WHERE age", "compare it with a literal"),
        ("SELECT COUNT(*) FROM staff WHERE age = 'x'", "is of integer, and cannot be compared"),
        ("SELECT COUNT(*) FROM staff WHERE age = 1.5", "integers cannot be compared with 1.5"),
        ("SELECT COUNT(*) FROM staff WHERE age = 1e30", "of ordinary size"),
        ("SELECT COUNT(*) FROM staff WHERE salary < 1e999", "of ordinary size"),
        ("SELECT COUNT(*) FROM staff WHERE salary < 1e-999", "of ordinary size"),
        ("SELECT COUNT(*) FROM staff WHERE joined = 'today'", "is of date, and cannot be"),
        ("SELECT COUNT(*) FROM staff WHERE dept = age", "must have one type"),
        ("SELECT COUNT(*) FROM staff WHERE dept IN (SELECT 'a')", "the condition"),
        ("SELECT COUNT(*) FROM staff WHERE EXISTS (SELECT 1)", "the condition"),
        ("SELECT COUNT(*) FROM staff WHERE dept LIKE 'a' ESCAPE '!'", "the condition"),
        ("SELECT COUNT(*) FROM staff WHERE CAST(dept AS INT) = 1", "compare a column"),
        ("SELECT COUNT(*) FROM staff WHERE dept SIMILAR TO 'a*'", "the condition"),
        ("SELECT COUNT(*) FROM staff WHERE random() < 0.5", "compare a column"),
        ("SELECT COUNT(*) FROM staff WHERE age = $1", "cannot be compared"),
        ("SELECT COUNT(*) FROM staff WHERE " + "NOT " * 60 + "active", "nested at most 50 deep"),
    ],
)  # fmt: skip
def test_everything_else_is_refused_by_name(known: Table, sql: str, message: str) -> None:
    with pytest.raises(ResiduaError, match=message):
        table_named(sql)
        parse(sql, known)


TEXTS = st.text(alphabet=string.printable.replace("\r", "") + "é'\"\\;%_\0", max_size=12)


@settings(max_examples=25, deadline=None)
@given(value=TEXTS.filter(lambda text: "\0" not in text))
def test_literals_are_never_code(value: str) -> None:
    """A text in a condition is compared as it is, whatever characters it has."""
    import duckdb

    columns = {"person_id": "integer", "dept": "text"}
    plain = Table("staff", "survey", 1, "x", columns, "person_id", 1, 1, {}, {}, {}, "1", False)
    quoted = value.replace("'", "''")
    found = parse(f"SELECT COUNT(*) FROM staff WHERE dept = '{quoted}'", plain)
    condition = found.where.sql("duckdb") if found.where is not None else ""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE staff (dept VARCHAR)")
        connection.execute("INSERT INTO staff VALUES (?), ('other value')", [value])
        count = connection.execute(f"SELECT COUNT(*) FROM staff WHERE {condition}").fetchone()
    assert count == (1,)


NASTY = ['x"; DROP TABLE made; --', "it's", "sel ect", "a\\b", "日本", "COUNT(*)"]


def test_names_and_keys_are_never_code(ledger: rz.Ledger, tmp_path: Path) -> None:
    """Columns and keys with any characters give answers about them."""
    import duckdb

    path = tmp_path / "nasty.parquet"
    with duckdb.connect() as connection:
        names = ", ".join('"' + each.replace('"', '""') + '" VARCHAR' for each in NASTY)
        connection.execute(f"CREATE TABLE made (u BIGINT, {names})")
        marks = ", ".join("?" for _ in NASTY)
        for unit, key in enumerate(NASTY * 200):
            connection.execute(f"INSERT INTO made VALUES (?, {marks})", [unit, *[key] * len(NASTY)])
        connection.execute(f"COPY made TO '{path}' (FORMAT PARQUET)")
    keys = {name: [*NASTY, "none"] for name in NASTY}
    ledger.add_table("nasty", source=path, unit_column="u", keys=keys, budget="survey")
    session = rz.open_session(ledger)
    for name in NASTY[:3]:
        column = '"' + name.replace('"', '""') + '"'
        answer = session.sql(
            f"SELECT {column}, COUNT(*) AS n FROM nasty GROUP BY {column}", eps=3.0
        )
        assert [row[0] for row in answer.rows] == [*NASTY, "none"]
        assert all(abs(row[1] - 200 * (row[0] in NASTY)) < 60 for row in answer.rows)


def test_a_condition_is_about_rows_before_they_are_chosen(
    ledger: rz.Ledger, tmp_path: Path
) -> None:
    rows = [(n, "eng", float(n % 50), n % 2, True, "2024-01-01") for n in range(2000)]
    path = write(tmp_path / "many.parquet", [*rows, *STAFF])
    ledger.add_table("staff", source=path, **DECLARED)
    answer = rz.open_session(ledger).sql("SELECT COUNT(*) FROM staff WHERE age = 1", eps=5.0)
    assert abs(answer.rows[0][0] - 1000) < 40


def test_a_question_needs_one_known_table(declare: Declare) -> None:
    session = rz.open_session(declare())
    with pytest.raises(ResiduaError, match="no table 'stuff'; did you mean 'staff'"):
        session.sql("SELECT COUNT(*) FROM stuff", eps=1)
    with pytest.raises(ArgumentError, match="give only one of eps, accuracy and scale"):
        session.sql("SELECT COUNT(*) FROM staff", eps=1, accuracy=5)
