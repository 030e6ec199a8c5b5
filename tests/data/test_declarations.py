"""Declarations: what is refused with which words, versions, and what the verifier reads."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

import residua as rz
from data.conftest import DECLARED, STAFF, Declare, write
from residua.data.declarations import table, tables
from residua.errors import ArgumentError, LedgerError, ResiduaError, UnknownBudget, UnknownTable


def test_a_declaration_is_recorded_and_read_again(declare: Declare, staff: Path) -> None:
    ledger = declare()
    found = table(ledger, "STAFF")
    assert (found.version, found.budget, found.source) == (1, "survey", str(staff))
    assert list(found.columns.items())[:3] == [
        ("person_id", "integer"), ("dept", "text"), ("salary", "real"),
    ]  # fmt: skip
    assert (found.bounds["salary"].lowest, found.bounds["salary"].highest) == (0, 1000)
    assert found.to_declaration() == ledger.history("survey")[-1].body["declaration"]
    declare(max_rows=5)
    assert tables(ledger) == {"staff": table(ledger, "staff")}
    assert table(ledger, "staff").version == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bounds": {"salary": (10, 10)}}, r"bounds of 'salary' must be \(lowest, highest\)"),
        ({"bounds": {"salary": (10, 0)}}, "must be .lowest, highest., got .10, 0."),
        ({"bounds": {"salary": (0, float("nan"))}}, "must be finite and of ordinary size"),
        ({"bounds": {"salary": (0, float("inf"))}}, "must be finite and of ordinary size"),
        ({"bounds": {"salary": 5}}, "must be a pair of numbers, got 5"),
        ({"bounds": {"salary": (0, 1, 1, 1)}}, "must be a pair of numbers"),
        ({"bounds": {"salary": ("a", 1)}}, "must be a number, got 'a'"),
        ({"bounds": {"salary": (0, 1, 0.3)}}, "must be a power of ten, got 0.3"),
        ({"bounds": {"salary": (0, 1, 0)}}, "step of .* must be positive, got 0"),
        ({"bounds": {"age": (0, 120, 0.1)}}, "must be at least 1 for integers"),
        ({"bounds": {"salary": (0, 10**9, "1e-9")}}, r"at most 2\*\*53 steps of 1E-9"),
        ({"bounds": {"dept": (0, 1)}}, "must be of a column of numbers, got one of text"),
        ({"bounds": {"person_id": (0, 1)}}, "bounds must not be of the unit column"),
        ({"bounds": {"salery": (0, 1)}}, "got 'salery'; did you mean 'salary'"),
        ({"bounds": {"joined": (0, 1)}}, "must be a pair of dates"),
        ({"bounds": {"joined": ("2024-02-30", "2024-03-01")}}, "must be dates as YYYY-MM-DD"),
        ({"bounds": {"joined": ("2024-03-01", "2024-02-01")}}, r"must be \(first, last\)"),
        ({"bounds": [1]}, "bounds must be a mapping of columns"),
        ({"keys": {"dept": []}}, "must be 1 to 100000 values"),
        ({"keys": {"dept": ["a", "a"]}}, "keys of 'dept' must differ"),
        ({"keys": {"dept": ["a", 1]}}, "must be of the type of the column, text, got 1"),
        ({"keys": {"dept": ["a\n"]}}, "must be printable text"),
        ({"keys": {"dept": "eng"}}, "must be a list of values"),
        ({"keys": {"age": [True]}}, "must be of the type of the column, integer, got True"),
        ({"keys": {"age": [2**63]}}, "must be 64-bit integers"),
        ({"keys": {"joined": ["2024-13-01"]}}, "must be dates as YYYY-MM-DD"),
        ({"keys": {"salary": [1.0]}}, "must be of a column of text, integers, dates or booleans"),
        ({"unit_column": "person"}, "unit_column must be a column of the source"),
        ({"unit_column": "salary"}, "must be a column of integers or text, got 'salary' of real"),
        ({"max_groups": 0}, "max_groups must be between 1 and 1000000, got 0"),
        ({"max_rows": 2.5}, "max_rows must be a non-negative integer"),
        ({"data_version": "two\nlines"}, "data_version must be one line"),
        ({"shared_answers": 1}, "shared_answers must be true or false"),
        ({"source": "nowhere.parquet"}, "must be a file that exists, got nowhere.parquet"),
        ({"source": "*.parquet"}, "must be one file, got the pattern"),
        ({"source": "postgresql://user:secret@host/db"}, "got postgresql://…"),
        ({"source": 5}, "source must be a path or an address"),
    ],
)  # fmt: skip
def test_bad_declarations_are_refused_and_nothing_is_recorded(
    declare: Declare, ledger: rz.Ledger, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ResiduaError, match=message) as refused:
        declare(**changes)
    assert "secret" not in str(refused.value)
    assert len(ledger.history("survey")) == 1


def test_sources_must_be_readable_and_units_never_null(declare: Declare, tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_text("not a Parquet file")
    with pytest.raises(ArgumentError, match="source cannot be read"):
        declare(source=broken)
    (tmp_path / "text.json").write_text("{}")
    with pytest.raises(ArgumentError, match=r"must be a .parquet or .csv file"):
        declare(source=tmp_path / "text.json")
    rows = [(None, "eng", 1.0, 1, True, "2024-01-01")]
    with pytest.raises(ArgumentError, match="got 'person_id' with NULL: remove those rows"):
        declare(source=write(tmp_path / "null.parquet", rows))
    reserved = write(tmp_path / "reserved.parquet", [], "person_id BIGINT, residua_x BIGINT")
    with pytest.raises(ArgumentError, match="column must not begin with residua_"):
        declare(source=reserved, bounds={}, keys={})


@pytest.mark.parametrize(
    "name", ["", "1st", "a b", "a;drop", "residua_t", "x" * 61, "täble", 'a"b', None]
)
def test_names_of_tables_are_plain(ledger: rz.Ledger, staff: Path, name: Any) -> None:
    with pytest.raises(ArgumentError, match="name must"):
        ledger.add_table(name, source=staff, **DECLARED)


def test_a_table_stays_with_its_budget_and_its_unit(
    declare: Declare, staff: Path, tmp_path: Path
) -> None:
    ledger = declare()
    ledger.create_budget("other", rz.PureFilter(1.0))
    ledger.create_budget("exchange", rz.PureFilter(1.0), relation="replace-one")
    with pytest.raises(ArgumentError, match="declared under the budget 'survey'"):
        declare(budget="other")
    with pytest.raises(ArgumentError, match="budget must have the relation add-remove"):
        declare(budget="exchange")
    with pytest.raises(UnknownBudget):
        declare(budget="nothing")
    with pytest.raises(ArgumentError, match="unit_column of table 'staff' must stay 'person_id'"):
        declare(source=write(tmp_path / "full.parquet", STAFF[:3]), unit_column="dept", keys={})
    ledger.remove_table("staff")
    with pytest.raises(UnknownTable, match="there is no table 'staff'"):
        table(ledger, "staff")
    with pytest.raises(UnknownTable):
        ledger.remove_table("staff")
    with pytest.raises(ArgumentError, match="table 'staff' was removed; give the new table"):
        declare()
    ledger.retire("survey", "over")
    with pytest.raises(LedgerError, match="retired"):
        ledger.add_table("second", source=staff, **DECLARED)


@pytest.mark.needs("flint")
def test_declarations_and_questions_are_exported_and_recovered(
    declare: Declare, tmp_path: Path
) -> None:
    """Rows that are derived from records say the same; what was asked stays verifiable."""
    from residua.verify import verify_export

    ledger = declare(keys={"joined": [datetime.date(2024, 1, 1)], "dept": ["eng"]})
    rz.open_session(ledger).sql("SELECT COUNT(*) FROM staff", eps=0.5)
    declare(max_rows=7)
    export = tmp_path / "export.jsonl"
    ledger.export(export)
    assert verify_export(export).ok
    assert ledger.verify().ok
    held = [each.body["question"] for each in ledger.history("survey") if each.type == "hold"]
    assert held == [
        {"table": "staff", "version": 1, "sql": 'SELECT COUNT(*) AS "count" FROM "staff"'}
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"max_rows":2', '"max_rows":0', "max_rows must be between"),
        ('"max_rows":2', '"max_rows":true', "max_rows must be between"),
        ('["0","120","1"]', '["130","120","1"]', "bounds of 'age' cannot be"),
        ('["0","120","1"]', '["0","120","0"]', "bounds of 'age' cannot be"),
        ('["0","120","1"]', '["0","1e999999","1"]', "bounds of 'age' cannot be"),
        ('["2024-01-01","2024-12-31"]', '["2024-12-31","2024-01-01"]', "bounds of 'joined'"),
        ('["2024-01-01","2024-12-31"]', '["2024-1-1","2024-12-31"]', "bounds of 'joined'"),
        ('["eng","ops","hr"]', '["eng","eng"]', "keys of 'dept' cannot be"),
        ('"unit_column":"person_id"', '"unit_column":"salary"', "unit_column must be a column"),
        ('"data_version":"1"', '"data_versions":"1"', "it must have the fields"),
        ('"table":"staff","time"', '"table":"stuff","time"', "was not in force"),
        ('"version":1}', '"version":2}', "was not in force under a budget"),
        ('"version":1}', '"version":true}', "was not in force under a budget"),
        ('"version":1}', '"versions":1}', "question must have table, version and sql"),
    ],
)
@pytest.mark.needs("flint")
def test_the_verifier_reads_declarations_and_questions_strictly(
    declare: Declare, tmp_path: Path, old: str, new: str, problem: str
) -> None:
    from residua import records
    from residua.verify.verification import check_records

    ledger = declare(bounds={**DECLARED["bounds"], "joined": ("2024-01-01", "2024-12-31")})
    rz.open_session(ledger).sql("SELECT COUNT(*) FROM staff", eps=0.5)
    texts, prev, changed = [], records.NOTHING_BEFORE, 0
    for record in ledger.history("survey"):
        before = record.text
        text = before.replace(old, new)
        changed += text != before
        body = json.loads(text)
        body["prev"] = prev
        for member in body.get("group", ()):
            member["prev"] = prev
        texts.append(records.canonical(body))
        prev = records.digest(texts[-1])
    assert changed
    found = check_records({"survey": texts}, {})
    assert any(problem in each.what for each in found), found
    assert not check_records({"survey": [each.text for each in ledger.history("survey")]}, {})
