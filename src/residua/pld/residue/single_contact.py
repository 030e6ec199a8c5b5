"""The cost of one randomized response, Laplace or bounded range under `G_mu`: one scalar equation.

Their laws are `w R_e + (1-w) B_e` (`bounded_range.py`), symmetric, with a tilted law
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
Scalars in plain floating point; errors as in `excess.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from residua.pld.residue.excess import panels
from residua.pld.residue.initial_guess import about
from residua.pld.residue.symmetric_family import CentralLaw, density, height, lack

_ROUNDING = 2e-14
"""Relative error of either side but for quadrature: under 100 roundings of `u`, and of a
difference of scaled error functions (at most a tenfold loss of their 22 u)."""
_PANEL = 5e-15
"""What a panel may add to that, see `excess.py`."""
_SAFE = (4.0, 16.0, 256.0, 1e4, 1e6, 1e8, 1e10, 1e11)
"""By how many errors the cost is raised (and lowered), in turn, until that is proven."""
_CLOSED = 0.2
_HIGH = 0.9
_STEPS = 100
_SETTLED = 1e-8
_SPARE = 1e-6
"""Of a last step: for the density to change over it."""
_DENSITY = 1e-9
"""Far more than the relative error of a density, which is a sum of positive terms."""
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


def fits(law: CentralLaw, v: float) -> bool:
    """Whether `L ⪯ G_√v`, proven: `h_L(1) <= erf(√(v/8))`, see above."""
    return _is_below(*height(law), v)


def _is_below(at_one: float, lacking: float, v: float) -> bool:
    root, safe = math.sqrt(0.125 * v), 1.0 + 2.0 * _ROUNDING
    return at_one * safe <= math.erf(root) or lacking >= math.erfc(root) * safe


def refuses(law: CentralLaw, v: float) -> bool:
    """Whether `L ⪯ G_√v` is refuted."""
    at_one, lacking = height(law)
    root, safe = math.sqrt(0.125 * v), 1.0 - 2.0 * _ROUNDING
    return at_one * safe > math.erf(root) or lacking < math.erfc(root) * safe


def cost_at_zero(law: CentralLaw, v: float, v_up: float) -> tuple[float, float] | None:
    """Proven bounds of the cost under `G_√v`, `v` to `v_up`; None if it is not proven to fit."""
    at_one, lacking = height(law)
    if not _is_below(at_one, lacking, v):
        return None
    both = _lacking if at_one > _HIGH else _themselves
    at, near, weight = _root(law, v, both)
    error = _ROUNDING + _PANEL * (_panels(law, v - at.c) + 1)
    high = _above(law, v, at, weight, error)
    if v_up > v and both is _lacking:
        m2 = v_up - at.c
        low = _below(v_up, both(law, m2, at.c), density(law, m2), error)
    else:
        if v_up > v:
            # Neither side changes by more than half of the share by which m² does.
            weight = density(law, v_up - at.c)
        low = _below(v_up, at, weight, error + (v_up - v) / (v - at.c))
    if high is None:
        high = _raised(law, v, near, both, error)
    return _lowered(law, v_up, near, both, error) if low is None else low, high


class _Reading(NamedTuple):
    """Both sides at a cost: `A` and `B`, or what `B` and what `A` lack. The first falls short of
    the second where the cost will do."""

    c: float
    more: float
    less: float


Sides = Callable[[CentralLaw, float, float], _Reading]


def _themselves(law: CentralLaw, m2: float, c: float) -> _Reading:
    return _Reading(c, _query_side(law, m2), _gaussian_side(m2, c))


def _lacking(law: CentralLaw, m2: float, c: float) -> _Reading:
    return _Reading(c, _gaussian_lack(m2, c), _query_lack(law, m2))


def _move(at: _Reading, weight: float, both: Sides) -> float:
    """Newton's step in `c`: `A - B` falls by half the density a unit; of logarithms if lacking."""
    gap = at.more - at.less
    if both is _lacking:
        gap = at.less * math.log(at.more / at.less) if at.more > 0.0 else -math.inf
    return 2.0 * gap / weight if weight > 0.0 else math.copysign(math.inf, gap)


def _root(law: CentralLaw, v: float, both: Sides) -> tuple[_Reading, float, float]:
    """The sides next to where they are equal, about where that is, and the density there."""
    low, high = 0.0, v
    c = about(law, v)
    for _ in range(_STEPS):
        at, weight = both(law, v - c, c), density(law, v - c)
        move = _move(at, weight, both)
        low, high = (c, high) if move > 0.0 else (low, c)
        new = c + move
        if abs(move) <= _SETTLED * c:
            return at, new if low < new < high else c, weight
        if not low < new < high:
            new = 0.5 * (low + high)
        if high - low <= 1e-15 * high:
            break
        c = new
    return at, new, weight


def _above(law: CentralLaw, v: float, at: _Reading, weight: float, error: float) -> float | None:
    """A cost that will do, from the sides at another one; None if that is not proven.

    `w (A - B)` falls by `½ w ρ` a unit of `c`, where `w = e^{-m²/8} / m` rises and the density `ρ`
    falls as `c` grows.
    """
    gap = at.more - at.less + 1.01 * error * (at.more + at.less)
    if not weight > 0.0:
        return None
    step = 2.0 * gap / weight
    c = math.nextafter(at.c + step + _SPARE * abs(step), math.inf)
    if not 0.0 < c < v:
        return None
    fall = 0.5 * (c - at.c) * density(law, v - c)
    return c if gap - fall + _DENSITY * abs(fall) <= 0.0 else None


