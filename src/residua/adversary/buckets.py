"""What adaptive analysts can learn when only the sizes of losses are counted: bounds by buckets.

This is the guarantee of the additive profile filter (`natural_filter.py`) for symmetric queries
and at most `k` rounds (`docs/proofs/additive-profile.md` has the proof).

Cut losses by size at `e_1 < … < e_{n-1}` (`discretise.py`), and let `c_i` be how many draws from
`e_i` upwards are allowed for, `c_1 = k` of any size and none of infinity. Unless there are more,
the interaction is a post-processing of `c_{i-1} - c_i` copies of `RR_{e_i}`; what exceeds is a
failure, which adds its probability to delta and nothing else:

    delta'(t) = h of the copies at e^t, plus the probabilities of more draws than allowed.

Copies of unequal sizes are composed as they are, and totals, draws and compositions are computed
for the very sizes that are used; the paper's closed form is not.

The points are found by a shortest path: with the exponential moment of order `λ` as the length of a
composition and a price `ν` on overflow, each bucket is an edge, and edges add up. The search
decides nothing: its best candidates are evaluated with proven bounds. Plans are searched for powers
of two and evaluated for fewer rounds, where each of them does no worse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from residua.adversary.discretise import largest_total, overflow
from residua.bounds import Floats
from residua.pld.constructors import identity, pure_dp
from residua.work_limit import remembered, work

TILTS, PRICES = np.geomspace(0.15, 20.0, 14), np.geomspace(1e-3, 3.0, 8)
"""Orders of moments and prices of overflow for which a shortest path is searched: more of either
find better plans and take longer."""


@dataclass(frozen=True)
class Plan:
    """Points `e_1 < … < e_{n-1}`, and how many draws beyond each but the last are allowed."""

    points: tuple[float, ...]
    draws: tuple[int, ...]

    def copies(self, rounds: int) -> tuple[int, ...]:
        """How many randomized responses of each size it takes."""
        allowed = (rounds, *(min(c, rounds) for c in self.draws), 0)
        return tuple(a - b for a, b in pairwise(allowed))


@remembered(maxsize=64)
def best_plan(eps: float, delta: float, rounds: int, target: float) -> tuple[Plan, float]:
    """The best plan that was found, and the `eps'` proven for it (inf if none is any good)."""
    plans = _plans(eps, delta, 1 << (rounds - 1).bit_length(), target)
    reached = [evaluate(plan, eps, delta, rounds, target) for plan in plans]
    best = min(range(len(plans)), key=lambda i: reached[i])
    return plans[best], reached[best]


def evaluate(plan: Plan, eps: float, delta: float, rounds: int, target: float) -> float:
    """The proven `eps'` of one plan (inf if its overflow alone exceeds the target)."""
    copies = plan.copies(rounds)
    left = target - failure(plan, eps, delta, rounds) * (1.0 + 1e-12)
    if min(copies) < 0 or not left > 0.0:
        return math.inf
    composed = sum((n * pure_dp(e) for n, e in zip(copies, plan.points, strict=True)), identity())
    return float(composed.epsilon(left))


def failure(plan: Plan, eps: float, delta: float, rounds: int) -> float:
    """The probability that more sizes are drawn than a plan allows, upper bound but for the sum."""
    overflows = (
        overflow(total(low, eps, delta, rounds), draws)
        for low, draws in zip(plan.points, plan.draws, strict=False)
        if draws < rounds
    )
    return total(plan.points[-1], eps, delta, rounds) + math.fsum(overflows)


@remembered(maxsize=1 << 14)
def total(e: float, eps: float, delta: float, rounds: int) -> float:
    """`largest_total`, cached."""
    return largest_total(e, eps, delta, rounds)


@remembered(maxsize=64)
def _plans(eps: float, delta: float, rounds: int, target: float) -> list[Plan]:
    """The most promising plans, by their exponential moments."""
    work(150_000_000)  # about: the tables of the search are of fixed sizes
    points = _grid(eps, rounds)
    totals = np.array([total(float(e), eps, delta, rounds) for e in points])
    counts = np.arange(97)  # draws beyond a size that a plan may allow
    failures = np.array([[overflow(float(s), int(b)) for b in counts] for s in totals])
    found: dict[Plan, float] = {}
    for tilt in TILTS:
        lengths = _moment(points, float(tilt))
        # Prices only choose what is tried; they must stay finite.
        for price in PRICES / max(target, 1e-300):
            plan = _shortest(points, lengths, failures, totals, float(price), rounds)
            if plan is not None and plan not in found:
                found[plan] = _estimate(plan, eps, delta, rounds, target)
    # Few, since each is then evaluated with proven bounds.
    return sorted(found, key=lambda plan: found[plan])[:6]


def _grid(eps: float, rounds: int) -> Floats:
    """Candidate points, of few digits: below and above `eps`, dense near its fractions."""
    low = np.geomspace(eps / (4.0 * rounds), eps, 64)
    top = eps + np.concatenate([[0.02, 0.05], np.geomspace(0.1, 8.0, 14)])
    fractions = [eps / j * 1.0001 for j in range(1, 6)]
    return np.unique([float(f"{e:.4g}") for e in (*low, *top, *fractions)])


def _moment(e: Floats, tilt: float) -> Floats:
    """`ln E e^{λZ}` of `RR_e`, per unit of `λ`."""
    return np.asarray((_log_cosh((tilt + 0.5) * e) - _log_cosh(0.5 * e)) / tilt)


def _log_cosh(x: Any) -> Any:
    return np.logaddexp(x, -x) - math.log(2.0)


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
        # An edge from each lower point: the best number of draws that may be this size or more.
        edges = np.outer(lengths[to] - lengths[:to], counts) + price * failures[:to]
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
    copies, left = plan.copies(rounds), target - failure(plan, eps, delta, rounds)
    if left <= 0.0 or min(copies) < 0:
        return math.inf
    tilts = np.geomspace(0.05, 60.0, 80)
    sums: Any = sum(
        n * (_log_cosh((tilts + 0.5) * e) - _log_cosh(0.5 * e))
        for n, e in zip(copies, plan.points, strict=True)
    )
    reach = (sums - math.log(left) - np.log1p(tilts)) / tilts
    return float(np.min(reach))
