"""Sampled mechanisms beside their slow twins: every sample of a small data set, one by one."""

# mypy: disable-error-code="misc"
from __future__ import annotations

import itertools
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import mechanism_oracles as oracle
import oracles
from mechanisms.enclosing import FACTOR, HALF, THOROUGH, XS, dominates, encloses, undercuts
from residua.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    FromAtoms,
    Gdp,
    Laplace,
    Mechanism,
    PoissonSampled,
    PureDp,
    RandomizedResponse,
    SampledWithoutReplacement,
    SubsampledGaussian,
    TruncatedLaplace,
)


@pytest.fixture(autouse=True)
def _digits() -> Iterable[None]:
    """Enough for everything here, and twice as fast as 60."""
    with mp.workdps(40):
        yield


# -- Poisson sampling -----------------------------------------------------------------------

RATES = [0.01, 0.3, 0.9]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("relation", ["add-remove", "zero-out"])
def test_sampled_laplace(rate: float, relation: str) -> None:
    scale, sensitivity = 0.8, 1.0
    sampled = [(0, 1 - Fraction(rate)), (sensitivity, Fraction(rate))]
    mechanism = PoissonSampled(Laplace(scale, sensitivity), rate)
    for direction, p, q in (("remove", sampled, [(0, 1)]), ("add", [(0, 1)], sampled)):

        def truth(x: float, p: Any = p, q: Any = q) -> mpf:
            return oracle.laplace_hockey_stick(p, q, scale, x)

        encloses(mechanism, truth, direction, relation)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(
    "mechanism", [DiscreteLaplace(1.5, 2), DiscreteGaussian(sigma=1.5, sensitivity=2)]
)
def test_sampled_discrete_noise(mechanism: DiscreteLaplace | DiscreteGaussian, rate: float) -> None:
    if isinstance(mechanism, DiscreteLaplace):
        noise = oracle.discrete_laplace(mechanism.scale, 160)
    else:
        noise = oracle.discrete_gaussian(mechanism.sigma, 30)
    k = mechanism.sensitivity
    alone = oracle.mixed(noise, [(0, 1)], k)
    sampled = oracle.mixed(noise, [(0, 1 - Fraction(rate)), (k, Fraction(rate))], k)
    xs = [x for x in XS if 0.01 < x < 100]
    for direction, p, q in (("remove", sampled, alone), ("add", alone, sampled)):

        def truth(x: float, p: Any = p, q: Any = q) -> mpf:
            return oracle.hockey_stick(p, q, x)

        encloses(PoissonSampled(mechanism, rate), truth, direction, within=1e-12, xs=xs)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("categories", [2, 5])
def test_sampled_response(rate: float, categories: int) -> None:
    a, c = oracle.response(1.3, categories)
    q = oracles.real(rate)
    sampled = [(1 - q) * v + q * u for u, v in zip(a, c, strict=True)]
    mechanism = PoissonSampled(RandomizedResponse(eps=1.3, num_buckets=categories), rate)
    for direction, one, other in (("remove", sampled, c), ("add", c, sampled)):

        def truth(x: float, one: Any = one, other: Any = other) -> mpf:
            return oracle.hockey_stick(one, other, x)

        encloses(mechanism, truth, direction, "zero-out", within=1e-12)


@pytest.mark.parametrize("rate", RATES)
def test_sampled_pairs_that_are_not_symmetric(rate: float) -> None:
    """Trap 2: removing and adding have pairs of their own; mass at infinity included."""
    atoms = FromAtoms((0.75, -0.5, 0.1), (0.5, 0.25, 0.125), 0.125)
    masses = [mpf(v) for v in (0.5, 0.25, 0.125)]
    tilted = [m * mp.exp(-mpf(z)) for m, z in zip(masses, (0.75, -0.5, 0.1), strict=True)]
    a = [*masses, mpf(0.125), mpf(0)]
    c = [*tilted, mpf(0), 1 - mp.fsum(tilted)]
    q = oracles.real(rate)
    sampled = [(1 - q) * v + q * u for u, v in zip(a, c, strict=True)]
    mechanism = PoissonSampled(atoms, rate)
    for direction, one, other in (("remove", sampled, c), ("add", c, sampled)):
        above = mechanism.pld(direction).hockey_stick_bounds(np.array(XS))
        for x, lo, hi in zip(XS, above.lo, above.hi, strict=True):
            value = oracle.hockey_stick(one, other, x)
            # The masses q = p e^-z are floats in the library: a few ulps.
            assert lo * (1 - 1e-14) - 1e-15 <= value <= hi * (1 + 1e-14) + 1e-15


