"""What a randomized response or Laplace query costs under a Gaussian budget, for whole columns.

The cost `c` at which `G_√w ⊕ L ⪯ G_√(w+c)` is given by one equation, since curves touch at `x = 1`
alone (`pld/residue/single_contact.py`, `docs/gdp-residue.md`):

    A(w) = 2 ∫ e_L(t) e^{-t²/2w} dt            over (0, e)
         <= B(w, c) = √w e^{w/8} ∫ e^{-x²/8} dx  over (√w, √(w+c)),

with `e_L(t) = sinh((e-t)/2) / cosh(e/2)` for `R_e` and `e^{-e/2} (e^{(e-t)/2} - 1)` for Laplace.
Asked the other way round, from what is *left* to what was there, `c` is explicit up to an inverse
error function, which vectorises; the result is raised and then proven by the inequality itself.

**Quadrature.** Gauss–Legendre with 32 nodes is wrong by at most `(64/15) M ρ^-64 / (1 - ρ^-2)` on
`[-1, 1]`, `M` the largest modulus on the Bernstein ellipse `ρ` (half axes `a`, `b`). At `ρ =
2.4`, `a < 1.41`, `b < 1`, `ρ^-64 < 5e-25`. For `A` on `(0, W)`, `W = min(e, 9√w)`, `e <= 16`: the
Gaussian is at most `e^{(81/8) b²} < 2.5e4`, `|e_L|` at most `e_L` with `e + 0.21 W` in place of
`e - t`, and the integral is at least `(W/9) e^{-1/2} e_L(e/2)`. The quotient is largest at `e =
16`, and the error below 1e-15. What is cut off beyond `9√w` is below 1e-16 of it. For `B`, of
length `l`, where `l √w <= c/2 <= 60` and `l <= 11`: relative to its value at the left end the
integrand is at most `e^{l²/32 + 0.21 l √w / 4}` on the ellipse, and on average at least `0.6 / (1
+ l + l√w)`: below 1e-17. Where `c <= 4`, ten nodes do as well: at `ρ = 10` the modulus is below
`e^{(5 l)²/32 + l √w / 2} < 70`. Roundings: arguments are below 60, so 100 `u` on each side and
the errors of the library's functions (`pld/arithmetic/ulp_bounds.py`) stay below 5e-14.
"""

from __future__ import annotations

import numpy as np

from residua.bounds import Floats

LARGEST_EPS = 16.0
_ERROR = 1e-13
"""Relative, of either side."""
_RAISES = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4)
_STEPS = 60
_SMALL = 4.0


def _rule(count: int) -> list[tuple[float, float]]:
    """Nodes and weights on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return list(zip((0.5 * (nodes + 1.0)).tolist(), (0.5 * weights).tolist(), strict=True))


_MANY, _FEW = _rule(32), _rule(10)


def query_side(w: Floats, eps: float, laplace: bool) -> Floats:
    """`A(w)`, relative error below `_ERROR`."""
    total = np.empty_like(w)
    narrow = 81.0 * w < eps * eps
    for chosen, width in ((narrow, 9.0 * np.sqrt(w[narrow])), (~narrow, np.float64(eps))):
        bend = -0.5 / w[chosen]
        part = np.zeros_like(bend)
        for x, weight in _MANY:
            # From e downwards, so that e - t has all its digits where e_L is small.
            d = (eps - width) + width * x
            t = width * (1.0 - x)
            height = np.expm1(0.5 * d) if laplace else np.sinh(0.5 * d)
            part += weight * height * np.exp(bend * (t * t))
        total[chosen] = width * part
    scale = np.exp(-0.5 * eps) if laplace else 1.0 / np.cosh(0.5 * eps)
    return np.asarray(2.0 * scale * total)


def gaussian_side(w: Floats, c: Floats) -> Floats:
    """`B(w, c)`, relative error below `_ERROR`."""
    root = np.sqrt(w)
    length = c / (root + np.sqrt(w + c))
    total = np.zeros_like(w)
    for x, weight in _FEW if np.all(c <= _SMALL) else _MANY:
        step = length * x
        total += weight * np.exp(-0.125 * step * (2.0 * root + step))
    return np.asarray(root * length * total)


def cost_of_leaving(w: Floats, eps: float, laplace: bool, start: Floats | None = None) -> Floats:
    """`c` with `G_√w ⊕ L ⪯ G_√(w+c)` proven, elementwise; infinite where it is not.

    For `w > 0` and `0 < eps <= 16`. Above the exact cost by about 1e-12 of it. `start` is a good
    guess.
    """
    needed = query_side(w, eps, laplace)
    with np.errstate(all="ignore"):
        # B <= c/2, and B is concave in c: Newton's steps come from below.
        c = np.maximum(_guess(w, needed) if start is None else start, 2.0 * needed)
        for _ in range(_STEPS if start is None else 2):
            slope = 0.5 * np.exp(-0.125 * c) * np.sqrt(w / (w + c))
            step = (needed - gaussian_side(w, c)) / slope
            c = np.maximum(c + step, 0.5 * c)
            if np.all(np.abs(step) <= 1e-13 * c):
                break
    proven = np.full_like(w, np.inf)
    for raised in _RAISES:
        open_ = ~np.isfinite(proven) & np.isfinite(c)
        if not open_.any():
            break
        tried = c[open_] * (1.0 + raised)
        holds = gaussian_side(w[open_], tried) * (1.0 - _ERROR) >= needed[open_] * (1.0 + _ERROR)
        proven[open_] = np.where(holds, tried, np.inf)
    return proven


def _guess(w: Floats, needed: Floats) -> Floats:
    """The equation solved as if there were no rounding."""
    from scipy.special import erf, erfinv

    advantage = erf(np.sqrt(0.125 * w)) + needed * np.exp(-0.125 * w) / np.sqrt(2.0 * np.pi * w)
    return np.asarray(8.0 * erfinv(np.minimum(advantage, 0.999999)) ** 2 - w)
