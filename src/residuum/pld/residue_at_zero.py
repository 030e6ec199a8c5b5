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
from typing import NamedTuple

from residuum.bounds import float_up
from residuum.pld.bounded_range import BoundedRange
from residuum.pld.excess import panels
from residuum.pld.laplace import Laplace
from residuum.pld.randomized_response import RandomizedResponse

Central = RandomizedResponse | Laplace | BoundedRange
"""Factors whose only contact is at `x = 1`."""

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
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
_NODES: list[tuple[tuple[float, float], ...]] = []


class CentralLaw(NamedTuple):
    """Largest loss, weights of `R_e` and `B_e`, and whether these stand for Laplace noise."""

    eps: float
    response: float
    flat: float
    is_laplace: bool


def parameters(factor: Central) -> CentralLaw | None:
    """The law in floats, rounded up; None with mass at infinity."""
    if isinstance(factor, RandomizedResponse):
        return None if factor.delta > 0.0 else CentralLaw(factor.eps, 1.0, 0.0, False)
    if isinstance(factor, Laplace):
        return CentralLaw(float_up(factor.top), 0.0, 0.0, True)
    return CentralLaw(factor.eps, factor.atomic, 1.0 - factor.atomic, False)


def height(law: CentralLaw) -> tuple[float, float]:
    """`h_L(1) = e_L(0)` and `1 - h_L(1)`, relative errors below `_ROUNDING`."""
    e = law.eps
    if law.is_laplace:
        return -math.expm1(-0.5 * e), math.exp(-0.5 * e)
    lacking = 2.0 * law.response * math.exp(-e) / (1.0 + math.exp(-e))
    lacking += 2.0 * law.flat * math.exp(-0.5 * e) / (1.0 + math.exp(-0.5 * e))
    return _excess(law, 0.0, e), lacking


def fits(law: CentralLaw, v: float) -> bool:
    """Whether `L ⪯ G_√v`, proven: `h_L(1) <= erf(√(v/8))`, see above."""
    at_one, lacking = height(law)
    root, safe = math.sqrt(0.125 * v), 1.0 + 2.0 * _ROUNDING
    return at_one * safe <= math.erf(root) or lacking >= math.erfc(root) * safe


def refuses(law: CentralLaw, v: float) -> bool:
    """Whether `L ⪯ G_√v` is refuted."""
    at_one, lacking = height(law)
    root, safe = math.sqrt(0.125 * v), 1.0 - 2.0 * _ROUNDING
    return at_one * safe > math.erf(root) or lacking < math.erfc(root) * safe


def cost_at_zero(law: CentralLaw, v: float, v_up: float) -> tuple[float, float] | None:
    """Proven bounds of the cost under `G_√v`, `v` to `v_up`; None if it is not proven to fit."""
    if not fits(law, v):
        return None
    side = _Complements() if height(law)[0] > _HIGH else _Excesses()
    c = _root(law, v, side)
    high, low = v, 0.0
    error = _ROUNDING + _PANEL * (_panels(law, v - c) + 1)
    for share in _SAFE:
        raised = c * (1.0 + share * error)
        if not raised < v:
            break
        if side.balance(law, v - raised, raised) <= -2.5 * error:
            high = raised
            break
    for share in _SAFE:
        lowered = c * (1.0 - share * error)
        if side.balance(law, v_up - lowered, lowered) >= 2.5 * error:
            low = lowered
            break
    return low, high


class _Excesses:
    """`A` and `B` at 0 themselves."""

    @staticmethod
    def move(law: CentralLaw, m2: float, c: float) -> float:
        """Newton's step in `c`: `A - B` falls by half the density a unit."""
        gap, density = _query_side(law, m2) - _gaussian_side(m2, c), _density(law, m2)
        return 2.0 * gap / density if density > 0.0 else math.copysign(math.inf, gap)

    @staticmethod
    def balance(law: CentralLaw, m2: float, c: float) -> float:
        """Positive where `A > B`, relative to either."""
        return _query_side(law, m2) / _gaussian_side(m2, c) - 1.0


