"""Per-subject parameters rounded up onto at most 1,024 public values.

Costs that have no closed form are worked out once a level, and a subject is charged for the level
at or above its own value. Which levels there are must not depend on anyone's data (the charge of
one subject may depend on that subject's own data alone), so they follow from the capacity: 64 an
octave, sixteen octaves down from the largest value that fits at all. Or the caller names them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from residua import checks
from residua.bounds import Floats
from residua.filters.amounts import written
from residua.individual.pricing.units import Integers

Flags = NDArray[np.bool_]

MOST = 1024
_AN_OCTAVE = 64
_SHORT, _WHOLE = 10**6, 9e12
"""Products of the two stay below `2^63`."""


def default_levels(largest: float) -> Floats:
    """1,024 values, the last one the first grid value at or above `largest`."""
    exponent = math.floor(math.log2(largest)) + 1
    octaves = np.arange(exponent - MOST // _AN_OCTAVE - 1, exponent + 1)
    inside = (_AN_OCTAVE + np.arange(_AN_OCTAVE)) / _AN_OCTAVE
    grid = np.ldexp(inside[None, :], octaves[:, None].astype(np.int32)).ravel()
    end = int(np.searchsorted(grid, largest, side="left")) + 1
    return np.asarray(grid[max(0, end - MOST) : end])


def given_levels(value: Any) -> Floats:
    """Levels that the caller names: increasing, positive, at most 1,024."""
    levels = checks.vector("levels", value, "positive and finite numbers")
    good = np.isfinite(levels).all() and (levels > 0.0).all() and (np.diff(levels) > 0.0).all()
    checks.require(bool(good), "levels", "positive, finite and increasing", value)
    checks.require(levels.size <= MOST, "levels", f"at most {MOST} values", levels.size)
    return levels


@dataclass(frozen=True, eq=False)
class Levels:
    """Levels of `loss / divisor`."""

    values: Floats
    divisor: float

    def index(self, losses: Floats) -> Integers:
        """The level at or above each loss; `len(values)` above all of them."""
        return np.asarray(np.searchsorted(self.values, quotient(losses, self.divisor), side="left"))

    def used(self, losses: Floats) -> Flags:
        """Which levels occur, with one place more for what is above all of them."""
        count = np.bincount(self.index(losses[losses > 0.0]), minlength=self.values.size + 1)
        return np.asarray(count > 0)


def quotient(loss: Floats, divisor: float) -> Floats:
    """`loss / divisor`, rounded up; as it is where both and the quotient are short decimals.

    With `loss = b 10^-9`, `divisor = p / q` and a quotient of `a 10^-9` that is `a p = b q`, which
    integers decide. So ten Laplace queries of scale 10 fit an `eps` of 1.
    """
    if divisor == 1.0:
        return loss
    ratio = written(divisor)
    p, q = ratio.numerator, ratio.denominator
    with np.errstate(over="ignore"):
        near = loss / divisor
        # Three roundings: of both as decimals, and of the division.
        up = np.where(loss > 0.0, np.nextafter(near * (1.0 + 2.0**-50), np.inf), 0.0)
        if max(p, q) > _SHORT:
            return up
        a, b = np.rint(near * 1e9), np.rint(loss * 1e9)
    short = (a < _WHOLE) & (b < _WHOLE) & (a / 1e9 == near) & (b / 1e9 == loss)
    whole_a, whole_b = (np.where(short, x, 0.0).astype(np.int64) for x in (a, b))
    return np.where(short & (whole_a * p == whole_b * q), near, up)
