"""The additive filter from randomized responses, run for real: same transcripts, rare failures."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import adversary_oracles as oracles
import residua as rz
from adversary.natural.post_processing import (
    View,
    flip,
    next_strategy,
    post_processed,
    response,
    seen_query,
    step_of,
    view,
)
from residua.adversary.natural.additive_profile import AdditiveProfileFilter
from residua.adversary.natural.guarantee import Plan, failure
from residua.adversary.strategy import STOP

FAIL = (-1,)
"""Stands for the transcript of a run that had no copy left."""
PROFILE_FILTER = AdditiveProfileFilter(1.0, 0.02, 6)
PLAN, ROUNDS = PROFILE_FILTER.plan, PROFILE_FILTER.rounds
decide = cache(PROFILE_FILTER.decide)
"""What the filter decides: thousands of runs meet the same few states."""
KERNELS = 1e-7
"""Six rounds of kernels that are exact to 1e-9 for each of at most four outcomes."""
QUERIES = (
    rz.from_pair([0.625, 0.375], [0.375, 0.625]),
    rz.from_pair([0.25, 0.5, 0.25], [0.25, 0.5, 0.25]) + rz.from_pair([0.75, 0.25], [0.25, 0.75]),
    rz.from_pair([0.5, 0.25, 0.1875, 0.0625], [0.5, 0.25, 0.0625, 0.1875]),
    rz.from_pair([0.96875, 0.015625, 0.015625, 0.0], [0.96875, 0.015625, 0.0, 0.015625]),
    rz.pure_dp(0.4),
)


def tree(seed: int, rounds: int) -> rz.Strategy:
    """Any query after any outcome."""
    chance = random.Random(seed)

    def grow(left: int) -> rz.Strategy:
        query = chance.choice(QUERIES)
        if left == 1:
            return rz.Strategy(query)
        count = len(query._atoms.exact) if query.terms else 0
        branches = [grow(left - 1) for _ in range(min(count, 2))]
        return rz.Strategy(query, tuple(chance.choice([*branches, STOP]) for _ in range(count)))

    return grow(rounds)


GREEDY = rz.Strategy(QUERIES[2])
for _ in range(5):
    GREEDY = rz.Strategy(QUERIES[2], (GREEDY,) * 3)
TREES = {**{f"random {seed}": tree(seed, 4) for seed in range(6)}, "greedy": GREEDY}


def total_variation(one: View, other: View) -> tuple[float, float]:
    """Half the sum of the differences, FAIL included, under either data set."""
    keys, none = {**one.masses, **other.masses}, (0.0, 0.0)
    first, second = (
        math.fsum(abs(one.masses.get(k, none)[i] - other.masses.get(k, none)[i]) for k in keys)
        + abs(one.failure[i] - other.failure[i])
        for i in (0, 1)
    )
    return 0.5 * first, 0.5 * second


def sample(strategy: rz.Strategy, truth: int, runs: int, seed: int) -> Counter[tuple[int, ...]]:
    """Run the simulation about the bit `truth`; how often each transcript came out.

    Each run draws its copies first and looks at nothing else about the bit.
    """
    generator = np.random.default_rng(seed)

    def drawn(chances: np.ndarray) -> int:
        return int(generator.choice(len(chances), p=chances / chances.sum()))

    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(runs):
        pool = [
            [truth ^ int(generator.random() >= response(e)) for _ in range(n)]
            for e, n in zip(PLAN.points, PLAN.copies(ROUNDS), strict=True)
        ]
        seen[run(strategy, pool, generator, drawn)] += 1
    return seen


def run(
    strategy: rz.Strategy,
    pool: list[list[int]],
    generator: np.random.Generator,
    drawn: Callable[[np.ndarray], int],
) -> tuple[int, ...]:
    """One run, from bits that were drawn before."""
    here, state = strategy, PROFILE_FILTER.initial()
    transcript: tuple[int, ...] = ()
    while not here.stops:
        decision = decide(state, here.query)
        if not decision.admitted:
            break
        step = step_of(seen_query(here), PLAN.points)
        size = drawn(step.profile)
        taken = next((j for j in range(size, len(pool)) if pool[j]), None)
        if taken is None:
            return FAIL
        flipped = generator.random() < flip(PLAN.points[taken], PLAN.points[size])
        i = drawn(step.answers[size, pool[taken].pop() ^ int(flipped)])
        here, state, transcript = next_strategy(here, i), decision.state, (*transcript, i)
    return transcript


def _asked(strategy: rz.Strategy) -> list[rz.Pld]:
    return [strategy.loss, *(loss for after in strategy.then for loss in _asked(after))]


RATIONAL = [name for name, strategy in TREES.items() if rz.pure_dp(0.4) not in _asked(strategy)]


@pytest.mark.parametrize("name", RATIONAL)
def test_view_is_the_adaptive_composition(name: str) -> None:
    """Without a filter, against the law written out in rationals."""
    seen = view(TREES[name])
    law = oracles.strategy_law(TREES[name])
    for x in (Fraction(1, 2), Fraction(1), Fraction(9, 5)):
        exact = float(oracles.hockey_stick(law, x))
        assert _curve(seen, float(x)) == pytest.approx(exact, abs=1e-14)


def _curve(seen: View, x: float) -> float:
    rows = [*seen.masses.values(), seen.failure]
    return math.fsum(max(p - x * q, 0.0) for p, q in rows)


@pytest.mark.parametrize("name", TREES)
def test_with_copies_without_end_the_transcripts_are_the_filters(name: str) -> None:
    """Total variation over all transcripts, under both data sets."""
    real = view(TREES[name], PROFILE_FILTER)
    simulated = post_processed(TREES[name], PLAN, None, PROFILE_FILTER)
    assert max(total_variation(real, simulated)) <= KERNELS
    assert max(real.failure) <= 1e-12 and max(simulated.failure) <= KERNELS


@pytest.mark.parametrize("name", TREES)
def test_with_the_plans_copies_only_failures_are_missing(name: str) -> None:
    real, simulated = (
        view(TREES[name], PROFILE_FILTER),
        post_processed(TREES[name], PLAN, ROUNDS, PROFILE_FILTER),
    )
    for seen, (p, q) in simulated.masses.items():
        assert p <= real.masses[seen][0] + KERNELS and q <= real.masses[seen][1] + KERNELS
    bound = failure(PLAN, PROFILE_FILTER.eps, PROFILE_FILTER.delta, ROUNDS)
    assert bound < PROFILE_FILTER.proven.delta
    assert max(simulated.failure) <= bound, "failures are as rare as the guarantee charges"
    assert max(total_variation(real, simulated)) == pytest.approx(
        max(simulated.failure), abs=KERNELS
    )
    for x in (0.3, 1.0, 1.5, 4.0, math.exp(PROFILE_FILTER.proven.eps)):
        assert _curve(real, x) <= _curve(simulated, x) + simulated.failure[0] + KERNELS


def test_the_greedy_analyst_does_run_out_of_copies() -> None:
    """A check that cannot fail is worth nothing: with fewer copies failures are seen."""
    whole = post_processed(GREEDY, PLAN, ROUNDS, PROFILE_FILTER)
    scarce = Plan(PLAN.points, tuple(0 for _ in PLAN.draws))
    fewer = post_processed(GREEDY, scarce, ROUNDS, PROFILE_FILTER)
    assert 0.0 < whole.failure[0] < fewer.failure[0]
    assert fewer.failure[0] <= failure(scarce, PROFILE_FILTER.eps, PROFILE_FILTER.delta, ROUNDS)


@pytest.mark.parametrize("name", TREES)
def test_the_simulation_is_a_post_processing_of_the_copies(name: str) -> None:
    """So its curve lies below theirs, and the guarantee follows."""
    simulated = post_processed(TREES[name], PLAN, ROUNDS, PROFILE_FILTER)
    copies = sum(
        (n * rz.pure_dp(e) for n, e in zip(PLAN.copies(ROUNDS), PLAN.points, strict=True)),
        rz.identity(),
    )
    x = np.exp(np.linspace(-6.0, 6.0, 49))
    curve = np.array([_curve(simulated, at) for at in x])
    assert np.all(curve <= copies.hockey_stick(x) + KERNELS)
    real = view(TREES[name], PROFILE_FILTER)
    assert _curve(real, math.exp(PROFILE_FILTER.proven.eps)) <= PROFILE_FILTER.proven.delta


@pytest.mark.parametrize(("name", "truth"), [("random 1", 0), ("random 3", 1), ("greedy", 0)])
def test_runs_agree_with_the_law(name: str, truth: int) -> None:
    """Total variation between what was seen and the law, by McDiarmid's inequality.

    With `K` transcripts and `N` runs its mean is at most `sqrt(K/N)/2`, and it exceeds its mean by
    `sqrt(ln(1/b) / 2N)` with probability at most `b`, here 1e-9.
    """
    runs = 4000
    law = post_processed(TREES[name], PLAN, ROUNDS, PROFILE_FILTER)
    expected = {seen: mass[truth] for seen, mass in law.masses.items() if mass[truth] > 0.0}
    expected[FAIL] = law.failure[truth]
    counts = sample(TREES[name], truth, runs, seed=5)
    assert set(counts) <= set(expected)
    apart = 0.5 * sum(abs(counts[seen] / runs - mass) for seen, mass in expected.items())
    assert apart <= 0.5 * math.sqrt(len(expected) / runs) + math.sqrt(math.log(1e9) / (2 * runs))
    wrong = {seen: mass[1 - truth] for seen, mass in law.masses.items()}
    far = 0.5 * sum(abs(counts[seen] / runs - mass) for seen, mass in wrong.items())
    assert far > apart, "the bit was looked at"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: view(QUERIES[0]), "strategy must be a Strategy"),
        (lambda: view(rz.Strategy(rz.laplace(2.0))), "finite symmetric queries"),
        (lambda: view(rz.Strategy(rz.from_pair([0.9, 0.1], [0.2, 0.8]))), "finite symmetric"),
        (lambda: view(GREEDY, QUERIES[0]), "filter must be a Filter"),
        (lambda: post_processed(GREEDY, (1.0,), 2), "plan must be a Plan"),
        (lambda: post_processed(GREEDY, PLAN, 0), "rounds must be 1 or more"),
    ],
)
def test_bad_input_is_refused_by_name(call: object, said: str) -> None:
    with pytest.raises(rz.ResiduaError, match=said):
        call()
