"""Declared tables: what an operator makes public about a table before anyone asks about it.

    ledger.add_table("staff", source="staff.parquet", unit_column="person_id", max_groups=3,
                     max_rows=2, bounds={"salary": (0, 200000)},
                     keys={"dept": ["eng", "ops", "hr"]}, budget="survey")

A declaration is public: none of its fields may depend on the data, with one exception that the
operator answers for, the names and types of the columns, which are read from the source. What a
query costs follows from it alone. The ledger records each version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from residua import checks
from residua.data.sources import source_at
from residua.errors import ArgumentError, ArgumentTypeError, UnknownTable
from residua.ledger.storage.rows import DeclaredTable
from residua.mechanisms.relations import ADD_REMOVE

MOST_CONTRIBUTED = 1_000_000
"""The largest `max_groups` and `max_rows`."""
MOST_KEYS = 100_000
"""The most groups of an answer."""
LARGEST_VALUE = 2**53
"""The largest bound, in steps: a float has all integers up to here."""
DIGITS = 8
"""Where no step is given, real values are counted in a power of ten this far below the bound."""
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]{0,59}")
RESERVED = "residua_"
"""What names of tables and columns must not begin with: statements use it."""
_DAYS = ("date", "timestamp")
_KEY_TYPES: Mapping[str, Any] = {"integer": int, "text": str, "boolean": bool, "date": str}


@dataclass(frozen=True)
class Bounds:
    """Values are clipped to `[low, high]` and counted in whole steps, so that sums are exact."""

    low: Decimal
    high: Decimal
    step: Decimal

    @property
    def lowest(self) -> int:
        """The lower end in steps."""
        return int((self.low / self.step).to_integral_value("ROUND_FLOOR"))

    @property
    def highest(self) -> int:
        """The upper end in steps."""
        return int((self.high / self.step).to_integral_value("ROUND_CEILING"))

    def to_list(self) -> list[str]:
        """The same as JSON data."""
        return [str(self.low), str(self.high), str(self.step)]


@dataclass(frozen=True)
class Table:
    """A declared table, in the version that is in force."""

    name: str
    budget: str
    version: int
    source: str
    columns: Mapping[str, str]
    """The types of the columns, by name."""
    unit_column: str
    max_groups: int
    max_rows: int
    bounds: Mapping[str, Bounds]
    dates: Mapping[str, tuple[str, str]]
    """The first and the last day of columns of dates."""
    keys: Mapping[str, tuple[Any, ...]]
    data_version: str
    shared_answers: bool

    def to_declaration(self) -> dict[str, Any]:
        """What the ledger records."""
        return {
            "source": self.source,
            "columns": [[name, type] for name, type in self.columns.items()],
            "unit_column": self.unit_column,
            "max_groups": self.max_groups,
            "max_rows": self.max_rows,
            "bounds": {
                **{name: each.to_list() for name, each in self.bounds.items()},
                **{name: list(each) for name, each in self.dates.items()},
            },
            "keys": {name: list(each) for name, each in self.keys.items()},
            "data_version": self.data_version,
            "shared_answers": self.shared_answers,
        }

    def column(self, name: str) -> str:
        """The declared name of a column, which SQL may write in another case."""
        for known in self.columns:
            if known.casefold() == name.casefold():
                return known
        raise ArgumentError(
            f"table {self.name!r} has no column {checks.shown(name)}"
            f"{checks.suggestion(name, self.columns)}"
        )

    def bounds_of(self, column: str) -> Bounds:
        """The bounds of a column; raises where none are declared."""
        if column not in self.bounds:
            raise ArgumentError(
                f"column {column!r} of table {self.name!r} has no bounds: its values cannot be"
                f" clipped; declare bounds={{{column!r}: (lowest, highest)}}"
            )
        return self.bounds[column]

    def keys_of(self, column: str) -> tuple[Any, ...]:
        """The public keys of a column; raises where none are declared."""
        if column not in self.keys:
            raise ArgumentError(
                f"column {column!r} of table {self.name!r} has no public keys to group by; declare"
                f" keys={{{column!r}: [...]}}"
            )
        return self.keys[column]


def read_declared(found: DeclaredTable) -> Table:
    """A table as the ledger recorded it."""
    given = found.declaration
    if given is None:
        raise UnknownTable(f"table {found.name!r} was removed")
    fields = dict(given)
    fields["columns"] = dict(fields["columns"])
    ends = fields["bounds"]
    fields["bounds"] = {n: Bounds(*map(Decimal, each)) for n, each in ends.items() if len(each) > 2}
    fields["dates"] = {n: (each[0], each[1]) for n, each in ends.items() if len(each) == 2}
    fields["keys"] = {name: tuple(each) for name, each in fields["keys"].items()}
    return Table(name=found.name, budget=found.budget, version=found.version, **fields)


def declare(
    ledger: Any,
    name: str,
    *,
    source: Any,
    unit_column: str,
    budget: str,
    max_groups: int = 1,
    max_rows: int = 1,
    bounds: Mapping[str, Any] | None = None,
    keys: Mapping[str, Any] | None = None,
    data_version: str = "1",
    shared_answers: bool = False,
) -> Table:
    """Declare a table, or another version of its declaration.

    Args:
        ledger: where it is recorded.
        name: what SQL calls the table.
        source: the path of a Parquet or CSV file, or `FILE.duckdb#TABLE`.
        unit_column: the column that says whose row it is; its values are never NULL.
        budget: the budget that answers are charged to. Its relation must be add-remove.
        max_groups: to how many groups of an answer one unit contributes at most.
        max_rows: with how many rows it contributes to a group at most.
        bounds: for each column of numbers the least and the greatest value, to which values are
            clipped, and perhaps the step in which they are counted. For columns of dates the first
            and the last day.
        keys: for each column to group by, its possible values, all of them public.
        data_version: the version of the data, which the operator states; an answer to a repeated
            question is that of the same version.
        shared_answers: whether a released answer is returned to other principals that repeat the
            question.

    Raises:
        ArgumentError: a field is wrong, or the source cannot be read.
    """
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        expected = "a letter or underscore, then letters, digits or underscores (at most 60)"
        raise ArgumentError(f"name must be {expected}, got {checks.shown(name)}")
    _check_not_reserved("name", name)
    home = ledger.budget(budget)
    if home.relation != ADD_REMOVE:
        raise ArgumentError(
            f"budget must have the relation {ADD_REMOVE}, got {budget!r} with {home.relation}"
        )
    opened = source_at(source)
    columns = opened.columns()
    _check_columns(columns)
    unit = _column("unit_column", unit_column, columns)
    if columns[unit] not in ("integer", "text"):
        raise ArgumentError(
            f"unit_column must be a column of integers or text, got {unit!r} of {columns[unit]}"
        )
    ends = {
        _value_column("bounds", each, columns, unit): value
        for each, value in _mapping("bounds", bounds).items()
    }
    made = Table(
        name=name,
        budget=home.name,
        version=0,
        source=opened.address,
        columns=columns,
        unit_column=unit,
        max_groups=_at_least_one("max_groups", max_groups),
        max_rows=_at_least_one("max_rows", max_rows),
        bounds={
            each: _bounds(each, value, columns)
            for each, value in ends.items()
            if columns[each] not in _DAYS
        },
        dates={each: _days(each, value) for each, value in ends.items() if columns[each] in _DAYS},
        keys={
            _value_column("keys", each, columns, unit): _keys(each, value, columns)
            for each, value in _mapping("keys", keys).items()
        },
        data_version=checks.new_label("data_version", data_version),
        shared_answers=checks.flag("shared_answers", shared_answers),
    )
    if opened.has_null(unit):
        raise ArgumentError(
            f"unit_column must identify the unit of every row, got {unit!r} with NULL: remove"
            " those rows from the source"
        )
    return read_declared(ledger.declare_table(name, home.name, made.to_declaration()))


def tables(ledger: Any) -> dict[str, Table]:
    """The tables of a ledger that can be asked about, by name."""
    return {name: read_declared(each) for name, each in ledger.declared_tables().items()}


def table(ledger: Any, name: str) -> Table:
    """A table by its name."""
    known = ledger.declared_tables()
    found = {each.casefold(): each for each in known}
    if str(name).casefold() not in found:
        raise UnknownTable(f"there is no table {name!r}{checks.suggestion(name, known)}")
    return read_declared(known[found[str(name).casefold()]])


# -- checks -----------------------------------------------------------------------------------


def _check_not_reserved(what: str, name: str) -> None:
    if name.casefold().startswith(RESERVED):
        raise ArgumentError(f"{what} must not begin with {RESERVED}, got {name!r}")


def _check_columns(columns: Mapping[str, str]) -> None:
    seen: set[str] = set()
    for name in columns:
        checks.new_label("column", name)
        _check_not_reserved("column", name)
        if name.casefold() in seen:
            raise ArgumentError(f"columns must differ in more than case, got {name!r} twice")
        seen.add(name.casefold())


def _column(what: str, name: Any, columns: Mapping[str, str]) -> str:
    if not isinstance(name, str) or name not in columns:
        raise ArgumentError(
            f"{what} must be a column of the source ({', '.join(columns)}), got"
            f" {checks.shown(name)}{checks.suggestion(name, columns)}"
        )
    return name


def _value_column(what: str, name: Any, columns: Mapping[str, str], unit: str) -> str:
    if _column(what, name, columns) == unit:
        raise ArgumentError(f"{what} must not be of the unit column, got {name!r}")
    return str(name)


def _mapping(what: str, given: Any) -> Mapping[str, Any]:
    if given is None:
        return {}
    found: Mapping[str, Any] = checks.instance(what, given, Mapping, "a mapping of columns")
    return found


def _at_least_one(what: str, value: Any) -> int:
    number = checks.count(what, value)
    checks.require(
        1 <= number <= MOST_CONTRIBUTED, what, f"between 1 and {MOST_CONTRIBUTED}", value
    )
    return number


def _bounds(name: str, given: Any, columns: Mapping[str, str]) -> Bounds:
    what = f"bounds of {name!r}"
    if columns[name] not in ("integer", "real"):
        raise ArgumentError(f"{what} must be of a column of numbers, got one of {columns[name]}")
    ends = checks.items(what, given, "a pair of numbers")
    if len(ends) not in (2, 3):
        raise ArgumentError(f"{what} must be a pair of numbers, got {checks.shown(given)}")
    low, high, *steps = (decimal(what, each) for each in ends)
    if not low < high:
        raise ArgumentError(f"{what} must be (lowest, highest), got ({low}, {high})")
    largest = max(abs(low), abs(high))
    step = steps[0] if steps else Decimal(1)
    if not steps and columns[name] == "real":
        step = Decimal(1).scaleb(largest.adjusted() - DIGITS)
    if not step > 0:
        raise ArgumentError(f"the step of {what} must be positive, got {step}")
    if step.normalize().as_tuple().digits != (1,):
        raise ArgumentError(f"the step of {what} must be a power of ten, got {step}")
    if columns[name] == "integer" and step < 1:
        raise ArgumentError(f"the step of {what} must be at least 1 for integers, got {step}")
    if largest > LARGEST_VALUE * step:
        raise ArgumentError(
            f"{what} must be at most 2**53 steps of {step}, got ({low}, {high}): give a larger"
            " step as the third number"
        )
    return Bounds(low, high, step)


def _days(name: str, given: Any) -> tuple[str, str]:
    what = f"bounds of {name!r}"
    ends = checks.items(what, given, "a pair of dates")
    days = tuple(each.isoformat() if type(each) is date else each for each in ends)
    if len(days) != 2 or not all(isinstance(each, str) for each in days):
        raise ArgumentError(f"{what} must be a pair of dates, got {checks.shown(given)}")
    for each in days:
        _check_date(what, each)
    if not days[0] <= days[1]:
        raise ArgumentError(f"{what} must be (first, last), got ({days[0]}, {days[1]})")
    return days[0], days[1]


def decimal(what: str, value: Any) -> Decimal:
    """A finite number as the decimal that it is written as."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise ArgumentTypeError(f"{what} must be a number, got {checks.shown(value)}")
    try:
        found = Decimal(repr(value) if isinstance(value, float) else value)
    except InvalidOperation:
        raise ArgumentError(f"{what} must be a number, got {checks.shown(value)}") from None
    if not found.is_finite() or not -100 < found.adjusted() < 100:
        raise ArgumentError(f"{what} must be finite and of ordinary size, got {value}")
    return found


