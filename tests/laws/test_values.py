"""PLDs are values: frozen, hashable, picklable, and their `repr` pastes back."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import residua as rz
from catalogue import FINITE, NAMES, PAIRS, READ_AT, case, overlap


@pytest.mark.parametrize("name", NAMES)
def test_repr_pastes_back(name):
    L = case(name).pld
    again = eval(repr(L), dict(vars(rz)) | {n: getattr(rz, n) for n in rz.__all__})  # type: ignore[attr-defined]
    assert isinstance(again, rz.Pld)
    for t in READ_AT:
        assert overlap(again.delta_bounds(t), L.delta_bounds(t))
    if name not in FINITE and "finite" not in name and name != "mixed":
        assert again == L


@pytest.mark.parametrize("name", NAMES)
def test_repr_is_short(name):
    assert len(repr(case(name).pld)) < 400
    assert "\n" not in repr(case(name).pld)


def test_repr_reads_as_written():
    L = rz.gaussian(mu=1.0) + 3 * rz.laplace(scale=2.0)
    assert repr(L) == "gaussian(mu=1.0) + 3 * laplace(scale=2.0)"
    assert repr(rz.identity()) == "identity()"
    assert repr(rz.pure_dp(0.5)) == "pure_dp(0.5)"
    assert repr(rz.approximate_dp(0.5, 0.25)) == "approximate_dp(0.5, 0.25)"


@pytest.mark.parametrize("name", NAMES)
def test_frozen(name):
    L = case(name).pld
    before = L.delta_bounds(0.5)
    for attribute in ("terms", "gaussian", "anything"):
        with pytest.raises(AttributeError):
            setattr(L, attribute, None)
        with pytest.raises(AttributeError):
            delattr(L, attribute)
    assert L.delta_bounds(0.5) == before


@pytest.mark.parametrize("name", FINITE)
def test_arrays_handed_out_do_not_lead_back_in(name):
    L = case(name).pld
    before = L.delta_bounds(0.5)
    for array in (*L.pair(), *L.hockey_stick_points(), *L.tradeoff_points()):
        if array.flags.writeable:
            array[...] = 0.25
    assert L.delta_bounds(0.5) == before


def test_arrays_handed_in_are_copied():
    p, q = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    L = rz.from_pair(p, q)
    before = L.delta_bounds(0.0)
    p[:] = [0.9, 0.1]
    q[:] = [0.1, 0.9]
    assert L.delta_bounds(0.0) == before
    assert rz.compare(L, rz.from_pair([0.5, 0.5], [0.25, 0.75])).verdict == rz.Order.EQUAL


@pytest.mark.parametrize("name", NAMES)
def test_pickle_and_copy(name):
    L = case(name).pld
    for again in (pickle.loads(pickle.dumps(L)), copy.copy(L), copy.deepcopy(L)):
        assert again == L
        assert hash(again) == hash(L)
        assert overlap(again.delta_bounds(0.5), L.delta_bounds(0.5))


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_different_entries_are_different_values(a, b):
    A, B = case(a).pld, case(b).pld
    assert A != B
    assert {A: 1, B: 2}[A] == 1


@pytest.mark.parametrize("name", NAMES)
def test_equality_is_a_value_not_a_guess(name):
    L = case(name).pld
    assert L == L
    assert L != "something else"
    assert (L == 1) is False


def test_equal_however_it_was_built():
    assert rz.gaussian(mu=0.5) == rz.gaussian(sigma=2.0)
    assert hash(rz.gaussian(mu=0.5)) == hash(rz.gaussian(sigma=2.0))
    assert rz.gaussian(sigma=4.0, sensitivity=2.0) == rz.gaussian(mu=0.5)
    assert rz.pure_dp(0.5) == rz.approximate_dp(0.5, 0.0)
    assert rz.pure_dp(0.0) == rz.identity()
    assert rz.gaussian(mu=0.0) == rz.identity()
    first = rz.from_pair([0.5, 0.25, 0.25], [0.25, 0.25, 0.5])
    assert first == rz.from_pair([0.25, 0.5, 0.25], [0.25, 0.25, 0.5])
    assert hash(first) == hash(rz.from_pair([0.25, 0.5, 0.25], [0.25, 0.25, 0.5]))
