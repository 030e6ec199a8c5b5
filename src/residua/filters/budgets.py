"""Budgets that are not one PLD: named amounts, and the largest loss within them."""

from __future__ import annotations

from dataclasses import dataclass

from residua.mechanisms.black_boxes import Rdp, Zcdp
from residua.pld.constructors import approximate_dp
from residua.pld.pld import Pld
from residua.work_limit import remembered_property


@dataclass(frozen=True)
class ApproximateDpBudget:
    """`(eps, delta)`."""

    eps: float
    delta: float

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers that add up over queries."""
        return self.eps, self.delta

    def at_most(self, other: ApproximateDpBudget) -> ApproximateDpBudget:
        """The smaller of each number."""
        return ApproximateDpBudget(min(self.eps, other.eps), min(self.delta, other.delta))

    @remembered_property
    def pld(self) -> Pld:
        """The largest PLD within it."""
        return approximate_dp(self.eps, self.delta)


@dataclass(frozen=True)
class RenyiBudget:
    """Rényi divergence at most `rho` at the order `alpha`, in both directions."""

    alpha: float
    rho: float

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers that add up over queries."""
        return (self.rho,)

    def at_most(self, other: RenyiBudget) -> RenyiBudget:
        """The smaller of each number; this one where the other is of another order."""
        rho = min(self.rho, other.rho) if other.alpha == self.alpha else self.rho
        return RenyiBudget(self.alpha, rho)

    @remembered_property
    def pld(self) -> Pld:
        """The largest PLD within it, rounded up."""
        return Rdp((self.alpha,), (self.rho,)).pld()


@dataclass(frozen=True)
class RenyiCurveBudget:
    """Rényi divergence at most `rhos[i]` at every order `alphas[i]`, in both directions."""

    alphas: tuple[float, ...]
    rhos: tuple[float, ...]

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers that add up over queries."""
        return self.rhos

    def at_most(self, other: RenyiCurveBudget) -> RenyiCurveBudget:
        """The smaller of each number at the orders of this one."""
        known = dict(zip(other.alphas, other.rhos, strict=True))
        pairs = zip(self.alphas, self.rhos, strict=True)
        rhos = tuple(min(rho, known.get(alpha, rho)) for alpha, rho in pairs)
        return RenyiCurveBudget(self.alphas, rhos)

    @remembered_property
    def pld(self) -> Pld:
        """The largest PLD within it, rounded up."""
        return Rdp(self.alphas, self.rhos).pld()


@dataclass(frozen=True)
class ZcdpBudget:
    """`rho`-zCDP, but for probability `delta`."""

    rho: float
    delta: float = 0.0

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers that add up over queries."""
        return self.rho, self.delta

    def at_most(self, other: ZcdpBudget) -> ZcdpBudget:
        """The smaller of each number."""
        return ZcdpBudget(min(self.rho, other.rho), min(self.delta, other.delta))

    @remembered_property
    def pld(self) -> Pld:
        """The largest PLD within it, rounded up."""
        return Zcdp(self.rho, delta=self.delta).pld()
