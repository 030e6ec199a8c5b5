"""The least noise of which so many more fit."""

from __future__ import annotations

import dataclasses

import pytest
from mpmath import mp, mpf

import residua as rz
from residua import mechanisms as m
from residua.errors import ArgumentError


def test_one_more() -> None:
    filter = rz.PureFilter(eps=1.0)
    filter.request(rz.pure_dp(0.6))
    assert rz.least_noise(filter, rz.pure_dp(5.0)) == rz.pure_dp(0.4)
    assert rz.least_noise(filter, m.Laplace(scale=1.0)) == m.Laplace(scale=2.5)


@pytest.mark.parametrize(
    ("filter", "query", "field"),
    [
        (rz.ZcdpFilter(rho=0.5), m.Gaussian(sigma=1.0), "sigma"),
        (rz.RenyiFilter(alpha=4.0, rho=0.2), m.Laplace(scale=1.0), "scale"),
        (rz.ApproximateZcdpFilter(1.0, 1e-6), m.Gaussian(sigma=100.0), "sigma"),
        (rz.GdpResidueFilter(mu=1.0), m.Laplace(scale=1.0), "scale"),
    ],
)
@pytest.mark.parametrize("n", [1, 52])
def test_fits_so_often_and_little_less_does_not(
    filter: rz.Filter, query: m.Mechanism, field: str, n: int
) -> None:
    found = rz.least_noise(filter, query, n)
    assert isinstance(found, type(query))
    assert rz.how_many(filter, found, most=n) == n
    less = dataclasses.replace(found, **{field: getattr(found, field) * (1 - 1e-5)})
    assert rz.how_many(filter, less, most=n) < n


def test_a_thousand_million_more() -> None:
    """Costs are hardly above those of an unlimited budget, `8 (x - ln(1 + x))` for `x = e/2`."""
    found = rz.least_noise(rz.GdpResidueFilter(mu=1.0), m.Laplace(scale=1.0), 10**9)
    assert isinstance(found, m.Laplace)
    x = mpf(1) / (2 * mpf(found.scale))
    with mp.workdps(40):
        needed = float(8 * (x - mp.log1p(x))) * 1e9
    assert 1.0 - 1e-5 < needed < 1.0
    with pytest.raises(ArgumentError, match="got 10000000000"):
        rz.least_noise(rz.ApproximateGdpResidueFilter(1.0, 1e-6), m.Laplace(scale=1.0), 10**10)


def test_family_is_a_function() -> None:
    filter = rz.BasicFilter(eps=1.0, delta=1e-6)
    found = rz.least_noise(filter, lambda noise: rz.laplace(scale=noise, sensitivity=3.0), 5)
    assert found == rz.laplace(scale=15.0, sensitivity=3.0)


def test_whole_rounds_of_a_list() -> None:
    filter = rz.PureFilter(eps=1.0)
    found = rz.least_noise(filter, [rz.pure_dp(0.3), rz.laplace(scale=10.0)], 5)
    assert isinstance(found, tuple) and len(found) == 2
    assert rz.how_many(filter, found) == 10
    assert found == (rz.pure_dp(0.15), rz.laplace(scale=20.0))


def test_none_where_nothing_fits() -> None:
    empty = rz.PureFilter(eps=1.0)
    empty.request(rz.pure_dp(1.0))
    assert rz.least_noise(empty, rz.pure_dp(0.1)) is None
    assert rz.least_noise(rz.PureFilter(1.0), rz.gaussian(mu=1.0)) is None
    assert rz.least_noise(rz.PureFilter(1.0), rz.from_atoms([0.1], [1.0])) is None
    assert rz.least_noise(rz.PureFilter(1.0), lambda noise: rz.gaussian(sigma=noise)) is None


def test_nothing_is_spent_and_states_are_taken() -> None:
    filter = rz.PureFilter(eps=1.0)
    full = filter.state
    filter.request(rz.pure_dp(0.5))
    assert rz.least_noise(filter, rz.pure_dp(1.0), 5) == rz.pure_dp(0.1)
    assert rz.least_noise(filter, rz.pure_dp(1.0), 5, state=full) == rz.pure_dp(0.2)
    assert len(filter.history) == 1


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: rz.least_noise(None, rz.pure_dp(1.0)), "filter must be a filter, got None"),
        (lambda: rz.least_noise(rz.PureFilter(1.0), 3), "query must be a Pld or a mechanism"),
        (lambda: rz.least_noise(rz.PureFilter(1.0), rz.pure_dp(1.0), 1.5), "n must be"),
        (lambda: rz.least_noise(rz.PureFilter(1.0), lambda noise: noise), r"mechanism_family\("),
    ],
)
def test_bad_arguments_are_named(call: object, said: str) -> None:
    with pytest.raises(rz.ResiduaError, match=said):
        call()


def test_answers_at_random() -> None:
    filter = rz.PureFilter(eps=1.0)
    asked = m.RandomizedResponse(noise_parameter=0.01)
    refused = filter.check(asked, relation="replace-one")
    fit = refused.largest
    assert not refused.admitted and isinstance(fit, m.RandomizedResponse)
    assert filter.check(fit, relation="replace-one").admitted
    assert fit.noise_parameter is not None and fit.noise_parameter > 0.01
    less = m.RandomizedResponse(noise_parameter=fit.noise_parameter - 1e-5)
    assert not filter.check(less, relation="replace-one").admitted


def test_noise_for_none_is_not_a_question() -> None:
    with pytest.raises(rz.ArgumentError, match="n must be at least 1, got 0"):
        rz.least_noise(rz.PureFilter(1.0), rz.pure_dp(0.1), 0)
