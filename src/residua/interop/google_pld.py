"""dp_accounting's privacy loss distributions, both ways and without losing the safe side.

Theirs is, for each direction, masses `p_k` at the losses `k d` (`d` is the discretisation interval)
and one at infinity. What it says is a curve,

    g(x) = p_inf + Σ_k p_k (1 - x e^{-kd})_+ ,

an upper bound of the true curve if it is pessimistic; an optimistic one cannot be spent and is not
read. `d` and the masses are taken for the numbers that they are.

*From theirs.* The pair `(p_k, q_k)` with `q_k = p_k e^{-kd}` rounded down has a curve at
least `g`. Masses below 0 (their convolutions leave some) count as 0; where masses sum to more than
1, the least losses give up the excess, which changes `g` only where `x` is below them, and where
they sum to less, the rest is at infinity. Where the `q_k` sum to more than 1 all of them are scaled
down, which is up for the loss.

*To theirs* (connect the dots; Doroshenko et al. 2022). Through proven upper bounds of the
curve at rationals `x_k`, slightly below `e^{kd}`, runs a lower convex hull; the curve is convex and
stays below it. Its kink at `x_k` is an atom, put at the loss `kd`, which is no less than
`ln x_k`; its mass is rounded up, with a margin that covers the rounding of their sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from dp_accounting.pld import pld_pmf
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

from residua import checks
from residua.bounds import Floats, float_down
from residua.errors import ArgumentError, ArgumentTypeError
from residua.pld.arithmetic.convexity_bounds import lower_hull
from residua.pld.arithmetic.exact import integers
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, U
from residua.pld.constructors import infinite
from residua.pld.curve import reach, right_half
from residua.pld.curve.support_ends import largest_loss_bounds
from residua.pld.families.atoms import atoms_from_floats
from residua.pld.pld import Pld, query

LEAST_MASS = 2.0**-1000
"""Smaller masses go to infinity."""
LARGEST_LOSS = 650.0
"""The largest loss that is read or written."""
DIRECTIONS = ("remove", "add")


def from_google_pld(pld: Any, direction: str | None = None) -> Pld:
    """A PLD above one direction of a dp_accounting PLD.

    Either direction alone covers both: the loss of `add` is the reversal of that of `remove`.

    Args:
        pld: a `PrivacyLossDistribution` with pessimistic masses.
        direction: `remove` (the default) or `add`.

    Raises:
        ArgumentError: the PLD is optimistic, or its losses are out of range.
    """
    checks.instance(
        "pld", pld, PrivacyLossDistribution, "a PrivacyLossDistribution of dp_accounting"
    )
    way = checks.one_of("direction", "remove" if direction is None else direction, DIRECTIONS)
    pmf = pld._pmf_remove if way == "remove" else pld._pmf_add
    if not pmf._pessimistic_estimate:
        raise ArgumentError(f"pld must be pessimistic, got {pld!r}, which is optimistic")
    interval = checks.positive("value_discretization_interval", pmf._discretization)
    places, masses = _masses(pmf)
    at_infinity = min(max(checks.finite("infinity_mass", pmf._infinity_mass), 0.0), 1.0)
    kept = masses >= LEAST_MASS
    places, masses = places[kept], masses[kept]
    if not masses.size:
        return infinite()
    if float(np.abs(places).max()) * interval > LARGEST_LOSS:
        raise ArgumentError(f"losses must be within {LARGEST_LOSS:g}, got {pld!r}")
    return _atoms(places, masses, at_infinity, interval)


def to_google_pld(pld: Pld, value_discretization_interval: float = 1e-4) -> Any:
    """A pessimistic dp_accounting PLD: its curves are above those of `pld`.

    Args:
        pld: the loss of the direction `remove`; `add` is its reversal.
        value_discretization_interval: the distance of neighbouring losses.

    Returns:
        A symmetric PLD for a symmetric one. Tails are followed down to 1e-20; what is left is at
        infinity.

    Raises:
        ArgumentError: losses would take too many places.
    """
    query("pld", pld)
    interval = checks.positive("value_discretization_interval", value_discretization_interval)
    if pld.is_symmetric:
        return PrivacyLossDistribution(_pmf_of(pld, interval))
    return PrivacyLossDistribution(_pmf_of(pld, interval), _pmf_of(pld.reverse(), interval))


# -- from theirs ------------------------------------------------------------------------------


def _masses(pmf: Any) -> tuple[Floats, Floats]:
    """Places (multiples of the interval, ascending) and masses."""
    if isinstance(pmf, pld_pmf.DensePLDPmf):
        masses = np.array(pmf._probs, dtype=np.float64)
        places = np.arange(masses.size, dtype=np.float64) + float(pmf._lower_loss)
    elif isinstance(pmf, pld_pmf.SparsePLDPmf):
        given = sorted(pmf._loss_probs.items())
        places = np.array([float(place) for place, _ in given])
        masses = np.array([float(mass) for _, mass in given])
    else:
        raise ArgumentTypeError(f"pld must have dense or sparse masses, got {checks.shown(pmf)}")
    return places, checks.array_satisfying("masses", masses, np.isfinite, "finite")


def _atoms(places: Floats, masses: Floats, at_infinity: float, interval: float) -> Pld:
    z = places * interval
    # Each loss is within an ulp of k d, and exp within its own.
    slack = (np.abs(z) + EXP_ULPS + 6.0) * U
    q = masses * np.exp(-z) * (1.0 - 2.0 * slack)
    # Too light for floats: at infinity, with whatever is missing.
    heavy = q >= LEAST_MASS
    p, kept = _within(masses[heavy], 1 - Fraction(at_infinity))
    if not p.size:
        return infinite()
    q = (q[heavy] * (1.0 - 2.0 * U))[-p.size :]
    q[0] *= float(p[0] / masses[heavy][-p.size]) * (1.0 - 4.0 * U)
    factor = atoms_from_floats(p, q, kept, min(_total(q), Fraction(1)))
    return Pld(None, {factor: 1})


def _total(masses: Floats) -> Fraction:
    """The sum, exactly."""
    whole, shift = integers(masses)
    return sum(whole) / Fraction(2) ** shift


def _within(masses: Floats, room: Fraction) -> tuple[Floats, Fraction]:
    """The masses of the largest losses that fit into `room`, the first one cut, and their sum."""
    total, first = _total(masses), 0
    while total > room and first < masses.size:
        mass, excess = Fraction(float(masses[first])), total - room
        smaller = float_down(max(mass - excess, Fraction(0)))
        total -= mass
        if smaller >= LEAST_MASS:
            return np.array([smaller, *masses[first + 1 :]]), total + Fraction(smaller)
        first += 1
    return masses[first:], total


# -- to theirs --------------------------------------------------------------------------------


def _pmf_of(pld: Pld, interval: float) -> Any:
    if pld.is_infinite:
        return _pmf({0: 0.0}, interval, 1.0)
    ends, most = [_end(side, interval) for side in (pld.reverse(), pld)], 1 << 20
    checks.require(
        ends[0] + ends[1] < most,
        "value_discretization_interval",
        f"such that losses from {-ends[0] * interval:.3g} to {ends[1] * interval:.3g} take at most"
        f" {most} places",
        interval,
    )
    places = np.arange(-ends[0], ends[1] + 1)
    t = np.asarray(places * interval, dtype=np.float64)
    lowered = np.where(t == 0.0, 1.0, np.exp(t) * (1.0 - (np.abs(t) + EXP_ULPS + 4.0) * 2.0 * U))
    dt = 4.0 * (float(np.abs(t).max()) + EXP_ULPS + 4.0) * U
    # Everything in units of 2^-bits: x rounded down, heights and masses up.
    bits = 320 + math.ceil(-1.5 * float(t[0]))
    one = 1 << bits
    x, heights = [0], [one]
    for at, place, height in zip(t.tolist(), lowered.tolist(), _upper(pld, t, dt), strict=True):
        x.append(_units(place, bits))
        v = -_units(-height, bits)
        heights.append(v if at >= 0.0 else one - x[-1] + -(-x[-1] * v >> bits))
    kept = lower_hull(x, heights)
    falls = [(heights[a] - heights[b], x[b] - x[a]) for a, b in pairwise(kept)]
    margin = 1.0 + 8.0 * len(kept) * U
    masses = {}
    for b, (fall, run), (next_fall, next_run) in zip(
        kept[1:], falls, [*falls[1:], (0, 1)], strict=True
    ):
        q = -((-fall << bits) // run) - (next_fall << bits) // next_run
        masses[int(places[b - 1])] = _float(-(-x[b] * q >> bits), bits) * margin
    return _pmf(masses, interval, _float(heights[kept[-1]], bits) * margin)


def _units(value: float, bits: int) -> int:
    """A float in units of `2^-bits`, rounded down."""
    top, bottom = value.as_integer_ratio()
    return (top << bits) // bottom


def _float(units: int, bits: int) -> float:
    """A float at least so many units of `2^-bits`."""
    return math.nextafter(units / (1 << bits), math.inf) if units else 0.0


def _upper(pld: Pld, t: Floats, dt: float) -> list[float]:
    """Upper bounds of `h(e^t)` for `t >= 0` and of the reversed curve at `e^-t` below."""
    out = np.empty(t.size)
    for half, side in ((t >= 0.0, pld), (t < 0.0, pld.reverse())):
        if half.any():
            out[half] = right_half(side, np.abs(t[half]), dt, 1e-6)[1]
    return [min(max(v, 0.0), 1.0) for v in out.tolist()]


def _end(pld: Pld, interval: float) -> int:
    """The place past the largest loss, or past where the curve has come down to 1e-20."""
    top = largest_loss_bounds(pld)[1]
    far = top if math.isfinite(top) else reach(pld, 1e-20)
    return math.ceil(min(far, LARGEST_LOSS) / interval) + 1


def _pmf(masses: dict[int, float], interval: float, at_infinity: float) -> Any:
    places: Sequence[int] = sorted(masses)
    dense = np.zeros(places[-1] - places[0] + 1)
    for place, mass in masses.items():
        dense[place - places[0]] = mass
    return pld_pmf.DensePLDPmf(interval, places[0], dense, min(at_infinity, 1.0), True)
