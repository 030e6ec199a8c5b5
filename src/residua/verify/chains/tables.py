"""Declared tables across chains: whose rows a question was about, under which bounds.

A table is declared under one budget. Versions of its declaration count up from 1, and nothing
follows its removal. A question names the version in force in the chain of a budget that it
charges, at the place of its record there. Declarations are read as strictly as they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from residua.records import Record
from residua.verify.chains.chain import Chain, members_of
from residua.verify.descriptions.fields import is_label

TYPES = ("boolean", "date", "integer", "other", "real", "text", "timestamp")
_UNITS = ("integer", "text")
"""The types of columns that identify a unit."""
_MOST = 1_000_000
_LARGEST = 2**53
"""The largest bound of a value, in steps."""
_LONGEST_SQL = 10_000
_FIELDS = {
    "source", "columns", "unit_column", "max_groups", "max_rows", "bounds", "keys",
    "data_version", "shared_answers",
}  # fmt: skip


def check_tables(chains: Mapping[str, Chain]) -> None:
    """Check every declaration, and every question against the declaration that it names."""
    homes: dict[str, str] = {}
    declared = {name: list(_declared(chain, homes)) for name, chain in chains.items()}
    for chain in chains.values():
        for record in chain.records:
            if "question" in record.body:
                wrong = _wrong_question(record, declared)
                if wrong is not None:
                    chain.add_problem(record.seq, wrong)


def _declared(chain: Chain, homes: dict[str, str]) -> Iterator[Record]:
    """The declarations of a chain, which are checked."""
    last: dict[str, Record] = {}
    for record in chain.records:
        if record.type != "table":
            continue
        body, name = record.body, record.body["table"]
        if not is_label(name):
            chain.add_problem(record.seq, f"the name of a table is {name!r:.60}")
            continue
        home = homes.setdefault(name, chain.name)
        if home != chain.name:
            chain.add_problem(record.seq, f"the table {name!r} is declared under {home!r}")
        before = last.get(name)
        version = 1 if before is None else before.body["version"] + 1
        if type(body["version"]) is not int or body["version"] != version:
            chain.add_problem(record.seq, f"version must be {version}, got {body['version']!r:.60}")
            continue
        wrong = _wrong_change(before, body["declaration"])
        if wrong is not None:
            chain.add_problem(record.seq, f"the declaration of {name!r}: {wrong}")
        last[name] = record
        yield record


def _wrong_change(before: Record | None, new: Any) -> str | None:
    old = None if before is None else before.body["declaration"]
    if before is not None and old is None:
        return "the table was removed before"
    if new is None:
        return "a table is removed that was not declared" if before is None else None
    wrong = wrong_declaration(new)
    if wrong is None and isinstance(old, Mapping) and old["unit_column"] != new["unit_column"]:
        return "another version has another unit column"
    return wrong


def _wrong_question(record: Record, declared: Mapping[str, list[Record]]) -> str | None:
    question = record.body["question"]
    if not isinstance(question, Mapping) or set(question) != {"table", "version", "sql"}:
        return f"question must have table, version and sql, got {question!r:.60}"
    if not (isinstance(question["sql"], str) and 0 < len(question["sql"]) <= _LONGEST_SQL):
        return f"sql must be a text of at most {_LONGEST_SQL} characters"
    for name, seq in members_of(record.body["group"]):
        before = [
            each.body
            for each in declared.get(name, ())
            if each.seq < seq and each.body["table"] == question["table"]
        ]
        last = before[-1] if before and before[-1]["declaration"] is not None else {}
        if type(question["version"]) is int and question["version"] == last.get("version"):
            return None
    return (
        f"version {question['version']!r:.60} of the table {question['table']!r:.60} was not in"
        " force under a budget that is charged"
    )


def wrong_declaration(new: Any) -> str | None:
    """What is wrong with a declaration, or None."""
    if not isinstance(new, Mapping) or set(new) != _FIELDS:
        return f"it must have the fields {', '.join(sorted(_FIELDS))}"
    if not isinstance(new["source"], str) or not new["source"]:
        return "source must be a text"
    listed = new["columns"]
    if not (isinstance(listed, list) and all(_is_column(each) for each in listed)):
        return "columns must list names with types"
    columns = dict(listed)
    if len(columns) != len(listed):
        return "a column is listed twice"
    unit = new["unit_column"]
    if not isinstance(unit, str) or columns.get(unit) not in _UNITS:
        return f"unit_column must be a column of integers or text, got {unit!r:.60}"
    for name in ("max_groups", "max_rows"):
        if type(new[name]) is not int or not 1 <= new[name] <= _MOST:
            return f"{name} must be between 1 and {_MOST}, got {new[name]!r:.60}"
    if type(new["shared_answers"]) is not bool or not is_label(new["data_version"]):
        return "shared_answers must be true or false, and data_version a name"
    for field, good in (("bounds", _are_bounds), ("keys", _are_keys)):
        given = new[field]
        if not isinstance(given, Mapping):
            return f"{field} must be an object"
        for column, value in given.items():
            if column == unit or column not in columns or not good(value, columns[column]):
                return f"{field} of {column!r:.60} cannot be {value!r:.60}"
    return None


def _is_column(given: Any) -> bool:
    pair = isinstance(given, list) and len(given) == 2
    return pair and isinstance(given[0], str) and bool(given[0]) and given[1] in TYPES


def _are_bounds(given: Any, type_: str) -> bool:
    """Lower end, upper end and step, as decimals; of dates the first and the last day."""
    if type_ in ("date", "timestamp"):
        pair = isinstance(given, list) and len(given) == 2 and all(map(_is_day, given))
        return pair and given[0] <= given[1]
    if type_ not in ("integer", "real") or not isinstance(given, list) or len(given) != 3:
        return False
    try:
        low, high, step = (Decimal(each) for each in given if isinstance(each, str))
    except (InvalidOperation, ValueError):
        return False
    if not all(each.is_finite() for each in (low, high, step)):
        return False
    return low < high and step > 0 and max(abs(low), abs(high)) <= _LARGEST * step


def _is_day(given: Any) -> bool:
    try:
        return isinstance(given, str) and date.fromisoformat(given).isoformat() == given
    except ValueError:
        return False


def _are_keys(given: Any, type_: str) -> bool:
    """Distinct values of the type of the column."""
    kind: Any = {"integer": int, "text": str, "boolean": bool, "date": str}.get(type_)
    good = isinstance(given, list) and 0 < len(given) <= _MOST
    return good and all(type(each) is kind for each in given) and len(set(given)) == len(given)
