"""What is shown of a budget's amounts: everything is derived from what is left, rounded down.

Of each unit, the capacity and what is left are rounded down to a few digits, and what was spent or
is held is their difference, exactly. So the numbers that are shown add up, and their ratio is what
a gauge shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from residua.filters.additive.gdp import SQUARES
from residua.filters.amounts import root_down, shown
from residua.filters.base import Filter
from residua.filters.divergence import gaussian_variance
from residua.filters.state import State
from residua.ledger.domain.receipts import plain

if TYPE_CHECKING:
    from residua.ledger.api.views import Budget

__all__ = ["Amount", "amounts_of", "percent_of", "percent_words", "share_of", "words"]

_DIGITS = Context(prec=6, rounding=ROUND_FLOOR)
_EXACT = Context(prec=2000)
"""Differences of what is shown: amounts are at least about 1e-300."""


@dataclass(frozen=True)
class Amount:
    """One unit of a budget, as decimals: `spent + held + remaining = capacity`, exactly."""

    unit: str
    capacity: str
    spent: str
    held: str
    """What open reservations hold, another budget that is charged as well does not allow, or a
    retired budget no longer gives."""
    remaining: str


def amounts_of(
    filter: Filter, spent: tuple[State, Any], held: tuple[State, Any]
) -> tuple[Amount, ...]:
    """What is shown of a filter: a state and what it leaves, without and with what is held.

    Of a budget that was closed None is left. Empty where one of these has no units.
    """
    first = filter.initial()
    whole = filter.amounts_in(first, filter.remaining_in(first))
    own = filter.amounts_in(*spent)
    nothing = tuple((unit, Fraction(0)) for unit, _ in own)
    now = nothing if held[1] is None else filter.amounts_in(*held)
    if not len(whole) == len(own) == len(now):
        return ()
    return tuple(_amount(*both) for both in zip(whole, own, now, strict=True))


def _amount(
    whole: tuple[str, Fraction], own: tuple[str, Fraction], left: tuple[str, Fraction]
) -> Amount:
    unit, capacity, own_left = whole[0], _shown(whole[1]), _shown(own[1])
    remaining = min(_shown(left[1]), own_left)
    spent, held = _EXACT.subtract(capacity, own_left), _EXACT.subtract(own_left, remaining)
    return Amount(unit, _text(capacity), _text(spent), _text(held), _text(remaining))


def _shown(amount: Fraction) -> Decimal:
    return _DIGITS.divide(Decimal(amount.numerator), Decimal(amount.denominator))


def _text(number: Decimal) -> str:
    """All digits of a number, without zeros at the end."""
    short = f"{float(number):.6g}"
    return short if Decimal(short) == number else format(number.normalize(_EXACT), "f")


def share_of(amounts: Sequence[Amount]) -> tuple[Fraction, str] | None:
    """The share that is left of what is shown, and of which unit: where it is the least."""
    shares = [
        (Fraction(one.remaining) / Fraction(one.capacity), one.unit)
        for one in amounts
        if Fraction(one.capacity)
    ]
    return min(shares, key=lambda found: found[0], default=None)


def percent_of(amounts: Sequence[Amount]) -> int | None:
    """The same in percent, rounded down."""
    share = share_of(amounts)
    return None if share is None else math.floor(100 * share[0])


def percent_words(amounts: Sequence[Amount]) -> str | None:
    """The same as text: `34 %`, `< 1 %`, and of which unit where there are several."""
    share = share_of(amounts)
    if share is None:
        return None
    percent = math.floor(100 * share[0])
    text = "< 1 %" if percent == 0 < share[0] else f"{percent} %"
    return f"{text} of {share[1]}" if len(amounts) > 1 else text


def words(budget: Budget, name: str) -> str:
    """The `remaining`, `capacity`, `spent` or `held` of a budget; empty where there is none.

    By unit where there are units, otherwise as the filter says it.
    """
    value = getattr(budget, name, None)
    if name == "remaining" and value is None:
        return ""
    if budget.amounts:
        numbers = [(one.unit, getattr(one, name)) for one in budget.amounts]
        roots = name in ("remaining", "capacity")
        return " and ".join(_said(unit, number, value, roots) for unit, number in numbers)
    if value is None:
        return ""
    if type(value) is type(budget.capacity):
        return budget.filter.worded(value, up=name == "spent")
    # After a commit, or where another budget binds, the amounts have other units; a service may
    # send text.
    return value if isinstance(value, str) else str(plain(value)["text"])


def _said(unit: str, number: str, value: Any, roots: bool) -> str:
    if unit != SQUARES or not roots:
        return f"{unit} {number}"
    return f"{unit} {number} (mu {shown(root_down(gaussian_variance(value)))})"
