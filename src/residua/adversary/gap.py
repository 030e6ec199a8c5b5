"""How far a worst case rises above a budget, and where: a proven gap."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from residua.bounds import Floats, Verdict, float_down
from residua.pld.arithmetic.exact import ExactAtoms
from residua.pld.constructors import from_exact
from residua.pld.curve.reads import kinks
from residua.pld.families.atoms import atoms_from_exact
from residua.pld.order.compare import dominated
from residua.pld.order.domination import Witness
from residua.pld.pld import Pld

_LARGEST = 690.0
_NET = 800
_BEYOND = 12.0
"""How far past the kinks to look: masses at infinity show where a smooth budget has come down."""
_ROUNDS = 12
_MOST_KINKS = 1 << 14


def largest_gap(value: ExactAtoms, budget: Pld) -> Witness | None:
    """The point where `value` rises farthest above `budget`, as searched; None if none is proven.

    Against a finite budget the gap is largest at one of its kinks, else anywhere. The search is in
    floats; the gap that is returned is proven at the float `x` that is returned. What the search
    misses, far out in a tail, the order may still refute.
    """
    candidates = _search(value, budget)
    refuted = dominated(from_exact(value), budget)
    if refuted.verdict is Verdict.YES:
        return None
    if refuted.witness is not None:
        candidates.append(refuted.witness.x)
    found = [Witness(x, _proven(value, budget, x)) for x in candidates]
    widest = max(found, key=lambda witness: witness.gap)
    if widest.gap > 0.0:
        return widest
    return refuted.witness if refuted.verdict is Verdict.NO else None


def distance(value: ExactAtoms, budget: Pld) -> float:
    """How far `value` rises above `budget` at most, as searched: a measure, not a bound."""
    points = np.array(_search(value, budget))
    return max(0.0, float(np.max(_Curve(value, budget)(np.log(points)))))


def _search(value: ExactAtoms, budget: Pld) -> list[float]:
    """Points `x` where the gap is largest, in floats."""
    curve = _Curve(value, budget)
    t = [np.zeros(1) if len(value) == 0 else atoms_from_exact(value).z]
    t.append(kinks(budget, _MOST_KINKS))
    ends = np.concatenate(t)
    t.append(np.linspace(ends.min() - _BEYOND, ends.max() + _BEYOND, _NET))
    places = np.unique(np.clip(np.concatenate(t), -_LARGEST, _LARGEST))
    best = int(np.argmax(curve(places)))
    step = float(np.max(np.diff(places)[max(best - 1, 0) : best + 1], initial=1e-6))
    at = float(places[best])
    for _ in range(_ROUNDS):
        near = np.clip(at + step * np.linspace(-1.0, 1.0, 17), -_LARGEST, _LARGEST)
        at, step = float(near[int(np.argmax(curve(near)))]), step / 8.0
    return [float(np.exp(at)), float(np.exp(places[best]))]


class _Curve:
    """The gap in floats at places `t = ln x`."""

    def __init__(self, value: ExactAtoms, budget: Pld):
        self.atoms = atoms_from_exact(value) if len(value) else None
        self.at_infinity = value.p_inf / value.p_den
        self.budget = budget

    def __call__(self, t: Floats) -> Floats:
        x = np.exp(t)
        high: Floats = np.full(t.shape, self.at_infinity)
        if self.atoms is not None:
            high = high + self.atoms.curve_at(x)[0]
        gap: Floats = high - np.asarray(self.budget.hockey_stick(x))
        return gap


def _proven(value: ExactAtoms, budget: Pld, x: float) -> float:
    top = Fraction(float(budget.hockey_stick(x)))
    return float_down(value.hockey_stick(Fraction(x)) - top)
