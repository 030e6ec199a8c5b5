"""autodp: Rényi divergences (`which` rdp), or characteristic functions (`which` afa).

The search for eps of the second returns a negative number with today's scipy, whatever delta is;
its delta for a given eps works, so that is what is read, and inverted here by bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import protocol
from autodp import mechanism_zoo, transformer_zoo


def made(mechanism: dict[str, Any], which: str) -> Any:
    afa = which == "afa"
    match mechanism:
        case {"kind": "gaussian", "sigma": sigma}:
            if afa:
                return mechanism_zoo.GaussianMechanism(
                    sigma, phi_off=False, RDP_off=True, approxDP_off=True
                )
            return mechanism_zoo.GaussianMechanism(sigma)
        case {"kind": "laplace", "scale": scale}:
            return mechanism_zoo.LaplaceMechanism(scale, phi_off=not afa, RDP_off=afa)
        case {"kind": "pure_dp", "eps": eps}:
            kept = 1.0 / (1.0 + math.exp(-eps))
            return mechanism_zoo.RandresponseMechanism(kept, phi_off=not afa, RDP_off=afa)
        case {"kind": "subsampled_gaussian", "sigma": sigma, "rate": rate}:
            if afa:
                raise protocol.Cannot("characteristic functions of unsampled noise alone")
            noise = mechanism_zoo.GaussianMechanism(sigma, approxDP_off=True)
            sampling = transformer_zoo.AmplificationBySampling(PoissonSampling=True)
            return sampling(noise, rate, improved_bound_flag=True)
    raise protocol.Cannot(f"no {mechanism['kind']}")


def composed(parts: list[Any], which: str) -> Any:
    compose = transformer_zoo.ComposeAFA() if which == "afa" else transformer_zoo.Composition()
    return compose([made(m, which) for m, _ in parts], [count for _, count in parts])


def epsilons(
    parts: list[Any], deltas: list[float], which: str = "rdp", eps_error: float = 1e-6
) -> list[Any]:
    total = composed(parts, which)
    if which == "afa":
        curve = total.get_approx_delta
        return protocol.each(lambda delta: inverted(curve, delta, eps_error), deltas)
    return protocol.each(total.get_approxDP, deltas)


def inverted(curve: Callable[[float], float], delta: float, error: float) -> float:
    """The least eps at which the curve is at most `delta`, from above, with this relative error."""
    low, high = 0.0, 1.0
    while not curve(high) <= delta:
        low, high = high, 2.0 * high
        if high > 1000.0:
            raise ValueError("no eps below 1000 has this delta")
    while high - low > error * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if curve(middle) <= delta else (middle, high)
    return high


def stream_epsilon(
    mechanisms: list[dict[str, Any]], delta: float, which: str = "rdp"
) -> list[float]:
    """All composed anew for each read."""
    if which == "afa":
        raise protocol.Cannot("its search for eps fails (see accuracy)")
    parts: list[Any] = []
    found = []
    for mechanism in mechanisms:
        parts.append([mechanism, 1])
        found.append(float(composed(parts, which).get_approxDP(delta)))
    return found


def tradeoff(parts: list[Any], alphas: list[float]) -> list[float]:
    if len(parts) > 1 or parts[0][0]["kind"] != "gaussian":
        raise protocol.Cannot("a curve of its own for Gaussians alone")
    sigma = parts[0][0]["sigma"] / math.sqrt(parts[0][1])
    noise = mechanism_zoo.ExactGaussianMechanism(sigma)
    return [float(noise.get_fDP(alpha)) for alpha in alphas]


if __name__ == "__main__":
    protocol.serve({"epsilons": epsilons, "stream_epsilon": stream_epsilon, "tradeoff": tradeoff})
