"""The certified GDP residue against its definition in ball arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

import oracles
import residua as rz
from residua.pld.residue.contact_equation import (
    CompressedExcess,
    bisected,
    coarsened,
    compressed,
)
from residua.pld.residue.excess import FiniteExcess, gaussian_transform
from residua.pld.residue.finite import finite_cost, finite_excess
from residua.pld.residue.gdp_parameter import gdp_parameter_bounds
from residue_oracles import Check

REFERENCE = [
    (rz.pure_dp(0.1), 0.5, 0.489831931927245),
    (rz.pure_dp(0.5), 1.0, 0.859990456825928),
    (rz.pure_dp(0.5), 2.0, 1.936456714092985),
    (rz.pure_dp(1.0), 2.0, 1.729140825371549),
    (rz.laplace(scale=2.0), 1.0, 0.881113541676889),
]


@pytest.mark.parametrize(("query", "mu", "expected"), REFERENCE)
def test_reference_values(query: rz.Pld, mu: float, expected: float) -> None:
    left = rz.gdp_residue(mu, query)
    assert left is not None
    assert expected - 5e-14 <= left <= expected + 1e-15
    cost = rz.gdp_residue_cost(mu * mu, query)
    assert cost is not None
    assert float(cost.width) <= 1e-12 * float(cost.hi)
    assert mu * mu - expected**2 == pytest.approx(float(cost.hi), rel=1e-12)


# -- against the definition ---------------------------------------------------------------------


def random_query(rng: np.random.Generator) -> tuple[rz.Pld, list[tuple[Fraction, Fraction]], float]:
    n = int(rng.integers(2, 7))
    size = 10.0 ** rng.uniform(-3.0, 0.5)
    p = rng.dirichlet(np.full(n, rng.choice([0.5, 1.0, 3.0]))) + 1e-9
    q = p * np.exp(size * rng.standard_normal(n))
    query = rz.from_pair(p / p.sum(), q / q.sum())
    exact = query._atoms.exact
    pairs = [
        (Fraction(a, exact.p_den), Fraction(b, exact.q_den))
        for a, b in zip(exact.p, exact.q, strict=True)
    ]
    return query, pairs, 10.0 ** rng.uniform(-2.5, 1.0)


def grid(cost: Fraction, v: Fraction, query: rz.Pld) -> list[float]:
    """Places `t = l m²` up to where the largest losses can matter, and where the search ended."""
    listed = finite_excess(query)
    assert listed is not None
    contact = bisected(listed, float(v))
    c, m2 = float(cost), float(v - cost)
    ends = [query._atoms.z[0], query._atoms.z[-1]]
    shape = np.sinh(np.linspace(0.0, 4.0, 10)) / math.sinh(4.0)
    reach = m2 * (1.0 / m2 + 1.0 / c)
    left, right = (float(end) * reach * shape for end in ends)
    known = contact.l * (float(v) - contact.c)
    return sorted({*left.tolist(), *right.tolist(), known})


@pytest.mark.needs("flint")
def test_random_queries_on_both_sides(thorough: bool) -> None:
    rng = np.random.default_rng(20)
    certified = 0
    trials = 200 if thorough else 14
    for _ in range(trials):
        query, pairs, above = random_query(rng)
        v = Fraction((rz.gdp_parameter(query) * (1.0 + above)) ** 2)
        cost = rz.gdp_residue_cost(v, query)
        assert cost is not None
        lo, hi = Fraction(float(cost.lo)), Fraction(float(cost.hi))
        certified += float(cost.width) <= 1e-6 * float(cost.hi)
        check = Check(pairs, v)
        if hi < v:
            gap, _ = check.largest(hi, grid(hi, v, query))
            assert gap <= 0.0
        slightly_less = lo * (1 - Fraction(1, 10**7))
        gap, _ = check.largest(slightly_less, grid(lo, v, query))
        assert gap > 0.0
    assert certified >= trials - 1


@pytest.mark.parametrize("eps", [1e-8, 1e-3, 0.3, 4.0])
@pytest.mark.parametrize("above", [1e-3, 0.3, 10.0])
def test_two_atoms_as_a_response(eps: float, above: float) -> None:
    """`R_eps` by its scalar equation and as a list of atoms, on either side of the truth."""
    query = rz.pure_dp(eps)
    mu = rz.gdp_parameter(query) * (1.0 + above)
    cost = rz.gdp_residue_cost(mu * mu, query)
    assert cost is not None
    with mp.workdps(400):
        v = mpf(mu * mu)
        gaps = []
        for c in (cost.lo, cost.hi):
            m2 = v - mpf(float(c))
            far = oracles.gaussian(mp.sqrt(m2), mp.exp(mpf(eps)))
            mine = mp.tanh(mpf(eps) / 2) + 2 * far / (1 + mp.exp(mpf(eps)))
            gaps.append(mine - oracles.gaussian(mp.sqrt(v), 1))
    assert gaps[0] >= 0 >= gaps[1]
    assert float(cost.width) <= 1e-10 * float(cost.hi)
    listed = finite_excess(query)
    assert listed is not None
    low, high = finite_cost(listed, mu * mu, mu * mu, 1e-300)
    assert low <= cost.hi
    assert cost.lo <= high <= float(cost.hi) * (1.0 + 1e-6)


@pytest.mark.parametrize("scale", [0.2, 2.0, 50.0])
@pytest.mark.parametrize("above", [0.01, 1.0])
def test_laplace_touches_at_one_only(scale: float, above: float) -> None:
    query = rz.laplace(scale=scale)
    mu = rz.gdp_parameter(query) * (1.0 + above)
    cost = rz.gdp_residue_cost(mu * mu, query)
    assert cost is not None
    eps = query.epsilon(0.0)
    for t in (0.0, 0.3 * eps, eps, 3.0 * eps, -0.5 * eps, -2.0 * eps):
        with mp.workdps(40):
            x, m2 = mp.exp(mpf(t)), mpf(mu * mu) - mpf(float(cost.hi))
            mine = oracles.laplace_sum([(mpf(1) / mpf(scale), 1)], x, m2)
            assert mine <= oracles.gaussian(mpf(mu * mu) ** mpf("0.5"), x)
    with mp.workdps(40):
        m2 = mpf(mu * mu) - mpf(float(cost.lo))
        mine = oracles.laplace_sum([(mpf(1) / mpf(scale), 1)], mpf(1), m2)
        assert mine >= oracles.gaussian(mpf(mu * mu) ** mpf("0.5"), 1)


def test_composition_with_a_laplace() -> None:
    query = 3 * rz.pure_dp(0.1) + rz.laplace(scale=2.0)
    cost = rz.gdp_residue_cost(4.0, query)
    assert cost is not None
    assert float(cost.width) <= 3e-6 * float(cost.hi)
    with mp.workdps(40):
        heads = 1 / (1 + mp.exp(mpf(-0.1)))
        tails = 1 - heads
        for c, sign in ((cost.lo, 1), (cost.hi, -1)):
            total = mpf(0)
            for k in range(4):
                mass = math.comb(3, k) * heads**k * tails ** (3 - k)
                shift = mp.exp(-(2 * k - 3) * mpf(0.1))
                total += mass * oracles.laplace_sum([(mpf("0.5"), 1)], shift, 4 - mpf(float(c)))
            assert sign * (total - oracles.gaussian(2, 1)) >= 0


# -- facts --------------------------------------------------------------------------------------

QUERIES = [
    rz.pure_dp(0.3),
    rz.laplace(scale=3.0),
    rz.bounded_range(0.8),
    4 * rz.pure_dp(0.2),
    rz.from_pair([0.2, 0.5, 0.3], [0.1, 0.7, 0.2]),
    rz.from_pair([1e-6, 0.6, 0.4 - 1e-6], [1e-4, 0.55, 0.45 - 1e-4]),
    rz.pure_dp(0.1) + rz.laplace(scale=4.0),
    300 * rz.pure_dp(0.01) + 20 * rz.laplace(scale=20.0),
    rz.subsampled_gaussian(2.0, 0.1),
    rz.gaussian(mu=0.3) + rz.pure_dp(0.2),
]


@pytest.mark.parametrize("query", QUERIES, ids=repr)
def test_costs_fall_with_the_budget_and_stay_above_renyi(query: rz.Pld) -> None:
    before = math.inf
    start = rz.gdp_parameter(query)
    orders = np.array([0.5, 1.5, 2.0, 4.0, 16.0])
    least = float(np.max(2.0 * query.renyi_bounds(orders).lo / orders))
    for above in (0.05, 0.4, 10.0):
        cost = rz.gdp_residue_cost((start * (1.0 + above)) ** 2, query)
        assert cost is not None
        assert cost.lo <= before
        assert cost.hi >= least
        before = float(cost.hi)
    back = rz.gdp_residue_cost((start * 1.4) ** 2, query.reverse())
    assert back is not None
    assert float(back.hi) == pytest.approx(
        float(rz.gdp_residue_cost((start * 1.4) ** 2, query).hi),
        rel=2e-6,
    )


@pytest.mark.parametrize("query", QUERIES, ids=repr)
def test_what_is_left_and_the_query_are_below_the_budget(query: rz.Pld) -> None:
    mu = 1.7 * rz.gdp_parameter(query)
    cost = rz.gdp_residue_cost(mu * mu, query)
    left = rz.gdp_residue(mu, query)
    assert cost is not None
    assert left is not None
    assert Fraction(left) ** 2 <= Fraction(mu) ** 2 - Fraction(float(cost.lo))
    # The general order needs room; the certificate did not.
    wide = rz.gdp_residue_cost(mu * mu * 0.98, query)
    assert wide is not None
    if not any("subsampled" in repr(f) for f in query.terms):
        x = np.exp(np.linspace(-3.0, 3.0, 61))
        both = (rz.gaussian(mu=left) + query).hockey_stick_bounds(x)
        assert np.all(both.lo <= rz.gaussian(mu=mu).hockey_stick_bounds(x).hi)


def test_gaussians_split_off() -> None:
    query = rz.pure_dp(0.3)
    alone = rz.gdp_residue_cost(4.0, query)
    both = rz.gdp_residue_cost(4.0, query + rz.gaussian(mu=0.5))
    assert alone is not None
    assert both is not None
    assert float(both.hi) == pytest.approx(float(alone.hi) + 0.25, rel=1e-15)
    assert rz.gdp_residue_cost(Fraction(1, 4), rz.gaussian(mu=0.5)) == rz.Interval(0.25, 0.25)
    assert rz.gdp_residue(0.5, rz.gaussian(mu=0.5)) == 0.0
    assert rz.gdp_residue(0.4, rz.gaussian(mu=0.5)) is None


def test_identity_costs_nothing() -> None:
    assert rz.gdp_residue(0.7, rz.identity()) == 0.7
    assert rz.gdp_residue(0.0, rz.identity()) == 0.0
    assert rz.gdp_residue(0.0, rz.pure_dp(0.1)) is None


@pytest.mark.parametrize(
    "query",
    [
        rz.approximate_dp(0.1, 1e-12),
        rz.from_pair([0.5, 0.5, 0.0], [0.4, 0.5, 0.1]),
        rz.from_pair([0.5, 0.4, 0.1], [0.5, 0.5, 0.0]),
        rz.approximate_dp(0.0, 1.0),
    ],
    ids=repr,
)
def test_mass_at_infinity_never_fits(query: rz.Pld) -> None:
    assert rz.gdp_residue(40.0, query) is None
    assert rz.gdp_residue_cost(1600.0, query) is None


@pytest.mark.parametrize("query", QUERIES[:6], ids=repr)
def test_next_to_the_parameter(query: rz.Pld) -> None:

    nu = gdp_parameter_bounds(query)
    assert rz.gdp_residue(float(nu.lo) * (1.0 - 1e-9), query) is None
    left = rz.gdp_residue(float(nu.hi) * (1.0 + 1e-9), query)
    assert left is not None
    assert 0.0 <= left < 0.2 * float(nu.hi)


@pytest.mark.parametrize("eps", [20.0, 300.0])
def test_huge_losses(eps: float) -> None:
    assert rz.gdp_residue(3.0, rz.pure_dp(eps)) is None
    cost = rz.gdp_residue_cost(2500.0, rz.pure_dp(eps))
    assert cost is not None
    assert float(cost.width) <= 1e-11 * float(cost.hi)
    assert float(cost.lo) >= 8.0 * (0.5 * eps - math.log(2.0))


def test_tiny_losses_keep_their_digits() -> None:
    for eps in (1e-8, 1e-100):
        cost = rz.gdp_residue_cost(1.0, rz.pure_dp(eps))
        assert cost is not None
        assert float(cost.hi) == pytest.approx(eps * eps, rel=1e-6)
    twice = rz.gdp_residue_cost(1.0, 2 * rz.pure_dp(1e-8))
    assert twice is not None
    assert float(twice.hi) == pytest.approx(2e-16, rel=1e-6)
    listed = rz.from_pair([0.5 + 2.0**-40, 0.5 - 2.0**-40], [0.5, 0.5])
    cost = rz.gdp_residue_cost(1.0, listed)
    assert cost is not None
    assert float(cost.hi) == pytest.approx(2.0**-78, rel=1e-6)


def test_subsampled_gaussian_loses_its_amplification() -> None:
    cost = rz.gdp_residue_cost(4.0, rz.subsampled_gaussian(2.0, 0.01))
    assert cost == rz.Interval(0.25, 0.25)


def test_arguments() -> None:
    with pytest.raises(ValueError, match="mu must be"):
        rz.gdp_residue(math.nan, rz.pure_dp(0.1))
    with pytest.raises(ValueError, match="mu_squared must be"):
        rz.gdp_residue_cost(Fraction(-1), rz.pure_dp(0.1))
    with pytest.raises(TypeError, match="L must be a Pld"):
        rz.gdp_residue(1.0, 0.1)


# -- transforms ---------------------------------------------------------------------------------


def exact_query_side(excess: FiniteExcess, m2: float, l: float) -> mpf:
    total = mpf(0)
    for weight, z in zip(excess.weights.tolist(), excess.losses.tolist(), strict=True):
        length, sign = abs(mpf(z)), mp.sign(z)
        total += mpf(weight) * mp.quad(
            lambda y, length=length, sign=sign: (
                2 * mp.sinh((length - y) / 2) * mp.exp(-y * y / (2 * mpf(m2)) + sign * l * y)
            ),
            mp.linspace(0, length, 9),
        )
    return mp.log(total)


@pytest.mark.parametrize("size", [1e-6, 2.0])
@pytest.mark.parametrize("ratio", [0.2, 20.0])
def test_transforms_against_quadrature(size: float, ratio: float) -> None:
    rng = np.random.default_rng(3)
    z = np.sort(size * rng.standard_normal(3))
    excess = FiniteExcess(rng.exponential(size=3), z, 0.0, 0.0)
    m2, c = (ratio * size) ** 2, 0.7 * size * size
    for l in (0.0, 1.0 / size, -8.0 / size):
        made = excess.transform(m2, np.array([l]))
        with mp.workdps(25):
            assert abs(made.log[0] - exact_query_side(excess, m2, l)) <= made.error[0]
            budget = gaussian_transform(m2, c, np.array([l]))
            exact = mp.quad(
                lambda s, l=l: (
                    mp.exp(-s / 8 + mpf(l) ** 2 * m2 * s / (2 * (m2 + s)))
                    / (2 * mp.sqrt(1 + s / mpf(m2)))
                ),
                mp.linspace(0, c, 9),
            )
            assert abs(budget.log[0] - mp.log(exact)) <= budget.error[0]


def test_compression_is_within_its_error() -> None:
    rng = np.random.default_rng(4)
    z = np.sort(rng.standard_normal(4000))
    excess = FiniteExcess(rng.exponential(size=4000) / 4000, z, 0.0, 0.0)
    l = np.array([-20.0, -3.0, 0.0, 1.0, 12.0])
    for m2 in (0.3, 4.0):
        exact = excess.transform(m2, l)
        short = compressed(excess, 1.0)
        assert isinstance(short, CompressedExcess)
        made = short.transform(m2, l)
        assert np.all(np.abs(made.log - exact.log) <= made.error + exact.error)
        above = coarsened(excess, 100).transform(m2, l)
        assert np.all(above.log > exact.log)


@pytest.mark.parametrize("losses", [(20.0, 20.0), (30.106, 13.774)])
def test_large_losses_take_no_more_together_than_one_after_the_other(
    losses: tuple[float, float],
) -> None:
    whole = rz.pure_dp(losses[0]) + rz.pure_dp(losses[1])
    left = v = Fraction(1.2 * rz.gdp_parameter(whole)) ** 2
    for eps in losses:
        one = rz.gdp_residue_cost(left, rz.pure_dp(eps))
        assert one is not None
        left -= Fraction(float(one.hi))
    together = rz.gdp_residue_cost(v, whole)
    assert together is not None
    assert float(together.hi) <= float(v - left) * (1.0 + 1e-9) < float(v)
    assert together.lo <= together.hi
