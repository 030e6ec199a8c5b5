"""Mechanisms that add noise to a number or a vector, and the dominating pair of each."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.bounds import LARGEST_EPS, float_down, float_up
from residua.mechanisms import limits
from residua.mechanisms.black_boxes import LARGEST_RHO, Zcdp
from residua.mechanisms.mechanism import (
    Count,
    Mechanism,
    NonNegative,
    Numbers,
    Positive,
    both,
    pair,
)
from residua.mechanisms.relations import ADD_REMOVE, ZERO_OUT
from residua.pld.arithmetic.exact import GRID, Side, exp_of, fall_of, region
from residua.pld.constructors import approximate_dp, from_exact, identity, infinite
from residua.pld.discretise.regions import (
    LARGEST_SHIFT,
    LARGEST_SIGMA,
    discrete_gaussian,
)
from residua.pld.pld import Pld


@checks.keyword_only("sigma or mu", "Gaussian(sigma={}) or Gdp(mu={})")
@dataclass(frozen=True, kw_only=True)
class Gaussian(Mechanism):
    """Gaussian noise of standard deviation `sigma` on a query of this (Euclidean) sensitivity.

    `N(0, σ²)` against `N(Δ, σ²)` is exactly `G_mu` with `mu = Δ / σ` (Dong, Roth and Su 2022,
    Gaussian differential privacy). In several dimensions too: the two means span a line.
    """

    sigma: Positive
    sensitivity: NonNegative = 1.0

    pair: ClassVar[str] = "N(0, σ²) | N(Δ, σ²)"
    reference: ClassVar[str] = "Dong, Roth and Su 2022, theorem 2.7"

    def _plds(self, relation: str, _accuracy: float, side: Side) -> dict[str, Pld]:
        return both(relation, limits.gaussian(self.sigma, self.sensitivity, side))


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Laplace noise of this scale on a query of this (absolute) sensitivity.

    `Lap(0, b)` against `Lap(Δ, b)`, in closed form; in several dimensions with the sensitivity in
    the sum of absolute values.
    """

    scale: Positive
    sensitivity: NonNegative = 1.0

    pair: ClassVar[str] = "Lap(0, b) | Lap(Δ, b)"
    reference: ClassVar[str] = "Dwork et al. 2006; Balle, Barthe and Gaboardi 2018, theorem 3"

    def _plds(self, relation: str, _accuracy: float, side: Side) -> dict[str, Pld]:
        return both(relation, limits.laplace(self.scale, self.sensitivity, side))


@checks.keyword_only("sigma or its square", "DiscreteGaussian(sigma={})")
@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian(Mechanism):
    """Integer noise with `P(x) ∝ e^{-x²/(2σ²)}` on a query of this integer sensitivity.

    The loss has countably many values; all but the lightest are written out, exactly
    (`pld/discretise/regions.py`). Where there are too many (`sigma` above 2000) its
    concentrated-DP bound is used.
    """

    sigma: Positive
    sensitivity: Count = 1

    pair: ClassVar[str] = "N_Z(0, σ²) | N_Z(Δ, σ²)"
    reference: ClassVar[str] = "Canonne, Kamath and Steinke 2020"

    def _plds(self, relation: str, _accuracy: float, side: Side) -> dict[str, Pld]:
        if self.sensitivity == 0:
            return both(relation, identity())
        if self.sigma <= LARGEST_SIGMA and self.sensitivity <= LARGEST_SHIFT:
            return both(relation, from_exact(discrete_gaussian(self.sigma, self.sensitivity, side)))
        if side == "below":
            return both(relation, identity())
        rho = Fraction(self.sensitivity) ** 2 / (2 * Fraction(self.sigma) ** 2)
        # Beyond LARGEST_RHO nothing is promised, however large rho is.
        return Zcdp(float_up(min(rho, Fraction(2 * LARGEST_RHO)))).plds(relation)


