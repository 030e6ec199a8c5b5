"""Slow and obviously correct versions of what `residua` computes.

Nothing here imports the library. A `Law` is the sum of a finite law (pairs of
masses, see `finite_oracles`), Laplace laws and a Gaussian one, evaluated in
mpmath with about 60 digits. `agrees(interval, truth)` says whether an interval
can hold the truth; a truth is a number, or a `Bracket` where floats denote an
object only up to their own rounding.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import comb
from typing import Any

from mpmath import mp, mpf

from finite_oracles import (
    IDENTITY,
    INFINITE,
    NOISE,
    Bracket,
    Finite,
    Number,
    agrees,
    approximate_dp,
    exact,
    from_atoms,
    interpolate,
    near,
    real,
    response_power,
    ulps,
)

__all__ = [
    "IDENTITY",
    "INFINITE",
    "Bracket",
    "Finite",
    "Law",
    "agrees",
    "approximate_dp",
    "contour",
    "exact",
    "from_atoms",
    "gaussian",
    "gaussian_tradeoff",
    "interpolate",
    "laplace",
    "laplace_moment",
    "laplace_power",
    "laplace_sum",
    "lattice_power",
    "maximum",
    "near",
    "normal_cdf",
    "real",
    "response_power",
    "subsampled_lattice",
    "ulps",
]


def normal_cdf(a: object) -> mpf:
    return mp.erfc(-real(a) / mp.sqrt(2)) / 2


def gaussian(mu: object, x: object) -> mpf:
    """`h` of `G_mu`: `Phi(a) - x Phi(a - mu)`, `a = mu/2 - ln(x)/mu`, with digits to spare."""
    m, x = real(mu), real(x)
    if m == 0:
        return max(1 - x, mpf(0))
    with mp.extradps(60):
        a = m / 2 - mp.log(x) / m
        return mp.erfc(-a / mp.sqrt(2)) / 2 - x * mp.erfc((m - a) / mp.sqrt(2)) / 2


def gaussian_tradeoff(mu: object, alpha: object) -> mpf:
    """`Phi(Phi^-1(1 - alpha) - mu)`."""
    alpha = real(alpha)
    if alpha in (0, 1):
        return 1 - alpha
    with mp.extradps(20):
        low, high = mpf(-60), mpf(60)  # of the y with Phi(-y) = alpha, by bisection
        for _ in range(250):
            y = (low + high) / 2
            low, high = (y, high) if normal_cdf(-y) > alpha else (low, y)
        return normal_cdf(low - real(mu))


def laplace(eps: object, x: object) -> mpf:
    """`h` of the Laplace law with largest loss `eps = sensitivity / scale`."""
    t, e = mp.log(real(x)), real(eps)
    if t >= e - NOISE:
        return mpf(0)
    return 1 - mp.exp((t - e) / 2) if t >= -e else 1 - real(x)


def laplace_sum(parts: Sequence[tuple[object, int]], x: object, variance: object = 0) -> mpf:
    """`h` of a sum of Laplace laws (largest loss, how many) and a Gaussian, in closed form.

    Tilted by `e^{z/2}`, one Laplace law is `e^{-eps/2}/2` times two unit atoms at
    `±eps` and the density 1/2 between them: transform `e^{sa}(1+u) + e^{-sa}(1-u)`
    with `u = 1/(2s)`. A product of those is a polynomial in `u` for every shift, and
    `u^l` with shift `y` contributes `K_l(y)`: `_taylor_tails`, or `_smooth_tails` where
    there is a Gaussian. The terms alternate; digits are doubled until 45 of them stay.
    """
    key = tuple((real(eps), n) for eps, n in parts)
    extra, previous = 40 + sum(n for _, n in parts), None
    while True:
        with mp.extradps(extra):
            value = _laplace_sum(key, real(x), real(variance), mp.prec)
        if previous is not None and abs(value - previous) <= mpf("1e-45") * abs(value):
            return value
        previous, extra = value, 2 * extra


def _laplace_sum(parts: tuple[tuple[mpf, int], ...], x: mpf, variance: mpf, prec: int) -> mpf:
    factor, shifts = _expansion(parts, prec)
    t = mp.log(x)
    total = mpf(0)
    for shift, polynomial in shifts:
        y = shift - t
        if variance:
            tails = _smooth_tails(y, variance, len(polynomial))
        elif y > NOISE * (1 + abs(t)):
            tails = _taylor_tails(y, len(polynomial))
        else:
            continue
        total += mp.fdot(zip(polynomial, tails, strict=True))
    return mp.exp(t / 2 - variance / 8) * factor * total


@lru_cache(maxsize=64)
def _expansion(parts: tuple[tuple[mpf, int], ...], prec: int) -> tuple[mpf, list[Any]]:
    """The common factor, and for every shift its polynomial in `u`."""
    shifts: dict[mpf, list[int]] = {mpf(0): [1]}
    factor = mpf(1)
    for e, n in parts:
        factor *= mp.exp(-e * n / 2) / mpf(2) ** n
        after: dict[mpf, list[int]] = {}
        for k in range(n + 1):
            here = [comb(n, k) * c for c in _signed_binomial(k, n - k)]
            for shift, polynomial in shifts.items():
                key = shift + (2 * k - n) * e
                product = _multiply(polynomial, here)
                after[key] = _plus(after[key], product) if key in after else product
        shifts = after
    return factor, list(shifts.items())


def _signed_binomial(plus: int, minus: int) -> list[int]:
    """Coefficients of `(1+u)^plus (1-u)^minus`."""
    first = [comb(plus, i) for i in range(plus + 1)]
    second = [(-1) ** i * comb(minus, i) for i in range(minus + 1)]
    return _multiply(first, second)


def _multiply(a: list[int], b: list[int]) -> list[int]:
    if len(a) == 1:
        return [a[0] * c for c in b]
    result = [0] * (len(a) + len(b) - 1)
    for i, c in enumerate(a):
        for j, d in enumerate(b):
            result[i + j] += c * d
    return result


def _plus(a: list[int], b: list[int]) -> list[int]:
    return [c + d for c, d in itertools.zip_longest(a, b, fillvalue=0)]


def _taylor_tails(y: mpf, count: int) -> list[mpf]:
    """`2 * sum of (y/2)^j / j!` over `j >= l + 1`, `j - l` odd, for `l = 0 .. count - 1`."""
    half, terms = y / 2, [mpf(1)]
    while len(terms) < count + 2 or terms[-1] > mp.eps * mpf(10) ** -10 * terms[count]:
        terms.append(terms[-1] * half / len(terms))
    tails = [mpf(0)] * (len(terms) + 1)
    for l in range(len(terms) - 2, -1, -1):
        tails[l] = (tails[l + 2] if l + 2 < len(tails) else 0) + 2 * terms[l + 1]
    return tails[:count]


def _smooth_tails(y: mpf, variance: mpf, count: int) -> list[mpf]:
    """`K_l` convolved with `N(0, variance)`: `K_l = K_(l-2) - 2^(2-l) I_l`.

    `I_l` is the l-fold integral of the normal density, `l I_(l+1) = y I_l + variance I_(l-1)`.
    """
    sd = mp.sqrt(variance)
    integrals = [mp.npdf(y, 0, sd), normal_cdf(y / sd)]
    for l in range(1, count):
        integrals.append((y * integrals[l] + variance * integrals[l - 1]) / l)
    grow = mp.exp(y / 2 + variance / 8) * normal_cdf((y + variance / 2) / sd)
    shrink = mp.exp(variance / 8 - y / 2) * normal_cdf((y - variance / 2) / sd)
    tails = [grow - shrink, grow + shrink - 2 * integrals[1]]
    for l in range(2, count):
        tails.append(tails[l - 2] - integrals[l] * mpf(2) ** (2 - l))
    return tails[:count]


def laplace_moment(eps: object, alpha: object) -> mpf:
    """`E e^{(alpha-1)Z}` of a Laplace law."""
    e, s = real(eps), alpha - mpf(1) / 2
    ends = (mp.exp(s * e) + mp.exp(-s * e)) / 2
    between = mp.sinh(s * e) / (2 * s) if s else e / 2
    return mp.exp(-e / 2) * (ends + between)


# ---------------------------------------------------------------------------- sums


@dataclass(frozen=True)
class Law:
    """`finite ⊕ Laplaces ⊕ G_sqrt(variance)`; Laplaces as (largest loss, how many)."""

    finite: Finite = IDENTITY
    laplaces: tuple[tuple[Number, int], ...] = ()
    variance: Number = 0

    def __add__(self, other: Law) -> Law:
        if self.finite.is_exact != other.finite.is_exact:
            finite = self.finite.real() + other.finite.real()
        else:
            finite = self.finite + other.finite
        counts: dict[Number, int] = defaultdict(int)
        for eps, n in (*self.laplaces, *other.laplaces):
            counts[eps] += n
        return Law(finite, tuple(sorted(counts.items())), self.variance + other.variance)

    def times(self, n: int) -> Law:
        laplaces = tuple((eps, n * k) for eps, k in self.laplaces if n)
        return Law(self.finite.power(n), laplaces, n * self.variance)

    def reverse(self) -> Law:
        return replace(self, finite=self.finite.reverse())

    @property
    def is_finite(self) -> bool:
        return not self.laplaces and not self.variance

    @property
    def mass_at_infinity(self) -> Number:
        return self.finite.mass_at_infinity

    @property
    def mass_at_minus_infinity(self) -> Number:
        return self.finite.mass_at_minus_infinity

    def hockey_stick(self, x: object) -> Number:
        if self.is_finite:
            return self.finite.hockey_stick(x)
        atoms = [(p, q) for p, q in self.finite.real().pairs if p]
        return mp.fsum(p * self._smooth(real(x) * q / p) if q else p for p, q in atoms)

    def _smooth(self, x: mpf) -> mpf:
        if self.laplaces:
            return laplace_sum(self.laplaces, x, self.variance)
        return gaussian(mp.sqrt(real(self.variance)), x)

    def delta(self, eps: object) -> Number:
        return self.hockey_stick(mp.exp(real(eps)))

    def tradeoff(self, alpha: object) -> Number:
        """Exact for finite laws and Gaussians; else the largest `(1 - alpha - h(x)) / x` found."""
        if self.is_finite:
            return self.finite.tradeoff(alpha)
        if not self.laplaces and self.finite == IDENTITY:
            return gaussian_tradeoff(mp.sqrt(self.variance), alpha)
        return max(mpf(0), maximum(lambda t: self._tangent(real(alpha), t)))

    def _tangent(self, alpha: mpf, t: mpf) -> mpf:
        return (1 - alpha - self.hockey_stick(mp.exp(t))) * mp.exp(-t)

    def renyi(self, alpha: object) -> mpf:
        """`ln E e^{(alpha-1)Z} / (alpha-1)`, summed over the parts."""
        a = real(alpha)
        if a == mp.inf:
            smooth = mp.inf if self.variance else mp.fsum(n * real(e) for e, n in self.laplaces)
            return self.finite.largest_loss() + smooth
        if a == 1:
            parts = [
                n * mp.diff(lambda b, e=e: mp.log(laplace_moment(e, b)), 1)
                for e, n in self.laplaces
            ]
            return self.finite.kullback_leibler() + mp.fsum(parts) + real(self.variance) / 2
        logs = [n * mp.log(laplace_moment(e, a)) for e, n in self.laplaces]
        moment = self.finite.moment(a)
        finite = mp.log(moment) if moment else -mp.inf
        return (finite + mp.fsum(logs)) / (a - 1) + a * real(self.variance) / 2


def maximum(f: Callable[[mpf], mpf], low: float = -200.0, high: float = 200.0) -> mpf:
    """The greatest value of a unimodal function, by a coarse scan and golden section."""
    step = 1.0
    best = max(
        (low + step * i for i in range(int((high - low) / step) + 1)), key=lambda t: f(mpf(t))
    )
    a, b = mpf(best - step), mpf(best + step)
    ratio = (mp.sqrt(5) - 1) / 2
    for _ in range(90):
        c, d = b - ratio * (b - a), a + ratio * (b - a)
        if f(c) > f(d):
            b = d
        else:
            a = c
    return f((a + b) / 2)


def _log_moment(law: Law, s: mpf) -> mpf:
    """`ln E[e^{sZ}; Z finite]` at real or complex s."""
    parts = [n * mp.log(_laplace_transform(real(e), s)) for e, n in law.laplaces]
    finite = mp.fsum(p * mp.exp(s * mp.log(p / q)) for p, q in law.finite.real().pairs if p and q)
    return mp.log(finite) + mp.fsum(parts) + real(law.variance) * s * (s + 1) / 2


def _laplace_transform(e: mpf, s: mpf) -> mpf:
    w = s + mpf(1) / 2
    return mp.exp(-e / 2) * (mp.cosh(w * e) + mp.sinh(w * e) / (2 * w))


def contour(law: Law, t: mpf, digits: int = 36) -> mpf:
    """`h(e^t)` of a law with a Gaussian part, from its transform `M(s) / (s(s+1))`.

    The trapezoid sum on `Re s = tilt` with spacing `2 pi / T` exceeds the truth by
    the aliases `e^{j tilt T} h(e^{t+jT})`, `j` not 0; `T` is chosen so that their
    bounds are below `10^-digits` of the value, and the tail of the sum likewise.
    """
    with mp.workdps(digits + 15):

        def height(s: mpf) -> mpf:
            return _log_moment(law, s) - s * t - mp.log(s * (s + 1))

        tilt = _lowest(height)
        level = height(tilt)
        sd = mp.sqrt(real(law.variance))
        # The value is no less than this: the saddle point costs at most a width and a slope.
        need = digits * mp.log(10) + 20 + abs(level) / 4
        right = [2 * tilt, tilt + 1 / sd, tilt + 4 / sd, tilt + 12 / sd, tilt + 30 / sd]
        period = max(
            (need - min(level, mpf(0))) / tilt,
            min((need + max(height(s) - level, 0)) / (s - tilt) for s in right),
        )
        cut = mp.sqrt(2 * (need + 30)) / sd
        step = 2 * mp.pi / period
        terms = [mp.exp(level).real / 2]
        for k in range(1, int(cut / step) + 2):
            s = mp.mpc(tilt, k * step)
            terms.append(mp.re(_transform(law, s) * mp.exp(-s * t) / (s * (s + 1))))
        return real(law.finite.mass_at_infinity) + 2 * mp.fsum(terms) / period


def _transform(law: Law, s: mpf) -> mpf:
    result = mp.exp(real(law.variance) * s * (s + 1) / 2)
    for e, n in law.laplaces:
        result *= _laplace_transform(real(e), s) ** n
    pairs = law.finite.real().pairs
    return result * mp.fsum(p * mp.exp(s * mp.log(p / q)) for p, q in pairs if p and q)


def _lowest(f: Callable[[mpf], mpf]) -> mpf:
    """Roughly where a convex function of `s > 0` is least."""
    a, b = mpf("1e-4"), mpf(2000)
    for _ in range(60):
        c, d = a * (b / a) ** mpf("0.382"), a * (b / a) ** mpf("0.618")
        if f(c) < f(d):
            b = d
        else:
            a = c
        if b / a < mpf("1.01"):
            break
    return mp.sqrt(a * b)


def laplace_power(eps: object, n: int, x: object) -> Bracket:
    """`h(x)` of n equal Laplace laws for large n, where `laplace_sum` is slow.

    The trapezoid sum of `contour`, with what it leaves out as the bracket: aliases by
    Chernoff's inequality on the right and `h <= 1` on the left; beyond the last node the
    transform is at most that of its atoms plus what the density still gives there.
    """
    with mp.workdps(40):
        e, t = real(eps), mp.log(real(x))
        if t >= n * e:
            return Bracket(mpf(0), mpf(0))

        def chernoff(s: mpf) -> mpf:
            return n * mp.log(_laplace_transform(e, s)) - s * t

        tilt = _lowest(lambda s: chernoff(s) - mp.log(s * (s + 1)))
        level = chernoff(tilt)
        right = min(
            (tilt * f for f in (mpf("1.1"), mpf("1.5"), 2, 3, 5, 10)),
            key=lambda s: (chernoff(s) - level + 60) / (s - tilt),
        )
        period = max(
            (60 - min(level, mpf(0))) / tilt,
            (max(chernoff(right) - level, mpf(0)) + 60) / (right - tilt),
        )
        step = 2 * mp.pi / period
        ends = (mp.exp(tilt * e) + mp.exp(-(tilt + 1) * e)) / 2
        total, k = mp.exp(level) / (2 * tilt * (tilt + 1)), 0
        while True:
            k += 1
            s = mp.mpc(tilt, k * step)
            value = _laplace_transform(e, s) ** n * mp.exp(-s * t) / (s * (s + 1))
            total += mp.re(value)
            if k % 32 == 0:
                between = mp.exp(-e / 2) * mp.cosh((tilt + mpf(1) / 2) * e) / (2 * k * step)
                tail = (ends + between) ** n * mp.exp(-tilt * t) / (mp.pi * k * step)
                estimate = 2 * total / period
                if tail < mpf("1e-9") * estimate or k > 4000:
                    break
        left_aliases = 1 / mp.expm1(tilt * period)
        right_aliases = mp.exp(chernoff(right)) / mp.expm1((right - tilt) * period)
        return Bracket(estimate - tail - left_aliases - right_aliases, estimate + tail)


# ---------------------------------------------------------------------------- lattices


def lattice_power(masses: dict[int, Number], step: Number, n: int, x: object) -> mpf:
    """`h(x)` of the n-fold law with `P`-mass `masses[j]` at loss `j * step`.

    A finite trapezoid sum over the tilted transform: exact but for aliases, which
    are bounded by Chernoff's inequality and kept below 1e-18 of the value.
    """
    with mp.workdps(32):
        h, t = real(step), mp.log(real(x))
        first = int(mp.floor(t / h)) + 1
        pairs = [(j, real(m)) for j, m in masses.items() if m]

        def log_moment(s: mpf) -> mpf:
            return n * mp.log(mp.fsum(m * mp.exp(s * j * h) for j, m in pairs))

        def height(s: mpf) -> mpf:
            return log_moment(s) - s * t - mp.log(s * (s + 1))

        if first > n * max(j for j, _ in pairs):
            return mpf(0)
        tilt = _lowest(height)
        level = height(tilt)
        need = 50 + abs(level) / 8
        grow = min(
            (need + max(height(s) - level, 0)) / (s - tilt)
            for s in (tilt * f for f in (1.01, 1.1, 1.3, 2, 3, 5, 10))
        )
        period = max((need - min(level, mpf(0))) / tilt, grow)
        nodes = int(period / h) + 1
        total = mpf(0)
        lowest = min(j for j, _ in pairs)
        dense = [mpf(0)] * (max(j for j, _ in pairs) - lowest + 1)
        for j, m in pairs:
            dense[j - lowest] = m
        for k in range(nodes // 2 + 1):
            s = mp.mpc(tilt, 2 * mp.pi * k / (nodes * h))
            z = mp.exp(s * h)
            value = mp.mpc(0)
            for m in reversed(dense):
                value = value * z + m
            value = (value * z**lowest) ** n
            kernel = z**-first / (1 - 1 / z) - real(x) * mp.exp(-(s + 1) * first * h) / (
                1 - mp.exp(-(s + 1) * h)
            )
            weight = 1 if k == 0 or 2 * k == nodes else 2
            total += weight * mp.re(value * kernel)
        return total / nodes


def subsampled_lattice(
    sigma: float, rate: float, step: float, top: int
) -> tuple[list[float], list[float]]:
    """Losses `j * step` and masses of a finite law near a subsampled Gaussian's.

    Its curve joins the points of the subsampled Gaussian's at `e^{j step}`; what that
    leaves at +inf beyond `top` is given to loss `step` instead of 0.
    """
    s, r, h = real(sigma), real(rate), real(step)

    def curve(x: mpf) -> mpf:
        if x <= 1 - r:
            return 1 - x
        shifted = (x - (1 - r)) / r
        return r * gaussian(1 / s, shifted)

    bottom = int(mp.floor(mp.log(1 - r) / h))
    xs = [mp.exp(j * h) for j in range(bottom, top + 1)]
    points = [(mpf(0), mpf(1)), *((x, curve(x)) for x in xs)]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(points)] + [mpf(0)]
    qs = [after - before for before, after in itertools.pairwise(slopes)]
    moved = curve(xs[-1]) / mp.expm1(h)
    qs[-bottom] -= moved
    qs[1 - bottom] += moved
    losses = [float(j * h) for j in range(bottom, top + 1)]
    return losses, [float(x * q) for x, q in zip(xs, qs, strict=True)]
