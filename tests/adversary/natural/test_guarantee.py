"""The natural filter's computed guarantee: figures, its lemmas by brute force, and exact games."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import residua as rz
from residua.adversary import guarantee_curve
from residua.adversary.natural_guarantee import (
    Cut,
    Guarantee,
    evaluate,
    moment_bound,
    natural_guarantee,
    rare_jumps,
)
from residua.errors import ArgumentError, ArgumentTypeError


@pytest.fixture(scope="module")
def ladder() -> dict[int, Guarantee]:
    return {k: natural_guarantee(1.0, 1e-6, k) for k in (1, 2, 3, 4, 9, 16, 33, 100, 1000)}


@pytest.mark.parametrize(
    ("eps", "delta", "reached"),
    [
        (1.0, 1e-6, (3.92, 2.76, 2.17)),
        (3.0, 1e-6, (10.23, 8.18, 6.75)),
        (8.0, 1e-5, (26.6, 21.9, 17.8)),
    ],
)
def test_any_number_of_rounds(eps: float, delta: float, reached: tuple[float, ...]) -> None:
    """At 2, 10 and 100 delta."""
    for times, most in zip((2.0, 10.0, 100.0), reached, strict=True):
        found = natural_guarantee(eps, delta, None, times * delta)
        assert found.eps <= most and found.method == "moments"


def test_rounds_never_help_the_guarantee(ladder: dict[int, Guarantee]) -> None:
    values = [ladder[k].eps for k in sorted(ladder)]
    assert values == sorted(values)
    assert values[-1] == natural_guarantee(1.0, 1e-6).eps
    assert [ladder[k].method for k in (1, 2, 3)] == ["one round", "composition", "moments"]


def test_no_worse_than_composing_the_budget(ladder: dict[int, Guarantee]) -> None:
    for k, found in ladder.items():
        assert found.eps <= (k * rz.approximate_dp(1.0, 1e-6)).epsilon(1e-5) + 1e-12


def test_one_round_is_what_is_promised(ladder: dict[int, Guarantee]) -> None:
    assert ladder[1].eps <= 1.0
    assert natural_guarantee(1.0, 1e-6, 1, 1e-6).eps == pytest.approx(1.0, abs=1e-9)


def test_a_larger_target_costs_less_eps() -> None:
    few = [natural_guarantee(1.0, 1e-6, None, t).eps for t in (1e-6, 2e-6, 1e-5, 1e-3)]
    assert all(a >= b for a, b in itertools.pairwise(few)) and few[0] == math.inf


R = rz.approximate_dp
GAMES = {
    "the paper's two queries": (R(1.395, 0.509), (R(0.0847, 0.478), R(1.404, 0.0208)), 2),
    "pure": (R(1.2, 0.02), (rz.pure_dp(0.6), rz.pure_dp(0.9), R(0.0, 0.01)), 3),
    "rare and large": (
        R(0.5, 0.03),
        (rz.from_pair([0.5, 0.45, 0.05], [0.455, 0.495, 0.05]), R(0.2, 0.005), R(1.5, 0.0)),
        3,
    ),
    "asymmetric": (
        R(0.7, 0.04),
        (rz.from_pair([0.5, 0.5], [0.3, 0.7]), rz.from_pair([0.9, 0.1], [0.98, 0.02])),
        3,
    ),
}


@pytest.mark.parametrize("name", GAMES)
def test_exact_games_stay_within_it(name: str) -> None:
    """The worst case of the natural rule, asymmetric queries and both directions included."""
    budget, catalogue, rounds = GAMES[name]
    ((eps, delta),) = [(factor.eps, factor.delta) for factor in budget.terms]
    for queries in (catalogue, tuple(loss.reverse() for loss in catalogue)):
        worst = rz.natural_cost(queries, budget, rounds).worst
        for times in (1.5, 3.0, 10.0):
            target = min(1.0, times * delta)
            found = natural_guarantee(eps, delta, None, target)
            if found.eps < math.inf:
                assert float(worst.below.delta(found.eps)) <= target


def test_the_strongest_known_attack_stays_within_it() -> None:
    attack = rz.adversary.natural_attack(R(1.0, 1e-6), 10)
    for eps in (attack.eps, 1.2, 2.0):
        own = attack.delta if eps == attack.eps else 0.0
        target = max(own, 2e-6)
        assert natural_guarantee(1.0, 1e-6, 10, target).eps >= attack.eps


# -- its lemmas, by brute force -----------------------------------------------------------------


def histories(seed: int, t: float, delta: float) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """Random histories of queries, as losses and masses, whose composition keeps `(t, delta)`."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(40):
        history: list[tuple[np.ndarray, np.ndarray]] = []
        for _ in range(8):
            size = rng.choice([0.1, 0.3, t, 1.5 * t, 2.5 * t]) * rng.uniform(0.5, 1.5)
            rare = rng.choice([1.0, delta / 2, delta, 3 * delta], p=[0.2, 0.3, 0.3, 0.2])
            least = 1 / (1 + math.exp(-size))
            up = least + rng.uniform(0.0, 1.0) * (1 - least) * rng.integers(2)
            p = np.array([rare * up, rare * (1 - up), 1 - rare])
            z = np.array([size, -size, 0.0])
            assert float(p @ np.exp(-z)) <= 1.0 + 1e-12
            if excess([*history, (z, p)], t) <= delta:
                history.append((z, p))
        found.append(history)
    return found


