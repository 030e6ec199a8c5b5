"""Rényi costs: from above, in both directions, exact for Gaussian noise."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from residuum.filters.amounts import rounded_up, written
from residuum.pld.value import Pld


def gaussian_variance(loss: Pld) -> Fraction:
    """`mu²` of the Gaussian part, for the parameters as they are written."""
    parts = loss.gaussian.parts if loss.gaussian else ()
    return sum((n * (written(d) / written(s)) ** 2 for d, s, n in parts), Fraction(0))


def without_gaussian(loss: Pld) -> Pld:
    """The rest of a loss beside its Gaussian part."""
    return Pld(None, loss.terms) if loss.gaussian else loss


@lru_cache(maxsize=4096)
def renyi_cost(loss: Pld, alpha: float) -> Fraction | None:
    """`D_α` of a loss, in the worse direction; None if infinite."""
    cost = gaussian_variance(loss) * written(alpha) / 2
    rest = without_gaussian(loss)
    if rest.terms:
        high = rest.renyi(alpha)
        if not rest.is_symmetric:
            high = max(high, rest.reverse().renyi(alpha))
        if not math.isfinite(high):
            return None
        cost += rounded_up(high)
    return cost
