"""Contours for few mixtures: low losses in all queries are bounded, the rest is summed.

The loss of a sampled query crowds next to its least value, so `|V|` of a few of them falls very
slowly in `ω`. But where all have low losses (`split_parts.py`) their sum stays below the `t` of
interest:

    D(t) = D_E(t) + D_Q(t),      0 <= D_Q(t) <= A(r) Q(r) e^{-rt}  for every r > 0,

with `A` as in `transform.py`. `D_E` is summed there as it is: `E` is a positive measure below the
whole, so aliases are bounded by the whole's moments, and what lies beyond the last node by
`|E| <= Σ |b_i|` there, which falls as fast as the high-loss parts do.

As a stream goes on `Q` begins to reach `t`, and `|V| = |E + Q|` falls faster: once it is negligible
beyond the last node the contour becomes an ordinary one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic.smooth_cut import Cut
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, TINY, U
from residua.pld.curve.contour import split_parts
from residua.pld.curve.contour.moments import Moments
from residua.pld.curve.contour.nodes import Line, log_peak
from residua.pld.curve.contour.split_parts import Parts
from residua.pld.curve.contour.transform import STALE, Contour, truncation
from residua.pld.families.factors import Terms
from residua.pld.families.gaussian_mixture import GaussianMixture

_NEGLIGIBLE = 1e-9
"""What may lie beyond the last node of an ordinary contour, relative to the sum."""
_LOST = 1.2
"""Relative error of a value that is only a bound, as in `products.py`."""

Cuts = list[tuple[GaussianMixture, int, Cut]]


@dataclass(frozen=True)
class Level:
    """Where the mixtures of a contour are cut: about this loss, more softly if `far` is far."""

    near: float
    far: float


@dataclass(frozen=True)
class Parted:
    """Node values of one composition in two parts; answers `D(t)` near the tilt it was made for."""

    line: Line
    level: Level
    values: Parts
    log_m: float
    log_m_error: float
    tail: float
    """What of `E` lies beyond the last node at most, relative to `C`."""
    whole_tail: float
    """The same of `E + Q`."""
    aim: float
    point_moments: Floats
    quiet_at: Floats
    quiet_moments: Floats
    """Upper bounds of `ln Q(r)` at the tilts `quiet_at`."""
    absolute: None = None
    """There is no skeleton; see `Contour`."""

    def curve(self, t: Floats, dt: Floats | float) -> tuple[Floats, Floats]:
        """Enclosure of `D(t)` for an array of `t >= 0`, each known up to `±dt`."""
        lo, hi = self._loud.curve(t, dt)
        return lo, np.minimum(hi + self.quiet_bound(t, dt), 1.0)

    def quiet_bound(self, t: Floats, dt: Floats | float) -> Floats:
        """An upper bound of `D_Q(t)`."""
        return quiet_bound(self.quiet_at, self.quiet_moments, t, dt)

    @property
    def is_stale(self) -> bool:
        """Whether a stream has outgrown the period, or the low-loss part is no longer small."""
        log_c = self.log_m - self.line.lam * self.aim
        height = self.height * math.exp(min(log_c, 700.0))
        return self._loud.is_stale or float(self.quiet_bound(np.array(self.aim), 0.0)) > (
            STALE * height
        )

    @property
    def height(self) -> float:
        """About `D/C` where it was aimed at."""
        return self._loud.height

    def is_near(self, t: Floats) -> NDArray[np.bool_]:
        """Whether the tilt leaves digits at `t`."""
        return self._loud.is_near(t)

    @cached_property
    def _loud(self) -> Contour:
        """The contour of `E` alone."""
        return Contour(
            self.line,
            self.values.loud,
            self.values.loud_error,
            self.log_m,
            self.log_m_error,
            (self.tail, self.tail),
            self.aim,
            self.point_moments,
            self.values.loud_error,
        )

    def extended(self, terms: Terms, variance: float, variance_error: float) -> Parted | Contour:
        """The contour of this composition with more factors composed in."""
        more = Moments(terms, variance, variance_error)
        line = self.line
        k, e = more.log_moment(line.tilts)
        cuts = cut_at(more, self.level)
        values = node_parts(more, cuts, line)
        if values is None:
            values = split_parts.unknown(line.count)
        values = self.values.times(values)
        log_m = self.log_m + float(k[0])
        tail, fall = tails(more, cuts, line)
        found = Parted(
            line,
            self.level,
            values,
            log_m,
            self.log_m_error + float(e[0]) + 2.0 * U * abs(log_m),
            (self.tail + tail) * (1.0 + 4.0 * U),
            self.whole_tail * math.exp(fall) * (1.0 + 2.0 * EXP_ULPS * U),
            self.aim,
            self.point_moments + k[1:] + e[1:],
            self.quiet_at,
            self.quiet_moments + quiet_moments(more, cuts, self.quiet_at),
        )
        return found.settled()

    def settled(self) -> Parted | Contour:
        """An ordinary contour if nothing is lost by that, else this one."""
        line = self.line
        if self.whole_tail > _NEGLIGIBLE * self.height:
            return self
        value, error = self.values.whole
        size = np.abs(value)
        lost = size <= 2.0 * error
        relative = error / np.maximum(size, 1e-300) * (1.0 + 4.0 * U)
        return Contour(
            line,
            np.where(lost, size + error + 0j, value),
            np.where(lost, _LOST, relative),
            self.log_m,
            self.log_m_error,
            (self.whole_tail, self.whole_tail),
            self.aim,
            self.point_moments,
        )


def cut_at(moments: Moments, level: Level) -> Cuts:
    """Each mixture that can be cut, with its count and its cut."""
    found = []
    for factor, n in moments.mixtures:
        cut = split_parts.placed(factor.pair, level.near, level.far)
        if cut is not None:
            found.append((factor, n, cut))
    return found


def node_parts(moments: Moments, cuts: Cuts, line: Line) -> Parts | None:
    """All factors on a line; None if a rule has too many points."""
    rest = moments.without([f for f, _, _ in cuts])
    found = split_parts.identity(line.count)
    if not rest.is_empty:
        value, error = rest.nodes(line)
        found = found.scaled(value, np.abs(value) * np.expm1(np.minimum(error, 100.0)))
    for factor, n, cut in cuts:
        one = split_parts.nodes(factor.pair, cut, line.lam, line.step, line.count)
        if one is None:
            return None
        found = found.times(one.power(n))
    return found


def quiet_moments(moments: Moments, cuts: Cuts, at: Floats) -> Floats:
    """Upper bounds of `ln Q(r)`."""
    k, e = moments.without([f for f, _, _ in cuts]).log_moment(at)
    value = k + e
    for factor, n, cut in cuts:
        value = value + n * split_parts.quiet_log_moment(factor.pair, cut, at)
    return np.asarray(value + 4.0 * U * (len(cuts) + 1.0) * np.abs(value))


def quiet_bound(at: Floats, moments: Floats, t: Floats, dt: Floats | float) -> Floats:
    """`min_r A(r) Q(r) e^{-rt}`, each `t` known up to `±dt`."""
    early = np.asarray(t * (1.0 - 4.0 * U) - dt)
    logs = log_peak(at) + moments - at * early[..., None]
    least = np.min(logs + 64.0 * U * np.abs(moments) + 1e-12, axis=-1)
    return np.asarray(np.exp(np.minimum(least, 0.0)) * (1.0 + 2.0 * EXP_ULPS * U) + TINY)


def falls(moments: Moments, cuts: Cuts, lam: float, edges: Floats) -> tuple[Floats, Floats]:
    """Upper bounds on `ln |E + Q|` and on `|E|` for all `ω >= edge`, for each edge.

    The latter is `Σ |b_i|`.
    """
    whole = moments.without([f for f, _, _ in cuts]).log_fall(lam, edges)
    loud = np.zeros(edges.shape)
    for factor, n, cut in cuts:
        log_whole, log_loud = factor.pair.falls(lam, edges, cut)
        whole = whole + n * log_whole
        loud = loud + n * np.exp(log_loud)
    return np.minimum(whole, 0.0), loud * (1.0 + 1e-12)


def tails(moments: Moments, cuts: Cuts, line: Line) -> tuple[float, float]:
    """What of `E` lies beyond the last node, relative to `C`; the fall of `E + Q`, as a log."""
    whole, loud = (float(v[0]) for v in falls(moments, cuts, line.lam, np.array([line.edge])))
    return loud * truncation(line, 0.0, 0.0)[0] * (1.0 + 4.0 * U), whole
