"""Intervals with outward rounding, and three-valued verdicts.

`u` below is the unit roundoff 2^-53: one correctly rounded operation has
relative error at most `u` (IEEE 754), and stepping to the neighbouring float
(`nextafter`) covers it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from residua.errors import ArgumentError, ArgumentTypeError

Floats: TypeAlias = NDArray[np.float64]
Number: TypeAlias = float | Floats

UNIT_ROUNDOFF = float(np.finfo(np.float64).epsneg)
"""The relative error of one correctly rounded operation, at most."""
LEAST_EPS, LARGEST_EPS = 2.0**-1000, 600.0
"""The sizes of loss, beside 0, that closed forms carry: `e^eps` and its products are floats."""


class Verdict(StrEnum):
    """The outcome of a certified question; UNDECIDED never counts as yes."""

    YES = "YES"
    NO = "NO"
    UNDECIDED = "UNDECIDED"


def down(x: Number) -> Number:
    """The next float below, elementwise."""
    return np.nextafter(x, -np.inf)


def up(x: Number) -> Number:
    """The next float above, elementwise."""
    return np.nextafter(x, np.inf)


def float_down(exact: Fraction) -> float:
    """The largest float at most `exact`."""
    near = float(exact)
    return near if _compare(near, exact) <= 0 else math.nextafter(near, -math.inf)


def float_up(exact: Fraction) -> float:
    """The smallest float at least `exact`."""
    near = float(exact)
    return near if _compare(near, exact) >= 0 else math.nextafter(near, math.inf)


def floats_around(exact: Fraction) -> tuple[float, float]:
    """The largest float at most `exact`, and the smallest at least."""
    near = float(exact)
    side = _compare(near, exact)
    below = near if side <= 0 else math.nextafter(near, -math.inf)
    return below, near if side >= 0 else math.nextafter(near, math.inf)


def quotient_up(over: float, under: float) -> float:
    """The smallest float at least `over / under`, both positive."""
    near = over / under
    (a, b), (c, d), (e, f) = (x.as_integer_ratio() for x in (near, under, over))
    return near if a * c * f >= e * b * d else math.nextafter(near, math.inf)


def _compare(near: float, exact: Fraction) -> int:
    """The sign of `near - exact`, in integers: a comparison of rationals takes far longer."""
    over, under = near.as_integer_ratio()
    return over * exact.denominator - exact.numerator * under


@dataclass(frozen=True, slots=True)
class Interval:
    """A proven enclosure: the exact value lies in `[lo, hi]`.

    The ends are floats, or arrays of one shape for a vectorised call.
    Arithmetic rounds outward.
    """

    lo: Number
    hi: Number

    def __post_init__(self) -> None:
        for name in ("lo", "hi"):
            if isinstance(end := getattr(self, name), np.floating):
                object.__setattr__(self, name, float(end))
        if type(self.lo) is float and type(self.hi) is float:
            ordered = self.lo <= self.hi
        elif any(np.asarray(end).dtype.kind not in "fiu" for end in (self.lo, self.hi)):
            raise ArgumentTypeError(f"lo and hi must be numbers, got {self.lo!r} and {self.hi!r}")
        else:
            ordered = bool(np.all(self.lo <= self.hi))
        if not ordered:
            raise ArgumentError(f"lo must be at most hi, got lo={self.lo!r}, hi={self.hi!r}")

    @property
    def width(self) -> Number:
        """`hi - lo`, rounded up (zero where the ends coincide)."""
        same = np.asarray(self.lo) == np.asarray(self.hi)
        gap = np.where(same, 0.0, up(np.asarray(self.hi) - np.asarray(np.where(same, 0, self.lo))))
        return gap if gap.ndim else float(gap)

    def __contains__(self, value: object) -> bool:
        return bool(np.all((self.lo <= value) & (value <= self.hi)))  # type: ignore[operator]

    def __add__(self, other: Interval | Number) -> Interval:
        other = _interval(other)
        return Interval(down(self.lo + other.lo), up(self.hi + other.hi))

    def __neg__(self) -> Interval:
        return Interval(-self.hi, -self.lo)

    def __sub__(self, other: Interval | Number) -> Interval:
        return self + (-_interval(other))

    def __mul__(self, other: Interval | Number) -> Interval:
        other = _interval(other)
        ends = [a * b for a in (self.lo, self.hi) for b in (other.lo, other.hi)]
        low, high = ends[0], ends[0]
        for end in ends[1:]:
            low, high = np.minimum(low, end), np.maximum(high, end)
        return Interval(down(low), up(high))

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Number) -> Interval:
        return _interval(other) - self


def _interval(value: Interval | Number) -> Interval:
    return value if isinstance(value, Interval) else Interval(value, value)
