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
from typing import Any

from flint import arb, ctx, fmpq

Ball = arb
BITS = 192
"""The precision of a single evaluation: a float's 53 bits, and room for what cancels."""
LADDER = (128, 256, 512)
"""Precisions to try in turn where two numbers may lie close together."""


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
    top, least = value.upper(), arb(2) ** -4096
    return rational(least if 0 < top < least else top)


def rational(value: Ball) -> Fraction:
    """The number in the middle of a ball, whose exponent is of ordinary size."""
    mantissa, exponent = value.mid().man_exp()
    if abs(int(exponent)) > 1 << 14:
        raise OverflowError("a number too large or too small to write out")
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def near(value: Ball) -> float:
    """A float near the middle, for searches and reports only."""
    return float(value.mid())


def nine_digits(value: Fraction) -> str:
    """A number for a message, however large: a float could not hold what a forged record says."""
    with bits(64):
        mantissa, mark, exponent = str(ball(value).str(9, radius=False)).partition("e")
    return (mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa) + mark + exponent


def normal(x: Ball) -> Ball:
    """The normal distribution function, relatively accurate on the left."""
    y = -x / arb(2).sqrt()
    if y > 1e4:
        # There the library's bound for what a radius does is far too wide; but it decreases.
        return arb(y.upper()).erfc().union(arb(y.lower()).erfc()) / 2
    return y.erfc() / 2


def density(x: Ball) -> Ball:
    """The normal density."""
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def is_accurate(value: Ball, wanted: int) -> bool:
    """Whether a ball is known to so many bits of its size."""
    return bool(value.is_finite()) and int(value.rel_accuracy_bits()) >= wanted
