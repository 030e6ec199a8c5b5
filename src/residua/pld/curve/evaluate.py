"""Which method evaluates a curve, and the assembly of `h` from its parts.

    composition                           method                        file and proof
    Gaussian noise alone                  closed form                   families/gaussian.py
    one other factor                      closed form                   its file in families/
    few atoms, or one kind of response    atoms written out             families/small_support.py
    few atoms and one more factor or
    Gaussian noise                        atoms, each a shifted curve   families/small_support.py
    anything else                         sums over a contour           curve/contour/transform.py
    - close to the limit of the curve     on a line left of 0           curve/chernoff.py

`_finite_part` chooses among the first five, `contour/parameters.py` among the contours. Beyond the
last proven point Chernoff's bound serves (`chernoff.py`).

`h(e^t) = p_inf + D(t)` for `t >= 0`, and `h(e^t) = 1 - e^t + e^t h_rev(e^-t)` for `t < 0`:
the right half of the reversed curve has the digits that matter there.

A read is a pure function of the PLD and the arguments: it starts with no contour and keeps none. A
search that reads one curve many times works on `Evaluator.workspace()`, which keeps the contours of
that search and ends with it. What is cached on the PLD (moments, tables, the contour made for a
given `t` and accuracy) is itself a pure function of its key.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats, Interval, float_up
from residua.pld.arithmetic import BATCH, FEW, MANY
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, U
from residua.pld.curve import chernoff
from residua.pld.curve.chernoff import ORDERS
from residua.pld.curve.contour import parameters
from residua.pld.curve.contour.moments import Moments
from residua.pld.curve.contour.transform import Contour
from residua.pld.families import gaussian, small_support
from residua.pld.families.atoms import WORKED_OUT, Atoms, exactly
from residua.pld.families.factors import FEW_KINDS, Factor, curve_at_all_t, largest_loss
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.families.symmetric import Laplace, RandomizedResponse, SymmetricLoss
from residua.work_limit import remembered, remembered_property

if TYPE_CHECKING:
    from residua.pld.pld import Pld

RELATIVE = 2e-7
"""Relative width at which a contour without a smoothing Gaussian is accepted."""
_FLAT = 1e-12
"""Relative width good enough whatever it amounts to in `eps` (the curve is flat near 1)."""
_NOTHING = 1e-290
"""Heights below this are not worth another contour."""
_FAINT, _VARIOUS = 1e-40, 16
"""Of so many kinds of sampled Gaussians with a largest loss, contours for less than this height
would take seconds: an upper bound has to do."""
_SHARPNESS = 4.0 ** np.arange(3.0)
"""How much less a smoothing Gaussian may cost, in turn, until a contour is good enough."""
_HUGE = 1e15
"""Beyond this `t` Chernoff's bound, or else the value at 0, bounds the curve (it decreases)."""
_LIGHT = -14.0
"""Atoms whose log mass is below this are left in the contour: they hardly bend the curve (a
Gaussian promises more digits)."""
_FINITE = (RandomizedResponse, Atoms)
_ALL = Interval(1.0, 1.0)
_KEPT = 8
"""Contours kept by a search, and cached per PLD."""


