"""Forged states of the target residue filter, as part of a chain and by themselves."""

from __future__ import annotations

import pytest

import residua as rz
from residua import mechanisms as m
from residua.verify import verify_records
from residua.verify.descriptions.mechanisms import StepQuery
from residua.verify.proofs.filters import prove_step
from verify.written_chains import described, plain, written_by

pytestmark = pytest.mark.needs("flint")

FILTER = rz.TargetResidueFilter(1.0, 1e-6, 0.12, 0.03)


@pytest.mark.parametrize(
    "query",
    [
        m.ApproximateDp(0.0, 1e-9),
        m.Composed((m.ApproximateDp(0.0, 1e-9), m.Gaussian(sigma=50.0))),
        m.Gaussian(sigma=50.0),
        m.PureDp(0.05),
        m.SubsampledGaussian(2.0, 0.05),
    ],
)
def test_a_reserve_never_rises(query: m.Mechanism) -> None:
    """Also at a query whose only factor is mass at infinity."""
    before = plain(FILTER, FILTER.initial())
    after = plain(FILTER, FILTER.decide(FILTER.initial(), query).state)
    asked = StepQuery(described(query), "add-remove", {}, {})
    assert prove_step(FILTER.to_dict(), before, after, asked).verdict == "proven"
    forged = {**after, "reserves": ["1000000", *after["reserves"][1:]]}
    assert prove_step(FILTER.to_dict(), before, forged, asked).verdict == "refuted"
    with pytest.raises(rz.ArgumentError, match="capacity"):
        FILTER.check_state(FILTER.state_from_json(forged))


@pytest.mark.parametrize(
    ("filter", "queries"),
    [
        (rz.TargetResidueFilter(1.12, 0.0604, 0.07, 0.3), [m.SubsampledGaussian(3.65, 0.0171)]),
        (rz.AutoFilter(1.0, 1e-3), [m.ApproximateDp(0.1, 1e-5), m.SubsampledGaussian(4.77, 0.003)]),
        (rz.AutoFilter(1.65, 0.0232), [m.SubsampledGaussian(1.91, 0.109), m.PureDp(0.0409)]),
    ],
)
def test_steps_that_live_on_slack_are_proven(filter: rz.Filter, queries: list[m.Mechanism]) -> None:
    chain = written_by(filter, queries)
    report = verify_records({chain.name: chain.records}, chain.tables)
    assert report.ok, report.text


@pytest.mark.parametrize(
    ("eps", "fields"),
    [
        (100.0, {"delta": 0.99}),
        (1.0, {"delta": 1e-300, "reserve": 1e-30}),
        (1.0, {"delta": 5e-324, "reserve": 0.1}),
        (1.0, {"delta": 1e-300, "slack": 1e-300, "reserve": 0.1}),
        (600.0, {"delta": 1e-20, "reserve": 0.1, "slack": 0.1}),
    ],
)
def test_extreme_targets_can_be_asked_and_read_back(eps: float, fields: dict[str, float]) -> None:
    filter = rz.TargetResidueFilter(eps, **fields)
    assert rz.Filter.from_json(filter.to_json()) == filter
    assert filter.spend(m.PureDp(0.1 * eps)).admitted
    filter.spend(m.SubsampledGaussian(2.0, 0.01))
