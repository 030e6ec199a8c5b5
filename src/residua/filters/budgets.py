"""Budgets that are not one PLD: named amounts, and the largest loss within them."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

from residua.mechanisms.black_boxes import Rdp, Zcdp
from residua.pld.constructors import approximate_dp
from residua.pld.pld import Pld
from residua.work_limit import remembered_property


class _Sums:
    """A budget all of whose numbers add up over queries."""

    @property
    def numbers(self) -> tuple[float, ...]:
        """The numbers that add up over queries."""
        fields: Any = self
        return astuple(fields)

    def at_most(self, other: Any) -> Any:
        """The smaller of each number."""
        return type(self)(*map(min, self.numbers, other.numbers))


@dataclass(frozen=True)
class ApproximateDpBudget(_Sums):
    """`(eps, delta)`."""

    eps: float
    delta: float

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
class ZcdpBudget(_Sums):
    """`rho`-zCDP, but for probability `delta`."""

    rho: float
    delta: float = 0.0

    @remembered_property
    def pld(self) -> Pld:
        """The largest PLD within it, rounded up."""
        return Zcdp(self.rho, delta=self.delta).pld()
