"""Low-loss and high-loss parts of moments, and of their products.

The measure of a mixture's loss is cut in two at a smooth threshold of the observation
(`smooth_cut.py`): `M = a + b`, `a` the low-loss part and `b` the high-loss one; any other factor
counts as low-loss. Of a product

    Π (a_i + b_i) = Π a_i + (what has at least one high-loss factor) = Q + E,

both are positive measures again, and `(E, Q) (b, a) = (E (a + b) + Q b, Q a)`. All values are
relative to `M(λ)`, their errors absolute: `E` may be far smaller than `Q` and keeps its digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic.phases import phase_sums
from residua.pld.arithmetic.smooth_cut import Cut
from residua.pld.arithmetic.ulp_bounds import U
from residua.pld.families.normal_mixture import Pair, Quadrature
from residua.work_limit import work

_LIGHT = 1e-20
"""Quadrature points lighter than this are dropped (and charged)."""
_TINY = 1e-300
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
        return Parts(first + second, quiet, loud_error * slack + _TINY, quiet_error * slack + _TINY)

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


def nodes(pair: Pair, cut: Cut, lam: float, step: float, count: int) -> Parts | None:
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
