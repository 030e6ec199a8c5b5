"""Laplace noise conditioned on `[-bound, bound]`: bounded noise with a failure probability.

Geng, Ding, Guo and Kumar 2020 (Tight analysis of privacy and utility tradeoff in approximate
differential privacy). Shifted by `Δ`, a slice of width `Δ` on either side is out of the other's
reach: mass `δ` at infinity. On the overlap the two are Laplace noise with lighter atoms,
`w R_e + (1-w) B_e` (`pld/families/bounded_range.py`), for a symmetric pair the exact composition
with `R_{0,δ}`. Parameters are rounded up: the PLD increases in `δ`, `e` and `w`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.bounds import float_down
from residua.mechanisms import limits
from residua.mechanisms.mechanism import Mechanism, Side, both
from residua.pld.arithmetic.rational import exp_of, fall_of
from residua.pld.constructors import approximate_dp, identity, infinite
from residua.pld.pld import Pld

_STEEPEST = 2000
"""Exponents beyond this are not worked out: the noise is as good as none, or as uncut."""


@dataclass(frozen=True)
class TruncatedLaplace(Mechanism):
    """Laplace noise of this scale, redrawn until within `bound`, on a query of this sensitivity."""

    scale: float
    bound: float
    sensitivity: float = 1.0

    kind: ClassVar[str] = "truncated_laplace"
    pair: ClassVar[str] = "Lap(0, b) on [-A, A] | Lap(Δ, b) on [Δ-A, Δ+A]"
    reference: ClassVar[str] = "Geng, Ding, Guo and Kumar 2020"

    def __post_init__(self) -> None:
        checks.set_fields(
            self,
            scale=checks.positive("scale", self.scale),
            bound=checks.positive("bound", self.bound),
            sensitivity=checks.non_negative("sensitivity", self.sensitivity),
        )

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        return both(relation, self._one(side))

    def _one(self, side: Side) -> Pld:
        other: Side = "below" if side == "above" else "above"
        b, a, d = (Fraction(v) for v in (self.scale, self.bound, self.sensitivity))
        if d == 0:
            return identity()
        if d >= 2 * a:
            return infinite()
        if a / b > _STEEPEST:
            # The cut is lighter than anything: uncut noise, and that mass at infinity.
            lost = approximate_dp(0.0, 1e-300) if side == "above" else identity()
            return limits.laplace(self.scale, self.sensitivity, side) + lost

        # Mass of P out of Q's reach: below Δ - A.
        if d <= a:
            missed = exp_of(-(a - d) / b, side) * fall_of(d / b, side) / fall_of(a / b, other) / 2
            atoms = (1 + exp_of(-d / b, side)) * fall_of((a - d) / b, side)
            weight = atoms / (atoms + fall_of(d / b, other))
            length = d / b
        else:
            seen = exp_of(-(d - a) / b, other) * fall_of((2 * a - d) / b, other)
            missed = 1 - seen / fall_of(a / b, side) / 2
            weight, length = Fraction(0), (2 * a - d) / b
        delta = _clipped(missed, side)
        core = limits.bounded_range(length, side, _clipped(weight, side))
        return approximate_dp(0.0, delta) + core


def _clipped(value: Fraction, side: Side) -> float:
    within = min(max(value, Fraction(0)), Fraction(1))
    return limits.charged_up(within) if side == "above" else float_down(within)
