"""Black boxes: mechanisms of which only a bound is known.

A bound holds under some neighbouring relation; `relation` declares which. Without it the PLDs are
given for whatever relation is asked for, and the caller must know that the bound holds. `unit` may
declare whose privacy the bound is about, as budgets do (person, event): it is part of the
description, changes no PLD, and a budget of another unit refuses it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from residua import checks
from residua.bounds import LARGEST_EPS, LEAST_EPS, Floats
from residua.mechanisms import limits, relations
from residua.mechanisms.mechanism import (
    Mechanism,
    NonNegative,
    Numbers,
    Probability,
    both,
    pair,
)
from residua.pld import constructors
from residua.pld.arithmetic.exact import Side
from residua.pld.constructors import approximate_dp, from_exact, gaussian, identity, infinite
from residua.pld.discretise.regions import largest
from residua.pld.pld import Pld

LARGEST_RHO = 100.0
"""Beyond this `rho + xi` the upper side of a zCDP bound promises nothing."""
LARGEST_DIVERGENCE = 1e6
"""The largest Rényi divergence that a curve may have."""
CURVE_ORDERS = tuple(float(f"{1.0 + a:.4g}") for a in np.geomspace(0.05, 255.0, 40))
"""Where Rényi curves that are given as functions are read."""


@dataclass(frozen=True)
class BlackBox(Mechanism):
    """Base of descriptions that are bounds; subclasses have the fields `relation` and `unit`."""

    def __post_init__(self) -> None:
        relation, unit = getattr(self, "relation", None), getattr(self, "unit", None)
        if relation is not None:
            relations.relation(relation)
        if unit is not None:
            checks.new_label("unit", unit)
        super().__post_init__()

    @property
    def supported(self) -> tuple[str, ...]:
        """The declared relation alone, or all of them."""
        declared = getattr(self, "relation", None)
        return relations.RELATIONS if declared is None else (declared,)


@dataclass(frozen=True)
class PureDp(BlackBox):
    """Anything `eps`-DP.

    `R_eps` dominates every such mechanism.
    """

    eps: NonNegative
    relation: str | None = None
    unit: str | None = None

    pair: ClassVar[str] = "randomized response"
    reference: ClassVar[str] = "Kairouz, Oh and Viswanath 2015"

    def _plds(self, relation: str, _accuracy: float, side: Side) -> dict[str, Pld]:
        return both(relation, limits.pure_dp(Fraction(self.eps), side))


@dataclass(frozen=True)
class ApproximateDp(BlackBox):
    """Anything `(eps, delta)`-DP.

    `R_{eps,delta}` dominates every such mechanism.
    """

    eps: NonNegative
    delta: Probability
    relation: str | None = None
    unit: str | None = None

    pair: ClassVar[str] = "randomized response, and everything revealed with probability δ"
    reference: ClassVar[str] = "Kairouz, Oh and Viswanath 2015; Murtagh and Vadhan 2016"

    def _plds(self, relation: str, _accuracy: float, side: Side) -> dict[str, Pld]:
        if self.eps == 0.0 or LEAST_EPS <= self.eps <= LARGEST_EPS:
            return both(relation, approximate_dp(self.eps, self.delta))
        core = limits.pure_dp(Fraction(self.eps), side)
        return both(relation, core + approximate_dp(0.0, self.delta))


@dataclass(frozen=True)
class Gdp(BlackBox):
    """Anything `mu`-GDP.

    `G_mu` dominates every such mechanism, by definition.
    """

    mu: NonNegative
    relation: str | None = None
    unit: str | None = None

    pair: ClassVar[str] = "N(0, 1) | N(μ, 1)"
    reference: ClassVar[str] = "Dong, Roth and Su 2022, definition 2.4"

    def _plds(self, relation: str, _accuracy: float, side: Side) -> dict[str, Pld]:
        return both(relation, limits.gaussian(1.0, self.mu, side))


@dataclass(frozen=True)
class Rdp(BlackBox):
    """Anything with Rényi divergence at most `epsilons[i]` at the order `orders[i] > 1`.

    In both directions. The largest such loss is given by its testing region
    (`pld/discretise/regions.py`).
    """

    orders: Numbers
    epsilons: Numbers
    relation: str | None = None
    unit: str | None = None

    pair: ClassVar[str] = "all pairs of coins within the curve"
    reference: ClassVar[str] = "Mironov 2017"

    def __post_init__(self) -> None:
        super().__post_init__()
        for order in self.orders:
            checks.require(1.0 + 1e-9 <= order <= 1e9, "orders", "between 1 + 1e-9 and 1e9", order)
        for eps in self.epsilons:
            checks.between("epsilons", eps, 0.0, LARGEST_DIVERGENCE)
        checks.require_same_length("orders", self.orders, "epsilons", self.epsilons)

    def _plds(self, relation: str, _accuracy: float, side: Side) -> dict[str, Pld]:
        if 0.0 in self.epsilons:
            return both(relation, identity())
        exact = largest(np.array(self.orders), np.array(self.epsilons), side)
        return both(relation, from_exact(exact))


@dataclass(frozen=True)
class GivenLoss(BlackBox):
    """Base of descriptions that state a PLD: that of `remove`, which `add` reverses."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._pld()  # raises if the numbers do not go together

    @abstractmethod
    def _pld(self) -> Pld:
        """The PLD of `remove`."""

    def _plds(self, relation: str, _accuracy: float, _side: Side) -> dict[str, Pld]:
        pld = self._pld()
        if pld.is_symmetric:
            return both(relation, pld)
        if relation == relations.REPLACE_ONE:
            return {"replace": pld | pld.reverse()}
        return pair(relation, pld)


