"""tmlt.core: composition in exact numbers, and its queryable with a budget.

Laplace noise of scale `1 / eps` stands for randomized response, as in OpenDP's adapter.
"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import protocol
from tmlt.core.domains.numpy_domains import NumpyFloatDomain
from tmlt.core.measurements.converters import PureDPToRhoZCDP, RhoZCDPToApproxDP
from tmlt.core.measurements.interactive_measurements import (
    MakeInteractive,
    MeasurementQuery,
    SequentialComposition,
)
from tmlt.core.measurements.noise_mechanisms import AddGaussianNoise, AddLaplaceNoise
from tmlt.core.measures import InsufficientBudgetError, PureDP, RhoZCDP
from tmlt.core.metrics import AbsoluteDifference
from tmlt.core.utils.exact_number import ExactNumber

DOMAIN = NumpyFloatDomain()


def number(value: float) -> ExactNumber:
    exact = Fraction(repr(value)) if value == value and abs(value) != float("inf") else value
    if isinstance(exact, Fraction):
        return ExactNumber(exact.numerator) / exact.denominator
    return ExactNumber.from_float(value, round_up=True)


def measurement(mechanism: dict[str, Any], concentrated: bool = True) -> Any:
    match mechanism:
        case {"kind": "gaussian", "sigma": sigma}:
            if not concentrated:
                raise protocol.Cannot("no pure loss of Gaussian noise")
            return AddGaussianNoise(DOMAIN, number(sigma) ** 2)
        case {"kind": "laplace", "scale": scale}:
            made = AddLaplaceNoise(DOMAIN, number(scale))
        case {"kind": "pure_dp", "eps": eps}:
            made = AddLaplaceNoise(DOMAIN, 1 / number(eps))
        case _:
            raise protocol.Cannot(f"no measurement like {mechanism['kind']}")
    return PureDPToRhoZCDP(made) if concentrated else made


def epsilons(parts: list[Any], deltas: list[float]) -> list[Any]:
    """Its privacy relation says yes or no in exact numbers, a tenth of a second for each."""
    raise protocol.Cannot("says whether (eps, delta) holds, not which eps")


def queryable(concentrated: bool, limit: Any) -> Any:
    measure = RhoZCDP() if concentrated else PureDP()
    return SequentialComposition(DOMAIN, AbsoluteDifference(), measure, 1, limit)(0.0)


def budget(eps: float, delta: float) -> ExactNumber:
    """The largest rho that its own relation puts within `(eps, delta)`."""

    def fits(rho: float) -> bool:
        noise = AddGaussianNoise(DOMAIN, 1 / (2 * number(rho)))
        return bool(RhoZCDPToApproxDP(noise).privacy_relation(1, (number(eps), number(delta))))

    low, high = 0.0, eps
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return number(low)


def admitted(
    eps: float, delta: float, queries: list[Any], expected: Any, concentrated: bool = True
) -> int:
    """Up to the first refusal; a query without a measurement is one."""
    asked = queryable(concentrated, budget(eps, delta) if concentrated else number(eps))
    count = 0
    for mechanism, times in queries:
        try:
            one = MeasurementQuery(MakeInteractive(measurement(mechanism, concentrated)))
        except protocol.Cannot:
            return count
        for _ in range(times):
            try:
                asked(one)
            except InsufficientBudgetError:
                return count
            count += 1
    return count


def decisions(history: int, more: int, sigma: float) -> float:
    """Seconds for each of `more` decisions after `history`; the noise itself is not drawn."""
    asked = queryable(True, number(1e6))
    one = MeasurementQuery(MakeInteractive(measurement({"kind": "gaussian", "sigma": sigma})))
    for _ in range(history):
        asked(one)
    start = time.process_time()
    for _ in range(more):
        asked(one)
    return (time.process_time() - start) / more


if __name__ == "__main__":
    protocol.serve({"epsilons": epsilons, "admitted": admitted, "decisions": decisions})
