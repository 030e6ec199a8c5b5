"""Rules that do not keep what they promise are caught, with the adversary that breaks them."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

import residua as rz
from residua.adversary.attack import Attack
from residua.adversary.finite import finite_atoms
from residua.adversary.rule import FilterRule, PlanRule
from residua.adversary.unsound.any_order_renyi import (
    AnyOrderRenyi,
    fitted_query,
    optimal_renyi_budget,
)
from residua.adversary.unsound.demonstrations import (
    UNSOUND,
    CancelByReplay,
    SeveralBudgets,
)
from residua.filters.target import renyi_budget
from residua.pld.constructors import from_exact
from residua.pld.lattice import exact_supremum

RULES = {rule.name: rule for rule in UNSOUND}


@pytest.fixture(scope="module")
def caught() -> dict[str, Attack]:
    return {name: rule.attack() for name, rule in RULES.items()}


@pytest.mark.parametrize("name", RULES)
def test_caught(name: str, caught: dict[str, Attack]) -> None:
    found = caught[name]
    assert found.verdict is rz.Verdict.NO
    assert found.violation > 0.0 and found.witness is not None and found.strategy is not None
    reached = found.strategy.exact("below", RULES[name].accuracy).hockey_stick(
        Fraction(found.witness)
    )
    promised = found.guarantee.hockey_stick(found.witness)
    assert float(reached) - promised >= found.violation * (1 - 1e-9), "the adversary does it"


def _ratio(found: Attack) -> float:
    return 1.0 + found.violation / found.guarantee.hockey_stick(found.witness)


def test_how_bad_each_is(caught: dict[str, Attack]) -> None:
    assert _ratio(caught["Rényi at whichever order is best"]) >= 1.25
    optimal = caught["Rényi at whichever order is best, optimal conversion"]
    assert _ratio(optimal) >= 1.2
    assert _ratio(optimal) == pytest.approx(1.229, abs=1e-3)
    assert _ratio(caught["several budgets at once"]) == pytest.approx(1.75, abs=0.02)
    assert caught["natural, approximate queries and budget"].violation == pytest.approx(
        0.088, abs=5e-4
    )
    assert caught["natural, pure queries in 3 rounds"].violation == pytest.approx(0.025, abs=5e-4)
    assert caught["natural, a degenerate query"].violation == pytest.approx(0.054, abs=5e-4)
    assert caught["natural, Gaussian budget"].violation > 0.02
    assert caught["natural, approximate Gaussian budget"].violation > 0.02


def test_pure_queries_in_two_rounds_are_not_caught() -> None:
    rule, promise = RULES["natural, pure queries in 3 rounds"].make()
    assert rz.attack(rule, promise, 2).verdict is rz.Verdict.YES


@pytest.mark.parametrize("name", ["", ", optimal conversion"])
def test_one_order_fixed_in_advance_is_sound(name: str) -> None:
    """The same queries against each order alone."""
    rule, promise = RULES["Rényi at whichever order is best" + name].make()
    assert isinstance(rule, AnyOrderRenyi)
    for order in rule.orders:
        alone = AnyOrderRenyi(1.0, 1e-3, (order,), rule.catalogue, rule.conversion)
        assert rz.attack(alone, promise, 2).verdict is rz.Verdict.YES


@pytest.mark.parametrize(
    ("alpha", "eps", "delta"),
    [(3.0, 1.0, 1e-3), (20.0, 1.0, 1e-3), (1.5, 0.3, 0.1), (8.0, 2.0, 1e-6), (8.0, 1.0, 0.5)],
)
def test_the_optimal_conversion_is_the_least_divergence_of_two_coins(
    alpha: float, eps: float, delta: float
) -> None:
    """By search in many digits: more than the usual conversion, and no coins are below it."""
    a, e, d = (Fraction(str(v)) for v in (alpha, eps, delta))
    rho = optimal_renyi_budget(a, e, d)
    assert rho >= renyi_budget(a, e, d)
    with mp.workdps(40):
        slope, least_p = mp.exp(mp.mpf(str(eps))), mp.mpf(str(delta))

        def divergence(t: object) -> object:
            q = mp.exp(t)
            return _coin_divergence(alpha, least_p + slope * q, q)

        low, high = mp.mpf(-40), mp.log((1 - least_p) / slope) - mp.mpf(10) ** -25
        for _ in range(250):
            one, two = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, two) if divergence(one) < divergence(two) else (one, high)
        least, exact = divergence(high), mp.mpf(rho.numerator) / rho.denominator
        assert exact <= least
        assert least - exact <= mp.mpf(10) ** -15


def test_the_attack_on_the_optimal_conversion_by_hand() -> None:
    """`R_0.05`, then a coin fitted to order 20 after a positive loss, to order 3 after a negative.

    The catalogue's coins are taken as they are; their divergences and the value are recomputed.
    """
    rule, _ = RULES["Rényi at whichever order is best, optimal conversion"].make()
    assert isinstance(rule, AnyOrderRenyi)
    tops = [_upper_loss(coin) for coin in rule.losses[1:]]
    near, far = {3.0: tops[0], 20.0: tops[2]}, {3.0: tops[1], 20.0: tops[3]}
    with mp.workdps(40):
        up = 1 / (1 + mp.exp(-mp.mpf(0.05)))
        for order, budget in zip(rule.orders, rule.budgets, strict=True):
            left = mp.mpf(budget.numerator) / budget.denominator
            left -= _coin_divergence(order, up, 1 - up)
            for p, q in (near[order], far[order]):
                assert max(_coin_divergence(order, p, q), _coin_divergence(order, q, p)) <= left
        reached = mp.mpf(0)
        for mass, eps, coins, order in ((up, 0.95, near, 20.0), (1 - up, 1.05, far, 3.0)):
            heights = {o: p - mp.exp(mp.mpf(eps)) * q for o, (p, q) in coins.items()}
            assert heights[order] == max(heights.values())
            reached += mass * heights[order]
        assert 1.2 < reached / mp.mpf("1e-3") < 1.25


def _upper_loss(coin: rz.Pld) -> tuple[object, object]:
    """The masses of a coin's upper loss."""
    exact = finite_atoms(coin, "above")
    assert len(exact) == 2
    return mp.mpf(exact.p[1]) / exact.p_den, mp.mpf(exact.q[1]) / exact.q_den


