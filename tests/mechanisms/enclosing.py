"""How PLDs are held against a slow twin: above it, below it, or around it closely."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from mpmath import mpf

import oracles
from residua import Pld
from residua.mechanisms import Mechanism

THOROUGH = (
    os.environ.get("RESIDUA_THOROUGH") == "1" or os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
)
FACTOR = 8 if THOROUGH else 1
HALF = Fraction(1, 2)
XS = [1e-3, 0.2, 0.5, 0.9, 0.999, 1.0, 1.001, 1.2, 1.6, 2.0, 2.6, 4.0, 9.0, 50.0, 3000.0]

Curve = Callable[[float], Any]
LOST = mpf("1e-34")
"""What rounding and the ends of infinite sums may cost the twins."""


def dominates(pld: Pld, truth: Curve, xs: Sequence[float] = XS, slack: float = 0.0) -> None:
    """The upper end of the curve is nowhere below the truth (known up to `slack`, relatively)."""
    tops = pld.hockey_stick_bounds(np.array(xs)).hi
    for x, top in zip(xs, np.asarray(tops).tolist(), strict=True):
        value = truth(x)
        assert oracles.real(top) >= value * (1 - slack) - LOST, (x, top, float(value))


def undercuts(pld: Pld, truth: Curve, xs: Sequence[float] = XS) -> None:
    """The lower end of the curve is nowhere above the truth."""
    lows = pld.hockey_stick_bounds(np.array(xs)).lo
    for x, low in zip(xs, np.asarray(lows).tolist(), strict=True):
        value = truth(x)
        assert oracles.real(low) <= value + LOST, (x, low, float(value))


def encloses(
    mechanism: Mechanism,
    truth: Curve,
    direction: str | None = None,
    relation: str | None = None,
    within: float = 2e-6,
    xs: Sequence[float] = XS,
) -> None:
    """Above and below hold the truth between them, closely."""
    above = mechanism.pld(direction, relation)
    below = mechanism.pld(direction, relation, side="below")
    dominates(above, truth, xs)
    undercuts(below, truth, xs)
    gap = above.hockey_stick_bounds(np.array(xs)).hi - np.asarray(
        below.hockey_stick_bounds(np.array(xs)).lo
    )
    # A shift of the curve by `within` in eps changes h by at most that.
    assert np.all(gap <= within), gap
