"""Sums over the nodes of a line, by products of phases: within what is charged, of exact sums."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp

from residua.pld.arithmetic.ulp_bounds import EXP_ULPS, U
from residua.pld.curve.contour.transform import line_sums


@pytest.mark.parametrize("count", [16, 17, 64, 65, 130, 1000, 2923])
def test_products_of_phases_against_mpmath(count: int) -> None:
    rng = np.random.default_rng(count)
    fall = np.exp(-np.arange(count) / (0.2 * count))
    weights = [fall * (rng.standard_normal(count) + 1j * rng.standard_normal(count))] * 2
    weights[1] = weights[1] * 1j
    t, step = rng.uniform(0.0, 30.0, 1 + 8192 // count), 0.173
    found = line_sums(weights, t, step)
    with mp.workdps(30):
        for place in (0, t.size - 1):
            at = mp.mpf(float(t[place])) * mp.mpf(step)
            phases = [mp.expj(-k * at) for k in range(count)]
            for row, values in zip(weights, found, strict=True):
                exact = mp.re(mp.fdot(zip(map(mp.mpmathify, row.tolist()), phases, strict=True)))
                size = np.abs(row)
                charged = (2.0 * EXP_ULPS + 1.5 * count + 24.0) * U * size.sum()
                charged += 3.0 * U * t[place] * step * (np.arange(count) @ size)
                assert abs(mp.mpf(float(values[place])) - exact) <= charged


def test_products_of_phases_against_plain_sums() -> None:
    rng = np.random.default_rng(1)
    weights = [rng.standard_normal(300) + 1j * rng.standard_normal(300) for _ in range(2)]
    t = rng.uniform(0.0, 20.0, 64)
    phases = np.exp(-1j * np.multiply.outer(t, 0.3 * np.arange(300.0)))
    plain = [(phases @ row).real for row in weights]
    np.testing.assert_allclose(line_sums(weights, t, 0.3), plain, atol=1e-10)
