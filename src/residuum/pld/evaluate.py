"""Which method evaluates a curve, and the assembly of `h` from its parts.

    G_mu alone                          closed form                      gaussian.py
    one other factor                    closed form                      its own file
    few atoms, alone or with one        closed form / binomial           table.py
      Gaussian or other smooth factor
    anything else                       contour sums                     contour.py

`h(e^t) = p_inf + D(t)` for `t >= 0`, and `h(e^t) = 1 - e^t + e^t h_rev(e^-t)` for `t < 0`:
the right half of the reversed curve has the digits that matter there.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from residuum.bounds import Floats, Interval, float_down, float_up
from residuum.pld import contour, gaussian, table
from residuum.pld.atoms import Atoms
from residuum.pld.contour import Contour, Moments
from residuum.pld.factors import Factor, Rational
from residuum.pld.gaussian_mixture import GaussianMixture
from residuum.pld.randomized_response import RandomizedResponse
from residuum.pld.special import EXP_ULPS, LOG_ULPS, U

if TYPE_CHECKING:
    from residuum.pld.value import Pld

_TABLE = 1 << 14
_BINOMIAL = 1 << 20
_MIXTURE = 1 << 9
_RELATIVE = 2e-7
"""Relative width at which a contour without a phantom is accepted."""
_FLAT = 1e-9
"""Relative width good enough whatever it amounts to in `eps` (the curve is flat near 1)."""
_NOTHING = 1e-290
"""Heights below this are not worth another contour."""
_SHARPNESS = (1.0, 4.0, 16.0)
_HUGE = 1e15
"""Beyond this `t` Chernoff's bound, or else the value at 0, bounds the curve (it decreases)."""
_EXACT = 64
"""Up to this many atoms and arguments a finite curve is evaluated in rationals."""
_FEW = 16
"""The largest loss of at most this many kinds of query is summed exactly."""
_SKELETON = 1 << 12
_LIGHT = -14.0
"""Atoms whose log mass is below this are left in the contour: they hardly bend the curve."""
_FINITE = (RandomizedResponse, Atoms)
_KEPT = 8
"""Contours kept per PLD."""


