"""Contours for few mixtures: low losses in all queries are bounded, the rest is summed.

The loss of a sampled query crowds next to its least value, so `|V|` of a few of them falls very
slowly in `ω`. But where all have low losses (below) their sum stays below the `t` of
interest:

    D(t) = D_E(t) + D_Q(t),      0 <= D_Q(t) <= A(r) Q(r) e^{-rt}  for every r > 0,

with `A` as in `transform.py`. `D_E` is summed there as it is: `E` is a positive measure below the
whole, so aliases are bounded by the whole's moments, and what lies beyond the last node by
`|E| <= Σ |b_i|` there, which falls as fast as the high-loss parts do.

As a stream goes on `Q` begins to reach `t`, and `|V| = |E + Q|` falls faster: once it is negligible
beyond the last node the contour becomes an ordinary one.

Low-loss and high-loss parts of moments, and of their products.

The measure of a mixture's loss is cut in two at a smooth threshold of the observation
(`normal_mixture.py`): `M = a + b`, `a` the low-loss part and `b` the high-loss one; any other
factor counts as low-loss. Of a product

    Π (a_i + b_i) = Π a_i + (what has at least one high-loss factor) = Q + E,

both are positive measures again, and `(E, Q) (b, a) = (E (a + b) + Q b, Q a)`. All values are
relative to `M(λ)`, their errors absolute: `E` may be far smaller than `Q` and keeps its digits.

Where to cut the mixtures of a contour in two, if at all.

Nothing here is proven and nothing needs to be: what a choice costs is charged by `split.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic.phases import phase_sums
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, TINY, U
from residua.pld.curve.contour.moments import Line, Moments, log_peak
from residua.pld.curve.contour.transform import STALE, Contour, truncation
from residua.pld.families.factors import Terms
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.families.normal_mixture import Cut, Pair, Quadrature
from residua.work_limit import work

_LIGHT = 1e-20
"""Quadrature points lighter than this are dropped (and charged)."""
_SPARE = 1e-300
_SHARPNESS = 0.1


@dataclass(frozen=True)
class Parts:
    """Values of `E` and `Q` at the nodes of a line, and bounds on their absolute errors."""

    loud: NDArray[np.complex128]
    quiet: NDArray[np.complex128]
    loud_error: Floats
    quiet_error: Floats

    @property
    def whole(self) -> tuple[NDArray[np.complex128], Floats]:
        """`E + Q` and its absolute error."""
        value = self.loud + self.quiet
        return value, self.loud_error + self.quiet_error + 2.0 * U * np.abs(value)

    def times(self, other: Parts) -> Parts:
        """The product of two measures in parts."""
        work(20.0 * self.loud.size)
        whole, whole_error = other.whole
        reach = np.abs(whole) + whole_error
        size, other_size = np.abs(self.quiet), np.abs(other.loud)
        first, second = self.loud * whole, self.quiet * other.loud
        quiet = self.quiet * other.quiet
        loud_error = self.loud_error * reach + np.abs(self.loud) * whole_error
        loud_error = loud_error + self.quiet_error * (other_size + other.loud_error)
        loud_error = loud_error + size * other.loud_error
        loud_error = loud_error + 4.0 * U * (np.abs(first) + np.abs(second))
        quiet_error = self.quiet_error * (np.abs(other.quiet) + other.quiet_error)
        quiet_error = quiet_error + size * other.quiet_error + 4.0 * U * np.abs(quiet)
        slack = 1.0 + 16.0 * U
        return Parts(
            first + second,
            quiet,
            loud_error * slack + _SPARE,
            quiet_error * slack + _SPARE,
        )

    def scaled(self, value: NDArray[np.complex128], error: Floats) -> Parts:
        """The product with a low-loss measure."""
        nothing = np.zeros(value.shape)
        return self.times(Parts(nothing.astype(np.complex128), value, nothing, error))

    def power(self, n: int) -> Parts:
        """`n` factors alike."""
        result: Parts | None = None
        base = self
        while True:
            if n & 1:
                result = base if result is None else result.times(base)
            n >>= 1
            if n == 0:
                assert result is not None
                return result
            base = base.times(base)


def identity(count: int) -> Parts:
    """The measure without any loss, as a low-loss part."""
    nothing = np.zeros(count)
    return Parts(nothing.astype(np.complex128), np.ones(count, np.complex128), nothing, nothing)


def unknown(count: int) -> Parts:
    """Nothing is known of a factor but that it is one."""
    nothing, one = np.zeros(count, np.complex128), np.ones(count)
    return Parts(nothing, nothing, one, one)


def placed(pair: Pair, near: float, far: float) -> Cut | None:
    """A cut where the loss is about `near`, sharp enough for little to count as low at `far`."""
    low, high = pair.q.least - 8.0, pair.p.most + 8.0 + (far + 8.0) / pair.reach
    x = np.linspace(low, high, 97)
    loss = pair.loss(x)[0]
    if not loss[0] < near < far < loss[-1]:
        return None
    centre, end = np.interp([near, far], loss, x)
    return Cut(float(centre), float(_SHARPNESS * (end - centre)))


def split_nodes(pair: Pair, cut: Cut, lam: float, step: float, count: int) -> Parts | None:
    """High-loss and low-loss part of `M(λ+iω)/M(λ)` at `ω = 0, step, …, (count-1) step`."""
    rule = pair.quadrature(np.array([lam]), step * count, 1.0 + cut.bend)
    if rule is None or not _covers(rule, cut):
        return None
    omega = np.arange(float(count)) * step
    quiet, loud = _split(rule, cut)
    found = []
    for part in (loud, quiet):
        weights = part.weights[0] / part.totals[0]
        # Of M(λ): both sums run over the same points.
        share = float(np.exp(part.top[0] - rule.top[0]) * part.totals[0] / rule.totals[0])
        kept = weights > _LIGHT
        dropped = float(weights[~kept].sum())
        weights, z = weights[kept], rule.loss[kept]
        total, sums = phase_sums(weights, z, step, count)
        drift = float(weights @ (rule.loss_error[kept] + 8.0 * U * np.abs(z)))
        fixed = 2.0 * float(part.weight_error[0] + part.tails[0]) + 2.0 * dropped
        fixed += 2.0 * float(rule.weight_error[0] + rule.tails[0]) + 1e-17
        error = 1.01 * share * (fixed + 1.5 * sums + omega * drift)
        found.append((share * total, error + 4.0 * U * share * np.abs(total)))
    (loud_value, loud_error), (quiet_value, quiet_error) = found
    return Parts(loud_value, quiet_value, loud_error, quiet_error)


def loud_share(pair: Pair, cut: Cut, lam: float) -> float:
    """About the high-loss part of `M(λ)`, relative to all of it: the criterion for a cut."""
    rule = pair.quadrature(np.array([lam]))
    if rule is None:
        return 0.0
    return float(rule.weights[0] @ np.exp(cut.logs(rule.x)[0]) / rule.totals[0])


def quiet_log_moment(pair: Pair, cut: Cut, s: Floats) -> Floats:
    """An upper bound on the log of the low-loss part of `E e^{sZ}`, for real `s > 0`."""
    rule = pair.quadrature(s, 0.0, 1.0 + cut.bend)
    if rule is None or not _covers(rule, cut):
        return 0.5 * pair.reach**2 * s * (s + 1.0) * (1.0 + 16.0 * U)
    value, error = _split(rule, cut)[0].log_moment
    return np.asarray(value + error)


def _covers(rule: Quadrature, cut: Cut) -> bool:
    return float(rule.x[0]) < cut.centre < float(rule.x[-1])


def _split(rule: Quadrature, cut: Cut) -> tuple[Quadrature, Quadrature]:
    """The rule for the low-loss and for the high-loss part.

    Beyond an end of the grid on its own side of the centre a part is at least half of the
    whole at that end, and on the other side it falls faster than the whole: `tails` holds for
    it with another factor of 2.
    """
    work(40.0 * rule.x.size + 4.0 * rule.log_f.size)
    above, below, error = cut.logs(rule.x)
    log_error = rule.log_f_error + error + 2.0 * U * np.abs(rule.log_f)
    return (
        replace(rule, log_f=rule.log_f + below, log_f_error=log_error, spill=2.0),
        replace(rule, log_f=rule.log_f + above, log_f_error=log_error, spill=2.0),
    )


_NEGLIGIBLE = 1e-9
"""What may lie beyond the last node of an ordinary contour, relative to the sum."""
_LOST = 1.2
"""Relative error of a value that is only a bound, as in `moments.py`."""

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
            values = unknown(line.count)
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
        cut = placed(factor.pair, level.near, level.far)
        if cut is not None:
            found.append((factor, n, cut))
    return found


def node_parts(moments: Moments, cuts: Cuts, line: Line) -> Parts | None:
    """All factors on a line; None if a rule has too many points."""
    rest = moments.without([f for f, _, _ in cuts])
    found = identity(line.count)
    if not rest.is_empty:
        value, error = rest.nodes(line)
        found = found.scaled(value, np.abs(value) * np.expm1(np.minimum(error, 100.0)))
    for factor, n, cut in cuts:
        one = split_nodes(factor.pair, cut, line.lam, line.step, line.count)
        if one is None:
            return None
        found = found.times(one.power(n))
    return found


def quiet_moments(moments: Moments, cuts: Cuts, at: Floats) -> Floats:
    """Upper bounds of `ln Q(r)`."""
    k, e = moments.without([f for f, _, _ in cuts]).log_moment(at)
    value = k + e
    for factor, n, cut in cuts:
        value = value + n * quiet_log_moment(factor.pair, cut, at)
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


_CUT_SHARES = (0.35, 0.25, 0.18, 0.12, 0.08, 0.05)
"""Losses to cut at, as shares of `t`."""
_TILTS = np.array([2.0, 5.0, 9.0, 14.0, 22.0, 40.0])
"""Tilts for the bound on what is quiet, in units of `1 + 1/t`."""
_RELATIVE = math.log(1e-9)
"""Cost of the low-loss part and the truncation, at most, relative to the value."""
_CROWD, _MORE = 14.0, 1.5
"""A stream should have room for so many queries in all, and so many times those there are."""
_MOST_NODES = 1 << 15


def parted(
    moments: Moments, t: float, line: Line, k: Floats, e: Floats, spread: float, room: float
) -> Parted | None:
    """A contour in two parts on this line, its count left open; None if there is no low-loss part.

    `k` and `e` are log moments, and their errors, at the tilt and at the points of the line.
    """
    if not t > 0.0:
        return None
    lam = line.lam
    at = _TILTS * (1.0 + 1.0 / t)
    crowd = 1.0
    if room > 1.0:
        crowd = max(_MORE, _CROWD / sum(n for _, n in moments.mixtures))
    saddle = -math.log((lam + 1.0) * (lam * spread + 1.0) * 3.0)
    for share in _CUT_SHARES:
        level = Level(share * t, t)
        cuts = cut_at(moments, level)
        loud = sum(n * loud_share(f.pair, cut, lam) for f, n, cut in cuts)
        if not loud > 0.0:
            return None
        if share == _CUT_SHARES[0]:
            height = math.log(min(loud, 1.0)) + saddle
        quiet = quiet_moments(moments, cuts, at)
        bound = float(quiet_bound(at, crowd * quiet, np.array([t]), 0.0)[0])
        if math.log(bound) <= height + float(k[0]) - lam * t + _RELATIVE:
            break
    else:
        return None
    edges = np.geomspace(2.0 / spread, _MOST_NODES * line.step, 64)
    fall = np.log(falls(moments, cuts, lam, edges)[1] + 1e-300) - np.log(edges)
    enough = np.flatnonzero(fall <= height + _RELATIVE)
    if enough.size == 0:
        return None
    line = replace(line, count=int(float(edges[enough[0]]) / line.step) + 16)
    values = node_parts(moments, cuts, line)
    if values is None:
        return None
    tail, whole_fall = tails(moments, cuts, line)
    return Parted(
        line,
        level,
        values,
        float(k[0]),
        float(e[0]) + 8.0 * U * abs(float(k[0])),
        tail,
        truncation(line, 0.0, whole_fall)[0],
        t,
        k[1:] + e[1:] + 8.0 * U * np.abs(k[1:]),
        at,
        quiet,
    )
