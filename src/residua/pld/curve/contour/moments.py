"""Log moments and node values of a composition, family by family: what contours are made of.

`M(s) = E[e^{sZ}; Z < inf]`, its logarithm `K` at real points, and `V_k = M(λ+iω_k) / M(λ)` on a
line, each with the error that is charged for it (`transform.py`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import (
    EXP_ULPS,
    EXPM1_ULPS,
    LOG1P_ULPS,
    LOG_ULPS,
    SINCOS_ULPS,
    U,
)
from residua.pld.curve.contour.nodes import Line
from residua.pld.curve.contour.products import COMPLEX_PRODUCT, multiply, powers
from residua.pld.families import bounded_range, laplace, randomized_response
from residua.pld.families.atoms import Atoms
from residua.pld.families.bounded_range import BoundedRange
from residua.pld.families.factors import Terms
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.families.laplace import Laplace
from residua.pld.families.normal_mixture import LATTICE
from residua.pld.families.randomized_response import RandomizedResponse
from residua.work_limit import work

_BATCH = 1 << 21
_ONE, _NO_ERROR = np.ones(1, dtype=np.complex128), np.zeros(1)


class Moments:
    """Log moments and node values of a composition, evaluated family by family."""

    def __init__(self, terms: Terms, variance: float, variance_error: float):
        self.variance = variance
        self.variance_error = variance_error
        responses, laplaces, ranges = [], [], []
        self.mixtures: list[tuple[GaussianMixture, int]] = []
        self.listed: list[tuple[Atoms | GaussianMixture, int]] = []
        for factor, n in terms.items():
            if isinstance(factor, RandomizedResponse):
                responses.append((factor.eps, factor.delta, n))
            elif isinstance(factor, Laplace):
                laplaces.append((factor.eps, n))
            elif isinstance(factor, BoundedRange):
                ranges.append((factor.eps, factor.atomic, n))
            else:
                self.listed.append((factor, n))
                if isinstance(factor, GaussianMixture):
                    self.mixtures.append((factor, n))
        self.ranges = _columns(ranges, 3)
        self.responses = _columns(responses, 3)
        self.laplaces = _columns(laplaces, 2)

    def log_moment(self, s: Floats) -> tuple[Floats, Floats]:
        """`K(s) = ln E[e^{sZ}; Z < inf]` at real `s` (one-dimensional) and its absolute error."""
        if self.variance > 0.0:
            value = (0.5 * self.variance) * s * (s + 1.0)
            error = np.abs(value) * (self.variance_error + 4.0 * U)
        else:
            value = error = np.zeros(s.shape)
        for family, parameters, counts in self._families:
            work(25.0 * counts.size * s.size, 80.0 * counts.size * s.size)
            k, e = family.log_moment(*parameters, s)
            if counts.size == 1:
                k, e = counts[0] * k[0], counts[0] * e[0]
                value, error = value + k, error + e + (3.0 * U) * np.abs(k)
                continue
            value = value + counts @ k
            error = error + counts @ e + (counts @ np.abs(k)) * ((counts.size + 2.0) * U)
        for factor, n in self.listed:
            k, e = factor.log_moment(s)
            value = value + n * k
            error = error + n * e + 2.0 * U * np.abs(value)
        return value, error * 1.01

    def rough_log_moment(self, s: Floats) -> Floats:
        """About `K(s)`, `s > 0`: what a tilt is chosen by."""
        if not self.mixtures:
            return self.log_moment(s)[0]
        value = self.without([f for f, _ in self.mixtures]).log_moment(s)[0]
        for factor, n in self.mixtures:
            pair = factor.pair
            value = value + n * (pair.lattice if s is LATTICE else pair.rough_log_moment(s))
        return np.asarray(value)

    def lattice_above(self) -> Floats:
        """Upper bounds of `K` at the tilts `LATTICE`, from what every mixture keeps of itself."""
        k, error = self.without([f for f, _ in self.mixtures]).log_moment(LATTICE)
        above = k + error
        for factor, n in self.mixtures:
            above = above + n * factor.pair.lattice_above
        return np.asarray(above + 4.0 * (len(self.mixtures) + 2.0) * U * np.abs(above))

    def without(self, dropped: Collection[GaussianMixture]) -> Moments:
        """The same without some of its mixtures."""
        rest = copy(self)
        rest.mixtures = [(f, n) for f, n in self.mixtures if f not in dropped]
        rest.listed = [(f, n) for f, n in self.listed if f not in dropped]
        return rest

    @property
    def is_empty(self) -> bool:
        """Whether there is no factor at all."""
        return self.variance == 0.0 and not self.listed and not self._families

    @property
    def atomic_weight(self) -> tuple[float, float]:
        """`ln Π w`, the log mass of the skeleton, and its absolute error."""
        eps, counts = self.laplaces[:, 0], self.laplaces[:, 1]
        logs = np.log1p(0.5 * np.expm1(-eps))
        total = float(counts @ logs)
        error = float(counts @ (np.abs(logs) + eps)) * U * (LOG1P_ULPS + EXPM1_ULPS + 8.0)
        more = self.ranges[:, 2] * np.log(self.ranges[:, 1])
        total += float(more.sum())
        error += float(np.abs(more).sum()) * (LOG_ULPS + 4.0) * U
        return total, error + 2.0 * (counts.size + more.size) * U * abs(total)

    @cached_property
    def _families(self) -> list[tuple[Any, list[Floats], Floats]]:
        """Module, columns of parameters and counts of each family with members."""
        tables = (
            (randomized_response, self.responses),
            (laplace, self.laplaces),
            (bounded_range, self.ranges),
        )
        return [
            (family, [table[:, i : i + 1] for i in range(table.shape[1] - 1)], table[:, -1])
            for family, table in tables
            if table.size
        ]

    def log_fall(self, lam: float, edges: Floats) -> Floats:
        """An upper bound on `ln |V|` for all `ω >= edge`, for each edge (increasing, positive)."""
        value = -0.5 * self.variance * (1.0 - self.variance_error - 8.0 * U) * edges * edges
        for family, parameters, counts in self._families:
            if family is not randomized_response:
                work(25.0 * counts.size * edges.size, 80.0 * counts.size * edges.size)
                value = value + counts @ family.log_fall(*parameters, lam, edges)
        for factor, n in self.mixtures:
            value = value + n * factor.fall(lam, edges)
        return np.asarray(value)

    def affordable(self, lam: float, per_edge: float, work: float) -> float:
        """The number of nodes that, with `per_edge` nodes a unit of `ω`, take that much work."""
        most = float("inf")
        for factor, _ in self.mixtures:
            fixed, slope = factor.pair.points(lam)
            # count (fixed + slope count / per_edge) = work
            turn = 0.5 * fixed * per_edge / slope
            most = min(most, math.sqrt(turn * turn + work * per_edge / slope) - turn)
        return most

    def nodes(self, line: Line, phantom: float = 0.0) -> tuple[NDArray[np.complex128], Floats]:
        """`V_k` on a line and a bound on its relative error; `phantom` adds to the variance."""
        lam, omega, count = line.lam, line.omega, line.count
        work(50.0 * count, 200.0 * count)
        value, error = _ONE, _NO_ERROR
        variance = self.variance + phantom
        if variance > 0.0:
            fall = 0.5 * variance * omega * omega
            turn = variance * (lam + 0.5) * omega
            value = np.exp(-fall) * (np.cos(turn) + 1j * np.sin(turn))
            error = (fall + np.abs(turn)) * (self.variance_error + 8.0 * U)
            error += (EXP_ULPS + 2.0 * SINCOS_ULPS + 8.0) * U
        for family, parameters, counts in self._families:
            rows = max(1, _BATCH // (16 * count))
            for start in range(0, counts.size, rows):
                part = slice(start, start + rows)
                work(50.0 * count * counts[part].size, 200.0 * count * counts[part].size)
                v, e = family.nodes(*(column[part] for column in parameters), lam, omega)
                v, relative = powers(v, e, counts[part, None])
                if v.shape[0] == 1:
                    v, relative = v[0], relative[0]
                else:
                    relative = relative.sum(axis=0) + v.shape[0] * COMPLEX_PRODUCT
                    v = np.multiply.reduce(v, axis=0)
                value, error = multiply(value, error, v, relative)
        for factor, n in self.listed:
            v, e = factor.nodes(lam, line.step, count)
            v, relative = powers(v[None], e[None], np.array([[float(n)]]))
            value, error = multiply(value, error, v[0], relative[0])
        if value is _ONE:
            return np.ones(count, dtype=np.complex128), np.zeros(count)
        return value, error


def _columns(rows: Sequence[tuple[float, ...]], width: int) -> Floats:
    return np.array(rows, dtype=np.float64) if rows else np.empty((0, width))
