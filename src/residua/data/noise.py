"""Noise on integer totals: drawn by OpenDP, described as mechanisms, and as wide as a person needs.

Discrete Laplace and discrete Gaussian noise, drawn exactly, on integers. Totals are clamped to
`±2^62` first, which changes sensitivities by nothing: clamping moves no two numbers apart.

A unit moves the totals of at most `groups` groups, each by at most its sensitivity. So what an
answer loses is at most the composition of `groups` copies of the scalar mechanism, for each
measure (docs/proofs/answers.md). There are several descriptions of that, from exact ones to bounds
that every filter has a proof for; what is charged is the one that costs the budget least.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import opendp.prelude as dp

from residua import checks
from residua.bounds import float_up
from residua.data.plans import Measure, Plan
from residua.errors import ArgumentError
from residua.filters.noise import private_side
from residua.mechanisms import limits
from residua.mechanisms.black_boxes import ApproximateDp, PureDp, Zcdp
from residua.mechanisms.composition import Composed, SelfComposed
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Laplace
from residua.mechanisms.relations import ADD_REMOVE
from residua.mechanisms.selection import ReportNoisyMax

LAPLACE, GAUSSIAN, GUMBEL = "laplace", "gaussian", "gumbel"
KINDS = (LAPLACE, GAUSSIAN)
"""The kinds of noise on totals; Gumbel noise is on scores."""
LEVEL = 0.95
"""The probability with which an interval contains the value without noise."""
LARGEST = 2**62
"""Totals are clamped to this distance from 0, so that they and their noise fit into 64 bits."""
LEAST_SCALE, LARGEST_SCALE = 1e-3, 2.0**50
"""The scales that are drawn. Beyond these there is no noise to speak of, or nothing else."""
_NORMAL = 1.9599639845400545
"""Of a normal distribution, 95 % is this many standard deviations from the mean at most."""


@dataclass(frozen=True)
class Noise:
    """Noise of this kind and scale (its standard deviation, if Gaussian) on one measure."""

    kind: str
    scale: float

    def __post_init__(self) -> None:
        if not LEAST_SCALE <= self.scale <= LARGEST_SCALE:
            raise ArgumentError(
                f"the scale of the noise must be between {LEAST_SCALE:g} and {LARGEST_SCALE:g}"
                f" steps, got {self.scale:g}"
            )

    def half_width(self, level: float = LEVEL) -> int:
        """The least whole number that the noise exceeds with probability at most `1 - level`."""
        return _half_width(self.kind, self.scale, level)

    def draw(self, totals: Sequence[int]) -> list[int]:
        """The totals with fresh noise on each."""
        clamped = [min(max(each, -LARGEST), LARGEST) for each in totals]
        found: list[int] = list(_sampler(self.kind, self.scale)(clamped)) if clamped else []
        return found

    def choose(self, scores: Sequence[Sequence[int]]) -> list[int]:
        """For each list of scores the place of the largest one with fresh noise on each."""
        chosen = _sampler(self.kind, self.scale)
        return [int(chosen(list(each))) for each in scores]

    def described(self, sensitivity: int) -> Mechanism:
        """The mechanism that adds it to a total, or to scores, of this sensitivity."""
        if self.kind == GUMBEL:
            return ReportNoisyMax(self.scale, "gumbel", float(sensitivity))
        if self.kind == GAUSSIAN:
            return DiscreteGaussian(sigma=self.scale, sensitivity=sensitivity)
        return DiscreteLaplace(scale=self.scale, sensitivity=sensitivity)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON data."""
        return {"kind": self.kind, "scale": self.scale}


@cache
def _sampler(kind: str, scale: float) -> Callable[[list[int]], Any]:
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    made: Callable[[list[int]], Any]
    if kind == GUMBEL:
        # Under this measure OpenDP adds Gumbel noise: the exponential mechanism.
        measure = dp.zero_concentrated_divergence()
        made = dp.m.make_noisy_max(domain, dp.linf_distance(T="i64"), measure, scale=scale)
    elif kind == GAUSSIAN:
        made = dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), scale=scale)
    else:
        made = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    return made


@cache
def _half_width(kind: str, scale: float, level: float) -> int:
    outside = 1.0 - level
    if kind == GAUSSIAN:
        # P(|X| > w) <= P(|N(0, σ²)| >= w) for discrete X (Canonne, Kamath and Steinke 2020).
        return math.ceil(scale * _normal(outside))
    # P(|X| > w) = 2 r^(w+1) / (1 + r), with r = e^(-1/b).
    r = math.exp(-1.0 / scale)
    width = max(0, math.ceil(-scale * math.log(outside * (1.0 + r) / 2.0) - 1.0) - 1)
    while 2.0 * math.exp(-(width + 1.0) / scale) / (1.0 + r) > outside:
        width += 1
    return width


def _normal(outside: float) -> float:
    """How many standard deviations leave this probability outside, rounded up."""
    if outside == 1.0 - LEVEL:
        return _NORMAL
    low, high = 0.0, 40.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        low, high = (
            (middle, high) if math.erfc(middle / math.sqrt(2.0)) > outside else (low, middle)
        )
    return high


def shared_level(column_measures: int) -> float:
    """The level of each of several measures so that all are within their half-widths at `LEVEL`."""
    return LEVEL if column_measures == 1 else 1.0 - (1.0 - LEVEL) / column_measures


