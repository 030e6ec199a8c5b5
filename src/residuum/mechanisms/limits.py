"""Parameters beyond what closed forms carry: a clear answer instead of an overflow.

Noise so small that the loss is past every budget anyone could set becomes no privacy at all
(above), or the largest loss carried (below); noise so large that it hides everything becomes
the smallest loss carried (above), or none (below).
"""

from __future__ import annotations

from fractions import Fraction

from residuum.bounds import float_down, float_up
from residuum.mechanisms.mechanism import Side
from residuum.pld import constructors
from residuum.pld.value import Pld

_MU = (1e-100, 1e100)
_EPS = (2.0**-1000, 600.0)
_MIXTURE = (1e-12, 20.0)


def gaussian(sigma: float, sensitivity: float, side: Side) -> Pld:
    """`G_mu` for any positive `sigma`."""
    if sensitivity == 0.0:
        return constructors.identity()
    ratio = Fraction(sensitivity) / Fraction(sigma)
    if ratio > _MU[1]:
        return constructors.infinite() if side == "above" else constructors.gaussian(mu=_MU[1])
    if ratio < _MU[0]:
        return constructors.gaussian(mu=_MU[0]) if side == "above" else constructors.identity()
    return constructors.gaussian(sigma=sigma, sensitivity=sensitivity)


def laplace(scale: float, sensitivity: float, side: Side) -> Pld:
    """Laplace noise of any positive `scale`."""
    eps = Fraction(sensitivity) / Fraction(scale)
    if eps == 0 or _EPS[0] <= eps <= _EPS[1]:
        return constructors.laplace(scale, sensitivity)
    return _beyond(eps, side) or constructors.laplace(1.0, _EPS[eps > 1])


def pure_dp(eps: Fraction, side: Side) -> Pld:
    """`R_eps` for any `eps >= 0`, rounded to a float on the safe side."""
    return _beyond(eps, side) or constructors.pure_dp(_rounded(eps, side))


def bounded_range(eps: Fraction, side: Side, atomic: float = 0.0) -> Pld:
    """`B_eps` for any `eps >= 0`, rounded to a float on the safe side."""
    return _beyond(eps, side) or constructors.bounded_range(_rounded(eps, side), atomic=atomic)


def subsampled_gaussian(
    sigma: float, rate: float, direction: str, sensitivity: float, side: Side
) -> Pld:
    """Gaussian noise on a Poisson sample, for any positive `sigma`."""
    if sensitivity == 0.0 or rate == 0.0:
        return constructors.identity()
    ratio = Fraction(sensitivity) / Fraction(sigma)
    if rate == 1.0:
        return gaussian(sigma, sensitivity * (2.0 if direction == "replace" else 1.0), side)
    if ratio >= _MIXTURE[0] and (ratio <= _MIXTURE[1] or side == "above"):
        return constructors.subsampled_gaussian(sigma, rate, direction, sensitivity=sensitivity)
    if ratio < _MIXTURE[0]:
        if side == "below":
            return constructors.identity()
        return constructors.subsampled_gaussian(1.0, rate, direction, sensitivity=_MIXTURE[0])
    return constructors.subsampled_gaussian(1.0, rate, direction, sensitivity=_MIXTURE[1])


def _rounded(eps: Fraction, side: Side) -> float:
    return float_up(eps) if side == "above" else float_down(eps)


def _beyond(eps: Fraction, side: Side) -> Pld | None:
    """What stands for an `eps` that no closed form carries; None if one does."""
    if eps > _EPS[1]:
        return constructors.infinite() if side == "above" else constructors.pure_dp(_EPS[1])
    if 0 < eps < _EPS[0]:
        return constructors.pure_dp(_EPS[0]) if side == "above" else constructors.identity()
    return None
