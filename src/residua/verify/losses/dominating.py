"""Finite laws above losses: chords through their curves, at free points or on a lattice.

Between points the curve is replaced by its chord, which lies above the convex curve, so its law
dominates: its atom at `x_k > 1` is `x_k` times the jump of slopes there. Beyond the last point the
curve is held constant, which is mass at infinity; for `x < 1` the same for the reversal. A single
factor is read off its own curve, a composition off a fine lattice that dominates it. A proof
through a law above is a proof; a disproof is not.

**On a lattice** laws are composed by products of polynomials. An atom between lattice points is
split between them so that both its masses stay.

The *excess* `g(t) = h(e^t) - (1-e^t)_+` at lattice points is a sum of positive terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from flint import arb, arb_poly

from residua.provable import MOST_ATOMS
from residua.verify.arithmetic import Ball, ball, bits, counted_cache, near, reserve_memory, work
from residua.verify.losses.factors import Factor, Loss, Unknown
from residua.verify.losses.hockey_stick import curve, known_curve
from residua.verify.losses.laws import Finite, gaussian_curve

FINENESS = (0.006, 0.001, 0.0004)
"""Distances of points beside the size of the loss, to be tried in turn. Lattice points are three
times as far apart at first, beside the size of the smallest factor."""
LONGEST_LATTICE = 1 << 17
"""The most points of a lattice: more are beyond the limits of work and memory."""


def law_above(loss: Loss, eta: Fraction, fine: float) -> Callable[[], Finite] | None:
    """How to make a finite law above a composition, with no more than `η` at infinity."""
    if loss.stated or not loss.factors:
        return None
    with bits(64):
        sizes = [_size(curve(factor, arb(0))) for factor, _ in loss.factors]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None
    if eta == 0 and any(factor.unbounded for factor, _ in loss.factors):
        return None
    whole = sum(size**2 * n for size, (_, n) in zip(known, loss.factors, strict=True)) ** 0.5
    # So much of the slack may lie beyond the last point.
    level = 1e-3 * float(eta)
    if len(loss.factors) == 1 and loss.factors[0][1] == 1 and not loss.variance:
        factor = loss.factors[0][0]

        def make() -> Finite:
            tops: tuple[Ball | None, Ball | None] = (None, None)
            if factor.missing().is_zero():
                tops = factor.top(), factor.top(True)
            most = max((near(top) for top in tops if top is not None), default=math.inf)
            at = _points(whole, fine, most)
            height, point = partial(known_curve, factor), lambda i: arb(at(i))
            return _through(height, factor.symmetric, point, level, MOST_ATOMS, ends=tops)

        return make
    return lambda: _off_lattice(loss, min(known), whole, level, fine)


@dataclass(frozen=True)
class Above(Factor):
    """A finite law above a bounded factor, as a factor."""

    factor: Factor
    fine: float

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.factor.symmetric

    def law(self) -> Finite:
        make = law_above(Loss(factors=((self.factor, 1),)), Fraction(0), self.fine)
        if make is None:
            raise Unknown("no formula for its curve")
        return make()


def _size(height: Ball | None) -> float | None:
    """About the standard deviation of a loss with this height at 1."""
    return None if height is None else 2.4 * near(height)


def _points(size: float, fine: float, end: float = math.inf) -> Callable[[int], float]:
    """Points that lie closer together around 0 and around the end, where tilted laws have mass."""
    found = [0.0]

    def at(i: int) -> float:
        while len(found) <= i:
            far = min(found[-1], abs(end - found[-1]))
            found.append(found[-1] + fine * max(size, far))
        return found[i]

    return at


def _off_lattice(loss: Loss, least: float, whole: float, level: float, fine: float) -> Finite:
    apart = 3.0 * fine if fine == FINENESS[0] else fine
    spacing = Fraction(apart * least).limit_denominator(1 << 40)
    law = lattice_of(loss, spacing, level / 8.0, LONGEST_LATTICE)
    span = max(law.high, -law.low) + 2
    excess = law.excess(span, 1)
    d = ball(spacing)

    def heights(t: Ball, back: bool) -> Ball:
        k = min(round(near(t / d)), span)
        return excess[span - k] * (k * d).exp() if back else excess[span + k]

    at = _points(whole, fine)

    def on_lattice(i: int) -> Ball:
        return max(round(at(i) / float(spacing)), i) * d

    return _through(heights, loss.symmetric, on_lattice, level, MOST_ATOMS)


def _through(
    heights: Callable[[Ball, bool], Ball],
    symmetric: bool,
    point: Callable[[int], Ball],
    level: float,
    most: int,
    reach: float = math.inf,
    ends: tuple[Ball | None, Ball | None] = (None, None),
) -> Finite:
    """The law of the chords through points of a curve, on both sides of `x = 1`.

    Points go on until the curve is at most `level`, or there are more than `reach`. `ends` are the
    largest losses, if they are known: the last points, so that atoms there stay.
    """
    sides = []
    for back in (False,) if symmetric else (False, True):
        t: list[Ball] = []
        h: list[Ball] = []
        end = ends[back]
        while len(h) < 3 or not (h[-1] <= level or len(h) > reach):
            if len(h) > most:
                raise Unknown("its law has too many outcomes")
            place = point(len(h))
            if end is not None and len(h) >= 2 and not place < end and end > t[-1]:
                t.append(end)
                h.append(arb(0))
                break
            if t and not place > t[-1]:
                raise Unknown("its points cannot be told apart")
            t.append(place)
            h.append(_widen_if_tiny(heights(place, back)))
        x = [each.exp() for each in t]
        slopes = [(h[i] - h[i + 1]) / (x[i + 1] - x[i]) for i in range(len(h) - 1)] + [arb(0)]
        jumps = [slopes[i - 1] - slopes[i] for i in range(1, len(h))]
        over = [a * b for a, b in zip(x[1:], jumps, strict=True)]
        sides.append((t[1:], over, jumps, h[-1]))
    (z, p, q, plus), (z_back, q_back, p_back, minus) = sides[0], sides[-1]
    middle = 1 - plus - sum(p, arb(0)) - sum(p_back, arb(0))
    return Finite(
        (*p_back[::-1], middle, *p),
        (*q_back[::-1], middle, *q),
        (*(-each for each in z_back[::-1]), arb(0), *z),
        plus,
        minus,
        symmetric,
    )


def _widen_if_tiny(height: Ball) -> Ball:
    """A height, or a wider ball where it is so small that its exponent alone would cost much."""
    least = arb(2) ** -2048
    return arb(0).union(least) if height < least and not height.is_zero() else height


# -- on a lattice -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lattice:
    """Masses of `P` at `low d, (low+1) d, …`, and those at infinity of `P` and of `Q`."""

    d: Ball
    low: int
    masses: tuple[Ball, ...]
    plus: Ball
    minus: Ball

    @property
    def high(self) -> int:
        return self.low + len(self.masses) - 1

    def __mul__(self, other: Lattice) -> Lattice:
        """The composition."""
        masses = multiply(self.masses, other.masses)
        return Lattice(
            self.d,
            self.low + other.low,
            tuple(masses),
            self.plus + (1 - self.plus) * other.plus,
            self.minus + (1 - self.minus) * other.minus,
        )

    def power(self, n: int, reach: int, tail: float) -> Lattice:
        whole: Lattice | None = None
        square = self
        while n:
            if n & 1:
                whole = square if whole is None else (whole * square).cut(reach, tail)
            n >>= 1
            if n:
                square = (square * square).cut(reach, tail)
        assert whole is not None
        return whole

    def cut(self, reach: int, tail: float) -> Lattice:
        """The law with far losses moved to the ends and charged as mass at infinity: dominating."""
        work(2 * len(self.masses))
        masses, low = list(self.masses), self.low
        high = _end(masses[max(0, -low) :], reach, tail)
        tilts = [(-(low + i) * self.d).exp() for i in range(max(0, -low) + 1)]
        back = [m * t for m, t in zip(masses[: len(tilts)], tilts, strict=False)][::-1]
        deep = _end(back, reach, tail)
        if low + len(masses) - 1 <= high and -low <= deep:
            return self
        far = sum(masses[high - low + 1 :], arb(0))
        lost = sum(back[deep + 1 :], arb(0))
        nearer = sum(masses[: max(0, -deep - low)], arb(0))
        kept = masses[max(0, -deep - low) : high - low + 1]
        kept[-1] += far
        kept[0] += nearer
        return Lattice(self.d, max(low, -deep), tuple(kept), self.plus + far, self.minus + lost)

    def excess(self, half: int, every: int) -> list[Ball]:
        """The excess at `k · every`, `|k| <= half`."""
        work(4 * len(self.masses) + 2 * half)
        fall, rise = (-self.d).exp(), -(-self.d).expm1()
        right = self._heights({self.low + i: m for i, m in enumerate(self.masses)}, fall, rise)
        mirrored = {
            -(self.low + i): m * (-(self.low + i) * self.d).exp() for i, m in enumerate(self.masses)
        }
        left = self._heights(mirrored, fall, rise)
        out = []
        for k in range(-half, half + 1):
            at = abs(k) * every
            if k >= 0:
                out.append(self.plus + (right[at] if at < len(right) else arb(0)))
            else:
                height = self.minus + (left[at] if at < len(left) else arb(0))
                out.append((-at * self.d).exp() * height)
        return out

    def _heights(self, masses: dict[int, Ball], fall: Ball, rise: Ball) -> list[Ball]:
        top = max(masses)
        if top <= 0:
            return [arb(0)]
        heights = [arb(0)] * (top + 1)
        total = arb(0)
        for k in range(top, 0, -1):
            total += masses.get(k, arb(0))
            heights[k - 1] = fall * heights[k] + rise * total
        return heights

    def coarse(self, every: int) -> tuple[int, list[Ball]]:
        """Atoms split between the points of a lattice that is `every` times as coarse."""
        if every == 1:
            return self.low, list(self.masses)
        work(2 * len(self.masses))
        first, last = self.low // every, -(-self.high // every)
        out = [arb(0)] * (last - first + 1)
        whole = (-every * self.d).expm1()
        shares = [(-i * self.d).expm1() / whole for i in range(every)]
        for i, mass in enumerate(self.masses):
            cell, rest = divmod(self.low + i, every)
            out[cell - first] += mass * (1 - shares[rest])
            if rest:
                out[cell - first + 1] += mass * shares[rest]
        return first, out


def multiply(one: Sequence[Ball], two: Sequence[Ball]) -> list[Ball]:
    """The coefficients of a product of polynomials, all of them."""
    # How long that takes depends on how far the sizes of coefficients lie apart.
    spread = _spread(one) + _spread(two)
    work((len(one) + len(two)) * (2.0 + 0.012 * spread))
    reserve_memory((len(one) + len(two)) * (2.0 + spread / 1024.0))
    found: list[Ball] = (arb_poly(list(one)) * arb_poly(list(two))).coeffs()
    return found + [arb(0)] * (len(one) + len(two) - 1 - len(found))


def _spread(values: Sequence[Ball]) -> int:
    """About how many powers of 2 lie between the largest and the smallest."""
    some = (value.mid() for value in values[:: len(values) // 32 + 1])
    sizes = [m.bit_length() + e for m, e in (x.man_exp() for x in some if not x.is_zero())]
    return int(max(sizes) - min(sizes)) if sizes else 0


def _end(masses: list[Ball], reach: int, tail: float) -> int:
    """How far to go so that no more than `tail` lies beyond."""
    beyond, at = 0.0, len(masses) - 1
    while at > 1 and tail > 0.0:
        beyond += near(masses[at])
        if beyond > tail:
            break
        at -= 1
    return max(1, min(at, reach))


@counted_cache(maxsize=16)
def lattice_of(loss: Loss, spacing: Fraction, tail: float, reach: int) -> Lattice:
    """A law on a lattice that dominates a loss; tails below `tail` are charged in full."""
    if loss.stated:
        raise Unknown("no formula for the loss of a stated Rényi bound")
    d = ball(spacing)
    parts: list[Lattice] = []
    if loss.variance:
        mu = ball(loss.variance).sqrt()

        parts.append(_from_curve(lambda t, _: gaussian_curve(t, mu), True, d, tail, reach))
    for factor, n in loss.factors:
        # One tail for a range of counts, so that a factor is worked out once.
        share = tail / 16.0 ** math.ceil(math.log(n, 16))
        one = _of_factor(factor, spacing, share, reach)
        # What is cut off early is there in every copy.
        parts.append(one.power(n, reach, tail / (4.0 * n)))
    whole = parts[0]
    for part in parts[1:]:
        whole = (whole * part).cut(reach, tail / 4)
    return whole


@counted_cache(maxsize=16)
def _of_factor(factor: Factor, spacing: Fraction, tail: float, reach: int) -> Lattice:
    law, d = factor.law(), ball(spacing)
    if isinstance(law, Finite):
        return _from_atoms(law, d)
    return _from_curve(partial(known_curve, factor), factor.symmetric, d, tail, reach)


def _from_atoms(law: Finite, d: Ball) -> Lattice:
    """Atoms split between lattice points.

    One that cannot be separated from a lattice point is moved there: over a distance `s` its excess
    changes by at most `p s` right of 0 and `e^t q s` left of it, which is charged.
    """
    spots = [int(near(z / d) // 1) for z in law.z]
    low, high = min(-1, *(k - 2 for k in spots)), max(1, *(k + 3 for k in spots))
    work(high - low + 8 * len(spots))
    reserve_memory(high - low)
    masses = [arb(0)] * (high - low + 1)
    plus, minus = law.p_inf, law.q_inf
    for p, q, z in zip(law.p, law.q, law.z, strict=True):
        cell = (z / d).floor().unique_fmpz()
        if cell is None:
            k = round(near(z / d))
            moved = abs(z - k * d).upper() * p.max(q)
            masses[k - low] += p
            plus, minus = plus + moved, minus + moved
            continue
        k = int(cell)
        share = (k * d - z).expm1() / (-d).expm1()
        masses[k + 1 - low] += p * share
        masses[k - low] += p * (1 - share)
    return Lattice(d, low, tuple(masses), plus, minus)


def _from_curve(
    heights: Callable[[Ball, bool], Ball], symmetric: bool, d: Ball, tail: float, reach: int
) -> Lattice:
    law = _through(heights, symmetric, lambda k: k * d, tail, LONGEST_LATTICE, reach)
    return Lattice(d, -sum(bool(z < 0) for z in law.z), law.p, law.p_inf, law.q_inf)
