"""Would plans and menus admit more if they had to hold at reachable points alone?

For a target `(eps, delta)` the curve of what is left is read at `e^t` for `t = eps - z` alone, `z`
being the loss so far. While losses add up to at most `b` in absolute value, `t >= t0 = eps - b`. So
a plan `B` may exchange the part `S` for a query `L` if

    h_{L ⊕ (B - S)}(e^t) <= h_B(e^t)      for all t >= t0,

by the induction of `docs/proofs/target-residue.md`; and a menu may go on with the potential `φ'` if
`L ∘ φ' <= φ` where `|t| >= t0`. This measures both, in floating point and without proofs, beside
the plans and menus of the library, alone and united with plain addition of `eps`. All workloads
consist of pure queries: a plan or menu of one kind, and queries of another kind.

On a plan of randomized response both sides are piecewise linear in `x = e^t`, and the left one is
convex. So the exchange is checked at `t0` and at the kinks of the right side from there on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

import residua as rz
from residua.bounds import Floats
from residua.filters.potential.grid import PARTS, Step, step_of
from residua.planning.workload import Run, optimum

_TARGET = (1.0, 1e-6)
_LARGE = (0.05, 0.1, 0.2, 0.3)
_PLANNED, _OTHERS, _PERIODS = (0.02, 0.04), (0.015, 0.03, 0.06, 0.12), (2, 5, 15)
_LONGEST = 300
_ROUNDING = 1e-9
"""Allowance of a comparison, in favour of reachable points."""
_COLUMNS = ("plan", "+ pure", "reachable", "menu", "+ pure", "reachable", "auto")


class _Workload(NamedTuple):
    planned: float
    """The `eps` of the queries that the plan and the menu know."""
    sizes: tuple[float, ...]
    """That of every query, in order."""


def reachable_points() -> Iterator[str]:
    """Shares of the optimum that plans and menus admit, with reachable points and without."""
    eps, delta = _TARGET
    yield f"pure queries within ({eps:g}, {delta}): admitted / optimum, means over workloads"
    yield f"{'':32}" + "".join(f"{name:>11}" for name in _COLUMNS)
    for name, workloads in (
        ("some as planned, then others", list(_then_others())),
        ("others between planned ones", list(_in_between())),
    ):
        shares = np.array([_shares(one, eps, delta) for one in workloads])
        means = "".join(f"{mean:11.3f}" for mean in shares.mean(axis=0))
        yield f"{name:28}{len(workloads):4}{means}"


def _then_others() -> Iterator[_Workload]:
    """None or half of what fits as planned, then queries of another size without end."""
    for planned, other in permutations(_LARGE, 2):
        for share in (Fraction(0), Fraction(1, 2)):
            first = int(share * _most_that_fit(planned, *_TARGET))
            yield _Workload(planned, (planned,) * first + (other,) * _LONGEST)


def _in_between() -> Iterator[_Workload]:
    """Queries as planned, but for every second, fifth or fifteenth."""
    for planned in _PLANNED:
        for other in _OTHERS:
            for period in _PERIODS:
                turn = (planned,) * (period - 1) + (other,)
                yield _Workload(planned, turn * (_LONGEST // period))


def _most_that_fit(size: float, eps: float, delta: float) -> int:
    return optimum(eps, delta, rz.Workload("one", (Run(rz.PureDp(size)),), repeat=True))


def _shares(workload: _Workload, eps: float, delta: float) -> list[float]:
    most = optimum(
        eps, delta, rz.Workload("all", tuple(Run(rz.PureDp(size)) for size in workload.sizes))
    )
    known, count = rz.PureDp(workload.planned), _most_that_fit(workload.planned, eps, delta)
    pure = rz.PureFilter(eps)
    plan = rz.PlanFilter(eps, delta, (rz.SelfComposed(known, count),))
    menu = rz.MenuFilter(eps, delta, (known,))
    admits = (
        _library(plan),
        _library(rz.UnionFilter((pure, plan), eps)),
        _Plan(eps, workload.planned, plan.kept).admits,
        _library(menu),
        _library(rz.UnionFilter((pure, menu), eps)),
        _Menu(menu).admits,
        _library(rz.AutoFilter(eps, delta)),
    )
    return [_admitted(each, workload.sizes) / most for each in admits]


def _admitted(admits: Callable[[float], bool], sizes: Sequence[float]) -> int:
    """How many queries are admitted before the first refusal."""
    return next((place for place, size in enumerate(sizes) if not admits(size)), len(sizes))


def _library(filter: rz.Filter) -> Callable[[float], bool]:
    state = filter.initial()

    def admits(size: float) -> bool:
        nonlocal state
        decision = filter.decide(state, rz.PureDp(size))
        state = decision.state
        return decision.admitted

    return admits


class _Plan:
    """A plan of one kind of pure query that must hold at reachable points alone."""

    def __init__(self, eps: float, planned: float, count: int):
        self.planned, self.left = planned, count
        self.start = Fraction(str(eps))
        """`t0`."""

    def admits(self, size: float) -> bool:
        taken = 1 if size == self.planned and self.left else self._least(size)
        if taken is None:
            return False
        self.left -= taken
        self.start -= Fraction(str(size))
        return True

    def _least(self, size: float) -> int | None:
        """The fewest planned queries that may give way."""
        if not self._suffices(self.left, size):
            return None
        low, high = -1, self.left
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._suffices(middle, size) else (middle, high)
        return high

    def _suffices(self, taken: int, size: float) -> bool:
        # All losses are symmetric: what holds at `t` holds at `-t`.
        start = max(float(self.start), 0.0)
        kinks = self.planned * np.arange(-self.left, self.left + 1, 2.0)
        t = np.append(kinks[kinks > start], start)
        rest, high = self.left - taken, 1.0 / (1.0 + math.exp(-size))
        after = high * _curve(rest, self.planned, t - size + _ROUNDING)
        after += (1.0 - high) * _curve(rest, self.planned, t + size + _ROUNDING)
        return bool(np.all(after <= _curve(self.left, self.planned, t)))


def _curve(count: int, size: float, t: Floats) -> Floats:
    """`h(e^t)` of so many copies of `R_size`."""
    ones = np.arange(count + 1)
    losses = size * (2.0 * ones - count)
    masses = binom.pmf(ones, count, 1.0 / (1.0 + math.exp(-size)))
    return np.asarray(np.maximum(-np.expm1(t[:, None] - losses), 0.0) @ masses)


class _Menu:
    """A menu that must hold at reachable points of its grid alone.

    Losses count in cells of the grid, as the steps of the grid have them.
    """

    def __init__(self, menu: rz.MenuFilter):
        self.menu, self.left, self.lost = menu, menu.table.whole, 0
        self.place = np.arange(-menu.grid.half, menu.grid.half + 1)

    def admits(self, size: float) -> bool:
        menu, loss = self.menu, rz.pure_dp(size)
        step, price = step_of(menu.grid, loss), menu.listed.get(loss)
        if price is not None and price * PARTS <= self.left:
            left: int | None = self.left - price * PARTS
        else:
            left = self._best(step)
        if left is None:
            return False
        self.left = left
        self.lost += max(step.high, -step.low)
        return True

    def _best(self, step: Step) -> int | None:
        """The highest level, in parts, that may follow."""
        reached = np.abs(self.place) >= self.menu.grid.cells - self.lost
        table = self.menu.table
        limit = (table.at(self.left) * (1.0 + _ROUNDING))[reached]

        def allowed(parts: int) -> bool:
            return bool(np.all(step.after(table.at(parts))[reached] <= limit))

        if not allowed(0):
            return None
        low, high = 0, self.left + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if allowed(middle) else (low, middle)
        return low