@dataclass(frozen=True)
class FromAtoms(GivenLoss):
    """Losses and their masses under `P`; the rest of `P` is at infinity.

    Under add-remove and zero-out the atoms are those of `remove`, and `add` is their reversal;
    under replace-one both orders of a pair occur, so the supremum of the two is taken.
    """

    losses: Numbers
    masses: Numbers
    mass_at_infinity: Probability = 0.0
    relation: str | None = None
    unit: str | None = None

    pair: ClassVar[str] = "the atoms and their tilt"
    reference: ClassVar[str] = "Meiser and Mohammadi 2018; Koskela, Jälkö and Honkela 2020"

    def _pld(self) -> Pld:
        return constructors.from_atoms(self.losses, self.masses, self.mass_at_infinity)


@dataclass(frozen=True)
class FromTradeoff(GivenLoss):
    """The tradeoff curve through `(alphas[i], betas[i])`.

    Piecewise linear: `f`-DP. The curve is that of `remove`; `add` is its inverse, and replace-one
    takes the lower envelope of the two.
    """

    alphas: Numbers
    betas: Numbers
    relation: str | None = None
    unit: str | None = None

    pair: ClassVar[str] = "the finite pair with this curve"
    reference: ClassVar[str] = "Dong, Roth and Su 2022, proposition 2.2"

    def _pld(self) -> Pld:
        return constructors.from_tradeoff(self.alphas, self.betas)


