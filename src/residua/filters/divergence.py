"""Rényi costs: from above, in both directions, exact for Gaussian noise."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from residua.filters.amounts import rounded_up, written
from residua.pld.pld import Pld
from residua.pld.residue.gdp_parameter import zcdp_parameter
from residua.work_limit import remembered

_WIDTH = 1e-6
_NOTHING = Fraction(0)


def gaussian_variance(loss: Pld) -> Fraction:
    """`mu²` of the Gaussian part, for the parameters as they are written."""
    return _NOTHING if loss.gaussian is None else _of_parts(tuple(loss.gaussian.parts))


# By the parts: equal PLDs may have been written differently.
@lru_cache(maxsize=4096)
def _of_parts(parts: tuple[tuple[float, float, int], ...]) -> Fraction:
    return sum((n * (written(d) / written(s)) ** 2 for d, s, n in parts), _NOTHING)


def without_gaussian(loss: Pld) -> Pld:
    """The rest of a loss beside its Gaussian part."""
    return Pld(None, loss.terms) if loss.gaussian else loss


def renyi_cost(loss: Pld, alpha: float) -> Fraction | None:
    """`D_α` of a loss, in the worse direction; None if infinite."""
    cost = gaussian_variance(loss) * written(alpha) / 2
    if loss.terms:
        rest = _renyi(without_gaussian(loss), alpha)
        return None if rest is None else cost + rest
    return cost


# Not of the Gaussian part: equal PLDs may have been written differently.
@remembered(maxsize=4096)
def _renyi(rest: Pld, alpha: float) -> Fraction | None:
    sides = [rest] if rest.is_symmetric else [rest, rest.reverse()]
    bounds = [side.renyi_bounds(alpha) for side in sides]
    low, high = max(float(b.lo) for b in bounds), max(float(b.hi) for b in bounds)
    if not math.isfinite(high):
        return None
    if high > low * (1.0 + _WIDTH):
        # Quotients have no digits left for tiny losses; `α rho` has.
        high = min(high, float(np.nextafter(alpha * zcdp_parameter(rest), np.inf)))
    return rounded_up(high)
