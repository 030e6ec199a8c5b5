"""Our core behind dp_accounting's accountant interface.

The settings are those that dp_accounting tries its own accountants with; the expected values are
worked out here, or are what the settings were made for.
"""

import math
from typing import Any

import mpmath as mp
import pytest

import residua as rz

pytestmark = pytest.mark.needs("dp_accounting")


@pytest.fixture(scope="module")
def dp() -> Any:
    import dp_accounting

    return dp_accounting


def accountant(relation: str = "ADD_OR_REMOVE_ONE") -> Any:
    from dp_accounting import NeighboringRelation

    return rz.interop.PrivacyAccountant(NeighboringRelation[relation])


RELATIONS = ("ADD_OR_REMOVE_ONE", "REPLACE_ONE", "REPLACE_SPECIAL")


@pytest.mark.parametrize("relation", RELATIONS)
def test_nothing_costs_nothing(dp: Any, relation: str) -> None:
    made = accountant(relation)
    for _ in range(2):
        assert [made.get_epsilon(delta) for delta in (0, 1e-12, 1)] == [0, 0, 0]
        assert [made.get_delta(eps) for eps in (0, 1e-12, math.inf)] == [0, 0, 0]
        assert made.supports(dp.NoOpDpEvent())
        made.compose(dp.NoOpDpEvent())


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_privacy_costs_everything(dp: Any, relation: str) -> None:
    bare = dp.NonPrivateDpEvent()
    for event in (
        bare,
        dp.ComposedDpEvent([dp.NoOpDpEvent(), bare]),
        dp.SelfComposedDpEvent(bare, 10),
        dp.GaussianDpEvent(0),
        dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(0)),
    ):
        made = accountant(relation).compose(event)
        assert [made.get_epsilon(delta) for delta in (0, 0.99, 1)] == [math.inf] * 3
        assert [made.get_delta(eps) for eps in (0, 100, math.inf)] == [1, 1, 1]


@pytest.mark.parametrize("relation", RELATIONS)
def test_what_is_unknown_is_named(dp: Any, relation: str) -> None:
    class Unknown(dp.DpEvent):
        pass

    for culprit in (dp.UnsupportedDpEvent(), Unknown()):
        for event in (
            culprit,
            dp.ComposedDpEvent([culprit]),
            dp.SelfComposedDpEvent(culprit, 10),
        ):
            made = accountant(relation)
            assert not made.supports(event)
            details = made._maybe_compose(event, count=1, do_compose=False)
            assert details.invalid_event == culprit
            with pytest.raises(dp.UnsupportedEventError, match="caused by subevent"):
                made.compose(event)
            assert made.ledger == dp.NoOpDpEvent()


def test_which_relations_are_supported(dp: Any) -> None:
    noise = dp.GaussianDpEvent(1.0)
    both = dp.ComposedDpEvent([noise, dp.GaussianDpEvent(2.0)])
    response = dp.RandomizedResponseDpEvent(0.3, 15)
    mixture = dp.dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.5])
    table = [
        (noise, "yyy"),
        (dp.ZCDpEvent(1.0, 2.0), "yyy"),
        (dp.SelfComposedDpEvent(noise, 6), "yyy"),
        (both, "yyy"),
        (dp.PoissonSampledDpEvent(0.1, noise), "yyy"),
        (dp.PoissonSampledDpEvent(0.1, both), "yyy"),
        (dp.SampledWithoutReplacementDpEvent(1000, 10, noise), "nyn"),
        (dp.SampledWithoutReplacementDpEvent(1000, 10, both), "nyn"),
        (dp.SampledWithReplacementDpEvent(1000, 10, noise), "nnn"),
        (response, "nyy"),
        (dp.ComposedDpEvent([dp.PoissonSampledDpEvent(0.1, noise), response]), "nyy"),
        (mixture, "yny"),
        (dp.SingleEpochTreeAggregationDpEvent(1.0, 4), "nny"),
    ]
    for event, expected in table:
        found = "".join("ny"[accountant(relation).supports(event)] for relation in RELATIONS)
        assert found == expected, event


