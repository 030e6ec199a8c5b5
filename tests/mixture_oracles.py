"""Slow twins of mixtures of Gaussians and of bounded range.

`Mixture` is a pair of Gaussian mixtures in exact rationals, to 40 digits: curves from the
threshold of the best test, moments by the trapezoid rule at ever smaller steps. `Blend` is a
composition of such pairs with bounded ranges (Laplaces and responses among them) and a Gaussian:
in closed form without mixtures, as a sum over one mixture's observation where the rest has a
closed form, else from its transform on a line, in extended floats. What is summed numerically
comes as a `Bracket`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from mpmath import mp, mpf

from finite_oracles import NOISE, Bracket, Finite, exact, real

Component = tuple[Fraction, Fraction]
"""Shift in units of sigma, and weight."""
EXTENDED = np.longdouble
TOLERANCE = mpf("1e-8")
"""Of sums on two grids where the curve bends sharply."""


def extended(x: Any) -> Any:
    """A number as a long double, from two floats."""
    value = real(x)
    return EXTENDED(float(value)) + EXTENDED(float(value - mpf(float(value))))


def survival(y: mpf) -> mpf:
    return mp.erfc(y / mp.sqrt(2)) / 2


@dataclass(frozen=True)
class Mixture:
    """`Σ w N(a, 1)` against `Σ v N(b, 1)`, every `a` at least every `b`."""

    p: tuple[Component, ...]
    q: tuple[Component, ...]

    @staticmethod
    def of(sigma: float, p: Iterable[Component], q: Iterable[Component]) -> Mixture:
        sides = []
        for side in (p, q):
            parts = [(exact(a) / exact(sigma), exact(w)) for a, w in side]
            assert sum(w for _, w in parts) == 1
            sides.append(tuple(sorted(part for part in parts if part[1])))
        return Mixture(sides[0], sides[1])

    def reverse(self) -> Mixture:
        p = tuple((-a, w) for a, w in reversed(self.q))
        return Mixture(p, tuple((-a, w) for a, w in reversed(self.p)))

    @cached_property
    def spare(self) -> int:
        """Digits that cancel at most: those of the least weight and shift, twice."""
        small = min(min(w for _, w in self.p), min(w for _, w in self.q), Fraction(1))
        return 25 + 2 * int(-mp.log10(real(small)) - min(mp.log10(self.reach), 0))

    @cached_property
    def reach(self) -> mpf:
        return real(self.p[-1][0] - self.q[0][0])

    @cached_property
    def top(self) -> mpf:
        """The largest loss."""
        if self.p[-1][0] > self.q[-1][0]:
            return mp.inf
        with mp.extradps(320):
            return mp.log(real(self.p[-1][1] / self.q[-1][1]))

    @cached_property
    def bottom(self) -> mpf:
        return -self.reverse().top

    def likelihoods(self, x: Any) -> tuple[Any, Any]:
        """`dP/dN(0, 1)` and `dQ/dN(0, 1)`, for real or complex `x`."""
        first, second = (
            mp.fsum(real(w) * mp.exp(real(a) * x - real(a) ** 2 / 2) for a, w in side)
            for side in (self.p, self.q)
        )
        return first, second

    def loss(self, x: mpf) -> mpf:
        a, b = self.likelihoods(x)
        return mp.log(a / b)

    def threshold(self, t: mpf) -> mpf:
        """Where the loss is `t`: between its ends, by bisection, then Newton."""
        if len(self.p) + len(self.q) == 3 and self.p[0][0] == self.q[0][0]:
            # 1 - w + w e^{a x - a²/2} = e^t for shifts relative to the common one.
            base, (a, w) = real(self.q[0][0]), self.p[1]
            a, w = real(a) - base, real(w)
            return base + (mp.log1p(mp.expm1(t) / w) + a * a / 2) / a
        low, high = mpf(-8), mpf(8)
        while self.loss(low) > t:
            low *= 2
        while self.loss(high) < t:
            high *= 2
        for _ in range(24):
            x = (low + high) / 2
            low, high = (x, high) if self.loss(x) < t else (low, x)
        # Regula falsi with bisection as a guard: the loss is monotone.
        f_low, f_high = self.loss(low) - t, self.loss(high) - t
        for _ in range(60):
            x = low - f_low * (high - low) / (f_high - f_low) if f_high != f_low else low
            f = self.loss(x) - t
            if abs(f) < mp.eps * 100 * (1 + abs(t)):
                return x
            if f < 0:
                low, f_low, f_high = x, f, f_high / 2
            else:
                high, f_high, f_low = x, f, f_low / 2
        return x

    def hockey_stick(self, x: Any) -> mpf:
        return self.delta(mp.log(real(x)))

    def delta(self, t: Any) -> mpf:
        """`P(X > x*) - e^t Q(X > x*)`, where the loss at `x*` is `t`."""
        t = real(t)
        if t >= self.top:
            return mpf(0)
        if t <= self.bottom:
            return -mp.expm1(t)
        with mp.extradps(self.spare):
            at = self.threshold(t)
            above = [
                mp.fsum(real(w) * survival(at - real(a)) for a, w in side)
                for side in (self.p, self.q)
            ]
            return above[0] - mp.exp(t) * above[1]

    # -- moments ----------------------------------------------------------------------

    def centres(self, s: Any) -> list[mpf]:
        s = real(s)
        pairs = itertools.product(self.p, self.q)
        return sorted({(1 + s) * real(a) - s * real(b) for (a, _), (b, _) in pairs})

    def integrand(self, x: mpf, s: Any) -> Any:
        a, b = self.likelihoods(x)
        return mp.exp((1 + s) * mp.log(a) - s * mp.log(b) - x * x / 2) / mp.sqrt(2 * mp.pi)

    def moment(self, s: Any) -> Any:
        """`E e^{sZ}` at real or complex `s`."""
        return self._integral(lambda x: self.integrand(x, s), mp.re(s))

    def log_moment(self, s: Any) -> mpf:
        return mp.log(self.moment(s))

    def mean(self) -> mpf:
        return self._integral(lambda x: self.loss(x) * self.integrand(x, 0), mpf(0))

    def _integral(self, f: Callable[[mpf], Any], s: Any) -> Any:
        """Over the line, around every possible mode: halved steps until 30 digits stay.

        The integrands are analytic in a strip, so that the digits double each time.
        """
        with mp.workdps(42):
            centres = self.centres(s)
            inside = [(c - 13, c + 13) for c in centres]
            low, high = inside[0][0], inside[-1][1]
            step, terms, previous = mpf(1) / 4, {}, None
            while True:
                for i in range(int((high - low) / step) + 1):
                    x = low + i * step
                    if x not in terms and any(a <= x <= b for a, b in inside):
                        terms[x] = f(x)
                total = mp.fsum(terms.values()) * step
                if previous is not None and abs(total - previous) < mpf("1e-18") * abs(total):
                    return total
                previous, step = total, step / 2

    def points(self, lam: float, omega: float) -> tuple[Any, Any, Any]:
        """Log weights and losses of a trapezoid rule fit for `M(lam ± i omega)`, extended floats.

        The rule is wrong by 1e-24 of `M(lam)`, the floats by about 1e-18.
        """
        spread = max(float(side[-1][0] - side[0][0]) for side in (self.p, self.q))
        best, reach = 0.0, float(self.reach)
        for d in (0.01, 0.03, 0.1, 0.3, 1.0, 2.0, 3.0, 4.0, 6.0):
            if d * spread < 3.0:
                narrow = -np.log(np.cos(0.5 * d * spread)) * (abs(lam) + 1.0)
                best = max(best, 2 * np.pi * d / (56 + 0.5 * d * d + omega * d * reach + narrow))
        centres = [float(c) for c in self.centres(lam)]
        low, high = centres[0] - 11, centres[-1] + 11
        x = low + best * np.arange(int((high - low) / best) + 2).astype(EXTENDED)
        logs = []
        for side in (self.p, self.q):
            terms = [
                extended(mp.log(real(w))) + extended(a) * x - extended(a * a) / 2 for a, w in side
            ]
            top = np.max(terms, axis=0)
            logs.append(top + np.log(np.sum(np.exp(np.array(terms) - top), axis=0)))
        z = logs[0] - logs[1]
        weights = logs[0] + EXTENDED(lam) * z - x * x / 2
        top = weights.max()
        kept = weights > top - 56
        shift = top + np.log(EXTENDED(best)) - extended(mp.log(2 * mp.pi)) / 2
        return np.exp(weights[kept] - top), z[kept], shift

    def log_moment_roughly(self, s: float) -> float:
        weights, _, shift = self.points(s, 0.0)
        return float(shift + np.log(weights.sum()))

    def line(self, lam: float, step: float, count: int) -> tuple[Any, float]:
        """`M(lam + ik step) / M(lam)` for `k < count`, and `ln M(lam)`."""
        weights, z, shift = self.points(lam, step * count)
        total = weights.sum()
        turn = np.exp(1j * (EXTENDED(step) * z))
        state = weights / total + 0j * turn
        values = np.empty(count, dtype=state.dtype)
        for k in range(count):
            values[k] = state.sum()
            state = state * turn
        return values, shift + np.log(total)


def subsampled(sigma: float, rate: float, direction: str, sensitivity: float = 1.0) -> Mixture:
    """Poisson sampling at `rate`."""
    q, a = exact(rate), exact(sensitivity)
    up, plain = ((Fraction(0), 1 - q), (a, q)), ((Fraction(0), Fraction(1)),)
    if direction == "replace":
        return Mixture.of(sigma, up, ((Fraction(0), 1 - q), (-a, q)))
    one = Mixture.of(sigma, up, plain)
    return one if direction == "remove" else one.reverse()


def mixture(sigma: float, shifts: list[float], weights: list[float], direction: str) -> Mixture:
    """`Σ p_i N(s_i)` against `N(0)`; the largest shift takes what the others leave."""
    order = sorted(zip(map(exact, shifts), map(exact, weights), strict=True))
    rest = 1 - sum((w for _, w in order[:-1]), Fraction(0))
    one = Mixture.of(sigma, [*order[:-1], (order[-1][0], rest)], [(Fraction(0), Fraction(1))])
    return one if direction == "remove" else one.reverse()


# ----------------------------------------------------------------------- bounded range


def range_curve(eps: Any, atomic: Any, x: Any) -> mpf:
    """`h(x)` of `w R_e + (1-w) B_e`, each from its own density."""
    e, w, t = real(eps), real(atomic), mp.log(real(x))
    if t >= e:
        return mpf(0)
    if t <= -e:
        return 1 - real(x)
    with mp.extradps(40):
        atoms = (mp.exp(e) - mp.exp(t)) / (1 + mp.exp(e))
        # ∫_t^e (1 - e^{t-z}) e^{z/2} dz / (4 sinh(e/2))
        flat = 2 * (mp.exp(e / 2) - mp.exp(t / 2)) - 2 * mp.exp(t) * (
            mp.exp(-t / 2) - mp.exp(-e / 2)
        )
        return w * atoms + (1 - w) * flat / (4 * mp.sinh(e / 2))


def range_moment(eps: Any, atomic: Any, s: Any) -> Any:
    """`E e^{sZ}` at real or complex `s`."""
    e, w = real(eps), real(atomic)
    v = s + mpf(1) / 2
    flat = mp.sinh(v * e) / (2 * v) if v else e / 2
    return w * mp.cosh(v * e) / mp.cosh(e / 2) + (1 - w) * flat / mp.sinh(e / 2)


def laplace_weight(eps: Any) -> mpf:
    """The atomic share of a Laplace law."""
    return (1 + mp.exp(-real(eps))) / 2


Ranges = tuple[tuple[Any, Any, int], ...]
"""`(eps, atomic, how many)`."""


def range_sum(parts: Ranges, x: Any, variance: Any = 0) -> mpf:
    """`h(x)` of bounded ranges and a Gaussian, in closed form.

    Tilted by `e^{z/2}`, one of them has the transform `e^{sa}(α + βu) + e^{-sa}(α - βu)` with
    `u = 1/(2s)`: a product is a polynomial in `u` for every shift, and `u^l` with shift `y`
    contributes an `l`-fold integral. Terms alternate: digits are doubled until they stay.
    """
    extra, previous = 40 + sum(n for *_, n in parts), None
    while True:
        with mp.extradps(extra):
            value = _range_sum(parts, real(x), real(variance))
        if previous is not None and abs(value - previous) <= mpf("1e-42") * abs(value) + NOISE**8:
            return value
        previous, extra = value, 2 * extra


def _range_sum(parts: Ranges, x: mpf, variance: mpf) -> mpf:
    shifts: dict[mpf, list[mpf]] = {mpf(0): [mpf(1)]}
    for eps, atomic, n in parts:
        e, w = real(eps), real(atomic)
        alpha, beta = w / (2 * mp.cosh(e / 2)), (1 - w) / (2 * mp.sinh(e / 2))
        after: dict[mpf, list[mpf]] = {}
        for k in range(n + 1):
            here = [comb(n, k) * c for c in _signed_power(alpha, beta, k, n - k)]
            for shift, polynomial in shifts.items():
                key = shift + (2 * k - n) * e
                product = _times(polynomial, here)
                kept = after.get(key)
                after[key] = (
                    [a + b for a, b in itertools.zip_longest(kept, product, fillvalue=mpf(0))]
                    if kept
                    else product
                )
        shifts = after
    t, total = mp.log(x), mpf(0)
    for shift, polynomial in shifts.items():
        y = shift - t
        if variance:
            tails = _smooth_integrals(y, variance, len(polynomial))
        elif y > NOISE * (1 + abs(t)):
            tails = _integrals(y, len(polynomial))
        else:
            continue
        total += mp.fdot(zip(polynomial, tails, strict=True))
    return mp.exp(t / 2 - variance / 8) * total


def _signed_power(alpha: mpf, beta: mpf, plus: int, minus: int) -> list[mpf]:
    first = [comb(plus, i) * beta**i * alpha ** (plus - i) for i in range(plus + 1)]
    second = [comb(minus, i) * (-beta) ** i * alpha ** (minus - i) for i in range(minus + 1)]
    return _times(first, second)


def _times(a: list[mpf], b: list[mpf]) -> list[mpf]:
    result = [mpf(0)] * (len(a) + len(b) - 1)
    for i, c in enumerate(a):
        for j, d in enumerate(b):
            result[i + j] += c * d
    return result


def _integrals(y: mpf, count: int) -> list[mpf]:
    """`u^l` times the transform of `2 sinh(z/2)`, `z > 0`, at distance `y`: a Taylor tail each."""
    terms = [mpf(1)]
    while len(terms) < count + 2 or terms[-1] > mp.eps * mpf(10) ** -10 * terms[count]:
        terms.append(terms[-1] * (y / 2) / len(terms))
    tails = [mpf(0)] * (len(terms) + 1)
    for l in range(len(terms) - 2, -1, -1):
        tails[l] = (tails[l + 2] if l + 2 < len(tails) else mpf(0)) + 2 * terms[l + 1]
    return tails[:count]


def _smooth_integrals(y: mpf, variance: mpf, count: int) -> list[mpf]:
    """The same with a Gaussian of that variance composed in."""
    sd = mp.sqrt(variance)
    normals = [mp.npdf(y, 0, sd), survival(-y / sd)]
    for l in range(1, count):
        normals.append((y * normals[l] + variance * normals[l - 1]) / l)
    grow = mp.exp(y / 2 + variance / 8) * survival(-(y + variance / 2) / sd)
    shrink = mp.exp(variance / 8 - y / 2) * survival(-(y - variance / 2) / sd)
    tails = [grow - shrink, grow + shrink - 2 * normals[1]]
    for l in range(2, count):
        tails.append(tails[l - 2] - normals[l] * mpf(2) ** (2 - l))
    return tails[:count]


# -------------------------------------------------------------------------- compositions


@dataclass(frozen=True)
class Blend:
    """Mixtures (with counts), bounded ranges (with weights and counts), and a Gaussian."""

    mixtures: tuple[tuple[Mixture, int], ...] = ()
    ranges: Ranges = ()
    variance: Any = 0
    bent: float = 1.25
    """How far from the saddle a transform is summed."""
    laplaces: tuple[()] = field(default=(), init=False)

    def __add__(self, other: Any) -> Blend:
        """With another blend, or with a `Law` that has no finite part."""
        if not isinstance(other, Blend):
            assert not other.finite.kinks or other.finite.kinks == [1]
            laplaces = tuple((e, laplace_weight(e), n) for e, n in other.laplaces)
            other = Blend((), laplaces, other.variance)
        mixtures = dict(self.mixtures)
        for law, n in other.mixtures:
            mixtures[law] = mixtures.get(law, 0) + n
        ranges = {(e, w): n for e, w, n in self.ranges}
        for e, w, n in other.ranges:
            ranges[e, w] = ranges.get((e, w), 0) + n
        return Blend(
            tuple(mixtures.items()),
            tuple((e, w, n) for (e, w), n in ranges.items()),
            self.variance + other.variance,
        )

    def times(self, n: int) -> Blend:
        return Blend(
            tuple((law, n * k) for law, k in self.mixtures),
            tuple((e, w, n * k) for e, w, k in self.ranges),
            n * self.variance,
        )

    def reverse(self) -> Blend:
        mixtures = tuple((law.reverse(), n) for law, n in self.mixtures)
        return Blend(mixtures, self.ranges, self.variance)

    is_finite = False
    mass_at_infinity = Fraction(0)
    mass_at_minus_infinity = Fraction(0)

    @property
    def finite(self) -> Finite:
        """What one bit tells (is the loss of the first mixture above 0.1?): for comparisons of a
        law with its reversal."""
        if not self.mixtures:
            return Finite(((mpf(1) / 3, mpf(2) / 3), (mpf(2) / 3, mpf(1) / 3)))
        law = self.mixtures[0][0]
        at = law.threshold(min(mpf("0.1"), law.top / 2))
        p, q = (
            mp.fsum(real(w) * survival(at - real(a)) for a, w in side) for side in (law.p, law.q)
        )
        return Finite(((1 - p, 1 - q), (p, q)))

    @property
    def top(self) -> mpf:
        if self.variance:
            return mp.inf
        return mp.fsum(n * law.top for law, n in self.mixtures) + mp.fsum(
            n * real(e) for e, _, n in self.ranges
        )

    # -- curves -----------------------------------------------------------------------

    def hockey_stick(self, x: Any) -> Any:
        return self.delta(mp.log(real(x)))

    def delta(self, t: Any) -> Any:
        t = real(t)
        if t >= self.top:
            return mpf(0)
        if t < 0 and self.mixtures:
            value = self.reverse().delta(-t)
            low, high = value if isinstance(value, Bracket) else (value, value)
            return Bracket(-mp.expm1(t) + mp.exp(t) * low, -mp.expm1(t) + mp.exp(t) * high)
        simple = self._simple
        if simple is not None:
            return simple(t)
        if self.variance:
            return self.by_contour(t)
        for i, (law, n) in enumerate(self.mixtures):
            others = (*self.mixtures[:i], *self.mixtures[i + 1 :])
            rest = Blend(((law, n - 1), *others) if n > 1 else others, self.ranges, self.variance)
            if rest._simple is not None:
                return _averaged(law, rest._whole, t)
        return self.by_contour(t)

    @property
    def _simple(self) -> Callable[[mpf], mpf] | None:
        if not self.mixtures:
            return lambda t: range_sum(self.ranges, mp.exp(t), self.variance)
        alone = len(self.mixtures) == 1 and not self.ranges and not self.variance
        return self.mixtures[0][0].delta if alone and self.mixtures[0][1] == 1 else None

    def _whole(self, t: mpf) -> mpf:
        """The simple curve at any `t`."""
        if t >= self.top:
            return mpf(0)
        if t < 0:
            back = self.reverse()
            return -mp.expm1(t) + mp.exp(t) * back._whole(-t)
        assert self._simple is not None
        return self._simple(t)

    def _transform(self, s: Any) -> Any:
        """All but the mixtures."""
        result = mp.exp(real(self.variance) * s * (s + 1) / 2)
        for e, w, n in self.ranges:
            result *= range_moment(e, w, s) ** n
        return result

    def _height(self, s: float) -> float:
        """About `ln M(s)`."""
        logs = [n * law.log_moment_roughly(s) for law, n in self.mixtures]
        with mp.workdps(20):
            return float(mp.log(self._transform(mpf(s)))) + sum(logs)

    def by_contour(self, t: Any, most: int = 1 << 11) -> Bracket:
        """`h(e^t)` from the transform on a line beside the saddle; the tail by its last nodes."""
        at = float(t)

        def score(s: float) -> float:
            return self._height(s) - s * at

        tilt = _least(lambda s: score(s) - np.log(s * (s + 1))) * self.bent
        level = score(tilt)
        right = min(
            (40 + max(score(tilt * f) - level, 0.0)) / (tilt * f - tilt) for f in (1.2, 1.6, 3.0)
        )
        left = min(
            (40 + max(score(tilt * f) - level, 0.0)) / (tilt - tilt * f) for f in (0.2, 0.5, 0.8)
        )
        left = min(left, (40 + max(-level, 0.0)) / tilt)
        step = 2 * np.pi / max(left, right)
        count = 256
        while True:
            omega = EXTENDED(step) * np.arange(count)
            values, log_m = self._line(tilt, step, count)
            square = EXTENDED(tilt) * (tilt + 1) - omega**2 + 1j * omega * (2 * EXTENDED(tilt) + 1)
            phase = np.exp(-1j * (omega * EXTENDED(at)))
            terms = (values / square * phase).real
            terms[0] /= 2
            total = terms.sum() * (EXTENDED(step) / extended(mp.pi))
            last = float(np.abs(values[-count // 8 :]).max())
            rounding = 64 * count * float(np.finfo(EXTENDED).eps) * float(np.abs(terms).max())
            tail = 2 * last / (np.pi * count * step) + rounding * step
            if tail < 1e-11 * total or count >= most:
                break
            count *= 2
        c = mp.exp(_exactly(log_m) - mpf(tilt) * mpf(at))
        n = sum(n for _, n in self.mixtures)
        slack = mpf(tail) + abs(_exactly(total)) * (n + 8) * mpf("1e-15")
        return Bracket(c * (_exactly(total) - slack), c * (_exactly(total) + slack))

    def _line(self, tilt: float, step: float, count: int) -> tuple[Any, Any]:
        with mp.workdps(25):
            base = self._transform(mpf(tilt))
            some = count if self.ranges or self.variance else 0
            nodes = (mp.mpc(tilt, k * mpf(step)) for k in range(some))
            rest = [self._transform(s) / base for s in nodes]
        log_m = extended(mp.log(base))
        values = np.ones(count, dtype=np.clongdouble)
        if rest:
            values = np.array([extended(mp.re(v)) + 1j * extended(mp.im(v)) for v in rest])
        for law, n in self.mixtures:
            v, own = law.line(tilt, step, count)
            values, log_m = values * v**n, log_m + n * own
        return values, log_m

    def tradeoff(self, alpha: Any) -> mpf:
        raise NotImplementedError

    def renyi(self, alpha: Any) -> mpf:
        a = real(alpha)
        if a == mp.inf:
            return self.top
        ranges = [(real(e), real(w), n) for e, w, n in self.ranges]
        if a == 1:
            parts = [
                n * mp.diff(lambda s, e=e, w=w: mp.log(range_moment(e, w, s)), 0)
                for e, w, n in ranges
            ]
            parts += [n * law.mean() for law, n in self.mixtures]
            return mp.fsum(parts) + real(self.variance) / 2
        logs = [n * mp.log(range_moment(e, w, a - 1)) for e, w, n in ranges]
        logs += [n * law.log_moment(a - 1) for law, n in self.mixtures]
        return mp.fsum(logs) / (a - 1) + a * real(self.variance) / 2


def _averaged(law: Mixture, curve: Callable[[mpf], mpf], t: mpf) -> Bracket:
    """`E h(e^{t - Z})` over the loss of one mixture, the observation on ever finer grids.

    The curve is smooth but bends within about its least weight.
    """
    with mp.workdps(30):
        centres = [real(a) for a, _ in law.p]
        low, high = min(centres) - 11, max(centres) + 11
        step, terms = mpf(1) / 8, {}
        previous = None
        while True:
            for i in range(int((high - low) / step) + 1):
                x = low + i * step
                if x not in terms:
                    a, b = law.likelihoods(x)
                    terms[x] = a * mp.npdf(x) * curve(t - mp.log(a / b))
            total = mp.fsum(terms.values()) * step
            if previous is not None and abs(total - previous) < TOLERANCE * total:
                spread = abs(total - previous) + mpf("1e-20") * total
                return Bracket(total - spread, total + spread)
            previous, step = total, step / 2


def _exactly(x: Any) -> mpf:
    """A long double as an mpf."""
    head = float(x)
    return mpf(head) + mpf(float(x - EXTENDED(head)))


def _least(f: Callable[[float], float]) -> float:
    """Roughly where a convex function of `s > 0` is least."""
    a, b = 1e-3, 1500.0
    while b / a > 1.15:
        c, d = a * (b / a) ** 0.382, a * (b / a) ** 0.618
        if f(c) < f(d):
            b = d
        else:
            a = c
    return float(np.sqrt(a * b))
