"""Proofs that `A <= B` everywhere (`excess.py`), so that `G_m ⊕ L ⪯ G_mu`.

`ln A` and `ln B` are convex in `l`. Between two points the first lies below its chord
and the second above its tangents; the difference is largest at an end or where the tangents cross.
Past the last point `ln A` rises with slope at most the largest loss: once the slope of `ln B` is as
large, nothing changes any more. This proves any number of contacts.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic import MANY, MOST_STEPS
from residua.pld.arithmetic.ulp_bounds import U
from residua.pld.residue.contact_equation import Contact, bisected, last_place, rough, solve
from residua.pld.residue.excess import (
    Budget,
    FiniteExcess,
    Transform,
    gaussian_transform,
)

_GRID = np.sinh(np.linspace(0.0, 4.0, 33)) / math.sinh(4.0)
_WIDER = 1.1 ** np.arange(1.0, 25.0)
_SHARES = (4e-7, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)
"""By how much the cost is raised, in turn, until that is proven."""
_REFUTATIONS = 12
"""How often the equations are solved again for one share."""


class Failure(NamedTuple):
    """Where a proof failed: at `l`, and whether `A > B` there for all that is known."""

    at: float
    is_violated: bool


def proven_cost(
    excess: FiniteExcess,
    v: float,
    contact: Contact,
    most: float,
    least: float = 0.0,
    budgets: tuple[Budget, Budget] = (gaussian_transform, gaussian_transform),
) -> tuple[Contact, float | None]:
    """The contact found in the end, and its cost raised until that is proven: `v` beyond `most`.

    Where a point refutes it, the equations are solved again from there; where that stays undecided,
    the share by which the cost is raised grows. None if nothing is proven.
    """
    for turn, share in enumerate((_SHARES[0], *_SHARES)):
        if turn == 1:
            # Contacts near and far may compete: start again from a finer search.
            contact = bisected(excess, v, budgets[0], most, least)
        for _ in range(_REFUTATIONS):
            c = contact.c * (1.0 + share)
            if not c < v * most:
                return contact, v
            failure = proven_by_cells(excess, v - c, c, np.array([contact.l]), budgets)
            if failure is None:
                return contact, c
            if not failure.is_violated:
                break
            again = solve(excess, v, Contact(c, failure.at), budgets[0], most)
            contact = again if again.c > contact.c else Contact(c, failure.at)
    return contact, None


def proven_by_cells(
    excess: FiniteExcess,
    m2: float,
    c: float,
    known: Floats,
    budgets: tuple[Budget, Budget] = (gaussian_transform, gaussian_transform),
) -> Failure | None:
    """None if `A <= B` everywhere is proven, else where it is not; `known` are points to try.

    The two budgets are for either sign of `l`, the second one mirrored.
    """
    even = excess.is_symmetric and budgets[0] is budgets[1]
    sides = [excess] if even else [excess, excess.reversed]
    for sign, side, budget in zip((1.0, -1.0), sides, budgets, strict=False):
        failure = _right_half(side, m2, c, sign * known, budget)
        if failure is not None:
            return Failure(sign * failure.at, failure.is_violated)
    return None


def _right_half(
    excess: FiniteExcess, m2: float, c: float, known: Floats, budget: Budget
) -> Failure | None:
    l, b = _starting_points(m2, c, known, budget, _first_guess(excess, m2, c, budget))
    top = _largest(excess)
    if not b.mean[-1] > top:
        end = _last(excess, m2, c, budget)
        if end is None:
            return Failure(0.0, False)
        l, b = _starting_points(m2, c, known, budget, end)
    # A short list above settles most cells; the list itself is for the others.
    above = rough(excess)
    a = above.transform(m2, l)
    if above is not excess:
        gap = (a.log + a.error) - (b.log - b.error)
        near = np.zeros(l.size, dtype=bool)
        open_cells = _open_cells(l, a, b)
        near[open_cells] = near[open_cells + 1] = True
        near |= gap > 0.0
        exact = excess.transform(m2, l[near])
        for column, values in zip(a, exact, strict=True):
            column[near] = values
    for _ in range(MOST_STEPS):
        gap = (a.log + a.error) - (b.log - b.error)
        worst = int(np.argmax(gap))
        if gap[worst] > 0.0:
            return Failure(float(l[worst]), True)
        open_cells = _open_cells(l, a, b)
        if open_cells.size == 0:
            return None
        if l.size + open_cells.size > MANY:
            return Failure(float(l[open_cells[0]]), False)
        new = 0.5 * (l[open_cells] + l[open_cells + 1])
        order = np.argsort(np.concatenate([l, new]), kind="stable")
        l = np.concatenate([l, new])[order]
        a = _merged(a, excess.transform(m2, new), order)
        b = _merged(b, budget(m2, c, new), order)
    return Failure(float(l[0]), False)


def _largest(excess: FiniteExcess) -> float:
    return max(excess.top, 0.0) * (1.0 + 1e-9)


def _first_guess(excess: FiniteExcess, m2: float, c: float, budget: Budget) -> float:
    """An `l` where the slope of `ln B` often exceeds the largest loss."""
    top = _largest(excess)
    if budget is not gaussian_transform:
        return last_place(top, m2, c, budget)
    # The slope is at most l m² c / (m² + c), and close to that once its square times m² is large.
    scale = 1.0 / m2 + 1.0 / c
    return (1.0 + 0.8 / (1.0 + 0.1 * top * top * scale)) * top * scale


def _starting_points(
    m2: float, c: float, known: Floats, budget: Budget, end: float
) -> tuple[Floats, Transform]:
    l = np.concatenate([end * _GRID, known[(known > 0.0) & (known < end)]])
    l = np.unique(l) if l.size > _GRID.size else l
    return l, budget(m2, c, l)


def _last(excess: FiniteExcess, m2: float, c: float, budget: Budget) -> float | None:
    """An `l` where the slope of `ln B` exceeds the largest loss."""
    top = _largest(excess)
    # The slope is l m² E[1 - e^-w], at most l m² c / (m² + c).
    l = top * (1.0 / m2 + 1.0 / c) * _WIDER
    enough = np.flatnonzero(budget(m2, c, l).mean > top)
    return float(l[enough[0]]) if enough.size else None


def _open_cells(l: Floats, a: Transform, b: Transform) -> NDArray[np.int64]:
    """The cells where chord above and tangents below do not decide."""
    high, low = a.log + a.error, b.log - b.error
    width = np.diff(l)
    # Slopes of ln B are good to about the error of its logarithm.
    doubt = np.maximum(1e-11, 4.0 * b.error) * (np.abs(b.mean) + np.sqrt(np.maximum(b.spread, 0.0)))
    slope, slope_back = b.mean - doubt, b.mean + doubt
    first, second = slope[:-1] * width, slope_back[1:] * width
    bend = second - first
    safe = np.where(bend > 0.0, bend, 1.0)
    cross = np.clip((low[:-1] - low[1:] + second) / safe, 0.0, 1.0)
    floor = np.maximum(low[:-1] + first * cross, low[1:] - second * (1.0 - cross))
    chord = high[:-1] + (high[1:] - high[:-1]) * cross
    slack = 16.0 * U * (np.abs(high[:-1]) + np.abs(high[1:]) + np.abs(floor))
    return np.flatnonzero(~((chord + slack <= floor) & (bend > 0.0)))


def _merged(old: Transform, new: Transform, order: NDArray[np.int64]) -> Transform:
    return Transform(*(np.concatenate([x, y])[order] for x, y in zip(old, new, strict=True)))
