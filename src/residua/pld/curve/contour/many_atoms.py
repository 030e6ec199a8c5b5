"""Contours of many different Laplaces and responses: little smoothing on very many nodes.

The loss of such a query is an atom at `e`, one at `-e`, and for a Laplace a little between: `|V|`
does not fall in `ω` by itself, so a smoothing Gaussian `G_τ` has to make it (`transform.py`). What
that costs of `D`, about `τ² λ (λ+1) / 2` relative on the upper side and twice as much on the lower
one, falls with the square of the number of nodes; below makes them cheaply.

Node values of different Laplaces and responses, many nodes at a time (`many_atoms.py`).

With `s = λ + iω`, `h = s/(2s+1)`, `q = 1 + 1/s`,

    M(s) / M(λ) = e^{iωe} h (q + d e^{-2iωe}) / b,       d = e^{-(2λ+1)e},  b = M(λ) e^{-λe}

for a Laplace, and the same with `h = q = 1` for a response. So the factors `e^{iωe}` are taken
together as one, of the sum of all `e`, powers of `h` a few at a time, and each query's own phase
is an outer product: node `k = aB + c` has `e^{-2iωe} = e^{-2ie aB step} e^{-2ie c step}`, a few
hundred sines for all nodes.

Errors, in units of `u`. No factor exceeds 1 in modulus, so that absolute errors add up. With
sines and cosines off by `S`, exponentials by `X` and `Y` (`exp`, `expm1`):

* the phase `e^{-2iωe}`: `e` is off by 1 and each argument by 2 more, together `6ωe`; two sines and
  cosines, `2√2 S`; their product 3;
* `d`: `X`, and its exponent by 4 relative, at most 2 in all since `x e^{-x} < 1/2`; `h` and `q`:
  16 each, relative (`2s+1` and `s` are off by 2, a complex division by 12 at most);
* so `h (q + d z)` by 34 of `|hq| <= 1`, of `|hd| <= 1/2` (1 for a response) by
  `16 + X + 2 + 3 + 2√2 S + 6ωe + 6`, and by 8 for sum and products, over `b >= 1/2` (for a response
  `b = 1 + d >= 1`), and `b` by `Y + 8` relative: altogether below
  `2 (34 + 27 + X + 3S + 6ωe + 8) + Y + 8 = 146 + 2X + 6S + Y + 12ωe`;
* one more product and the one by powers of `1/b`: 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, EXPM1_ULPS, SINCOS_ULPS, TINY, U
from residua.pld.curve.contour.moments import Line, Moments
from residua.pld.curve.contour.transform import truncation
from residua.pld.families.factors import Factor, Terms, largest_loss
from residua.pld.families.laplace import Laplace
from residua.pld.families.randomized_response import RandomizedResponse
from residua.work_limit import work

BLOCK = 128
"""Nodes of the fine phase; counts of nodes are multiples of it."""
FARTHEST = 1e7
"""Largest argument of sines and cosines (`ulp_bounds.py`)."""
STEP = (152.0 + 2.0 * EXP_ULPS + 6.0 * SINCOS_ULPS + EXPM1_ULPS) * U
TURN = 12.0 * U
"""Absolute error of one factor's value, and what `ωe` adds to it."""
_OFTEN = 16
"""Factors after which nodes are looked at."""
_SPAN = 48 * BLOCK
"""Nodes worked on at a time, which stay close to the processor."""

Nodes = NDArray[np.complex128]


def shares(line: Line) -> tuple[Nodes, Nodes]:
    """`h` and `q` at the nodes."""
    s = np.asarray(line.lam + 1j * line.omega, dtype=np.complex128)
    return s / (2.0 * s + 1.0), 1.0 + 1.0 / s


