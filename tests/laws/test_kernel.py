"""Blackwell's theorem: `L <= M` exactly when a Markov kernel turns `M`'s pair into `L`'s."""

from __future__ import annotations

import numpy as np
import pytest

import oracles
import residua as rz
from catalogue import ATOMIC, FINITE_PAIRS, XS, case, overlap


@pytest.mark.parametrize(("a", "b"), FINITE_PAIRS)
def test_kernel_maps_one_pair_to_the_other(a, b):
    """A kernel exactly when `L <= M`; else an error."""
    L, M = case(a).pld, case(b).pld
    if not L <= M:
        with pytest.raises(rz.ArgumentError):
            rz.kernel(L, M)
        return
    kernel = rz.kernel(L, M)
    (p_low, q_low), (p_high, q_high) = L.pair(), M.pair()
    assert kernel.shape == (p_high.size, p_low.size)
    assert (kernel >= 0).all()
    assert np.abs(kernel.sum(axis=1) - 1).max() <= 1e-9
    assert np.abs(p_high @ kernel - p_low).max() <= 1e-9
    assert np.abs(q_high @ kernel - q_low).max() <= 1e-9


def test_no_kernel_for_smooth_ones():
    with pytest.raises(rz.ArgumentError):
        rz.kernel(rz.gaussian(mu=1.0), rz.gaussian(mu=2.0))


@pytest.mark.parametrize("name", ATOMIC)
def test_pair_has_this_pld(name):
    L = case(name).pld
    p, q = L.pair()
    assert (p >= 0).all()
    assert (q >= 0).all()
    again = rz.from_pair(p, q)
    for x in XS:
        h = L.hockey_stick_bounds(x)
        # Each mass is rounded to nearest: half a unit for p and q, and the two sums.
        slack = (1 + x) * 4 * 2.0**-53
        assert overlap(again.hockey_stick_bounds(x), rz.Interval(h.lo - slack, h.hi + slack))


@pytest.mark.parametrize("name", ATOMIC)
def test_pair_is_the_law(name):
    """Total masses are one, and the pair's own curve is the truth, up to rounding each mass."""
    p, q = case(name).pld.pair()
    assert abs(sum(map(oracles.exact, p)) - 1) <= len(p) * 2.0**-53
    assert abs(sum(map(oracles.exact, q)) - 1) <= len(q) * 2.0**-53
