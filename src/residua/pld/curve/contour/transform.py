"""Composition without a grid: hockey-stick curves from moments on a vertical line.

For a PLD with finite part `M(s) = E[e^{sZ}; Z < inf]` and `D(t) = E[(1 - e^{t-Z})_+; Z < inf]`,
the bilateral Laplace transform of `D` is `M(s) / (s(s+1))` for `Re s > 0`. Poisson summation
over the nodes `s_k = λ + 2πik/T` gives

    (1/T) Σ_k M(s_k) e^{-s_k t} / (s_k (s_k + 1)) = D(t) + Σ_{j≠0} e^{λjT} D(t + jT).

Every alias on the right is non-negative, so the full sum bounds `D(t)` from above. Written
with `C = M(λ) e^{-λt}` and `V_k = M(s_k) / M(λ)`, `|V_k| <= 1`, the charged errors are

* truncation at `|k| <= N`: a Gaussian part of variance `c` has `|V_k| <= e^{-c ω²/2}`, and smooth
  factors have separate bounds on `|V|` beyond the last node (`log_decay`);
* aliases (lower bound only): `D(t) <= A(r) M(r) e^{-rt}` for every real `r > 0`, where
  `A(r) = r^r / (1+r)^(1+r)` is the maximum of `(1 - e^-y) e^{-ry}`; and `D <= 1`. Two geometric
  series, one on each side of `λ`;
* rounding: each factor's node value carries an absolute error `e`; their product has relative
  error at most `exp(Σ e/|V|) - 1`, kept per node; the final sum at most `(N + 8) u Σ|terms|`.

Where no Gaussian is present (or too little of one) a smoothing Gaussian `G_τ` is composed in, which
can only raise the curve. The lower bound takes it out again: `h_{G_τ}(e^t) - (1 - e^t)_+` is at
most `κ` times the density of `G_τ` at `t`, with `κ = τ (2Φ(τ/2) - 1) / φ(τ/2)`: for `t >= 0` the
ratio of the two is `τ (R(y) - R(y + τ))` with `y = t/τ - τ/2`, which decreases since the Mills
ratio `R` is convex, and for `t < 0` it is the same by symmetry. Subtracting `κ` from
`1/(s(s+1))` therefore gives a curve below `D`, and below `D` at every alias. The width this
leaves is about `τ² (λ+1)` in `eps`, whatever the number of queries, and `0.4 τ` next to a heavy
atom. So while they are few, the atoms that Laplaces leave are taken out first: the atomic part
of a Laplace is `w R_e` with `w = (1 + e^-e) / 2`, so that of a composition is `Π w` times its
*skeleton*, the same composition with responses for Laplaces; the skeleton is written out
(`small_support.py`) and the contour carries `M - Π w M_skeleton`, again a positive measure.

Where `D` is close to its limit a line left of the pole at 0 gives what is missing instead, with
relative accuracy: see `chernoff.py`.

Sums over the nodes of a line: `Σ_k Re(w_k e^{-iω_k t})`, `ω_k = k step`, at many `t`.

`k = aB + b` makes the phase a product `e^{-iaB step t}` times `e^{-ib step t}`, so that a matrix
product takes the place of most sines and cosines.

Error, beside that of the arguments (relative `2u` of each part, so at most `2u ω t` together): with
`A`, `B` about `√N` for `N` nodes, and sines and cosines off by `e u`,

    (2√2 e + √2 · 2A + 2B + 8) u Σ|w|

from two phases, complex products of `A` terms, and real sums of `2B`. With `A, B <= √N + 1` and
`e <= 10` that is below `(2e + 1.5 N + 24) u Σ|w|` for `N >= 16`, which
all lines have: what the caller charges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic import BATCH
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, TINY, U
from residua.pld.curve.contour.moments import ContourLine, Moments, multiply_by_factor
from residua.pld.families.factors import Terms
from residua.work_limit import work

Weights = NDArray[np.complex128]


def line_sums(weights: Sequence[Weights], t: Floats, step: float) -> Floats:
    """One row of sums for each list of weights, all of one length, and one column for each `t`."""
    count = weights[0].size
    fine = math.isqrt(count - 1) + 1
    coarse = -(-count // fine)
    phases = t.size * (fine + coarse)
    products = len(weights) * t.size * count
    work(4.0 * phases + 0.4 * products, 48.0 * min(phases, BATCH) + 32.0 * count)
    # Side by side, for one product: row `a` has the weights of all its `b`, list after list.
    tables = np.zeros((len(weights), coarse * fine), dtype=np.complex128)
    tables[:, :count] = weights
    tables = tables.reshape(-1, coarse, fine).transpose(1, 0, 2).reshape(coarse, -1)
    sums = np.empty((len(weights), t.size))
    rows = max(1, BATCH // (coarse + fine))
    for start in range(0, t.size, rows):
        part = slice(start, start + rows)
        left, right = _turns(t[part], fine * step, coarse), _turns(t[part], step, fine)
        inner = (left @ tables).reshape(-1, len(weights), fine)
        sums[:, part] = np.einsum("ij,ikj->ki", right.real, inner.real)
        sums[:, part] -= np.einsum("ij,ikj->ki", right.imag, inner.imag)
    return sums


def _turns(t: Floats, step: float, count: int) -> Weights:
    """`e^{-ik step t}` for `k = 0, …, count - 1`, one row for each `t`."""
    argument = t[:, None] * (np.arange(float(count)) * step)
    made = np.empty(argument.shape, dtype=np.complex128)
    made.real, made.imag = np.cos(argument), -np.sin(argument)
    return made


FEWEST = 16
"""Nodes of a line, at least."""
STALE = 3e-7
"""Aliases, relative to the value, at which a stream asks for another contour."""


@dataclass(frozen=True)
class Contour:
    """Node values of one composition on one line; answers `D(t)` near the tilt it was made for."""

    line: ContourLine
    values: NDArray[np.complex128]
    errors: Floats
    """Relative error of each value: the truth is within `|V_k| expm1(errors_k)`."""
    log_m: float
    log_m_error: float
    tails: tuple[float, float]
    """What lies beyond the last node at most, relative to `C`: upper sum, lower sum."""
    aim: float
    """The `t` it was made for."""
    point_moments: Floats
    """Upper bounds of `K` (smoothing included) at the line's points."""
    absolute: Floats | None = None
    """Absolute error of each value, instead of `errors`, where a skeleton was taken out."""

    def extended(self, terms: Terms, variance: float, variance_error: float) -> Contour:
        """The contour of this composition with more factors composed in.

        No factor exceeds 1 at a node, so what lies beyond the last one does not grow.
        """
        more = Moments(terms, variance, variance_error)
        values, errors = more.nodes(self.line)
        values, errors = multiply_by_factor(self.values, self.errors, values, errors)
        k, e = more.log_moment(self.line.real_points)
        log_m = self.log_m + float(k[0])
        return replace(
            self,
            values=values,
            errors=errors,
            log_m=log_m,
            log_m_error=self.log_m_error + float(e[0]) + 2.0 * U * abs(log_m),
            point_moments=self.point_moments + k[1:] + e[1:],
        )

    @property
    def is_stale(self) -> bool:
        """Whether a stream has outgrown the period: where it was aimed at the aliases show."""
        at, exactly = np.array([self.aim]), np.zeros(1)
        return bool(self._aliases(at, exactly)[0] > STALE * self.curve(at, exactly)[1][0])

    def curve(self, t: Floats, dt: Floats | float) -> tuple[Floats, Floats]:
        """Enclosure of `D(t)` for an array of `t >= 0`, each known up to `±dt`.

        On a line left of 0, of the complement `W(t)`.
        """
        line = self.line
        work(10.0 * t.size * line.points.size, 32.0 * t.size * line.points.size)
        steepness = abs(line.lam)
        flat = t.ravel()
        slack = np.broadcast_to(np.asarray(dt), t.shape).ravel()
        sums = line_sums(self._weighted, flat, line.step)
        per_t = 3.0 * U * flat + slack
        log_c = self.log_m - line.lam * flat
        log_c_error = self.log_m_error + (abs(self.log_m) + 3.0 * steepness * flat) * U
        c_error = np.expm1(np.minimum(log_c_error + steepness * slack, 100.0))
        c_error += (EXP_ULPS + 4.0) * U
        # D itself never exceeds 1, however far off the tilt is.
        steep = log_c > 700.0
        c = np.exp(np.minimum(log_c, 700.0))
        (wrong, turning), (bent_wrong, bent_turning) = self._rounding
        plain = (wrong + turning * per_t) * 1.01 + self.tails[0]
        bent = (bent_wrong + bent_turning * per_t) * 1.01 + self.tails[1]
        with np.errstate(over="ignore", invalid="ignore"):
            if line.lam > 0.0:
                high, low = sums[0] + plain, sums[-1] - bent
            else:
                high, low = bent - sums[-1], -sums[0] - plain
            upper = c * (1.0 + c_error) * np.maximum(high, 0.0) + TINY
            lower = c * np.maximum(1.0 - c_error, 0.0) * np.maximum(low, 0.0)
            lower = lower - self._aliases(flat, slack) - TINY
        lost = steep | ~(log_c_error < 100.0) | ~np.isfinite(upper) | ~np.isfinite(lower)
        return (
            np.where(lost, 0.0, np.maximum(lower, 0.0)).reshape(t.shape),
            np.where(lost, 1.0, np.minimum(upper, 1.0)).reshape(t.shape),
        )

    @cached_property
    def _weighted(self) -> list[NDArray[np.complex128]]:
        """Values times each kernel."""
        line = self.line
        kernels = [line.kernel, line.lower_kernel] if line.kappa else [line.kernel]
        return [self.values * kernel for kernel in kernels]

    @cached_property
    def _rounding(self) -> list[tuple[float, float]]:
        """Error of each sum, relative to `C`, and what an error of `t` adds to it at most."""
        line = self.line
        size = np.abs(self.values)
        wrong = self.absolute
        if wrong is None:
            wrong = size * np.expm1(np.minimum(self.errors, 100.0))
        wrong = wrong + size * ((2.0 * EXP_ULPS + 1.5 * line.count + 24.0) * U)
        first = (float(wrong @ line.kernel_size), float((size * line.omega) @ line.kernel_size))
        if not line.kappa:
            return [first, first]
        kernel = line.lower_kernel_size
        return [first, (float(wrong @ kernel), float((size * line.omega) @ kernel))]

    def _aliases(self, t: Floats, slack: Floats) -> Floats:
        """Upper bound on `Σ_{j≠0} e^{λjT} D(t + jT)`."""
        gaps, right, flat = self.line.alias_gaps
        r = self.line.points
        # All points are on the same side of 0 as the line.
        at = t * (1.0 - 4.0 * U) - slack if self.line.lam > 0.0 else t * (1.0 + 4.0 * U) + slack
        logs = self.point_moments - r * at[:, None]
        logs = logs + np.abs(self.point_moments) * (4.0 * U) + gaps
        with np.errstate(over="ignore"):
            above, below = (np.exp(logs[:, side].min(axis=1)) for side in (right, ~right))
        return np.asarray((above + np.minimum(below, flat)) * (1.0 + 1e-12))


def truncation(line: ContourLine, variance: float, log_decay: float) -> tuple[float, float]:
    """The sums over all nodes left out, upper and lower kernel.

    With a Gaussian part `|V_k|` falls geometrically past the edge; without one the kernel alone
    has to, as `1/ω²`, times the bound `log_decay` on `ln |V|` at the edge.
    """
    edge = line.edge
    first = math.exp(min(log_decay, 0.0)) * (1.0 + 1e-12)
    flat = first / math.pi * (line.step / (edge * edge) + 1.0 / edge) + TINY
    if not variance > 0.0:
        return flat, flat if line.kappa == 0.0 else math.inf
    weight = line.step / math.pi * first / -math.expm1(-variance * edge * line.step) * 1.01 + TINY
    if not math.isfinite(weight):
        return flat, math.inf
    upper = min(flat, weight / (edge * edge))
    return upper, upper + line.kappa * weight
