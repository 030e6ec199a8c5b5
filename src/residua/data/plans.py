"""Plans: what a question measures, how far one unit moves it, and what is made of noisy totals.

A question is answered from integer totals, one of each kind for each group. One unit more or less
moves the totals of at most `groups` groups, each by at most its `sensitivity`: for each kind,
docs/proofs/answers.md has the argument. Everything after the noise is post-processing.

    COUNT(*), COUNT(column), COUNT(DISTINCT unit)   the total
    SUM(column)                                     the total, times the step
    AVG(column)        a noisy sum over a noisy count; the sum is of distances from the middle of
                       the bounds, which halves its sensitivity
    VARIANCE(column)   from noisy sums of distances and of their squares over a noisy count
    percentiles        the exponential mechanism chooses among `CANDIDATES` values, evenly spaced
                       between the bounds; the score of one is how many ranks it is off, times 100
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from residua.data.declarations import Bounds
from residua.data.keys import count_of
from residua.data.queries import Item, Question
from residua.data.statements import Total

LARGEST_SQUARED = 2**20
"""Distances are divided until they are at most this far from 0, and then squared: so 2^86 rows
have a sum of squares in 128 bits."""

CANDIDATES = 128
"""Among how many values a percentile is chosen."""
Ends = tuple[float | None, float | None]
"""An interval; None where an end is not known."""


@dataclass(frozen=True)
class Measure:
    """A total that gets noise."""

    total: Total
    sensitivity: int
    """By how much one unit changes it, or each score, in one group at most."""
    step: Fraction
    """The value of 1."""
    percent: int | None = None
    """Which percentile is chosen; None for a total."""
    candidates: tuple[int, ...] = ()
    """The values that a percentile is chosen from, in steps."""

    @property
    def totals(self) -> tuple[Total, ...]:
        """What the statement gives for it."""
        if self.percent is None:
            return (self.total,)
        column = self.total.column
        ends = (Total(k, column, c) for c in self.candidates for k in ("below", "at_most"))
        return (Total("values", column), *ends)

    def scores(self, given: Sequence[int]) -> list[int]:
        """The score of each candidate, from its totals: 0 where the percentile is, else less."""
        assert self.percent is not None
        wanted = self.percent * given[0]
        return [
            -max(100 * below - wanted, wanted - 100 * at_most, 0)
            for below, at_most in zip(given[1::2], given[2::2], strict=True)
        ]


_UNITS = Measure(Total("units"), 1, Fraction(1))


@dataclass(frozen=True)
class Column:
    """A column of an answer that is worked out from noisy totals."""

    item: Item
    measures: tuple[int, ...]
    """The places of its measures in the plan."""
    bounds: Bounds | None = None
    coarse: int = 1

    @property
    def is_total(self) -> bool:
        """Whether it is one noisy total: then its accuracy is known in advance."""
        return self.item.function not in ("AVG", "VARIANCE", "PERCENTILE")


@dataclass(frozen=True)
class Plan:
    """How a question is answered."""

    question: Question
    measures: tuple[Measure, ...]
    columns: tuple[Column, ...]
    groups: int
    """In how many groups one unit moves totals at most."""
    rows: int
    """How many rows of one unit are in a group at most."""

    @property
    def totals(self) -> tuple[Total, ...]:
        """What the statement gives for all measures, each once."""
        return tuple(dict.fromkeys(each for m in self.measures for each in m.totals))

    def exact(self, row: Sequence[Any]) -> list[Any]:
        """For each measure its total, or the scores of its candidates, from a statement's row."""
        known = {total: int(each) for total, each in zip(self.totals, row, strict=True)}
        found: list[Any] = []
        for measure in self.measures:
            given = [known[each] for each in measure.totals]
            found.append(given[0] if measure.percent is None else measure.scores(given))
        return found


def plan(question: Question) -> Plan:
    """The plan of a question."""
    table = question.table
    count = count_of(question.keys)
    if question.keys:
        groups, rows = min(table.max_groups, count or table.max_groups), table.max_rows
    else:
        groups, rows = 1, table.max_groups * table.max_rows
    measures: dict[Total, Measure] = {}
    if question.has_unknown_keys:
        # First, so that a threshold finds it.
        measures[_UNITS.total] = _UNITS
    columns = []
    for item in question.items:
        if item.function != "KEY":
            bounds = table.bounds.get(item.column or "")
            column, needed = _column(item, bounds, rows)
            places = []
            for each in needed:
                measures.setdefault(each.total, each)
                places.append(list(measures).index(each.total))
            columns.append(Column(item, tuple(places), bounds, column))
    return Plan(question, tuple(measures.values()), tuple(columns), groups, rows)


