"""prv_accountant (Microsoft): the upper of its three ends, with the errors its paper proposes."""

from __future__ import annotations

from typing import Any

import protocol
import prv_accountant

EPS_ERROR = 0.01


def variable(mechanism: dict[str, Any]) -> Any:
    match mechanism:
        case {"kind": "gaussian", "sigma": sigma}:
            return prv_accountant.GaussianMechanism(noise_multiplier=sigma)
        case {"kind": "laplace", "scale": scale}:
            return prv_accountant.LaplaceMechanism(mu=1.0 / scale)
        case {"kind": "pure_dp", "eps": eps}:
            return prv_accountant.PureDPMechanism(eps)
        case {"kind": "subsampled_gaussian", "sigma": sigma, "rate": rate}:
            return prv_accountant.PoissonSubsampledGaussianMechanism(
                sampling_probability=rate, noise_multiplier=sigma
            )
    raise protocol.Cannot(f"no {mechanism['kind']}")


def accountant(
    parts: list[Any], delta_error: float, eps_error: float = EPS_ERROR
) -> tuple[Any, list[int]]:
    counts = [count for _, count in parts]
    variables = [variable(mechanism) for mechanism, _ in parts]
    made = prv_accountant.PRVAccountant(
        prvs=variables,
        max_self_compositions=counts,
        eps_error=eps_error,
        delta_error=delta_error,
    )
    return made, counts


def epsilons(parts: list[Any], deltas: list[float], eps_error: float = EPS_ERROR) -> list[Any]:
    def upper(delta: float) -> float:
        made, counts = accountant(parts, 1e-3 * delta, eps_error)
        return made.compute_epsilon(delta=delta, num_self_compositions=counts)[2]

    return protocol.each(upper, deltas)


def epsilon_ends(parts: list[Any], deltas: list[float]) -> list[list[float]]:
    found = []
    for delta in deltas:
        made, counts = accountant(parts, 1e-3 * delta)
        low, _, high = made.compute_epsilon(delta=delta, num_self_compositions=counts)
        found.append([float(low), float(high)])
    return found


def delta(parts: list[Any], eps: float) -> float:
    made, counts = accountant(parts, 1e-10)
    return float(made.compute_delta(eps, counts)[2])


def stream(mechanisms: list[dict[str, Any]], eps: float) -> list[float]:
    """All composed anew for each read: its objects do not grow."""
    so_far: list[Any] = []
    deltas = []
    for mechanism in mechanisms:
        so_far.append([mechanism, 1])
        deltas.append(delta(so_far, eps))
    return deltas


if __name__ == "__main__":
    protocol.serve(
        {"epsilons": epsilons, "epsilon_ends": epsilon_ends, "delta": delta, "stream": stream}
    )
