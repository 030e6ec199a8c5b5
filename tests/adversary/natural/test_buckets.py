"""How much a natural filter lets through, size by size, against strategies and exact sums."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

import residua as rz
from residua.adversary.discretise import _by_jensen, heights, largest_total, overflow


def draws_exceed(total: float, draws: int, steps: list[float], gamble: bool) -> float:
    """`Pr[W > draws]` of a strategy: shares of the total step by step; it stops when it has won.

    With `gamble`, the whole rest goes into one step as soon as one more draw is missing.
    """
    states = {0: 1.0}
    spent = 0.0
    won = 0.0
    for share in steps:
        p = share * total
        following: dict[int, float] = {}
        for count, mass in states.items():
            if gamble and count == draws:
                won += mass * min(1.0, total - spent)
                continue
            following[count] = following.get(count, 0.0) + mass * (1.0 - p)
            if count == draws:
                won += mass * p
            else:
                following[count + 1] = following.get(count + 1, 0.0) + mass * p
        states, spent = following, spent + p
    return won


@given(
    st.floats(0.01, 12.0),
    st.integers(0, 20),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40),
    st.booleans(),
)
def test_no_strategy_draws_more_often_than_the_bound(total, draws, shares, gamble):
    whole = sum(shares)
    if not whole:
        return
    steps = [share / whole for share in shares]
    if max(steps) * total > 1.0:
        return
    assert draws_exceed(total, draws, steps, gamble) <= overflow(total, draws) * (1.0 + 1e-12)


@pytest.mark.parametrize(("total", "draws"), [(1.0, 5), (1.0, 8), (4.0, 12), (0.01, 1)])
def test_the_bound_is_near_what_small_steps_and_a_last_gamble_reach(total, draws):
    reached = draws_exceed(total, draws, [1.0 / 4000] * 4000, gamble=True)
    assert reached <= overflow(total, draws) <= 12.0 * reached


def test_one_draw_is_bounded_by_the_total():
    assert overflow(1e-6, 0) == 1e-6
    assert overflow(3.0, 2) == 1.0


@pytest.mark.parametrize("e", [0.05, 0.3, 0.8, 1.5])
def test_heights_are_below_the_exact_curve_and_close(e):

    known = heights(e, 1.0, 30)
    for m, h in enumerate(known.tolist()):
        p = 1 / (1 + mp.exp(-mp.mpf(e)))
        exact = mp.fsum(
            mp.binomial(m, j) * p**j * (1 - p) ** (m - j)
            * max(mp.mpf(0), 1 - mp.exp(1 - (2 * j - m) * mp.mpf(e)))
            for j in range(m + 1)
        )  # fmt: skip
        assert h <= exact
        assert exact - h <= mp.mpf("1e-9") + exact * mp.mpf("1e-6")


@given(st.data())
def test_what_the_natural_filter_admits_stays_within_the_totals(data):
    """Mixtures of nothing and `RR_e`: if they compose within delta, their weights sum to less."""
    e = data.draw(st.sampled_from([0.2, 0.6, 1.3]))
    delta = data.draw(st.sampled_from([1e-6, 1e-3]))
    weights = data.draw(st.lists(st.floats(1e-7, 1.0), min_size=1, max_size=8))
    # E H(m), m a sum of independent indicators.
    law = np.array([1.0])
    for w in weights:
        law = np.convolve(law, [1.0 - w, w])
    exact = sum(
        float(p) * float((m * rz.pure_dp(e)).delta_bounds(1.0).hi) if m else 0.0
        for m, p in enumerate(law)
    )
    if exact <= delta * (1.0 - 1e-9):
        assert sum(weights) <= largest_total(e, 1.0, delta, 10)


@pytest.mark.parametrize(("e", "delta"), [(0.08, 1e-6), (0.3, 1e-6), (0.3, 0.05), (0.9, 1e-3)])
def test_heights_that_end_early_give_the_same_total(e, delta):
    """Beyond where they end no chord is as flat: the minorant at delta is that of all heights."""
    some, every = heights(e, 1.0, 60, delta), heights(e, 1.0, 60)
    assert some.size <= every.size
    assert _by_jensen(some, delta, 60) == _by_jensen(every, delta, 60)


def test_certain_losses_attain_the_total():
    """As many sure `RR_e` as fit are within the total, and it is not far above them."""
    count = 0
    while (rz.identity() + (count + 1) * rz.pure_dp(0.2)).delta(1.0) <= 1e-6:
        count += 1
    total = largest_total(0.2, 1.0, 1e-6, 100)
    assert count <= total < count + 1.0


def test_large_losses_need_delta():
    first = (1.0 - math.exp(1.0 - 1.5)) / (1.0 + math.exp(-1.5))
    total = largest_total(1.5, 1.0, 1e-6, 100)
    assert total == pytest.approx(1e-6 / first, rel=1e-5)
    assert Fraction(total) >= Fraction(1e-6) / Fraction(first) * (1 - Fraction(1, 10**6))
