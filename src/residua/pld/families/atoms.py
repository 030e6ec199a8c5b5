"""Finite privacy losses: atoms `(p, q)` with loss `ln(p/q)`.

The denoted masses are exact rationals (`exact.py`): what was given as floats is a
dyadic rational, normalised exactly. Beside them there are float arrays `p`, `q` and the
losses `z`, each mass within `ATOM_ULPS u` relative of the mass that it stands for;
these answer everything that floats can answer.

    h(e^t)  = p_inf + Σ_{z>t} (p - e^t q)
    M(s)    = Σ p e^{sz}

Error budget: short lists sum the positive terms `p (1 - e^{t-z})` directly; long ones
use suffix sums of `p` and `q` (error `n u` relative to the suffix sum each). Moments
on a contour are one matrix product, see `nodes`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats, Interval, float_down, float_up
from residua.pld.arithmetic import BATCH
from residua.pld.arithmetic.exact import ExactAtoms, floats, integers, sorted_atoms
from residua.pld.arithmetic.phases import phase_sums
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, SMALLEST, TINY, U
from residua.work_limit import without_counting, work

ATOM_ULPS = 4.0
"""How far each mass is off at most, relative, in units of `u`."""
_INFINITIES = ("mass_at_infinity", "mass_at_minus_infinity")
WORKED_OUT = 64
"""Atoms, and arguments of a curve, up to which rationals are worked out at once."""
SHOWN = 12
"""Atoms, or kinds of query, up to which a `repr` can be evaluated."""


class Atoms:
    """A finite PLD. Build one with `atoms_from_floats` or `atoms_from_exact`."""

    __slots__ = ("__dict__", "_make_exact", "p", "q", "z")

    def __init__(self, p: Floats, q: Floats, z: Floats, make: Callable[[], ExactAtoms]):
        for array in (p, q, z):
            array.flags.writeable = False
        self.p = p
        self.q = q
        self.z = z
        self._make_exact = make

    @cached_property
    def exact(self) -> ExactAtoms:
        """The denoted PLD."""
        return without_counting(self._make_exact)

    @cached_property
    def mass_at_infinity(self) -> Fraction:
        return Fraction(self.exact.p_inf, self.exact.p_den)

    @cached_property
    def mass_at_minus_infinity(self) -> Fraction:
        return Fraction(self.exact.q_inf, self.exact.q_den)

    @property
    def atom_count(self) -> int:
        return self.p.size

    @cached_property
    def top(self) -> float:
        """An upper bound on the largest finite loss."""
        return float(self.z[-1] + self.loss_error)

    @cached_property
    def loss_error(self) -> float:
        """Bound on the absolute error of any `z`."""
        size = max(abs(float(self.z[0])), abs(float(self.z[-1])))
        return (2.0 * ATOM_ULPS + 2.0 + (EXP_ULPS + 1.0) * size) * U

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether the PLD equals its reversal, exactly."""
        if self.p.size and abs(self.z[0] + self.z[-1]) > 2.0 * self.loss_error:
            return False
        return self.exact.same(self.exact.reverse())

    @cached_property
    def reversed(self) -> Atoms:
        back = Atoms(self.q[::-1].copy(), self.p[::-1].copy(), -self.z[::-1], self._reverse_exact)
        back.__dict__["reversed"] = self
        for mine, theirs in (_INFINITIES, _INFINITIES[::-1]):
            if mine in self.__dict__:
                back.__dict__[theirs] = self.__dict__[mine]
        return back

    def _reverse_exact(self) -> ExactAtoms:
        return self.exact.reverse()

    def reverse(self) -> Atoms:
        return self if self.is_symmetric else self.reversed

    @cached_property
    def bits(self) -> tuple[int, bytes, bytes, bytes]:
        """The floats that stand for the atoms: what is read depends on them."""
        return self.p.size, self.z.tobytes(), self.p.tobytes(), self.q.tobytes()

    def __eq__(self, other: object) -> bool:
        """The same PLD, represented by the same floats, so that equal atoms read the same."""
        return self is other or (
            isinstance(other, Atoms) and self.bits == other.bits and self.exact.same(other.exact)
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.bits)

    def __reduce__(self) -> tuple[Callable[..., Atoms], tuple[Floats, Floats, Floats, ExactAtoms]]:
        return _restored, (self.p, self.q, self.z, self.exact)

    def curve(self, t: Floats, dt: Floats | float) -> tuple[Floats, Floats]:
        """Enclosure of the finite part `E[(1 - e^{t-Z})_+; Z < inf]`, `t` known up to `±dt`."""
        if self.p.size == 0:
            return np.zeros_like(t), np.zeros_like(t)
        if t.size * self.p.size <= BATCH or np.max(t) > 600.0:
            work(6.0 * t.size * self.p.size, 40.0 * t.size * self.p.size)
            uncertainty = self.loss_error + np.asarray(dt)
            gap = t[..., None] - self.z
            share = -np.expm1(np.minimum(gap, 0.0))
            value = share @ self.p
            near = np.where(gap < uncertainty[..., None], self.p, 0.0).sum(axis=-1)
            # e^{t-z} <= 1 there, so an error of the exponent counts at most once.
            rounding = (ATOM_ULPS + EXP_ULPS + self.p.size + 4.0) * U
            error = value * rounding + near * (uncertainty * 1.01 + 2.0 * U)
            slack = 2.0 * self.p.size * SMALLEST
            return np.maximum(value - error - slack, 0.0), value + error + slack
        x = np.exp(t)
        return self._at(x, x * (EXP_ULPS * U + dt))

    def curve_at(self, x: Floats) -> tuple[Floats, Floats]:
        """Enclosure of the finite part `Σ (p - xq)_+` at an exact `x > 0`."""
        return self._at(x, np.zeros_like(x))

    def _at(
        self, x: Floats, dx: Floats, at: NDArray[np.int64] | None = None
    ) -> tuple[Floats, Floats]:
        """The same for `x` known up to `±dx`; `at` counts the atoms at or below each, if known."""
        if self.p.size == 0:
            return np.zeros_like(x), np.zeros_like(x)
        work(30.0 * x.size)
        p_sums, q_sums, ratios = self._suffix_sums
        if at is None:
            at = np.searchsorted(ratios, x, side="right")
        value = p_sums[at] - x * q_sums[at]
        # Atoms so close to x that their side may be misjudged cost a few u p each.
        uncertainty = 16.0 * self.loss_error + 64.0 * U
        before = np.searchsorted(ratios, (x - dx) * (1.0 - uncertainty), side="left")
        rounding = (self.p.size + 4.0 * ATOM_ULPS + 8.0) * U + 2.0 * self.loss_error
        scale = p_sums[before] + x * q_sums[at]
        error = (
            scale * rounding * 1.01 + dx * q_sums[before] + 2.0 * self.p.size * (1.0 + x) * SMALLEST
        )
        top = x - dx > ratios[-1] * (1.0 + 2.0 * self.loss_error + 2.0 * EXP_ULPS * U)
        return (
            np.where(top, 0.0, np.maximum(value - error, 0.0)),
            np.where(top, 0.0, np.maximum(value, 0.0) + error),
        )

    @cached_property
    def _suffix_sums(self) -> tuple[Floats, Floats, Floats]:
        zero = np.zeros(1)
        p_sums = np.concatenate([np.cumsum(self.p[::-1])[::-1], zero])
        q_sums = np.concatenate([np.cumsum(self.q[::-1])[::-1], zero])
        return p_sums, q_sums, np.exp(self.z)

    @cached_property
    def log_p(self) -> Floats:
        """`ln p`, absolute error at most `(ATOM_ULPS + EXP_ULPS |ln p|) u`."""
        if self.p.min() >= TINY:
            return np.log(self.p)
        scale = math.log(self.exact.p_den)
        return np.array([math.log(a) - scale for a in self.exact.p])

    def log_moment(self, s: Floats) -> tuple[Floats, Floats]:
        """`ln E[e^{sZ}; Z < inf]` for real `s` and its absolute error."""
        work(5.0 * s.size * self.z.size, 32.0 * s.size * self.z.size)
        terms = self.log_p + s[..., None] * self.z
        top = terms.max(axis=-1)
        value = top + np.log(np.exp(terms - top[..., None]).sum(axis=-1))
        largest = float(np.max(np.abs(self.z)))
        size = np.abs(s) * largest + np.abs(top) + float(np.max(np.abs(self.log_p)))
        error = np.abs(s) * self.loss_error + U * (
            size * (EXP_ULPS + 4.0) + ATOM_ULPS + 2.0 * EXP_ULPS + self.p.size
        )
        return value, error

    def nodes(self, lam: float, step: float, count: int) -> tuple[NDArray[np.complex128], Floats]:
        """`M(λ+iω)/M(λ)` at `ω = 0, step, …, (count-1) step`, and its absolute error."""
        logs = self.log_p + lam * self.z
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        total, sums = phase_sums(weights, self.z, step, count)
        omega = np.arange(float(count)) * step
        largest = float(np.max(np.abs(self.z)))
        size = float(np.max(np.abs(self.log_p))) + abs(lam) * largest
        weight_error = 2.0 * (
            abs(lam) * self.loss_error + U * (size * (EXP_ULPS + 4.0) + EXP_ULPS + self.p.size)
        )
        phase = omega * (self.loss_error + 8.0 * largest * U)
        return total, weight_error + 1.5 * (sums + phase)

    def __repr__(self) -> str:
        if self.p.size == 0:
            return "approximate_dp(0.0, 1.0)"
        if "written" in self.__dict__:
            return str(self.__dict__["written"])
        at_infinity = float(self.mass_at_infinity)
        if self.p.size == 1 and self.exact.kink(0) == 1 and self.mass_at_infinity == at_infinity:
            return f"approximate_dp(0.0, {at_infinity!r})"
        if self.p.size > SHOWN:
            return (
                f"<finite PLD: {self.p.size} atoms, losses {self.z[0]:.6g} to {self.z[-1]:.6g}, "
                f"mass at infinity {at_infinity:.6g}>"
            )
        missing = float(self.mass_at_minus_infinity)
        p = self.p.tolist() + [at_infinity] * (at_infinity > 0) + [0.0] * (missing > 0)
        q = self.q.tolist() + [0.0] * (at_infinity > 0) + [missing] * (missing > 0)
        return f"from_pair({p!r}, {q!r})"


