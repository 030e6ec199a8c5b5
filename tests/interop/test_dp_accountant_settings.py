"""The settings in which dp_accounting tries its Rényi and PLD accountants, asked of ours.

Expected values are worked out here: closed forms and integrals in mpmath. Where their accountant
reads a Rényi divergence, ours is that of the PLD; where it converts one to `eps`, ours is exact,
and so never above theirs.
"""

import math
from typing import Any

import mpmath as mp
import pytest

import residua as rz

pytestmark = pytest.mark.needs("dp_accounting")

E, PI = 2.71828, 3.14159


@pytest.fixture(scope="module")
def dp() -> Any:
    import dp_accounting

    return dp_accounting


def accountant(relation: str = "ADD_OR_REMOVE_ONE") -> Any:
    from dp_accounting import NeighboringRelation

    return rz.interop.PrivacyAccountant(NeighboringRelation[relation])


def divergence(event: Any, alpha: float, relation: str = "add-remove") -> float:
    """The Rényi divergence of an event, in the worse direction."""
    losses = rz.interop.from_dp_event(event, relation).plds(relation).values()
    return max(loss.renyi(alpha) for loss in losses)


def close(found: float, exact: Any, rel: float = 1e-9) -> bool:
    """From above, and no further than that."""
    return bool(exact * (1 - mp.mpf("1e-15")) <= found <= exact * (1 + rel))


def test_divergences_add_up_however_they_are_nested(dp: Any) -> None:
    one, two = dp.GaussianDpEvent(PI), dp.GaussianDpEvent(1.61803)
    many, of = dp.SelfComposedDpEvent, dp.ComposedDpEvent
    exact = 6 * E / (2 * mp.mpf(PI) ** 2)
    for event in (
        many(one, 6),
        many(many(one, 2), 3),
        of([one] * 6),
        of([many(one, 1), many(one, 2), many(one, 3)]),
    ):
        assert close(divergence(event, E), exact)
    both = E / (2 * mp.mpf(PI) ** 2) + E / (2 * mp.mpf(1.61803) ** 2)
    assert close(divergence(of([one, two]), E), both)


def test_gaussians_on_a_whole_sample(dp: Any) -> None:
    inside = dp.ComposedDpEvent([dp.GaussianDpEvent(E), dp.GaussianDpEvent(6.28319)])
    exact = PI / (2 * mp.mpf(E) ** 2) + PI / (2 * mp.mpf(6.28319) ** 2)
    assert close(divergence(dp.PoissonSampledDpEvent(1.0, inside), PI), exact)


@pytest.mark.parametrize("order", [1.5, 2.5, 5.0, 50.0, 100.0])
def test_fifty_sampled_gaussians(dp: Any, order: float) -> None:
    step = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(2.5))
    exact = 50 * _sampled(mp.mpf(0.01), mp.mpf(2.5), mp.mpf(order)) / (order - 1)
    assert close(divergence(dp.SelfComposedDpEvent(step, 50), order), exact, 1e-6)


@pytest.mark.parametrize(
    ("q", "sigma", "order"),
    [
        (1e-6, 1.0, 27.0),
        (1e-4, 1.0, 1.5),
        (1e-3, 1.0, 2.0),
        (0.01, 10.0, 20.0),
        (0.1, 100.0, 20.5),
        (0.4, 12.0, 58.5),
        (0.4, 12.0, 59.1),
    ],
)
def test_one_sampled_gaussian(dp: Any, q: float, sigma: float, order: float) -> None:
    """Small rates and fractional orders, some of which once came out negative there."""
    found = divergence(dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(sigma)), order)
    exact = _sampled(mp.mpf(q), mp.mpf(sigma), mp.mpf(order)) / (order - 1)
    assert exact <= found <= exact * (1 + mp.mpf("1e-4")) + mp.mpf("1e-12")


def _sampled(q: Any, sigma: Any, order: Any) -> Any:
    """`ln E[(dP/dQ)^α]` of a sample against none: a binomial sum, or an integral."""
    with mp.workdps(30):
        if order == int(order):
            n = int(order)
            powers = (mp.exp(mp.mpf(k * (k - 1)) / (2 * sigma**2)) for k in range(n + 1))
            weights = (mp.binomial(n, k) * (1 - q) ** (n - k) * q**k for k in range(n + 1))
            return mp.log(sum(w * p for w, p in zip(weights, powers, strict=True)))

        def ratio(x: Any) -> Any:
            tilt = 1 - q + q * mp.exp((2 * x - 1) / (2 * sigma**2))
            return mp.npdf(x, 0, sigma) * tilt**order

        reach = 12 * sigma + order
        return mp.log(mp.quad(ratio, mp.linspace(-reach, reach, 17), maxdegree=5))


