"""Contours of many different Laplaces and responses, against closed forms and other contours."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import oracles
import residua as rz
from oracles import Law
from residua.bounds import Interval
from residua.pld.curve.contour import parameters
from residua.pld.curve.contour.many_atoms import ManyAtoms
from residua.pld.families.laplace import Laplace

TIGHT = 3e-5
"""Relative width of any read of the contours here; the phantom alone costs a few 1e-6."""


def made_for(pld: rz.Pld, t: float) -> ManyAtoms | None:
    return parameters.tuned_many(pld.terms, pld._evaluator._moments, t)


def law_of(pld: rz.Pld) -> Law:
    total = Law()
    for factor, n in pld.terms.items():
        if isinstance(factor, Laplace):
            total = total + Law(laplaces=((oracles.real(factor.top), n),))
        else:
            total = total + Law(oracles.approximate_dp(factor.eps).power(n))
    return total


def different(count: int, seed: int = 0, least: float = 0.05) -> list[rz.Pld]:
    """Laplaces, and a response in place of every fifth."""
    eps = np.random.default_rng([71, seed]).uniform(least, 3.0 * least, count).tolist()
    return [
        rz.pure_dp(e) if place % 5 == 4 else rz.laplace(scale=1.0 / e)
        for place, e in enumerate(eps)
    ]


SUMS = [
    3 * rz.laplace(scale=1.7) + 4 * rz.laplace(scale=2.3) + 5 * rz.laplace(scale=3.1),
    9 * rz.laplace(scale=4.0) + 7 * rz.laplace(scale=5.5) + rz.laplace(scale=9.0),
    6 * rz.pure_dp(0.25) + 4 * rz.laplace(scale=2.5) + rz.pure_dp(0.11),
    sum(different(10, seed=1, least=0.2)),
]


@pytest.mark.parametrize("pld", SUMS)
def test_reads_contain_closed_forms(pld):
    law, top = law_of(pld), pld._evaluator._top
    for t in (0.85 * top, 0.93 * top, 0.99 * top):
        truth = law.delta(t)
        made = made_for(pld, t)
        assert made is not None
        lo, hi = made.at(t)
        assert oracles.agrees(Interval(lo, hi), truth)
        # Next to an atom that weighs much a phantom costs `0.4 τ` instead of its square.
        assert hi - lo <= (TIGHT + made.line.tau * made.line.lam) * hi
        # It may be read elsewhere: wider, and still right.
        for other in (0.5 * t, 0.97 * t):
            assert oracles.agrees(Interval(*made.at(other)), law.delta(other))


def test_values_at_nodes():
    """Each within what is charged for it."""
    for count in (30, 40):
        queries = different(count)
        pld = sum(queries) + 2 * queries[3]
        one, terms = made_for(pld, 2.4), pld.terms
        assert one is not None
        lam, tau = mpf(one.line.lam), mpf(one.line.tau)
        places = np.random.default_rng(72).integers(one.line.count, size=12).tolist()
        for k in (0, 1, *places):
            s = mp.mpc(lam, k * mpf(one.line.step))
            truth = _transform(terms, s) / _transform(terms, lam)
            truth *= mp.exp(tau**2 * (s * (s + 1) - lam * (lam + 1)) / 2)
            top = mp.fsum(n * oracles.real(f.top) for f, n in terms.items())
            truth *= mp.exp(-mp.mpc(0, 1) * s.imag * top)
            wrong = one.wrong[0] + one.wrong[1] * float(s.imag)
            assert abs(truth - complex(one.values[k])) <= wrong
        assert abs(one.top[0] + mpf(one.top[1]) - top) <= 3e-16 * top
        log_m = mp.log(_transform(terms, lam)).real + tau**2 * lam * (lam + 1) / 2
        assert abs(log_m - one.log_m) <= one.log_m_error


def _transform(terms, s):
    total = mpf(1)
    for factor, n in terms.items():
        e = oracles.real(factor.top)
        if isinstance(factor, Laplace):
            total *= oracles._laplace_transform(e, s) ** n
        else:
            total *= ((mp.exp(s * e) + mp.exp(-(s + 1) * e)) / (1 + mp.exp(-e))) ** n
    return total


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.integers(13, 30), st.floats(0.5, 0.97))
def test_any_read_meets_the_array(seed, count, share):
    pld = sum(different(count, seed, least=0.1))
    t = share * pld._evaluator._top
    found, other = pld.delta_bounds(t), pld.delta_bounds(np.array([t]), accuracy=1e-4)
    assert found.lo <= other.hi[0] and other.lo[0] <= found.hi
    if pld._evaluator.single(t) is not None:
        assert found.width <= TIGHT * found.hi


def test_nothing_past_the_largest_loss():
    pld = sum(different(20))
    assert pld.delta(0.8 * pld._evaluator._top) > 0.0
    assert pld._evaluator.single(0.8 * pld._evaluator._top) is not None
    assert pld.delta_bounds(1.001 * pld._evaluator._top) == Interval(0.0, 0.0)


def test_where_other_ways_are_better():
    """Few kinds, a curve that is not small, and laws of other kinds are read by contours."""
    assert sum(different(40, least=0.5))._evaluator.single(0.1) is None
    assert sum(different(9))._evaluator.single(0.5) is None
    pld = sum(different(20))
    assert pld._evaluator.single(1.5) is not None
    for query in (rz.gaussian(sigma=9.0), rz.bounded_range(0.1), rz.approximate_dp(0.1, 1e-9)):
        assert (pld + query)._evaluator.single(1.5) is None
        assert (pld + query).delta(1.5) > pld.delta_bounds(1.5).lo


def test_huge_counts():
    """Errors of values that add up to more than they are worth make a read that says nothing."""
    pld = sum(different(13)) * 10**6
    made = made_for(pld, 3e5)
    for t in (2.9e5, 3e5):
        if made is not None:
            lo, hi = made.at(t)
            assert 0.0 <= lo <= hi <= 1.0 and not math.isnan(hi)
    found = pld.delta_bounds(3e5)
    assert 0.0 <= found.lo <= found.hi <= 1.0
