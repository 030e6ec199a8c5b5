"""Log moments and node values of a composition, from those of its factors.

`M(s) = E[e^{sZ}; Z < inf]` is the moment generating function of the loss, and `K` its logarithm at
real points. A contour (`transform.py`) sums over nodes `λ + iω_k` on a vertical line
(`ContourLine`), and needs the values `V_k = M(λ+iω_k) / M(λ)` there. `Moments` computes `K` and
`V_k` for a composition, family by family, each with a bound on its error.

The value of a composition at a node is a product of powers of the factors' values, each with a
bound on its relative error. A value that is not larger than its error, or too small to matter, is
replaced by a bound on its size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic import BATCH
from residua.pld.arithmetic.ulp_bounds import EXP_RANGE, EXP_ULPS, U
from residua.pld.families import symmetric
from residua.pld.families.atoms import Atoms
from residua.pld.families.factors import Terms
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.families.symmetric import SymmetricLoss
from residua.work_limit import work


@dataclass(frozen=True)
class ContourLine:
    """The nodes `λ + iω`, `ω = 0, step, …`, and values that depend only on them."""

    lam: float
    step: float
    count: int
    tau: float
    points: Floats
    """Real points at which moments are kept for the alias bound."""

    @cached_property
    def real_points(self) -> Floats:
        """Where the log moment is needed: at `λ`, and then at `points`."""
        return np.concatenate([[self.lam], self.points])

    @property
    def edge(self) -> float:
        """The first frequency beyond the last node, rounded down."""
        return self.count * self.step * (1.0 - 8.0 * U)

    @cached_property
    def omega(self) -> Floats:
        return np.arange(float(self.count)) * self.step

    @cached_property
    def kernel(self) -> NDArray[np.complex128]:
        """`2 / (T s (s+1))`, half of it at the real node: the sum over `±k` in one."""
        lam, omega = self.lam, self.omega
        square = lam * (lam + 1.0) - omega * omega + 1j * (omega * (2.0 * lam + 1.0))
        return np.asarray(self._scale / square, dtype=np.complex128)

    @cached_property
    def lower_kernel(self) -> NDArray[np.complex128]:
        """The same for `1/(s(s+1)) - κ`."""
        return self.kernel - self.kappa * self._scale

    @cached_property
    def _scale(self) -> Floats:
        scale = np.full(self.count, self.step / math.pi)
        scale[0] *= 0.5
        return scale

    @cached_property
    def kernel_size(self) -> Floats:
        return np.abs(self.kernel)

    @cached_property
    def lower_kernel_size(self) -> Floats:
        return self.kernel_size + self.kappa * self._scale

    @cached_property
    def kappa(self) -> float:
        return _smoothing_kappa(self.tau)

    @cached_property
    def alias_gaps(self) -> tuple[Floats, NDArray[np.bool_], float]:
        """Log weight of each point (`A`, geometric series), its side; the bound from `D <= 1`.

        (The complement's is the point 0.)
        """
        period = 2.0 * math.pi / self.step * (1.0 - 16.0 * U)
        r = self.points
        gap = np.abs(r - self.lam) * period
        flat = math.inf
        if self.lam > 0.0:
            flat = math.exp(-self.lam * period) / -math.expm1(-self.lam * period)
        return log_kernel_peak(r) - gap - np.log(-np.expm1(-gap)) + 1e-12, r > self.lam, flat


def _smoothing_kappa(tau: float) -> float:
    """`τ (2Φ(τ/2) - 1) / φ(τ/2)`, rounded up; zero without a smoothing Gaussian."""
    if tau == 0.0:
        return 0.0
    middle = math.erf(tau / (2.0 * math.sqrt(2.0)))
    return tau * middle * math.sqrt(2.0 * math.pi) * math.exp(tau * tau / 8.0) * (1.0 + 64.0 * U)


def log_kernel_peak(r: Floats) -> Floats:
    """`ln A(r)`, `A(r) = r^r / (1+r)^(1+r)` for `r > 0`; 0, the complement's, for `r <= 0`."""
    r = np.where(r > 0.0, r, 1e-300)
    return np.asarray(-r * np.log1p(1.0 / r) - np.log1p(r))


_BOUND_ONLY = 1.2
"""Relative error of a value that is only a bound: the true value is within twice its size."""
_TOO_SMALL = 1e-200
"""Values below this are replaced by bounds, which stay above `e^-EXP_RANGE`."""
COMPLEX_PRODUCT = 3.0 * U
"""Relative error of one complex product (sqrt(5) u, Brent, Percival and Zimmermann 2007)."""


def raise_to_powers(
    v: NDArray[np.complex128], e: Floats, counts: Floats
) -> tuple[NDArray[np.complex128], Floats]:
    """`v^n` row by row and its relative error; a value not above its error becomes a bound."""
    work(v.size * (6.0 + 3.0 * math.log2(float(counts.max()))))
    size = np.abs(v)
    if not (counts != 1.0).any():
        relative = e / np.maximum(size, _TOO_SMALL) * (1.0 + 4.0 * U)
        if float(relative.max()) < 0.5 and float(size.min()) > _TOO_SMALL:
            return v, relative
        is_bound = (relative >= 0.5) | (size <= _TOO_SMALL)
        return np.where(is_bound, size + e + _TOO_SMALL + 0j, v), np.where(
            is_bound, _BOUND_ONLY, relative
        )
    reach = size + e
    relative = counts * (e / np.maximum(size, 1e-300)) * (1.0 + 4.0 * U)
    is_bound = (size <= 2.0 * e) | (counts * np.log(reach) < -600.0)
    relative = relative + counts * COMPLEX_PRODUCT
    v = _integer_power(v, counts.astype(np.int64).ravel())
    if is_bound.any():
        bound = np.exp(np.maximum(counts * np.log(reach) + 1e-6, -EXP_RANGE))
        v = np.where(is_bound, bound + 0j, v)
        relative = np.where(is_bound, _BOUND_ONLY, relative)
    return v, relative


def multiply_by_factor(
    value: NDArray[np.complex128], error: Floats, v: NDArray[np.complex128], relative: Floats
) -> tuple[NDArray[np.complex128], Floats]:
    """Multiply values by one more factor. Below 1e-200 a bound stays: no factor exceeds 1."""
    work(8.0 * v.size)
    product = value * v
    total = error + relative + COMPLEX_PRODUCT
    if np.abs(product).min() < _TOO_SMALL:
        was_bound = np.abs(value) < _TOO_SMALL
        product = np.where(was_bound, value, product)
        total = np.where(was_bound, error, total)
        small = ~was_bound & (np.abs(product) < _TOO_SMALL)
        logs = np.log(np.maximum(np.abs(product), 1e-300)) + total
        bound = np.exp(np.clip(logs, -EXP_RANGE, 0.0))
        product = np.where(small, bound + 0j, product)
        total = np.where(small, _BOUND_ONLY, total)
    return product, total


def _integer_power(v: NDArray[np.complex128], counts: NDArray[np.int64]) -> NDArray[np.complex128]:
    """Powers with one exponent a row, by squaring; relative error `(n - 1)` complex products."""
    result = np.ones_like(v)
    base = v
    left = counts.copy()
    while True:
        odd = (left & 1).astype(bool)
        if odd.any():
            result = np.where(odd[:, None], result * base, result)
        left >>= 1
        if not left.any():
            return result
        base = base * base


_ONE, _NO_ERROR = np.ones(1, dtype=np.complex128), np.zeros(1)


class Moments:
    """Log moments and node values of a composition, evaluated family by family."""

    def __init__(self, terms: Terms, variance: float, variance_error: float):
        self.variance = variance
        self.variance_error = variance_error
        self._symmetric: list[tuple[SymmetricLoss, int]] = []
        self.mixtures: list[tuple[GaussianMixture, int]] = []
        self.other_factors: list[tuple[Atoms | GaussianMixture, int]] = []
        for factor, n in terms.items():
            if isinstance(factor, SymmetricLoss):
                self._symmetric.append((factor, n))
            else:
                self.other_factors.append((factor, n))
                if isinstance(factor, GaussianMixture):
                    self.mixtures.append((factor, n))
        rows = [(f.eps, *f.weights, n) for f, n in self._symmetric]
        eps, a, b, counts = np.array(rows, dtype=np.float64).reshape(-1, 4).T
        self._columns: symmetric.Columns = (eps[:, None], a[:, None], b[:, None])
        self._counts: Floats = counts

    def log_moment(self, s: Floats) -> tuple[Floats, Floats]:
        """`K(s) = ln E[e^{sZ}; Z < inf]` at real `s` (one-dimensional) and its absolute error."""
        value, error = self._in_closed_form(s)
        for factor, n in self.other_factors:
            k, e = factor.log_moment(s)
            value = value + n * k
            error = error + n * e + 2.0 * U * np.abs(value)
        return value, error * 1.01

    def rough_log_moment(self, s: Floats) -> Floats:
        """`K(s)` for `s > 0` without an error bound, fast: for choosing `λ`."""
        value, _ = self._in_closed_form(s)
        for factor, n in self.other_factors:
            if isinstance(factor, GaussianMixture):
                value = value + n * factor.pair.rough_log_moment(s)
            else:
                value = value + n * factor.log_moment(s)[0]
        return value

    def _in_closed_form(self, s: Floats) -> tuple[Floats, Floats]:
        """The part of `K` that the Gaussian and symmetric losses contribute, and its error."""
        if self.variance > 0.0:
            value = (0.5 * self.variance) * s * (s + 1.0)
            error = np.abs(value) * (self.variance_error + 4.0 * U)
        else:
            value = error = np.zeros(s.shape)
        counts = self._counts
        if counts.size:
            work(25.0 * counts.size * s.size, 80.0 * counts.size * s.size)
            k, e = symmetric.log_moment(*self._columns, s)
            value = value + counts @ k
            error = error + counts @ e + (counts @ np.abs(k)) * ((counts.size + 2.0) * U)
        return value, error

    @property
    def has_density(self) -> bool:
        """Whether a factor has a density, so that `|V|` decays faster than the Gaussian part."""
        return bool(self.mixtures) or bool(np.any(self._columns[2] > 0.0))

    @property
    def atomic_weight(self) -> tuple[float, float]:
        """`ln Π w`, the log weight of all atoms of symmetric factors, and its absolute error."""
        counts = self._counts
        logs = np.log(np.array([f.atomic_share for f, _ in self._symmetric]))
        total, size = float(counts @ logs), float(counts @ np.abs(logs))
        rounding = (EXP_ULPS + 2.0 * counts.size + 4.0) * size
        return total, U * (rounding + (EXP_ULPS + 4.0) * float(counts @ (logs < 0.0)))

    def log_decay(self, lam: float, edges: Floats) -> Floats:
        """An upper bound on `ln |V|` for all `ω >= edge`, for each edge (increasing, positive)."""
        value = -0.5 * self.variance * (1.0 - self.variance_error - 8.0 * U) * edges * edges
        counts = self._counts
        if counts.size:
            work(25.0 * counts.size * edges.size, 80.0 * counts.size * edges.size)
            value = value + counts @ symmetric.log_decay(*self._columns, lam, edges)
        for factor, n in self.mixtures:
            value = value + n * factor.log_decay(lam, edges)
        return np.asarray(value)

    def affordable_count(self, lam: float, per_edge: float, work: float) -> float:
        """The number of nodes, `per_edge` in each unit of `ω`, that take so much work."""
        most = float("inf")
        for factor, _ in self.mixtures:
            fixed, slope = factor.pair.points(lam)
            # count (fixed + slope count / per_edge) = work
            turn = 0.5 * fixed * per_edge / slope
            most = min(most, math.sqrt(turn * turn + work * per_edge / slope) - turn)
        return most

    def nodes(
        self, line: ContourLine, smoothing: float = 0.0
    ) -> tuple[NDArray[np.complex128], Floats]:
        """`V_k` on a line and a bound on its relative error; `smoothing` adds to the variance."""
        lam, omega, count = line.lam, line.omega, line.count
        work(50.0 * count, 200.0 * count)
        value, error = _ONE, _NO_ERROR
        variance = self.variance + smoothing
        if variance > 0.0:
            fall = 0.5 * variance * omega * omega
            turn = variance * (lam + 0.5) * omega
            value = np.exp(-fall) * (np.cos(turn) + 1j * np.sin(turn))
            error = (fall + np.abs(turn)) * (self.variance_error + 8.0 * U)
            error += (3.0 * EXP_ULPS + 8.0) * U
        rows = max(1, BATCH // (16 * count))
        for start in range(0, self._counts.size, rows):
            part = slice(start, start + rows)
            counts = self._counts[part, None]
            work(50.0 * count * counts.size, 200.0 * count * counts.size)
            eps, a, b = (column[part] for column in self._columns)
            v, e = symmetric.nodes(eps, a, b, lam, omega)
            v, relative = raise_to_powers(v, e, counts)
            relative = relative.sum(axis=0) + (counts.size - 1.0) * COMPLEX_PRODUCT
            value, error = multiply_by_factor(value, error, np.multiply.reduce(v, axis=0), relative)
        for factor, n in self.other_factors:
            v, e = factor.nodes(lam, line.step, count)
            v, relative = raise_to_powers(v[None], e[None], np.array([[float(n)]]))
            value, error = multiply_by_factor(value, error, v[0], relative[0])
        if value is _ONE:
            return np.ones(count, dtype=np.complex128), np.zeros(count)
        return value, error
