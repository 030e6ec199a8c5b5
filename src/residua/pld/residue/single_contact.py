"""The cost of one randomized response, Laplace or bounded range under `G_mu`: one scalar equation.

Their laws are `w R_e + (1-w) B_e` (`families/symmetric.py`), symmetric, with a tilted law
`e^{-z/2} L(dz)` that is constant between atoms at `±e`. Then `g = e_L - e_{G_√c}` changes sign once
at most on `y > 0`, from plus to minus, and not at all if `g(0) <= 0`:

`g'' - g/4` is the difference of the tilted laws, on `(0, e)` a constant minus a normal density,
so it increases; beyond `e`, `g < 0`. At a positive maximum of `g` it is negative, at a negative
minimum positive. And `g'(0) = 0`. If `g` had a positive maximum at `b > 0` after being
negative at some point before, there would be a negative minimum before `b` (at 0 itself it cannot
be, or the difference would be positive from 0 on, and no positive maximum would follow): first
positive, then negative, which an increasing function is not.

With `[-y, y]` where `g >= 0`, `cosh(lx) <= cosh(ly)` inside and `>=` outside, so `A - B` at any `l`
is at most `cosh(ly)` times `A - B` at 0: **the only contact is at `x = 1`**, and

    2 ∫ e_L(t) e^{-t²/2m²} dt over (0, e)  <=  ½ ∫ e^{-s/8} (1 + s/m²)^{-1/2} ds over (0, c)

is necessary and sufficient. Both sides are sums of positive terms, so `c` has full relative
accuracy however small. Where `e_L(0)` is close to 1 they hardly change any more; then what they
lack of their limits is compared instead, `e^{-|t|/2} - e_L(t)` and the integral over `s > c`.

**Errors**, relative, in units of `u`, with the charges of `ulp_bounds.py`. Basic operations, which
are not listed, have one each; `m² = v - c` has one as well, and moves no side by more than half of
it unless that is listed. A Laplace `e` is rounded up, by at most 2 (`CentralLaw`).

*Quadrature.* Gauss–Legendre with 12 nodes on a panel of length `h` is wrong by at most `(64/15)
M ρ^-24 / (1 - ρ^-2) h/2`, `M` the largest modulus on the Bernstein ellipse (`excess_nodes.py`).
Take `ρ = 7`: the ellipse exceeds the panel by `1.29 h` and is `1.72 h` high, and `h <= m`, so a
Gaussian grows by at most `e^1.48`. With `h <= 4` and `h <= e` an excess grows by at most 28 times
its largest value and a lack by at most 14 times. Either integral is at least `h/14` of the largest
value of its integrand, so a panel of `A` adds less than 1/3 (there are at most 10: `e < 6` where
`e_L(0) <= 0.9`), and all panels of a lack less than 3, as its window is at most 400 times
the integral over the largest value. In `B` the exponent `m² (e^w - 1) / 8` is below 1.3 on every
ellipse, and the same holds. Beyond the windows (`9m`, and `10m` about the crest) lies less than
`e^-40`.

*`A`* (`_query_side`): 130, and 12 a panel for the sum. The exponent `X = t/2 + t²/2m²` carries 4
of itself, and its mean is at most 3/2, as the integrand falls faster than either factor; `t` is
off by 5 of the window, which moves `X` by at most `5 W (1/2 + 0.8/m) <= 51`; `d` is a sum of
positive terms with 5, and `a g (2-g) + b g²`, `g = 1 - e^{-d/2}`, has 31 beside those of its
weights, which have 16; `exp` 10, `e` 4.

*`B`*: where `c <= 2^-56 m²`, `4 (1 - e^{-c/8})` is wrong by less than 12. For `c > 1.6`, error
functions with 23 and 35 and weights 1 and at most 0.82 leave at least 0.18: 290. Otherwise 12 a
panel, and 33 + 7 W over `(0, W)`, `W = ln(v/m²)`: `log1p` has 10 and the integral changes by `1 +
W/2` times as much; exponents are below `W/2 + 1/2`, and panels at least `W`.

*The lack of `B`* has 45: the argument of its exponential is exact, and `x erfcx' / erfcx` lies
between -1 and 0.

*The lack of `A`* grows with `e`. Its integrand is largest at `0` (Laplace, `B_e`) or at `min(m²/2,
e)` (`R_e`); either way the mean of `t²/2m²` is at most `e/2 + 1`, and `t` carries 5. So
`e^{-t²/2m²}` has `14 (e/2 + 1)`, with the rounding of `m²`; `e^{t/2-e}` has `2.5 e` from `t` and
`e` from its argument, or 1.1 times that in `B_e`, which subtracts it from about twice as much or
more; the end of the window, where the closed form takes over, is off by `u e` at most, which adds
`0.7 e`; the largest loss of Laplace noise adds `e`. Together `13.7 e + 110`, and 12 a panel. The
closed form has `3.5 e + 40`.

*Whether `L` fits*: the root carries 1, and `erfc` falls by `x² + x √(x² + 2) <= v/4 + 1` times as
much; `erf` by at most 1.

*Underflow*: for `2^-460 <= e <= 600` and `L ⪯ G_√v` neither the sides next to the root nor their
errors leave the normal range. A smaller loss is charged as `R_e` with `e = 2^-460`, which is above.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from residua.bounds import LEAST_EPS
from residua.pld.arithmetic import MOST_STEPS
from residua.pld.arithmetic.ulp_bounds import SQRT_TWO_PI, U
from residua.pld.residue.symmetric_family import CentralLaw, complement, density, height, renyi_cost
from residua.work_limit import work

_SIDE_ULPS = 192.0
"""Of either side where it is a quadrature, and of a lack, beside those of panels."""
_PANEL_ULPS = 24.0
"""Of each panel."""
_CLOSED_ULPS = 320.0
"""Of `B` in closed form."""
_LOSS_ULPS = 16.0
"""Of a lack, for each unit of the largest loss."""
_HEIGHT_ULPS = 128.0
"""Of `h(1)` and error functions; those of `1 - h(1)` have `v` more."""
_LEAST_EPS = 2.0**-460
"""Smaller losses are charged as this one; a `v` below `LEAST_EPS` fits nothing: `v/8` may not be
exact."""
_LITTLE = 2.0**-56
"""Of `c/m²`: below, `1 + s/m²` is 1."""
_SAFE = [4.0 * 8.0**k for k in range(14)]
"""By how many errors the cost is raised (and lowered), in turn, until that is proven."""
_CLOSED = 0.2
"""Of `c/8`: above, `B` has a closed form without cancellation."""
_HIGH = 0.9
"""Of `h_L(1)`: above, what the sides lack is compared."""
_SETTLED = 1e-8
"""A relative step of Newton's method whose square is below the errors of the sides."""
_GAUSS = (
    (0.009219682876640375, 0.9907803171233597, 0.023587668193255914),
    (0.04794137181476257, 0.9520586281852375, 0.05346966299765921),
    (0.11504866290284765, 0.8849513370971523, 0.08003916427167311),
    (0.2063410228566913, 0.7936589771433087, 0.10158371336153296),
    (0.3160842505009099, 0.6839157494990901, 0.1167462682691774),
    (0.43738329574426554, 0.5626167042557345, 0.12457352290670139),
)
"""Nodes on (0, ½), their mirror images and weights of the rule with 12 nodes, correctly rounded.
(Weights from `numpy.polynomial.legendre.leggauss` are off by up to 80 u.)"""


