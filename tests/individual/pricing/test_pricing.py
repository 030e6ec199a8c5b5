"""Columns against one filter object per subject: the slow, exact twin."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import residua as rz
from residua.filters.amounts import Left, written
from residua.individual.cost_model import IndividualFilter, pricing_for, units_of
from residua.individual.pricing import default_levels, quotient

M = rz.mechanisms
FILTERS: list[IndividualFilter] = [
    rz.PureFilter(1.0),
    rz.ZcdpFilter(0.5),
    rz.GdpFilter(1.0),
    rz.GdpResidueFilter(1.0),
]


def twin(filter: IndividualFilter, left: Fraction, asked: object) -> Fraction | None:
    """What the filter itself leaves, exactly; None if it refuses."""
    decision = filter.decide(Left(filter.fingerprint, (left,)), asked)
    return decision.state.left[0] if decision.admitted else None  # type: ignore[attr-defined]


@pytest.mark.parametrize("filter", FILTERS, ids=lambda f: f.kind)
@pytest.mark.parametrize("column", ["nu", "eps", "gaussian", "laplace"])
def test_never_better_than_the_filter_itself(filter: IndividualFilter, column: str) -> None:
    if isinstance(filter, rz.PureFilter) and column in ("nu", "gaussian"):
        with pytest.raises(rz.ArgumentError, match="Gaussian noise"):
            pricing_for(filter, "nu", None)
        return
    rng = np.random.default_rng(11)
    mechanism = {"gaussian": M.Gaussian(sigma=3.0), "laplace": M.Laplace(scale=3.0)}.get(column)
    name = "sensitivity" if mechanism else column
    values = np.concatenate([np.round(rng.uniform(0.0, 0.9, 12), 2), rng.uniform(0.0, 1.1, 12)])
    levels = None
    if name != "nu" and not isinstance(filter, rz.PureFilter) and column != "gaussian":
        levels = sorted({v for v in values.tolist() if v > 0.0})
    pricing = pricing_for(filter, name, mechanism, levels)
    units = units_of(filter)
    left = rng.integers(0, units.capacity + 1, values.size)
    after = pricing.charge(left, values)
    closest = 0.0
    for had, has, value in zip(left.tolist(), after.tolist(), values.tolist(), strict=True):
        asked = {
            "nu": lambda v: rz.gaussian(mu=v),
            "eps": lambda v: rz.pure_dp(v),
            "gaussian": lambda v: rz.gaussian(sigma=3.0, sensitivity=v),
            "laplace": lambda v: rz.laplace(scale=3.0, sensitivity=v),
        }[column](value)
        exact = twin(filter, had * units.size, asked)
        if has < 0:
            # Refused by a rounding at most.
            assert exact is None or exact <= Fraction(1, 10**3)
            continue
        assert exact is not None
        assert has * units.size <= exact * (1 + Fraction(1, 2**51)) + Fraction(1, 10**16)
        took, takes = had * units.size - has * units.size, had * units.size - exact
        closest = max(closest, float(took - takes) / max(float(takes), 1e-12))
    assert closest <= 1e-4


@pytest.mark.parametrize("filter", FILTERS, ids=lambda f: f.kind)
@pytest.mark.parametrize("asked", [rz.pure_dp(0.2), M.Laplace(scale=5.0), rz.gaussian(mu=0.3)])
def test_one_query_for_all(filter: IndividualFilter, asked: object) -> None:
    if isinstance(filter, rz.PureFilter) and asked == rz.gaussian(mu=0.3):
        with pytest.raises(rz.ArgumentError, match="unbounded"):
            pricing_for(filter, None, asked)
        return
    pricing = pricing_for(filter, None, asked)
    units = units_of(filter)
    left = np.array([units.capacity, units.capacity // 2, units.capacity // 7, 1000, 0])
    for had, has in zip(left.tolist(), pricing.charge(left, None).tolist(), strict=True):
        exact = twin(filter, had * units.size, asked)
        assert (has < 0) == (exact is None)
        if exact is not None:
            slack = (had * units.size - exact) * Fraction(1, 10**4) + units.size
            assert exact - slack <= has * units.size <= exact


def test_ten_times_a_tenth_is_one() -> None:
    for filter, column, mechanism, loss, times in (
        (rz.PureFilter(1.0), "eps", None, 0.1, 10),
        (rz.PureFilter(1.0), "sensitivity", M.Laplace(scale=10.0), 1.0, 10),
        (rz.PureFilter(1.0), "sensitivity", M.Laplace(scale=2.5), 0.5, 5),
        (rz.GdpFilter(1.0), "nu", None, 0.1, 100),
        (rz.GdpFilter(1.0), "sensitivity", M.Gaussian(sigma=2.0), 0.4, 25),
        (rz.ZcdpFilter(0.5), "nu", None, 0.1, 100),
        # A third is no decimal: its ninth part is rounded up.
        (rz.GdpFilter(1.0), "sensitivity", M.Gaussian(sigma=3.0), 1.0, 8),
    ):
        pricing = pricing_for(filter, column, mechanism)
        left = np.array([pricing.units.capacity])
        count = 0
        while (left := pricing.charge(left, np.array([loss])))[0] >= 0:
            count += 1
        assert count == times


# Capacities just below 9.2e18 units, where the next sum or product would leave 64 bits.
FULL: list[IndividualFilter] = [
    rz.PureFilter(9.19),
    rz.ZcdpFilter(5.0),
    rz.ZcdpFilter(9.19),
    rz.GdpFilter(3.03),
    rz.GdpResidueFilter(3.03),
]


@pytest.mark.parametrize("filter", FULL, ids=repr)
def test_nothing_wraps_around(filter: IndividualFilter) -> None:
    units = units_of(filter)
    left = np.full(11, units.capacity)
    losses = np.array([1e-3, 0.7, 2.1, 3.0, 3.03, 4.28, 4.2871, 6.0, 9.19, 1e3, 1e300])
    column = "eps" if isinstance(filter, rz.PureFilter) else "nu"
    asked = rz.pure_dp if column == "eps" else lambda nu: rz.gaussian(mu=nu)
    after = pricing_for(filter, column, None).charge(left, losses)
    for has, loss in zip(after.tolist(), losses.tolist(), strict=True):
        exact = twin(filter, units.capacity * units.size, asked(loss)) if loss < 1e3 else None
        assert (has < 0) == (exact is None), loss
        assert exact is None or exact - 2 * units.size <= has * units.size <= exact
    if isinstance(filter, rz.GdpResidueFilter):
        shared = pricing_for(filter, None, rz.pure_dp(0.5)).charge(left[:1], None)[0] * units.size
        exact = twin(filter, units.capacity * units.size, rz.pure_dp(0.5))
        assert exact is not None
        took = units.capacity * units.size - exact
        assert exact - took * Fraction(1, 10**4) <= shared <= exact


def test_the_smallest_budgets_and_what_is_far_too_large() -> None:
    for tiny in (1e-10, 1e-21, 1e-30):
        charge = pricing_for(rz.PureFilter(tiny), "eps", None).charge
        left = np.full(4, units_of(rz.PureFilter(tiny)).capacity)
        after = charge(left, np.array([0.0, tiny / 3, 1.5 * tiny, 1.0]))
        assert after[0] == left[0] and 0 < after[1] < left[1] and (after[2:] == -1).all()
    filter = rz.GdpResidueFilter(0.01)
    left = np.array([units_of(filter).capacity])
    assert pricing_for(filter, None, rz.pure_dp(10.0)).charge(left, None).tolist() == [-1]
    by_level = pricing_for(filter, "eps", None, [0.001, 2.0, 16.0])
    after = by_level.charge(np.repeat(left, 3), np.array([0.001, 1.0, 12.0]))
    assert 0 < after[0] < left[0] and (after[1:] == -1).all()


def test_quotients_are_never_below() -> None:
    rng = np.random.default_rng(13)
    losses = np.concatenate([np.round(rng.uniform(0.0, 9.0, 500), 3), rng.uniform(0.0, 9.0, 500)])
    for divisor in (10.0, 2.5, 0.3, 7.0, 1234.5, 1e-3, 3.0000001):
        for loss, found in zip(losses.tolist(), quotient(losses, divisor).tolist(), strict=True):
            exact = written(loss) / written(divisor)
            # A short decimal that is exact, or a binary fraction above.
            assert exact == written(found) or exact <= Fraction(found)
            assert Fraction(found) <= exact * (1 + Fraction(1, 2**48))


def test_rows_do_not_know_of_each_other() -> None:
    """However the rows are split, the bits are the same."""
    rng = np.random.default_rng(12)
    n = 70_001
    for filter, column, mechanism in (
        (rz.GdpResidueFilter(1.0), "nu", None),
        (rz.GdpResidueFilter(1.0), None, rz.pure_dp(0.1)),
        (rz.GdpFilter(1.0), "sensitivity", M.Laplace(scale=4.0)),
    ):
        pricing = pricing_for(filter, column, mechanism)
        left = rng.integers(0, pricing.units.capacity, n)
        loss = None if column is None else rng.uniform(0.0, 0.6, n)
        whole = pricing.charge(left, loss)
        cuts = [0, 1, 17, 2048, 40_000, n]
        parts = [
            pricing.charge(left[a:b], None if loss is None else loss[a:b])
            for a, b in itertools.pairwise(cuts)
        ]
        assert np.array_equal(whole, np.concatenate(parts))


def test_levels_follow_from_the_capacity_alone() -> None:
    levels = default_levels(0.8)
    assert levels.size == 1024 and (np.diff(levels) > 0).all()
    assert levels[-2] < 0.8 <= levels[-1]
    assert (levels[1:] / levels[:-1]).max() <= 65 / 64
