"""Discrete Laplace (two-sided geometric) noise, against itself shifted by an integer sensitivity.

Ghosh, Roughgarden and Sundararajan 2012. `P(x) ∝ r^{|x|}` with `r = e^{-1/scale}`; shifted by `k`
the loss takes the `k+1` values `(k - 2j)/scale`. For `k = 1` that is randomized response. Otherwise
the ratio `1/r` is rounded to a rational: noise of a smaller scale dominates, since noise of the
larger scale is that of the smaller one with more noise added (it is self-decomposable).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residuum import checks
from residuum.mechanisms import limits
from residuum.mechanisms.mechanism import Mechanism, Side, both
from residuum.pld.constructors import from_exact, identity, infinite
from residuum.pld.rational import from_masses, ratio_of
from residuum.pld.value import Pld

_MOST_ATOMS = 2000


@dataclass(frozen=True)
class DiscreteLaplace(Mechanism):
    """Integer noise with `P(x) ∝ e^{-|x|/scale}` on a query of this integer sensitivity."""

    scale: float
    sensitivity: int = 1

    kind: ClassVar[str] = "discrete_laplace"
    pair: ClassVar[str] = "Geo±(0, b) | Geo±(Δ, b)"
    reference: ClassVar[str] = "Ghosh, Roughgarden and Sundararajan 2012"

    def __post_init__(self) -> None:
        self._set(
            scale=checks.positive("scale", self.scale),
            sensitivity=checks.count("sensitivity", self.sensitivity),
        )

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        return both(relation, self._one(side))

    def _one(self, side: Side) -> Pld:
        k = self.sensitivity
        step = 1 / Fraction(self.scale)
        if k == 0:
            return identity()
        if k == 1:
            return limits.pure_dp(step, side)
        if k > _MOST_ATOMS:
            # Continuous noise dominates: rounding it to integers is post-processing.
            return limits.laplace(self.scale, float(k), side) if side == "above" else identity()
        if k * step > 600 and side == "above":
            return infinite()
        if step > 600:
            return limits.pure_dp(step, side)
        r = 1 / ratio_of(step, side)
        # P(x <= 0), P(x = 1), …, P(x = k-1), P(x >= k): the loss is constant on each.
        first = 1 / (1 + r)
        inner = [(1 - r) * first * r**j for j in range(1, k)]
        p = [first, *inner, r**k * first]
        return from_exact(from_masses(p, p[::-1]))