def test_sampling_a_truncated_laplace() -> None:
    scale, bound, rate = 1.0, 3.0, 0.2
    sampled = [(0, 1 - Fraction(rate)), (1, Fraction(rate))]
    mechanism = PoissonSampled(TruncatedLaplace(scale, bound), rate)
    for direction, p, q in (("remove", sampled, [(0, 1)]), ("add", [(0, 1)], sampled)):

        def truth(x: float, p: Any = p, q: Any = q) -> mpf:
            return oracle.laplace_hockey_stick(p, q, scale, x, bound)

        encloses(mechanism, truth, direction)


def test_poisson_on_small_data_sets() -> None:
    """A sum over a Poisson sample, others present: never more than the pair, which is attained."""
    rate, scale = 0.3, 1.3
    mechanism = PoissonSampled(Laplace(scale), rate)
    removed, added = mechanism.pld("remove"), mechanism.pld("add")
    best = dict.fromkeys(XS, mpf(0))
    for others in ((), (0,), (1,), (-1, 1), (1, 1, HALF), (-HALF, 0, 1)):
        for v in (-1, HALF, 1):
            p = oracle.poisson_sums([*others, v], rate)
            q = oracle.poisson_sums(others, rate)

            def forward(x: float, p: Any = p, q: Any = q) -> mpf:
                return oracle.laplace_hockey_stick(p, q, scale, x)

            def backward(x: float, p: Any = p, q: Any = q) -> mpf:
                return oracle.laplace_hockey_stick(q, p, scale, x)

            dominates(removed, forward)
            dominates(added, backward)
            for x in XS:
                best[x] = max(best[x], forward(x))
    for x in XS:
        assert removed.hockey_stick(x) <= best[x] + 2e-6


@pytest.mark.parametrize("rate", [0.05, 0.4, 1.0])
def test_poisson_replacing_one(rate: float) -> None:
    """One record exchanged: two records of opposite sign, one of them nothing, others present."""
    scale = 0.9
    pld = PoissonSampled(Laplace(scale), rate).pld(relation="replace-one")
    records = ((-1, 1), (1, -1), (1, 0), (0, 1), (HALF, -1), (1, HALF))
    for others in ((), (0,), (1,), (-1, HALF), (1, 1, -1)):
        for v, w in records[: 3 if others else None]:
            p = oracle.poisson_sums([*others, v], rate)
            q = oracle.poisson_sums([*others, w], rate)
            dominates(
                pld, lambda x, p=p, q=q: oracle.laplace_hockey_stick(p, q, scale, x), slack=1e-13
            )
    below = PoissonSampled(Laplace(scale), rate).pld(relation="replace-one", side="below")
    pair = oracle.poisson_sums([1], rate), oracle.poisson_sums([-1], rate)
    undercuts(below, lambda x: oracle.laplace_hockey_stick(*pair, scale, x))


@pytest.mark.parametrize("rate", [0.1, 0.6])
@pytest.mark.parametrize(
    "mechanism", [DiscreteLaplace(1.2, 2), DiscreteGaussian(sigma=1.2, sensitivity=2)]
)
def test_poisson_replacing_one_with_discrete_noise(
    mechanism: DiscreteLaplace | DiscreteGaussian, rate: float
) -> None:
    if isinstance(mechanism, DiscreteLaplace):
        noise = oracle.discrete_laplace(mechanism.scale, 130)
    else:
        noise = oracle.discrete_gaussian(mechanism.sigma, 25)
    pld = PoissonSampled(mechanism, rate).pld(relation="replace-one")
    xs = [x for x in XS if 0.05 < x < 20]
    share = Fraction(rate)
    for v, w in ((2, -2), (-2, 2), (2, 0), (1, -2), (2, 1)):
        p = oracle.mixed(noise, [(0, 1 - share), (v, share)], 4)
        q = oracle.mixed(noise, [(0, 1 - share), (w, share)], 4)
        dominates(pld, lambda x, p=p, q=q: oracle.hockey_stick(p, q, x), xs)