class Evaluator:
    """Evaluates the hockey-stick curve of one PLD; remembers the contours it made."""

    def __init__(self, pld: Pld):
        self.pld = pld
        self.contours: tuple[Contour, ...] = ()

    # -- entry points -----------------------------------------------------------------

    def at_x(self, x: Floats, accuracy: float) -> Interval:
        """Enclosure of `h(x)` at exact `x > 0`."""
        atoms = self._single_atoms
        if atoms is not None and max(x.size, atoms.p.size) <= _EXACT:
            return _exactly(atoms, x)
        if atoms is not None:
            lo, hi = atoms.curve_at(x)
            return self._finish(*self._with_infinity(lo, hi), floor=np.nextafter(1.0 - x, -1.0))
        t = np.log(x)
        return self.at_log_x(t, np.abs(t) * (LOG_ULPS * U) + U, accuracy)

    def at_log_x(self, t: Floats, dt: Floats | float, accuracy: float) -> Interval:
        """Enclosure of `h(e^t)` for any real `t`, each known up to `±dt`."""
        s = np.abs(t)
        left = t < 0.0
        if not left.any():
            lo, hi = self.right(s, dt, accuracy)
        else:
            mirror = self.pld.reverse()._evaluator
            if mirror is self:
                lo, hi = self.right(s, dt, accuracy)
            else:
                lo, hi = np.empty(t.shape), np.empty(t.shape)
                slack = np.broadcast_to(np.asarray(dt), t.shape)
                for side, who in ((left, mirror), (~left, self)):
                    if np.any(side):
                        lo[side], hi[side] = who.right(s[side], slack[side], accuracy)
            lo, hi = gaussian.from_reversed(t, dt, lo, hi, left)
        x = np.exp(np.minimum(t, 1.0)) * (1.0 + 2.0 * EXP_ULPS * U + 2.0 * dt)
        return self._finish(lo, hi, floor=np.nextafter(1.0 - x, -1.0))

    def right(self, t: Floats, dt: Floats | float, accuracy: float) -> tuple[Floats, Floats]:
        """Enclosure of `h(e^t)` for `t >= 0`."""
        pld = self.pld
        if pld.is_infinite:
            return np.ones(t.shape), np.ones(t.shape)
        if pld.gaussian and not pld.terms:
            g = pld.gaussian
            return gaussian.curve(t, dt, g.variance, g.variance_error)
        far = t > _HUGE
        lo, hi = self._finite_part(np.where(far, 0.0, t), dt, accuracy)
        if far.any():
            lo = np.where(far, 0.0, lo)
            if self.reach(_NOTHING) <= _HUGE:
                hi = np.where(far, _NOTHING, hi)
        beyond = t - dt >= self._top
        if beyond.any():
            lo, hi = np.where(beyond, 0.0, lo), np.where(beyond, 0.0, hi)
        return self._with_infinity(lo, hi)

    # -- assembly ---------------------------------------------------------------------

    def _with_infinity(self, lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
        mass = self.pld.mass_at_infinity_bounds
        if mass.hi == 0.0:
            return lo, hi
        low = np.where(lo > 0.0, np.nextafter(mass.lo + lo, -np.inf), mass.lo)
        high = np.where(hi > 0.0, np.nextafter(mass.hi + hi, np.inf), mass.hi)
        return low, high

    def _finish(self, lo: Floats, hi: Floats, floor: Floats) -> Interval:
        """Clip to what every curve satisfies, `max(0, 1 - x) <= h <= 1`."""
        high = np.clip(hi, 0.0, 1.0)
        low = np.minimum(np.maximum(np.clip(lo, 0.0, 1.0), floor), high)
        if low.ndim == 0:
            return Interval(float(low), float(high))
        return Interval(low, high)

    @cached_property
    def _single_atoms(self) -> Atoms | None:
        if self.pld.gaussian is None and len(self.pld.terms) == 1:
            ((factor, n),) = self.pld.terms.items()
            if n == 1 and type(factor) is Atoms:
                return factor
        return None

    @cached_property
    def _top(self) -> float:
        """A float at least the largest finite loss (inf with a Gaussian)."""
        if self.pld.gaussian:
            return float("inf")
        if len(self.pld.terms) > _FEW:
            sizes = np.array([n * _largest_loss(f) for f, n in self.pld.terms.items()])
            slack = (sizes.size + 8.0) * U * np.abs(sizes).sum()
            return float(sizes.sum() + slack)
        exact = Fraction(0)
        rest = 0.0
        for factor, n in self.pld.terms.items():
            if isinstance(factor, Rational):
                exact += n * factor.top
            else:
                size = n * _largest_loss(factor)
                rest = float(np.nextafter(rest + size, np.inf)) + 2.0 * U * abs(rest)
        if rest == np.inf:
            return rest
        return float_up(exact) if rest == 0.0 else float_up(exact + Fraction(rest))

    def reach(self, level: float) -> float:
        """A `t >= 0` with `D(t) <= level` and `P(t < Z < inf) <= level`, by Chernoff's bound."""
        if not level > 0.0:
            return float("inf")
        return self._chernoff(np.geomspace(1e-4, 1e5, 73), level)

    def quantile_reach(self, level: float) -> float:
        """A `t >= 0` with `P(Z <= -t) <= level`, by Chernoff's bound."""
        if not level > 0.0:
            return float("inf")
        return self._chernoff(-np.geomspace(1e-4, 1e5, 73), level)

    def _chernoff(self, r: Floats, level: float) -> float:
        k, error = self._moments.log_moment(r)
        best = float(np.min((k + error - np.log(level)) / np.abs(r)))
        return max(best, 0.0) * (1.0 + 16.0 * U)

    def resolution(self, accuracy: float) -> tuple[float, float]:
        """How finely to locate a point of this curve: relative to `1 + t`, and absolutely."""
        if not self._by_contour:
            return 1e-14, 0.0
        smooth = self.pld.gaussian or self._moments.mixtures
        return (1e-10, 0.0) if smooth else (1e-14, 0.02 * accuracy)

    # -- the method that fits -----------------------------------------------------------

    @property
    def _by_contour(self) -> bool:
        """Whether no closed form serves."""
        pld = self.pld
        if not pld.terms or (pld.gaussian is None and list(pld.terms.values()) == [1]):
            return False
        if pld.gaussian is not None:
            return self._table_size > _MIXTURE
        limit = _BINOMIAL if len(pld.terms) == 1 else _TABLE
        return self._table_size > limit and self._one_smooth is None

    def _finite_part(self, t: Floats, dt: Floats | float, accuracy: float) -> tuple[Floats, Floats]:
        pld = self.pld
        g = pld.gaussian
        if not pld.terms:
            return np.zeros(t.shape), np.zeros(t.shape)
        if self._by_contour:
            return self._contour_part(t, dt, accuracy)
        if g is not None:
            return self._table.smoothed_curve(
                t, dt, lambda gap, slack: gaussian.curve(gap, slack, g.variance, g.variance_error)
            )
        if list(pld.terms.values()) == [1]:
            return next(iter(pld.terms)).curve(t, dt)
        if self._one_smooth is not None:
            smooth, rest = self._one_smooth
            return rest.smoothed_curve(t, dt, partial(_whole_curve, smooth))
        return self._table.curve(t, dt)

    @cached_property
    def _table_size(self) -> float:
        finite = self._finite_terms
        return float("inf") if finite is None else table.size(finite.items())

    @cached_property
    def _table(self) -> table.Table:
        return table.build((self._finite_terms or {}).items())

    @cached_property
    def _finite_terms(self) -> dict[RandomizedResponse | Atoms, int] | None:
        """The terms, if all of them are finite."""
        finite = {f: n for f, n in self.pld.terms.items() if isinstance(f, _FINITE)}
        return finite if len(finite) == len(self.pld.terms) else None

    @cached_property
    def _one_smooth(self) -> tuple[Factor, table.Table] | None:
        """The one factor that is not finite and the rest written out, without a Gaussian."""
        smooth = [(f, n) for f, n in self.pld.terms.items() if not isinstance(f, _FINITE)]
        if self.pld.gaussian is not None or len(smooth) != 1 or smooth[0][1] != 1:
            return None
        rest = {f: n for f, n in self.pld.terms.items() if isinstance(f, _FINITE)}
        if len(rest) + 1 < len(self.pld.terms) or table.size(rest.items()) > _MIXTURE:
            return None
        return smooth[0][0], table.build(rest.items())

    @cached_property
    def _moments(self) -> Moments:
        g = self.pld.gaussian
        if g is None:
            return Moments(self.pld.terms, 0.0, 0.0)
        return Moments(self.pld.terms, g.variance, g.variance_error)

    # -- contours ---------------------------------------------------------------------

    @cached_property
    def _skeleton(self) -> tuple[Moments, table.Table] | None:
        """The atoms of a composition with few Laplaces: moments, and masses written out.

        None where there are no atoms: one factor without any is enough.
        """
        if self.pld.gaussian is not None:
            return None
        terms: dict[RandomizedResponse | Atoms, int] = {}
        loss_error = 0.0
        for factor, n in self.pld.terms.items():
            if isinstance(factor, GaussianMixture) or getattr(factor, "atomic", 1.0) == 0.0:
                return None
            if isinstance(factor, _FINITE):
                twin = factor
            else:
                twin = RandomizedResponse(factor.eps, 0.0)
                loss_error += n * factor.eps * U
            terms[twin] = terms.get(twin, 0) + n
        if table.size(terms.items()) > _SKELETON:
            return None
        weight, weight_error = self._moments.atomic_weight
        if weight < _LIGHT:
            return None
        bones = table.build(terms.items())
        return Moments(dict(terms.items()), 0.0, 0.0), bones.scaled(
            weight, weight_error, loss_error
        )

    def _contour_part(
        self, t: Floats, dt: Floats | float, accuracy: float
    ) -> tuple[Floats, Floats]:
        flat = np.ravel(t)
        slack = np.broadcast_to(np.asarray(dt), t.shape).ravel()
        low, high = np.zeros(flat.size), np.ones(flat.size)
        pending = np.flatnonzero(flat - slack < self._top)
        skeleton = self._skeleton
        streamed = skeleton is None and self._inherit()
        bones = None if skeleton is None else skeleton[1]
        strict = self.pld.gaussian is not None
        # Different mixtures come in streams: leave room for more, a new contour costs dearly.
        room = 2.5 if len(self._moments.mixtures) > 1 else 1.6 if streamed else 1.0

        def read(made: Contour) -> None:
            nonlocal pending
            lo, hi, good = _read(
                made, bones, flat[pending], slack[pending], accuracy, self._top, strict
            )
            low[pending] = np.maximum(low[pending], lo)
            high[pending] = np.minimum(high[pending], hi)
            pending = pending[~good]

        for made in self.contours:
            if pending.size:
                read(made)
        while pending.size:
            pivot = pending[pending.size // 2]
            for sharpness in _SHARPNESS:
                made = contour.tuned(
                    self._moments,
                    float(flat[pivot]),
                    accuracy,
                    room,
                    sharpness,
                    None if skeleton is None else skeleton[0],
                )
                read(made)
                self.contours = (made, *self.contours[: _KEPT - 1])
                if pivot not in pending:
                    break
            pending = pending[pending != pivot]
        return low.reshape(t.shape), np.maximum(high, low).reshape(t.shape)

    def _inherit(self) -> bool:
        """Take over a parent's contours, extended by what was composed in since."""
        heritage = self.pld._heritage
        if heritage is None:
            return bool(self.contours)
        lines, since = heritage
        object.__setattr__(self.pld, "_heritage", None)
        g = since.gaussian
        variance, error = (g.variance, g.variance_error) if g else (0.0, 0.0)
        self.contours = tuple(made.extended(since.terms, variance, error) for made in lines[:1])
        return True


def _whole_curve(factor: Factor, t: Floats, dt: Floats) -> tuple[Floats, Floats]:
    """Enclosure of the finite part of a factor's curve for any real `t` known up to `±dt`."""
    back = factor.reverse()
    left = t < 0.0
    lo, hi = factor.curve(np.abs(t), dt)
    if not left.any():
        return lo, hi
    if back is not factor and back != factor:
        low, high = back.curve(np.abs(t), dt)
        lo, hi = np.where(left, low, lo), np.where(left, high, hi)
    return gaussian.from_reversed(t, dt, lo, hi, left)


def _largest_loss(factor: Factor) -> float:
    """The largest finite loss, within `u` of it or above it."""
    if isinstance(factor, Atoms):
        return factor.top
    return factor.top_bounds[1] if isinstance(factor, GaussianMixture) else factor.eps


def _exactly(atoms: Atoms, x: Floats) -> Interval:
    """`h(x)` in rationals, rounded outward."""
    values = [atoms.exact.hockey_stick(Fraction(v)) for v in x.ravel().tolist()]
    lo = np.array([float_down(v) for v in values]).reshape(x.shape)
    hi = np.array([float_up(v) for v in values]).reshape(x.shape)
    return Interval(lo, hi) if x.ndim else Interval(float(lo), float(hi))


def _read(
    made: Contour,
    bones: table.Table | None,
    t: Floats,
    slack: Floats,
    accuracy: float,
    top: float,
    strict: bool,
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Read a contour at `t` (its atoms apart), and say where it was good enough."""
    if made.line.tau == 0.0:
        lo, hi = made.curve(t, slack)
        good = hi - lo <= _RELATIVE * hi + _NOTHING
        if strict or good.all():
            return lo, hi, good
    n = t.size
    both = np.concatenate([t, t + accuracy])
    doubt = np.concatenate([slack, slack])
    lo, hi = made.curve(both, doubt)
    if bones is not None:
        more_lo, more_hi = bones.curve(both, doubt)
        lo, hi = lo + more_lo * (1.0 - 4.0 * U), (hi + more_hi) * (1.0 + 4.0 * U)
        lo = lo * (1.0 - 4.0 * U)
    later = np.where(both[n:] >= top, 0.0, hi[n:])
    sharp = hi[:n] - lo[:n] <= _FLAT * hi[:n] + _NOTHING
    return lo[:n], hi[:n], (later <= lo[:n]) | sharp