def _coin_divergence(alpha: float, p: object, q: object) -> object:
    powers = p**alpha * q ** (1 - alpha) + (1 - p) ** alpha * (1 - q) ** (1 - alpha)
    return mp.log(powers) / (alpha - 1)


def test_a_fitted_query_stays_within_its_divergence() -> None:
    for order, rho in ((9.0, 0.5), (40.0, 0.9), (3.0, 0.2)):
        query = fitted_query(order, rho, math.e)
        assert query.renyi(order) <= rho and query.reverse().renyi(order) <= rho
        assert query.renyi(order) > 0.999 * rho


def test_each_of_several_budgets_is_sound_alone() -> None:
    rule, promise = RULES["several budgets at once"].make()
    for alone in rule.rules:  # type: ignore[attr-defined]
        assert isinstance(alone, PlanRule)
        assert sum(alone.losses[1:], alone.losses[0]) <= promise
        assert rz.worst_case(alone).below.delta(1.0) <= 1e-6


def test_a_union_keeps_the_sum_of_the_deltas_and_no_less() -> None:
    """Twelve `R_.05` and then `G_.1714` or `R_.405` at `R_{1,1e-6}`: 1.75 of one shared delta."""
    rule, promise = RULES["a union with one shared delta"].make()
    assert isinstance(rule, FilterRule) and isinstance(rule.filter, rz.UnionFilter)
    union = rule.filter
    assert max(union.deltas) <= 1e-6
    for component in union.filters:
        alone = rz.attack(rz.as_rule(component, rule.catalogue), rz.approximate_dp(1.0, 1e-6), 2)
        assert alone.verdict is rz.Verdict.YES
    found = rz.attack(rule, promise, 2)
    assert _ratio(found) == pytest.approx(1.75, abs=0.02)
    assert rz.attack(rule, union.guarantee, 2).verdict is rz.Verdict.YES


def test_stopped_components_that_stay_stopped_are_sound() -> None:
    rule, promise = RULES["a union whose components come back"].make()
    assert isinstance(rule, SeveralBudgets) and not rule.close_others
    components = [each for each in rule.rules if isinstance(each, FilterRule)]
    union = rz.UnionFilter([each.filter for each in components])
    found = rz.attack_filter(union, components[0].catalogue, 3, accuracy=1e-2)
    assert found.verdict is not rz.Verdict.NO and found.guarantee == promise
    assert rz.attack(rule, promise, 2, accuracy=1e-2).violation > 0.1


def test_random_unions_keep_the_sum_and_revived_ones_do_not() -> None:
    """Small exact systems, in which every violation would be proven."""
    caught = 0
    for seed in range(60):
        union, queries = _random_union(random.Random(seed))
        assert rz.attack_filter(union, queries, 3).verdict is rz.Verdict.YES, seed
        components = [rz.as_rule(each, queries) for each in union.filters]
        rule = SeveralBudgets(components, close_others=False)
        revived = rz.attack(rule, union.guarantee, 3)
        caught += revived.verdict is rz.Verdict.NO
    assert caught >= 5


def _random_union(chance: random.Random) -> tuple[rz.UnionFilter, tuple[rz.Pld, ...]]:
    queries = tuple(_coin(chance) for _ in range(3))
    parts: list[rz.Filter] = []
    for _ in range(chance.choice((2, 3))):
        kind = chance.choice(("pure", "pure", "basic", "basic", "renyi", "zcdp"))
        size = chance.choice((0.2, 0.3, 0.5))
        if kind == "pure":
            parts.append(rz.PureFilter(size))
        elif kind == "basic":
            parts.append(rz.BasicFilter(size, chance.choice((0.0, 0.02))))
        elif kind == "renyi":
            parts.append(rz.RenyiFilter(chance.choice((2.0, 8.0)), size / 8))
        else:
            parts.append(rz.ZcdpFilter(size / 16))
    return rz.UnionFilter(tuple(parts), eps=0.5), queries


def _coin(chance: random.Random) -> rz.Pld:
    """A coin of a random bias, some with a chance to reveal everything."""
    p, lost = chance.randint(34, 40), chance.choice((0, 0, 1))
    return rz.from_pair(
        [p / 64, (64 - lost - p) / 64, lost / 64, 0.0],
        [(64 - lost - p) / 64, p / 64, 0.0, lost / 64],
    )


def test_replay_has_the_known_numbers() -> None:
    """`G_1`, `R_0.7` reserved, `R_0.5` run: delta(0.53) is 0.23519 where 0.23064 is promised."""
    rule, promise = RULES["a ledger that cancels by replay"].make()
    worst = rz.worst_case(rule, 4, accuracy=3e-3)
    x = math.exp(0.53)
    assert promise.hockey_stick(x) == pytest.approx(0.23064, abs=5e-6)
    bounds = worst.hockey_stick_bounds(x)
    assert 0.23519 in bounds and float(bounds.width) < 2e-4


def test_the_ledger_without_replay_is_sound() -> None:
    """The same filter and queries, folded in the order they run."""
    rule, promise = RULES["a ledger that cancels by replay"].make()
    assert isinstance(rule, CancelByReplay)
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
