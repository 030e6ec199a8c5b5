"""The ends of curves: the largest finite loss and the mass at infinity, compared exactly.

Curves that touch often touch at the end of a support, where floats cannot tell; the
parameters there are rationals, so rationals decide.

Normal quantiles with proven bounds, and by them the tradeoff curve of a Gaussian.

The tradeoff curve of `G_nu` is `τ(α) = Φ(Φ⁻¹(1-α) - nu)`. Quantiles come from
`scipy.special.ndtri` and are then proven with the Mills ratio, whose error is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats, float_down, float_up
from residua.pld.arithmetic.ulp_bounds import (
    EXP_ULPS,
    MILLS_ULPS,
    TINY,
    U,
    mills_ratio,
    normal_density,
)
from residua.pld.families import factors
from residua.pld.families.atoms import Atoms
from residua.pld.families.factors import FEW_KINDS, Factor
from residua.pld.families.gaussian import Gaussian
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.families.symmetric import SymmetricLoss
from residua.work_limit import work

if TYPE_CHECKING:
    from residua.pld.pld import Pld


def gaussian_tradeoff(gaussian: Gaussian, alpha: Floats) -> tuple[Floats, Floats]:
    """Enclosure of `Φ(Φ⁻¹(1-α) - mu)` for `0 < α < 1`."""
    mu, off = float(np.sqrt(gaussian.variance)), gaussian.variance_error + 4.0 * U
    # From a half on, `1 - α` is exact.
    low, high = quantile_bounds(alpha, 1.0 - alpha, 0.0)
    slack = off * mu + 2.0 * U * (mu + np.abs(low) + np.abs(high))
    least, _ = _tail_bounds(mu - low + slack)
    _, most = _tail_bounds(mu - high - slack)
    return least, most


def quantile_bounds(mass: Floats, rest: Floats, wrong: float) -> tuple[Floats, Floats]:
    """Bounds of `-Φ⁻¹(mass)`, from mass and its complement, each of that relative error."""
    small = mass <= rest
    low, high = _upperquantile_bounds(np.minimum(mass, rest), wrong)
    return np.where(small, low, -high), np.where(small, high, -low)


def _upperquantile_bounds(mass: Floats, wrong: float) -> tuple[Floats, Floats]:
    """Bounds of the `y` with `1 - Φ(y) = mass`, for masses up to about a half."""
    from scipy.special import ndtri

    near = np.maximum(-ndtri(np.clip(mass, 1e-300, 0.5)), 0.0)
    # d ln(1 - Φ) / dy = -1/R, at least max(y, 0.79) in size.
    step = (wrong + 1e-13 + 1e-15 * near * near) * mills_ratio(near) * 2.0 + 1e-15 * near
    low, high = near - step, near + step
    for _ in range(60):
        work(50.0 * mass.size)
        bad = ~_tail_at_least(low, mass * (1.0 + wrong))
        low = np.where(bad, low - step, low)
        worse = ~_tail_at_most(high, mass * (1.0 - wrong))
        high = np.where(worse, high + step, high)
        if not (bad.any() or worse.any()):
            return low, high
        step = 2.0 * step
    return np.where(bad, -np.inf, low), np.where(worse, np.inf, high)


def _tail(y: Floats) -> tuple[Floats, Floats]:
    """`1 - Φ(y)` for `y >= -0.3` or so, and its relative error."""
    at = np.maximum(y, -0.4)
    return normal_density(at) * mills_ratio(at), (EXP_ULPS + MILLS_ULPS + 8.0 + 2.0 * at * at) * U


def _tail_bounds(y: Floats) -> tuple[Floats, Floats]:
    """Enclosure of `1 - Φ(y)` for every `y`."""
    value, error = _tail(np.minimum(np.abs(y), 1e4))
    low = np.where(value > 4.0 * TINY, value * (1.0 - error), 0.0)
    high = value * (1.0 + error) + 4.0 * TINY
    right = y >= 0.0
    low, high = np.where(right, low, 1.0 - high - U), np.where(right, high, 1.0 - low + U)
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


def _tail_at_least(y: Floats, level: Floats) -> NDArray[np.bool_]:
    value, error = _tail(y)
    return np.asarray((value * (1.0 - error) >= level) | (y < -0.4))


def _tail_at_most(y: Floats, level: Floats) -> NDArray[np.bool_]:
    value, error = _tail(y)
    return np.asarray((value * (1.0 + error) <= level) & (y >= -0.4))


def ends_within(a: Pld, b: Pld) -> bool:
    """Whether `a` ends where `b` does: its largest finite loss and its mass at infinity."""
    return largest_loss_within(a, b) and mass_at_infinity_within(a, b)


def mass_at_infinity_within(a: Pld, b: Pld) -> bool:
    """Whether the mass at infinity of `a` is proven at most that of `b`."""
    low, high = a.mass_at_infinity_bounds, b.mass_at_infinity_bounds
    if low.hi <= high.lo:
        return True
    if low.lo > high.hi:
        return False
    kept_a, kept_b = survival(a.terms), survival(b.terms)
    return kept_a is not None and kept_b is not None and kept_a >= kept_b


def mass_at_infinity_at_most(pld: Pld, level: Fraction) -> bool:
    """Whether the mass at infinity is proven at most `level`, in rationals if they are short."""
    if Fraction(float(pld.mass_at_infinity_bounds.hi)) <= level:
        return True
    kept = survival(pld.terms)
    return kept is not None and 1 - kept <= level


def survival(terms: Mapping[Factor, int]) -> Fraction | None:
    """The mass on finite losses, exactly, unless that is too long to work out."""
    return factors.survival([(f.mass_at_infinity, n) for f, n in terms.items()])


def largest_loss_within(a: Pld, b: Pld) -> bool:
    """Whether the largest finite loss of `a` is proven at most that of `b`."""
    if b._evaluator._top == math.inf:
        return True
    sign = _compared(a, b)
    return sign is not None and sign <= 0


def largest_loss_exceeds(a: Pld, b: Pld) -> bool:
    """Whether the largest finite loss of `a` is proven larger than that of `b`."""
    if b._evaluator._top == math.inf:
        return False
    sign = _compared(a, b)
    return sign is not None and sign > 0


def _compared(a: Pld, b: Pld) -> int | None:
    """The sign of the difference of the largest finite losses, that of `b` finite, if known."""
    if a._evaluator._top == math.inf:
        return 1
    (exact_a, rest_a), (exact_b, rest_b) = _rational_part(a), _rational_part(b)
    if rest_a == rest_b:
        return _sign(exact_a - exact_b)
    if exact_a == exact_b and sum(rest_a.values()) + sum(rest_b.values()) < 200:
        ratio_a, ratio_b = _top_ratio(rest_a), _top_ratio(rest_b)
        if ratio_a is not None and ratio_b is not None:
            return _sign(ratio_a - ratio_b)
    mine, theirs = largest_loss_bounds(a), largest_loss_bounds(b)
    if mine[1] <= theirs[0]:
        return -1
    return 1 if mine[0] > theirs[1] else None


def _rational_part(pld: Pld) -> tuple[Fraction, dict[Factor, int]]:
    """The sum of the largest losses that are rationals, and the factors with other ones."""
    exact = Fraction(0)
    rest: dict[Factor, int] = {}
    for factor, n in pld.terms.items():
        if isinstance(factor, SymmetricLoss):
            exact += n * factor.top
        else:
            rest[factor] = n
    return exact, rest


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)


def largest_loss_bounds(pld: Pld) -> tuple[float, float]:
    """Enclosure of the largest finite loss, in floats."""
    top = pld._evaluator._top
    if top == float("inf"):
        return top, top
    if len(pld.terms) <= FEW_KINDS:
        exact, rest = _rational_part(pld)
        if not rest:
            return float_down(exact), float_up(exact)
    size = slack = 0.0
    for f, n in pld.terms.items():
        if isinstance(f, Atoms):
            size, slack = size + n * _reach(f), slack + 2.0 * n * f.loss_error
        elif isinstance(f, GaussianMixture):
            low, high = f.top_bounds
            size, slack = size + n * abs(high), slack + n * (high - low)
        else:
            size += n * f.eps
    return top - slack - (2.0 * len(pld.terms) + 64.0) * U * size, top


def _reach(factor: Atoms) -> float:
    return max(abs(float(factor.z[0])), abs(float(factor.z[-1]))) if factor.z.size else 0.0


def _top_ratio(terms: Mapping[Factor, int]) -> Fraction | None:
    """`e` to the largest loss of atoms and bounded mixtures; None with others."""
    ratio = Fraction(1)
    for factor, n in terms.items():
        if isinstance(factor, Atoms):
            ratio *= factor.exact.kink(len(factor.exact) - 1) ** n
        elif isinstance(factor, GaussianMixture) and factor.top_ratio is not None:
            ratio *= factor.top_ratio**n
        else:
            return None
    return ratio
