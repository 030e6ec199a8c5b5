"""Decisions that took minutes or gigabytes: what makes them cheap, and that it stays proven."""

import numpy as np
import pytest

import residua as rz
from residua import mechanisms as m
from residua.errors import TooExpensive
from residua.filters.noise import least_noise_within
from residua.pld.discretise import regions
from residua.pld.residue import gdp_parameter, slack
from residua.work_limit import OPERATIONS, measure_work, work


def test_a_gdp_parameter_from_above_refutes_nothing(monkeypatch):
    """Two Laplaces of scale 0.05 took minutes, for a lower bound that no filter uses."""

    def refuted(*_):
        raise AssertionError("the lower bound was worked out")

    monkeypatch.setattr(gdp_parameter, "_refuted", refuted)
    assert rz.gdp_parameter(2 * rz.laplace(0.0501)) == pytest.approx(11.18, abs=0.01)


@pytest.mark.parametrize("loss", [2 * rz.laplace(2.0), rz.laplace(1.0) + rz.gaussian(mu=0.5)])
def test_the_upper_end_is_that_of_the_bounds(loss):
    bounds = gdp_parameter.gdp_parameter_bounds(loss)
    assert bounds.hi == rz.gdp_parameter(loss)
    assert 0.99 * bounds.hi <= bounds.lo <= bounds.hi
    eps = np.linspace(0.0, 3.0, 13)
    assert np.all(loss.delta_bounds(eps).lo <= rz.gaussian(mu=bounds.hi).delta_bounds(eps).hi)
    assert not np.all(
        loss.delta_bounds(eps).hi <= rz.gaussian(mu=0.99 * bounds.lo).delta_bounds(eps).lo
    )


def test_some_of_many_orders_dominate_all_of_them(monkeypatch):
    orders = np.linspace(1.1, 60.0, 64)
    bounds = 0.02 * orders + 0.001 * np.sin(7.0 * orders)
    below = rz.mechanisms.Rdp(tuple(orders), tuple(bounds)).pld(side="below")
    monkeypatch.setattr(regions, "_MOST", 16)
    some = rz.pld.constructors.from_exact(regions.largest(orders, bounds, "above"))
    assert below <= some
    monkeypatch.setattr(regions, "_MOST", 256)
    every = rz.pld.constructors.from_exact(regions.largest(orders, bounds, "above"))
    eps = np.linspace(0.0, 2.0, 9)
    assert np.all(some.delta(eps) >= every.delta(eps) * (1.0 - 1e-9))
    assert np.all(some.delta(eps) <= 1.2 * every.delta(eps) + 1e-12)


def test_tents_above_a_long_list_cost_little_more_and_are_proven(monkeypatch):
    loss, eta = m.DiscreteGaussian(sigma=20.0).pld(), 1e-9
    exact = slack.slack_cost(1.0, loss, eta)
    monkeypatch.setattr(slack, "MANY", 64)
    slack._cost.cache_clear()  # type: ignore[attr-defined]
    short = slack.slack_cost(1.0, loss, eta)
    slack._cost.cache_clear()  # type: ignore[attr-defined]
    assert exact.hi < short.hi < 1.001 * exact.hi
    left = rz.gaussian(mu=np.sqrt(1.0 - short.hi) * (1.0 - 1e-9))
    budget = rz.gaussian(mu=1.0) + rz.approximate_dp(0.0, eta)
    eps = np.linspace(0.0, 5.0, 11)
    assert np.all((left + loss).delta_bounds(eps).lo <= budget.delta_bounds(eps).hi)


def test_what_would_fit_is_found_in_a_bounded_search():
    """One query next to the edge took forty times the work of the decision, and no advice came."""
    filter = rz.ApproximateGdpResidueFilter(mu=1.0, delta=1e-6)
    asked = m.PoissonSampled(m.Laplace(scale=0.01), sampling_rate=0.1)
    decision = filter.check(asked)
    decided = OPERATIONS - decision.work_left
    found, operations, _ = measure_work(lambda: decision.largest)
    assert operations < max(OPERATIONS // 4, 8 * decided) + OPERATIONS // 16
    assert found.mechanism.scale == pytest.approx(0.2154, rel=2e-3)
    assert repr(found) in decision.reason and filter.request(found).admitted


def test_a_search_that_ends_early_names_what_was_found_to_fit():
    def fits(query):
        work(1000)
        if 3.99 < query.sigma < 4.0:
            work(OPERATIONS)
        return query.sigma >= 4.0

    def search(operations):
        return least_noise_within(m.Gaussian(sigma=0.3), fits, operations)

    assert 4.0 <= search(OPERATIONS // 8).sigma < 4.1, "six digits, and checked"
    assert len(repr(search(OPERATIONS // 8).sigma)) <= 7
    assert isinstance(search(10), TooExpensive), "nothing was found by then"
    assert least_noise_within(m.Gaussian(sigma=0.3), lambda _: False, OPERATIONS) is None