def fits(law: CentralLaw, v: float) -> bool:
    """Whether `L ⪯ G_√v`, proven: `h_L(1) <= erf(√(v/8))`, see above."""
    return v >= LEAST_EPS and _compared(*height(law), v) < 0


def refuses(law: CentralLaw, v: float) -> bool:
    """Whether `L ⪯ G_√v` is refuted."""
    return v >= LEAST_EPS and _compared(*height(law), v) > 0


def _compared(at_one: float, lacking: float, v: float) -> int:
    """-1 if the height at 1 is proven at most that of `G_√v`, 1 if larger, 0 if neither is."""
    root = math.sqrt(0.125 * v)
    wrong, more_wrong = _HEIGHT_ULPS * U, (_HEIGHT_ULPS + v) * U
    high, low = math.erf(root), math.erfc(root)
    if at_one * (1.0 + wrong) <= high or lacking >= low * (1.0 + more_wrong):
        return -1
    return int(at_one * (1.0 - wrong) > high or lacking < low * (1.0 - more_wrong))


def cost_at_zero(law: CentralLaw, v: float, v_up: float) -> tuple[float, float] | None:
    """Proven bounds of the cost under `G_√v`, `v` to `v_up`; None if it is not proven to fit."""
    if not fits(law, v):
        return None
    if law.eps < _LEAST_EPS:
        # Whatever fits costs at most `v`.
        above = cost_at_zero(CentralLaw(_LEAST_EPS, 0.5, 0.0), v, v)
        return 0.0, v if above is None else above[1]
    both = _lacking if height(law)[0] > _HIGH else _themselves
    near = _root(law, v, both)
    return _moved(law, v_up, near, both, -1.0), _moved(law, v, near, both, 1.0)


