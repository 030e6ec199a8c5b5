"""Rules that do not keep what they promise are caught, with the adversary that breaks them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import residuum as rz
from residuum.adversary import suite
from residuum.adversary.any_order_renyi import fitted_query
from residuum.adversary.attack import Attack
from residuum.adversary.finite import finite_atoms
from residuum.adversary.plan_rule import PlanRule
from residuum.adversary.replay_rule import ReplayRule
from residuum.pld.constructors import from_exact
from residuum.pld.lattice import exact_supremum

UNSOUND = {rule.name: rule for rule in suite.UNSOUND}


@pytest.fixture(scope="module")
def caught() -> dict[str, Attack]:
    return {name: rule.attack() for name, rule in UNSOUND.items()}


@pytest.mark.parametrize("name", UNSOUND)
def test_caught(name: str, caught: dict[str, Attack]) -> None:
    found = caught[name]
    assert found.verdict is rz.Verdict.NO
    assert found.gap > 0.0 and found.x is not None and found.strategy is not None
    reached = found.strategy.exact("below", UNSOUND[name].accuracy).hockey_stick(Fraction(found.x))
    promised = found.guarantee.hockey_stick(found.x)
    assert float(reached) - promised >= found.gap * (1 - 1e-9), "the adversary does it"


def _ratio(found: Attack) -> float:
    return 1.0 + found.gap / found.guarantee.hockey_stick(found.x)


def test_how_bad_each_is(caught: dict[str, Attack]) -> None:
    assert _ratio(caught["Rényi at whichever order is best"]) >= 1.25
    assert _ratio(caught["several budgets at once"]) == pytest.approx(1.75, abs=0.02)
    assert caught["natural, approximate queries and budget"].gap == pytest.approx(0.088, abs=5e-4)
    assert caught["natural, pure queries in 3 rounds"].gap == pytest.approx(0.025, abs=5e-4)
    assert caught["natural, a degenerate query"].gap == pytest.approx(0.054, abs=5e-4)
    assert caught["natural, Gaussian budget"].gap > 0.02
    assert caught["natural, approximate Gaussian budget"].gap > 0.02


def test_pure_queries_in_two_rounds_are_not_caught() -> None:
    rule, promise = UNSOUND["natural, pure queries in 3 rounds"].make()
    assert rz.attack(rule, promise, 2).verdict is rz.Verdict.YES


def test_one_order_fixed_in_advance_is_sound() -> None:
    """The same queries against each order alone."""
    rule, promise = UNSOUND["Rényi at whichever order is best"].make()
    for order in (9.0, 40.0):
        alone = type(rule)(1.0, 1e-3, (order,), rule.catalogue)  # type: ignore[attr-defined, call-arg]
        assert rz.attack(alone, promise, 2).verdict is rz.Verdict.YES


def test_a_fitted_query_stays_within_its_divergence() -> None:
    for order, rho in ((9.0, 0.5), (40.0, 0.9), (3.0, 0.2)):
        query = fitted_query(order, rho, math.e)
        assert query.renyi(order) <= rho and query.reverse().renyi(order) <= rho
        assert query.renyi(order) > 0.999 * rho


def test_each_of_several_budgets_is_sound_alone() -> None:
    rule, promise = UNSOUND["several budgets at once"].make()
    for alone in rule.rules:  # type: ignore[attr-defined]
        assert isinstance(alone, PlanRule)
        assert sum(alone.losses[1:], alone.losses[0]) <= promise
        assert rz.worst_case(alone).below.delta(1.0) <= 1e-6


def test_replay_has_the_known_numbers() -> None:
    """`G_1`, `R_0.7` reserved, `R_0.5` run: delta(0.53) is 0.23519 where 0.23064 is promised."""
    rule, promise = UNSOUND["a ledger that cancels by replay"].make()
    worst = rz.worst_case(rule, 4, accuracy=3e-3)
    x = math.exp(0.53)
    assert promise.hockey_stick(x) == pytest.approx(0.23064, abs=5e-6)
    bounds = worst.hockey_stick_bounds(x)
    assert 0.23519 in bounds and float(bounds.width) < 2e-4


def test_the_ledger_without_replay_is_sound() -> None:
    """The same filter and queries, folded in the order they run."""
    rule, promise = UNSOUND["a ledger that cancels by replay"].make()
    assert isinstance(rule, ReplayRule)
    left = rule.filter.decide(rule.filter.initial(), rule.losses[1]).remaining
    found = rz.attack_filter(rule.filter, (*rule.losses, left), 3, accuracy=1e-2)
    assert left <= promise
    assert found.verdict is not rz.Verdict.NO


def test_replay_of_a_gaussian() -> None:
    """`G_2`, `R_1` reserved, `G_1.5` run: 0.4775 where 0.4735 is promised.

    A Gaussian needs no grid beside a finite PLD, so the two futures alone are rounded, down.
    """
    office = rz.GdpResidueFilter(mu=2.0)
    ran, held = rz.gaussian(mu=1.5), rz.pure_dp(1.0)
    both = office.decide(office.decide(office.initial(), held).state, ran).remaining
    cancelled = office.decide(office.initial(), ran).remaining
    futures = [finite_atoms(after, "below") for after in (held + both, cancelled)]
    reached = ran + from_exact(exact_supremum(*futures))
    eps = np.linspace(0.5, 1.5, 41)
    gaps = reached.delta_bounds(eps).lo - office.guarantee.delta_bounds(eps).hi
    best = int(np.argmax(gaps))
    assert reached.delta(eps[best]) == pytest.approx(0.4775, abs=2e-3)
    assert gaps[best] == pytest.approx(0.0040, abs=3e-4)
