"""What a comparison proves is a function of the two values, whatever was read of them before."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import mixture_oracles as slow
import residuum as rz
from catalogue import low
from residuum.pld.lately import Lately
from residuum.pld.order import dominated
from residuum.pld.tuning import tuned

PLDS = {
    "10 remove": 10 * rz.subsampled_gaussian(2.0, 0.05),
    "2 add": 2 * rz.subsampled_gaussian(1.0, 0.25, "add"),
    "R": rz.approximate_dp(0.5, 0.01),
    "G": rz.gaussian(mu=0.5),
    "G + laplace": rz.gaussian(mu=0.5) + rz.laplace(2.0),
    "5 laplace": 5 * rz.laplace(4.0),
    "3 B": 3 * rz.bounded_range(0.5),
}
PAIRS = list(permutations(PLDS, 2))


def fresh(name: str) -> rz.Pld:
    return rz.Pld(PLDS[name].gaussian, PLDS[name].terms)


EXPECTED: dict[tuple[str, str], rz.Comparison] = {}


def expected(a: str, b: str) -> rz.Comparison:
    """The comparison of two values never read before."""
    if (a, b) not in EXPECTED:
        EXPECTED[a, b] = rz.compare(fresh(a), fresh(b))
    return EXPECTED[a, b]


accuracies = st.sampled_from([None, 1e-2, 1e-5])
reads = st.one_of(
    st.tuples(st.just("delta_bounds"), st.floats(-1, 4), accuracies),
    st.tuples(st.just("epsilon_bounds"), st.floats(1e-12, 0.5), accuracies),
    st.tuples(st.just("compare"), st.sampled_from(list(PLDS)), st.booleans()),
)


def read(pld: rz.Pld, what: str, at: object, how: object) -> None:
    if what == "compare":
        pair = (pld, fresh(at)) if how else (fresh(at), pld)
        rz.compare(*pair)
    else:
        getattr(pld, what)(at, how)


@settings(max_examples=25)
@given(st.sampled_from(PAIRS), st.lists(st.tuples(st.integers(0, 3), reads), max_size=3))
def test_earlier_reads_change_no_comparison(pair, before):
    A, B = map(fresh, pair)
    for i, one in before:
        read((A, A.reverse(), B, B.reverse())[i], *one)
    assert rz.compare(A, B) == expected(*pair)
    assert dominated(B, A) == dominated(*map(fresh, pair[::-1]))


@pytest.mark.parametrize("other", ["R", "G + laplace", "3 B"])
def test_contours_of_a_parent_change_no_comparison(other):
    for eps in (0.1, 2.0):
        parent = 200 * rz.laplace(9.0) + rz.gaussian(mu=0.5)
        parent.delta_bounds([eps, 3 * eps])
        child = parent + rz.laplace(2.0)
        assert child._heritage is not None
        twin = rz.Pld(child.gaussian, child.terms)
        assert rz.compare(child, fresh(other)) == rz.compare(twin, fresh(other))


def test_a_comparison_leaves_no_contours_behind():
    A, B = fresh("5 laplace"), fresh("3 B")
    rz.compare(A, B)
    for pld in (A, B, A.reverse(), B.reverse()):
        assert pld._evaluator.contours == ()
    assert A.delta_bounds(0.3) == fresh("5 laplace").delta_bounds(0.3)


def test_contours_made_lately():
    """The last ones are found, as far as they are few and short."""
    made = tuned(fresh("5 laplace")._evaluator._moments, 0.25, 1e-3)
    lately = Lately()
    for k in range(100):
        lately.keep((float(k), 1e-3, 1.0, 1.0), made)
    assert lately.find((99.0, 1e-3, 1.0, 1.0)) is made
    assert lately.find((99.0, 1e-3, 1.0, 4.0)) is None
    assert lately.find((0.0, 1e-3, 1.0, 1.0)) is None
    long = replace(made, line=replace(made.line, count=1 << 19))
    lately.keep((0.5, 1e-3, 1.0, 1.0), long)
    assert lately.find((0.5, 1e-3, 1.0, 1.0)) is None


# -- where no contour serves ---------------------------------------------------------------


@pytest.mark.parametrize(("sigma", "rate", "n"), [(1.0, 0.01, 2), (2.0, 0.05, 10)])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.97])
def test_next_to_the_largest_loss_the_curve_is_bounded_by_moments(sigma, rate, n, share):
    """`A(r) M(r)^n e^{-rt}` at `r = 100`, in mpmath; and never above the value at 0."""
    pld = n * rz.subsampled_gaussian(sigma, rate, "add")
    law = slow.subsampled(sigma, rate, "add")
    t, r = share * float(n * law.top), mpf(100)
    peak = r**r / (1 + r) ** (1 + r)
    bound = peak * mp.exp(n * law.log_moment(r) - r * mpf(t))
    assert pld.delta(t) <= bound * (1 + mpf("1e-3"))
    assert pld.delta(t) <= pld.delta(0.0)


@pytest.mark.parametrize("t", [0.3, 0.4])
def test_that_bound_is_above_the_curve(t):
    pld = 10 * rz.subsampled_gaussian(2.0, 0.05, "add")
    law = slow.Blend(((slow.subsampled(2.0, 0.05, "add"), 10),))
    (bound,) = pld._evaluator._above(np.array([t]))
    assert low(law.delta(t)) <= bound
    assert bound <= pld._evaluator._above(np.array([0.9 * t]))[0]