def _restored(p: Floats, q: Floats, z: Floats, exact: ExactAtoms) -> Atoms:
    return Atoms(p, q, z, lambda: exact)


def atoms_from_floats(p: Floats, q: Floats, p_total: Fraction, q_total: Fraction | None) -> Atoms:
    """Atoms denoting `p` scaled to total exactly `p_total`; `q` to `q_total`, or as it is if None.

    Both must be positive normal floats; they are sorted by loss here.
    """
    work(300.0 * p.size)
    z = np.log(p / q)
    order = np.argsort(z, kind="stable")
    p, q, z = p[order], q[order], z[order]
    p_hat = p * (float(p_total) / math.fsum(p))
    q_hat = q if q_total is None else q * (float(q_total) / math.fsum(q))
    z = np.sort(np.log(p_hat / q_hat))

    def make() -> ExactAtoms:
        p_ints, p_shift = integers(p)
        q_ints, q_shift = integers(q)
        p_num, p_den = _scaled(p_ints, p_shift, p_total)
        q_num, q_den = _scaled(q_ints, q_shift, q_total)
        return sorted_atoms(p_num, q_num, p_den, q_den)

    atoms = Atoms(p_hat, np.array(q_hat), z, make)
    atoms.__dict__["mass_at_infinity"] = 1 - p_total
    if q_total is not None:
        atoms.__dict__["mass_at_minus_infinity"] = 1 - q_total
    return atoms


