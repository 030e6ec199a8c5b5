"""How near to the optimum any filter can be on workloads of pure queries.

As in `ceilings.py`: a filter that admits a share `f` of every workload in a set also admits what an
adaptive analyst makes of them. The workloads here are `R_a` without end, and, after some numbers
`j` of it, `R_b` without end, for several `b`. If `m` of these fit beside `j` of `R_a`, the analyst
who has asked `j` may still ask `c = ⌈f (j + m)⌉ - j` of `R_b`, and reaches at least

    U_j(t) = max(E U_{j+1}(t - Z), h_{c R_b}(e^t) for each b),     U_n(t) = (1 - e^t)_+,

`n` being `⌈f optimum⌉`. All losses are on one lattice, so that this is exact up to the rounding of
floats in sums of positive numbers and to the ends of the lattice, where `U` counts as less than it
is. Shares are fractions `k / optimum`, so the largest one with `U_0(eps) <= delta` is found among
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from scipy.stats import binom

from residua.bounds import Floats

_CELLS = 100
"""Cells of the lattice of losses in `eps`."""
_REACH = 6
"""The lattice ends at so many times `eps` on both sides."""
_BUDGETS = ((1.0, 1e-6), (3.0, 1e-6), (8.0, 1e-5))
_FIRST = (2, 3, 5, 6, 8, 10)
"""The `eps` of `R_a`, in cells."""
_OTHERS = (2, 4, 6, 10, 16, 20, 30)
"""Those of `R_b`."""
_STOPS = 12
"""How many numbers of queries the analyst may change after."""
_LEAST = Fraction(1, 2)
"""Shares below this are not looked at."""
_CAREFUL = 1.0 - 1e-9
"""How much of `delta` the optimum may use: rounding makes it smaller at most, and so the analyst
weaker."""


def pure_ceilings() -> Iterator[str]:
    """The largest share of the optimum that a sound filter can admit of all these workloads."""
    yield "R_a without end, or R_b without end after it; a and b in percent of eps"
    yield "a    " + "".join(f"{f'({eps:g}, {delta:g})':>22}" for eps, delta in _BUDGETS)
    yield "     " + "".join(f"{'optimum  at most':>22}" for _ in _BUDGETS)
    for first in _FIRST:
        cells = [_Analyst(first, eps, delta).ceiling() for eps, delta in _BUDGETS]
        yield f"{first:<5d}" + "".join(
            f"{most:13d}{math.ceil(1000 * share) / 1000:9.3f}" for most, share in cells
        )


class _Analyst:
    """Who begins with `R_a` and changes to the worst other query at the worst moment."""

    def __init__(self, first: int, eps: float, delta: float):
        self.first, self.eps, self.delta = first, eps, delta
        self.cell = eps / _CELLS
        end = _REACH * _CELLS
        self.t = self.cell * np.arange(-end, end + 1)
        self.here = end + _CELLS
        self.most = self._fitting(first, 0)
        stops = sorted({self.most * k // _STOPS for k in range(_STOPS)})
        self.beside = {
            (j, other): self._fitting(other, j)
            for j in stops
            for other in _OTHERS
            if other != first
        }
        self.curves: dict[tuple[int, int], Floats] = {}

    def ceiling(self) -> tuple[int, Fraction]:
        """The optimum of `R_a` alone, and the largest share of all workloads."""
        totals = {self.most, *(j + more for (j, _), more in self.beside.items())}
        shares = sorted({Fraction(k, n) for n in totals for k in range(1, n + 1)})
        shares = [share for share in shares if share >= _LEAST]
        low, high = 0, len(shares)
        while high - low > 1:
            middle = (low + high) // 2
            within = self._reached(shares[middle]) <= self.delta
            low, high = (middle, high) if within else (low, middle)
        return self.most, shares[low]

    def _reached(self, share: Fraction) -> float:
        """`U_0(eps)`, from below."""
        high = 1.0 / (1.0 + math.exp(-self.first * self.cell))
        value = np.maximum(-np.expm1(self.t), 0.0)
        for asked in range(math.ceil(share * self.most), -1, -1):
            if asked < math.ceil(share * self.most):
                up = np.concatenate([np.full(self.first, value[0]), value[: -self.first]])
                down = np.concatenate([value[self.first :], np.zeros(self.first)])
                value = high * up + (1.0 - high) * down
            for other in _OTHERS:
                if (asked, other) in self.beside:
                    count = math.ceil(share * (asked + self.beside[asked, other])) - asked
                    value = np.maximum(value, self._curve(max(count, 0), other))
        return float(value[self.here])

    def _curve(self, count: int, size: int) -> Floats:
        """`h(e^t)` of so many copies, on the lattice."""
        if (count, size) not in self.curves:
            losses, masses = self._law(count, size)
            heights = np.maximum(-np.expm1(self.t[:, None] - losses), 0.0)
            self.curves[count, size] = heights @ masses
        return self.curves[count, size]

    def _law(self, count: int, size: int) -> tuple[Floats, Floats]:
        ones = np.arange(count + 1)
        high = 1.0 / (1.0 + math.exp(-size * self.cell))
        losses = np.asarray(size * self.cell * (2.0 * ones - count), dtype=np.float64)
        return losses, binom.pmf(ones, count, high)

    def _fitting(self, size: int, beside: int) -> int:
        """How many copies fit beside so many of the first query."""
        others = self._law(beside, self.first)

        def fits(count: int) -> bool:
            losses, masses = self._law(count, size)
            heights = np.maximum(-np.expm1(self.eps - losses[:, None] - others[0]), 0.0)
            return float(masses @ heights @ others[1]) <= _CAREFUL * self.delta

        low, high = 0, 1
        while fits(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low
