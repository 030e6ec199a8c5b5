"""Noise and choices beside their slow twins: outcomes and probabilities, from what they do."""

# mypy: disable-error-code="misc"
from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import mechanism_oracles as oracle
import oracles
from mechanisms.enclosing import FACTOR, XS, dominates, encloses
from residua.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Laplace,
    RandomizedResponse,
    ReportNoisyMax,
    TruncatedLaplace,
)


@pytest.fixture(autouse=True)
def _digits() -> Iterable[None]:
    """Enough for everything here, and twice as fast as 60."""
    with mp.workdps(40):
        yield


# -- noise ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "sensitivity"), [(1.0, 1.0), (0.3, 1.0), (7.0, 2.5), (1.0, 0.01), (0.1, 3.0)]
)
def test_laplace(scale: float, sensitivity: float) -> None:
    def truth(x: float) -> mpf:
        return oracle.laplace_hockey_stick([(0, 1)], [(sensitivity, 1)], scale, x)

    encloses(Laplace(scale, sensitivity), truth, within=1e-12)


def test_the_oracle_of_laplace_noise_is_the_integral() -> None:
    """Pieces and signs: against plain quadrature of the positive part."""
    p, q = [(0, 0.25), (1.5, 0.75)], [(-0.5, 0.5), (1, 0.5)]
    for x, bound in itertools.product((0.5, 1.0, 1.7), (None, 1.2)):

        def density(parts: list[Any], y: mpf, bound: float | None = bound) -> mpf:
            whole = mpf(2) if bound is None else -2 * mp.expm1(-mpf(bound))
            near = [(c, w) for c, w in parts if bound is None or abs(y - c) <= bound]
            return mp.fsum(mpf(w) * mp.exp(-abs(y - mpf(c))) for c, w in near) / whole

        grid = np.arange(-8.0, 10.0, 0.02)
        plain = 0.02 * sum(
            float(max(density(p, mpf(y)) - x * density(q, mpf(y)), mpf(0))) for y in grid
        )
        exact = oracle.laplace_hockey_stick(p, q, 1, x, bound)
        assert abs(plain - float(exact)) < 1e-2


@pytest.mark.parametrize(
    ("scale", "sensitivity"),
    [(1.0, 1), (1.0, 2), (0.4, 3), (3.0, 4), (2.0, 7), (10.0, 12), (0.05, 2)],
)
def test_discrete_laplace(scale: float, sensitivity: int) -> None:
    far = int(95 * scale) + 5 * sensitivity + 5
    noise = oracle.discrete_laplace(scale, far)
    p = oracle.mixed(noise, [(0, 1)], sensitivity)
    q = oracle.mixed(noise, [(sensitivity, 1)], sensitivity)
    encloses(
        DiscreteLaplace(scale, sensitivity),
        lambda x: oracle.hockey_stick(p, q, x),
        within=1e-12,
    )


