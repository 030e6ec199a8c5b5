"""What the natural filter really guarantees against adaptive analysts.

The natural filter admits while the composition of what was spent stays below a budget. Whatever
the queries are, symmetric or not, two bounds are computed (`docs/proofs/natural-guarantee.md` has
the proofs), and the better one is given with its name.

**composition**: every admitted query lies below the budget by itself, so `k` of them lie below the
budget composed with itself `k` times.

**moments**: for any number of rounds. Let the budget keep `(t, d)`, so that every admitted history
has `E(1 - e^{t-Z})_+ <= d`, and let `t < level`, `t < jump` and `order > 0`.

1. Losses above `jump` are rare: over one history their probabilities add up to at most `s`, with
   `s (1 - e^{t-jump}) - s²/2 = d`. So the adaptive interaction meets one with probability `s` or
   less. That is paid in delta.
2. Without them, `M = E e^{order Z}` of a history is at most

       e^{order level} / (1 - r),   r = d max(e^{order z} / (1 - e^{t-z})), z = level, level + jump:

   until the loss first exceeds `level`, it is at most `level`; then it is at most `level + jump`,
   which happens with little probability since the budget keeps `(t, d)`; and the queries after
   that are a history too, so they add a factor of at most `M`.
3. `e^{order Z}` divided by the moments of the queries asked is a martingale, however they are
   chosen. So the adaptive interaction has this moment as well, and with Markov's inequality

       delta'(eps') <= s + M e^{-order eps'} order^order / (order + 1)^(order + 1).

The three numbers are searched for in floats; the bound they give is evaluated with its roundings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from residua import checks
from residua.bounds import LARGEST_EPS, Floats
from residua.filters.costs import response_point
from residua.pld.constructors import approximate_dp, infinite
from residua.pld.pld import Pld, query
from residua.work_limit import remembered

UNBOUNDED_EPS = 1000.0
"""Stands for no finite `eps` in tables and configurations: nothing is kept beyond LARGEST_EPS."""
SLACK = 1e-9
"""Covers the roundings: some twenty operations on numbers whose logarithms are at most 1e4."""


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


class Cut(NamedTuple):
    """Where the moment bound cuts: losses above `jump`, sums above `level`, and the moment."""

    jump: float
    level: float
    order: float


def natural_guarantee(
    eps: float, delta: float, rounds: int | None = None, target_delta: float | None = None
) -> Guarantee:
    """The least proven `eps'` of the natural filter for queries chosen adaptively.

    Args:
        eps: queries are admitted while their composition is `(eps, delta)`-DP.
        delta: the other parameter of that promise.
        rounds: the most queries there are; None means any number.
        target_delta: the delta of the guarantee, ten times `delta` by default.

    Returns:
        The guarantee and the method that shows it.

    Raises:
        ArgumentError: an argument is out of range.
    """
    eps, delta, target = check_promise(eps, delta, target_delta)
    best = Guarantee(moment_bound(eps, delta, target)[1], target, "moments")
    return best if rounds is None else _composed(approximate_dp(eps, delta), rounds, best)


def guarantee_curve(
    budget: Pld, target_deltas: Sequence[float], rounds: int | None = None
) -> tuple[Guarantee, ...]:
    """What the natural filter with any budget guarantees, `eps'` for each of several deltas.

    Args:
        budget: compositions stay below it, and their reversals below its reversal.
        target_deltas: the deltas of the guarantee.
        rounds: the most queries there are; None means any number.

    Returns:
        A guarantee for each delta.

    Raises:
        ArgumentError: an argument is out of range.
    """
    query("budget", budget)
    corner = response_point(budget)
    rounds = None if rounds is None else check_rounds(rounds)
    found = []
    for given in checks.items("target_deltas", target_deltas, "a list of deltas"):
        target = checks.positive("target_deltas", checks.probability("target_deltas", given))
        points = [_point(budget, share * target) for share in KEPT_SHARES]
        points += [corner] if corner is not None else []
        reached = [moment_bound(t, d, target)[1] for t, d in points if 0.0 < d < target]
        best = Guarantee(min(reached, default=math.inf), target, "moments")
        found.append(best if rounds is None else _composed(budget, rounds, best))
    return tuple(found)


KEPT_SHARES = np.geomspace(1e-4, 0.7, 16)
"""Shares of a delta at which a budget is read: more of them find better guarantees."""


def _point(budget: Pld, delta: float) -> tuple[float, float]:
    """A point `(t, d)` that a budget keeps in both directions, `d` at most about `delta`."""
    back = budget.reverse()
    t = max(float(budget.epsilon(delta)), float(back.epsilon(delta)))
    if not t <= LARGEST_EPS:
        return t, math.inf
    return t, max(float(budget.delta(t)), float(back.delta(t)))


def _composed(budget: Pld, rounds: int, best: Guarantee) -> Guarantee:
    """The better of a guarantee and the budget composed with itself."""
    rounds = check_rounds(rounds)
    whole = rounds * budget
    eps = max(float(whole.epsilon(best.delta)), float(whole.reverse().epsilon(best.delta)))
    if eps > best.eps:
        return best
    return Guarantee(eps, best.delta, "one round" if rounds == 1 else "composition")


def check_promise(
    eps: float, delta: float, target_delta: float | None
) -> tuple[float, float, float]:
    """Check a budget `(eps, delta)` and the delta of its guarantee."""
    e, d = checks.between("eps", eps, 1e-250, 100.0), checks.inner_probability("delta", delta)
    target = min(float(f"{10.0 * d:.15g}"), 1.0) if target_delta is None else target_delta
    target = checks.satisfying("target_delta", target, lambda t: d <= t <= 1, "between delta and 1")
    return e, d, target


def check_rounds(rounds: int) -> int:
    """Check a number of rounds."""
    k = checks.count("rounds", rounds)
    checks.require(1 <= k <= 100_000, "rounds", "between 1 and 100000", rounds)
    return k


@remembered(maxsize=1024)
def moment_bound(t: float, delta: float, target: float) -> tuple[Cut, float]:
    """The best cut that was found for a budget that keeps `(t, delta)`, and the `eps'` it proves.

    `eps'` is infinite if no cut proves anything.
    """
    least = max(min(2.0 * delta, 1e-3), 1e-12 * max(t, 1.0))
    offsets = [
        np.geomspace(least, 8.0, 40),
        np.geomspace(least, 2.0, 20),
        np.geomspace(0.02, 1, 30),
    ]
    # Narrowed three times: each makes the steps about six times finer.
    for _ in range(4):
        best = _best_offsets(t, delta, target, *offsets)
        # The next grid spans a little more than the two neighbours.
        steps = [(grid[1] / grid[0]) ** 1.2 for grid in offsets]
        offsets = [
            np.geomspace(at / step, at * step, 12) for at, step in zip(best, steps, strict=True)
        ]
    cut = _cut(t, delta, *best)
    return cut, evaluate(cut, t, delta, target)


def _cut(t: float, delta: float, jump: float, level: float, share: float) -> Cut:
    """A cut from the distances to `t` and from the order as a share of the largest one."""
    order = -math.log(delta) * share / (2.0 * t + jump + level)
    return Cut(t + jump, t + level, order)


def _best_offsets(
    t: float, delta: float, target: float, jumps: Floats, levels: Floats, shares: Floats
) -> tuple[float, float, float]:
    """The cut of a grid with the least `eps'`, in floats (see `evaluate`)."""
    jump, level, share = np.meshgrid(jumps, levels, shares, indexing="ij")
    order = -math.log(delta) * share / (2.0 * t + jump + level)
    with np.errstate(all="ignore"):
        rare = delta / -np.expm1(-jump)
        overshoot = level + t + jump
        risk = delta * np.maximum(
            np.exp(order * (t + level)) / -np.expm1(-level),
            np.exp(order * (t + overshoot)) / -np.expm1(-overshoot),
        )
        markov = -order * np.log1p(1.0 / order) - np.log1p(order)
        eps = t + level + (markov - np.log1p(-risk) - np.log(target - rare)) / order
    at = np.unravel_index(int(np.argmin(np.where(np.isnan(eps), np.inf, eps))), eps.shape)
    return float(jump[at]), float(level[at]), float(share[at])


def evaluate(cut: Cut, t: float, delta: float, target: float) -> float:
    """The proven `eps'` at `target` for one cut (inf if it proves nothing)."""
    jump, level, order = cut
    if not (t < level and t < jump and order > 1e-100):
        return math.inf
    left = target * (1.0 - SLACK) - rare_jumps(jump - t, delta) * (1.0 + SLACK)
    places = (level, level + jump)
    risk = math.log(delta) + max(order * z - math.log(-math.expm1(t - z)) for z in places)
    if not (left > 0.0 and risk < -SLACK):
        return math.inf
    log_moment = order * level - math.log(-math.expm1(risk + SLACK))
    log_markov = -order * math.log1p(1.0 / order) - math.log1p(order)
    eps = (log_moment + log_markov - math.log(left) + SLACK) / order
    return max(eps * (1.0 + SLACK), 0.0)


def rare_jumps(above: float, delta: float) -> float:
    """What probabilities of losses above `t + above` add up to in a history, at most.

    With `c = 1 - e^-above` each is at most `delta / c`. Their sum `s` keeps `s c - s²/2 <= delta`,
    which it does up to the smaller root, and cannot pass the larger one where the roots are farther
    apart than one such probability. (inf where nothing follows)
    """
    c = -math.expm1(-above)
    under_root = c * c - 2.0 * delta
    if not under_root > 0.0:
        return math.inf
    root = math.sqrt(under_root)
    return 2.0 * delta / (c + root) if delta / c < 2.0 * root * (1.0 - SLACK) else math.inf