@dataclass(frozen=True)
class Zcdp(BlackBox):
    """Anything with Rényi divergences at most `xi + rho α`, all `α > 1`, but for a `delta`.

    In both directions. The largest such loss is given by its testing region
    (`pld/discretise/regions.py`), which is what a zCDP bound says and no more: looser than
    Gaussian noise of the same `rho`, tighter than the usual conversions.

    With `delta` it is `delta`-approximate zCDP (definition 8.1): for each pair of neighbours
    there are events `E` of the one output and `F` of the other, each of probability at least
    `1 - delta`, such that the outputs given `E` and given `F` satisfy the bound, in both
    directions. The largest such loss is `R_{0,delta} ⊕ L`, where `L` is the largest one within the
    bound:

    * it is approximate zCDP: let the events be that `R_{0,delta}` reveals nothing;
    * nothing is larger: each output is a mixture, `1 - delta` of what it is given its event and
      `delta` of something else. To draw from it, it is enough to know the data set with probability
      `delta`, and to see an output given the event otherwise.
    """

    rho: NonNegative
    """The slope of the bound, 0 or more."""
    xi: NonNegative = 0.0
    """The bound at `α = 0`, 0 or more; 0 is `rho`-zCDP."""
    delta: Probability = 0.0
    """The probability, under either data set, of what the bound leaves out."""
    relation: str | None = None
    unit: str | None = None

    pair: ClassVar[str] = "all pairs of coins within the bound"
    reference: ClassVar[str] = "Bun and Steinke 2016, definitions 1.1 and 8.1"

    def _plds(self, relation: str, _accuracy: float, side: Side) -> dict[str, Pld]:
        return both(relation, self._within(side) + approximate_dp(0.0, self.delta))

    def _within(self, side: Side) -> Pld:
        """The largest loss within the bound, rounded to a side."""
        rho, xi, size = self.rho, self.xi, self.rho + self.xi
        if rho < 1e-10:
            # Beside a larger xi it is rounded: up to this, or down to 0.
            rho = 1e-10 if rho and side == "above" else 0.0
        if rho == 0.0:
            # `D_α <= xi` at every order is `xi`-DP.
            return limits.pure_dp(Fraction(xi), side)
        if size < 1e-8:
            # By Pinsker's inequality no test tells more than sqrt(KL / 2).
            most = math.sqrt(0.5 * size) * (1.0 + 1e-15)
            return approximate_dp(0.0, most) if side == "above" else identity()
        if size > LARGEST_RHO:
            if side == "above":
                return infinite()
            # A rho of 1/2 or more covers this Gaussian.
            return gaussian(mu=1.0) if rho >= xi else limits.pure_dp(Fraction(xi), side)
        if side == "below":
            return from_exact(largest(*_orders_below(rho, xi), side))
        orders = _orders_above(rho, xi)
        return from_exact(largest(orders, (xi + rho * orders) * (1.0 + 1e-15), side))

    def notes(self) -> tuple[str, ...]:
        """What knowing only the bound costs, beside Gaussian noise that just meets it."""
        if not 0.0 < self.rho <= LARGEST_RHO or self.xi or self.delta:
            return ()
        bound, noise = self.pld(), gaussian(mu=math.sqrt(2.0 * self.rho))
        return tuple(
            f"eps at delta {delta:g}: {bound.epsilon(delta):.6g} from the bound,"
            f" {noise.epsilon(delta):.6g} for Gaussian noise of the same rho"
            for delta in (1e-3, 1e-6, 1e-9)
        )


def _geometric(first: float, last: float, per_decade: float) -> Floats:
    return np.geomspace(first, last, math.ceil(per_decade * math.log10(last / first)) + 1)


def _orders_above(rho: float, xi: float) -> Floats:
    """The orders used for the upper side.

    The best one for `delta` is near `sqrt(ln(1/delta) / rho)`, which is `10 / sqrt(rho)` at the
    depth where the curve ends, and no order below about `1 / sqrt(rho + xi)` is of use.
    """
    return 1.0 + _geometric(1e-3 / math.sqrt(max(rho, xi)), 30.0 / math.sqrt(rho), 35.5)


def _orders_below(rho: float, xi: float) -> tuple[Floats, Floats]:
    """Orders and bounds that imply `D_α <= xi + rho α` at every order for coins.

    `(α-1) D_α` is convex in `α`, so between two orders it stays below its chord; the parabola
    `(α-1)(xi + rho α)` sags below its own chord by at most `rho Δ²/4`, which is taken off. Below
    the first order the chord from `α = 1` asks for `xi + rho`. The largest loss `l` of a coin of
    probability `p` is at most `D_α - ln p / (α-1)`, so that of everything that is followed
    (`p >= e^-103`) stays below `xi + 30 sqrt(rho) + 300 rho`, and past the last order, where the
    bound is above `xi + 1000 sqrt(rho) + rho`, there is nothing left to ask.
    """
    first, root = 1e-4 * min(1.0, 1.0 / math.sqrt(max(rho, xi))), math.sqrt(rho)
    near = _geometric(first, 30.0 / root, 51.0)
    orders = 1.0 + np.concatenate([near, np.geomspace(30.0 / root, 1e3 / root, 20)[1:]])
    gaps = np.diff(orders)
    widest = np.maximum(np.append(gaps, 0.0), np.append(0.0, gaps))
    bounds = xi + rho * orders - 0.25 * rho * widest * widest / (orders - 1.0)
    bounds[0] = min(bounds[0], xi + rho)
    return orders, np.maximum(bounds * (1.0 - 1e-14), 0.0)