@pytest.mark.parametrize(("scale", "sensitivity"), [(10.0, 2001), (2500.0, 2100), (40.0, 5000)])
def test_discrete_laplace_with_a_large_sensitivity(scale: float, sensitivity: int) -> None:
    """The curve at the kinks, where the test `X <= m` is best: in closed form."""
    above = DiscreteLaplace(scale, sensitivity).pld()
    r, k = mp.exp(-1 / oracles.real(scale)), sensitivity
    for m in (0, 1, 2, k // 3, k // 2, k - 2, k - 1):
        p, q = 1 - r ** (m + 1) / (1 + r), r ** (k - m) / (1 + r)
        for eps in (float(mpf(k - 2 * m) / scale) - 0.4, float(mpf(k - 2 * m - 0.5) / scale)):
            value = p - mp.exp(oracles.real(eps)) * q
            assert above.delta_bounds(eps).hi >= value * (1 - mpf("1e-30"))


@pytest.mark.parametrize(
    ("sigma", "sensitivity"), [(1.0, 1), (0.3, 1), (2.0, 3), (5.0, 1), (0.7, 4), (12.0, 8)]
)
def test_discrete_gaussian(sigma: float, sensitivity: int) -> None:
    far = int(15 * sigma) + sensitivity + 3
    noise = oracle.discrete_gaussian(sigma, far)
    p = oracle.mixed(noise, [(0, 1)], sensitivity)
    q = oracle.mixed(noise, [(sensitivity, 1)], sensitivity)
    encloses(
        DiscreteGaussian(sigma=sigma, sensitivity=sensitivity),
        lambda x: oracle.hockey_stick(p, q, x),
        within=1e-12,
        xs=[x for x in XS if 0.01 < x < 100],
    )


@pytest.mark.parametrize(
    ("scale", "bound", "sensitivity"),
    [
        (1.0, 5.0, 1.0),
        (1.0, 2.0, 1.0),
        (1.0, 1.0, 1.0),
        (1.0, 1.0, 1.5),
        (0.5, 3.0, 5.9),
        (2.0, 3.0, 0.01),
        (0.1, 4.0, 1.0),
        (100.0, 1.0, 0.5),
        (100.0, 1.0, 1.5),
        (1e12, 1.0, 0.25),
        (1e150, 1.0, 0.5),
        (1e150, 1.0, 1.5),
        (1e290, 1e-10, 0.75e-10),
    ],
)
def test_truncated_laplace(scale: float, bound: float, sensitivity: float) -> None:
    """The sensitivity within the bound, and beyond it."""
    with mp.workdps(40 + max(0, int(mp.log10(scale)) - int(mp.log10(bound))) * 2):

        def truth(x: float) -> mpf:
            parts = [(0, 1)], [(sensitivity, 1)]
            return oracle.laplace_hockey_stick(*parts, scale, x, bound)

        encloses(TruncatedLaplace(scale, bound, sensitivity), truth, within=1e-9)


def test_truncated_laplace_out_of_reach() -> None:
    for sensitivity in (2.0, 2.5, 1e300):
        assert TruncatedLaplace(1.0, 1.0, sensitivity).pld().is_infinite


@pytest.mark.parametrize(
    ("eps", "categories"), [(1.0, 2), (1.0, 3), (0.1, 10), (4.0, 5), (1e-9, 4), (20.0, 1000)]
)
def test_randomized_response(eps: float, categories: int) -> None:
    p, q = oracle.response(eps, categories)
    for relation in ("replace-one", "zero-out"):
        encloses(
            RandomizedResponse(eps=eps, num_buckets=categories),
            lambda x: oracle.hockey_stick(p, q, x),
            relation=relation,
            within=1e-12,
        )


@pytest.mark.parametrize(
    ("noise", "categories"), [(0.5, 2), (0.1, 3), (1.0, 4), (1e-6, 10), (0.9, 50)]
)
def test_randomized_response_by_its_noise(noise: float, categories: int) -> None:
    p, q = oracle.uniform_response(noise, categories)
    encloses(
        RandomizedResponse(num_buckets=categories, noise_parameter=noise),
        lambda x: oracle.hockey_stick(p, q, x),
        within=1e-12,
    )


def test_blanked_randomized_response_is_below() -> None:
    """A blank report is any mixture of the others."""
    rng = np.random.default_rng(5)
    above = RandomizedResponse(eps=1.2, num_buckets=4).pld(relation="zero-out")
    report = np.array([np.exp(1.2), 1.0, 1.0, 1.0])
    rows = np.array([np.roll(report, i) for i in range(4)]) / report.sum()
    for _ in range(20):
        blank = rng.dirichlet(np.ones(4)) @ rows
        dominates(above, lambda x, b=blank: oracle.hockey_stick(rows[0], b, x), slack=1e-12)
        dominates(above, lambda x, b=blank: oracle.hockey_stick(b, rows[0], x), slack=1e-12)


# -- choices --------------------------------------------------------------------------------


def _neighbours(rng: np.random.Generator, monotonic: bool) -> tuple[list[float], list[float]]:
    """Scores of sensitivity 1, and those of a neighbour."""
    size = int(rng.integers(2, 6))
    u = rng.normal(scale=3.0, size=size)
    moves = rng.uniform(0.0 if monotonic else -1.0, 1.0, size)
    if rng.random() < 0.6:
        moves = rng.choice([0.0, 1.0] if monotonic else [-1.0, 0.0, 1.0], size)
    return u.tolist(), (u + moves).tolist()


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("eps", [0.3, 1.0, 3.0])
def test_exponential_mechanism(eps: float, monotonic: bool) -> None:
    rng = np.random.default_rng(11)
    above = ExponentialMechanism(eps, monotonic).pld(relation="add-remove")
    for _ in range(40 * FACTOR):
        u, v = _neighbours(rng, monotonic)
        p, q = oracle.softmax(u, 2 / mpf(eps)), oracle.softmax(v, 2 / mpf(eps))
        dominates(above, lambda x, p=p, q=q: oracle.hockey_stick(p, q, x), slack=1e-13)
        dominates(above, lambda x, p=p, q=q: oracle.hockey_stick(q, p, x), slack=1e-13)


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("eps", [0.3, 1.0, 3.0])
def test_exponential_mechanism_attains_it(eps: float, monotonic: bool) -> None:
    """Two candidates whose scores move apart: for each `x` some difference is as bad as allowed."""
    pld = ExponentialMechanism(eps, monotonic).pld(relation="add-remove")
    ends = (0.0, 1.0) if monotonic else (-1.0, 1.0)
    length = eps / 2 if monotonic else eps
    for t in np.linspace(-0.9, 0.9, 7) * length:
        best = 0.0
        for gap in np.linspace(-12.0 / eps, 12.0 / eps, 1201):
            p = 1.0 / (1.0 + np.exp(-0.5 * eps * (gap + ends[1] - ends[0])))
            q = 1.0 / (1.0 + np.exp(-0.5 * eps * gap))
            x = np.exp(t)
            best = max(best, max(p - x * q, 0.0) + max(1 - p - x * (1 - q), 0.0))
        value = pld.delta(float(t))
        assert best <= value * (1 + 1e-12)
        assert best >= value - 1e-4


def test_gumbel_noise_is_the_exponential_mechanism() -> None:
    for scale, sensitivity in ((2.0, 1.0), (0.5, 0.1), (1.0, 3.0)):
        for monotonic in (False, True):
            noisy = ReportNoisyMax(scale, "gumbel", sensitivity, monotonic)
            twin = ExponentialMechanism(2 * sensitivity / scale, monotonic)
            for relation in noisy.supported:
                for x in XS:
                    one = noisy.pld(relation=relation).hockey_stick_bounds(x)
                    other = twin.pld(relation=relation).hockey_stick_bounds(x)
                    assert one.lo <= other.hi and other.lo <= one.hi


def test_the_oracle_of_noisy_max() -> None:
    """Probabilities sum to 1; exponential noise is permute-and-flip; equal scores are alike."""
    scores = [0.0, 0.3, 0.3, -1.2]
    for noise in ("laplace", "exponential"):
        p = oracle.largest(scores, noise, 0.7)
        assert abs(mp.fsum(p) - 1) < mpf("1e-30")
        assert p[1] == p[2] and p[1] > p[0] > p[3] > 0
    flipped = oracle.permute_and_flip(scores, 0.7)
    exact = oracle.largest(scores, "exponential", 0.7)
    assert all(abs(a - b) < mpf("1e-30") for a, b in zip(exact, flipped, strict=True))
    two = oracle.largest([0, 1], "laplace", 1)  # the difference of two Laplace variables
    assert abs(two[0] - mp.exp(-1) * (2 + 1) / 4) < mpf("1e-30")


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("noise", ["laplace", "exponential", "gumbel"])
def test_report_noisy_max(noise: str, monotonic: bool) -> None:
    rng = np.random.default_rng(23)
    scale = 1.5
    mechanism = ReportNoisyMax(scale, noise, 1.0, monotonic)
    above = mechanism.pld(relation="add-remove")
    attained = mpf(0)
    eps = (1 if monotonic else 2) / scale
    for _ in range(25 * FACTOR):
        u, v = _neighbours(rng, monotonic)
        if noise == "gumbel":
            p, q = oracle.softmax(u, scale), oracle.softmax(v, scale)
        else:
            p, q = oracle.largest(u, noise, scale), oracle.largest(v, noise, scale)
        dominates(above, lambda x, p=p, q=q: oracle.hockey_stick(p, q, x), slack=1e-13)
        dominates(above, lambda x, p=p, q=q: oracle.hockey_stick(q, p, x), slack=1e-13)
        attained = max(attained, *(abs(mp.log(a / b)) for a, b in zip(p, q, strict=True)))
    assert eps * 0.7 < attained <= eps * (1 + 1e-12)


@pytest.mark.parametrize("noise", ["laplace", "exponential", "gumbel"])
def test_report_noisy_max_below_is_below(noise: str) -> None:
    """What `below` claims, some pair of scores shows: two candidates, then a crowd of them."""
    mechanism = ReportNoisyMax(2.0, noise)
    below = mechanism.pld(relation="replace-one", side="below")
    for x in (1.0, 1.2, 1.5, 2.0):
        best = mpf(0)
        for gap in np.linspace(-8.0, 8.0, 33):
            pairs = [([gap + 1.0, -1.0], [gap - 1.0, 1.0]), ([gap + 1.0, 0.0], [gap - 1.0, 0.0])]
            for u, v in pairs:
                if noise == "gumbel":
                    p, q = oracle.softmax(u, 2.0), oracle.softmax(v, 2.0)
                else:
                    p, q = oracle.largest(u, noise, 2.0), oracle.largest(v, noise, 2.0)
                best = max(best, oracle.hockey_stick(p, q, x), oracle.hockey_stick(q, p, x))
        # The net of gaps is coarse: what lies between two of them may be a little larger.
        assert below.hockey_stick_bounds(x).lo <= best + mpf("1e-2")
