"""The complement of an excess to the largest one, `e^{-|y|/2}`, and its Gaussian transform.

Where `h` is close to 1 the two sides of `A <= B` (`excess.py`) agree to many digits whatever the
cost, and what they lack of their common limit is compared instead: `A <= B` iff the lack of `A` is
at least that of `B`. For atoms `(p, q)` at `z` with `Σp = Σq = 1`

    e^{-|y|/2} - e_L(y) = Σ min(p e^{-y/2}, q e^{y/2}) = Σ √(pq) e^{-|y-z|/2},

and as `e^{-|y|/2} = ½ ∫ e^{-s/8} φ_s(y) ds` over `s > 0`, the lack of `G_√c` composed with `G_m` is
that of `G_mu`, `e^{-y/2} Φ(y/mu - mu/2) + e^{y/2} Φ(-y/mu - mu/2)`, up to a factor. With the Mills
ratio `R` both transforms are sums of positive terms in closed form, and log-convex as well:

    lack of A(l) = Σ √(pq) e^{-z²/2m² + lz} (T(l - z/m²) + T(z/m² - l)),    T(l) = m R((1/2 - l) m),
    lack of B(l) = m e^{-c/8 + l²m²c/2v} (R(√v/2 - lm²/√v) + R(√v/2 + lm²/√v)).

Relative to the limit the lack of `A` is least at `y = 0`: beside it is `1 - h(e^|y|)`.
"""

from __future__ import annotations

import math

import numpy as np

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, MILLS_ULPS, U, mills_ratio
from residua.pld.residue.excess import FiniteExcess, Transform
from residua.work_limit import work


def lack_at_one(excess: FiniteExcess) -> float:
    """`1 - h(1)`, about."""
    return float(excess.weights @ np.exp(-0.5 * np.abs(excess.losses)))


def _log_mills(a: Floats) -> Floats:
    """`ln R(a)`; absolute error at most `2 (MILLS_ULPS + EXP_ULPS + 32 + 8a²) U`."""
    near = mills_ratio(np.abs(a))
    # R(a) = √(2π) e^{a²/2} - R(-a) for a < 0.
    swell = 0.5 * np.log(2.0 * math.pi) + 0.5 * a * a
    return np.where(a >= 0.0, np.log(near), swell + np.log1p(-near * np.exp(-swell)))


def _mills_error(a: Floats) -> Floats:
    return np.asarray((MILLS_ULPS + EXP_ULPS + 32.0 + 8.0 * a * a) * U * 2.0)


def tail_transform(m2: float, l: Floats) -> Transform:
    """`∫ e^{-y/2 - y²/2m² + ly} dy` over `y > 0`: `m R((1/2 - l) m)`."""
    m = math.sqrt(m2)
    a = (0.5 - l) * m
    log = _log_mills(a)
    inverse = np.exp(-log)
    mean = m * (inverse - a)
    spread = m2 * np.maximum(1.0 - inverse * (inverse - a), 0.0)
    return Transform(log + math.log(m), _mills_error(a), mean, spread)


def query_lack(excess: FiniteExcess, m2: float, l: Floats) -> Transform:
    """`ln` of what `A(l)` lacks, for the whole list of a pair without mass at infinity.

    `m2` may be off by `2u` relative.
    """
    z, at = excess.losses, l[:, None]
    work(60.0 * l.size * z.size, 200.0 * l.size * z.size)
    pull = at - z / m2
    right, left = tail_transform(m2, pull), tail_transform(m2, -pull)
    shift = np.log(excess.weights) + (at * z - (0.5 / m2) * z * z)
    logs = np.concatenate([shift + right.log, shift + left.log], axis=1)
    means = np.concatenate([z + right.mean, z - left.mean], axis=1)
    spreads = np.concatenate([right.spread, left.spread], axis=1)
    # Of the exponents, of the places that are differences, and of the Mills ratios.
    size = np.abs(at * z) + (0.5 / m2) * z * z + np.abs(np.log(excess.weights))
    moved = 4.0 * (np.abs(at) + np.abs(z) / m2)
    errors = [
        (8.0 * size + moved * np.abs(one.mean) + 4.0 * np.abs(shift + one.log)) * U + one.error
        for one in (right, left)
    ]
    top = logs.max(axis=1)
    shares = np.exp(logs - top[:, None])
    total = shares.sum(axis=1)
    shares /= total[:, None]
    mean = (shares * means).sum(axis=1)
    spread = (shares * (spreads + (means - mean[:, None]) ** 2)).sum(axis=1)
    wrong = (shares * np.concatenate(errors, axis=1)).sum(axis=1)
    # A loss that is off by d moves e^{-|y-z|/2} by at most d/2, relatively.
    wrong = wrong + excess.weight_error + 0.5 * excess.loss_error
    wrong = wrong + (EXP_ULPS + 32.0 + 2.0 * z.size + 4.0 * np.abs(top)) * U
    return Transform(np.log(total) + top, 1.01 * wrong, mean, spread)


def gaussian_lack(m2: float, c: float, l: Floats) -> Transform:
    """`ln` of what `B(l)` of `G_√c` lacks; `m2` and `c` may be off by `2u` relative."""
    work(60.0 * l.size)
    v = m2 + c
    root = math.sqrt(v)
    place = l * (m2 / root)
    bulk = 0.5 * l * l * (m2 * (c / v))
    a, b = 0.5 * root - place, 0.5 * root + place
    one, other = _log_mills(a), _log_mills(b)
    log = np.logaddexp(one, other)
    share = np.exp(one - log)
    # (ln R)' = a - 1/R, of which the second derivative is 1 + (a - 1/R) / R.
    fall, rise = np.exp(-one) - a, np.exp(-other) - b
    scale = m2 / root
    slope = share * fall - (1.0 - share) * rise
    mean = l * (m2 * (c / v)) + scale * slope
    bend = share * (1.0 - fall * np.exp(-one) + (fall - slope) ** 2)
    bend += (1.0 - share) * (1.0 - rise * np.exp(-other) + (rise + slope) ** 2)
    spread = m2 * (c / v) + scale * scale * bend
    # A place off by a few u of itself moves ln R by that times its slope, at most |a| + 1.
    size = (np.abs(place) + root) * (np.abs(place) + root + 1.0)
    wrong = _mills_error(np.maximum(np.abs(a), np.abs(b)))
    wrong = wrong + (64.0 + c + 8.0 * bulk + 8.0 * size + 4.0 * np.abs(log)) * U
    return Transform(log + (bulk - 0.125 * c) + 0.5 * math.log(m2), 1.01 * wrong, mean, spread)
