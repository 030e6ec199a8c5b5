"""Compositions that grow with a read after each query, against pure reads of the same PLD."""

from __future__ import annotations

from threading import Thread

import numpy as np
import pytest
from mpmath import mpf

import mixture_oracles
import oracles
import residua as rz
from mixture_oracles import Blend
from residua.errors import ArgumentError, ArgumentTypeError

QUERIES = [
    rz.gaussian(sigma=20.0),
    rz.laplace(scale=12.0),
    rz.pure_dp(0.07),
    rz.bounded_range(0.2),
    rz.approximate_dp(0.05, 0.0),
    rz.from_pair([0.3, 0.5, 0.2], [0.25, 0.5, 0.25]),
]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_mixed_queries(seed: int) -> None:
    rng = np.random.default_rng([70, seed])
    running = rz.RunningComposition(rz.gaussian(sigma=float(rng.uniform(1.0, 9.0))))
    for place in rng.integers(len(QUERIES), size=30).tolist():
        running.compose(QUERIES[place])
        found, pure = running.delta_bounds(1.0), running.pld.delta_bounds(1.0)
        assert found.lo <= pure.hi and pure.lo <= found.hi
        assert found.width <= 1e-6 * found.hi
    for eps in (-0.5, 0.0, 0.5, 1.0, 2.0, 3.5):
        found, pure = running.delta_bounds(eps), running.pld.delta_bounds(eps)
        assert found.lo <= pure.hi and pure.lo <= found.hi
    for delta in (1e-9, 1e-5, 0.1):
        found, pure = running.epsilon_bounds(delta), running.pld.epsilon_bounds(delta)
        assert found.lo <= pure.hi and pure.lo <= found.hi
        assert found.hi - found.lo <= 1e-6


def test_sampled_queries() -> None:
    """The first few are known within the accuracy in `eps`, and the more there are, the better."""
    rng = np.random.default_rng(3)
    running, laws = rz.RunningComposition(), []
    for place in range(30):
        sigma, rate = float(rng.uniform(0.8, 1.5)), float(rng.uniform(0.005, 0.02))
        running.compose(rz.subsampled_gaussian(sigma, rate))
        laws.append((mixture_oracles.subsampled(sigma, rate, "remove"), 1))
        bounds = running.delta_bounds(1.0)
        assert bounds.lo >= running.delta_bounds(1.0 + 1e-3).lo
        assert place < 20 or bounds.width <= 1e-6 * bounds.hi
    assert oracles.agrees(bounds, Blend(tuple(laws)).delta(1.0))


def test_a_read_uses_the_last_contour() -> None:
    """The second read extends what the first one left: it makes no contour of its own."""
    running = rz.RunningComposition(rz.gaussian(sigma=5.0) + 40 * rz.laplace(scale=20.0))
    running.delta(1.0)
    (before,) = running._workspace._evaluator.contours
    running.compose(rz.laplace(scale=30.0))
    running.delta(1.0)
    (after,) = running._workspace._evaluator.contours
    assert (after.line.lam, after.line.step) == (before.line.lam, before.line.step)
    assert after.log_m > before.log_m


def test_nothing_composed_yet() -> None:
    running = rz.RunningComposition()
    assert running.pld == rz.identity()
    assert running.delta(0.0) == 0.0 and running.epsilon(0.0) == 0.0


def test_everything_revealed() -> None:
    running = rz.RunningComposition(rz.laplace(scale=2.0) + rz.gaussian(mu=1.0))
    running.delta(1.0)
    for loss in (rz.approximate_dp(0.0, 1.0), rz.gaussian(mu=1.0)):
        running.compose(loss)
        assert (running.delta(1.0), running.epsilon(1e-5)) == (1.0, float("inf"))


def test_threads_compose_everything_once() -> None:
    running, loss = rz.RunningComposition(), rz.gaussian(sigma=30.0) + rz.laplace(scale=50.0)

    def work() -> None:
        for _ in range(25):
            running.compose(loss)
            running.delta(1.0)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert running.pld == 100 * loss
    truth, found = (100 * loss).delta_bounds(1.0), running.delta_bounds(1.0)
    assert found.lo <= truth.hi and truth.lo <= found.hi
    assert mpf(found.hi) - mpf(found.lo) <= mpf("1e-6") * mpf(found.hi)


def test_bad_input() -> None:
    running = rz.RunningComposition()
    for loss in (0.5, None, rz.mechanisms.Laplace(scale=2.0)):
        with pytest.raises(ArgumentTypeError, match="loss must be a Pld"):
            running.compose(loss)
    with pytest.raises(ArgumentTypeError, match="start must be a Pld, got 3"):
        rz.RunningComposition(3)
    for eps in (float("nan"), float("inf")):
        with pytest.raises(ArgumentError, match="eps must be a finite number"):
            running.delta(eps)
    with pytest.raises(ArgumentError, match="delta must be in"):
        running.epsilon(1.5)
