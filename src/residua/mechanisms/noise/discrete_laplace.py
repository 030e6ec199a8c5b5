"""Discrete Laplace (two-sided geometric) noise, against itself shifted by an integer sensitivity.

Ghosh, Roughgarden and Sundararajan 2012. `P(x) ∝ r^{|x|}` with `r = e^{-1/b}`; shifted by `k` the
loss takes the `k+1` values `(k - 2j)/b`. For `k = 1` that is randomized response. Otherwise the
vertices `P(x <= m) = 1 - r^{m+1}/(1+r)`, `Q(x <= m) = r^{k-m}/(1+r)` of the testing region are
rounded outward to 2^-400.

For large `k`: all vertices lie on the boundary of continuous Laplace noise with sensitivity
`k' = k + 2b ln cosh(1/(2b)) <= k + 1/(4b)`, which therefore dominates; sensitivity `k - 1` is
dominated, since its point at the height of any vertex lies to the right of the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.mechanisms import limits
from residua.mechanisms.mechanism import Mechanism, Side, both
from residua.pld.arithmetic.exact import region
from residua.pld.arithmetic.rational import exp_of
from residua.pld.constructors import from_exact, identity
from residua.pld.pld import Pld

_MOST_ATOMS = 1000
_GRID_BITS = 400
_GRID = 1 << _GRID_BITS
_BITS = 460


@dataclass(frozen=True)
class DiscreteLaplace(Mechanism):
    """Integer noise with `P(x) ∝ e^{-|x|/scale}` on a query of this integer sensitivity."""

    scale: float
    sensitivity: int = 1

    kind: ClassVar[str] = "discrete_laplace"
    pair: ClassVar[str] = "Geo±(0, b) | Geo±(Δ, b)"
    reference: ClassVar[str] = "Ghosh, Roughgarden and Sundararajan 2012"

    def __post_init__(self) -> None:
        checks.set_fields(
            self,
            scale=checks.positive("scale", self.scale),
            sensitivity=checks.count("sensitivity", self.sensitivity),
        )

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        return both(relation, self._one(side))

    def _one(self, side: Side) -> Pld:
        k = self.sensitivity
        b = Fraction(self.scale)
        if k == 0:
            return identity()
        if k == 1:
            return limits.pure_dp(1 / b, side)
        if k > _MOST_ATOMS or k / b > 600:
            length = (k + 1 / (4 * b)) / b if side == "above" else (k - 1) / b
            return limits.laplace_of(length, side)
        # Where P must be large and Q small, r is taken small, and the other way round.
        r = exp_of(-1 / b, "below" if side == "above" else "above")
        powers = _powers(r, k)
        points = [(0, 0), (_GRID, _GRID)]
        for j in range(k):
            p = _GRID - powers[j + 1] * r.denominator // (r.denominator + r.numerator)
            q = powers[k - j] * r.denominator // (r.denominator + r.numerator)
            # Powers are up to two units too small.
            points.append((q, min(p, _GRID)) if side == "above" else (q + 4, p - 4))
        return from_exact(region(points, _GRID, _GRID))


def _powers(r: Fraction, most: int) -> list[int]:
    """`r^j` over 2^460, rounded down (by less than `2j` units), as multiples of 2^-400."""
    whole = r.numerator * (1 << _BITS) // r.denominator
    power, out = 1 << _BITS, []
    for _ in range(most + 1):
        out.append(power >> (_BITS - _GRID_BITS))
        power = power * whole >> _BITS
    return out
