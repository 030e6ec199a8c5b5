"""The target residue filter: never earlier than addition, and sound against exact adversaries."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import residua as rz


def first_refusal(filter: rz.Filter, queries: list[rz.Mechanism]) -> int:
    state = filter.initial()
    for place, query in enumerate(queries):
        decision = filter.decide(state, query)
        if not decision.admitted:
            return place
        state = decision.state
    return len(queries)


def bounded(rng: random.Random) -> rz.Mechanism:
    eps = round(10.0 ** rng.uniform(-2.5, -0.3), 4)
    return rng.choice(
        [
            rz.PureDp(eps),
            rz.Laplace(scale=1.0 / eps),
            rz.ExponentialMechanism(eps),
            rz.DiscreteLaplace(1.0 / eps),
            rz.Composed((rz.PureDp(eps / 2), rz.Laplace(scale=2.0 / eps))),
        ]
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_first_refusal_never_comes_before_that_of_plain_addition(seed: int) -> None:
    rng = random.Random(f"addition {seed}")
    eps, delta = round(10.0 ** rng.uniform(-1.0, 0.9), 3), 10.0 ** rng.uniform(-12, -2)
    queries = [bounded(rng) for _ in range(60)]
    pure = first_refusal(rz.PureFilter(eps), queries)
    assert first_refusal(rz.TargetResidueFilter(eps, delta), queries[: pure + 1]) >= pure


@pytest.mark.parametrize(
    ("eps", "delta", "query", "least", "most"),
    [
        (1.0, 1e-6, rz.PureDp(0.1), 10, 10),
        (1.0, 1e-6, rz.PureDp(0.05), 22, 26),
        (3.0, 1e-6, rz.PureDp(0.1), 41, 46),
        (8.0, 1e-5, rz.Laplace(scale=10.0), 280, 290),
        (1.0, 1e-6, rz.Gaussian(sigma=20.0), 22, 22),
    ],
)
def test_many_equal_queries_are_admitted(
    eps: float, delta: float, query: rz.Mechanism, least: int, most: int
) -> None:
    """`most` is what fits at all: the composition of one more is above `delta`."""
    admitted = first_refusal(rz.TargetResidueFilter(eps, delta), [query] * (most + 1))
    assert least <= admitted <= most
    assert float(((most + 1) * query.pld()).delta_bounds(eps).lo) > delta


def test_gaussian_noise_makes_the_whole_line_count() -> None:
    filter = rz.TargetResidueFilter(1.0, 1e-6)
    cost = filter.check(rz.PureDp(0.1)).cost
    filter.spend(rz.PureDp(0.1))
    assert filter.state.reached == Fraction(1, 10)  # type: ignore[attr-defined]
    filter.spend(rz.Gaussian(sigma=50.0))
    assert filter.state.reached is None  # type: ignore[attr-defined]
    assert filter.check(rz.PureDp(0.1)).cost > cost


def test_the_guarantee_holds_against_the_exact_worst_case() -> None:
    filter = rz.TargetResidueFilter(1.1, 0.05)
    for catalogue in (
        [rz.pure_dp(0.3), rz.pure_dp(0.6)],
        [rz.pure_dp(0.25), rz.laplace(scale=2.0)],
    ):
        attack = rz.attack(rz.as_rule(filter, catalogue), filter.guarantee, rounds=4)
        assert attack.verdict != rz.Verdict.NO, attack


@pytest.mark.parametrize("bad", [(0.0, 1e-6), (1.0, 0.0), (1.0, 1.0), (float("nan"), 1e-6)])
def test_bad_targets_are_errors(bad: tuple[float, float]) -> None:
    with pytest.raises(rz.ArgumentError, match=r"eps|delta"):
        rz.TargetResidueFilter(*bad)


# -- reserves and slack -----------------------------------------------------------------------

SHARES = {"reserve": 0.12, "slack": 0.03}
SAMPLED = rz.SubsampledGaussian(sigma=2.0, sampling_rate=0.05)
STEPS = [
    rz.Laplace(20.0),
    rz.ApproximateDp(0.01, 1e-9),
    rz.Gaussian(sigma=60.0),
    rz.PureDp(0.05),
    SAMPLED,
    rz.SelfComposed(rz.SubsampledGaussian(sigma=1.5, sampling_rate=0.005), 20),
    rz.SelfComposed(rz.Laplace(60.0), 8),
    rz.Composed((rz.Laplace(80.0), rz.Gaussian(sigma=90.0))),
    rz.DiscreteGaussian(sigma=40.0),
    rz.PureDp(0.1),
]


@pytest.mark.parametrize("seed", range(8))
def test_shares_of_delta_do_not_make_it_refuse_before_addition(seed: int) -> None:
    rng = random.Random(f"shares {seed}")
    eps, delta = round(10.0 ** rng.uniform(-1.0, 0.9), 3), 10.0 ** rng.uniform(-12, -2)
    queries = [bounded(rng) for _ in range(40)]
    pure = first_refusal(rz.PureFilter(eps), queries)
    filter = rz.TargetResidueFilter(eps, delta, **SHARES)
    assert first_refusal(filter, queries[: pure + 1]) >= pure


def test_taking_nothing_is_not_proven_while_addition_has_room() -> None:
    pytest.importorskip("flint")
    from residua.verify.descriptions.mechanisms import StepQuery
    from residua.verify.proofs import target

    for filter in (rz.TargetResidueFilter(1.0, 1e-6), rz.TargetResidueFilter(1.0, 1e-6, **SHARES)):
        before = json.loads(filter.state_to_json(filter.initial()))
        after = {**before, "reached": "0.1", "reserves": ["0"] * len(before["reserves"])}
        query = StepQuery({"kind": "pure_dp", "eps": 0.1}, None, {}, {})
        assert target.step(filter.to_dict(), before, after, query).verdict != "proven"


@pytest.mark.parametrize(("eps", "delta"), [(1.0, 1e-6), (8.0, 1e-5)])
def test_every_step_is_verified_and_no_better_one_is(eps: float, delta: float) -> None:
    pytest.importorskip("flint")
    from residua.verify.descriptions.mechanisms import StepQuery
    from residua.verify.proofs import target

    filter = rz.TargetResidueFilter(eps, delta, **SHARES)
    config, state = json.loads(filter.to_json()), filter.initial()
    before = json.loads(filter.state_to_json(state))
    assert target.first(config, before, {}).verdict == "proven"
    for query in STEPS:
        decision = filter.decide(state, query)
        assert decision.admitted, query
        after = json.loads(filter.state_to_json(decision.state))
        asked = StepQuery(json.loads(query.to_json()), None, {}, {})
        found = target.step(config, before, after, asked)
        assert found.verdict == "proven", (query, found.reason)
        for forged in _forged(before, after):
            better = target.step(config, before, forged, asked)
            assert better.verdict != "proven", (query, forged, better.reason)
        state, before = decision.state, after


@pytest.mark.parametrize(("eps", "delta"), [(1.0, 1e-6), (3.0, 1e-3), (8.0, 1e-5)])
def test_the_potential_never_rises_on_average(eps: float, delta: float) -> None:
    """The inequality of the theorem, read off curves and divergences at many points."""
    filter = rz.TargetResidueFilter(eps, delta, **SHARES)
    state = filter.initial()
    assert _potential(filter, state, np.array([eps]))[0] <= delta
    for query in STEPS:
        decision = filter.decide(state, query)
        assert decision.admitted, query
        after, start = decision.state, filter._from(state)
        loss = query.pld()
        if loss.mass_at_infinity == 0.0:
            t = np.linspace(max(float(start), -eps), 3.0 * eps, 300)
            for side in (loss, loss.reverse()):
                assert np.all(_mean_after(filter, after, side, t) <= _potential(filter, state, t))
        state = after


def _reserves(filter: rz.TargetResidueFilter, state: Any) -> Iterator[tuple[float, float]]:
    """`κ`, and the logarithm of the factor of `e^{-κt}`, for each reserve that is left."""
    for kappa, reserve in zip(map(float, filter.kappas), state.reserves, strict=True):
        if reserve:
            lift = kappa * (kappa + 1.0) * float(state.left) / 2.0
            yield kappa, math.log(reserve) + lift


def _potential(filter: rz.TargetResidueFilter, state: Any, t: Any) -> Any:
    gaussian = rz.gaussian(mu=math.sqrt(float(state.left)))
    found = np.asarray(gaussian.delta_bounds(t).hi) + float(state.slack)
    for kappa, log in _reserves(filter, state):
        found = found + np.exp(log - kappa * t)
    return found


def _mean_after(filter: rz.TargetResidueFilter, state: Any, side: rz.Pld, t: Any) -> Any:
    whole = side + rz.gaussian(mu=math.sqrt(float(state.left)))
    found = np.asarray(whole.delta_bounds(t).lo) + float(state.slack)
    for kappa, log in _reserves(filter, state):
        moment = kappa * float(side.renyi_bounds(kappa + 1.0).lo)
        found = found + np.exp(log + moment - kappa * t)
    return found


def _forged(before: dict[str, Any], after: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """States that keep too much for any query."""
    yield {**after, "left": str(Fraction(before["left"]) * 2)}
    yield {**after, "slack": str(Fraction(before["slack"]) * 2)}
    yield {**after, "left": before["left"], "reserves": before["reserves"]}
    for share in (Fraction(0), Fraction(1, 2)):
        cost = (Fraction(before["left"]) - Fraction(after["left"])) * share
        yield {**after, "left": str(Fraction(before["left"]) - cost)}
    yield {**after, "reserves": [str(2 * Fraction(one)) for one in after["reserves"]]}
    yield {**after, "reserves": after["reserves"][1:]}
    if before["reached"] is None:
        yield {**after, "reached": "0"}


def test_what_is_kept_at_the_start_must_add_up() -> None:
    pytest.importorskip("flint")
    from residua.verify.proofs import target

    filter = rz.TargetResidueFilter(1.0, 1e-6, **SHARES)
    config, state = json.loads(filter.to_json()), json.loads(filter.state_to_json(filter.initial()))
    for field in ("left", "slack"):
        forged = {**state, field: str(Fraction(state[field]) * Fraction(102, 100))}
        assert target.first(config, forged, {}).verdict == "refuted", field
    for place, one in enumerate(state["reserves"]):
        more = [*state["reserves"]]
        more[place] = str(Fraction(one) * Fraction(102, 100))
        assert target.first(config, {**state, "reserves": more}, {}).verdict == "refuted", place
    assert target.first({**config, "reserve": 0.5}, state, {}).verdict == "refuted"


def test_heavy_tails_draw_on_the_reserve() -> None:
    with_reserve = rz.TargetResidueFilter(1.0, 1e-6, **SHARES)
    before = with_reserve.state
    assert with_reserve.spend(SAMPLED).admitted
    assert with_reserve.state.reserves[0] < before.reserves[0]  # type: ignore[attr-defined]
    assert rz.how_many(with_reserve, SAMPLED) > 30
    without = rz.TargetResidueFilter(1.0, 1e-6)
    assert not without.spend(SAMPLED).admitted


def test_mass_at_infinity_takes_slack() -> None:
    filter = rz.TargetResidueFilter(1.0, 1e-6, **SHARES)
    assert filter.spend(rz.ApproximateDp(0.01, 1e-8)).admitted
    assert filter.state.slack == Fraction("2e-8")  # type: ignore[attr-defined]
    refused = filter.spend(rz.ApproximateDp(0.01, 3e-8))
    assert not refused.admitted
    assert "delta 3e-08" in refused.reason


def test_reserves_make_large_queries_cheaper_after_gaussian_noise() -> None:
    queries = [rz.Gaussian(sigma=9.45), *[rz.Laplace(6.0)] * 3]
    assert first_refusal(rz.TargetResidueFilter(1.0, 1e-6), queries) == 2
    assert first_refusal(rz.TargetResidueFilter(1.0, 1e-6, **SHARES), queries) == 3


@pytest.mark.parametrize("shares", [SHARES, {"reserve": 0.5}, {"slack": 0.4, "reserve": 0.2}])
def test_the_guarantee_holds_with_shares(shares: dict[str, float]) -> None:
    filter = rz.TargetResidueFilter(1.1, 0.05, **shares)
    for catalogue in (
        [rz.pure_dp(0.3), rz.pure_dp(0.6)],
        [rz.approximate_dp(0.3, 0.001), rz.pure_dp(0.5), 2 * rz.pure_dp(0.2)],
    ):
        attack = rz.attack(rz.as_rule(filter, catalogue), filter.guarantee, rounds=4)
        assert attack.verdict != rz.Verdict.NO, attack


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"reserve": -0.1}, "reserve"),
        ({"slack": float("nan")}, "slack"),
        ({"reserve": 1.0}, "reserve"),
        ({"reserve": 0.5, "slack": 0.5}, "reserve"),
        ({"order": 1.0}, "order"),
        ({"order": float("inf")}, "order"),
    ],
)
def test_bad_shares_are_errors(fields: dict[str, float], match: str) -> None:
    with pytest.raises(rz.ArgumentError, match=match):
        rz.TargetResidueFilter(1.0, 1e-6, **fields)