def _column(item: Item, bounds: Bounds | None, rows: int) -> tuple[int, list[Measure]]:
    """By how much squares are coarsened, and the measures of a column."""
    one = Fraction(1)
    if item.function == "COUNT DISTINCT":
        return 1, [_UNITS]
    if item.column is None:
        return 1, [Measure(Total("rows"), rows, one)]
    values = Measure(Total("values", item.column), rows, one)
    if item.function == "COUNT":
        return 1, [values]
    assert bounds is not None  # `parse` has checked it
    low, high, step = bounds.lowest, bounds.highest, Fraction(bounds.step)
    if item.percent is not None:
        widest = rows * max(item.percent, 100 - item.percent)
        places = min(CANDIDATES, high - low + 1) - 1
        candidates = tuple(low + (high - low) * place // places for place in range(places + 1))
        total = Total(f"percentile {item.percent}", item.column)
        return 1, [Measure(total, widest, step, item.percent, candidates)]
    if item.function == "SUM":
        return 1, [Measure(Total("sum", item.column), rows * max(abs(low), abs(high)), step)]
    center = (low + high) // 2
    most = max(high - center, center - low)
    if item.function == "AVG":
        total = Total("sum", item.column, center)
        return 1, [Measure(total, rows * most, step), values]
    coarse = -(-most // LARGEST_SQUARED)
    most, step = -(-most // coarse), step * coarse
    sums = Total("sum", item.column, center, coarse)
    squares = Total("squares", item.column, center, coarse)
    return coarse, [
        Measure(sums, rows * most, step),
        Measure(squares, rows * most * most, step * step),
        values,
    ]


# -- what is made of noisy totals -------------------------------------------------------------


def value_of(column: Column, noisy: Sequence[int]) -> int | float | None:
    """The released value, from the noisy totals of the plan in one group."""
    given = [noisy[place] for place in column.measures]
    if column.is_total or column.item.function == "PERCENTILE":
        counts = column.item.function.startswith("COUNT")
        return _in_steps(given[0], None if counts else column.bounds)
    found = _ratios(column, given)
    return None if found is None else float(found)


def _in_steps(total: int, bounds: Bounds | None) -> int | float:
    if bounds is None:
        return total
    value = total * Fraction(bounds.step)
    return int(value) if Fraction(bounds.step).denominator == 1 else float(value)


def _ratios(column: Column, given: Sequence[int]) -> Fraction | None:
    """An average or a variance from its totals; None without a positive count."""
    assert column.bounds is not None
    step = Fraction(column.bounds.step)
    low, high = Fraction(column.bounds.low), Fraction(column.bounds.high)
    count = given[-1]
    if count <= 0:
        return None
    if column.item.function == "AVG":
        return _clip(_center(column.bounds) * step + step * Fraction(given[0], count), low, high)
    sums, squares = (Fraction(each, count) for each in given[:2])
    unit = (step * column.coarse) ** 2
    biased = unit * max(squares - sums * sums, Fraction(0))
    widest = (high - low) ** 2 / 4
    corrected = biased * Fraction(count, count - 1) if count > 1 else biased
    return _clip(corrected, Fraction(0), 2 * widest if count > 1 else widest)


def _center(bounds: Bounds) -> int:
    return (bounds.lowest + bounds.highest) // 2


def _clip(value: Fraction, low: Fraction, high: Fraction) -> Fraction:
    return min(max(value, low), high)


def interval_of(column: Column, noisy: Sequence[int], widths: Sequence[int]) -> Ends:
    """An interval that contains the value without noise, from half-widths of the totals.

    It contains it whenever every total is within its half-width. (None, None) where the count may
    be 0, and the value may be anything within the bounds, and for percentiles.
    """
    given = [noisy[place] for place in column.measures]
    around = [widths[place] for place in column.measures]
    if column.is_total:
        bounds = column.bounds if column.item.function == "SUM" else None
        low, high = (_in_steps(given[0] + each, bounds) for each in (-around[0], around[0]))
        return low, high
    if column.item.function == "PERCENTILE" or given[-1] - around[-1] <= 0:
        return None, None
    return _ratio_interval(column, given, around)


def _ratio_interval(column: Column, given: Sequence[int], around: Sequence[int]) -> Ends:
    """The extreme values where each total is anywhere within its half-width."""
    corners: Iterator[tuple[int, ...]] = product(
        *((value - width, value + width) for value, width in zip(given, around, strict=True))
    )
    if column.item.function == "AVG":
        found = [each for corner in corners if (each := _ratios(column, corner)) is not None]
        return float(min(found)), float(max(found))
    assert column.bounds is not None
    unit = (Fraction(column.bounds.step) * column.coarse) ** 2
    sums, squares, counts = (
        (value - width, value + width) for value, width in zip(given, around, strict=True)
    )
    least, most = max(counts[0], 1), counts[1]
    farthest = max(abs(Fraction(each, least)) for each in sums)
    nearest = (
        Fraction(0) if sums[0] <= 0 <= sums[1] else min(abs(Fraction(each, most)) for each in sums)
    )
    low = Fraction(max(squares[0], 0), most) - farthest**2
    high = Fraction(max(squares[1], 0), least) - nearest**2
    widest = (Fraction(column.bounds.high) - Fraction(column.bounds.low)) ** 2 / 4
    # The correction for the mean is at most 2, for a count of 2.
    scale = [Fraction(n, n - 1) if n > 1 else Fraction(1) for n in (most, least)]
    ends = (_clip(unit * low * scale[0], Fraction(0), 2 * widest),
            _clip(unit * high * scale[1], Fraction(0), 2 * widest))  # fmt: skip
    return float(ends[0]), float(ends[1])