@pytest.mark.parametrize(("noise", "buckets"), [(0.3, 10), (0.05, 20), (0.01, 3)])
@pytest.mark.parametrize("order", [1.5, 2.5, 5.0, 50.0, 100.0])
def test_randomized_responses(dp: Any, noise: float, buckets: int, order: float) -> None:
    event = dp.RandomizedResponseDpEvent(noise, buckets)
    with mp.workdps(30):
        rest = mp.mpf(noise) / buckets
        truth = 1 - rest * (buckets - 1)
        swapped = {truth: rest, rest: truth}
        moment = sum(p**order * q ** (1 - order) for p, q in swapped.items())
        moment += (buckets - 2) * rest
        exact = mp.log(moment) / (order - 1)
        assert close(divergence(event, order, "replace-one"), exact, 1e-6)
        # Blanked: one of all buckets at random.
        blank = mp.mpf(1) / buckets
        ways = []
        for power in (order, 1 - order):
            parts = truth**power * blank ** (1 - power)
            ways.append(parts + (buckets - 1) * rest**power * blank ** (1 - power))
        exact = mp.log(max(ways)) / (order - 1)
        assert close(divergence(event, order, "zero-out"), exact, 1e-6)


def test_responses_at_the_ends(dp: Any) -> None:
    response = dp.RandomizedResponseDpEvent
    for relation in ("REPLACE_ONE", "REPLACE_SPECIAL"):
        assert accountant(relation).compose(response(1, 2)).get_epsilon(0) == 0
        assert accountant(relation).compose(response(0.1, 1)).get_epsilon(0) == 0
        blunt = accountant(relation).compose(response(0.0, 3))
        assert blunt.get_delta(1.0) == 1 and blunt.get_epsilon(0.01) == math.inf
        for bad in (response(-1, 10), response(2, 10), response(0.1, 0)):
            with pytest.raises(ValueError):
                accountant(relation).compose(bad)
    # 0.91 against 0.01, and 0.1 against 0.01.
    for relation, ratio in (("REPLACE_ONE", 91), ("REPLACE_SPECIAL", 10)):
        found = accountant(relation).compose(response(0.1, 10)).get_epsilon(0)
        assert found == pytest.approx(math.log(ratio), rel=1e-9)


def test_noise_of_no_size_hides_nothing(dp: Any) -> None:
    events = dp.dp_event
    for event in (
        dp.LaplaceDpEvent(0),
        events.DiscreteLaplaceDpEvent(0, 1),
        dp.PoissonSampledDpEvent(0.1, dp.LaplaceDpEvent(0)),
        events.MixtureOfGaussiansDpEvent(0, [1, 2], [0.5, 0.5]),
    ):
        made = accountant().compose(event)
        assert made.get_delta(1.0) == 1 and made.get_epsilon(0.01) == math.inf


def test_zcdp_bounds_at_one_order(dp: Any) -> None:
    event = dp.ComposedDpEvent([dp.ZCDpEvent(E, PI), dp.ZCDpEvent(6.28319, 1.23456)])
    exact = PI + 1.23456 + 2 * (E + 6.28319)
    filter = rz.RenyiFilter(alpha=2.0, rho=100.0)
    decision = filter.check(rz.interop.from_dp_event(event))
    assert decision.admitted and decision.cost == pytest.approx(exact, rel=1e-12)


def test_conversions_are_at_least_as_good(dp: Any) -> None:
    """Their settings for the conversion: a flat curve, and noise made for (1, 1e-6) by it."""
    from dp_accounting import rdp

    orders = list(range(2, 33))
    theirs, _ = rdp.rdp_privacy_accountant.compute_epsilon(orders, [1.1] * len(orders), 1e-5)
    flat = rz.mechanisms.Rdp(tuple(map(float, orders)), (1.1,) * len(orders))
    # No mechanism within the curve is above ours, and 1.1-DP is within it.
    assert rz.pure_dp(1.1).epsilon(1e-5) < flat.pld().epsilon(1e-5) <= theirs + 1e-6
    made = accountant().compose(dp.GaussianDpEvent(4.530877117))
    assert 0.9 < made.get_epsilon(1e-6) <= 1.0 and made.get_delta(1.0) <= 1e-6


def test_gaussian_deltas_are_the_optimal_ones(dp: Any) -> None:
    made = accountant().compose(dp.GaussianDpEvent(1))
    with mp.workdps(40):
        for eps in (0.0, 0.5, 1.7, 6.0, 15.0, 30.0):
            exact = mp.ncdf(mp.mpf("0.5") - eps) - mp.exp(eps) * mp.ncdf(-mp.mpf("0.5") - eps)
            assert exact <= made.get_delta(eps) <= exact * (1 + mp.mpf("1e-9"))


