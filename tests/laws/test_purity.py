"""A read is a pure function of the PLD and the number: types, order and earlier reads do not count.

`A` and `B` below are equal PLDs built apart, so nothing that one of them cached helps the other.
"""

from __future__ import annotations

import fractions
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import catalogue
import residua as rz
from catalogue import CASES
from residua.bounds import Interval
from residua.pld.order.compare import dominated

MORE: dict[str, Callable[[], rz.Pld]] = {
    "30 different laplaces": lambda: sum(rz.laplace(scale=9.0 + 0.37 * k) for k in range(30)),
    "20 different responses": lambda: sum(rz.pure_dp(0.1 + 0.01 * k) for k in range(20)),
    "10 different sampled": lambda: sum(
        rz.subsampled_gaussian(1.0 + 0.05 * k, 0.01 + 0.001 * k) for k in range(10)
    ),
    "200 laplaces and a gaussian": lambda: 200 * rz.laplace(scale=40.0) + rz.gaussian(mu=0.5),
    "3 bounded ranges": lambda: 3 * rz.bounded_range(0.5),
}
PLDS: dict[str, Callable[[], rz.Pld]] = {
    **{name: (lambda make=make: make().pld) for name, make in CASES.items()},
    **MORE,
}
READS: dict[str, tuple[float, ...]] = {
    "hockey_stick_bounds": (1.0, 2.0, 16.0),
    "delta_bounds": (0.0, 1.0, 4.0),
    "epsilon_bounds": (0.0, 0.25, 2.0**-20),
    "tradeoff_bounds": (0.0, 0.25, 1.0),
    "renyi_bounds": (1.0, 2.0, 16.0),
}
TYPES: tuple[Callable[[float], Any], ...] = (
    float,
    np.float64,
    np.float32,
    np.longdouble,
    lambda x: np.array(x),
    fractions.Fraction,
    lambda x: int(x) if x == int(x) else x,
    lambda x: np.int64(x) if x == int(x) else x,
)


def read(pld: rz.Pld, name: str, number: Any) -> Interval:
    return getattr(pld, name)(number)


@pytest.mark.parametrize("name", PLDS)
def test_types_of_numbers_do_not_count(name):
    for read_name, numbers in READS.items():
        for number in numbers:
            wanted = read(PLDS[name](), read_name, number)
            assert type(wanted.lo) is type(wanted.hi) is float
            for kind in TYPES:
                found = read(PLDS[name](), read_name, kind(number))
                assert found == wanted, (read_name, kind, number)
                assert type(found.lo) is type(found.hi) is float


@pytest.mark.parametrize("name", PLDS)
def test_repeated_and_reordered_reads_agree_exactly(name):
    """The same reads forwards on one PLD and backwards, twice, on an equal one."""
    A, B = PLDS[name](), PLDS[name]()
    wanted = [(r, x) for r, numbers in READS.items() for x in numbers]
    first = {at: read(A, *at) for at in wanted}
    for at in [*reversed(wanted), *wanted]:
        assert read(B, *at) == first[at], at
        assert read(A, *at) == first[at], at


earlier = st.lists(
    st.one_of(
        st.tuples(st.just("delta_bounds"), st.floats(-1, 6)),
        st.tuples(st.just("epsilon_bounds"), st.floats(1e-12, 0.5)),
        st.tuples(st.just("tradeoff_bounds"), st.floats(0, 1)),
        st.tuples(st.just("delta_bounds"), st.lists(st.floats(-1, 6), min_size=1, max_size=3)),
    ),
    max_size=3,
)


@settings(max_examples=60)
@given(st.sampled_from(list(PLDS)), earlier, st.floats(-1, 6), st.booleans())
def test_earlier_reads_do_not_count(name, before, eps, grow):
    """Neither those of the PLD itself nor, where it is a sum, those of its first part."""
    extra = rz.laplace(scale=7.0)
    A = PLDS[name]()
    for one in before:
        read(A, *one)
        read(A.reverse(), *one)
    if grow:
        assert (A + extra).delta_bounds(eps) == (PLDS[name]() + extra).delta_bounds(eps)
    else:
        assert A.delta_bounds(eps) == PLDS[name]().delta_bounds(eps)


@pytest.mark.parametrize("name", PLDS)
def test_a_point_in_an_array_agrees_to_the_stated_accuracy(name):
    """Both enclose the truth, and neither end is off by more than the accuracy in `eps`."""
    pld, points = PLDS[name](), [0.0, 0.5, 1.0, 4.0]
    together, finer = pld.delta_bounds(points), 1.01e-3
    for k, eps in enumerate(points):
        alone = pld.delta_bounds(eps)
        assert alone.lo <= together.hi[k] and together.lo[k] <= alone.hi
        if eps > finer:
            assert together.hi[k] <= pld.delta_bounds(eps - finer).hi * (1 + 1e-6) + 1e-290


