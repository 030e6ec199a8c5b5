"""The strongest known adversary of the natural filter: what it reaches, and that it may."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

import residua as rz
from residua.adversary import strongest
from residua.adversary.strongest import natural_attack
from residua.pld.order.compare import dominated

BUDGET = rz.approximate_dp(1.0, 1e-6)


def test_two_queries_reach_five_times_delta_and_ten_reach_ten() -> None:
    reached = [natural_attack(BUDGET, k).ratio for k in (2, 5, 10)]
    assert reached[0] > 5.0 and reached[1] > 8.0 and reached[2] > 10.0


@pytest.mark.parametrize(
    ("budget", "eps", "least"),
    [
        (rz.gaussian(mu=1.0), 3.0, 1.6),
        (rz.gaussian(mu=0.5) + rz.approximate_dp(0.0, 1e-4), 2.0, 1.3),
        (rz.approximate_dp(0.1, 1e-9), None, 3.0),
        (rz.approximate_dp(8.0, 1e-5), None, 2.0),
    ],
)
def test_other_budgets(budget: rz.Pld, eps: float | None, least: float) -> None:
    found = natural_attack(budget, 3, eps)
    assert found.ratio > least
    assert found.promised == float(budget.delta(found.eps))


@pytest.mark.parametrize("budget", [BUDGET, rz.gaussian(mu=1.0)])
def test_the_natural_filter_admits_all_that_it_asks(budget: rz.Pld) -> None:
    found = natural_attack(budget, 3, 1.5)
    for block in found.blocks:
        spent = block.copies * rz.pure_dp(found.size)
        assert len(block.last) == block.copies + 1 and len(block.endings) > 1
        for ending in block.endings:
            assert ending.is_symmetric and dominated(spent + ending, budget).proven


def test_small_queries_that_are_not_proven_to_fit_are_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Too many of them by floats that are off: the block is left out, or nothing is claimed."""
    size_for = strongest._Game._size_for
    monkeypatch.setattr(
        strongest._Game, "_size_for", lambda game, copies: 1.02 * size_for(game, copies)
    )
    monkeypatch.setattr(strongest._Game, "_choose", _choose_whatever_fits)
    found = natural_attack(BUDGET, 5)
    for block in found.blocks:
        assert dominated(block.copies * rz.pure_dp(found.size), BUDGET).proven


def _choose_whatever_fits(
    game: strongest._Game, size: float, copies: int, _sizes: int
) -> strongest._Choice:
    """A last query of hardly any probability, whether the small ones fit or not."""
    height = strongest._complement(strongest._losses(size, copies) - game.eps)
    best = np.zeros(copies + 1, dtype=int)
    return strongest._Choice(np.array([1.0]), np.array([1e-12]), best, height)


def small_attack(monkeypatch: pytest.MonkeyPatch, rounds: int) -> strongest.NaturalAttack:
    monkeypatch.setattr(strongest, "FEW_COPIES", 24)
    monkeypatch.setattr(strongest, "MOST_COPIES", 24)
    monkeypatch.setattr(strongest, "FIRST_LOOKS", (0.4, 0.6))
    return natural_attack(BUDGET, rounds)


@pytest.mark.parametrize("rounds", [2, 3])
def test_its_strategy_written_out_reaches_the_same(
    monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    """The law of the whole interaction, in rationals."""
    found = small_attack(monkeypatch, rounds)
    assert found.rounds == rounds and found.ratio > 4.0
    reached = float(found.strategy().pld().delta_bounds(found.eps).lo)
    assert found.delta <= reached <= found.delta * (1 + 1e-6)


def test_the_worst_case_of_the_rule_is_no_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """The natural rule over just the queries that it may ask."""
    found = small_attack(monkeypatch, 2)
    (block,) = found.blocks
    first = block.copies * rz.pure_dp(found.size)
    endings = sorted({block.endings[k] for k in block.last if k > 0}, key=str)
    cost = rz.natural_cost([first, *endings], BUDGET, 2, limit=10_000)
    assert cost.verdict is rz.Verdict.NO
    assert float(cost.worst.below.delta(1.0)) >= found.delta * (1 - 1e-9)


def test_playing_it_agrees() -> None:
    """Simulated with the real bit: the tail above eps, weighted, within five standard errors."""
    found = natural_attack(rz.approximate_dp(1.0, 0.01), 3)
    rng = np.random.default_rng(7)
    runs = 200_000
    loss, copies, over = np.zeros(runs), 0, np.zeros(runs, dtype=bool)
    for block in found.blocks:
        ups = rng.binomial(block.copies - copies, 1 / (1 + math.exp(-found.size)), runs)
        loss = np.where(over, loss, loss + found.size * (2 * ups - (block.copies - copies)))
        copies = block.copies
        place = np.clip(np.rint((loss / found.size + copies) / 2).astype(int), 0, copies)
        choice = np.where(over, -1, np.array(block.last)[place])
        for number, ending in enumerate(block.endings):
            mine = choice == number
            if ending.is_identity:
                continue
            atoms = next(iter(ending.terms)).exact
            p = np.array([x / atoms.p_den for x in atoms.p])
            z = np.array([math.log(atoms.kink(i)) for i in range(len(atoms))])
            loss[mine] += rng.choice(z, mine.sum(), p=p / p.sum())
        over |= choice >= 0
    gains = np.maximum(1.0 - np.exp(found.eps - loss), 0.0)
    assert abs(gains.mean() - found.delta) < 5.0 * gains.std() / math.sqrt(runs)


def test_more_rounds_reach_more() -> None:
    reached = [natural_attack(BUDGET, k).delta for k in (2, 3, 5, 8)]
    assert all(b > a for a, b in itertools.pairwise(reached))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: natural_attack(1.0, 3), "budget must be"),
        (lambda: natural_attack(BUDGET, 1), "rounds must be between 2 and 1000, got 1"),
        (lambda: natural_attack(BUDGET, 2.5), "rounds"),
        (lambda: natural_attack(rz.gaussian(mu=1.0), 3), "eps must be given"),
        (lambda: natural_attack(BUDGET, 3, math.nan), "eps must be"),
        (lambda: natural_attack(BUDGET, 3, -1.0), "eps must be"),
        (lambda: natural_attack(rz.pure_dp(1.0), 3), "eps must be where delta is between 0 and 1"),
        (lambda: natural_attack(rz.identity(), 3, 1.0), "eps must be where delta is between"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], said: str) -> None:
    with pytest.raises(rz.ResiduaError, match=said):
        call()