@pytest.mark.parametrize("q", [0, 0.01, 0.8, 1.0])
@pytest.mark.parametrize("noise", [0.0, 0.1, 1.0, 100.0])
def test_delta_and_epsilon_agree(dp: Any, q: float, noise: float) -> None:
    made = accountant().compose(dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(noise)))
    for delta in (0.9, 1e-3, 1e-12):
        eps = made.get_epsilon(delta)
        if eps == math.inf:
            assert made.get_delta(600.0) >= delta
        elif eps == 0.0:
            assert made.get_delta(eps) <= delta
        else:
            assert delta * (1 - 1e-3) <= made.get_delta(eps) <= delta * (1 + 1e-9)


def test_trees(dp: Any) -> None:
    tree, noise = dp.SingleEpochTreeAggregationDpEvent, dp.GaussianDpEvent
    for sigma, published in ((1.13, 19.74), (8.83, 2.04)):
        made = accountant("REPLACE_SPECIAL").compose(tree(sigma, 1600))
        assert made.get_epsilon(1e-6) < published
    for counts in ([400] * 4, [800] * 2, [10, 400, 400, 400, 390]):
        whole = divergence(dp.ComposedDpEvent([tree(0.5, n) for n in counts]), 2.0, "zero-out")
        parts = sum(divergence(tree(0.5, n), 2.0, "zero-out") for n in counts)
        assert whole == pytest.approx(parts, rel=1e-12)
        last = math.inf
        for sigma in (0.6, 2.1, 5.1, 9.6):
            made = accountant("REPLACE_SPECIAL")
            made.compose(dp.ComposedDpEvent([tree(sigma, n) for n in counts]))
            assert made.get_epsilon(1e-6) < last
            last = made.get_epsilon(1e-6)
    counts = [10, 40, 30, 20]
    largest = max(divergence(tree(0.5, n), 2.0, "zero-out") for n in counts)
    assert divergence(tree(0.5, counts), 2.0, "zero-out") == largest
    single = dp.ComposedDpEvent([tree(0.1, 1)] * 100)
    plain = dp.SelfComposedDpEvent(noise(0.1), 100)
    assert divergence(single, 2.0, "zero-out") == divergence(plain, 2.0)
    for bad in (tree(-1, 3), tree(1, -3)):
        with pytest.raises(ValueError):
            accountant("REPLACE_SPECIAL").compose(bad)


@pytest.mark.parametrize(("eps", "count"), [(0.01, 1), (1.0, 1), (100.0, 1), (1.0, 100)])
def test_laplace(dp: Any, eps: float, count: int) -> None:
    event = dp.SelfComposedDpEvent(dp.LaplaceDpEvent(1 / eps), count)
    made = accountant().compose(event)
    assert made.get_epsilon(0) == pytest.approx(eps * count, rel=1e-9)
    assert made.get_epsilon(1e-10) <= eps * count * (1 + 1e-9)
    assert divergence(event, 1.0 + 1e-6) <= min(eps, eps * eps / 2) * count * (1 + 1e-5)


@pytest.mark.parametrize(("mean", "shape"), [(1000.0, 0.0), (1000.0, 1.0), (100.0, 2.0)])
def test_repeating_pure_noise(dp: Any, mean: float, shape: float) -> None:
    """As theirs, which take what is least at this order or a larger one."""
    event = dp.dp_event.RepeatAndSelectDpEvent(dp.LaplaceDpEvent(1.0), mean, shape)
    found = rz.interop.from_dp_event(event)
    assert isinstance(found, rz.mechanisms.Rdp)
    theirs = _their_divergences(event, found.orders)
    for place, known in enumerate(theirs):
        assert min(found.epsilons[place:]) == pytest.approx(known, rel=0.02)


def _their_divergences(event: Any, orders: tuple[float, ...]) -> list[float]:
    from dp_accounting import rdp

    made = rdp.RdpAccountant(orders=list(orders)).compose(event)
    return [float(value) for value in made._rdp]


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_rates_and_noises_that_cannot_be(dp: Any, rate: float) -> None:
    with pytest.raises(ValueError):
        accountant().compose(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(1)))
    with pytest.raises(ValueError):
        accountant().compose(dp.GaussianDpEvent(-1))


def test_samples_that_are_cut_are_bounded_from_above(dp: Any) -> None:
    """Their pair knows whether a sample was cut; ours assumes the worst, and is never below."""
    from dp_accounting import pld

    event = dp.dp_event.TruncatedSubsampledGaussianDpEvent
    ours, theirs = accountant(), pld.PLDAccountant(value_discretization_interval=1e-2)
    for made in (ours, theirs):
        made.compose(event(4, 0.5, 2, 1.0), 3).compose(event(3, 0.5, 2, 1.0), 2)
    assert ours.get_epsilon(1e-6) >= theirs.get_epsilon(1e-6)
