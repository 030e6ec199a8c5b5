"""The GDP parameter of a loss: the least `nu` with `L ⪯ G_nu`.

A finite loss has it in closed form (`support_ends.py`), and so have randomized response,
Laplace and bounded range, whose curves touch at `x = 1` only (`single_contact.py`): `h_L(1) =
erf(nu/√8)`. Otherwise `L = G_g ⊕ M` is below `G_nu` iff the cost of `M` under `G_nu` leaves `g²`:
since `nu² - c(nu)` increases, a search finds where it does, and ends on the proven side.

The zCDP parameter: the least `rho` with `D_α <= rho α` at every order `α > 1`, both ways.

With `K(s) = ln E e^{sZ}` and `s = α - 1` it is the supremum of `K(s) / (s(s+1))` over `s > 0` for
the loss and its reversal. Gaussian noise has `mu²/2` at every order; `R_eps` has `eps tanh(eps/2)`,
at `α → 1` (`ln cosh(eps u)` is concave in `u²`, and `s(s+1) = u² - 1/4` for `u = s + 1/2`); a
mixture of Gaussians lies below the Gaussian of its widest shift and comes, at high orders, as near
as one likes to that of its outermost components. Other factors are searched:

* `K` is convex, so between two orders it lies below its chord, and a chord over `s(s+1)` is
  largest at an end or where `B s² + 2A s + A = 0`;
* below the first order, `K(s) <= m s + V s²/2` with `m` the mean and `V` the square of half the
  range (Popoviciu), or for lists of atoms, whose largest losses may be next to impossible, little
  more than `E Z²`, so the quotient is at most `m + s max(V/2 - m, 0)`;
* past the last, `D_α` is at most the largest loss;
* and `eps`-DP implies `eps²/2` (Bun and Steinke 2016), where floats have no digits left.

Parameters of a composition add up to an upper bound; the lower end is one order's for all of it.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from residua.bounds import Floats, Interval, float_down, float_up
from residua.pld.arithmetic import MANY, MOST_STEPS
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, TINY, U
from residua.pld.curve.renyi import mean_loss
from residua.pld.curve.support_ends import largest_loss_bounds
from residua.pld.families import gaussian
from residua.pld.families.factors import Factor
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.families.symmetric import RandomizedResponse
from residua.pld.order.tails import end
from residua.pld.pld import Pld, query
from residua.pld.residue.finite import finite_parameter
from residua.pld.residue.gdp_residue import cost_bounds, listed_atoms, renyi_cost, root
from residua.pld.residue.single_contact import fits, refuses
from residua.pld.residue.symmetric_family import CentralLaw, central_law, height
from residua.work_limit import remembered

_SETTLED = 2e-8
"""Relative width of `nu²` at which the search ends."""
_LARGEST = 1e12
"""Of `nu²`: beyond it nothing is tried."""
_BELOW = [10.0**k for k in range(-7, 0)]
"""How much less than a proven `nu²` is tried for a refutation, in turn."""


def gdp_parameter(L: Pld) -> float:
    """The least `nu` with `L ⪯ G_nu`, rounded up; inf if there is none."""
    # What is proven too small is not needed here, and takes far longer.
    return _above(query("L", L))


def gdp_parameter_bounds(L: Pld) -> Interval:
    """Proven interval for `gdp_parameter(L)`."""
    return _bounds(query("L", L))


def closed_form_parameter(L: Pld) -> float:
    """`gdp_parameter(L)` where it has a closed form; inf where a search would have to find it."""
    closed = _closed_form(L)
    return math.inf if closed is None else closed[1]


@remembered(maxsize=1024)
def _bounds(L: Pld) -> Interval:
    closed, high = _closed_form(L), _above(L)
    if closed is not None and closed[0] is not None:
        return Interval(closed[0], high)
    if high == math.inf:
        return Interval(math.sqrt(_tail_variance(L)) * (1.0 - 4.0 * U), high)
    return Interval(_refuted(L, high * high), high)


@remembered(maxsize=1024)
def _above(L: Pld) -> float:
    closed = _closed_form(L)
    return _searched(L) if closed is None else closed[1]


@remembered(maxsize=1024)
def _closed_form(L: Pld) -> tuple[float | None, float] | None:
    """Proven bounds; without the lower one where only a loss above `L` was written out."""
    if max(L.mass_at_infinity_bounds.lo, L.mass_at_minus_infinity_bounds.lo) > 0.0:
        return math.inf, math.inf
    if not L.terms:
        return root(L._exact_variance, "below"), root(L._exact_variance, "above")
    law = central_law(L)
    if law is not None:
        return _central(law)
    if L.gaussian is None and not any(isinstance(f, GaussianMixture) for f in L.terms):
        written = listed_atoms(L)
        if written is not None:
            low, high = finite_parameter(written.excess)
            return None if written.surplus else low, high
    return None


def _central(law: CentralLaw) -> tuple[float, float]:
    from scipy.special import erfcinv, erfinv

    at_one, lacking = height(law)
    near = math.sqrt(8.0) * float(erfinv(at_one) if at_one < 0.5 else erfcinv(lacking))
    low, high, share = 0.0, math.inf, 1e-13
    while share < 1.0 and (low == 0.0 or high == math.inf):
        if high == math.inf and fits(law, near * near * (1.0 + share)):
            high = near * (1.0 + share)
        if low == 0.0 and refuses(law, near * near * (1.0 - share)):
            low = near * (1.0 - share)
        share *= 4.0
    return low, high


def _searched(L: Pld) -> float:
    """Find where nothing is left, from above. What is left grows at least as fast as the budget."""
    low, high, left = max(float_down(L._exact_variance), 1e-12), math.inf, math.inf
    v = 2.0 * low
    for _ in range(MOST_STEPS):
        found = cost_bounds(Fraction(v), L)
        if found is None:
            low = v
            v = math.sqrt(low * high) if high < math.inf else 4.0 * v
        else:
            high, left = v, float(v - found[1])
            v = max(high - left * (1.0 - _SETTLED) + 0.1 * _SETTLED * high, low)
        if v > _LARGEST or (high < math.inf and min(high - low, left) <= _SETTLED * high):
            break
    return math.sqrt(high) * (1.0 + 2.0 * U)


def _tail_variance(L: Pld) -> float:
    """The least variance that the tails of `L` allow."""
    ends = (
        sum(
            (n * end(f).variance for f, n in side.terms.items() if isinstance(f, GaussianMixture)),
            L._exact_variance,
        )
        for side in (L, L.reverse())
    )
    return float_down(max(ends))


def _refuted(L: Pld, good: float) -> float:
    """A parameter that is proven too small, next to the square root of `good` if possible."""
    least = max(_tail_variance(L), renyi_cost(L))
    for share in _BELOW:
        v = good * (1.0 - share)
        if v <= least:
            break
        top = min(L._evaluator.reach(1e-9), L.reverse()._evaluator.reach(1e-9), 30.0)
        for side in (L,) if L.is_symmetric else (L, L.reverse()):
            t = top * np.linspace(0.0, 1.0, 65) ** 2
            lo, _ = side._evaluator.right(t, 0.0, 1e-5)
            _, hi = gaussian.curve(t, 0.0, v, 0.0)
            if np.any(lo > hi):
                return math.sqrt(v) * (1.0 - 4.0 * U)
    return math.sqrt(least) * (1.0 - 4.0 * U)


_WIDTH = 1e-6
"""Relative width of a zCDP parameter that is narrow enough; and the least first order, where the
largest loss is 1."""
_NOISE = 2e-15
"""About the error of a log moment: at a first order of its root it costs as much as the order."""
_CELLS = 96
"""Cells between orders to begin with."""
_MOST_WORK = 10**8
"""Orders times atoms: for long lists the interval may end up wider."""


def zcdp_parameter(loss: Pld) -> float:
    """The least `rho` for which the loss is `rho`-zCDP, upper bound (inf if there is none)."""
    return float(zcdp_parameter_bounds(loss).hi)


def zcdp_parameter_bounds(loss: Pld) -> Interval:
    """Proven interval for the zCDP parameter."""
    query("loss", loss)
    gaussian = loss.gaussian
    part = 0.5 * gaussian.variance if gaussian else 0.0
    wrong = part * ((gaussian.variance_error if gaussian else 0.0) + 2.0 * U)
    low, high = part - wrong, part + wrong
    for factor, n in loss.terms.items():
        lo, hi = _of_factor(factor)
        # Sups of different factors may be at different orders: only one may count from below.
        low = max(low, (part - wrong + n * lo) * (1.0 - 4.0 * U))
        high = (high + n * hi) * (1.0 + 4.0 * U)
    return Interval(float(low), float(high))


@remembered(maxsize=4096)
def _of_factor(factor: Factor) -> tuple[float, float]:
    if factor.atom_count == 0 or factor.mass_at_infinity > 0 or factor.mass_at_minus_infinity > 0:
        return np.inf, np.inf
    if isinstance(factor, RandomizedResponse):
        rho = factor.eps * -math.expm1(-factor.eps) / (1.0 + math.exp(-factor.eps))
        wrong = rho * (2.0 * EXP_ULPS + 8.0) * U + TINY
        return max(rho - wrong, 0.0), rho + wrong
    if isinstance(factor, GaussianMixture):
        above = [Fraction(a) for a in (factor.p_rest, *(s for s, _ in factor.p))]
        below = [Fraction(b) for b in (factor.q_rest, *(s for s, _ in factor.q))]
        widest = max(above) - min(below)
        tails = max(max(above) - max(below), min(above) - min(below))
        twice = 2 * Fraction(factor.sigma) ** 2
        return float_down(tails**2 / twice), float_up(widest**2 / twice)
    sides = [factor] if factor.is_symmetric else [factor, factor.reverse()]
    both = [_one_way(Pld(None, {side: 1})) for side in sides]
    return max(lo for lo, _ in both), max(hi for _, hi in both)


def _one_way(loss: Pld) -> tuple[float, float]:
    """`sup K(s) / (s(s+1))` over `s > 0` for one bounded factor, enclosed."""
    top, bottom = largest_loss_bounds(loss)[1], largest_loss_bounds(loss.reverse())[1]
    low, mean = mean_loss(loss)
    pure = max(top, bottom)
    popoviciu = (0.5 * (top + bottom)) ** 2 * (1.0 + 1e-12) + TINY
    unit = min(1.0, 1.0 / pure)
    # Below the first order the bound grows with it, above it floats lose `K / s` as 1/s.
    gap, far = max(0.5 * popoviciu - mean, TINY), 0.1
    listed = loss._evaluator._single_atoms
    if listed is not None:
        # Up to order 0.01, in that unit, the variance of the tilted loss is at most e^0.01 E Z².
        size = np.abs(listed.z) + listed.loss_error
        square = 1.0101 * float(listed.p @ (size * size)) + TINY
        if square < popoviciu:
            gap, far = max(0.5 * square - mean, TINY), 0.01
    first = min(max(_WIDTH, (_NOISE / gap) ** 0.5), far) * unit
    best = max(low, 0.0)
    limit = (mean + first * gap) * (1.0 + 1e-14)
    # Past the last order the quotient is at most top / (s + 1): below what the mean already gives.
    last = max(2.0 * top / max(best, 1e-300), 2.0 * first)
    cap = 0.5 * pure * pure * (1.0 + 1e-14) + TINY
    if last > 1e15:
        return best, cap
    s = np.geomspace(first, last, _CELLS)
    lo, hi = _log_moment(loss, s)
    limit = max(limit, top / last)
    done = limit
    atoms = sum(factor.atom_count or 1 for factor in loss.terms)
    most = min(max(_MOST_WORK // atoms, 2 * _CELLS), 2 * MANY)
    for _ in range(MOST_STEPS):
        best = max(best, float(np.max(lo / (s * (s + 1.0)))) * (1.0 - 8.0 * U))
        above = _chord_top(s[:-1], s[1:], hi[:-1], hi[1:])
        # No refinement comes below the samples themselves.
        floor = max(best, limit, float(np.max(hi / (s * (s + 1.0)))))
        open_ = np.flatnonzero(above > floor * (1.0 + _WIDTH))
        done = max(limit, float(above.max()))
        if not open_.size or s.size + open_.size > most:
            break
        middle = np.sqrt(s[open_] * s[open_ + 1])
        new_lo, new_hi = _log_moment(loss, middle)
        s = np.insert(s, open_ + 1, middle)
        lo, hi = np.insert(lo, open_ + 1, new_lo), np.insert(hi, open_ + 1, new_hi)
    return best, min(max(done, best), cap)


def _log_moment(loss: Pld, s: Floats) -> tuple[Floats, Floats]:
    value, error = loss._evaluator._moments.log_moment(s)
    return value - error, value + error


def _chord_top(a: Floats, b: Floats, at_a: Floats, at_b: Floats) -> Floats:
    """Upper bound of `chord(s) / (s(s+1))` on `[a, b]`."""
    slope = (at_b - at_a) / (b - a)
    ends = np.maximum(at_a / (a * (a + 1.0)), at_b / (b * (b + 1.0)))
    offset = at_a - slope * a
    with np.errstate(all="ignore"):
        root = np.sqrt(offset * (offset - slope))
        for sign in (-1.0, 1.0):
            s = np.clip(np.nan_to_num((-offset + sign * root) / slope, nan=0.0), a, b)
            # The chord from the nearer end has the digits.
            chord = np.maximum(at_a + slope * (s - a), at_b - slope * (b - s))
            ends = np.maximum(ends, chord / (s * (s + 1.0)))
    return ends * (1.0 + 16.0 * U) + 16.0 * U * (np.abs(at_a) + np.abs(at_b)) / (a * (a + 1.0))
