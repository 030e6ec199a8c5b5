"""Simulated adversaries: a strategy is played against a filter many times.

Answers are drawn as the first data set gives them (`P`), and each run scores
`(1 - x e^-Z)_+` for its total loss `Z`: the likelihood-ratio estimator, whose mean is `h(x)`
exactly, while counting events under both data sets would take a difference of two proportions.

The confidence interval is for means of variables in [0, 1], valid at every sample size: the better
end of the Chernoff bound in its relative-entropy form (Hoeffding 1963), which for coin flips is
close to Clopper–Pearson, and of the empirical Bernstein bound (Maurer and Pontil 2009), each side
of each at a quarter of the error.

Runs are independent, so how many of them see each outcome is multinomial: a million runs cost as
much as the outcomes they meet.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import rel_entr

from residua import checks
from residua.adversary.strategy import STOP, Strategy
from residua.bounds import Interval
from residua.filters.base import Filter
from residua.filters.state import State
from residua.pld.arithmetic.exact import floats


@dataclass(frozen=True)
class Simulation:
    """What a strategy was seen to achieve at `x`."""

    x: float
    estimate: float
    interval: Interval
    """Contains the exact `h(x)` with the stated confidence."""
    samples: int
    refused: int
    """Runs in which the filter refused at least one query (the run then passes)."""


def simulate(
    strategy: Strategy,
    x: float,
    filter: Filter | None = None,
    *,
    samples: int = 100_000,
    seed: int | None = None,
    confidence: float = 0.99,
) -> Simulation:
    """Play a strategy many times and estimate the `h(x)` that it achieves.

    Args:
        strategy: what is asked.
        x: the threshold, `e^eps`.
        filter: decides each query; a run ends with the first refusal. None admits everything.
        samples: how many runs are played.
        seed: random seed.
        confidence: of the interval.

    Returns:
        The estimate, and an interval that contains the exact value with that confidence.
    """
    checks.instance("strategy", strategy, Strategy, "a Strategy")
    if filter is not None:
        checks.instance("filter", filter, Filter, "a Filter")
    x = checks.positive("x", x)
    samples = checks.count("samples", samples)
    checks.require(samples >= 2, "samples", "2 or more", samples)
    confidence = checks.between("confidence", confidence, 0.5, 1.0 - 1e-9)
    play = _Play(filter, np.random.default_rng(seed))
    state = None if filter is None else filter.initial()
    runs, losses, refused = zip(*play.run(strategy, samples, 0.0, state), strict=True)
    counts = np.array(runs)
    scores = np.maximum(0.0, -np.expm1(np.minimum(math.log(x) - np.array(losses), 0.0)))
    bounds = interval(scores, counts, 1.0 - confidence)
    estimate = float(scores @ counts) / samples
    return Simulation(x, estimate, bounds, samples, int(counts @ np.array(refused)))


@dataclass(frozen=True)
class _Play:
    filter: Filter | None
    random: np.random.Generator

    def run(
        self, strategy: Strategy, runs: int, loss: float, state: State | None
    ) -> Iterator[tuple[int, float, bool]]:
        """Play `runs` runs on: how many end with which total loss, and whether by a refusal."""
        if self.filter is not None and not strategy.stops:
            assert state is not None
            decision = self.filter.decide(state, strategy.query)
            if not decision.admitted:
                yield runs, loss, True
                return
            state = decision.state
        if strategy.stops:
            yield runs, loss, False
            return
        own = strategy.outcomes("below")
        p, q = floats(own.p, own.p_den), floats(own.q, own.q_den)
        drawn = np.append(p, own.p_inf / own.p_den)
        *counts, infinite = self.random.multinomial(runs, drawn / drawn.sum()).tolist()
        if infinite:
            yield infinite, math.inf, False
        then = strategy.then or (STOP,) * len(counts)
        for count, more, after in zip(counts, np.log(p / q).tolist(), then, strict=True):
            if count:
                yield from self.run(after, count, loss + more, state)


def interval(scores: Any, counts: Any, error: float) -> Interval:
    """Confidence interval for the mean of scores in [0, 1], `counts` of each."""
    samples = float(counts.sum())
    mean = float(scores @ counts) / samples
    variance = float(((scores - mean) ** 2) @ counts) / (samples - 1.0)
    log, more = math.log(4.0 / error), math.log(8.0 / error)
    bernstein = math.sqrt(2.0 * variance * more / samples) + 7.0 * more / (3.0 * (samples - 1.0))
    low = max(mean - bernstein, _entropy_end(mean, log / samples, -1.0), 0.0)
    high = min(mean + bernstein, _entropy_end(mean, log / samples, 1.0), 1.0)
    return Interval(low, high)


def _entropy_end(mean: float, budget: float, sign: float) -> float:
    """The farthest `m` on one side with `KL(mean || m) <= budget`, rounded outwards."""
    inner, outer = mean, 1.0 if sign > 0 else 0.0
    for _ in range(100):
        middle = 0.5 * (inner + outer)
        inside = _relative_entropy(mean, middle) <= budget
        inner, outer = (middle, outer) if inside else (inner, middle)
    return outer


def _relative_entropy(a: float, b: float) -> float:
    if not 0.0 < b < 1.0:
        return 0.0 if a == b else math.inf
    return float(rel_entr(a, b) + rel_entr(1.0 - a, 1.0 - b))