def _below(v: float, at: _Reading, weight: float, error: float) -> float | None:
    """A cost below which none will do, likewise."""
    gap = at.more - at.less - 1.01 * error * (at.more + at.less)
    if not weight > 0.0:
        return None
    step = 2.0 * gap / weight
    c = math.nextafter(at.c + step - _SPARE * abs(step), 0.0)
    if not 0.0 < c < v:
        return None
    ratio = math.exp(0.125 * (c - at.c)) * math.sqrt((v - at.c) / (v - c))
    fall = 0.5 * (c - at.c) * ratio * weight
    return c if gap - fall - _DENSITY * abs(fall) >= 0.0 else None


def _raised(law: CentralLaw, v: float, c: float, both: Sides, error: float) -> float:
    """The same by raising the cost until it is proven; `v` itself if nothing less is."""
    for share in _SAFE:
        raised = c * (1.0 + share * error)
        if not raised < v:
            break
        at = both(law, v - raised, raised)
        if 0.0 < at.more <= at.less * (1.0 - 2.5 * error):
            return raised
    return v


def _lowered(law: CentralLaw, v: float, c: float, both: Sides, error: float) -> float:
    for share in _SAFE:
        lowered = c * (1.0 - share * error)
        if not lowered < v:
            continue
        at = both(law, v - lowered, lowered)
        if at.more >= at.less * (1.0 + 2.5 * error):
            return lowered
    return 0.0


def _query_side(law: CentralLaw, m2: float) -> float:
    m, e = math.sqrt(m2), law.eps
    width = min(e, 9.0 * m, 96.0)
    rest, bend = e - width, -0.5 / m2
    exp, expm1 = math.exp, math.expm1
    near = far = 0.0
    # Sums of e^{-t/2 - t²/2m²} against 1 - e^-d, and against 1 - e^{-d/2} or its square.
    half, square = law.is_laplace, law.flat > 0.0
    for x, weight in _rule(_panels(law, m2)):
        # Both from the node: `e - d` would lose the digits of a small `t`.
        d, t = rest + width * x, width * (1.0 - x)
        tilt = weight * exp((bend * t - 0.5) * t)
        if half:
            far -= tilt * expm1(-0.5 * d)
            continue
        near -= tilt * expm1(-d)
        if square:
            far += tilt * expm1(-0.5 * d) ** 2
    if not half:
        far = law.flat * far / -expm1(-e) if square else 0.0
        far += law.response * near / (1.0 + exp(-e))
    return 2.0 * width * far


def _panels(law: CentralLaw, m2: float) -> int:
    m = math.sqrt(m2)
    return math.ceil(min(law.eps, 9.0 * m, 96.0) / min(m, 4.0))


def _gaussian_side(m2: float, c: float) -> float:
    if c == 0.0:
        return 0.0
    if 0.125 * c > _CLOSED:
        from scipy.special import erfcx

        # ½ √(8π m²) (erfcx √(m²/8) - e^{-c/8} erfcx √(v/8)), a difference of at least a tenth.
        near, far = erfcx(math.sqrt(0.125 * m2)), erfcx(math.sqrt(0.125 * (m2 + c)))
        return _ROOT_TWO_PI * math.sqrt(m2) * float(near - math.exp(-0.125 * c) * far)
    total = 0.0
    end = math.log1p(c / m2)
    for x, weight in _rule(math.ceil(end)):
        w = end * x
        total += weight * math.exp(0.5 * w - 0.125 * m2 * math.expm1(w))
    return 0.5 * m2 * end * total


def _query_lack(law: CentralLaw, m2: float) -> float:
    """`∫ (e^{-|t|/2} - e_L(t)) e^{-t²/2m²} dt`: up to `e`, and beyond it in closed form."""
    from scipy.special import erfcx

    m, e = math.sqrt(m2), law.eps
    centre = min(0.5 * m2, e)
    low, high = max(centre - 10.0 * m, 0.0), min(centre + 10.0 * m, e)
    total = 0.0
    width, bend = high - low, -0.5 / m2
    for x, weight in _rule(max(1, math.ceil(width / min(m, 4.0)))):
        t = low + width * x
        total += weight * lack(law, t) * math.exp(bend * t * t)
    far = e / m + 0.5 * m
    rest = math.exp(-0.5 * e + bend * e * e) * m * float(erfcx(far * math.sqrt(0.5)))
    return 2.0 * width * total + _ROOT_TWO_PI * rest


def _gaussian_lack(m2: float, c: float) -> float:
    from scipy.special import erfcx

    scaled = float(erfcx(math.sqrt(0.125 * (m2 + c))))
    return _ROOT_TWO_PI * math.sqrt(m2) * math.exp(-0.125 * c) * scaled


@lru_cache(maxsize=64)
def _rule(count: int) -> tuple[tuple[float, float], ...]:
    """Nodes and weights as plain floats, for that many panels."""
    nodes, weights = panels(count)
    return tuple(zip(nodes.tolist(), weights.tolist(), strict=True))
