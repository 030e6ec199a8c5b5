"""A check that cannot fail is worth nothing: filters broken on purpose do not survive the suite."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

import residua as rz
from residua.adversary import attack
from residua.filters.amounts import State, rounded_up
from residua.filters.costs import largest_loss
from residua.filters.decision import Decision, make_decision
from residua.filters.query import Query, loss_of
from residua.filters.residue.update import Budget

CATALOGUES = attack.catalogues()
GRID = np.linspace(-6.0, 6.0, 241)


def caught(filter: rz.Filter) -> list[str]:
    """The catalogues that break a filter."""
    return [
        name
        for name, queries in CATALOGUES.items()
        if name != "smooth" and rz.attack_filter(filter, queries, 3).verdict is rz.Verdict.NO
    ]


@dataclass(frozen=True)
class Walk(rz.Filter):
    """A GDP filter with a step of its own and no check of it."""

    mu: float
    step: Callable[[float, rz.Pld], float | None]

    kind: ClassVar[str] = "walk"

    def initial(self) -> Budget:
        return Budget(self.fingerprint, rz.gaussian(mu=self.mu))

    def _decide(self, state: Budget, query: Query, relation: str | None) -> Decision:
        left = math.sqrt(state.budget._exact_variance)
        after = self.step(left, loss_of(query, relation)) if left > 0.0 else None
        went = None if after is None else Budget(state.of, rz.gaussian(mu=after))
        return make_decision(self, state, went, None, query, relation)

    def remaining_in(self, state: State) -> rz.Pld:
        assert isinstance(state, Budget)
        return state.budget

    @property
    def guarantee(self) -> rz.Pld:
        return rz.gaussian(mu=self.mu)


def _residue(mu: float, loss: rz.Pld, places: np.ndarray) -> float | None:
    """The largest `mu'` with `G_mu' ⊕ L` below `G_mu` at these places, to three digits."""
    x = np.exp(places)
    budget = rz.gaussian(mu=mu).hockey_stick(x)
    for after in np.arange(math.floor(mu * 50) / 50, -0.01, -0.02):
        if np.all((rz.gaussian(mu=max(after, 0.0)) + loss).hockey_stick(x) <= budget + 1e-12):
            return float(max(after, 0.0))
    return None


def right(mu: float, loss: rz.Pld) -> float | None:
    return _residue(mu, loss, GRID)


def wrong_sign(mu: float, loss: rz.Pld) -> float | None:
    """What the query takes is added."""
    after = _residue(mu, loss, GRID)
    return None if after is None else math.sqrt(mu * mu + (mu * mu - after * after))


def right_half_only(mu: float, loss: rz.Pld) -> float | None:
    """Only `x >= 1` is looked at."""
    return _residue(mu, loss, GRID[GRID >= 0.0])


def test_the_step_done_right_survives() -> None:
    for mu in (0.8, 1.0):
        assert caught(Walk(mu, right)) == []


def test_wrong_sign_is_caught() -> None:
    assert {"pure", "asymmetric", "responses"} <= set(caught(Walk(0.8, wrong_sign)))


def test_half_the_curve_is_caught() -> None:
    for mu in (0.8, 1.0):
        assert "minus infinity" in caught(Walk(mu, right_half_only))


class OneDirection(rz.RenyiFilter):
    """Rényi costs of `(P, Q)` alone."""

    def _costs(self, left: tuple[Fraction, ...], loss: rz.Pld) -> tuple[Fraction, ...] | str:
        cost = loss.renyi(self.alpha)
        return (rounded_up(cost),) if math.isfinite(cost) else "infinite"


def test_one_direction_is_caught() -> None:
    assert "minus infinity" in caught(OneDirection(4.0, 0.6))
    assert caught(rz.RenyiFilter(4.0, 0.6)) == []


class Forgetful(rz.PureFilter):
    """Charges half."""

    def _costs(self, left: tuple[Fraction, ...], loss: rz.Pld) -> tuple[Fraction, ...] | str:
        largest = largest_loss(loss)
        return "unbounded" if largest is None else (largest / 2,)


def test_half_price_is_caught() -> None:
    assert {"pure", "approximate", "asymmetric", "gaussian-like"} <= set(caught(Forgetful(1.1)))


@pytest.mark.parametrize("kind", ["pure", "basic", "renyi", "zcdp"])
def test_a_guarantee_that_says_too_little_is_caught(kind: str) -> None:
    """The filter's own rule against half of what it promises."""
    filter = attack.example(kind)
    rule = rz.as_rule(filter, CATALOGUES["pure"])
    assert rz.attack(rule, filter.guarantee, 3).verdict is rz.Verdict.YES
    assert rz.attack(rule, rz.pure_dp(0.4), 3).verdict is rz.Verdict.NO
