"""The target residue filter: never earlier than addition, and sound against exact adversaries."""

from __future__ import annotations

import random
from fractions import Fraction

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
