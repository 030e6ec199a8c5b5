"""What a question groups by: declared keys, bins of numbers, truncated dates, or unknown keys.

The groups of the first three follow from the declaration, so each of them is in the answer. Which
unknown keys there are depends on the data: a group is released if its noisy number of units
reaches a threshold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

from sqlglot import exp

from residua import checks
from residua.data.declarations import MOST_KEYS, Table
from residua.errors import ArgumentError

VALUE, BIN, DATE, UNKNOWN = "value", "bin", "date", "unknown"
PERIODS = ("DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
WORKS = (
    "GROUP BY columns with declared keys, FLOOR(column / 10) * 10 of a column with bounds, or"
    " DATE_TRUNC('month', column) of a column of dates with bounds"
)
_READABLE = ("text", "integer", "boolean", "date")
"""The types of columns with unknown keys."""


@dataclass(frozen=True)
class Key:
    """A column to group by, and how."""

    column: str
    kind: str
    by: str
    """The width of bins, or the period of dates; otherwise empty."""
    type: str
    """The type of the column."""
    groups: tuple[tuple[str, Any], ...]
    """The text that a statement gives for each key, and the key; empty if they are unknown."""

    def expression(self) -> exp.Expression:
        """The key in the normal form of a question."""
        column = exp.column(self.column, quoted=True)
        if self.kind == BIN:
            width = exp.Literal.number(self.by)
            return exp.Mul(
                this=exp.Floor(this=exp.Div(this=column, expression=width)),
                expression=width.copy(),
            )
        if self.kind == DATE:
            return exp.TimestampTrunc(this=column, unit=exp.var(self.by))
        return column

    def read(self, text: str) -> Any:
        """An unknown key from the text that a statement gives."""
        if self.type == "integer":
            return int(text)
        return text == "true" if self.type == "boolean" else text


def by_value(table: Table, column: str, unknown: bool) -> Key:
    """A column as it is."""
    type = table.columns[column]
    if column in table.keys:
        groups = tuple((_text(each), each) for each in table.keys[column])
        return Key(column, VALUE, "", type, groups)
    if not unknown or type not in _READABLE or column == table.unit_column:
        table.keys_of(column)
        raise AssertionError("a column without keys raises")
    return Key(column, UNKNOWN, "", type, ())


def by_bins(table: Table, column: str, width: str) -> Key:
    """Bins of the numbers within the bounds of a column; a key is the lower end of its bin."""
    bounds, wide = table.bounds_of(column), Decimal(width)
    if not wide > 0 or (table.columns[column] == "integer" and wide != int(wide)):
        raise ArgumentError(
            f"the width of bins must be positive, and whole for integers, got {width}"
        )
    first, last = (int((end // wide) - (end % wide < 0)) for end in (bounds.low, bounds.high))
    checks.require(last - first < MOST_KEYS, "bins", f"at most {MOST_KEYS}", last - first + 1)
    whole = wide == int(wide)
    groups = tuple(
        (str(place), int(place * wide) if whole else float(place * wide))
        for place in range(first, last + 1)
    )
    return Key(column, BIN, width, table.columns[column], groups)


def by_period(table: Table, column: str, period: str) -> Key:
    """Dates within the bounds of a column, each replaced by the first day of its period."""
    if period not in PERIODS:
        raise ArgumentError(f"dates are truncated to {', '.join(PERIODS).lower()}, got {period!r}")
    if column not in table.dates:
        raise ArgumentError(
            f"column {column!r} of table {table.name!r} has no bounds of dates; declare"
            f" bounds={{{column!r}: ('2024-01-01', '2024-12-31')}}"
        )
    first, last = (date.fromisoformat(end) for end in table.dates[column])
    found: dict[str, None] = {}
    for place in range((last - first).days + 1):
        found[_begin(first + timedelta(days=place), period).isoformat()] = None
    groups = tuple((each, each) for each in found)
    return Key(column, DATE, period, table.columns[column], groups)


def _begin(day: date, period: str) -> date:
    """The first day of the period in which a day lies; weeks begin on Monday."""
    if period == "WEEK":
        return day - timedelta(days=day.weekday())
    month = {"YEAR": 1, "QUARTER": day.month - (day.month - 1) % 3}.get(period, day.month)
    return day if period == "DAY" else day.replace(month=month, day=1)


def count_of(keys: tuple[Key, ...]) -> int | None:
    """How many groups the keys have; None if they are unknown. Raises where there are too many."""
    if any(each.kind == UNKNOWN for each in keys):
        return None
    found = 1
    for each in keys:
        found *= len(each.groups)
    if found > MOST_KEYS:
        raise ArgumentError(f"the groups of an answer must be at most {MOST_KEYS}, got {found}")
    return found


def groups_of(keys: tuple[Key, ...]) -> Mapping[tuple[str, ...], tuple[Any, ...]]:
    """The known groups in order, by the texts that a statement gives for their keys."""
    found = {}
    for each in product(*(key.groups for key in keys)):
        found[tuple(text for text, _ in each)] = tuple(value for _, value in each)
    return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
