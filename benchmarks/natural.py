"""What the natural filter is worth: the numbers of `docs/proofs/natural-guarantee.md`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

import residua as rz
from residua.adversary import guarantee_curve, natural_attack
from residua.adversary.buckets import best_plan
from residua.bounds import Floats

BUDGETS = ((1.0, 1e-6), (3.0, 1e-6), (8.0, 1e-5))
TIMES = (2.0, 10.0, 100.0)
"""How many times its delta a budget is compared at."""


def natural_guarantee() -> Iterator[str]:
    """What is proven for any number of rounds, and what the strongest known attack reaches."""
    yield f"{'any number of rounds: eps at':34}{'2 delta':>10}{'10 delta':>10}{'100 delta':>10}"
    for eps, delta in BUDGETS:
        targets = [times * delta for times in TIMES]
        curve = guarantee_curve(rz.approximate_dp(eps, delta), targets)
        yield _row(f"({eps:g}, {delta:g})", "proven", [_up(found.eps) for found in curve])
        limits = [limit_of_moments(eps, delta, target) for target in targets]
        yield _row("", "moments alone: about", [f"{eps:.2f}" for eps in limits])
    deltas = (1e-6, 1e-5, 1e-4)
    yield f"{'any number of rounds: eps at':34}" + "".join(f"{delta:10g}" for delta in deltas)
    for mu in (0.3, 1.0):
        budget = rz.gaussian(mu=mu)
        curve = guarantee_curve(budget, deltas)
        yield _row(f"G_{mu:g}", "proven", [_up(found.eps) for found in curve])
        yield _row("", "the budget itself", [_up(float(budget.epsilon(d))) for d in deltas])
    budget = rz.approximate_dp(1.0, 1e-6)
    yield "attack on (1, 1e-06): delta at eps = 1, in units of 1e-06, at least"
    for rounds in (2, 3, 5, 10, 20, 50):
        yield f"{rounds:6} rounds  {_down(natural_attack(budget, rounds).ratio):>6}"
    yield "attack on (1, 1e-06) with 20 rounds: delta at other eps, in units of 1e-06, at least"
    for eps in (1.005, 1.02, 1.05, 1.1, 1.2):
        yield f"{eps:7.3f}        {_down(natural_attack(budget, 20, eps).ratio):>6}"


def _row(name: str, what: str, cells: list[str]) -> str:
    return f"{name:12}{what:22}" + "".join(f"{cell:>10}" for cell in cells)


def additive_profile() -> Iterator[str]:
    """What the additive profile filter keeps, at ten times delta."""
    yield "rounds   eps' at delta' = 1e-5"
    for rounds in (2, 5, 10, 20, 50, 100):
        yield f"{rounds:6}{best_plan(1.0, 1e-6, rounds, 1e-5)[1]:14.3f}"


def limit_of_moments(t: float, delta: float, target: float) -> float:
    """Below what `eps'` no bound by jumps and moments can go, in floats and on a grid.

    The history is `R_t` and `R_z` with as much probability as fits, for the worst `z` up to the
    jump; another query has a loss above the jump with the largest probability there is.
    """
    order = np.geomspace(0.3, 40.0, 200)[:, None]
    markov = order * np.log(order) - (order + 1.0) * np.log1p(order)
    least = math.inf
    for jump in (t + np.geomspace(1e-3, 8.0, 120)).tolist():
        left = target - delta / -math.expm1(t - jump)
        if left <= 0.0:
            continue
        z = np.linspace(0.01, jump, 200)
        # Of the sums of both losses only those with z upwards exceed t.
        up = 1.0 / (1.0 + np.exp(-z))
        height = -np.expm1(-z) / (1.0 + math.exp(-t)) - np.expm1(np.minimum(2.0 * t - z, 0.0)) / (
            1.0 + math.exp(t)
        )
        share = np.minimum(1.0, delta / (up * height))
        rare = np.log1p(share * np.expm1(_log_moment(order, z))).max(axis=1, keepdims=True)
        moment = _log_moment(order, t) + rare
        least = min(least, float(np.min((moment + markov - math.log(left)) / order)))
    return least


def _log_moment(order: Floats, size: Floats | float) -> Floats:
    """`ln E e^{order Z}` of a randomized response."""
    found: Floats = _log_cosh((order + 0.5) * size) - _log_cosh(0.5 * np.asarray(size))
    return found


def _log_cosh(x: Floats) -> Floats:
    return np.logaddexp(x, -x) - math.log(2.0)


def _up(x: float) -> str:
    return f"{math.ceil(100.0 * x) / 100.0:.2f}"


def _down(x: float) -> str:
    return f"{math.floor(100.0 * x) / 100.0:.2f}"
