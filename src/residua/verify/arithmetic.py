"""Ball arithmetic under a limit of work and memory: numbers with proven error bounds (Arb).

What a float of a record denotes: a parameter of a loss is the binary fraction that it is stored as
(`exact`), an amount of budget the decimal that it is written as (`written`). Every operation on
balls encloses the exact result, so a comparison that is True is proven.

Limits are counted rather than timed: every machine stops alike. A step of a record is untrusted
text, and its writer can make it as large as they like. Every loop over it declares beforehand how
many ball operations it takes, at the precision in force, and every list how many balls it will
hold; where a step has had its share of either, `Exhausted` is raised and the step is undecided. The
share of work is given in seconds of a machine that does `RATE` such operations a second. What is
remembered from an earlier step counts as if it were worked out again, so the order of steps does
not matter either.

All steps of a verification share a total of work. A step that would exceed what the steps before it
have left is undecided, and so are those after it: also in several processes, which report what they
used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, ParamSpec, TypeVar

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


# -- limits ------------------------------------------------------------------------------------


RATE = 1_000_000
"""Counted operations that take a second, by definition."""

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """Limits of a verification."""

    step: float = 60.0
    """Seconds of counted work for one step."""
    total: float = 3600.0
    """Seconds of counted work for all steps."""
    memory: float = 1024.0
    """Megabytes that a process may use for proofs, by counting."""


class Exhausted(Exception):
    """A step has had its share of work or memory; the message says of which."""


class Share:
    """The work and memory that a step may use, and has used."""

    def __init__(self, seconds: float, megabytes: float):
        self.most, self.done = seconds * RATE, 0.0
        self.bytes = megabytes * 2.0**20

    @property
    def seconds(self) -> float:
        """The work that was done."""
        return self.done / RATE

    def take(self, amount: float) -> None:
        self.done += amount
        if not self.done <= self.most:
            raise Exhausted(f"work limit: not settled with {self.most / RATE:g} s of counted work")

    def hold(self, size: float) -> None:
        # As many of the largest lists may be there at the same time.
        if not 8 * size <= self.bytes:
            raise Exhausted(f"memory limit: not settled within {self.bytes / 2.0**20:g} MB")


_share: ContextVar[Share] = ContextVar("share")


@contextmanager
def limit_work(seconds: float, megabytes: float = Limits.memory) -> Iterator[Share]:
    """Within, no more than so much work is done and memory used.

    Precision starts at flint's default, whatever the caller has set: it counts in the work.
    """
    share = Share(seconds, megabytes)
    token = _share.set(share)
    before, ctx.prec = ctx.prec, 53
    try:
        yield share
    finally:
        ctx.prec = before
        _share.reset(token)


def _mine() -> Share:
    share = _share.get(None)
    if share is None:
        share = Share(float("inf"), Limits.memory)
        _share.set(share)
    return share


def work(operations: float) -> None:
    """Declare that so many operations follow; raises where they are too many."""
    # Up to so many bits the overhead of an operation decides.
    _mine().take(operations * max(1.0, ctx.prec / 192))


def reserve_memory(balls: float) -> None:
    """Declare that a list of so many balls follows; raises where that is too long."""
    # A ball takes so many bytes besides its mantissa.
    _mine().hold(balls * (112 + ctx.prec / 8))


def counted_cache(maxsize: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A cache of what is made at the precision in force, whose hits cost what they saved."""

    def around(function: Callable[P, T]) -> Callable[P, T]:
        @lru_cache(maxsize=maxsize)
        def measured(_precision: int, *args: P.args, **kwargs: P.kwargs) -> tuple[T, float]:
            share = _mine()
            before = share.done
            return function(*args, **kwargs), share.done - before

        def cached(*args: P.args, **kwargs: P.kwargs) -> T:
            share = _mine()
            before = share.done
            found, cost = measured(ctx.prec, *args, **kwargs)  # type: ignore[arg-type]
            share.take(before + cost - share.done)
            return found

        return cached

    return around
