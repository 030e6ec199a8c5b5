"""Adversaries: what a tree costs, that the best one attains the value, on paper and for real."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

import adversary_oracles as oracles
import residua as rz
from adversary.games import catalogue, sequence
from residua.adversary.simulate import interval
from residua.adversary.strategy import STOP

COIN = rz.from_pair([0.25, 0.75], [0.75, 0.25])
TORN = rz.from_pair([0.5, 0.25, 0.25, 0.0], [0.25, 0.5, 0.0, 0.25])


def test_a_tree_written_by_hand() -> None:
    """`h` at a threshold by hand: one answer says stop, the other ask again."""
    tree = rz.Strategy(COIN, (STOP, rz.Strategy(TORN)))
    exact = tree.exact("above")
    x = Fraction(2)
    low = max(Fraction(1, 4) - x * Fraction(3, 4), Fraction(0))
    first = Fraction(3, 4) * (Fraction(1, 4) + max(Fraction(1, 2) - x * Fraction(1, 12), 0))
    second = Fraction(3, 4) * max(Fraction(1, 4) - x * Fraction(1, 6), Fraction(0))
    assert exact.hockey_stick(x) == low + first + second
    assert tree.pld() == rz.from_pair(*tree.pld().pair())


@pytest.mark.parametrize("seed", range(8))
def test_law_of_a_tree_is_that_of_brute_force(seed: int) -> None:
    one, two = catalogue(seed + 40, size=3)
    then = tuple(
        rz.Strategy(two) if i % 2 else sequence([two, one]) for i in range(len(one._atoms.exact))
    )
    tree = rz.Strategy(one, then)
    law = oracles.strategy_law(tree)
    exact = tree.exact("below")
    for x in (Fraction(1, 5), Fraction(3, 4), Fraction(1), Fraction(7, 3)):
        assert exact.hockey_stick(x) == oracles.hockey_stick(law, x)
    assert sum(p for p, _ in law) == sum(q for _, q in law) == 1


@pytest.mark.parametrize("seed", range(6))
def test_the_best_tree_attains_the_value(seed: int) -> None:
    one, two = catalogue(seed + 70, size=3)
    budget = rz.supremum([one + two, one + one, two + two])
    worst = rz.worst_case(rz.NaturalRule([one, two], budget), 3)
    for x in (0.3, 0.9, 1.0, 1.7, 4.0):
        tree = worst.strategy(x)
        reached = tree.exact("below").hockey_stick(Fraction(x))
        assert reached == worst.sides[1].hockey_stick(Fraction(x))


def test_irrational_and_continuous_queries_attain_the_lower_side() -> None:
    rule = rz.NaturalRule([rz.pure_dp(0.5), rz.gaussian(mu=0.8)], rz.gaussian(mu=1.0))
    worst = rz.worst_case(rule, 2, accuracy=0.05)
    x = math.exp(0.5)
    tree = worst.strategy(x)
    reached = tree.exact("below", 0.05).hockey_stick(Fraction(x))
    assert reached >= worst.sides[1].hockey_stick(Fraction(x)) - Fraction(1, 10**18)
    assert Fraction(worst.hockey_stick_bounds(x).hi) >= reached


def test_sides_of_an_irrational_tree_enclose_its_curve() -> None:
    """A first answer that is followed differently: rounding it has no side, so a margin is kept."""
    first, second = rz.pure_dp(1.0), rz.pure_dp(0.7)
    tree = rz.Strategy(first, (rz.Strategy(second), STOP))
    for x in (Fraction(1, 3), Fraction(1), Fraction(5, 4), Fraction(2)):
        with mp.workdps(60):
            e = mp.exp(1)
            up, down, at = e / (1 + e), 1 / (1 + e), mp.mpf(x.numerator) / x.denominator
            after = _response(mp.mpf(0.7), at * up / down)
            true = down * after + max(up - at * down, mp.mpf(0))
            low, high = (
                mp.mpf(v.numerator) / v.denominator
                for v in (tree.exact(side).hockey_stick(x) for side in ("below", "above"))
            )
            assert low < true < high
            assert high - low < 1e-17


def _response(eps: object, x: object) -> object:
    """`h(x)` of `R_eps` by mpmath."""
    e = mp.exp(eps)
    return max(e / (1 + e) - x / (1 + e), mp.mpf(0)) + max(1 / (1 + e) - x * e / (1 + e), mp.mpf(0))


def test_order_of_a_sequence_does_not_matter() -> None:
    one, two = catalogue(3, size=3)
    forth, back = sequence([one, two, two]), sequence([two, one, two])
    assert forth.pld() == back.pld() == rz.from_pair(*(one + 2 * two).pair()) or (
        forth.exact("above").same(back.exact("above"))
    )


def test_trees_are_readable() -> None:
    tree = rz.Strategy(rz.pure_dp(1.0), (rz.Strategy(rz.pure_dp(0.5)), STOP))
    assert str(tree) == "ask pure_dp(1.0)\n  loss -1: ask pure_dp(0.5)\n  loss +1: stop"
    assert tree.to_dict() == {
        "ask": "pure_dp(1.0)",
        "then": [{"after_loss": pytest.approx(-1.0), "ask": "pure_dp(0.5)"}],
    }


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: rz.Strategy(1.0), "query must be a Pld"),
        (lambda: rz.Strategy(COIN, (STOP,)), "each of the 2 finite losses"),
        (lambda: rz.Strategy(COIN, (STOP, 3)), r"then\[1\] must be a Strategy"),
        (lambda: rz.Strategy(rz.gaussian(mu=1.0), (STOP,)), "seen must be a finite PLD.*got None"),
        (lambda: rz.Strategy(COIN, (), rz.gaussian(mu=1.0)), "seen must be a finite PLD"),
        (lambda: rz.Strategy(COIN, (), 2 * COIN), "seen must be dominated by"),
        (lambda: rz.simulate(COIN, 1.0), "strategy must be a Strategy"),
        (lambda: rz.simulate(STOP, 0.0), "x must be positive"),
        (lambda: rz.simulate(STOP, 1.0, samples=1), "samples must be 2 or more"),
        (lambda: rz.simulate(STOP, 1.0, COIN), "filter must be a Filter"),
    ],
)
def test_bad_input_is_refused_by_name(call: object, said: str) -> None:
    with pytest.raises(rz.ResiduaError, match=said):
        call()


# -- played for real ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broken() -> rz.Attack:
    """The first counterexample: approximate queries, approximate budget."""
    queries = [rz.approximate_dp(0.0847, 0.478), rz.approximate_dp(1.404, 0.0208)]
    return rz.natural_cost(queries, rz.approximate_dp(1.395, 0.509), 2)


@pytest.mark.parametrize("seed", range(5))
def test_simulation_agrees_with_the_exact_value(broken: rz.Attack, seed: int) -> None:
    assert broken.strategy is not None and broken.witness is not None
    played = rz.simulate(broken.strategy, broken.witness, samples=50_000, seed=seed)
    exact = broken.worst.hockey_stick_bounds(broken.witness)
    assert exact.lo in played.interval and exact.hi in played.interval
    assert played.interval.lo > 0.509, "the violation is seen, not only computed"
    assert played.refused == 0


def test_simulation_against_the_filter_itself(broken: rz.Attack) -> None:
    assert broken.strategy is not None and broken.witness is not None
    queries = (rz.approximate_dp(0.0847, 0.478), rz.approximate_dp(1.404, 0.0208))
    natural = rz.NaturalFilter(rz.approximate_dp(1.395, 0.509), 2, queries)
    through = rz.simulate(broken.strategy, broken.witness, natural, samples=50_000, seed=7)
    assert through.refused == 0
    assert through.interval.lo > 0.509
    sound = rz.BasicFilter(1.41, 0.5)
    stopped = rz.simulate(broken.strategy, broken.witness, sound, samples=50_000, seed=7)
    assert stopped.refused > 0
    assert stopped.interval.hi <= sound.guarantee.hockey_stick(broken.witness) + 0.02


def test_interval_holds_its_confidence() -> None:
    """Coins of one kind, at 90 %: the interval misses in fewer than a tenth of the trials."""
    chance = np.random.default_rng(11)
    for mean in (0.02, 0.3, 0.9):
        missed = 0
        for _ in range(300):
            heads = chance.binomial(60, mean)
            bounds = interval(np.array([0.0, 1.0]), np.array([60 - heads, heads]), 0.1)
            missed += mean not in bounds
        assert missed <= 30


def test_interval_is_nearly_clopper_pearson() -> None:
    from scipy.stats import beta

    low, high = beta.ppf(0.005, 30, 971), beta.ppf(0.995, 31, 970)
    bounds = interval(np.array([0.0, 1.0]), np.array([970, 30]), 0.01)
    assert bounds.lo < low and bounds.hi > high
    assert float(bounds.width) < 1.3 * (high - low)
