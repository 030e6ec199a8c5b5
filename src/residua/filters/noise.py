"""The advice of a refusal: the same query with more noise, or with fewer steps.

Every kind of query with a noise parameter becomes less of a loss as the noise grows, so the least
noise that fits is found by bisection. What comes out is rounded to the private side and checked.
Where no reasonable noise is enough for all steps of a query that is repeated, fewer steps are
recommended.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from itertools import pairwise

from residua.errors import ArgumentError, TooExpensive
from residua.filters.amounts import SHOWN_DIGITS, SHOWN_DOWN
from residua.filters.costs import is_only_delta
from residua.filters.query import Query
from residua.mechanisms.composition import Composed, SelfComposed
from residua.mechanisms.mechanism import Mechanism
from residua.pld.constructors import (
    approximate_dp,
    bounded_range,
    gaussian,
    identity,
    laplace,
    pure_dp,
    with_sigma,
)
from residua.pld.families.factors import Factor
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.families.symmetric import BoundedRange, Laplace, RandomizedResponse
from residua.pld.pld import Pld
from residua.work_limit import attempt

_GROWING = ("scale", "sigma", "bound")
"""Fields of a mechanism that are noise: they grow with it."""
_SHRINKING = ("eps", "mu")
"""Fields that are loss: they shrink as the noise grows."""
_SQUARES = ("rho", "xi")
"""Fields that shrink with the square of it, as do Rényi bounds (`epsilons`)."""
_LEAST_EPS = Decimal("1e-12")
"""The least `eps` of one query that is looked for; where there is less than 1, this share of it."""
_MOST = 2.0**40
"""The most noise, and one over the least, that is tried, as a multiple of what was asked."""
_FAR = 2.0**10
"""More noise than this many times what was asked is recommended only if fewer steps do not fit."""

Queries = tuple[Query, ...]
Noisy = Callable[[float, int | None], Queries | None]
Rounding = Callable[..., float]
"""Of a parameter, whether it is noise (to be rounded up) or loss (down), and of which power."""


def scale_noise(query: Query, ratio: float, digits: int | None = None) -> Query | None:
    """`query` with `ratio` times the noise, parameters rounded to the private side.

    None for a kind without a noise parameter.
    """

    def turn(value: float, grows: bool, power: int = 1) -> float:
        moved = value * ratio if grows else value / ratio**power
        return private_side(moved, digits, grows)

    try:
        return _pld(query, turn) if isinstance(query, Pld) else _mechanism(query, turn)
    except ArgumentError:
        return None


def least_noise(query: Query, fits: Callable[[Query], bool]) -> Query | None:
    """The query of this kind with the least noise that fits; None where there is none.

    Within six digits of the noise, or a few percent for compositions of sampled queries, and
    checked. Where no reasonable noise is enough for a query that is repeated, it has fewer steps.
    """
    found = _with_more_noise(query, fits, _FAR)
    if found is None:
        found = _with_fewer_steps(query, fits)
    return _with_more_noise(query, fits, _MOST) if found is None else found


def least_noise_within(
    query: Query, fits: Callable[[Query], bool], operations: int
) -> Query | TooExpensive | None:
    """The same by a search of so many operations; where it needs more, the last query that fitted.

    Next to the edge one query alone may take more work than all before it. The error where nothing
    was found by then.
    """
    last: Query | None = None

    def noting(candidate: Query) -> bool:
        nonlocal last
        fit = fits(candidate)
        last = candidate if fit else last
        return fit

    found = attempt("this", operations, lambda: least_noise(query, noting))
    if not isinstance(found, TooExpensive) or last is None:
        return found
    short = scale_noise(last, 1.0, SHOWN_DIGITS)
    if short is not None and attempt("this", operations // 8, lambda: fits(short)) is True:
        return short
    return last


def _with_more_noise(query: Query, fits: Callable[[Query], bool], most: float) -> Query | None:
    def turned(ratio: float, digits: int | None) -> Queries | None:
        moved = scale_noise(query, ratio, digits)
        return None if moved is None else (moved,)

    if scale_noise(query, 2.0) is None:
        return None
    found = least(turned, lambda queries: fits(queries[0]), most, coarse=_sampled_steps(query) > 1)
    return None if found is None else found[0]


def _with_fewer_steps(query: Query, fits: Callable[[Query], bool]) -> Query | None:
    """A repeated query with as many steps as fit, to one percent; None where none does.

    With its own noise, or else with more.
    """
    if not isinstance(query, SelfComposed):
        return None
    counts = [query.count]
    while counts[-1] > 1:
        counts.append(max(counts[-1] // 4, 1))
    for most in (1.0, _FAR):
        for more, count in pairwise(counts):
            some = SelfComposed(query.mechanism, count)
            found = _with_more_noise(some, fits, most) if most > 1.0 else some
            if isinstance(found, SelfComposed) and (most > 1.0 or fits(found)):
                return _with_more_steps(found, more, fits)
    return None


def _with_more_steps(query: SelfComposed, most: int, fits: Callable[[Query], bool]) -> Query:
    """A query that fits with as many steps as fit, fewer than `most`."""
    low, high = query.count, most
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        fit = fits(SelfComposed(query.mechanism, middle))
        low, high = (middle, high) if fit else (low, middle)
    return SelfComposed(query.mechanism, low)


def is_sampled(query: Query) -> bool:
    """Whether a query, or a part of it, is asked of a sample."""
    return _sampled_steps(query) > 0


def _sampled_steps(query: Query) -> int:
    if isinstance(query, Pld):
        return sum(n for f, n in query.terms.items() if isinstance(f, GaussianMixture))
    if isinstance(query, SelfComposed):
        return query.count * _sampled_steps(query.mechanism)
    if isinstance(query, Composed):
        return sum(map(_sampled_steps, query.mechanisms))
    return int(hasattr(query, "sampling_rate"))


def least_above(query: Query, fits: Callable[[Query], bool]) -> Query | None:
    """The same where `fits` is slow to say and hardly more noise than in `query` will do.

    Within a thousandth of the noise, and checked; `query` itself if that fits.
    """
    if fits(query):
        return query

    def moved_by(steps: float) -> Query | None:
        """With more noise, by steps of a thousandth of its logarithm."""
        return scale_noise(query, math.exp(1e-3 * steps), SHOWN_DIGITS)

    low, high, best = 0.0, 1.0, None
    while best is None:
        if high > 1 << 15:  # That is more than `e^16` times the noise.
            return None
        moved = moved_by(high)
        if moved is not None and fits(moved):
            best = moved
        else:
            low, high = high, 2.0 * high
    while high > low + 1.0:
        middle = 0.5 * (low + high)
        moved = moved_by(middle)
        if moved is not None and fits(moved):
            best, high = moved, middle
        else:
            low = middle
    return best


def least(
    make: Noisy, fits: Callable[[Queries], bool], most: float = _MOST, *, coarse: bool = False
) -> Queries | None:
    """The result of `make` for the least noise that fits, by bisection from 1; None if none fits.

    `make` takes the noise and how many digits its parameters are rounded to, on the private side;
    what it returns None for does not fit. Where less noise may fit and more not, what is found
    fits all the same.

    Args:
        make: the queries for a noise.
        fits: whether they fit.
        most: the most noise that is tried.
        coarse: find the noise to a few percent only, and three digits.
    """
    digits = 3 if coarse else None

    def good(ratio: float) -> bool:
        candidate = make(ratio, digits)
        return candidate is not None and fits(candidate)

    low = high = 1.0
    if good(1.0):
        while good(low := low / 4.0):
            high = low
            if low < 1.0 / _MOST:
                return make(high, digits)
    else:
        # In small steps at first: queries with far more noise than needed are slow to decide.
        while not good(high := min(high * (4.0 if high < _FAR else 2.0**8), most)):
            if high == most:
                return None
            low = high
    if coarse:
        # Each candidate may take seconds to decide, and those with much noise take less.
        return make(_bisect(low, high, good, 1.02, rounds=8, part=0.7)[1], digits)
    # Thirty rounds: more than this width takes.
    low, high = _bisect(low, high, good, 1.0 + 1e-8, rounds=30)
    for digits in (SHOWN_DIGITS, 9, 12, None):
        for ratio in (low, high):
            candidate = make(ratio, digits)
            if candidate is not None and fits(candidate):
                return candidate
    return None


def _bisect(
    low: float,
    high: float,
    good: Callable[[float], bool],
    near: float,
    rounds: int,
    part: float = 0.5,
) -> tuple[float, float]:
    """A narrower bracket whose upper end is good; split at `part` of its logarithm."""
    for _ in range(rounds):
        if high <= low * near:
            break
        middle = low ** (1.0 - part) * high**part
        low, high = (low, middle) if good(middle) else (middle, high)
    return low, high


def private_side(value: float, digits: int | None, grows: bool) -> float:
    """A parameter to some digits: noise (which grows) rounded up, loss rounded down."""
    if digits is None:
        return value
    near = Context(prec=15, rounding=ROUND_HALF_EVEN).create_decimal(Decimal(value))
    side = ROUND_CEILING if grows else ROUND_FLOOR
    return float(Context(prec=digits, rounding=side).create_decimal(near))


def _mechanism(query: Mechanism, turn: Rounding) -> Mechanism | None:
    changes: dict[str, object] = {}
    for field in dataclasses.fields(query):
        value = getattr(query, field.name)
        if isinstance(value, Mechanism):
            changes[field.name] = _mechanism(value, turn)
        elif isinstance(value, tuple) and value and isinstance(value[0], Mechanism):
            changes[field.name] = tuple(_mechanism(part, turn) for part in value)
        elif value is None:
            continue
        elif field.name in _GROWING or field.name in _SHRINKING:
            changes[field.name] = turn(value, field.name in _GROWING)
        elif field.name == "noise_parameter":
            # The probability of an answer at random: what is left of 1 is the loss.
            changes[field.name] = 1.0 - turn(1.0 - value, False)
        elif field.name in _SQUARES:
            changes[field.name] = turn(value, False, 2)
        elif field.name == "epsilons":
            changes[field.name] = tuple(turn(eps, False, 2) for eps in value)
    every = [v for given in changes.values() for v in (given if type(given) is tuple else (given,))]
    if not every or None in every:
        return None
    fields = {field.name: getattr(query, field.name) for field in dataclasses.fields(query)}
    return type(query)(**{**fields, **changes})


def _pld(loss: Pld, turn: Rounding) -> Pld | None:
    moved = identity()
    for d, s, n in loss.gaussian.parts if loss.gaussian else ():
        if s == 1.0:
            moved += n * gaussian(mu=turn(d, False))
        else:
            moved += n * gaussian(sigma=turn(s, True), sensitivity=d)
    kept = identity()
    for factor, n in loss.terms.items():
        if is_only_delta(factor):
            # A chance to reveal everything has no noise: it stays beside what has.
            kept += n * Pld(None, {factor: 1})
            continue
        part = _factor(factor, turn)
        if part is None:
            return None
        moved += n * part
    return None if moved.is_identity else moved + kept


def _factor(factor: Factor, turn: Rounding) -> Pld | None:
    if isinstance(factor, RandomizedResponse):
        return approximate_dp(turn(factor.eps, False), factor.delta)
    if isinstance(factor, BoundedRange):
        return bounded_range(turn(factor.eps, False), atomic=factor.atomic)
    if isinstance(factor, Laplace):
        return laplace(turn(factor.scale, True), factor.sensitivity)
    if isinstance(factor, GaussianMixture):
        return with_sigma(factor, turn(factor.sigma, True))
    return None


def largest_eps(admits: Callable[[float], bool], most: float = 600.0) -> float:
    """The largest `eps` up to `most` that is admitted, to six digits and rounded down; 0 if none.

    Less than `1e-12` counts as none. What is admitted must be admitted for every smaller `eps`.
    """

    def fits(eps: Decimal) -> bool:
        return admits(float(eps))

    top = SHOWN_DOWN.create_decimal(repr(most))
    if not top:
        return 0.0
    low = high = min(Decimal(1), top)
    step, least = Decimal(4), min(_LEAST_EPS, _LEAST_EPS * top)
    if fits(low):
        while low < top and fits(high := min(SHOWN_DOWN.multiply(low, step), top)):
            low = high
        if low == top:
            return float(low)
    else:
        while not fits(low := max(SHOWN_DOWN.divide(high, step), least)):
            high, step = low, step * step
            if low == least:
                return 0.0
    while low * 2 < high:
        middle = SHOWN_DOWN.create_decimal(SHOWN_DOWN.sqrt(low * high))
        low, high = (middle, high) if fits(middle) else (low, middle)
    while low < (middle := SHOWN_DOWN.divide(low + high, Decimal(2))) < high:
        low, high = (middle, high) if fits(middle) else (low, middle)
    return float(low)


def largest_response(eps: float, admits: Callable[[float], bool]) -> Pld:
    """The largest `R_e` with `e <= eps` that is admitted: `eps` itself, or six digits of `e`.

    To the last of them, so that a refusal does not recommend more than is said to be left.
    """
    return pure_dp(eps if admits(eps) else largest_eps(admits, eps))
