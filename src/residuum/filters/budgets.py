"""Budgets that are not one PLD: named amounts, and the largest loss within them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from residuum.mechanisms.rdp import Rdp
from residuum.mechanisms.zcdp import Zcdp
from residuum.pld.constructors import approximate_dp
from residuum.pld.value import Pld


@dataclass(frozen=True)
class ApproximateDpBudget:
    """`(eps, delta)`."""

    eps: float
    delta: float

    @cached_property
    def pld(self) -> Pld:
        """The largest PLD within it."""
        return approximate_dp(self.eps, self.delta)


@dataclass(frozen=True)
class RenyiBudget:
    """Rényi divergence at most `rho` at the order `alpha`, in both directions."""

    alpha: float
    rho: float

    @cached_property
    def pld(self) -> Pld:
        """The largest PLD within it, rounded up."""
        return Rdp((self.alpha,), (self.rho,)).pld()


@dataclass(frozen=True)
class RenyiCurveBudget:
    """Rényi divergence at most `rhos[i]` at every order `alphas[i]`, in both directions."""

    alphas: tuple[float, ...]
    rhos: tuple[float, ...]

    @cached_property
    def pld(self) -> Pld:
        """The largest PLD within it, rounded up."""
        return Rdp(self.alphas, self.rhos).pld()


@dataclass(frozen=True)
class ZcdpBudget:
    """`rho`-zCDP, but for probability `delta`."""

    rho: float
    delta: float = 0.0

    @cached_property
    def pld(self) -> Pld:
        """The largest PLD within it, rounded up."""
        return Zcdp(self.rho, delta=self.delta).pld()