# -- how much ---------------------------------------------------------------------------------


def for_eps(plan: Plan, eps: float) -> tuple[Noise, ...]:
    """Laplace noise for which the answer is `eps`-DP, of which each measure has an equal share.

    Choices with Gumbel noise of scale `b` on scores of sensitivity `s` are `2 s / b`-DP.
    """
    share = Fraction(repr(checks.positive("eps", eps))) / len(plan.measures)
    return tuple(
        Noise(kind, _few_digits(plan.groups * times * each.sensitivity / share, up=True))
        for each in plan.measures
        for kind, times in [(LAPLACE, 1) if each.percent is None else (GUMBEL, 2)]
    )


def for_accuracy(plan: Plan, accuracy: float, kind: str) -> tuple[Noise, ...]:
    """The noise of a kind with which each column is within `accuracy` at 95 %."""
    _check_totals(plan, "accuracy")
    wanted = Fraction(checks.positive("accuracy", accuracy))
    return tuple(Noise(kind, _widest(kind, int(wanted / each.step))) for each in plan.measures)


def of_scale(plan: Plan, scale: float, kind: str) -> tuple[Noise, ...]:
    """Noise of this scale, in the unit of the column."""
    _check_totals(plan, "scale")
    wanted = Fraction(checks.positive("scale", scale))
    return tuple(Noise(kind, _few_digits(wanted / each.step, up=True)) for each in plan.measures)


def _check_totals(plan: Plan, option: str) -> None:
    for each in plan.columns:
        if not each.is_total:
            raise ArgumentError(
                f"{option} must not be given with {each.item.function}, whose accuracy depends on"
                " the data; give eps"
            )


def _widest(kind: str, width: int) -> float:
    """The largest scale whose half-width is at most this, rounded down to six digits."""
    if width < 1:
        raise ArgumentError("accuracy must be at least one step of each column; give a larger one")
    if kind == GAUSSIAN:
        return _few_digits(Fraction(width) / Fraction(_NORMAL), up=False)
    low, high = width / 8.0, float(width)
    while high - low > 1e-7 * low:
        middle = 0.5 * (low + high)
        low, high = (
            (middle, high) if _half_width(LAPLACE, middle, LEVEL) <= width else (low, middle)
        )
    return _few_digits(Fraction(low), up=False)


def _few_digits(value: Fraction, up: bool) -> float:
    """About this value, to six digits, rounded up or down."""
    found = private_side(float(value), 6, up)
    if up and Fraction(found) < value:
        found = float_up(value)
    return found


# -- unknown groups ---------------------------------------------------------------------------


def threshold(noise: Noise, groups: int, delta: float) -> int:
    """The least noisy number of units at which a group is released.

    A group of one unit is released with probability `P(X >= t - 1) = r^(t-1) / (1 + r)`, with
    `r = e^(-1/b)`. That is at most `delta / groups`; one step more than needed covers rounding.
    """
    if noise.kind != LAPLACE:
        raise ArgumentError("delta must be given with Laplace noise only; leave out noise")
    r = math.exp(-1.0 / noise.scale)
    needed = -noise.scale * math.log(delta / groups * (1.0 + r))
    return max(2, math.ceil(needed) + 2)


# -- what it costs ----------------------------------------------------------------------------


def descriptions(
    plan: Plan, noise: Sequence[Noise], delta: float | None = None
) -> Iterator[Mechanism]:
    """Mechanisms that lose at least as much as the answer; the exact one comes first.

    With `delta`, for the probability that a unit's own groups reach the threshold.
    """
    if delta is None:
        yield from _noisy(plan, noise)
        return
    for each in _noisy(plan, noise):
        if isinstance(each, PureDp):
            yield ApproximateDp(each.eps, delta)
        else:
            yield Composed((each, ApproximateDp(0.0, delta)))


def _noisy(plan: Plan, noise: Sequence[Noise]) -> Iterator[Mechanism]:
    pairs = list(zip(plan.measures, noise, strict=True))
    yield _composed(plan.groups, [each.described(m.sensitivity) for m, each in pairs])
    if all(each.kind != GAUSSIAN for each in noise):
        yield _composed(plan.groups, [_continuous(m, each) for m, each in pairs])
        losses = (
            (1 + (each.kind == GUMBEL)) * Fraction(m.sensitivity) / Fraction(each.scale)
            for m, each in pairs
        )
        yield PureDp(limits.charged_up(plan.groups * sum(losses, Fraction(0))))
    elif all(each.kind == GAUSSIAN for each in noise):
        squares = ((Fraction(m.sensitivity) / Fraction(each.scale)) ** 2 for m, each in pairs)
        rho = limits.charged_up(plan.groups * sum(squares, Fraction(0)) / 2)
        yield Zcdp(rho, relation=ADD_REMOVE)


def _continuous(measure: Measure, noise: Noise) -> Mechanism:
    """Continuous noise that dominates discrete noise: its sensitivity is `1/(4b)` larger."""
    if noise.kind == GUMBEL:
        return noise.described(measure.sensitivity)
    scale = Fraction(noise.scale)
    return Laplace(noise.scale, float_up(measure.sensitivity + 1 / (4 * scale)))


def _composed(groups: int, parts: Sequence[Mechanism]) -> Mechanism:
    copies = [each if groups == 1 else SelfComposed(each, groups) for each in parts]
    return copies[0] if len(copies) == 1 else Composed(tuple(copies))
