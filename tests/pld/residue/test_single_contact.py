"""The scalar equation of a central law: one reading of both sides, against 60 digits and more."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from mpmath import mp, mpf

import residua as rz
from residua.pld.families.symmetric import BoundedRange
from residua.pld.residue import single_contact
from residua.pld.residue.symmetric_family import CentralLaw, density, height
from residue_oracles import AtOne


class Loss(NamedTuple):
    """`w R_e + (1-w) B_e`, or Laplace noise of this largest loss for a `response` of None."""

    eps: float
    response: float | None

    @property
    def law(self) -> CentralLaw:
        if self.response is None:
            return CentralLaw(self.eps, 0.5, 0.5)
        return CentralLaw(self.eps, *BoundedRange(self.eps, self.response).weights)


def gap(loss: Loss, v: mpf, c: mpf) -> mpf:
    """`h_{L ⊕ G_m}(1) - h_{G_mu}(1)`, by error functions."""
    e, m2 = mpf(loss.eps), v - c
    m = mp.sqrt(m2)

    def integral(a: mpf) -> mpf:
        """`∫ e^{-at - t²/2m²} dt` over `(0, e)`."""
        ends = (mp.erf((e / m + a * m) / mp.sqrt(2)), mp.erf(a * m / mp.sqrt(2)))
        return m * mp.sqrt(mp.pi / 2) * mp.exp(a * a * m2 / 2) * (ends[0] - ends[1])

    half = mpf(1) / 2
    falling, level, rising = integral(half), integral(mpf(0)), integral(-half)
    if loss.response is None:
        query = falling - mp.exp(-e / 2) * level
    else:
        query = mpf(loss.response) * (falling - mp.exp(-e) * rising) / (1 + mp.exp(-e))
        flat = falling - 2 * mp.exp(-e / 2) * level + mp.exp(-e) * rising
        query += (1 - mpf(loss.response)) * flat / (1 - mp.exp(-e))
    scale = mp.exp(-m2 / 8) / mp.sqrt(2 * mp.pi * m2)
    mine = mp.erf(mp.sqrt(m2 / 8)) + 2 * query * scale
    return mine - mp.erf(mp.sqrt(v / 8))


def cases(count: int) -> list[tuple[Loss, float]]:
    """Laws of every kind and budgets from barely enough to ample."""
    rng = np.random.default_rng(40)
    found = []
    while len(found) < count:
        eps, weight = 10.0 ** rng.uniform(-6.0, 1.3), float(rng.choice([0.0, 0.5, 1.0]))
        laplace = bool(rng.integers(2))
        loss = Loss(eps, None if laplace else weight)
        v = (eps * 10.0 ** rng.uniform(-0.3, 3.0)) ** 2
        if v < 1e3 and single_contact.fits(loss.law, v):
            found.append((loss, v))
    return found


def test_on_either_side_of_the_truth(thorough: bool) -> None:
    for place, (loss, v) in enumerate(cases(400 if thorough else 60)):
        v_up = math.nextafter(v, math.inf) if place % 2 else v
        found = single_contact.cost_at_zero(loss.law, v, v_up)
        assert found is not None
        low, high = found
        with mp.workdps(60 + int(v)):
            assert gap(loss, mpf(v_up), mpf(low)) >= 0
            assert high == v or gap(loss, mpf(v), mpf(high)) <= 0
        assert high - low <= 1e-11 * high


@pytest.mark.parametrize("off", [0.0, 1e-12, -1e-12, 1e-9, -1e-9, 1e-4, -1e-4])
def test_a_search_that_ends_elsewhere_proves_nothing_wrong(off: float) -> None:
    """Raised and lowered from a cost that is off: still on either side of the truth."""
    for loss, v in cases(12):
        both = single_contact._lacking if loss.eps > 3.0 else single_contact._themselves
        near = single_contact._root(loss.law, v, both)
        c = min(near * (1.0 + off), 0.5 * (near + v))
        raised = single_contact._moved(loss.law, v, c, both, 1.0)
        lowered = single_contact._moved(loss.law, v, c, both, -1.0)
        with mp.workdps(60 + int(v)):
            assert raised == v or gap(loss, mpf(v), mpf(raised)) <= 0
            assert gap(loss, mpf(v), mpf(lowered)) >= 0
        if off == 0.0:
            assert raised - lowered <= 1e-11 * raised


def test_how_fast_the_sides_part() -> None:
    """`d/dc` of the gap is `-½ e^{-m²/8} / √(2π m²)` times the density."""
    for loss, v in cases(12):
        with mp.workdps(80):
            exact, c = mpf(v), mpf(0.4 * v)
            step = mpf(10) ** -30 * c
            slope = (gap(loss, exact, c + step) - gap(loss, exact, c - step)) / (2 * step)
            m2 = exact - c
            expected = -mp.exp(-m2 / 8) / mp.sqrt(2 * mp.pi * m2) / 2
            assert float(slope / expected) == pytest.approx(density(loss.law, float(m2)), rel=1e-12)


@pytest.mark.parametrize(
    "query",
    [rz.laplace(scale=50.0), rz.laplace(scale=1.0), rz.pure_dp(0.01), rz.pure_dp(1.0)],
    ids=repr,
)
def test_within_a_hair_of_the_whole_budget(query: rz.Pld) -> None:
    """Where hardly anything is left the root is hard to find; it is still an answer."""
    nu = rz.gdp_parameter(query)
    admitted = []
    for step in range(-30, 300, 3):
        left = rz.gdp_residue(nu * (1.0 + 37.0 * step * 2.0**-52), query)
        admitted.append(left is not None)
        assert left is None or 0.0 <= left < 0.2 * nu
    assert admitted == sorted(admitted) and admitted[-1]


def oracle(loss: Loss) -> AtOne:
    return AtOne(loss.eps, loss.response or 0.0, loss.response is None)


def least_budget(loss: Loss) -> float:
    """About the least `v` that the law fits."""
    from scipy.special import erfcinv, erfinv

    at_one, lacking = height(loss.law)
    return 8.0 * float(erfinv(at_one) if at_one < 0.5 else erfcinv(lacking)) ** 2


def drawn_loss(rng: np.random.Generator, low: float, high: float) -> Loss:
    """Of every kind, the largest loss log-uniform between powers of 10."""
    eps = min(10.0 ** rng.uniform(low, high), 600.0)
    share = 10.0 ** rng.uniform(-12.0, 0.0)
    kinds = (1.0, 0.0, None, rng.uniform(), share, 1.0 - share)
    return Loss(eps, kinds[rng.integers(len(kinds))])


def assert_bounds(loss: Loss, v: float, v_up: float, widest: float) -> None:
    found = single_contact.cost_at_zero(loss.law, v, v_up)
    if found is None:
        assert v < least_budget(loss) * (1.0 + 1e-12)
        return
    low, high = found
    exact = oracle(loss)
    assert exact.sign_of_fit(v) < 0
    assert 0.0 <= low <= high <= v
    assert low == 0.0 or exact.sign_of_gap(v_up, low) >= 0, (loss, v, v_up, low)
    assert high == v or exact.sign_of_gap(v, high) <= 0, (loss, v, high)
    assert high - low <= widest * high, (loss, v, low, high)


EPS = {"any": (-130.0, 2.78), "usual": (-6.0, 2.78), "large": (2.0, 2.78), "borders": (0.3, 0.85)}
"""Powers of 10. Borders: where lacks take over, and where `B` has its closed form."""
BUDGETS = {
    "nearly used up": lambda rng, least: least * (1.0 + 10.0 ** rng.uniform(-16.0, -0.5)),
    "ample": lambda rng, least: least * (1.0 + 10.0 ** rng.uniform(-3.0, 4.0)),
    "any": lambda rng, least: max(10.0 ** rng.uniform(0.0, 200.0), 1.001 * least),
}


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("eps", EPS)
def test_bounds_hold_for_any_loss_and_budget(eps: str, budget: str, thorough: bool) -> None:
    rng = np.random.default_rng(41)
    for place in range(1000 if thorough else 50):
        loss = drawn_loss(rng, *EPS[eps])
        v = BUDGETS[budget](rng, least_budget(loss))
        v_up = math.nextafter(v, math.inf) if place % 2 else v
        # Next to the least budget the cost is hardly determined.
        assert_bounds(loss, v, v_up, 1.0 if budget == "nearly used up" else 1e-10)


@pytest.mark.parametrize(
    "loss, v",
    [
        # The lack of Laplace noise and bounded range is largest at 0, far from that of a response.
        (Loss(456.793654044342, None), 2284.357680716651),
        (Loss(507.65897822599356, 0.0), 4460.13020557212),
        (Loss(530.5435635655052, 0.9868156372712134), 2655.9143526224143),
        # The share of the budget underflows.
        (Loss(5.79035562476547e-62, 1.0), 1.4404549637523748e199),
        (Loss(4.991238390241924e-129, 0.0), 1.2547975795711158e54),
        (Loss(4.822621642428095e-99, None), 1.1690124510702823e179),
        # `Σ √(pq)` is far below `u`: the search began at a share of the budget.
        (Loss(80.41013979518547, 1.0), 4.1267495094929555e174),
        (Loss(296.58937379823243, 0.0), 1.2934588793765425e194),
    ],
)
def test_losses_and_budgets_that_were_wrong_once(loss: Loss, v: float) -> None:
    assert_bounds(loss, v, v, 1e-10)
    assert_bounds(loss, v, math.nextafter(v, math.inf), 1e-10)


@pytest.mark.parametrize("response", [1.0, 0.0, None], ids=["response", "range", "laplace"])
def test_a_budget_next_to_the_least_is_not_mistaken(response: float | None, thorough: bool) -> None:
    """`erfc` of a rounded root is off by `v/4` roundings: as much as a step of `v` changes it."""
    rng = np.random.default_rng(4)
    losses = [10.0 ** rng.uniform(1.5, 2.77) for _ in range(2000 if thorough else 150)]
    # Those that were mistaken once.
    for eps in [530.9677720183008, 321.15578029265066, 547.3891779005183, *losses]:
        loss = Loss(eps, response)
        exact, v = oracle(loss), least_budget(loss)
        while exact.sign_of_fit(v) > 0:
            v = math.nextafter(v, math.inf)
        while exact.sign_of_fit(v) < 0:
            v = math.nextafter(v, 0.0)
        assert not single_contact.fits(loss.law, v)
        assert not single_contact.refuses(loss.law, math.nextafter(v, math.inf))
        assert single_contact.fits(loss.law, v * (1.0 + 1e-13))
        assert single_contact.refuses(loss.law, v * (1.0 - 1e-13))


def test_lower_ends_hold_for_the_exact_laplace_noise() -> None:
    """Its largest loss is a quotient, which the law rounds up."""
    rng = np.random.default_rng(42)
    for _ in range(40):
        scale, mu = 10.0 ** rng.uniform(-2.7, 3.0), 10.0 ** rng.uniform(-3.0, 2.5)
        cost = rz.gdp_residue_cost(Fraction(mu) ** 2, rz.laplace(scale=scale))
        left = rz.gdp_residue(mu, rz.laplace(scale=scale))
        if cost is None:
            assert left is None
            continue
        exact = AtOne(1 / Fraction(scale), 0.0, True)
        square = Fraction(mu) ** 2
        assert exact.sign_of_gap(square, cost.lo) >= 0
        assert cost.hi >= square or exact.sign_of_gap(square, cost.hi) <= 0
        assert left is not None
        assert left == 0.0 or exact.sign_of_gap(square, square - Fraction(left) ** 2) <= 0


@pytest.mark.parametrize("mu", [1e-152, 1e-150, 1e-140, 1e-130, 1.0, 1e100])
@pytest.mark.parametrize("eps", [2.0**-1000, 1e-200, 1e-162, 1e-150, 1e-140])
def test_losses_whose_squares_underflow(eps: float, mu: float) -> None:
    for query in (rz.pure_dp(eps), rz.laplace(scale=1.0 / eps), rz.bounded_range(eps)):
        cost = rz.gdp_residue_cost(Fraction(mu) ** 2, query)
        # Between those of bounded range, eps²/3, and of a response, eps², for an ample budget.
        if cost is None:
            assert mu < 2.0 * eps or mu < 2.0**-499
            continue
        assert cost.hi >= min(Fraction(mu) ** 2, Fraction(eps) ** 2 / 16)
        assert cost.lo <= 2 * Fraction(eps) ** 2