def test_counts_must_be_positive(dp: Any) -> None:
    for count in (0, -1):
        with pytest.raises(ValueError):
            accountant().compose(dp.GaussianDpEvent(1.0), count)


def test_what_is_never_sampled_is_free(dp: Any) -> None:
    mixture = dp.dp_event.MixtureOfGaussiansDpEvent
    for event in (
        dp.PoissonSampledDpEvent(0, dp.GaussianDpEvent(1)),
        dp.PoissonSampledDpEvent(0, dp.LaplaceDpEvent(0)),
        mixture(1, [0], [1.0]),
        mixture(0, [0], [1.0]),
    ):
        made = accountant().compose(event)
        assert made.get_delta(0) == 0 and made.get_epsilon(0) == 0
    empty = dp.SampledWithoutReplacementDpEvent(1000, 0, dp.GaussianDpEvent(1.0))
    assert accountant("REPLACE_ONE").compose(empty).get_epsilon(1e-10) == 0
    single = dp.RandomizedResponseDpEvent(0.0, 1)
    assert accountant("REPLACE_ONE").compose(single).get_epsilon(0) == 0


@pytest.mark.parametrize(
    ("relation", "noise", "buckets"),
    [
        ("REPLACE_ONE", 4 / (3 + math.e), 4),
        ("REPLACE_SPECIAL", (4 - math.e) / 3, 4),
        ("REPLACE_SPECIAL", math.exp(-1), 2),
    ],
)
def test_responses_made_for_eps_1(dp: Any, relation: str, noise: float, buckets: int) -> None:
    made = accountant(relation).compose(dp.RandomizedResponseDpEvent(noise, buckets))
    assert 0 <= made.get_delta(1.0) < 1e-14
    assert made.get_delta(0.999) > 1e-5
    assert made.get_epsilon(0) == pytest.approx(1.0, rel=1e-12)


def test_three_gaussians_are_one(dp: Any) -> None:
    """Three of `sqrt 3` are one of 1; delta at eps 1 from the textbook formula."""
    event = dp.GaussianDpEvent(math.sqrt(3))
    made = accountant().compose(event, 1).compose(event, 2)
    with mp.workdps(30):
        exact = mp.ncdf(-mp.mpf(1) / 2) - mp.e * mp.ncdf(-mp.mpf(3) / 2)
        assert abs(made.get_delta(1.0) - exact) < 1e-12
    assert made.get_epsilon(float(exact)) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("shape", ["counts", "nested"])
def test_sampled_gaussians(dp: Any, shape: str) -> None:
    event = dp.PoissonSampledDpEvent(0.2, dp.GaussianDpEvent(0.5))
    made = accountant()
    if shape == "counts":
        made.compose(event, 1).compose(event, 2)
    else:
        made.compose(dp.SelfComposedDpEvent(event, 3))
    loss = 3 * rz.subsampled_gaussian(0.5, 0.2)
    both = [side.delta_bounds(1.0) for side in (loss, loss.reverse())]
    lo, hi = max(each.lo for each in both), max(each.hi for each in both)
    assert lo <= made.get_delta(1.0) <= hi * (1 + 1e-6)
    assert made.get_delta(1.0) == pytest.approx(0.15594, abs=1e-5)
    assert made.get_epsilon(0.15594) == pytest.approx(1.0, abs=1e-3)


