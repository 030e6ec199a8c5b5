"""dp_accounting's PLDs both ways: what is above stays above."""

import math
from typing import Any

import numpy as np
import pytest

import residua as rz

plds = pytest.importorskip("residua.interop.google_pld")
from_google_pld, to_google_pld = plds.from_google_pld, plds.to_google_pld

EPS = np.array([0.0, 0.05, 0.3, 0.7, 1.5, 3.0])
LOSSES = {
    "gaussian": rz.gaussian(mu=1.0),
    "laplace": rz.laplace(2.0),
    "response": rz.pure_dp(0.5),
    "approximate": rz.approximate_dp(0.3, 1e-5),
    "sampled": rz.subsampled_gaussian(1.0, 0.1),
    "mixed": rz.gaussian(mu=0.5) + rz.laplace(3.0) + rz.approximate_dp(0.1, 1e-9),
    "nothing": rz.identity(),
}


@pytest.fixture(scope="module")
def theirs() -> Any:
    from dp_accounting.pld import privacy_loss_distribution

    return privacy_loss_distribution


def curve(pmf: Any) -> np.ndarray:
    """What their own code says of one direction."""
    return np.array([pmf.get_delta_for_epsilon(float(eps)) for eps in EPS])


def chord(loss: rz.Pld, interval: float) -> np.ndarray:
    """The curve's chord over the cell that each eps is in."""
    left = np.floor(EPS / interval + 1e-9) * interval
    share = np.expm1(np.maximum(EPS - left, 0.0)) / np.expm1(interval)
    low, high = loss.delta(left), loss.delta(left + interval)
    return np.asarray(low + share * (high - low))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("interval", [1e-1, 1e-2])
def test_above_goes_there_and_back_above(name: str, interval: float) -> None:
    loss = LOSSES[name]
    made = to_google_pld(loss, interval)
    for direction, exact in (("remove", loss), ("add", loss.reverse())):
        pmf = made._pmf_remove if direction == "remove" else made._pmf_add
        truth, said = exact.delta_bounds(EPS), curve(pmf)
        assert np.all(said >= truth.lo)
        back = from_google_pld(made, direction)
        # Below 1 too, where the other direction is: the whole curve.
        for x in (0.3, 0.9, 1.0, 1.2, 4.0):
            assert back.hockey_stick_bounds(x).hi >= exact.hockey_stick_bounds(x).lo
        assert np.all(back.delta_bounds(EPS).hi >= said * (1 - 1e-12))
        # And no further above than the chord between the neighbouring places.
        allowed = chord(exact, interval) * (1 + 1e-9) + 1e-12
        assert np.all(back.delta_bounds(EPS).hi <= allowed)


@pytest.mark.parametrize("name", ["gaussian", "laplace", "response", "sampled"])
def test_the_way_back_is_proven_in_the_order(name: str) -> None:
    back = from_google_pld(to_google_pld(LOSSES[name], 0.05))
    assert LOSSES[name] <= back


def test_an_optimistic_one_is_not_read(theirs: Any) -> None:
    optimistic = theirs.from_gaussian_mechanism(
        1.0, value_discretization_interval=0.1, pessimistic_estimate=False, use_connect_dots=False
    )
    with pytest.raises(rz.ArgumentError, match="pld must be pessimistic"):
        from_google_pld(optimistic)


@pytest.mark.parametrize("connect", [True, False])
def test_what_they_made_says_the_same_here(theirs: Any, connect: bool) -> None:
    """Compositions of theirs, negative masses and lost mass included."""
    for made in (
        theirs.from_gaussian_mechanism(
            2.0, value_discretization_interval=0.01, use_connect_dots=connect
        ).self_compose(5),
        theirs.from_laplace_mechanism(
            3.0, value_discretization_interval=0.01, sampling_prob=0.2, use_connect_dots=connect
        ).self_compose(3),
        theirs.from_randomized_response(0.3, 4, value_discretization_interval=0.01),
        theirs.identity(),
    ):
        for direction in ("remove", "add"):
            pmf = made._pmf_remove if direction == "remove" else made._pmf_add
            here = from_google_pld(made, direction).delta_bounds(EPS)
            assert np.all(here.hi >= curve(pmf) * (1 - 1e-13))
            assert np.all(here.lo <= curve(pmf) * (1 + 1e-9) + 1e-9)


def test_masses_that_are_not_quite_masses() -> None:
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    def made(masses: list[float], at_infinity: float, lowest: int = -1) -> rz.Pld:
        pmf = pld_pmf.DensePLDPmf(0.1, lowest, np.array(masses), at_infinity, True)
        return from_google_pld(PrivacyLossDistribution(pmf))

    short = made([0.3, 0.3, 0.3], 0.0)
    assert short.mass_at_infinity == pytest.approx(0.1)
    over = made([0.3, 0.3, 0.5], 0.0)
    assert over.delta(0.0) == pytest.approx(0.5 * -math.expm1(-0.1))
    assert over.mass_at_infinity < 1e-15
    negative = made([-1e-17, 0.5, 0.5], 0.0, lowest=0)
    assert negative.delta(0.15) == pytest.approx(0.5 * -math.expm1(-0.05))
    assert made([0.0, 0.0, 0.0], 1.0).is_infinite
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError):
            made([0.5, bad, 0.5], 0.0)
    with pytest.raises(rz.ArgumentTypeError, match="pld must be a PrivacyLossDistribution"):
        from_google_pld(rz.gaussian(mu=1.0))
    with pytest.raises(rz.ArgumentError, match="direction must be one of"):
        from_google_pld(to_google_pld(rz.pure_dp(0.5), 0.1), "replace")
    with pytest.raises(rz.ArgumentError, match="value_discretization_interval must be"):
        to_google_pld(rz.gaussian(mu=10.0), 1e-6)


def test_filters_take_what_came_from_there(theirs: Any) -> None:
    query = from_google_pld(
        theirs.from_gaussian_mechanism(20.0, value_discretization_interval=1e-3)
    )
    assert rz.AutoFilter(1.0, 1e-6).request(query).admitted
    # What was cut off is at infinity: too much for filters that have no delta.
    assert not rz.RenyiFilter(alpha=20.0, rho=1.0).request(query).admitted