class _Complements:
    """What `A` and `B` lack of their limits."""

    @staticmethod
    def move(law: CentralLaw, m2: float, c: float) -> float:
        """Newton's step for the logarithms."""
        theirs, mine = _gaussian_lack(m2, c), _query_lack(law, m2)
        step, density = math.log(theirs / mine) if theirs > 0.0 else -math.inf, _density(law, m2)
        return 2.0 * step * mine / density if density > 0.0 else math.copysign(math.inf, step)

    @staticmethod
    def balance(law: CentralLaw, m2: float, c: float) -> float:
        return _gaussian_lack(m2, c) / _query_lack(law, m2) - 1.0


def _root(law: CentralLaw, v: float, side: _Excesses | _Complements) -> float:
    low, high = 0.0, v
    c = 0.0
    for _ in range(_STEPS):
        move = side.move(law, v - c, c)
        low, high = (c, high) if move > 0.0 else (low, c)
        new = c + move
        # The next step would be about the square of this one.
        if abs(move) <= 1e-8 * c:
            return new
        if not low < new < high:
            new = 0.5 * (low + high)
        if high - low <= 1e-15 * high:
            return new
        c = new
    return c


def _excess(law: CentralLaw, t: float, d: float) -> float:
    """`e_L(t)`, `d = e - t`."""
    fall = math.exp(-0.5 * t)
    if law.is_laplace:
        return -fall * math.expm1(-0.5 * d)
    value = law.response * -math.expm1(-d) / (1.0 + math.exp(-law.eps))
    if law.flat:
        value += law.flat * math.expm1(-0.5 * d) ** 2 / -math.expm1(-law.eps)
    return fall * value


def _query_side(law: CentralLaw, m2: float) -> float:
    m, e = math.sqrt(m2), law.eps
    width = min(e, 9.0 * m, 96.0)
    rest, bend = e - width, -0.5 / m2
    exp, expm1 = math.exp, math.expm1
    near = far = 0.0
    # Sums of e^{-t/2 - t²/2m²} against 1 - e^-d, and against 1 - e^{-d/2} or its square.
    half, square = law.is_laplace, law.flat > 0.0
    for x, weight in _rule(_panels(law, m2)):
        d = rest + width * x
        t = e - d
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
        total += weight * _lack(law, t) * math.exp(bend * t * t)
    far = e / m + 0.5 * m
    rest = math.exp(-0.5 * e + bend * e * e) * m * float(erfcx(far * math.sqrt(0.5)))
    return 2.0 * width * total + _ROOT_TWO_PI * rest


def _lack(law: CentralLaw, t: float) -> float:
    """`e^{-t/2} - e_L(t)` for `0 <= t <= e`."""
    e = law.eps
    if law.is_laplace:
        return math.exp(-0.5 * e)
    # cosh(t/2) 2/(1 + e^e) of R_e, and (1 - e^{-e/2} cosh(t/2)) / sinh(e/2) of B_e.
    tilt = math.exp(0.5 * t - e) + math.exp(-0.5 * t - e)
    value = law.response * tilt / (1.0 + math.exp(-e))
    if law.flat:
        value += law.flat * (2.0 * math.exp(-0.5 * e) - tilt) / -math.expm1(-e)
    return value


def _gaussian_lack(m2: float, c: float) -> float:
    from scipy.special import erfcx

    scaled = float(erfcx(math.sqrt(0.125 * (m2 + c))))
    return _ROOT_TWO_PI * math.sqrt(m2) * math.exp(-0.125 * c) * scaled


def _density(law: CentralLaw, m2: float) -> float:
    """The tilted law against `e^{-z²/2m²}`."""
    m, e = math.sqrt(m2), law.eps
    spread = m * _ROOT_TWO_PI * math.erf(e / (m * math.sqrt(2.0)))
    ends = math.exp(-0.5 * e - 0.5 * e * e / m2)
    if law.is_laplace:
        return ends + 0.25 * math.exp(-0.5 * e) * spread
    flat = 0.5 * spread * math.exp(-0.5 * e) / -math.expm1(-e) if law.flat else 0.0
    return law.response * 2.0 * ends / (1.0 + math.exp(-e)) + law.flat * flat


def _rule(count: int) -> tuple[tuple[float, float], ...]:
    """Nodes and weights as plain floats, for that many panels."""
    while len(_NODES) < count:
        nodes, weights = panels(len(_NODES) + 1)
        _NODES.append(tuple(zip(nodes.tolist(), weights.tolist(), strict=True)))
    return _NODES[count - 1]