class _Reading(NamedTuple):
    """Both sides at a cost: `A` and `B`, or what `B` and what `A` lack.

    The first falls short of the second where the cost will do. The error is a bound for either,
    relative.
    """

    c: float
    more: float
    less: float
    error: float


Sides = Callable[[CentralLaw, float, float], _Reading]


def _themselves(law: CentralLaw, m2: float, c: float) -> _Reading:
    count = _panels(law, m2)
    less, ulps = _gaussian_side(m2, c)
    ulps = max(ulps, _SIDE_ULPS + _PANEL_ULPS * count)
    return _Reading(c, _query_side(law, m2, count), less, ulps * U)


def _lacking(law: CentralLaw, m2: float, c: float) -> _Reading:
    less, ulps = _query_complement(law, m2)
    return _Reading(c, _gaussian_complement(m2, c), less, ulps * U)


def _move(at: _Reading, weight: float, both: Sides) -> float:
    """Newton's step in `c`: `A - B` falls by half the density a unit; of logarithms if lacking."""
    gap = at.more - at.less
    if both is _lacking:
        gap = at.less * math.log(at.more / at.less) if at.more > 0.0 else -math.inf
    return 2.0 * gap / weight if weight > 0.0 else math.copysign(math.inf, gap)


def _root(law: CentralLaw, v: float, both: Sides) -> float:
    """About where both sides are equal."""
    low, high = 0.0, v
    c = min(renyi_cost(law), 0.9 * v)
    for _ in range(MOST_STEPS):
        move = _move(both(law, v - c, c), density(law, v - c), both)
        low, high = (c, high) if move > 0.0 else (low, c)
        new = c + move
        if abs(move) <= _SETTLED * c:
            return new if low < new < high else c
        if not low < new < high:
            new = 0.5 * (low + high)
        if high - low <= 1e-15 * high:
            break
        c = new
    return new


def _moved(law: CentralLaw, v: float, c: float, both: Sides, sign: float) -> float:
    """The cost raised (or lowered) until it is proven that it will do (or not); `v` or 0 if not."""
    error = both(law, v - c, c).error
    for share in _SAFE:
        moved = c * (1.0 + sign * share * error)
        if 0.0 < moved < v:
            at = both(law, v - moved, moved)
            least, most = (at.more, at.less) if sign > 0.0 else (at.less, at.more)
            if 0.0 < least <= most * (1.0 - 2.5 * at.error):
                return moved
    return v if sign > 0.0 else 0.0


