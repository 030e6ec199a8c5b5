"""Sums over many outcomes of `Φ` and its derivatives, by moments of clusters of losses.

For outcomes with losses `z_i` within `r m` of a centre `c`, and `u = u_0 + c/m`,

    Σ p_i Φ(u + (z_i-c)/m) = Σ_j F_j S_j,   F_j = Φ^(j)(u) / m^j,   S_j = Σ p_i (z_i-c)^j / j!,

and the moments `S_j` do not depend on where the sum is wanted. From `Φ'' = -u Φ'` follows
`F_{j+2} = -(u/m) F_{j+1} - (j/m²) F_j`. What is left out after `j < K`: Cauchy's bound for the
generating function of Hermite polynomials on a circle of radius `s` is
`|He_n(u)| / n! <= e^{|u|s + s²/2} s^-n`, so with `B = φ(u) e^{|u|s + s²/2}` and `q = r/s <= 1/2` it
is at most `2 B s q^K / K` of the outcomes' mass, for the first derivative `2 B q^{K-1}` and for the
second `4 B K q^{K-2} / s`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from flint import arb, arb_mat, ctx

from residua.verify.arithmetic.balls import Ball, density, near
from residua.verify.arithmetic.work_limit import work

_RADIUS = 0.25
"""The radius of a cluster, divided by `m`: larger ones are fewer, and need more moments."""
_MOST_TERMS = 128
"""The most moments of a cluster; where more are needed, its outcomes are summed one by one."""
_FEW = 6
"""The least size of a cluster: fewer outcomes are as quickly summed one by one."""


@dataclass
class Moments:
    """`S_j` of some masses, made as far as they are wanted."""

    masses: Sequence[Ball]
    offsets: Sequence[Ball]
    found: list[Ball] = field(default_factory=list)
    columns: dict[int, arb_mat] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.size: Ball = sum((abs(m) for m in self.masses), arb(0))
        self.terms = list(self.masses)

    def upto(self, count: int) -> list[Ball]:
        work(0.3 * len(self.masses) * max(0, count - len(self.found)))
        while len(self.found) < count:
            j = len(self.found)
            if j:
                self.terms = [a * b for a, b in zip(self.terms, self.offsets, strict=True)]
            total = sum(self.terms, arb(0))
            self.found.append(total / math.factorial(j))
        return self.found

    def column(self, count: int) -> arb_mat:
        """`S_j` with `S_{j-1}` and `S_{j-2}` beside it, for `1 <= j < count`."""
        if count not in self.columns:
            s = [arb(0), *self.upto(count)]
            rows = [[s[j + 1], s[j], s[j - 1]] for j in range(1, count)]
            self.columns[count] = arb_mat(rows)
        return self.columns[count]


@dataclass
class Cluster:
    """Outcomes near `centre`, and how near."""

    centre: Ball
    radius: Ball
    p: Moments
    q: Moments
    places: list[int]

    def sums(self, u: Ball, w: Ball, m: Ball) -> tuple[Ball, Ball, Ball, Ball] | None:
        """`Σ p (Φ(u_i) - Φ(u))`, `Σ q (Φ(w_i) - Φ(w))`, `Σ p φ(u_i)` and `Σ p u_i φ(u_i)`.

        `u` and `w` are those of the centre. None where too many terms would be needed.
        """
        chosen = _terms(near(self.radius / m), max(abs(near(u)), abs(near(w))))
        if chosen is None:
            return None
        count, s = chosen
        work(24 + 1.5 * count)
        ratio = self.radius / (m * s)
        if not ratio <= arb(0.5):
            return None
        at_u, at_w = density(u), density(w)
        over = arb_mat([_derivatives(at_u, u, m, count)]) * self.p.column(count)
        under = arb_mat([_derivatives(at_w, w, m, count)]) * self.q.column(count)
        power = ratio ** (count - 2)
        large = (abs(u) * s + s * s / 2).exp() * at_u * self.p.size * power
        other = (abs(w) * s + s * s / 2).exp() * at_w * self.q.size * power
        return (
            over[0, 0] + _error_ball(2 * large * s * ratio * ratio / count),
            under[0, 0] + _error_ball(2 * other * s * ratio * ratio / count),
            m * over[0, 1] + _error_ball(2 * large * ratio),
            -m * m * over[0, 2] + _error_ball(4 * large * count / s),
        )


def _error_ball(error: Ball) -> Ball:
    return arb(0, error.upper())


def _derivatives(at: Ball, u: Ball, m: Ball, count: int) -> list[Ball]:
    """`F_j` for `1 <= j < count`."""
    slope, bend = -u / m, -1 / (m * m)
    found = [at / m, slope * at / m]
    for j in range(1, count - 2):
        found.append(slope * found[j] + j * bend * found[j - 1])
    return found[: count - 1]


def _terms(r: float, u: float) -> tuple[int, Ball] | None:
    """How many terms leave less than the precision in force, and the radius that shows it."""
    wanted = -math.log(2.0) * (ctx.prec + 8)
    if not (0.0 < r < 1e6 and u < 1e6):
        return (4, arb(1)) if r == 0.0 else None
    for count in range(8, _MOST_TERMS, 4):
        s = 0.5 * (math.sqrt(u * u + 4.0 * count) - u)
        if r <= 0.5 * s and u * s + 0.5 * s * s + (count - 2) * math.log(r / s) < wanted:
            return count, arb(s)
    return None


def clusters_of(
    p: Sequence[Ball], q: Sequence[Ball], z: Sequence[Ball], m: Ball
) -> tuple[list[Cluster], list[int]]:
    """Outcomes in clusters around 0, ±2r, …, and the places of the isolated ones."""
    width = 2.0 * _RADIUS * near(m)
    cells: dict[int, list[int]] = {}
    alone: list[int] = []
    for i, loss in enumerate(z):
        at = near(loss) / width
        if abs(at) < 1e6:
            cells.setdefault(round(at), []).append(i)
        else:
            alone.append(i)
    found = []
    for cell, places in cells.items():
        if len(places) < _FEW:
            alone += places
            continue
        centre = arb(cell * width)
        offsets = [z[i] - centre for i in places]
        radius = arb(0)
        for each in offsets:
            radius = radius.max(abs(each))
        over, under = (Moments([side[i] for i in places], offsets) for side in (p, q))
        found.append(Cluster(centre, arb(radius.upper()), over, under, places))
    return found, alone
