"""OpenDP: composition of measurements, privacy filters and odometers.

The loss of a randomized response is that of any measurement with the same bound: Laplace noise of
scale `1 / eps` stands for it, so that all measurements have one domain.
"""

from __future__ import annotations

import time
from typing import Any

import opendp.prelude as dp
import protocol

dp.enable_features("contrib")
SPACE = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)


def measurement(mechanism: dict[str, Any], concentrated: bool = True) -> Any:
    match mechanism:
        case {"kind": "gaussian", "sigma": sigma}:
            if not concentrated:
                raise protocol.Cannot("no pure loss of Gaussian noise")
            return SPACE >> dp.m.then_gaussian(sigma)
        case {"kind": "laplace", "scale": scale}:
            made = SPACE >> dp.m.then_laplace(scale)
        case {"kind": "pure_dp", "eps": eps}:
            made = SPACE >> dp.m.then_laplace(1.0 / eps)
        case _:
            raise protocol.Cannot(f"no privacy map of {mechanism['kind']}")
    return dp.c.make_pureDP_to_zCDP(made) if concentrated else made


def epsilons(parts: list[Any], deltas: list[float]) -> list[Any]:
    every = [one for mechanism, count in parts for one in [measurement(mechanism)] * count]
    total = dp.c.make_zCDP_to_approxDP(dp.c.make_composition(every))
    return protocol.each(total.map(1.0).epsilon, deltas)


def budget(eps: float, delta: float) -> float:
    """The largest rho that its own conversion puts within `(eps, delta)`."""

    def fits(rho: float) -> bool:
        noise = SPACE >> dp.m.then_gaussian((0.5 / rho) ** 0.5)
        return bool(dp.c.make_zCDP_to_approxDP(noise).map(1.0).epsilon(delta) <= eps)

    low, high = 0.0, eps
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def queryable(concentrated: bool, limit: float) -> Any:
    measure = dp.zero_concentrated_divergence() if concentrated else dp.max_divergence()
    odometer = dp.c.make_fully_adaptive_composition(*SPACE, measure)
    return dp.c.make_privacy_filter(odometer, 1.0, limit)(0.0)


def admitted(
    eps: float, delta: float, queries: list[Any], expected: Any, concentrated: bool = True
) -> int:
    """Up to the first refusal; a query without a measurement is one."""
    asked = queryable(concentrated, budget(eps, delta) if concentrated else eps)
    count = 0
    for mechanism, times in queries:
        try:
            one = measurement(mechanism, concentrated)
        except protocol.Cannot:
            return count
        for _ in range(times):
            try:
                asked(one)
            except dp.OpenDPException as refusal:
                if "would exceed" not in str(refusal):
                    raise
                return count
            count += 1
    return count


def decisions(history: int, more: int, sigma: float) -> float:
    """Seconds for each of `more` decisions after `history`, less the noise's own time."""
    asked, one = queryable(True, 1e6), measurement({"kind": "gaussian", "sigma": sigma})
    for _ in range(history):
        asked(one)
    return (_spent(lambda: asked(one), more) - _spent(lambda: one(0.0), more)) / more


def _spent(ask: Any, times: int) -> float:
    start = time.process_time()
    for _ in range(times):
        ask()
    return time.process_time() - start


if __name__ == "__main__":
    protocol.serve({"epsilons": epsilons, "admitted": admitted, "decisions": decisions})
