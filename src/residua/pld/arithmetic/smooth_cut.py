"""A smooth cut of the line in two: `w(x) = Φ((x - c) / s)` for high losses, `1 - w` for low.

`Φ` is entire. Along the horizontal line through `x + iy` the normal density grows by `e^{y²/2}`
and turns, so, integrating from the left for `w` and from the right for `1 - w`,

    |w(x + iy)| <= e^{y²/(2s²)} w(x),        |1 - w(x + iy)| <= e^{y²/(2s²)} (1 - w(x)),

and `-1/s² <= (ln w)'' <= 0`. What is proven for an integrand in a strip (`normal_mixture.py`)
therefore holds for its two parts, relative to each part, with `1 + 1/s²` for the 1 in `e^{y²/2}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import SQRT_TWO_PI, U, mills_ratio

_LOG_SQRT_TWO_PI = math.log(SQRT_TWO_PI)


@dataclass(frozen=True)
class Cut:
    """`w(x) = Φ((x - centre) / width)`; the two floats denote themselves."""

    centre: float
    width: float

    @property
    def bend(self) -> float:
        """`1/s²`."""
        return 1.0 / self.width**2

    def logs(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """`ln w`, `ln (1 - w)` and a bound on the absolute error of either.

        The smaller one is `-y²/2 - ln √(2π) + ln R(|y|)`, the other `log1p` of its exponential, at
        most 1/2. The Mills ratio errs by 26u and its logarithm, below `ln (1 + |y|) + 1`, by 10u
        relative; `y` by 2u relative, which `y²/2 - ln R` turns into `2u (y² + |y|)`.
        """
        y = (x - self.centre) / self.width
        far = np.abs(y)
        less = -0.5 * y * y - _LOG_SQRT_TWO_PI + np.log(mills_ratio(far))
        more = np.log1p(-np.exp(less))
        loud = y > 0.0
        error = U * (96.0 + 8.0 * y * y)
        return np.where(loud, more, less), np.where(loud, less, more), error

    def slope(self, x: Floats) -> Floats:
        """`(ln w)'`, to about 1e-12 relative."""
        y = (x - self.centre) / self.width
        ratio = mills_ratio(np.abs(y))
        above = np.exp(-0.5 * y * y) / SQRT_TWO_PI
        return np.asarray(
            np.where(y > 0.0, above / (1.0 - above * ratio), 1.0 / ratio) / self.width
        )