def _keys(name: str, given: Any, columns: Mapping[str, str]) -> tuple[Any, ...]:
    what = f"keys of {name!r}"
    kind = _KEY_TYPES.get(columns[name])
    if kind is None:
        raise ArgumentError(
            f"{what} must be of a column of text, integers, dates or booleans, got one of"
            f" {columns[name]}"
        )
    found: tuple[Any, ...] = tuple(
        each.isoformat() if kind is str and type(each) is date else each
        for each in checks.items(what, given, "a list of values")
    )
    checks.require(0 < len(found) <= MOST_KEYS, what, f"1 to {MOST_KEYS} values", given)
    for each in found:
        if type(each) is not kind:
            raise ArgumentError(
                f"{what} must be of the type of the column, {columns[name]}, got"
                f" {checks.shown(each)}"
            )
        if columns[name] == "date":
            _check_date(what, each)
        if kind is int and not -(2**63) <= each < 2**63:
            raise ArgumentError(f"{what} must be 64-bit integers, got {checks.shown(each)}")
        if kind is str and (not each.isprintable() or len(each) > 1000):
            raise ArgumentError(
                f"{what} must be printable text of at most 1000 characters, got"
                f" {checks.shown(each)}"
            )
    if len(set(found)) != len(found):
        raise ArgumentError(f"{what} must differ, got {checks.shown(given)}")
    return found


def _check_date(what: str, text: str) -> None:
    try:
        if date.fromisoformat(text).isoformat() == text:
            return
    except ValueError:
        pass
    raise ArgumentError(f"{what} must be dates as YYYY-MM-DD, got {checks.shown(text)}")