# -- comparisons ----------------------------------------------------------------------------

COMPARED = ("20 subsampled", "approximate_dp", "gaussian", "gaussian + laplace", "5 laplace")
PAIRS = list(permutations((*COMPARED, "3 bounded ranges"), 2))


@cache
def comparison(first: str, second: str) -> rz.Comparison:
    """The comparison of two PLDs that were never read before."""
    return rz.compare(PLDS[first](), PLDS[second]())


@settings(max_examples=25)
@given(st.sampled_from(PAIRS), earlier, earlier)
def test_earlier_reads_change_no_comparison(pair, before, before_other):
    A, B = (PLDS[name]() for name in pair)
    for pld, reads in ((A, before), (A.reverse(), before), (B, before_other)):
        for one in reads:
            read(pld, *one)
    assert rz.compare(A, B) == comparison(*pair)
    assert dominated(B, A) == dominated(*(PLDS[name]() for name in reversed(pair)))


def test_a_read_leaves_no_contours_behind():
    A, B = PLDS["5 laplace"](), PLDS["3 bounded ranges"]()
    rz.compare(A, B)
    for pld in (A, B, A.reverse(), B.reverse()):
        pld.delta_bounds([0.1, 0.5, 2.0])
        pld.epsilon_bounds(1e-6)
        pld.tradeoff_bounds(0.1)
        assert pld._evaluator.contours == ()


# -- the order of composition ----------------------------------------------------------------

PARTS: dict[str, tuple[Callable[[], rz.Pld], ...]] = {
    "pairs": (
        lambda: 2 * rz.laplace(scale=9.0),
        lambda: 3 * rz.pure_dp(0.11),
        lambda: 2 * rz.bounded_range(0.07),
    ),
    "gaussians": tuple(lambda k=k: rz.gaussian(sigma=3.0 + 0.7 * k) for k in range(5)),
    "all kinds": (
        lambda: rz.subsampled_gaussian(1.3, 0.01),
        lambda: rz.subsampled_gaussian(1.1, 0.02, "add"),
        lambda: rz.gaussian(sigma=7.0),
        lambda: rz.laplace(scale=30.0),
        lambda: rz.from_pair([0.5, 0.3, 0.2], [0.3, 0.3, 0.4]),
        lambda: rz.approximate_dp(0.05, 1e-9),
    ),
    "lists": (
        lambda: rz.from_pair([0.5, 0.3, 0.2], [0.45, 0.32, 0.23]),
        lambda: rz.from_pair([0.6, 0.3, 0.1], [0.55, 0.33, 0.12]),
        lambda: 2 * rz.pure_dp(0.03),
    ),
}
FILTERS: dict[str, Callable[[], rz.Filter]] = {
    "gdp": lambda: rz.GdpResidueFilter(mu=4.0),
    "approximate gdp": lambda: rz.ApproximateGdpResidueFilter(mu=4.0, delta=1e-5),
}


def composed(name: str, backwards: bool) -> rz.Pld:
    parts = PARTS[name]
    return sum(make() for make in (reversed(parts) if backwards else parts))


def digits(name: str, backwards: bool) -> dict[str, str]:
    """Every bit of what is read of a composition and spent on it."""
    pld = composed(name, backwards)
    found = {
        f"{read_name} {x}": repr(read(pld, read_name, x))
        for read_name, numbers in READS.items()
        for x in numbers
    }
    for which, make in FILTERS.items():
        rule = make()
        answer = rule.spend(pld)
        found[which] = repr((answer, rule.remaining))
    return found


@pytest.mark.parametrize("name", PARTS)
def test_the_order_of_composition_does_not_count(name):
    """In this process, with what the first order left in caches, and in two that start cold."""
    forwards, backwards = (composed(name, back) for back in (False, True))
    assert forwards == backwards
    assert hash(forwards) == hash(backwards)
    wanted = digits(name, False)
    assert digits(name, True) == wanted
    for back in (False, True):
        assert cold_digits(name, back) == wanted


def cold_digits(name: str, backwards: bool) -> dict[str, str]:
    """`digits` of a new process, whose hashes are seeded otherwise."""
    code = f"import json, test_purity; print(json.dumps(test_purity.digits({name!r}, {backwards})))"
    paths = [str(Path(__file__).parent), str(Path(catalogue.__file__).parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_equal_variances_read_the_same():
    one, two = rz.gaussian(mu=3.0) + rz.gaussian(mu=4.0), rz.gaussian(mu=5.0)
    assert one == two
    for name, numbers in READS.items():
        for x in numbers:
            assert read(one, name, x) == read(two, name, x)


@pytest.mark.parametrize("name", ["lists", "all kinds"])
def test_a_copy_through_pickle_reads_the_same(name):
    pld = composed(name, backwards=False)
    again = pickle.loads(pickle.dumps(pld))
    assert again == pld
    assert again.delta_bounds(0.3) == pld.delta_bounds(0.3)
