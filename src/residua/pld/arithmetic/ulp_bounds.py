"""Platform functions and the error charged for each.

Every constant `_ULPS` is a bound on the relative error in units of the unit roundoff
`u = 2^-53`, at least twice what was measured against Arb, and never below the
4 ulp (8 u) that vectorised mathematical libraries aim for. The test suite measures
them again. Basic arithmetic and `sqrt` are correctly rounded (IEEE 754): `u` each.

The Mills ratio `R(y) = (1 - Phi(y)) / phi(y) = sqrt(pi/2) erfcx(y/sqrt 2)` carries
every Gaussian tail. It is completely monotone, `R(y) = ∫ e^{-ys - s²/2} ds` over
`s > 0`, which is what the bounds in `gaussian.py` rest on.
"""

from __future__ import annotations

import math

import numpy as np

from residua.bounds import UNIT_ROUNDOFF, Floats

U = UNIT_ROUNDOFF

EXP_ULPS = 10.0
"""Of `exp`, `expm1`, `log` and `log1p`; and, absolute, of `sin` and `cos` up to 1e7."""
ERFC_ULPS = 12.0
"""Of `erf` and `erfc`, for arguments that are not negative."""
GAMMALN_ULPS = 32.0
"""For arguments at least 1; relative to `max(1, |gammaln|)`."""
MILLS_ULPS = 26.0
"""Of the Mills ratio: 22 of `erfcx`, for arguments at least -0.3, and 4 for the rest."""

SQRT_HALF_PI = math.sqrt(math.pi / 2.0)
SQRT_HALF = math.sqrt(0.5)
SQRT_TWO_PI = math.sqrt(2.0 * math.pi)

ROUNDING = 64.0 * U
"""Relative error of a few dozen basic operations on positive numbers."""

EXP_RANGE = 690.0
"""Exponentials up to this size, their inverses and a few thousand times either are floats."""

TINY = 2.0**-1022
"""The smallest normal float: added to upper ends wherever a product may underflow."""

SMALLEST = 2.0**-1074
"""The smallest float: how far a mass below `TINY` may be off when it is rounded."""


def mills_ratio(y: Floats) -> Floats:
    """`R(y)` for `y >= -0.4`, relative error at most `MILLS_ULPS * U`."""
    from scipy.special import erfcx

    return np.asarray(SQRT_HALF_PI * erfcx(SQRT_HALF * y))


def normal_density(y: Floats) -> Floats:
    """`phi(y)`; relative error at most `(EXP_ULPS + 3 + y²) U` beyond that of `y` itself."""
    return np.asarray(np.exp(-0.5 * y * y) / SQRT_TWO_PI)


def normal_tail(x: Floats) -> Floats:
    """`Φ(-√2 x)`, half of `erfc(x)`; relative error at most `(3 ERFC_ULPS + 2 max(x, 0)²) U`.

    The rounding of `x²` shows in the upper tail.
    """
    from scipy.special import erfc

    return np.asarray(0.5 * erfc(x))
