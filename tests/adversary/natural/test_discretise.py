"""Profiles by size: between rounded down and rounded up, and the filter that adds them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

import residua as rz
from residua.adversary import generalised_response, largest_total, overflow
from residua.adversary.discretise import discretise, tail_mass
from residua.adversary.natural_filter import AdditiveProfileFilter
from residua.errors import ArgumentError, ArgumentTypeError

SYMMETRIC = {
    "gaussian": rz.gaussian(mu=0.7),
    "laplace": rz.laplace(scale=2.0),
    "three": 3 * rz.pure_dp(0.3),
    "approximate": rz.approximate_dp(0.5, 0.01),
    "range": rz.bounded_range(1.0),
    "mixed": rz.laplace(scale=1.0) + rz.gaussian(mu=0.3),
    "pair": rz.from_pair([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    "identity": rz.identity(),
}
POINTS = ([1.0], [0.1, 0.3, 0.6, 1.2, 2.4], [0.05, 5.0])


@pytest.mark.parametrize("name", SYMMETRIC)
@pytest.mark.parametrize("points", POINTS)
def test_a_symmetric_loss_lies_between(name, points):
    loss = SYMMETRIC[name]
    cut = discretise(loss, points)
    assert cut.optimistic <= loss
    assert loss <= cut.pessimistic
    assert len(cut.profile) == len(points) + 1
    assert sum(cut.profile) == pytest.approx(1.0, abs=1e-12)
    assert cut.optimistic.is_symmetric and cut.pessimistic.is_symmetric


@pytest.mark.parametrize("size", [0.1, 0.5, 2.0, 5.0])
def test_masses_of_a_gaussian(size):

    mass = tail_mass(rz.gaussian(mu=0.7), size)
    mu, e = mp.mpf(0.7), mp.mpf(size)
    exact = mp.ncdf(mu / 2 - e / mu) + mp.ncdf(-mu / 2 - e / mu)
    assert mass.lo <= exact <= mass.hi
    assert mass.width <= 1e-5 * exact


@pytest.mark.parametrize("size", [0.1, 0.25, 0.5])
def test_masses_of_laplace_noise(size):

    mass = tail_mass(rz.laplace(scale=2.0), size)
    e, t = mp.mpf("0.5"), mp.mpf(size)
    density = mp.quad(lambda z: mp.exp((z - e) / 2) / 4, [t, e])
    back = mp.quad(lambda z: mp.exp((z - e) / 2) / 4, [-e, -t])
    exact = density + back + (1 + mp.exp(-e)) / 2
    assert mass.lo <= exact <= mass.hi


def test_a_loss_of_exactly_the_size_counts():
    mass = tail_mass(rz.pure_dp(0.3), 0.3)
    assert mass.lo == mass.hi == 1.0
    assert tail_mass(rz.approximate_dp(0.3, 0.25), 0.31) == rz.Interval(0.25, 0.25)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: tail_mass(rz.pure_dp(1.0), 0.0), "size must be positive"),
        (lambda: tail_mass(rz.pure_dp(1.0), math.nan), "size must be"),
        (lambda: tail_mass(rz.pure_dp(1.0), 601.0), "size must be at most 600"),
        (lambda: tail_mass(rz.from_pair([0.9, 0.1], [0.5, 0.5]), 1.0), "loss must be a symmetric"),
        (lambda: tail_mass(1.0, 1.0), "loss must be a Pld, got 1.0"),
        (lambda: generalised_response([0.7, 0.7], [1.0, 2.0], "above"), "sum of at most 1"),
        (lambda: generalised_response([math.nan], [1.0], "above"), "masses must be"),
        (lambda: generalised_response([0.5], [1.0, 2.0], "above"), "sizes must be as many as"),
        (lambda: generalised_response([0.5], [-1.0], "above"), "sizes must be between 0 and 600"),
        (lambda: generalised_response([0.5], [1.0], "beside"), "side must be"),
        (lambda: overflow(math.nan, 1), "total must be"),
        (lambda: overflow(-1.0, 1), "total must be"),
        (lambda: overflow(1.0, -1), "draws must be"),
        (lambda: largest_total(0.0, 1.0, 1e-6, 10), "e must be positive"),
        (lambda: largest_total(1.0, 1.0, 1.5, 10), "delta must be"),
    ],
)
def test_bad_input_of_the_parts_is_refused_by_name(call: Any, said: str) -> None:
    with pytest.raises(rz.ResiduaError, match=said):
        call()


def test_what_is_missing_from_a_generalised_response_is_revealed() -> None:
    made = generalised_response([0.25, Fraction(1, 4), 0.25], [0.0, 1.0, math.inf], "above")
    assert made.mass_at_infinity == 0.5
    assert rz.approximate_dp(0.0, 0.5) <= made <= rz.approximate_dp(1.000001, 0.5)


def test_asymmetric_losses_are_refused_and_would_fail():
    loss = rz.from_pair([0.9, 0.1], [0.2, 0.8])
    with pytest.raises(ArgumentError, match="symmetric"):
        discretise(loss, [1.0])


@pytest.mark.parametrize(
    ("points", "error"),
    [
        ([], ArgumentError),
        ([0.0, 1.0], ArgumentError),
        ([1.0, 0.5], ArgumentError),
        ([1.0, float("nan")], ArgumentError),
        ([1.0, float("inf")], ArgumentError),
        ("1", ArgumentTypeError),
        ([700.0], ArgumentError),
    ],
)
def test_bad_points_are_named(points, error):
    with pytest.raises(error, match="points"):
        discretise(rz.gaussian(mu=1.0), points)


@pytest.mark.parametrize("e", [1e-3, 0.1, 1.0, 3.0])
def test_twelve_copies_cover_one_of_twice_the_size(e):
    assert rz.pure_dp(2.0 * e) <= 12 * rz.pure_dp(e)


def test_five_copies_do_not():
    assert rz.compare(rz.pure_dp(0.02), 5 * rz.pure_dp(0.01)).not_below is not None


@given(st.data())
def test_failures_add_their_probability_and_no_more(data):
    """The triangle lemma, a law in rationals: cut outcomes off `P` and `Q` onto one new outcome.

    `h(x) <= h'(x) + gamma` for every `x`, where `gamma` is what `P` loses, whatever `Q` does.
    """
    size = data.draw(st.integers(1, 5))
    weights = st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any)
    shares = st.lists(st.integers(0, 8), min_size=size, max_size=size)
    laws = []
    for _ in "PQ":
        whole, kept = data.draw(weights), data.draw(shares)
        law = [Fraction(w, sum(whole)) for w in whole]
        cut = [p * Fraction(share, 8) for p, share in zip(law, kept, strict=True)]
        laws.append((law, [*cut, 1 - sum(cut)]))
    (p, cut_p), (q, cut_q) = laws
    gamma = cut_p[-1]
    kinks = [a / b for a, b in (*zip(p, q, strict=True), *zip(cut_p, cut_q, strict=True)) if b]
    for x in (*kinks, Fraction(1), Fraction(1, 50), Fraction(50)):
        assert _curve(p, q, x) <= _curve(cut_p, cut_q, x) + gamma


def test_a_failure_of_total_variation_alone_would_cost_more():
    """Why the lemma asks that nothing grows: moved mass may count `x` times."""
    p, q = [Fraction(1), Fraction(0)], [Fraction(1, 4), Fraction(3, 4)]
    moved, gamma, x = [Fraction(1, 8), Fraction(7, 8)], Fraction(1, 8), Fraction(4)
    assert _curve(p, moved, x) == _curve(p, q, x) + x * gamma


def _curve(p, q, x):
    return sum((max(a - x * b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0))


QUERIES = [
    rz.pure_dp(0.05),
    rz.pure_dp(0.3),
    rz.laplace(scale=4.0),
    rz.gaussian(mu=0.1),
    rz.approximate_dp(0.1, 1e-4),
    rz.pure_dp(0.9),
]


@given(st.lists(st.sampled_from(range(len(QUERIES))), min_size=1, max_size=12))
def test_what_the_natural_filter_admits_the_additive_one_admits(picks):
    eps, delta, rounds = 1.0, 1e-3, 12
    profile_filter = AdditiveProfileFilter(eps, delta, rounds)
    state = profile_filter.initial()
    spent = rz.identity()
    for pick in picks:
        spent = spent + QUERIES[pick]
        if not spent.delta(eps) <= delta:
            return
        decision = profile_filter.decide(state, QUERIES[pick])
        assert decision.admitted
        state = decision.state


def test_the_additive_filter_stops_and_says_what_it_keeps():
    profile_filter = AdditiveProfileFilter(1.0, 1e-3, 12)
    while profile_filter.request(rz.pure_dp(0.5)):
        pass
    assert len(profile_filter.history) <= 13
    assert profile_filter.guarantee == rz.approximate_dp(
        profile_filter.proven.eps, profile_filter.proven.delta
    )
    assert profile_filter.remaining.rounds == 12 - (len(profile_filter.history) - 1)
    refused = profile_filter.request(rz.from_pair([0.9, 0.1], [0.2, 0.8]))
    assert not refused.admitted and "symmetric" in refused.reason