def test_laplace_and_its_discrete_kin_add_up(dp: Any) -> None:
    discrete = dp.dp_event.DiscreteLaplaceDpEvent
    for pair in (
        (dp.LaplaceDpEvent(1), dp.LaplaceDpEvent(2)),
        (discrete(1, 1), discrete(0.5, 1)),
    ):
        made = accountant().compose(pair[0], 3).compose(pair[1], 2)
        assert made.get_delta(4.0) < 1e-14
        assert made.get_epsilon(0) == pytest.approx(4.0, rel=1e-9)
    # Laplace noise of scale 1/2, seen at rate 1/5: ln(1 + (e^2 - 1)/5), three times.
    sampled = dp.PoissonSampledDpEvent(0.2, dp.LaplaceDpEvent(0.5))
    made = accountant().compose(sampled, 3)
    top = 3 * math.log1p((math.e**2 - 1) / 5)
    assert made.get_delta(top * (1 + 1e-6)) < 1e-9
    assert made.get_epsilon(1e-14) == pytest.approx(top, rel=1e-3)


def test_mixtures_of_gaussians_deep_in_the_tail(dp: Any) -> None:
    mixture = dp.dp_event.MixtureOfGaussiansDpEvent
    made = accountant()
    made.compose(mixture(1.0, [0.0, 1.0, 2.0], [0.2, 0.6, 0.2]), 3)
    made.compose(mixture(2.0, [0.0, 2.0, 3.0], [0.33, 0.34, 0.33]), 2)
    low = made.plds["remove"].epsilon_bounds(1e-6).lo
    assert 17.19311 < low <= 17.19311449 and 17.19311448 <= made.get_epsilon(1e-6) < 17.19313
    assert made.get_delta(17.193115) == pytest.approx(1e-6, rel=1e-4)


def test_zcdp_bounds_add_up(dp: Any) -> None:
    """A Gaussian of the same `rho` is one of the mechanisms that the bound covers."""
    sigma = math.pi
    known = accountant().compose(dp.GaussianDpEvent(sigma), 2)
    bound = accountant().compose(dp.ZCDpEvent(0.5 / sigma**2 * (1 + 1e-15)), 2)
    for delta in (1e-3, 1e-6):
        assert known.get_epsilon(delta) < bound.get_epsilon(delta)


def test_never_below_what_others_prove(dp: Any) -> None:
    """Rényi accounting is above the truth: so it is above our lower bounds."""
    from dp_accounting import rdp

    for event in (
        dp.GaussianDpEvent(2.0),
        dp.SelfComposedDpEvent(dp.LaplaceDpEvent(5.0), 20),
        dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.0)), 50),
    ):
        ours = accountant().compose(event)
        theirs = rdp.RdpAccountant(orders=[2.0, 4.0, 8.0, 16.0, 32.0]).compose(event)
        for delta in (1e-4, 1e-8):
            assert ours.get_epsilon(delta) <= theirs.get_epsilon(delta)
            low = max(float(loss.epsilon_bounds(delta).lo) for loss in ours.plds.values())
            assert low <= ours.get_epsilon(delta)


def test_calibration_ends_on_the_private_side(dp: Any) -> None:
    def steps(sigma: float) -> Any:
        return dp.SelfComposedDpEvent(
            dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(sigma)), 100
        )

    found = dp.calibrate_dp_mechanism(rz.interop.PrivacyAccountant, steps, 1.0, 1e-6, tol=1e-4)
    inside = max(
        (100 * rz.subsampled_gaussian(found, 0.01, way)).epsilon(1e-6) for way in ("remove", "add")
    )
    outside = (100 * rz.subsampled_gaussian(found - 2e-4, 0.01)).epsilon_bounds(1e-6).lo
    assert inside <= 1.0 < outside


def test_the_ledger_of_events_is_kept(dp: Any) -> None:
    event = dp.GaussianDpEvent(1.0)
    made = accountant().compose(event, 3)
    assert made.ledger == dp.SelfComposedDpEvent(event, 3)
    assert made.neighboring_relation is dp.NeighboringRelation.ADD_OR_REMOVE_ONE
    for bad in (-1e-9, 1.5, math.nan):
        with pytest.raises(ValueError):
            made.get_epsilon(bad)
    for bad in (-1.0, math.nan):
        with pytest.raises(ValueError):
            made.get_delta(bad)
