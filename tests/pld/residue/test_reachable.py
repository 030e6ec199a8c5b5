"""Costs under a Gaussian budget that is read only from some point on."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

import residua as rz
from residua.pld.residue.reachable import cost_from

FAMILIES = {
    "response": rz.pure_dp,
    "laplace": lambda e: rz.laplace(scale=1.0 / e),
    "bounded range": rz.bounded_range,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cost_suffices_from_there_on_and_hardly_less_would_do(family: str) -> None:
    rng = random.Random(f"reachable {family}")
    found = 0
    for _ in range(60):
        eps, start = 10.0 ** rng.uniform(-1.5, 0.5), Fraction(10.0 ** rng.uniform(-1.5, 0.5))
        v = Fraction(10.0 ** rng.uniform(-2.0, 1.0))
        loss = FAMILIES[family](eps)
        cost = cost_from(v, loss, start)
        if cost is None or cost == v:
            continue
        found += 1
        assert 0 < cost < v
        left, budget = rz.gaussian(mu=float(v - cost) ** 0.5), rz.gaussian(mu=float(v) ** 0.5)
        for share in (1.0, 1.1, 1.5, 3.0, 10.0):
            t = float(start) * share
            assert (loss + left).delta_bounds(t).lo <= budget.delta_bounds(t).hi * (1 + 1e-9)
        less = rz.gaussian(mu=float(v - cost * Fraction(997, 1000)) ** 0.5)
        at = float(start)
        assert (loss + less).delta_bounds(at).hi > budget.delta_bounds(at).lo
    assert found >= 10


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cost_is_at_most_that_on_the_whole_line(family: str) -> None:
    rng = random.Random(f"whole line {family}")
    for _ in range(40):
        v = Fraction(10.0 ** rng.uniform(-2.0, 1.0))
        loss = FAMILIES[family](float(v) ** 0.5 * rng.uniform(0.05, 0.7))
        whole = rz.gdp_residue_cost(v, loss)
        cost = cost_from(v, loss, Fraction(rng.uniform(0.01, 1.0)))
        assert whole is not None and cost is not None
        # The list above the law costs up to a thousandth.
        assert float(cost) <= whole.hi * 1.001


def test_other_losses_and_other_places_have_no_such_cost() -> None:
    v = Fraction(1)
    for loss in (rz.gaussian(mu=0.5), 2 * rz.pure_dp(0.1), rz.approximate_dp(0.1, 1e-3)):
        assert cost_from(v, loss, Fraction(1)) is None
    assert cost_from(v, rz.pure_dp(0.1), Fraction(0)) is None
    assert cost_from(Fraction(0), rz.pure_dp(0.1), Fraction(1)) is None
