"""Widths told from chords: never where the curve says otherwise, and found where it is easy."""

from __future__ import annotations

import numpy as np
import pytest

from residua.pld.curve import enclosure_width


def curve(t: np.ndarray) -> np.ndarray:
    """A Laplace's, `e = 2`: convex in `e^t`."""
    return np.where(t < 2.0, -np.expm1(0.5 * np.minimum(t - 2.0, 0.0)), 0.0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("accuracy", [1e-4, 1e-2, 0.3])
def test_what_is_called_narrow_is(seed: int, accuracy: float) -> None:
    rng = np.random.default_rng(seed)
    t = rng.uniform(0.0, 2.5, 300)
    value = curve(t)
    wide = rng.uniform(0.0, 0.8, 300) * accuracy
    lo, hi = np.maximum(value - wide, 0.0), value + wide
    narrow = enclosure_width.are_narrow(t, lo, hi, accuracy)
    # The eps with the same height is between t - a and t + a.
    assert np.all(curve(t[narrow] + accuracy) <= lo[narrow])


def test_dense_and_sharp_ones_are_called_narrow() -> None:
    t = np.linspace(0.0, 1.9, 400)[::-1]
    value = curve(t)
    narrow = enclosure_width.are_narrow(t, value * (1 - 1e-9), value * (1 + 1e-9), 1e-3)
    assert narrow[1:].all()
    assert not narrow[0]  # nothing is after the last
