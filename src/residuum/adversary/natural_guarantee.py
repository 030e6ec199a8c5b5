"""What the natural `(eps, delta)` filter really guarantees against adaptive analysts.

The natural filter admits while the composition of what was spent is `(eps, delta)`-DP. For
symmetric queries and at most `k` rounds two bounds are computed, and the better one is given with
its name.

**composition**: every admitted query is `(eps, delta)`-DP by itself, so `k` of them lie below
`R_{eps,delta}^k`.

**buckets**: cut losses by size (`buckets.py`). Rounding sizes up, each admitted query is a
post-processing of one randomized response whose size `e_i` is drawn with the probabilities `p_i`.
Let `b_i` be how many draws from bucket `i` are allowed for. Unless some bucket overflows, the
interaction is a post-processing of `b_i` copies of `RR_{e_i}` for `i >= 2`, and of `k - Σ b_i`
copies of `RR_{e_1}`: a draw takes the smallest unused copy of its size or larger, and a draw of
size `i` finds none only if all `k` copies are used. What overflows is a failure that both sides
see with equal probability, so it adds its probability to delta and nothing else:

    delta'(t) = h of the composition at e^t, plus the overflow probabilities.

Copies of unequal sizes are compared as they are; nothing is concluded from one size about
another. The points are found by a shortest path: with the exponential moment of order `λ` as the
length of a composition and a price `ν` on overflow, each bucket is an edge, and edges add up. The
search decides nothing: its best candidates are evaluated with proven bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from residuum import checks
from residuum.adversary.buckets import largest_total, overflow
from residuum.bounds import Floats
from residuum.pld.constructors import approximate_dp, identity, pure_dp
from residuum.pld.value import Pld

_GRID = 64
_MOST_DRAWS = 48
_TILTS = np.geomspace(0.15, 20.0, 14)
_PRICES = np.geomspace(1e-3, 3.0, 8)
_EVALUATED = 6
_MOST_ROUNDS = 100_000


@dataclass(frozen=True)
class Guarantee:
    """`(eps, delta)`-DP against adaptive analysts, and the method that shows it."""

    eps: float
    delta: float
    method: str

    @property
    def pld(self) -> Pld:
        """The largest PLD within it."""
        return approximate_dp(self.eps, self.delta)


@dataclass(frozen=True)
class Plan:
    """A choice of points `e_1 < … < e_{n-1}` and of allowed draws `b_2, …, b_{n-1}` (`b_n = 0`)."""

    points: tuple[float, ...]
    draws: tuple[int, ...]


def natural_guarantee(
    eps: float, delta: float, rounds: int, target_delta: float | None = None
) -> Guarantee:
    """The least proven `eps'` at `target_delta` (ten times `delta` unless given).

    For symmetric queries chosen adaptively, at most `rounds` of them, admitted while their
    composition is `(eps, delta)`-DP.
    """
    eps = checks.real("eps", eps, "positive and at most 100")
    checks.require(0.0 < eps <= 100.0, "eps", "positive and at most 100", eps)
    delta = checks.real("delta", delta, "in (0, 1)")
    checks.require(0.0 < delta < 1.0, "delta", "in (0, 1)", delta)
    rounds = checks.count("rounds", rounds)
    checks.require(1 <= rounds <= _MOST_ROUNDS, "rounds", f"between 1 and {_MOST_ROUNDS}", rounds)
    target = min(float(f"{10.0 * delta:.15g}"), 1.0) if target_delta is None else target_delta
    target = checks.real("target_delta", target, "between delta and 1")
    checks.require(delta <= target <= 1.0, "target_delta", "between delta and 1", target_delta)
    if rounds == 1:
        return Guarantee(eps, target, "one round")
    best = Guarantee((rounds * approximate_dp(eps, delta)).epsilon(target), target, "composition")
    for plan in _plans(eps, delta, rounds, target):
        reached = evaluate(plan, eps, delta, rounds, target)
        if reached < best.eps:
            best = Guarantee(reached, target, "buckets")
    return best


def evaluate(plan: Plan, eps: float, delta: float, rounds: int, target: float) -> float:
    """The proven `eps'` of one plan (inf if its overflow alone exceeds the target)."""
    failure = _total(plan.points[-1], eps, delta, rounds)
    composed = identity()
    used = 0
    for low, high, draws in zip(plan.points[:-1], plan.points[1:], plan.draws, strict=True):
        if draws < rounds:
            failure += overflow(_total(low, eps, delta, rounds), draws)
        composed += draws * pure_dp(high)
        used += draws
    composed += max(rounds - used, 0) * pure_dp(plan.points[0])
    left = target - failure * (1.0 + 1e-12)
    return float(composed.epsilon(left)) if left > 0.0 else math.inf


@lru_cache(maxsize=1 << 14)
def _total(e: float, eps: float, delta: float, rounds: int) -> float:
    return largest_total(e, eps, delta, rounds)


def _plans(eps: float, delta: float, rounds: int, target: float) -> list[Plan]:
    """The most promising plans, by their exponential moments."""
    points = _grid(eps, rounds)
    totals = np.array([_total(float(e), eps, delta, rounds) for e in points])
    counts = np.arange(_MOST_DRAWS + 1)
    failures = np.array([[overflow(float(s), int(b)) for b in counts] for s in totals])
    found: dict[Plan, float] = {}
    for tilt in _TILTS:
        lengths = _moment(points, float(tilt))
        for price in _PRICES / target:
            plan = _shortest(points, lengths, failures, totals, float(price), rounds)
            if plan is not None and plan not in found:
                found[plan] = _estimate(plan, eps, delta, rounds, target)
    return sorted(found, key=lambda plan: found[plan])[:_EVALUATED]


def _grid(eps: float, rounds: int) -> Floats:
    """Candidate points, of few digits: below and above `eps`, dense near its fractions."""
    low = np.geomspace(eps / (4.0 * rounds), eps, _GRID)
    top = eps + np.concatenate([[0.02, 0.05], np.geomspace(0.1, 8.0, 14)])
    fractions = [eps / j * 1.0001 for j in range(1, 6)]
    return np.unique([float(f"{e:.4g}") for e in (*low, *top, *fractions)])


def _moment(e: Floats, tilt: float) -> Floats:
    """`ln E e^{λZ}` of `RR_e`, per unit of `λ`."""
    return np.log(np.cosh((tilt + 0.5) * e) / np.cosh(0.5 * e)) / tilt


def _shortest(
    points: Floats, lengths: Floats, failures: Floats, totals: Floats, price: float, rounds: int
) -> Plan | None:
    """The path of least length: first point, buckets with their draws, last point."""
    size = points.size
    counts = np.arange(failures.shape[1])
    cost = rounds * lengths
    came = np.full(size, -1)
    draws = np.zeros(size, dtype=int)
    for to in range(1, size):
        # An edge from each lower point: the best number of draws, each one copy of this size.
        edges = counts * lengths[to] + price * failures[:to]
        best = np.argmin(edges, axis=1)
        whole = cost[:to] + edges[np.arange(to), best]
        at = int(np.argmin(whole))
        if whole[at] < cost[to]:
            cost[to], came[to], draws[to] = whole[at], at, best[at]
    end = int(np.argmin(cost + price * totals))
    path, taken = [end], []
    while came[path[-1]] >= 0:
        taken.append(int(draws[path[-1]]))
        path.append(int(came[path[-1]]))
    chosen = tuple(float(points[i]) for i in reversed(path))
    return Plan(chosen, tuple(reversed(taken)))


def _estimate(plan: Plan, eps: float, delta: float, rounds: int, target: float) -> float:
    """What the plan reaches, by exponential moments: quick and close, and not a proof."""
    failure = _total(plan.points[-1], eps, delta, rounds)
    for low, draws in zip(plan.points[:-1], plan.draws, strict=True):
        failure += overflow(_total(low, eps, delta, rounds), draws)
    if failure >= target:
        return math.inf
    tilts = np.geomspace(0.05, 60.0, 80)
    copies = [max(rounds - sum(plan.draws), 0), *plan.draws]
    sums: Any = sum(
        n * np.log(np.cosh((tilts + 0.5) * e) / math.cosh(0.5 * e))
        for n, e in zip(copies, plan.points, strict=True)
    )
    reach = (sums - math.log(target - failure) - np.log1p(tilts)) / tilts
    return float(np.min(reach))