def products(
    line: Line,
    common: tuple[Nodes, Nodes],
    values: Nodes,
    terms: Terms,
    wrong: tuple[float, float],
    enough: float,
) -> tuple[Nodes, float]:
    """Values times those of more factors, each turned back by its largest loss.

    `common` are the `shares` of the line, and the result is off by at most `wrong`, of which the
    second is times `ω`. Nodes that come to matter so little that all of them are below `enough`,
    relative to `C`, are left out: the second number is what they come to at most.
    """
    work(2.0 * len(terms) * line.count + 300.0 * len(terms), 16.0 * len(terms) * BLOCK * 4)
    kinds = [(n, *_weights(f, line.lam)) for f, n in terms.items()]
    e = np.array([largest_loss(factor) for factor in terms])
    fine, coarse = turns(line, -2.0 * e)
    left = coarse.view(np.float64).reshape(e.size, -1, 2)
    left *= np.array([d for _, _, d, _ in kinds])[:, None, None]
    # A complex outer product is a real one with `(x, ix)` as two rows.
    right = np.stack([fine, 1j * fine], axis=1).view(np.float64)
    enough *= min(1.0, _SPAN / line.count)
    made, spare = np.empty_like(values), np.empty(_SPAN, dtype=np.complex128)
    lost = 0.0
    for start in range(0, line.count, _SPAN):
        here = slice(start, min(start + _SPAN, line.count))
        rows = slice(here.start // BLOCK, here.stop // BLOCK)
        h, q = (share[here] for share in common)
        old, part, value = values[here], made[here], spare[: here.stop - here.start]
        table = value.view(np.float64).reshape(-1, 2 * BLOCK)
        scale, laplaces = 1.0, 0
        for place, (n, is_laplace, _, share) in enumerate(kinds, 1):
            np.matmul(left[place - 1, rows], right[place - 1], out=table)
            value += q if is_laplace else 1.0
            if n > 1:
                value *= share
                value[:] = _power(value * h if is_laplace else value, n)
            else:
                scale, laplaces = scale * share, laplaces + is_laplace
            np.multiply(old, value, out=part)
            old = part
            if place % _OFTEN == 0 or place == len(kinds):
                if laplaces:
                    part *= _power(h, laplaces)
                part *= scale
                scale, laplaces = 1.0, 0
                if place < len(kinds) and start:
                    most = np.abs(part) + (wrong[0] + wrong[1] * line.omega[here])
                    size = float(most @ line.lower_kernel_size[here])
                    if size * (1.0 + 1e-9) < enough:
                        part[:], lost = 0.0, lost + size * (1.0 + 1e-9)
                        break
    return made, lost


def turns(line: Line, z: Floats) -> tuple[Nodes, Nodes]:
    """`e^{iωz}` at the first nodes, and at every first one of a block; a row for each `z`."""
    fine = np.arange(float(BLOCK)) * line.step
    coarse = np.arange(0.0, float(line.count), BLOCK) * line.step
    return _phases(z[:, None] * fine), _phases(z[:, None] * coarse)


def _phases(argument: Floats) -> Nodes:
    made = np.empty(argument.shape, dtype=np.complex128)
    made.real, made.imag = np.cos(argument), np.sin(argument)
    return made


def _weights(factor: Factor, lam: float) -> tuple[bool, float, float]:
    """Whether it is a Laplace, `d`, and `1/b`."""
    rate, e = 2.0 * lam + 1.0, largest_loss(factor)
    d = math.exp(-rate * e)
    if not isinstance(factor, Laplace):
        return False, d, 1.0 / (1.0 + d)
    return True, d, 1.0 / (1.0 + lam * math.expm1(-rate * e) / rate)


def _power(value: Nodes, n: int) -> Nodes:
    """`value^n`, relative error `3(n - 1)u`."""
    result = None
    while True:
        if n & 1:
            result = value if result is None else result * value
        n >>= 1
        if n == 0 and result is not None:
            return result
        value = value * value


_GRAIN = 1.0 + 1e-6
"""For products of errors."""
_NEGLIGIBLE = 3e-9
"""Nodes that matter less than this, relative to the sum, are dropped."""
_TRUNCATED = 1e-9
"""The mass that may lie beyond the last node, relative to the sum."""
_FEWEST, _SAMPLE = 8 * BLOCK, 61
_LOST = 0.01
"""Errors of the values from which on they are not to be relied on."""


@dataclass(frozen=True)
class Sizes:
    """Sums over the nodes of the kernel's modulus times a bound on `|V|`, and times `ω`.

    Then the same for the lower kernel.
    """

    plain: float
    turning: float
    bent: float
    bent_turning: float


@dataclass(frozen=True)
class ManyAtoms:
    """Node values of one composition on one line, turned back by the largest loss."""

    line: Line
    shares: tuple[Nodes, Nodes]
    """`h` and `q` at the nodes."""
    values: Nodes
    """`V e^{-iω top}`."""
    wrong: tuple[float, float]
    """Each value is off by at most the first, plus the second times `ω`."""
    top: tuple[float, float]
    """The sum of all `e`, and what its float leaves out (up to `2u` of it)."""
    log_m: float
    log_m_error: float
    beyond: tuple[Line, float]
    """The line before nodes were dropped, and a bound on `ln |V|` past its edge (unsmoothed)."""
    lost: float
    """A bound on the nodes that were dropped, relative to `C`, in either sum."""
    sizes: Sizes
    height: float
    """About `D/C` where it is read."""
    point_moments: Floats
    """Upper bounds of `K` (smoothing included) at the line's points."""

    @cached_property
    def tails(self) -> tuple[float, float]:
        """What lies beyond the last node at most, relative to `C`: upper sum, lower sum."""
        line, fall = self.beyond
        variance = self.line.tau * self.line.tau * (1.0 - 32.0 * U)
        fall -= 0.5 * variance * line.edge * line.edge
        upper, lower = truncation(replace(line, tau=self.line.tau), variance, fall)
        return upper + self.lost, lower + self.lost

    def _times(self, terms: Terms) -> ManyAtoms:
        """The values and their errors with these factors multiplied in."""
        wrong, turn = self.wrong
        top, rest = self.top
        for factor, n in terms.items():
            e = largest_loss(factor)
            wrong += n * STEP if 2.0 * e * self.line.edge <= FARTHEST else math.inf
            turn += n * e * TURN
            top, lost = _two_sum(top, n * e)
            rest += lost
        made = replace(self, wrong=(wrong * _GRAIN, turn * _GRAIN), top=(top, rest))
        enough = _NEGLIGIBLE * self.height
        values, lost = products(self.line, self.shares, self.values, terms, made.wrong, enough)
        return replace(made, values=values, lost=self.lost + lost)._trimmed()

    def _trimmed(self) -> ManyAtoms:
        """The same without its last nodes, if many have become too small to matter."""
        line = self.line
        if line.count <= _FEWEST:
            return self
        enough = _NEGLIGIBLE * self.height
        rough = np.abs(self.values[::_SAMPLE]) * line.lower_kernel_size[::_SAMPLE]
        if _SAMPLE * float(rough[rough.size // 2 :].sum()) > enough:
            return self
        sizes = self._sizes() * line.lower_kernel_size
        beyond = np.cumsum(sizes[::-1])[::-1] * (1.0 + 1e-9)
        count = max(-(-int(np.count_nonzero(beyond > enough)) // BLOCK) * BLOCK, _FEWEST)
        if count > 0.8 * line.count:
            return self
        lost = float(beyond[count])
        h, q = self.shares
        return replace(
            self,
            line=replace(line, count=count),
            shares=(h[:count], q[:count]),
            values=self.values[:count].copy(),
            lost=self.lost + lost,
        )

    def _sizes(self) -> Floats:
        """Upper bounds of `|V|`."""
        off = self.wrong[0] + self.wrong[1] * self.line.omega
        return np.asarray((np.abs(self.values) + off) * (1.0 + 8.0 * U))

    def _summed(self) -> ManyAtoms:
        """The same with its sums of `|V|` taken."""
        line = self.line
        size = self._sizes() * (1.0 + 1e-9)
        bent = size * line.lower_kernel_size
        sizes = Sizes(
            float(size @ line.kernel_size),
            float(size @ line.kernel_reach),
            float(bent.sum()),
            float(bent @ line.omega),
        )
        return replace(self, sizes=sizes)

    def at(self, t: float) -> tuple[float, float]:
        """Enclosure of `D(t)` at one exact `t >= 0`."""
        line, (wrong, turn) = self.line, self.wrong
        rows = line.count // BLOCK
        back = (t - self.top[0]) - self.top[1]
        slack = (4.0 * self.top[0] + 2.0 * t + 4.0 * abs(back)) * U
        (fine,), (coarse,) = turns(line, np.array([-back]))
        table = (self.values * line.kernel).reshape(rows, BLOCK)
        total = float((coarse @ (table @ fine)).real)
        bare = float((coarse @ (self.values.reshape(rows, BLOCK) @ fine)).real)
        bent = total - line.kappa * (line.step / math.pi) * (bare - 0.5 * self.values[0].real)
        rounding = (3.0 * (BLOCK + rows) + 4.0 * SINCOS_ULPS + 48.0) * U
        sizes, (sum_plain, sum_turning, sum_bent, sum_bent_turning) = self.sizes, line.kernel_sums
        off = (wrong * sum_plain + turn * sum_turning) * 1.01
        off += sizes.plain * rounding + sizes.turning * slack + self.tails[0]
        bent_off = (wrong * sum_bent + turn * sum_bent_turning) * 1.01
        bent_off += sizes.bent * rounding + sizes.bent_turning * slack + self.tails[1]
        log_c = self.log_m - line.lam * t
        log_c_error = self.log_m_error + (abs(self.log_m) + 3.0 * line.lam * t) * U
        if not (
            log_c <= 700.0 and log_c_error < 1.0 and wrong < _LOST and turn * line.edge < _LOST
        ):
            return 0.0, 1.0
        c, c_error = math.exp(log_c), math.expm1(log_c_error) + (EXP_ULPS + 4.0) * U
        upper = min(c * (1.0 + c_error) * max(total + off, 0.0) + TINY, 1.0)
        lower = c * max(1.0 - c_error, 0.0) * max(bent - bent_off, 0.0)
        lower -= self._aliases(t) + TINY
        if not (math.isfinite(upper) and math.isfinite(lower)):
            return 0.0, 1.0
        return min(max(lower, 0.0), upper), upper

    def _aliases(self, t: float) -> float:
        """Upper bound on `Σ_{j≠0} e^{λjT} D(t + jT)`."""
        line, moments = self.line, self.point_moments
        right, left = line.alias_sides
        logs = moments - line.points * (t * (1.0 - 4.0 * U)) + np.abs(moments) * (4.0 * U)
        above, below = (_exp(float((logs + gaps).min())) for gaps in (right, left))
        return (above + min(below, line.alias_gaps[2])) * (1.0 + 1e-12)


def are_pairs(terms: Terms) -> bool:
    """Whether all are Laplaces, or responses without mass at infinity."""
    return all(
        isinstance(f, Laplace) or (isinstance(f, RandomizedResponse) and f.delta == 0.0)
        for f in terms
    )


def phantom(fall: float, edge: float, height: float) -> float:
    """A `τ` with which little is lost beyond the edge, relative to the height `D/C`."""
    depth = fall - math.log(math.pi * edge * _TRUNCATED * height)
    return math.sqrt(2.0 * max(depth, 1.0)) / edge


def contour(
    terms: Terms, moments: Moments, line: Line, k: Floats, e: Floats, height: float
) -> ManyAtoms:
    """The contour of Laplaces and responses on a line with a smoothing Gaussian.

    `k` and `e` are log moments and their errors, without the smoothing Gaussian, at the line's
    tilts; `height` is about `D/C` where it will be read.
    """
    variance, at = line.tau * line.tau, line.tilts
    k = k + 0.5 * variance * at * (at + 1.0)
    e = e + np.abs(k) * (8.0 * U)
    values, relative = Moments({}, variance, 4.0 * U).nodes(line)
    wrong = float(np.max(np.abs(values) * np.expm1(np.minimum(relative, 100.0)))) * 1.01
    fall = float(moments.log_fall(line.lam, np.array([line.edge]))[0])
    made = ManyAtoms(
        line,
        shares(line),
        values,
        (wrong, 0.0),
        (0.0, 0.0),
        float(k[0]),
        float(e[0]),
        (line, fall),
        0.0,
        Sizes(math.inf, math.inf, math.inf, math.inf),
        height,
        k[1:] + e[1:],
    )
    return made._times(terms)._summed()


def _two_sum(a: float, b: float) -> tuple[float, float]:
    """`a + b` rounded, and exactly what that leaves out (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _exp(x: float) -> float:
    return math.exp(x) if x <= 700.0 else math.inf
