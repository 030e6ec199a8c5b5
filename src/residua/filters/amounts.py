"""Exact amounts of budget, and the states of filters that hold what is left of them.

A filter adds and subtracts thousands of times and must neither drift nor stall, so what is left
is a rational. A parameter that a person writes denotes the decimal it is written as: ten times
0.1 is 1. A cost that is known only through a proven float is that float rounded up to a decimal
of seventeen digits. Rationals whose denominator outgrows `_LONGEST` bits are rounded down to a
multiple of `2^-_LONGEST`, which takes budget away and never gives any.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.sizes import LONGEST_AMOUNT

_LONGEST = 512
"""Bits of the longest denominator that is kept."""
_DIGITS = 17
"""Digits of a cost that is known through a float: enough to write every float."""
SHOWN_DIGITS = 6
"""Digits of what is left and of recommended parameters: a person reads them, and pastes them back.
"""
SHOWN_DOWN = Context(prec=SHOWN_DIGITS, rounding=ROUND_FLOOR)
_MOST_PLACES = 60
"""Decimal places up to which an amount is written as a decimal, not as a quotient."""
_FIVES = {5**power: power for power in range(_MOST_PLACES + 1)}


@dataclass(frozen=True)
class State:
    """A state belongs to one configuration, whose fingerprint it carries."""

    of: str


@dataclass(frozen=True)
class Left(State):
    """What is left of each of the filter's amounts, exactly."""

    left: tuple[Fraction, ...]


def written(value: float) -> Fraction:
    """The decimal that a finite float is written as."""
    return _exactly(Decimal(repr(float(value))))


def rounded_up(value: float, digits: int = _DIGITS) -> Fraction:
    """The least decimal of so many digits that is at least the float `value`, exactly."""
    return _exactly(_context(digits, ROUND_CEILING).create_decimal_from_float(value))


def rounded_down(value: float, digits: int = _DIGITS) -> Fraction:
    """The greatest decimal of so many digits that is at most the float `value`, exactly."""
    return _exactly(_context(digits, ROUND_FLOOR).create_decimal_from_float(value))


def _exactly(decimal: Decimal) -> Fraction:
    """A finite decimal. Given integers, a rational does not ask first what it is given."""
    return Fraction(*decimal.as_integer_ratio())


@lru_cache(maxsize=64)
def _context(digits: int, rounding: str) -> Context:
    return Context(prec=digits, rounding=rounding)


def shorten(amount: Fraction) -> Fraction:
    """`amount`, rounded down if its denominator has become very long."""
    if amount.denominator.bit_length() <= _LONGEST:
        return amount
    return Fraction(math.floor(amount * (1 << _LONGEST)), 1 << _LONGEST)


def shorten_up(amount: Fraction) -> Fraction:
    """`amount`, rounded up if its denominator is very long, to one that is long still."""
    if amount.denominator.bit_length() <= _LONGEST:
        return amount
    return Fraction(math.ceil(amount * (1 << _LONGEST)) | 1, 1 << _LONGEST)


