"""What the natural `(eps, delta)` filter really guarantees against adaptive analysts.

The natural filter admits while the composition of what was spent is `(eps, delta)`-DP. For
symmetric queries and at most `k` rounds two bounds are computed (`docs/proofs/natural-guarantee.md`
has the proof), and the better one is given with its name.

**composition**: every admitted query is `(eps, delta)`-DP by itself, so `k` of them lie below
`R_{eps,delta}^k`.

**buckets**: cut losses by size at `e_1 < … < e_{n-1}` (`discretise.py`), and let `c_i` be how many
draws from `e_i` upwards are allowed for, `c_1 = k` of any size and none of infinity. Unless there
are more, the interaction is a post-processing of `c_{i-1} - c_i` copies of `RR_{e_i}`; what exceeds
is a failure, which adds its probability to delta and nothing else:

    delta'(t) = h of the copies at e^t, plus the probabilities of more draws than allowed.

Copies of unequal sizes are composed as they are, and totals, draws and compositions are computed
for the very sizes that are used; the paper's closed form is not.

The points are found by a shortest path: with the exponential moment of order `λ` as the length of a
composition and a price `ν` on overflow, each bucket is an edge, and edges add up. The search
decides nothing: its best candidates are evaluated with proven bounds. `points` restricts it: to the
paper's (`(eps + 2) / 2^i`), to those of its remark (`2 eps / 2^i`, which take a delta of about
`delta/eps` or more), or to any that are given.

**Rounds.** Plans are searched for powers of two and evaluated for fewer rounds, where each of them
does no worse; of the bounds up to the number of rounds asked for the largest is given. So more
rounds never guarantee more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from residua import checks
from residua.adversary.discretise import check_points, largest_total, overflow
from residua.bounds import LARGEST_EPS, Floats
from residua.pld.constructors import approximate_dp, identity, infinite, pure_dp
from residua.pld.pld import Pld
from residua.work_limit import remembered, work

UNBOUNDED_EPS = 1000.0
"""Stands for no finite `eps` in tables and configurations: nothing is kept beyond LARGEST_EPS."""
TILTS, PRICES = np.geomspace(0.15, 20.0, 14), np.geomspace(1e-3, 3.0, 8)
"""Orders of moments and prices of overflow for which a shortest path is searched: more of either
find better plans and take longer."""


@dataclass(frozen=True)
class Guarantee:
    """`(eps, delta)`-DP against adaptive analysts, and the method that shows it."""

    eps: float
    delta: float
    method: str

    @property
    def pld(self) -> Pld:
        """The largest PLD within it: everything is lost where no finite `eps` is proven."""
        return approximate_dp(self.eps, self.delta) if self.eps <= LARGEST_EPS else infinite()


@dataclass(frozen=True)
class Plan:
    """Points `e_1 < … < e_{n-1}`, and how many draws beyond each but the last are allowed."""

    points: tuple[float, ...]
    draws: tuple[int, ...]

    def copies(self, rounds: int) -> tuple[int, ...]:
        """How many randomized responses of each size it takes."""
        allowed = (rounds, *(min(c, rounds) for c in self.draws), 0)
        return tuple(a - b for a, b in pairwise(allowed))


def natural_guarantee(
    eps: float,
    delta: float,
    rounds: int,
    target_delta: float | None = None,
    points: Sequence[float] | str | None = None,
) -> Guarantee:
    """The least proven `eps'` of the natural filter for symmetric queries chosen adaptively.

    Args:
        eps: queries are admitted while their composition is `(eps, delta)`-DP.
        delta: the other parameter of that promise.
        rounds: the most queries there are.
        target_delta: the delta of the guarantee, ten times `delta` by default.
        points: the sizes to cut losses at: "paper", "remark" or a list of them; by default the
            best that are found.

    Returns:
        The guarantee and the method that shows it.

    Raises:
        ArgumentError: an argument is out of range.
    """
    eps, delta, rounds, target = check_arguments(eps, delta, rounds, target_delta)
    given: tuple[float, ...] | str | None = None
    if isinstance(points, str):
        given = checks.one_of("points", points, ("paper", "remark"))
    elif points is not None:
        given = check_points(points)
    found = _best_bound(eps, delta, rounds, target, given)
    # The search, for powers of two, may do better in more rounds than in fewer; the guarantee must
    # not.
    for fewer in (1 << i for i in range((rounds - 1).bit_length())):
        if _composed_eps(eps, delta, fewer, target) > found.eps:
            before = _best_bound(eps, delta, fewer, target, given)
            found = before if found.eps < before.eps < math.inf else found
    return found


def _best_bound(
    eps: float, delta: float, rounds: int, target: float, points: tuple[float, ...] | str | None
) -> Guarantee:
    """The better of the two bounds."""
    whole = _composed_eps(eps, delta, rounds, target)
    if rounds == 1:
        return Guarantee(whole, target, "one round")
    _, reached = best_plan(eps, delta, rounds, target, points)
    if reached < whole:
        return Guarantee(reached, target, "buckets")
    return Guarantee(whole, target, "composition")


@remembered(maxsize=256)
def _composed_eps(eps: float, delta: float, rounds: int, target: float) -> float:
    """The budget composed with itself."""
    return float((rounds * approximate_dp(eps, delta)).epsilon(target))


def check_arguments(
    eps: float, delta: float, rounds: int, target_delta: float | None
) -> tuple[float, float, int, float]:
    """Check the arguments of a natural filter's guarantee."""
    e, d = checks.between("eps", eps, 1e-250, 100.0), checks.inner_probability("delta", delta)
    k = checks.count("rounds", rounds)
    checks.require(1 <= k <= 100_000, "rounds", "between 1 and 100000", rounds)
    target = min(float(f"{10.0 * d:.15g}"), 1.0) if target_delta is None else target_delta
    target = checks.satisfying("target_delta", target, lambda t: d <= t <= 1, "between delta and 1")
    return e, d, k, target


@remembered(maxsize=64)
def best_plan(
    eps: float,
    delta: float,
    rounds: int,
    target: float,
    points: tuple[float, ...] | str | None = None,
) -> tuple[Plan, float]:
    """The best plan that was found, and the `eps'` proven for it (inf if none is any good)."""
    plans = _plans(eps, delta, 1 << (rounds - 1).bit_length(), target, points)
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
def _plans(
    eps: float, delta: float, rounds: int, target: float, given: tuple[float, ...] | str | None
) -> list[Plan]:
    """The most promising plans, by their exponential moments."""
    work(150_000_000)  # about: the tables of the search are of fixed sizes
    points = _grid(eps, rounds, given)
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


def _grid(eps: float, rounds: int, given: tuple[float, ...] | str | None) -> Floats:
    """Candidate points, of few digits: below and above `eps`, dense near its fractions."""
    if isinstance(given, str):
        largest = eps + 2.0 if given == "paper" else 2.0 * eps
        halvings = math.ceil(math.log2(rounds * largest / eps))
        return np.array([largest / 2.0**i for i in reversed(range(halvings + 1))])
    if given is not None:
        return np.array(given)
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