def _scaled(ints: list[int], shift: int, total: Fraction | None) -> tuple[list[int], int]:
    """Numerators and denominator of `ints / 2^shift`, normalised to `total` unless None."""
    if total is None:
        return (ints, 1 << shift) if shift >= 0 else ([i << -shift for i in ints], 1)
    times = total.numerator
    return ints if times == 1 else [i * times for i in ints], sum(ints) * total.denominator


def atoms_from_exact(exact: ExactAtoms) -> Atoms:
    """Atoms denoting exactly this PLD."""
    work(200.0 * len(exact))
    p, q = floats(exact.p, exact.p_den), floats(exact.q, exact.q_den)
    if p.size and min(p.min(), q.min()) < TINY:
        # Masses below the floats: their losses still come from the integers.
        scale = math.log(exact.q_den) - math.log(exact.p_den)
        z = [math.log(a) - math.log(b) + scale for a, b in zip(exact.p, exact.q, strict=True)]
        return Atoms(p, q, np.array(z), lambda: exact)
    return Atoms(p, q, np.log(p / q), lambda: exact)


def exactly(atoms: Atoms, x: Floats) -> Interval:
    """`h(x)` in rationals, rounded outward."""
    work(1000.0 * x.size)
    values = [atoms.exact.hockey_stick(Fraction(v)) for v in x.ravel().tolist()]
    lo = np.array([float_down(v) for v in values]).reshape(x.shape)
    hi = np.array([float_up(v) for v in values]).reshape(x.shape)
    return Interval(lo, hi) if x.ndim else Interval(float(lo), float(hi))