def have_room(left: Fraction, costs: Sequence[Fraction]) -> bool:
    """Whether all of these can be taken from `left`, in any order, one after another.

    Each time what is left is shortened. That rounds off less than `2^-_LONGEST`, or nothing where
    all denominators have a short common multiple; whatever is taken first, the others still fit.
    """
    common = math.lcm(left.denominator, *(cost.denominator for cost in costs))
    if common.bit_length() <= _LONGEST:
        taken = sum(cost.numerator * (common // cost.denominator) for cost in costs)
        return taken <= left.numerator * (common // left.denominator)
    taken = sum(1 - (-cost.numerator << _LONGEST) // cost.denominator for cost in costs)
    return taken * left.denominator <= left.numerator << _LONGEST


def subtract(amount: Fraction, cost: Fraction) -> Fraction | None:
    """What is left of `amount`, `shorten` unless the cost is zero; None if it is too little."""
    if not cost:
        return amount
    return None if cost > amount else shorten(amount - cost)


def stay_exact(parts: Iterable[Fraction]) -> bool:
    """Whether `shorten` leaves every sum of multiples of these as it is."""
    common = math.lcm(*(part.denominator for part in parts))
    return common.bit_length() <= _LONGEST


def whole_rounds(
    left: tuple[Fraction, ...], paid: Sequence[tuple[Fraction, ...]], most: int
) -> tuple[int, tuple[Fraction, ...]]:
    """How often all of `paid` can be taken from `left`, at most `most`, and what is left then.

    As taking them one by one would, each time `shorten`; no rounds where that would round.
    """
    if not stay_exact(itertools.chain(left, *paid)):
        return 0, left
    one = [sum(column, Fraction(0)) for column in zip(*paid, strict=True)]
    rounds = min([most, *(l // c for l, c in zip(left, one, strict=True) if c > 0)])
    return rounds, tuple(l - rounds * c for l, c in zip(left, one, strict=True))


def reported(amount: Fraction) -> float:
    """The largest float that, as it is written, is at most `amount`."""
    near = _near(amount)
    while _against(near, amount) > 0:
        near = math.nextafter(near, -math.inf)
    return near


def charged(amount: Fraction) -> float:
    """The smallest float that, as it is written, is at least `amount`."""
    near = _near(amount)
    while _against(near, amount) < 0:
        near = math.nextafter(near, math.inf)
    return near


def root_down(amount: Fraction) -> float:
    """The largest float whose square, as it is written, is at most `amount`."""
    near = _root(amount)
    while _against(near, amount, squared=True) > 0:
        near = math.nextafter(near, -math.inf)
    return near


def root_up(amount: Fraction) -> float:
    """A float whose square, as it is written, is at least `amount`."""
    near = _root(amount)
    while _against(near, amount, squared=True) < 0:
        near = math.nextafter(near, math.inf)
    return near


def _against(value: float, amount: Fraction, squared: bool = False) -> int:
    """The sign of `written(value)`, or its square, minus `amount`; exact, in integers."""
    top, bottom = Decimal(repr(value)).as_integer_ratio()
    if squared:
        top, bottom = top * top, bottom * bottom
    over, under = amount.as_integer_ratio()
    return top * under - over * bottom


def _near(amount: Fraction) -> float:
    over, under = amount.as_integer_ratio()
    return over / under


def _root(amount: Fraction) -> float:
    """Near the square root: the float whose decimal is exactly that, where there is one."""
    near = math.sqrt(amount)
    if any(math.isqrt(n) ** 2 != n for n in amount.as_integer_ratio()):
        # No rational has that square.
        return near
    for candidate in (near, math.nextafter(near, math.inf), math.nextafter(near, -math.inf)):
        if written(candidate) ** 2 == amount:
            return candidate
    return near


def text(amount: Fraction) -> str:
    """The amount as text: a decimal where it is one, `p/q` otherwise."""
    top, bottom = amount.as_integer_ratio()
    twos = (bottom & -bottom).bit_length() - 1
    fives = _FIVES.get(bottom >> twos, _MOST_PLACES + 1)
    places = max(twos, fives)
    if places > _MOST_PLACES:
        return f"{top}/{bottom}"
    digits = str(abs(top) * 10**places // bottom).rjust(places + 1, "0")
    sign = "-" if top < 0 else ""
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def shown(value: float, digits: int = SHOWN_DIGITS, *, up: bool = False) -> str:
    """A float, as it is written, to some digits: never more than it is, or with `up` never less.

    So that what is needed and what is left, where the first is more, read differently.
    """
    decimal = _context(digits, ROUND_CEILING if up else ROUND_FLOOR).create_decimal(
        repr(float(value))
    )
    return f"{float(decimal):.{digits}g}"


def from_text(name: str, given: Any) -> Fraction:
    """The non-negative amount that a text of `text` says."""
    if not isinstance(given, str):
        raise ArgumentTypeError(f"{name} must be an amount in quotes, got {checks.shown(given)}")
    parts = given.split("/")
    plain = len(given) <= LONGEST_AMOUNT and given.isascii() and len(parts) <= 2
    if not plain or not all(part.replace(".", "", len(parts) == 1).isdigit() for part in parts):
        raise ArgumentError(f"{name} must be a decimal or p/q, got {checks.shown(given)}")
    if len(parts) == 2 and int(parts[1]) == 0:
        raise ArgumentError(f"{name} must have a positive denominator, got {checks.shown(given)}")
    return Fraction(given)
