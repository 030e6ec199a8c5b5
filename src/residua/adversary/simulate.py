"""Simulated adversaries: a strategy is played against a filter many times.

Answers are drawn as the first data set gives them (`P`), and each run scores
`(1 - x e^-Z)_+` for its total loss `Z`: the likelihood-ratio estimator, whose mean is `h(x)`
exactly, while counting events under both data sets would take a difference of two proportions.
For small `h(x)` answers are drawn tilted towards large losses, `∝ p_i e^{tilt z_i}`, and scores are
weighted back.

The confidence interval is for means of bounded variables, valid at every sample size: the better
end of the Chernoff bound in its relative-entropy form (Hoeffding 1963), which for coin flips is
close to Clopper–Pearson, and of the empirical Bernstein bound (Maurer and Pontil 2009), each side
of each at a quarter of the error.

Runs are independent, so how many of them see each outcome is multinomial: a million runs cost as
much as the outcomes they meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import rel_entr

from residua import checks
from residua.adversary.strategy import STOP, Strategy
from residua.bounds import Floats, Interval
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
    tilt: float = 0.0,
) -> Simulation:
    """Play a strategy many times and estimate the `h(x)` that it achieves.

    Args:
        strategy: what is asked.
        x: the threshold, `e^eps`.
        filter: decides each query; a refused query is skipped. None admits everything.
        samples: how many runs are played.
        seed: random seed.
        confidence: of the interval.
        tilt: above 0, large losses are drawn more often, and scores are weighted back.

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
    play = _Play(x, filter, checks.between("tilt", tilt, 0.0, 100.0), np.random.default_rng(seed))
    play.run(strategy, samples, 0.0, 0.0, None if filter is None else filter.initial(), False)
    scores, counts = np.array(play.scores), np.array(play.counts)
    most = play.largest_score(strategy, 0.0, 0.0)
    estimate = float(scores @ counts) / samples
    return Simulation(
        x, estimate, interval(scores, counts, most, 1.0 - confidence), samples, play.refused
    )


class _Play:
    """Scores of runs, and how many runs have each."""

    def __init__(self, x: float, filter: Filter | None, tilt: float, random: np.random.Generator):
        self.log_x = math.log(x)
        self.filter = filter
        self.tilt = tilt
        self.random = random
        self.scores: list[float] = []
        self.counts: list[int] = []
        self.refused = 0
        self._most: dict[tuple[int, float, float], float] = {}

    def run(
        self,
        strategy: Strategy,
        runs: int,
        loss: float,
        weight: float,
        state: State | None,
        refused: bool,
    ) -> None:
        """Play `runs` runs on from here, where the loss and the log weight so far are given."""
        if strategy.stops:
            self._end(runs, self._score(loss, weight), refused)
            return
        if self.filter is not None:
            assert state is not None
            decision = self.filter.decide(state, strategy.query)
            state = decision.state
            if not decision.admitted:
                self._end(runs, self._score(loss, weight), True)
                return
        p, z = self._outcomes(strategy)
        drawn, log_weights = self._tilted(p, z)
        for i, count in enumerate(self.random.multinomial(runs, drawn).tolist()):
            if count == 0:
                continue
            so_far = weight + float(log_weights[i])
            if i == len(z) - 1:
                self._end(count, math.exp(so_far), refused)
            else:
                after = strategy.then[i] if strategy.then else STOP
                self.run(after, count, loss + float(z[i]), so_far, state, refused)

    def _outcomes(self, strategy: Strategy) -> tuple[Floats, Floats]:
        """Masses under `P` and losses, `+inf` last."""
        own = strategy.outcomes("below")
        p, q = floats(own.p, own.p_den), floats(own.q, own.q_den)
        rest = own.p_inf / own.p_den
        return np.append(p, rest), np.append(np.log(p / q), math.inf)

    def _tilted(self, p: Floats, z: Floats) -> tuple[Floats, Floats]:
        """Probabilities that are drawn from, and the log weights that undo the tilt."""
        top = np.where(np.isinf(z), np.max(z[:-1], initial=0.0), z)
        drawn = p * np.exp(self.tilt * (top - top.max()))
        drawn /= drawn.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = np.where(drawn > 0.0, np.log(p) - np.log(drawn), -math.inf)
        return drawn, weights

    def _score(self, loss: float, weight: float) -> float:
        return math.exp(weight) * max(0.0, -math.expm1(min(self.log_x - loss, 0.0)))

    def _end(self, runs: int, score: float, refused: bool) -> None:
        self.scores.append(score)
        self.counts.append(runs)
        self.refused += runs if refused else 0

    def largest_score(self, strategy: Strategy, loss: float, weight: float) -> float:
        """No less than the largest score that any run can have, whatever the filter says."""
        key = (id(strategy), round(loss, 9), round(weight, 9))
        if key not in self._most:
            # Keys are rounded, so that paths that only differ in order meet; so is what they score.
            self._most[key] = self._largest(strategy, loss, weight) * (1.0 + 1e-6) + 1e-12
        return self._most[key]

    def _largest(self, strategy: Strategy, loss: float, weight: float) -> float:
        best = self._score(loss, weight)
        if strategy.stops:
            return best
        p, z = self._outcomes(strategy)
        _, log_weights = self._tilted(p, z)
        for i in range(len(z)):
            if p[i] == 0.0:
                continue
            so_far = weight + float(log_weights[i])
            if i == len(z) - 1:
                best = max(best, math.exp(so_far))
            else:
                after = strategy.then[i] if strategy.then else STOP
                best = max(best, self.largest_score(after, loss + float(z[i]), so_far))
        return best


def interval(scores: Any, counts: Any, most: float, error: float) -> Interval:
    """Confidence interval for the mean of scores in `[0, most]`, `counts` of each."""
    samples = float(counts.sum())
    if most <= 0.0:
        return Interval(0.0, 0.0)
    share = np.asarray(scores) / most
    mean = float(share @ counts) / samples
    variance = float(((share - mean) ** 2) @ counts) / (samples - 1.0)
    log = math.log(4.0 / error)
    more = math.log(8.0 / error)
    bernstein = math.sqrt(2.0 * variance * more / samples) + 7.0 * more / (3.0 * (samples - 1.0))
    low = max(mean - bernstein, _entropy_end(mean, log / samples, -1.0), 0.0)
    high = min(mean + bernstein, _entropy_end(mean, log / samples, 1.0), 1.0)
    return Interval(most * low, most * high)


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
