"""The privacy loss of the Laplace mechanism: `a = b = 1/2` in the family of `symmetric.py`.

With `e = sensitivity / scale` the loss is `e` with mass 1/2, `-e` with mass `e^-e / 2`,
and has density `e^{(z-e)/2} / 4` between. It is symmetric, and

    h(e^t)   = 1 - e^{(t-e)/2}                                  |t| <= e
    M(s)     = ((s+1) e^{se} + s e^{-(s+1)e}) / (2s+1)

`e` is one rounded division (or exact), so its float carries `u` relative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from residua.pld.families.symmetric import SymmetricLoss


@dataclass(frozen=True)
class Laplace(SymmetricLoss):
    """Laplace noise of the given scale on a query of the given sensitivity."""

    scale: float
    sensitivity: float

    @cached_property
    def top(self) -> Fraction:
        """The largest loss `e`, exactly."""
        return Fraction(self.sensitivity) / Fraction(self.scale)

    @cached_property
    def eps(self) -> float:  # type: ignore[override]
        """`e` in floating point, relative error at most `u`."""
        return self.sensitivity / self.scale

    @property
    def weights(self) -> tuple[float, float]:
        return 0.5, 0.5

    @property
    def atomic_share(self) -> float:
        return 0.5 * (1.0 + math.exp(-self.eps))

    @property
    def _eps_error(self) -> float:
        return self.eps

    def __repr__(self) -> str:
        if self.sensitivity == 1.0:
            return f"laplace(scale={self.scale!r})"
        return f"laplace(scale={self.scale!r}, sensitivity={self.sensitivity!r})"
