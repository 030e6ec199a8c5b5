"""Vertices and conjugates of piecewise-linear curves; `tradeoff.py` has `tau`, `epsilon.py` eps."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from residua import checks
from residua.bounds import Floats
from residua.pld.arithmetic.exact import EXACT_IDENTITY, ExactAtoms
from residua.pld.constructors import from_hockey_stick, from_tradeoff

Points = tuple[Floats, Floats]

# -- vertices and conjugates ----------------------------------------------------------------


def hockey_stick_points(exact: ExactAtoms) -> Points:
    """Kinks `x` and the values there, from left to right."""
    x = [exact.kink(i) for i in range(len(exact))]
    v = [exact.height(i + 1, k.numerator, k.denominator) for i, k in enumerate(x)]
    return np.array([float(k) for k in x]), np.array([float(h) for h in v])


def tradeoff_points(exact: ExactAtoms) -> Points:
    """Vertices `(alpha, tau)`, from left to right; flat at 0 after the last."""
    alphas = [1 - Fraction(p, exact.p_den) for p in exact.p_tails]
    betas = [Fraction(q, exact.q_den) for q in exact.q_tails]
    if alphas and alphas[-1] < 1:
        alphas.append(Fraction(1))
        betas.append(Fraction(0))
    return np.array([float(a) for a in alphas]), np.array([float(b) for b in betas])


def hockey_stick_from_tradeoff(alphas: Any, betas: Any, x: Any) -> Any:
    """`h(x) = 1 + (τ⁻¹)*(-x)` for the piecewise-linear tradeoff curve through the given points."""
    return from_tradeoff(alphas, betas).hockey_stick(x)


def tradeoff_from_hockey_stick(xs: Any, values: Any, alpha: Any) -> Any:
    """`τ(alpha) = sup_x (1 - alpha - h(x)) / x` for the piecewise-linear `h` through the points."""
    return from_hockey_stick(xs, values).tradeoff(alpha)


def compose_tradeoff(first: tuple[Any, Any], second: tuple[Any, Any]) -> Points:
    """The tradeoff curve of the composition of two piecewise-linear ones, exactly (then rounded).

    Segments multiply: lengths `w1 w2`, slopes `-(s1 s2)`, steepest first, starting from
    `1 - f(0) = d1 + d2 - d1 d2`, where `d` is `Q`'s mass at `-inf`.
    """
    curves = []
    for name, given in (("first", first), ("second", second)):
        checks.require(
            isinstance(given, (tuple, list)) and len(given) == 2, name, "(alphas, betas)", given
        )
        curves.append(_exact_segments(*given))
    (w1, f1), (w2, f2) = curves
    segments = [(wa * wb, sa * sb) for wa, sa in w1 for wb, sb in w2]
    segments.sort(key=lambda s: -s[1])
    alpha, beta = Fraction(0), f1 * f2
    points = [(alpha, beta)]
    for (width, steep), following in pairwise([*segments, (Fraction(0), Fraction(-1))]):
        alpha, beta = alpha + width, beta - width * steep
        if following[1] != steep and width > 0:
            points.append((alpha, beta))
    a, b = zip(*points, strict=True)
    return np.array([float(v) for v in a]), np.array([max(0.0, float(v)) for v in b])


def _exact_segments(alphas: Any, betas: Any) -> tuple[list[tuple[Fraction, Fraction]], Fraction]:
    """Widths and steepnesses (minus the slopes) of a curve, and its height at 0."""
    pld = from_tradeoff(alphas, betas)
    exact = pld._atoms.exact if not pld.is_identity else EXACT_IDENTITY
    segments = [
        (Fraction(p, exact.p_den), Fraction(q * exact.p_den, exact.q_den * p))
        for p, q in zip(exact.p, exact.q, strict=True)
    ]
    if exact.p_inf:
        segments.append((Fraction(exact.p_inf, exact.p_den), Fraction(0)))
    return segments, Fraction(exact.q_tails[0], exact.q_den)