class Evaluator:
    """Evaluates the hockey-stick curve of one PLD."""

    def __init__(self, pld: Pld):
        self.pld = pld
        self.contours: tuple[Contour, ...] = ()
        self._is_workspace = False

    def workspace(self, pld: Pld) -> Evaluator:
        """The same evaluator for a copy of the PLD; it keeps the contours that it makes."""
        _ = self._contour  # Made before the copy, so that both use one cache.
        made = copy(self)
        made.pld, made._is_workspace = pld, True
        return made

    def resume_from(self, made: Contour | None, room: float) -> None:
        """Start a workspace with a contour.

        `room` is how much longer than needed the period of others is made.
        """
        self.contours = (made,) if made is not None else ()
        tune = partial(parameters.choose_line, self._moments, skeleton=self._skeleton_moments)
        self.__dict__["_contour"] = partial(tune, room=room)

    # -- entry points -----------------------------------------------------------------

    def at_x(self, x: Floats, accuracy: float) -> Interval:
        """Enclosure of `h(x)` at exact `x > 0`."""
        atoms = self._single_atoms
        if atoms is not None and max(x.size, atoms.p.size) <= WORKED_OUT:
            return exactly(atoms, x)
        if atoms is not None:
            lo, hi = atoms.curve_at(x)
            return self._finish(*self._with_infinity(lo, hi), floor=np.nextafter(1.0 - x, -1.0))
        t = np.log(x)
        return self.at_log_x(t, np.abs(t) * (EXP_ULPS * U) + U, accuracy)

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
        if self.pld.gaussian or any(largest_loss(f) == np.inf for f in self.pld.terms):
            return float("inf")
        if len(self.pld.terms) > FEW_KINDS:
            sizes = np.array([n * largest_loss(f) for f, n in self.pld.terms.items()])
            slack = (sizes.size + 8.0) * U * np.abs(sizes).sum()
            return float(sizes.sum() + slack)
        exact = Fraction(0)
        rest = 0.0
        for factor, n in self.pld.terms.items():
            if isinstance(factor, SymmetricLoss):
                exact += n * factor.top
            else:
                size = n * largest_loss(factor)
                rest = float(np.nextafter(rest + size, np.inf)) + 2.0 * U * abs(rest)
        if rest == np.inf:
            return rest
        return float_up(exact) if rest == 0.0 else float_up(exact + Fraction(rest))

    def reach(self, level: float) -> float:
        """A `t >= 0` with `D(t) <= level` and `P(t < Z < inf) <= level`, by Chernoff's bound."""
        return float(self.reaches(np.array([level]))[0]) if level > 0.0 else float("inf")

    def reaches(self, levels: Floats) -> Floats:
        """`reach` of many levels, none negative."""
        return self._chernoff(ORDERS, levels)

    def quantile_reaches(self, levels: Floats) -> Floats:
        """Of each level a `t >= 0` with `P(Z <= -t) <= level`, by Chernoff's bound."""
        return self._chernoff(-ORDERS, levels)

    def _above(self, t: Floats) -> Floats:
        """An upper bound of `D(t)` for want of a better one: `_NOTHING` or more."""
        return chernoff.heights(t, ORDERS, self._chernoff_moments) + _NOTHING

    @remembered_property
    def _chernoff_moments(self) -> Floats:
        k, error = self._moments.log_moment(ORDERS)
        return k + error

    def _chernoff(self, r: Floats, levels: Floats) -> Floats:
        k, error = self._moments.log_moment(r)
        with np.errstate(divide="ignore"):
            best = np.min((k + error - np.log(levels)[:, None]) / np.abs(r), axis=1)
        return np.asarray(np.maximum(best, 0.0) * (1.0 + 16.0 * U))

    def resolution(self, accuracy: float) -> tuple[float, float]:
        """How finely to locate a point of this curve: relative to `1 + t`, and absolutely."""
        if not self._by_contour:
            return 1e-14, 0.0
        return (1e-11, 0.0) if self._is_smooth else (1e-14, 0.02 * accuracy)

    @property
    def _is_smooth(self) -> bool:
        """Whether Gaussian noise takes part, alone or in mixtures."""
        return self.pld.gaussian is not None or self._has_mixtures

    @cached_property
    def _is_expensive(self) -> bool:
        """Whether contours of very small heights are not affordable."""
        return len(self._moments.mixtures) > _VARIOUS and self._top < np.inf

    @cached_property
    def _has_mixtures(self) -> bool:
        return GaussianMixture in map(type, self.pld.terms)

    # -- the method that fits -----------------------------------------------------------

    @property
    def _by_contour(self) -> bool:
        """Whether no closed form serves."""
        pld = self.pld
        if not pld.terms or (pld.gaussian is None and list(pld.terms.values()) == [1]):
            return False
        if pld.gaussian is not None:
            size = self._table_size
            return size > MANY or (size > FEW and not self._narrow)
        limit = BATCH if len(pld.terms) == 1 else MANY
        return self._table_size > limit and self._one_smooth is None

    def _finite_part(self, t: Floats, dt: Floats | float, accuracy: float) -> tuple[Floats, Floats]:
        pld = self.pld
        g = pld.gaussian
        if not pld.terms:
            return np.zeros(t.shape), np.zeros(t.shape)
        if self._by_contour:
            return self._contour_part(t, dt, accuracy)
        if g is not None:
            return self._smoothed(self._table, t, dt)
        if list(pld.terms.values()) == [1]:
            return next(iter(pld.terms)).curve(t, dt)
        if self._one_smooth is not None:
            smooth, rest = self._one_smooth
            return rest.smoothed_curve(t, dt, partial(curve_at_all_t, smooth))
        lo, hi = self._table.curve(t, dt)
        if np.any(hi > 0.5):
            low, high = self._less(*self._table.complement(t, dt))
            lo, hi = np.maximum(lo, low), np.minimum(hi, high)
        return lo, hi

    def _smoothed(
        self, atoms: small_support.Table, t: Floats, dt: Floats | float
    ) -> tuple[Floats, Floats]:
        """The curve of some atoms composed with the Gaussian, if any."""
        g = self.pld.gaussian
        if g is None:
            return atoms.curve(t, dt)
        return atoms.smoothed_curve(
            t, dt, lambda gap, slack: gaussian.curve(gap, slack, g.variance, g.variance_error)
        )

    @cached_property
    def _table_size(self) -> float:
        finite = self._finite_terms
        return float("inf") if finite is None else small_support.size(finite.items())

    @remembered_property
    def _table(self) -> small_support.Table:
        return small_support.build((self._finite_terms or {}).items())

    @cached_property
    def _finite_terms(self) -> dict[RandomizedResponse | Atoms, int] | None:
        """The terms, if all of them are finite."""
        if not all(isinstance(f, _FINITE) for f in self.pld.terms):
            return None
        return {f: n for f, n in self.pld.terms.items() if isinstance(f, _FINITE)}

    @remembered_property
    def _one_smooth(self) -> tuple[Factor, small_support.Table] | None:
        """The one factor that is not finite and the rest written out, without a Gaussian."""
        smooth = [(f, n) for f, n in self.pld.terms.items() if not isinstance(f, _FINITE)]
        if self.pld.gaussian is not None or len(smooth) != 1 or smooth[0][1] != 1:
            return None
        rest = {f: n for f, n in self.pld.terms.items() if isinstance(f, _FINITE)}
        if len(rest) + 1 < len(self.pld.terms) or small_support.size(rest.items()) > FEW:
            return None
        return smooth[0][0], small_support.build(rest.items())

    @cached_property
    def _narrow(self) -> bool:
        """Whether the Gaussian is so narrow beside the rest that its contours have many nodes."""
        rest = sum(n * float(f.top) ** 2 for f, n in (self._finite_terms or {}).items())
        return self._moments.variance < 1e-6 * rest

    @cached_property
    def _moments(self) -> Moments:
        g = self.pld.gaussian
        if g is None:
            return Moments(self.pld.terms, 0.0, 0.0)
        return Moments(self.pld.terms, g.variance, g.variance_error)

    # -- contours ---------------------------------------------------------------------

    @cached_property
    def _skeleton(self) -> dict[RandomizedResponse | Atoms, int] | None:
        """The atoms of a composition with few Laplaces, as a composition, but for their mass.

        None where there are no atoms: one factor without any is enough.
        """
        if 1 << len(self.pld.terms) > MANY:
            return None
        terms: dict[RandomizedResponse | Atoms, int] = {}
        for factor, n in self.pld.terms.items():
            if isinstance(factor, GaussianMixture):
                return None
            twin: RandomizedResponse | Atoms
            if isinstance(factor, _FINITE):
                twin = factor
            elif factor.atomic_share > 0.0:
                twin = RandomizedResponse(factor.eps, 0.0)
            else:
                return None
            terms[twin] = terms.get(twin, 0) + n
        if small_support.size(terms.items()) > MANY:
            return None
        if self.pld.gaussian is None and self._moments.atomic_weight[0] < _LIGHT:
            return None
        return terms

    @cached_property
    def _skeleton_moments(self) -> Moments | None:
        """Moments of the skeleton, the Gaussian included."""
        whole = self._moments
        if self._skeleton is None:
            return None
        return Moments(dict(self._skeleton.items()), whole.variance, whole.variance_error)

    @remembered_property
    def _skeleton_table(self) -> small_support.Table:
        """The skeleton written out."""
        bones = small_support.build((self._skeleton or {}).items())
        rounded = sum(n * f.eps for f, n in self.pld.terms.items() if isinstance(f, Laplace))
        return bones.scaled(*self._moments.atomic_weight, rounded * 1.01 * U)

    def known(self, t: float) -> tuple[float, float]:
        """Enclosure of `h(e^t)` at one `t >= 0` from the contours at hand alone."""
        at, exactly = np.array([t]), np.zeros(1)
        low, high = np.zeros(1), np.full(1, self._kept.hi if t < self._top else 0.0)
        for made in self.contours:
            lo, hi = self._from(made, at, exactly)
            low, high = np.maximum(low, lo), np.minimum(high, hi)
        low, high = self._with_infinity(np.minimum(low, high), high)
        return float(low[0]), float(high[0])

    def _contour_part(
        self, t: Floats, dt: Floats | float, accuracy: float
    ) -> tuple[Floats, Floats]:
        flat = np.ravel(t)
        slack = np.broadcast_to(np.asarray(dt), t.shape).ravel()
        low, high = np.zeros(flat.size), np.full(flat.size, self._kept.hi)
        pending = np.flatnonzero(flat - slack < self._top)
        contours = self.contours

        def read(made: Contour) -> None:
            nonlocal pending
            lo, hi, good = self._read(made, flat[pending], slack[pending], accuracy)
            low[pending] = np.maximum(low[pending], lo)
            high[pending] = np.minimum(high[pending], hi)
            pending = pending[~good]

        for made in contours:
            if pending.size:
                read(made)
        if pending.size and self._is_expensive:
            above = self._above(flat[pending] - slack[pending])
            high[pending] = np.minimum(high[pending], above)
            pending = pending[above > _FAINT]
        if pending.size and self.pld.gaussian is None:
            lacking = chernoff.complement_bound(
                self._moments.log_moment, flat[pending], slack[pending]
            )
            low[pending] = np.maximum(low[pending], self._less(lacking, lacking)[0])
            pending = pending[lacking > _FLAT]
        while pending.size:
            pivot = pending[pending.size // 2]
            for sharpness in _SHARPNESS:
                made = self._contour(float(flat[pivot]), accuracy, sharpness)
                read(made)
                contours = (made, *contours[: _KEPT - 1])
                # Sharper helps only where a smoothing Gaussian is what costs, or mixtures were cut
                # short; not if these are cut so short that nothing is left.
                done = low[pivot] == 0.0 if self._moments.mixtures else made.line.tau == 0.0
                if pivot not in pending or done:
                    break
            pending = pending[pending != pivot]
        if self._is_workspace:
            self.contours = contours
        # Good enough in eps can be no bound at all next to the largest loss.
        least = _FAINT if self._is_expensive else 0.0
        lost = np.flatnonzero((low == 0.0) & (high > least) & (flat - slack < self._top))
        if lost.size:
            high[lost] = np.minimum(high[lost], self._above(flat[lost] - slack[lost]))
        return low.reshape(t.shape), np.maximum(high, low).reshape(t.shape)

    @cached_property
    def _contour(self) -> Callable[[float, float, float], Contour]:
        """The contour for a `t`, an accuracy and a sharpness."""

        @remembered(maxsize=_KEPT, once=False)
        def make(t: float, accuracy: float, sharpness: float) -> Contour:
            return parameters.choose_line(
                self._moments, t, accuracy, sharpness, self._skeleton_moments
            )

        return make

    def _read(
        self, made: Contour, t: Floats, slack: Floats, accuracy: float
    ) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Read a contour at `t` (its atoms apart), and say where it was good enough."""
        if self._is_smooth and (made.line.tau == 0.0 or made.absolute is not None):
            lo, hi = self._from(made, t, slack)
            good = hi - lo <= RELATIVE * hi + _NOTHING
            if self.pld.gaussian is not None or good.all():
                return lo, hi, good
        lo, hi = self._from(made, np.concatenate([t, t + accuracy]), np.tile(slack, 2))
        (lo, _), (hi, later) = np.split(lo, 2), np.split(hi, 2)
        good = np.where(t + accuracy >= self._top, 0.0, later) <= lo
        return lo, hi, good | (hi - lo <= _FLAT * hi + _NOTHING)

    def _from(self, made: Contour, t: Floats, slack: Floats) -> tuple[Floats, Floats]:
        """Enclosure of `D` by one contour, from its complement or its atoms as the case may be."""
        lo, hi = made.curve(t, slack)
        if made.line.lam < 0.0:
            return self._less(lo, hi)
        if made.absolute is None:
            return lo, hi
        if self.pld.gaussian is None:
            more_lo, more_hi = self._skeleton_table.curve(t, slack)
        else:
            more_lo, more_hi = self._smoothed(self._skeleton_table, t, slack)
        return (lo + more_lo) * (1.0 - 4.0 * U), (hi + more_hi) * (1.0 + 4.0 * U)

    def _less(self, lo: Floats, hi: Floats) -> tuple[Floats, Floats]:
        """Enclosure of `D` from one of its complement."""
        kept = self._kept
        return np.maximum(kept.lo - hi - U, 0.0), np.minimum(kept.hi - lo + U, kept.hi)

    @cached_property
    def _kept(self) -> Interval:
        """The mass on finite losses."""
        mass = self.pld.mass_at_infinity_bounds
        return _ALL if mass.hi == 0.0 else 1.0 - mass
