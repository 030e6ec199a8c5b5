"""Contours of many different Laplaces and responses: little smoothing on very many nodes.

The loss of such a query is an atom at `e`, one at `-e`, and for a Laplace a little between: `|V|`
does not fall in `ω` by itself, so a smoothing Gaussian `G_τ` has to make it (`transform.py`). What
that costs of `D`, about `τ² λ (λ+1) / 2` relative on the upper side and twice as much on the lower
one, falls with the square of the number of nodes; `many_nodes.py` makes them cheaply.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, SINCOS_ULPS, TINY, U
from residua.pld.curve.contour.many_nodes import (
    BLOCK,
    FARTHEST,
    STEP,
    TURN,
    Nodes,
    products,
    shares,
    turns,
)
from residua.pld.curve.contour.moments import Moments
from residua.pld.curve.contour.nodes import Line
from residua.pld.curve.contour.transform import truncation
from residua.pld.families.factors import Terms, largest_loss
from residua.pld.families.laplace import Laplace
from residua.pld.families.randomized_response import RandomizedResponse

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
