"""`A ⪯ B` for compositions of bounded symmetric queries, both of them without a Gaussian part.

Both curves are symmetric, so `t >= 0` is enough. Where both have a list of outcomes: `h_A - h_B` is
piecewise linear in `x`, and where only `h_A` bends it has no maximum, so it is enough to look at
the losses of `B`, at 0 and far out. Otherwise on a lattice: `A` from above (`lattice.py`), `B` from
below by rounding every loss down: `Σ p (1 - e^{t-z})_+` rises with the losses, composed or not.
Both are linear in `x` between lattice points.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from residuum.verify.balls import Ball, ball, bits
from residuum.verify.effort import work
from residuum.verify.factors import Factor, Loss, Noise, Response
from residuum.verify.heights import Steps, powered
from residuum.verify.lattice import Lattice, lattice_of
from residuum.verify.laws import Central, Finite, composed
from residuum.verify.verdict import Proof, proven, undecided

_BITS = 192
_CELLS = (32, 128, 512)
_LONGEST = 1 << 16
_MOST_OUTCOMES = 1 << 12
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
        for cells in _CELLS:
            found = _on_lattice(loss, other, cells)
            if found is None or found.verdict == "proven":
                return found or _NO
    return _NO


def _listed(loss: Loss) -> Finite | None:
    laws, count = [], 1
    for factor, n in loss.factors:
        law = factor.law()
        power = powered(factor, law, n) if isinstance(law, Finite) else None
        if power is None:
            return None
        count *= len(power.z)
        laws.append(power)
    return composed(laws) if count <= _MOST_OUTCOMES else None


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
    listed = tuple(masses.get(k, arb(0)) for k in range(first, last + 1))
    return Lattice(d, first, listed, arb(0), arb(0))