def composed(history: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    z, p = np.zeros(1), np.ones(1)
    for losses, masses in history:
        z, p = np.add.outer(z, losses).ravel(), np.multiply.outer(p, masses).ravel()
        z, at = np.unique(np.round(z, 9), return_inverse=True)
        p = np.bincount(at, p)
    return z, p


def excess(history: list[tuple[np.ndarray, np.ndarray]], t: float) -> float:
    z, p = composed(history)
    return float(p @ np.maximum(1.0 - np.exp(t - z), 0.0))


@pytest.mark.parametrize("seed", range(6))
def test_large_losses_of_a_history_are_rare_and_its_moments_bounded(seed: int) -> None:
    t, delta = 0.5 + 0.1 * seed, 0.01
    met = 0.0
    for history in histories(seed, t, delta):
        for above in (0.3, 0.8, 1.5):
            total = sum(float(p[z > t + above].sum()) for z, p in history)
            assert total <= rare_jumps(above, delta) * (1 + 1e-9)
            met = max(met, total)
        for cut in (Cut(t + 0.4, t + 0.2, 1.0), Cut(t + 0.2, t + 0.1, 1.6)):
            places = (cut.level, cut.level + cut.jump)
            risk = delta * max(math.exp(cut.order * z) / -math.expm1(t - z) for z in places)
            assert risk < 1.0
            bound = math.exp(cut.order * cut.level) / (1.0 - risk)
            kept = [(z[z <= cut.jump], p[z <= cut.jump]) for z, p in history]
            moment = math.prod(float(p @ np.exp(cut.order * z)) for z, p in kept)
            assert moment <= bound
    assert met > 0.0, "some histories have large losses"


@given(
    st.floats(0.01, 20.0), st.floats(-12.0, -1.0), st.floats(0.1, 3.0), st.floats(-9.0, 0.5),
    st.floats(0.01, 1.0),
)  # fmt: skip
def test_a_cut_is_evaluated_from_above(
    t: float, log_delta: float, jump: float, log_level: float, share: float
) -> None:
    """Against fifty digits, and never more than a millionth above."""
    delta, level = 10.0**log_delta, t + 10.0**log_level
    cut = Cut(t + jump, level, -math.log(delta) * share / (level + t + jump))
    target = min(1.0, 20.0 * delta)
    found = evaluate(cut, t, delta, target)
    if found == math.inf:
        return
    with mpmath.workdps(50):
        c = 1 - mpmath.exp(mpmath.mpf(t) - cut.jump)
        rare = 2 * mpmath.mpf(delta) / (c + mpmath.sqrt(c * c - 2 * mpmath.mpf(delta)))
        k = mpmath.mpf(cut.order)
        places = (mpmath.mpf(cut.level), mpmath.mpf(cut.level) + cut.jump)
        risk = delta * max(mpmath.exp(k * z) / (1 - mpmath.exp(t - z)) for z in places)
        moment = mpmath.exp(k * cut.level) / (1 - risk)
        true = mpmath.log(moment * k**k / (k + 1) ** (k + 1) / (target - rare)) / k
        assert found >= true
        assert found <= max(true, 0) * (1 + 1e-6) + 1e-6


@pytest.mark.parametrize(
    ("eps", "delta", "target"),
    [
        (1e-30, 1e-24, 1e-13), (4.7e-104, 1.9e-24, 2.9e-13), (1.0, 1e-40, 1e-39),
        (0.1, 1e-20, 1e-19), (100.0, 1e-60, 1e-59), (0.01, 1e-100, 1e-99), (1.0, 1e-300, 1e-3),
    ],
)  # fmt: skip
def test_extreme_budgets_have_a_finite_guarantee_from_above(
    eps: float, delta: float, target: float
) -> None:
    """Orders up to 1e12, where sizes cancel, and levels next to eps; against eighty digits."""
    cut, found = moment_bound(eps, delta, target)
    assert found < math.inf
    with mpmath.workdps(80):
        c = 1 - mpmath.exp(mpmath.mpf(eps) - cut.jump)
        rare = 2 * mpmath.mpf(delta) / (c + mpmath.sqrt(c * c - 2 * mpmath.mpf(delta)))
        k = mpmath.mpf(cut.order)
        places = (mpmath.mpf(cut.level), mpmath.mpf(cut.level) + cut.jump)
        risk = delta * max(mpmath.exp(k * z) / (1 - mpmath.exp(eps - z)) for z in places)
        log_markov = k * mpmath.log(k) - (k + 1) * mpmath.log(k + 1)
        log_moment = k * cut.level - mpmath.log(1 - risk)
        true = (log_moment + log_markov - mpmath.log(target - rare)) / k
        assert max(true, 0) <= found <= max(true, 0) * (1 + 1e-6) + 1e-6


@pytest.mark.parametrize(
    "cut",
    [
        Cut(1.0, 1.1, 3.0), Cut(1.2, 1.0, 3.0), Cut(1.2, 1.1, 0.0), Cut(1.2, 1.1, -1.0),
        Cut(1.2, 1.1, 50.0), Cut(1.0 + 1e-7, 1.1, 3.0), Cut(math.nan, 1.1, 3.0),
        Cut(1.2, 1.1, math.nan), Cut(1.2, 1.1, 5e-324),
    ],
)  # fmt: skip
def test_cuts_that_prove_nothing(cut: Cut) -> None:
    assert evaluate(cut, 1.0, 1e-6, 1e-5) == math.inf
    assert evaluate(moment_bound(1.0, 1e-6, 1e-5)[0], 1.0, 1e-6, 1e-5) < 2.76


# -- other budgets ------------------------------------------------------------------------------


def test_a_curve_for_an_eps_delta_budget_is_what_the_guarantee_says() -> None:
    budget = R(1.0, 1e-6)
    targets = (2e-6, 1e-5, 1e-4)
    for found, target in zip(guarantee_curve(budget, targets), targets, strict=True):
        assert found.delta == target
        single = natural_guarantee(1.0, 1e-6, None, target)
        assert found.eps <= single.eps * (1 + 1e-6) and found.method == "moments"
    assert guarantee_curve(budget, [1e-5], 2)[0].method == "composition"


@pytest.mark.parametrize("budget", [rz.gaussian(mu=1.0), rz.gaussian(mu=0.3) + R(0.0, 1e-6)])
def test_gaussian_budgets_have_a_guarantee_above_the_known_attack(budget: rz.Pld) -> None:
    attack = rz.adversary.natural_attack(budget, 3, 2.0 * float(budget.epsilon(0.1)))
    (found,) = guarantee_curve(budget, [attack.delta])
    assert attack.eps <= found.eps < math.inf
    curve = guarantee_curve(budget, [1e-3, 1e-2, 0.1])
    assert all(a.eps >= b.eps for a, b in itertools.pairwise(curve))
    assert all(each.eps >= budget.epsilon(each.delta) for each in curve)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((0.0, 1e-6, 10), ArgumentError),
        ((float("nan"), 1e-6, 10), ArgumentError),
        ((1.0, 0.0, 10), ArgumentError),
        ((1.0, 1.0, 10), ArgumentError),
        ((1.0, 1e-6, 0), ArgumentError),
        ((1.0, 1e-6, -1), ArgumentError),
        ((1.0, 1e-6, 2.5), ArgumentTypeError),
        ((1.0, 1e-6, 10, 1e-7), ArgumentError),
        (("1", 1e-6, 10), ArgumentTypeError),
    ],
)
def test_bad_input_is_named(arguments: tuple[float, ...], error: type[Exception]) -> None:
    with pytest.raises(error, match=r"eps|delta|rounds|target_delta"):
        natural_guarantee(*arguments)


@pytest.mark.parametrize("targets", [[0.0], [1.5], ["x"], 1e-5, [float("nan")]])
def test_bad_targets_are_named(targets: object) -> None:
    with pytest.raises(rz.ResiduaError, match="target_deltas"):
        guarantee_curve(R(1.0, 1e-6), targets)


@pytest.mark.parametrize(("eps", "delta"), [(50.0, 1e-6), (1.0, 5e-324), (1e-200, 1e-6)])
def test_extremes_are_answered_without_a_warning(eps: float, delta: float) -> None:
    """Warnings are errors here."""
    found = rz.natural_guarantee(eps, delta, 3)
    assert 0.0 <= found.eps <= 3 * eps * (1 + 1e-9) and found.delta >= delta
    assert rz.natural_guarantee(eps, delta).eps >= 0.0


def test_an_eps_too_small_is_named() -> None:
    with pytest.raises(rz.ArgumentError, match="eps must be between 1e-250 and 100, got 1e-300"):
        rz.natural_guarantee(1e-300, 1e-6, 3)
