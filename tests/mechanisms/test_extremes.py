"""Parameters at the ends of what floats carry: always an answer, in order, without a warning."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from residua.mechanisms import (
    ApproximateDp,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Gdp,
    Laplace,
    Mechanism,
    MixtureOfGaussians,
    PoissonSampled,
    PureDp,
    RandomizedResponse,
    Rdp,
    ReportNoisyMax,
    SampledWithoutReplacement,
    SelfComposed,
    SubsampledGaussian,
    TruncatedLaplace,
    Zcdp,
)

THOROUGH = (
    os.environ.get("RESIDUA_THOROUGH") == "1" or os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
)


@pytest.fixture(autouse=True)
def _strict() -> Iterable[None]:
    """Whatever numpy would warn of is an error."""
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        yield


TINY_TO_HUGE: tuple[float, ...] = (5e-324, 1e-300, 1e-8, 0.04, 30.0, 1e13, 1e300)
FEW: tuple[float, ...] = (1e-300,)
LARGE: tuple[float, ...] = (7.0, 700.0, 1e308)
EPSILONS: tuple[float, ...] = (0.0, 5e-324, 1e-9, 601.0, 1e9, 1e308)
RATES: tuple[float, ...] = (5e-324, 1e-300, 1e-12, 1 - 2**-53)
if THOROUGH:
    TINY_TO_HUGE = FEW = (*TINY_TO_HUGE, 1e-150, 1e-20, 1e-3, 1e4, 1e150)
    LARGE = (*LARGE, 1.0, 5e3, 1e9, 1e100)
    EPSILONS = (*EPSILONS, 1e-200, 30.0, 599.0, 1e4)
    RATES = (*RATES, 1e-100, 1e-3, 0.5)


def _extremes() -> dict[str, list[Callable[[], Mechanism]]]:
    noise: dict[str, Callable[[float], Mechanism]] = {
        "gaussian": lambda s: Gaussian(sigma=s),
        "laplace": Laplace,
        "discrete gaussian": lambda s: DiscreteGaussian(sigma=s),
        "discrete laplace": DiscreteLaplace,
        "discrete laplace 3": lambda s: DiscreteLaplace(s, 3),
        "truncated laplace": lambda s: TruncatedLaplace(s, 3.0),
        "truncated laplace bound": lambda s: TruncatedLaplace(1.0, s),
        "truncated laplace both": lambda s: TruncatedLaplace(s, 0.75 * s, s),
        "noisy max": ReportNoisyMax,
        "noisy max gumbel": lambda s: ReportNoisyMax(s, "gumbel"),
        "subsampled": lambda s: SubsampledGaussian(s, 0.1),
        "mixture": lambda s: MixtureOfGaussians(s, (0.0, 1.0, 2.0), (0.5, 0.25, 0.25)),
    }
    slower: dict[str, Callable[[float], Mechanism]] = {
        "sampled laplace": lambda s: PoissonSampled(Laplace(s), 0.1),
        "without replacement gaussian": lambda s: SampledWithoutReplacement(
            Gaussian(sigma=s), 10, 3
        ),
    }
    if THOROUGH:
        slower |= {
            "sampled discrete": lambda s: PoissonSampled(DiscreteLaplace(s, 2), 0.1),
            "without replacement": lambda s: SampledWithoutReplacement(Laplace(s), 10, 3),
        }
    sensitivity: dict[str, Callable[[float], Mechanism]] = {
        "gaussian": lambda s: Gaussian(sigma=1.0, sensitivity=s),
        "laplace": lambda s: Laplace(1.0, s),
        "discrete laplace": lambda s: DiscreteLaplace(1.0, int(s)),
        "truncated laplace": lambda s: TruncatedLaplace(1.0, 4.0, s),
        "noisy max": lambda s: ReportNoisyMax(1.0, "gumbel", s),
        "subsampled": lambda s: SubsampledGaussian(1.0, 0.1, s),
        "all sampled": lambda s: SubsampledGaussian(1.0, 1.0, s),
    }
    eps: dict[str, Callable[[float], Mechanism]] = {
        "pure": PureDp,
        "approximate": lambda e: ApproximateDp(e, 1e-6),
        "response": lambda e: RandomizedResponse(eps=e, num_buckets=5),
        "exponential": ExponentialMechanism,
        "gdp": Gdp,
        "zcdp": Zcdp,
        "approximate zcdp": lambda e: Zcdp(e, delta=1e-6),
        "sampled pure": lambda e: PoissonSampled(PureDp(e), 0.1),
        "without replacement": lambda e: SampledWithoutReplacement(PureDp(e), 10, 3),
    }
    rates: dict[str, Callable[[float], Mechanism]] = {
        "gaussian": lambda q: SubsampledGaussian(1.0, q),
        "laplace": lambda q: PoissonSampled(Laplace(1.0), q),
        "atoms": lambda q: PoissonSampled(ApproximateDp(1.0, 0.1), q),
        "response": lambda q: RandomizedResponse(num_buckets=7, noise_parameter=q),
    }

    def over(
        made: dict[str, Callable[[float], Mechanism]], what: str, values: Iterable[float]
    ) -> dict[str, list[Callable[[], Mechanism]]]:
        return {
            f"{what} {key}": [lambda make=make, v=v: make(v) for v in values]
            for key, make in made.items()
        }

    return {
        **over(noise, "noise", TINY_TO_HUGE),
        **over(slower, "noise", FEW),
        **over(sensitivity, "sensitivity", LARGE),
        **over(eps, "eps", EPSILONS),
        **over(rates, "rate", RATES),
        "sizes": [
            lambda: SampledWithoutReplacement(Laplace(1.0), 10**18, 1),
            lambda: SampledWithoutReplacement(Laplace(1.0), 10**400, 10**399),
            lambda: SampledWithoutReplacement(Laplace(1.0), 10**400, 1),
            lambda: SampledWithoutReplacement(Laplace(1.0), 10**18, 10**18 - 1),
            lambda: RandomizedResponse(eps=1.0, num_buckets=2**53),
            lambda: SelfComposed(Laplace(1.0), 2**53),
            lambda: SelfComposed(Gaussian(sigma=1.0), 2**53),
            lambda: PoissonSampled(TruncatedLaplace(1.0, 2.0), 1e-12 if THOROUGH else 1e-3),
            lambda: Zcdp(0.1, 1e308),
            lambda: Zcdp(0.1, delta=2.0**-1074),
            lambda: Zcdp(0.1, delta=1.0 - 2.0**-53),
            lambda: Zcdp(0.0, 0.0, 1.0),
        ],
        "orders": [
            lambda: Rdp((1.0 + 1e-9,), (1.0,)),
            lambda: Rdp((1e9,), (1.0,)),
            lambda: Rdp((2.0,), (1e6,)),
            lambda: Rdp((2.0, 1e9), (1e-300, 1e6)),
        ],
    }


EXTREMES = _extremes()


@pytest.mark.parametrize("case", EXTREMES, ids=str)
def test_extremes_are_answered(case: str) -> None:
    """A clear answer, in order, without a warning."""
    for make in EXTREMES[case]:
        mechanism = make()
        relation = mechanism.supported[0]
        above = mechanism.plds(relation)
        below = mechanism.plds(relation, side="below")
        for direction, pld in above.items():
            for t in (0.0, 1e-9, 0.5, 20.0, 650.0):
                high, low = pld.delta_bounds(t), below[direction].delta_bounds(t)
                assert 0.0 <= low.lo <= high.hi <= 1.0, (mechanism, direction, t)
            assert below[direction].epsilon_bounds(1e-6).lo <= pld.epsilon(1e-6)


def test_hardly_any_noise_hides_nothing_and_much_hides_everything() -> None:
    by_noise: list[Callable[[float], Mechanism]] = [
        lambda s: Gaussian(sigma=s),
        Laplace,
        lambda s: DiscreteGaussian(sigma=s),
        DiscreteLaplace,
        ReportNoisyMax,
    ]
    for make in by_noise:
        seen: Any = make(1e-300).pld()
        assert seen.delta(500.0) > 0.99
        hidden: Any = make(1e300).pld()
        assert hidden.delta(0.0) < 1e-4
    # Shifted past all that is written out of it.
    for sigma, shift in ((1.0, 1000), (0.2, 50), (1.0, 51)):
        both = [
            DiscreteGaussian(sigma=sigma, sensitivity=shift).pld(side=side)
            for side in ("above", "below")
        ]
        assert [pld.delta_bounds(100.0).hi for pld in both] == pytest.approx([1.0, 1.0])
    for little in (Gaussian(sigma=1e-3), Laplace(1e-3), DiscreteLaplace(1e-3)):
        assert little.pld(side="below").delta_bounds(100.0).lo > 0.99
