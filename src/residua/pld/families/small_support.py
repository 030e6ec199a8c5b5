"""Small finite compositions written out: atoms with exact-ish losses and log masses.

`n * R_{eps,delta}` has `n + 1` atoms, `(2k - n) eps` with binomial masses; powers of a short list
of atoms have multinomial masses; different ones multiply out. The result serves closed-form
evaluation, alone or composed with one Gaussian or Laplace: `h_{L ⊕ G_mu}(x) = p_inf +
Σ p_j h_{G_mu}(x e^{-z_j})` needs no grid.

Error budget: a log mass carries `log_error` (absolute), a loss `loss_error` (absolute).
Binomial coefficients come from `gammaln`: `GAMMALN_ULPS u` relative to its size, so about
1e-9 relative at `n = 10^6`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic import BATCH, MANY
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, GAMMALN_ULPS, SMALLEST, TINY, U
from residua.pld.families.atoms import ATOM_ULPS, Atoms
from residua.pld.families.symmetric import RandomizedResponse
from residua.work_limit import work

SmoothCurve = Callable[[Floats, Floats], tuple[Floats, Floats]]
FiniteTerm = tuple[RandomizedResponse | Atoms, int]
_FAR = 40.0
"""Atoms more than this above `t` count whole: `e^-40` is far below the rounding."""


def size(terms: Iterable[FiniteTerm]) -> int:
    """How many atoms `build(terms)` would have (before equal losses meet)."""
    total = 1
    for factor, n in terms:
        total *= _kinds(factor.atom_count, n)
        if total > 1 << 40:
            break
    return total


def _kinds(atoms: int, n: int) -> int:
    """How many ways to spread `n` draws over so many atoms."""
    if n > 1 and atoms > 64:
        return 1 << 41
    return comb(n + atoms - 1, atoms - 1)


@dataclass(frozen=True)
class Table:
    """Atoms of the finite part, in no particular order."""

    z: Floats
    log_p: Floats
    loss_error: float
    log_error: float

    def scaled(self, log_weight: float, log_error: float, loss_error: float) -> Table:
        """All masses times a weight, with its error; losses with an error more."""
        return Table(
            self.z,
            self.log_p + log_weight,
            self.loss_error + loss_error,
            self.log_error + log_error + 2.0 * U * (abs(log_weight) + 1.0),
        )

    @cached_property
    def p(self) -> Floats:
        """Masses, relative error at most `mass_error`."""
        return np.exp(self.log_p)

    @cached_property
    def mass_error(self) -> float:
        return float(np.expm1(self.log_error)) + 2.0 * EXP_ULPS * U

    def curve(self, t: Floats, dt: Floats | float) -> tuple[Floats, Floats]:
        """Enclosure of `E[(1 - e^{t-Z})_+; Z < inf]` for `t >= 0` known up to `±dt`."""
        z, p, p_sums = self._right_half
        # Of longer tables only the part that needs `exp` is gone through.
        direct = z.size <= MANY and t.size * z.size <= BATCH
        each = 3.0 * z.size if direct else 1000.0 + 3.0 * z.size
        work(t.size * each, 24.0 * t.size * z.size if direct else 0.0)
        flat = t.ravel()
        uncertainty = np.broadcast_to(self.loss_error + np.asarray(dt), t.shape).ravel()
        if direct:
            value = -np.expm1(np.minimum(flat[:, None] - z, 0.0)) @ p
        else:
            # Atoms more than `_FAR` above t count whole, up to e^-_FAR.
            value = np.empty_like(flat)
            first = np.searchsorted(z, flat, side="right")
            last = np.searchsorted(z, flat + _FAR, side="right")
            for i, (start, stop) in enumerate(zip(first, last, strict=True)):
                inside = -np.expm1(flat[i] - z[start:stop]) @ p[start:stop]
                value[i] = inside + p_sums[stop]
        near = p_sums[np.searchsorted(z, flat - uncertainty, side="right")]
        error = value * (self.mass_error + (EXP_ULPS + 4.0) * U)
        error += near * (uncertainty * 1.01 + (2.0 * z.size + 8.0) * U)
        error += 4.0 * z.size * SMALLEST
        low = np.maximum(value - error, 0.0).reshape(t.shape)
        high = np.where(near > 0.0, value + error + z.size * TINY, 0.0).reshape(t.shape)
        return low, high

    def complement(self, t: Floats, dt: Floats | float) -> tuple[Floats, Floats]:
        """Enclosure of `E[min(1, e^{t-Z}); Z < inf]`, see `chernoff.py`; relative accuracy."""
        z, p, p_sums = self._ascending
        work(t.size * (1000.0 + 3.0 * z.size))
        flat = t.ravel()
        uncertainty = np.broadcast_to(self.loss_error + np.asarray(dt), t.shape).ravel()
        first = np.searchsorted(z, flat, side="right")
        last = np.searchsorted(z, flat + _FAR, side="right")
        value = p_sums[first]
        for i, (start, stop) in enumerate(zip(first, last, strict=True)):
            value[i] += np.exp(flat[i] - z[start:stop]) @ p[start:stop]
        # An error of `t - z` is at most one of the same size in the logarithm of a term.
        relative = self.mass_error + uncertainty * 1.01 + (EXP_ULPS + 2.0 * z.size + 48.0) * U
        low = np.maximum(value * (1.0 - relative) - z.size * TINY, 0.0)
        high = value * (1.0 + relative) + p_sums[-1] * np.exp(-0.99 * _FAR) + z.size * TINY
        return low.reshape(t.shape), high.reshape(t.shape)

    @cached_property
    def _ascending(self) -> tuple[Floats, Floats, Floats]:
        """Losses in order, their masses and the sums of those before each."""
        order = np.argsort(self.z, kind="stable")
        p = self.p[order]
        return self.z[order], p, np.concatenate([np.zeros(1), np.cumsum(p)])

    @cached_property
    def _right_half(self) -> tuple[Floats, Floats, Floats]:
        """Losses above zero in order, their masses and the suffix sums of these."""
        kept = np.flatnonzero(self.z > -self.loss_error)
        kept = kept[np.argsort(self.z[kept], kind="stable")]
        z, p = self.z[kept], self.p[kept]
        return z, p, np.concatenate([np.cumsum(p[::-1])[::-1], np.zeros(1)])

    def smoothed_curve(
        self, t: Floats, dt: Floats | float, smooth: SmoothCurve
    ) -> tuple[Floats, Floats]:
        """The same after composing with a PLD without mass at infinity, given by its curve."""
        flat = t.ravel()
        uncertainty = np.broadcast_to(self.loss_error + np.asarray(dt), t.shape).ravel()
        low, high = np.empty_like(flat), np.empty_like(flat)
        rows = max(1, BATCH // max(1, 8 * self.z.size))
        for start in range(0, flat.size, rows):
            part = slice(start, start + rows)
            gap = flat[part, None] - self.z
            work(5.0 * gap.size, 64.0 * gap.size)
            lo, hi = smooth(gap, uncertainty[part, None] + np.abs(gap) * U)
            low[part], high[part] = lo @ self.p, hi @ self.p
        rounding = self.mass_error + (self.z.size + 4.0) * U
        return (
            (low * (1.0 - rounding)).reshape(t.shape),
            (high * (1.0 + rounding) + TINY).reshape(t.shape),
        )


def build(terms: Iterable[FiniteTerm]) -> Table:
    """Write out a composition of finite factors."""
    table = Table(np.zeros(1), np.zeros(1), 0.0, 0.0)
    for factor, n in terms:
        if isinstance(factor, RandomizedResponse):
            table = _product(table, _binomial(factor, n))
        else:
            table = _product(table, _atoms(factor) if n == 1 else _multinomial(factor, n))
    return table


def _product(a: Table, b: Table) -> Table:
    work(40.0 * a.z.size * b.z.size, 64.0 * a.z.size * b.z.size)
    z = (a.z[:, None] + b.z).ravel()
    log_p = (a.log_p[:, None] + b.log_p).ravel()
    size_z = float(np.max(np.abs(z), initial=0.0))
    size_p = float(np.max(np.abs(log_p), initial=0.0))
    return Table(
        z,
        log_p,
        a.loss_error + b.loss_error + size_z * U,
        a.log_error + b.log_error + size_p * U,
    )


def _atoms(factor: Atoms) -> Table:
    log_error = (ATOM_ULPS + EXP_ULPS * float(np.max(np.abs(factor.log_p)))) * U
    return Table(factor.z, factor.log_p, factor.loss_error, log_error)


def _multinomial(factor: Atoms, n: int) -> Table:
    """`n` draws from a short list of atoms, equal draws counted together."""
    from scipy.special import gammaln

    left = np.array([float(n)])
    z, log_p = np.zeros(1), np.array([float(gammaln(n + 1.0))])
    for i in range(factor.p.size):
        if i == factor.p.size - 1:
            k, row = left, np.arange(left.size)
        else:
            times = (left + 1.0).astype(np.int64)
            work(60.0 * float(times.sum()), 64.0 * float(times.sum()))
            row = np.repeat(np.arange(left.size), times)
            k = np.arange(float(times.sum())) - np.repeat(np.cumsum(times) - times, times)
        z = z[row] + k * factor.z[i]
        log_p = log_p[row] + k * factor.log_p[i] - gammaln(k + 1.0)
        left = left[row] - k
    largest = n * float(np.max(np.abs(factor.z)))
    logs = n * float(np.max(np.abs(factor.log_p)))
    steps = factor.p.size + 2.0
    coefficients = 2.0 * max(1.0, float(gammaln(n + 1.0))) + steps
    return Table(
        z,
        log_p,
        n * factor.loss_error + steps * largest * U,
        U * (n * ATOM_ULPS + logs * (EXP_ULPS + steps) + coefficients * (GAMMALN_ULPS + steps)),
    )


def _binomial(factor: RandomizedResponse, n: int) -> Table:
    from scipy.special import gammaln

    work(60.0 * n, 64.0 * n)
    k = np.arange(n + 1, dtype=np.float64)
    z = (2.0 * k - n) * factor.eps
    none = np.log1p(-factor.delta)
    heads = -np.log1p(np.exp(-factor.eps))
    chosen = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    log_p = n * (none + heads) + (k - n) * factor.eps + chosen
    sizes = 3.0 * max(1.0, float(gammaln(n + 1.0)))
    rest = n * (abs(none) + abs(heads) + factor.eps)
    log_error = U * (sizes * (GAMMALN_ULPS + 2.0) + rest * (3.0 * EXP_ULPS + 6.0))
    return Table(z, log_p, n * factor.eps * U, log_error)