def test_poisson_replacing_one_in_a_black_box() -> None:
    """Three random outputs, each pair of them within `eps`: with, with another, with neither."""
    rng = np.random.default_rng(7)
    eps, rate = 0.8, 0.3
    pld = PoissonSampled(PureDp(eps), rate).pld(relation="replace-one")
    for _ in range(30 * FACTOR):
        c = rng.dirichlet(np.ones(4))
        # Within eps of C: tilt by losses in an interval of length eps around the normaliser.
        outputs = []
        for _ in range(2):
            tilt = np.exp(rng.choice([0.0, eps], 4))
            outputs.append(c * tilt / (c @ tilt))
        p, q = ((1 - rate) * c + rate * a for a in outputs)
        dominates(pld, lambda x, p=p, q=q: oracle.hockey_stick(p, q, x), slack=1e-12)


@pytest.mark.parametrize(
    ("mechanism", "rate"),
    [
        (Gdp(1.0), 0.1),
        (Gdp(1.0), 1.0),
        (SubsampledGaussian(1.0, 0.3), 0.5),
    ],
    ids=str,
)
def test_poisson_replacing_one_has_a_bound_for_all_it_says(
    mechanism: Mechanism, rate: float
) -> None:
    """Smooth losses too, in two steps: what `supported` names is answered."""
    sampled = PoissonSampled(mechanism, rate)
    replaced = sampled.pld(relation="replace-one", accuracy=1e-4)
    assert replaced.is_finite
    for direction, pld in sampled.plds("add-remove", accuracy=1e-4, side="below").items():
        for x in (0.5, 1.0, 1.5, 3.0, 20.0):
            assert pld.hockey_stick_bounds(x).lo <= replaced.hockey_stick_bounds(x).hi, direction
    if isinstance(mechanism, Gdp):
        # Two records of opposite sign; without sampling, just `G_{2 mu}`.
        exact = SubsampledGaussian(1.0 / mechanism.mu, rate).pld(relation="replace-one")
        for x in (0.5, 1.0, 1.5, 3.0, 20.0):
            low = exact.hockey_stick_bounds(x).lo
            assert low <= replaced.hockey_stick_bounds(x).hi <= low + 1e-3


# -- sampling without replacement -----------------------------------------------------------


@pytest.mark.parametrize(("size", "sample"), [(2, 1), (4, 2), (5, 4), (6, 3), (6, 1)])
def test_sampling_without_replacement(size: int, sample: int) -> None:
    """Every data set of few records and all its neighbours; above 1 and below 1."""
    scale = 0.7
    mechanism = SampledWithoutReplacement(Laplace(scale), size, sample)
    pld = mechanism.pld()
    below = mechanism.pld(side="below")
    best = dict.fromkeys(XS, mpf(0))
    values = (0, HALF, 1) if THOROUGH else (0, 1)
    for others in itertools.combinations_with_replacement(values, size - 1):
        for v, w in itertools.permutations((Fraction(0), HALF, Fraction(1)), 2):
            if abs(v - w) < 1 and not THOROUGH and any(others):
                continue
            p = oracle.subset_sums([*others, v], sample)
            q = oracle.subset_sums([*others, w], sample)

            def truth(x: float, p: Any = p, q: Any = q) -> mpf:
                return oracle.laplace_hockey_stick(p, q, scale, x)

            dominates(pld, truth)
            for x in XS:
                best[x] = max(best[x], truth(x))
    for x in XS:
        # All but one record equal: one data set for x >= 1, the other order of it for x <= 1.
        assert pld.hockey_stick(x) <= best[x] + 2e-6
        assert below.hockey_stick_bounds(x).lo <= best[x]


def test_sampling_choices_without_replacement() -> None:
    """The exponential mechanism on a sample: scores are counts of votes."""
    rng = np.random.default_rng(3)
    eps, size, sample, candidates = 1.5, 5, 2, 3
    pld = SampledWithoutReplacement(ExponentialMechanism(eps), size, sample).pld()
    for _ in range(15 * FACTOR):
        votes = rng.uniform(0.0, 1.0, (size, candidates)).round(2)
        if rng.random() < 0.7:
            votes = rng.integers(0, 2, (size, candidates)).astype(float)
        other = votes.copy()
        other[0] = 1.0 - votes[0]
        outputs = []
        for data in (votes, other):
            chosen = list(itertools.combinations(range(size), sample))
            # One record moves each score by at most 1 when replaced.
            rows = [oracle.softmax(data[list(s)].sum(axis=0), mpf(2) / eps) for s in chosen]
            outputs.append([mp.fsum(col) / len(chosen) for col in zip(*rows, strict=True)])
        p, q = outputs
        dominates(pld, lambda x, p=p, q=q: oracle.hockey_stick(p, q, x), slack=1e-13)
