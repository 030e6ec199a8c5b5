"""Ball arithmetic: numbers with proven error bounds (Arb, through python-flint).

What a float of a record denotes: a parameter of a loss is the binary fraction that it is stored as
(`exact`), an amount of budget the decimal that it is written as (`written`). Every operation on
balls encloses the exact result, so a comparison that is True is proven.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb, ctx, fmpq

Ball = arb
_FAR = 1e4
_WIDEST = 1 << 14
"""The largest exponent of a number that is written out."""
_SMALLEST = arb(2) ** -4096


@contextmanager
def bits(precision: int) -> Iterator[None]:
    """Work with so many bits."""
    before = ctx.prec
    ctx.prec = precision
    try:
        yield
    finally:
        ctx.prec = before


def ball(value: Fraction | int) -> Ball:
    """A rational, enclosed."""
    if isinstance(value, int):
        return arb(value)
    if value.denominator == 1:
        return arb(value.numerator)
    return arb(fmpq(value.numerator, value.denominator))


def exact(value: Any) -> Fraction:
    """The binary fraction that a number of a record is."""
    return value if isinstance(value, Fraction) else Fraction(_number(value))


def written(value: Any) -> Fraction:
    """The decimal that a number of a record is written as."""
    number = _number(value)
    return Fraction(number) if isinstance(number, int) else Fraction(Decimal(repr(number)))


def _number(value: Any) -> int | float:
    """Numbers only: not texts that look like one, nor yes and no."""
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return value
    raise TypeError(f"{value!r} is not a number")


def upper(value: Ball) -> Fraction:
    """A rational at least as large as all of the ball; its size does not depend on the ball's."""
    top = value.upper()
    return rational(_SMALLEST if 0 < top < _SMALLEST else top)


def rational(value: Ball) -> Fraction:
    """The number in the middle of a ball, whose exponent is of ordinary size."""
    mantissa, exponent = value.mid().man_exp()
    if abs(int(exponent)) > _WIDEST:
        raise OverflowError("a number too large or too small to write out")
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def near(value: Ball) -> float:
    """A float near the middle, for searches and reports only."""
    return float(value.mid())


def root_half() -> Ball:
    return _root_half(ctx.prec)


@lru_cache(maxsize=64)
def _root_half(precision: int) -> Ball:
    return arb(fmpq(1, 2)).sqrt()


@lru_cache(maxsize=64)
def _height(precision: int) -> Ball:
    return 1 / (2 * arb.pi()).sqrt()


def normal(x: Ball) -> Ball:
    """The normal distribution function, relatively accurate on the left."""
    y = -x * root_half()
    if y > _FAR:
        # There the library's bound for what a radius does is far too wide; but it decreases.
        return arb(y.upper()).erfc().union(arb(y.lower()).erfc()) / 2
    return y.erfc() / 2


def density(x: Ball) -> Ball:
    """The normal density."""
    return (-x * x / 2).exp() * _height(ctx.prec)


def quantile(p: Ball) -> Ball:
    """The inverse of `normal`."""
    return -(2 * p).erfcinv() * arb(2).sqrt()


def enough(value: Ball, wanted: int) -> bool:
    """Whether a ball is known to so many bits of its size."""
    return bool(value.is_finite()) and int(value.rel_accuracy_bits()) >= wanted
