"""What is shown of a budget: amounts that add up to its capacity (`filters/wording.py`).

Their ratio is what a gauge shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from residua.filters.base import Filter
from residua.filters.divergence import gaussian_variance
from residua.filters.state import State
from residua.filters.wording import SQUARES, difference, joined, number, root, rounded
from residua.ledger.domain.receipts import plain

if TYPE_CHECKING:
    from residua.ledger.api.views import Budget

__all__ = ["Amount", "amounts_of", "percent_of", "percent_words", "share_of", "words"]


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
    capacity, own_left = rounded(whole[1]), rounded(own[1])
    remaining = min(rounded(left[1]), own_left)
    spent, held = difference(capacity, own_left), difference(own_left, remaining)
    return Amount(whole[0], *map(number, (capacity, spent, held, remaining)))


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
        return joined([_said(unit, text, value, roots) for unit, text in numbers])
    if name == "capacity":
        return budget.filter.left_words(budget.filter.initial())
    if value is None or isinstance(value, str):  # A service may send text.
        return value or ""
    if name == "remaining":
        return budget.filter.left_words(budget.state, value)
    return str(plain(value)["text"])


def _said(unit: str, text: str, value: Any, roots: bool) -> str:
    beside = root(unit, gaussian_variance(value)) if unit == SQUARES and roots else ""
    return f"{unit} {text}{beside}"