@dataclass(frozen=True)
class DiscreteLaplace(Mechanism):
    """Integer noise with `P(x) ∝ e^{-|x|/scale}` on a query of this integer sensitivity.

    With `r = e^{-1/b}` and a shift by `k` the loss takes the `k+1` values `(k - 2j)/b`. For `k = 1`
    that is randomized response. Otherwise the vertices `P(x <= m) = 1 - r^{m+1}/(1+r)`,
    `Q(x <= m) = r^{k-m}/(1+r)` of the testing region are rounded outward to 2^-400.

    For large `k`: all vertices lie on the boundary of continuous Laplace noise with sensitivity
    `k' = k + 2b ln cosh(1/(2b)) <= k + 1/(4b)`, which therefore dominates; sensitivity `k - 1` is
    dominated, since its point at the height of any vertex lies to the right of the next one.
    """

    scale: Positive
    sensitivity: Count = 1

    pair: ClassVar[str] = "Geo±(0, b) | Geo±(Δ, b)"
    reference: ClassVar[str] = "Ghosh, Roughgarden and Sundararajan 2012"

    def _plds(self, relation: str, _accuracy: float, side: Side) -> dict[str, Pld]:
        return both(relation, self._pld(side))

    def _pld(self, side: Side) -> Pld:
        k = self.sensitivity
        b = Fraction(self.scale)
        if k == 0:
            return identity()
        if k == 1:
            return limits.pure_dp(1 / b, side)
        if k > 1000 or k / b > LARGEST_EPS:
            length = (k + 1 / (4 * b)) / b if side == "above" else (k - 1) / b
            return limits.laplace_of(length, side)
        # Where P must be large and Q small, r is taken small, and the other way round.
        r = exp_of(-1 / b, "below" if side == "above" else "above")
        powers = _powers(r, k)
        points = [(0, 0), (GRID, GRID)]
        for j in range(k):
            p = GRID - powers[j + 1] * r.denominator // (r.denominator + r.numerator)
            q = powers[k - j] * r.denominator // (r.denominator + r.numerator)
            # Powers are up to two units too small.
            points.append((q, min(p, GRID)) if side == "above" else (q + 4, p - 4))
        return from_exact(region(points, GRID, GRID))


def _powers(r: Fraction, most: int) -> list[int]:
    """`r^j` over 2^460, rounded down (by less than `2j` units), as multiples of 2^-400."""
    unit = GRID << 60
    ratio = r.numerator * unit // r.denominator
    power, powers = unit, []
    for _ in range(most + 1):
        powers.append(power >> 60)
        power = power * ratio // unit
    return powers


@dataclass(frozen=True)
class TruncatedLaplace(Mechanism):
    """Laplace noise of this scale, redrawn until within `bound`, on a query of this sensitivity.

    Shifted by `Δ`, a slice of width `Δ` on either side is out of the other's reach: mass `δ` at
    infinity. On the overlap the two are Laplace noise with lighter atoms, `w R_e + (1-w) B_e`
    (`pld/families/symmetric.py`), which for a symmetric pair is composed exactly with
    `R_{0,δ}`. Parameters are rounded up: the PLD increases in `δ`, `e` and `w`.
    """

    scale: Positive
    bound: Positive
    sensitivity: NonNegative = 1.0

    pair: ClassVar[str] = "Lap(0, b) on [-A, A] | Lap(Δ, b) on [Δ-A, Δ+A]"
    reference: ClassVar[str] = "Geng, Ding, Guo and Kumar 2020"

    def _plds(self, relation: str, _accuracy: float, side: Side) -> dict[str, Pld]:
        return both(relation, self._pld(side))

    def _pld(self, side: Side) -> Pld:
        other: Side = "below" if side == "above" else "above"
        b, a, d = (Fraction(v) for v in (self.scale, self.bound, self.sensitivity))
        if d == 0:
            return identity()
        if d >= 2 * a:
            return infinite()
        if a / b > 2000:
            # Truncation puts less than any float at infinity: the noise counts as uncut.
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
        core = limits.bounded_range(length, side, _as_probability(weight, side))
        return approximate_dp(0.0, _as_probability(missed, side)) + core


def _as_probability(value: Fraction, side: Side) -> float:
    within = min(max(value, Fraction(0)), Fraction(1))
    return limits.charged_up(within) if side == "above" else float_down(within)


@dataclass(frozen=True)
class MixtureOfGaussians(Mechanism):
    """Gaussian noise on a query whose sensitivity is `sensitivities[i]` with `probabilities[i]`.

    Choquette-Choo, Ganesh, Steinke and Thakurta 2024 (Privacy amplification for matrix
    mechanisms): a sensitivity that is itself random, as in sampling for correlated noise.
    Sensitivities are norms; the line is the worst case.
    """

    sigma: Positive
    sensitivities: Numbers
    probabilities: Numbers

    relations: ClassVar[tuple[str, ...]] = (ADD_REMOVE, ZERO_OUT)
    pair: ClassVar[str] = "Σ p_i N(s_i, σ²) | N(0, σ²)"
    reference: ClassVar[str] = "Choquette-Choo, Ganesh, Steinke and Thakurta 2024"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._plds(ADD_REMOVE, 1.0, "below")  # raises if the numbers do not go together

    def _plds(self, relation: str, _accuracy: float, side: Side) -> dict[str, Pld]:
        mixture = limits.mixture_of_gaussians(
            self.sigma, self.sensitivities, self.probabilities, side
        )
        return pair(relation, mixture)
