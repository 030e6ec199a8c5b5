"""`A ⪯ B` for compositions of bounded symmetric queries, both of them without a Gaussian part.

Both curves are symmetric, so `t >= 0` is enough. Where `B` has a list of outcomes: between two of
its losses `h_B` is linear in `x` and `h_A` is convex, so `h_A - h_B` is largest at one of them, and
it is enough to look at the losses of `B`, at 0 and far out. Otherwise on a lattice: `A` from above
(`lattice.py`), `B` from below by rounding every loss down: `Σ p (1 - e^{t-z})_+` rises with the
losses, composed or not. Both are linear in `x` between lattice points.

Single queries, symmetric or not, are compared by their curves in `x`, which are convex: `h_A` lies
below its chord over a cell, `h_B` above the lines through its points on either side of the cell.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from residua.provable.forms import MOST_OUTCOMES
from residua.verify.arithmetic.balls import Ball, ball, bits, near
from residua.verify.arithmetic.work_limit import room, work
from residua.verify.losses.curves import curve
from residua.verify.losses.factors import Factor, Loss, Noise, Response
from residua.verify.losses.hockey_stick import Steps, heights, powered
from residua.verify.losses.lattice import Lattice, lattice_of
from residua.verify.losses.laws import Central, Finite, composed
from residua.verify.proofs.verdict import Proof, proven, undecided

_BITS = 192
_CELLS = (32, 128, 512)
_LONGEST = 1 << 16
_MOST_CELLS = 1 << 10
_NO = undecided("not shown to lie below")


def bounded_below(loss: Loss, other: Loss) -> Proof:
    """Whether a bounded symmetric composition lies below another, or undecided."""
    for each in (loss, other):
        plain = each.factors and not each.variance and not each.stated and each.symmetric
        if not plain or any(factor.unbounded for factor, _ in each.factors):
            return _NO
    with bits(_BITS):
        one, two = _listed(loss), _listed(other)
        if one is not None and two is not None:
            return _by_outcomes(one, two)
        if two is not None and _below_at_losses(loss, two):
            return proven("lies below at every loss of the other")
        for cells in _CELLS:
            found = _on_lattice(loss, other, cells)
            if found is None or found.verdict == "proven":
                return found or _NO
    return _NO


def single_below(one: Factor, two: Factor) -> Proof:
    """Whether a bounded factor lies below another, both ways, or undecided."""
    if not (one.missing().is_zero() and two.missing().is_zero()):
        return _NO
    with bits(_BITS):
        both = _curves_below(one, two, False) and _curves_below(one, two, True)
        return proven("lies below by its curve") if both else _NO


def _curves_below(one: Factor, two: Factor, back: bool) -> bool:
    """On `t >= 0`, where the losses of the one end before those of the other."""
    top, beyond = one.top(back), two.top(back)
    if top is None or beyond is None or not top < beyond:
        return False
    high = near(top) + 0.5 * (near(beyond) - near(top))
    if not (arb(high) >= top and high > 0.0):
        return False
    count = 1 << 4
    while count <= _MOST_CELLS:
        ts = [arb(high * k / count) for k in range(count + 1)]
        pairs = [(curve(one, t, back), curve(two, t, back)) for t in ts]
        found = [(a, b) for a, b in pairs if a is not None and b is not None]
        if len(found) < len(pairs) or any(a > b for a, b in found):
            return False
        # A symmetric curve has `h'(1-) + h'(1+) = h(1) - 1`: half of that is a slope at 1.
        first = (found[0][1] - 1) / 2 if two.symmetric else arb(-1)
        if _cells_close([t.exp() for t in ts], found, first):
            return True
        count *= 4
    return False


def _cells_close(x: list[Ball], pairs: list[tuple[Ball, Ball]], first: Ball) -> bool:
    """Whether chords of the one lie below what is known to lie below the other; 0 beyond the end.

    Over a cell the other lies above the lines through its two points on the left, and on the right;
    over the first, above a line of slope `first`.
    """
    over, under = ([pair[k] for pair in pairs] for k in (0, 1))
    if not all(a <= b for a, b in pairs):
        return False
    for k in range(len(x) - 1):
        width = x[k + 1] - x[k]
        # It rises by no more than its slope on the right, and falls by no more than on the left.
        right = (under[k + 2] - under[k + 1]) / (x[k + 2] - x[k + 1]) if k + 2 < len(x) else arb(0)
        left = (under[k] - under[k - 1]) / (x[k] - x[k - 1]) if k else first
        bend = near(right - left)
        step = near(under[k + 1] - under[k])
        share = (near(width * right) - step) / (near(width) * bend) if bend > 0.0 else 0.5
        cut = arb(min(max(share, 0.0), 1.0))
        chord = over[k] + (over[k + 1] - over[k]) * cut
        falls = under[k] + left * width * cut
        rises = under[k + 1] - right * width * (1 - cut)
        if not (chord <= falls and chord <= rises):
            return False
    return True


def _listed(loss: Loss) -> Finite | None:
    laws, count = [], 1
    for factor, n in loss.factors:
        law = factor.law()
        power = powered(factor, law, n) if isinstance(law, Finite) else None
        if power is None:
            return None
        count *= len(power.z)
        laws.append(power)
    return composed(laws) if count <= MOST_OUTCOMES else None


def _by_outcomes(one: Finite, two: Finite) -> Proof:
    if not (one.p_inf <= two.p_inf and one.q_inf <= two.q_inf):
        return _NO
    left, right = Steps(one), Steps(two)
    for t in (arb(0), *two.z):
        if t < 0:
            continue
        height = left(t)
        if not (height <= 0 or height <= right(t)):
            return _NO
    return proven("lies below at every loss of the other")


def _below_at_losses(loss: Loss, two: Finite) -> bool:
    """The same for a composition without such a list, by its heights at the losses of the other."""
    right = Steps(two)
    for t in (arb(0), *two.z):
        if t < 0:
            continue
        sides = heights(loss, t)
        if sides is None or not (sides[0] <= 0 or sides[0] <= right(t)):
            return False
    return True


def _on_lattice(loss: Loss, other: Loss, cells: int) -> Proof | None:
    """None where the lattice would be too long."""
    spacing = min(size for f, _ in other.factors if (size := _size(f))) / cells
    sizes = [n * _size(f) for each in (loss, other) for f, n in each.factors]
    if not all(sizes) or sum(sizes) > spacing * _LONGEST:
        return None
    above = lattice_of(loss, spacing, 0.0, 2 * _LONGEST)
    below: Lattice | None = None
    for factor, n in other.factors:
        power = _rounded_down(factor, spacing).power(n, 2 * _LONGEST, 0.0)
        below = power if below is None else below * power
    assert below is not None
    half = max(above.high, 0) + 1
    high, low = above.excess(half, 1)[half:], below.excess(half, 1)[half:]
    if not (above.plus.is_zero() and above.minus.is_zero()):
        return _NO
    if all(a <= b for a, b in zip(high, low, strict=True)):
        return proven(f"lies below on a lattice of {half} points")
    return _NO


def _size(factor: Factor) -> Fraction:
    """About the largest loss, as a rational; 0 if it has none."""
    if isinstance(factor, Response | Noise):
        return factor.eps
    top = factor.top()
    return Fraction(0) if top is None else Fraction(float(top.upper()))


def _rounded_down(factor: Factor, spacing: Fraction) -> Lattice:
    """Masses of `P` at lattice points at or below their losses; for heights at `t >= 0` alone."""
    law, d = factor.law(), ball(spacing)
    masses: dict[int, Ball] = {}

    def add(k: int, mass: Ball) -> None:
        masses[k] = masses.get(k, arb(0)) + mass

    if isinstance(law, Central) and isinstance(factor, Noise):
        top, bottom = factor.eps // spacing, -factor.eps // spacing
        add(bottom, law.atoms.p[0])
        add(top, law.atoms.p[1])
        work(4 * (top - bottom))
        for k in range(bottom, top + 1):
            start, stop = (k * d).max(-law.e), ((k + 1) * d).min(law.e)
            add(k, 2 * law.height * ((stop / 2).exp() - (start / 2).exp()))
    elif isinstance(law, Finite):
        for p, z in zip(law.p, law.z, strict=True):
            cell = (z / d).lower().floor().unique_fmpz()
            if cell is not None:
                add(int(cell), p)
    first, last = min(masses, default=0), max(masses, default=0)
    work(last - first)
    room(last - first)
    listed = tuple(masses.get(k, arb(0)) for k in range(first, last + 1))
    return Lattice(d, first, listed, arb(0), arb(0))
