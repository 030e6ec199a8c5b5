"""Text for amounts: every number is derived from what is left, rounded down to six digits.

What a query costs, what was spent and what is held are exact differences of such numbers, and the
capacity is what is left at the start. So the costs that are shown add up to what was spent, and
that with what is left to the capacity, and a query that is admitted never costs more than what was
left before it. What a refused query needs is rounded up: it is more than what is left, and reads
so.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from residua.filters.amounts import SHOWN_DIGITS, SHOWN_DOWN, root_down, root_up, shown

Amounts = tuple[tuple[str, Fraction], ...]
"""Units, and how much there is of each."""
SQUARES = "mu²"
"""The unit in which Gaussians add up; its root is shown beside it."""

_UP = Context(prec=SHOWN_DIGITS, rounding=ROUND_CEILING)
_EXACT = Context(prec=2000)
"""Differences of what is shown: amounts are at least about 1e-300."""
_MOST = 4
"""Of more units, the first, the middle and the last are shown."""


def rounded(amount: Fraction, *, up: bool = False) -> Decimal:
    """An amount to six digits: never more than it is, or with `up` never less."""
    top, bottom = amount.as_integer_ratio()
    return (_UP if up else SHOWN_DOWN).divide(Decimal(top), Decimal(bottom))


def difference(more: Decimal, less: Decimal) -> Decimal:
    """The exact difference of two numbers that are shown."""
    return _EXACT.subtract(more, less)


def number(value: Decimal) -> str:
    """All digits of a number, without zeros at the end."""
    short = f"{float(value):.{SHOWN_DIGITS}g}"
    return short if Decimal(short) == value else format(value.normalize(_EXACT), "f")


def left_words(amounts: Amounts) -> str:
    """What is left: `mu² 0.25 (mu 0.5)`."""
    return few(
        [f"{unit} {number(rounded(amount))}{root(unit, amount)}" for unit, amount in amounts]
    )


def cost_words(before: Amounts, after: Amounts) -> str:
    """The cost of a query: the difference of what is shown as left before and after it."""
    both = zip(before, after, strict=True)
    return few([f"{unit} {_cost(high, low)}" for (unit, high), (_, low) in both])


def need_words(left: Amounts, price: Sequence[Fraction]) -> str:
    """The needs of a refused query; of many units, only those of which there is too little."""
    parts, lacking = [], []
    for (unit, there), needed in zip(left, price, strict=True):
        if needed > there:
            words = f"{unit} {number(rounded(needed, up=True))}{root(unit, needed, up=True)}"
            lacking.append(f"{words}, of which {number(rounded(there))} is left")
        else:
            words = f"{unit} {_cost(there, there - needed)}"
        parts.append(words)
    return join_parts(parts if len(parts) <= _MOST else lacking[:3])


def root(unit: str, amount: Fraction, *, up: bool = False) -> str:
    """` (mu 0.5)` beside an amount of `mu²`; nothing beside others."""
    if unit != SQUARES:
        return ""
    return f" (mu {shown((root_up if up else root_down)(amount), up=up)})"


def _cost(before: Fraction, after: Fraction) -> str:
    high, low = rounded(before), rounded(after)
    if high == low and before != after:
        # Less than a unit of the last digit.
        return f"< {number(Decimal(1).scaleb(high.adjusted() - SHOWN_DIGITS + 1))}"
    return number(difference(high, low))


def join_parts(parts: Sequence[str]) -> str:
    """Parts as one text."""
    return (" and " if len(parts) == 2 else ", ").join(parts)


def sentence(names: Sequence[str]) -> str:
    """Names in a sentence: `a`, `a and b`, `a, b and c`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def few(parts: list[str]) -> str:
    """The same; of many, the first, the middle and the last."""
    if len(parts) > _MOST:
        parts = [parts[0], parts[len(parts) // 2], parts[-1]]
    return join_parts(parts)
