"""Parameters beyond what closed forms carry: a clear answer instead of an overflow.

Noise so small that the loss is past every budget anyone could set becomes no privacy at all
(above), or the largest loss carried (below); noise so large that it hides everything becomes
the smallest loss carried (above), or none (below).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import inf, nextafter

from residua.bounds import LARGEST_EPS, LEAST_EPS, float_down, float_up
from residua.pld import constructors
from residua.pld.arithmetic.exact import Side
from residua.pld.constructors import LEAST_RATE, MIXTURE_RANGE
from residua.pld.pld import Pld

LARGEST_MU = 1 / LEAST_RATE
"""Of the GDP parameters that are carried; the least one is `LEAST_RATE`."""
LEAST_RATIO, LARGEST_RATIO = MIXTURE_RANGE
"""The ratios of sensitivity to noise of the mixtures of Gaussians that are carried."""


def gaussian(sigma: float, sensitivity: float, side: Side, times: int = 1) -> Pld:
    """`G_mu` for any positive `sigma`, with a power of two `times` the sensitivity."""
    if sensitivity == 0.0:
        return constructors.identity()
    ratio = times * Fraction(sensitivity) / Fraction(sigma)
    if ratio > LARGEST_MU:
        return constructors.infinite() if side == "above" else constructors.gaussian(mu=LARGEST_MU)
    if ratio < LEAST_RATE:
        return constructors.gaussian(mu=LEAST_RATE) if side == "above" else constructors.identity()
    if times * sensitivity == float("inf"):
        return constructors.gaussian(sigma=sigma / times, sensitivity=sensitivity)
    return constructors.gaussian(sigma=sigma, sensitivity=times * sensitivity)


def laplace(scale: float, sensitivity: float, side: Side) -> Pld:
    """Laplace noise of any positive `scale`."""
    eps = Fraction(sensitivity) / Fraction(scale)
    if eps == 0 or LEAST_EPS <= eps <= LARGEST_EPS:
        return constructors.laplace(scale, sensitivity)
    return laplace_of(eps, side)


def laplace_of(eps: Fraction, side: Side) -> Pld:
    """Laplace noise with this ratio of sensitivity to scale, rounded to the safe side."""
    return _nearest_carried(eps, side, lambda e: constructors.laplace(1.0, e))


def pure_dp(eps: Fraction, side: Side) -> Pld:
    """`R_eps` for any `eps >= 0`, rounded to a float on the safe side."""
    return _nearest_carried(eps, side, constructors.pure_dp)


def bounded_range(eps: Fraction, side: Side, atomic: float = 0.0) -> Pld:
    """`B_eps` for any `eps >= 0`, rounded to a float on the safe side."""
    return _nearest_carried(eps, side, lambda e: constructors.bounded_range(e, atomic=atomic))


def subsampled_gaussian(
    sigma: float, rate: float, direction: str, sensitivity: float, side: Side
) -> Pld:
    """Gaussian noise on a Poisson sample, for any positive `sigma`."""
    if sensitivity == 0.0 or rate == 0.0:
        return constructors.identity()
    if rate == 1.0:
        return gaussian(sigma, sensitivity, side, 2 if direction == "replace" else 1)
    ratio, least_rate = Fraction(sensitivity) / Fraction(sigma), 1e-100
    if side == "below" and (rate < least_rate or ratio < LEAST_RATIO):
        return constructors.identity()
    rate = max(rate, least_rate)
    if ratio > LARGEST_RATIO and side == "above":
        return constructors.fully_revealing_sampled(rate, direction)
    if LEAST_RATIO <= ratio <= LARGEST_RATIO:
        return constructors.subsampled_gaussian(sigma, rate, direction, sensitivity=sensitivity)
    end = LEAST_RATIO if ratio < LEAST_RATIO else LARGEST_RATIO
    return constructors.subsampled_gaussian(1.0, rate, direction, sensitivity=end)


def mixture_of_gaussians(
    sigma: float, sensitivities: tuple[float, ...], probabilities: tuple[float, ...], side: Side
) -> Pld:
    """`Σ p_i N(s_i, σ²)` against `N(0, σ²)`, for any positive `sigma`."""
    most = max(sensitivities, default=0.0)
    ratio = Fraction(most) / Fraction(sigma) if most > 0.0 else Fraction(1)
    if LEAST_RATIO <= ratio <= LARGEST_RATIO:
        return constructors.mixture_of_gaussians(sigma, sensitivities, probabilities)
    # The largest sensitivity moves to the end of the range, and the others no further.
    end = LARGEST_RATIO if ratio > 1 else LEAST_RATIO
    moved = tuple(float(min(Fraction(s) / Fraction(sigma), Fraction(end))) for s in sensitivities)
    if ratio < 1:
        moved = tuple(end if s == most else r for s, r in zip(sensitivities, moved, strict=True))
    made = constructors.mixture_of_gaussians(1.0, moved, probabilities)
    if side == "above" and ratio > 1:
        hidden = [Fraction(p) for s, p in zip(sensitivities, probabilities, strict=True) if s == 0]
        seen = float_up(1 - sum(hidden, Fraction(0)))
        return constructors.fully_revealing_sampled(seen) if seen < 1.0 else constructors.infinite()
    return made if side == "above" or ratio > 1 else constructors.identity()


def _nearest_carried(eps: Fraction, side: Side, make: Callable[[float], Pld]) -> Pld:
    """A family that increases in `eps`, at the nearest `eps` on the safe side that it carries."""
    if eps == 0:
        return constructors.identity()
    if eps > LARGEST_EPS:
        return constructors.infinite() if side == "above" else make(LARGEST_EPS)
    if eps < LEAST_EPS:
        return make(LEAST_EPS) if side == "above" else constructors.identity()
    if side == "below":
        return make(float_down(eps))
    return make(charged_up(eps))


def charged_up(value: Fraction) -> float:
    """A float that is at least `value`, as is the decimal that it is written as.

    Filters charge that decimal: where a parameter is worked out, it must not be less than what the
    parameter stands for.
    """
    near = float_up(value)
    while Fraction(near) != value and Fraction(Decimal(repr(near))) < value:
        near = nextafter(near, inf)
    return near