def _query_side(law: CentralLaw, m2: float, count: int) -> float:
    m, e = math.sqrt(m2), law.eps
    width = min(e, 9.0 * m, 96.0)
    rest, bend = e - width, -0.5 / m2
    exp, expm1 = math.exp, math.expm1
    total = 0.0
    work(100.0 * 12 * count)
    for x, weight in _rule(count):
        # Both from the node: `e - d` would lose the digits of a small `t`.
        d, t = rest + width * x, width * (1.0 - x)
        g = -expm1(-0.5 * d)
        total += weight * exp((bend * t - 0.5) * t) * g * (2.0 * law.a + (law.b - law.a) * g)
    return 2.0 * width * total


def _panels(law: CentralLaw, m2: float) -> int:
    m = math.sqrt(m2)
    return math.ceil(min(law.eps, 9.0 * m, 96.0) / min(m, 4.0))


def _gaussian_side(m2: float, c: float) -> tuple[float, float]:
    """`B` and its error in units of `u`."""
    if c <= _LITTLE * m2:
        return -4.0 * math.expm1(-0.125 * c), _SIDE_ULPS
    if 0.125 * c > _CLOSED:
        from scipy.special import erfcx

        # ½ √(8π m²) (erfcx √(m²/8) - e^{-c/8} erfcx √(v/8)), a difference of at least 0.18.
        near, far = erfcx(math.sqrt(0.125 * m2)), erfcx(math.sqrt(0.125 * (m2 + c)))
        value = SQRT_TWO_PI * math.sqrt(m2) * float(near - math.exp(-0.125 * c) * far)
        return value, _CLOSED_ULPS
    total = 0.0
    end = math.log1p(c / m2)
    count = math.ceil(end)
    work(100.0 * 12 * count)
    for x, weight in _rule(count):
        w = end * x
        total += weight * math.exp(0.5 * w - 0.125 * m2 * math.expm1(w))
    return 0.5 * m2 * end * total, _SIDE_ULPS + _PANEL_ULPS * count


def _query_complement(law: CentralLaw, m2: float) -> tuple[float, float]:
    """`∫ (e^{-|t|/2} - e_L(t)) e^{-t²/2m²} dt`: up to `e`, and beyond it in closed form.

    And its error in units of `u`.
    """
    from scipy.special import erfcx

    m, e = math.sqrt(m2), law.eps
    centre = min(0.5 * m2, e)
    low, high = max(centre - 10.0 * m, 0.0), min(centre + 10.0 * m, e)
    if law.b > 0.0:
        # What these lack does not grow with `t`: it is largest at 0.
        low = 0.0
    total = 0.0
    width, bend = high - low, -0.5 / m2
    count = max(1, math.ceil(width / min(m, 4.0)))
    work(100.0 * 12 * count)
    for x, weight in _rule(count):
        t = low + width * x
        total += weight * complement(law, t) * math.exp(bend * t * t)
    far = e / m + 0.5 * m
    rest = math.exp(-0.5 * e + bend * e * e) * m * float(erfcx(far * math.sqrt(0.5)))
    ulps = _SIDE_ULPS + _LOSS_ULPS * e + _PANEL_ULPS * count
    return 2.0 * width * total + SQRT_TWO_PI * rest, ulps


def _gaussian_complement(m2: float, c: float) -> float:
    from scipy.special import erfcx

    scaled = float(erfcx(math.sqrt(0.125 * (m2 + c))))
    return SQRT_TWO_PI * math.sqrt(m2) * math.exp(-0.125 * c) * scaled


@lru_cache(maxsize=256)
def _rule(count: int) -> tuple[tuple[float, float], ...]:
    """Nodes and weights on (0, 1) for that many equal panels; relative errors at most 3 u."""
    near = [(x, weight) for x, _, weight in _GAUSS]
    far = [(x, weight) for _, x, weight in reversed(_GAUSS)]
    return tuple(
        ((k + x) / count, weight / count) for k in range(count) for x, weight in near + far
    )
