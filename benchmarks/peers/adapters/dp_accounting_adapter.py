"""dp_accounting (Google): PLDs on a grid (`grid`, in losses), or Rényi divergences (`grid` 0)."""

from __future__ import annotations

import math
import time
from typing import Any

import dp_accounting
import protocol
from dp_accounting import rdp
from dp_accounting.pld import privacy_loss_distribution as pld


def built(mechanism: dict[str, Any], grid: float, pessimistic: bool = True) -> Any:
    options: dict[str, Any] = {
        "value_discretization_interval": grid,
        "pessimistic_estimate": pessimistic,
    }
    if not pessimistic:
        options["use_connect_dots"] = False
    match mechanism:
        case {"kind": "gaussian", "sigma": sigma}:
            return pld.from_gaussian_mechanism(sigma, **options)
        case {"kind": "laplace", "scale": scale}:
            return pld.from_laplace_mechanism(scale, **options)
        case {"kind": "pure_dp", "eps": eps}:
            # Two buckets, kept with probability 1 - noise and else uniform.
            return pld.from_randomized_response(2.0 / (1.0 + math.exp(eps)), 2, **options)
        case {"kind": "subsampled_gaussian", "sigma": sigma, "rate": rate}:
            return pld.from_gaussian_mechanism(sigma, sampling_prob=rate, **options)
    raise protocol.Cannot(f"no {mechanism['kind']}")


def composed(parts: list[Any], grid: float, pessimistic: bool = True) -> Any:
    total = None
    for mechanism, count in parts:
        one = built(mechanism, grid, pessimistic)
        one = one.self_compose(count) if count > 1 else one
        total = one if total is None else total.compose(one)
    return total


def event(mechanism: dict[str, Any]) -> Any:
    match mechanism:
        case {"kind": "gaussian", "sigma": sigma}:
            return dp_accounting.GaussianDpEvent(sigma)
        case {"kind": "laplace", "scale": scale}:
            return dp_accounting.LaplaceDpEvent(scale)
        case {"kind": "pure_dp", "eps": eps}:
            return dp_accounting.RandomizedResponseDpEvent(2.0 / (1.0 + math.exp(eps)), 2)
        case {"kind": "subsampled_gaussian", "sigma": sigma, "rate": rate}:
            noise = dp_accounting.GaussianDpEvent(sigma)
            return dp_accounting.PoissonSampledDpEvent(rate, noise)
        case {"kind": "self_composed", "mechanism": inner, "count": count}:
            return dp_accounting.SelfComposedDpEvent(event(inner), count)
    raise protocol.Cannot(f"no {mechanism['kind']}")


def accountant(mechanisms: list[dict[str, Any]], orders: list[float] | None = None) -> Any:
    made = rdp.RdpAccountant(orders)
    for mechanism in mechanisms:
        if not made.supports(event(mechanism)):
            raise protocol.Cannot(f"no Rényi divergence of {mechanism['kind']}")
    return made


def epsilons(
    parts: list[Any], deltas: list[float], grid: float = 1e-4, pessimistic: bool = True
) -> list[Any]:
    if not grid:
        made = accountant([mechanism for mechanism, _ in parts])
        for mechanism, count in parts:
            made.compose(event(mechanism), count)
        return protocol.each(made.get_epsilon, deltas)
    return protocol.each(composed(parts, grid, pessimistic).get_epsilon_for_delta, deltas)


def epsilon_ends(parts: list[Any], deltas: list[float], grid: float = 1e-4) -> list[list[float]]:
    """Rounded down to the grid and up: two PLDs, one for each end."""
    if not grid:
        raise protocol.Cannot("upper ends alone")
    low, high = (composed(parts, grid, side) for side in (False, True))
    return [[float(p.get_epsilon_for_delta(d)) for p in (low, high)] for d in deltas]


def delta(parts: list[Any], eps: float, grid: float = 1e-4) -> float:
    if not grid:
        made = accountant([mechanism for mechanism, _ in parts])
        for mechanism, count in parts:
            made.compose(event(mechanism), count)
        return float(made.get_delta(eps))
    return float(composed(parts, grid).get_delta_for_epsilon(eps))


def stream(
    mechanisms: list[dict[str, Any]], eps: float, grid: float = 1e-4, patience: float = math.inf
) -> list[float]:
    """The reads; only the first ones where all would take more than `patience` seconds."""
    until = time.process_time() + patience
    deltas: list[float] = []
    renyi = None if grid else accountant(mechanisms[:3])
    total = None
    for mechanism in mechanisms:
        if renyi is not None:
            deltas.append(float(renyi.compose(event(mechanism)).get_delta(eps)))
        else:
            one = built(mechanism, grid)
            total = one if total is None else total.compose(one)
            deltas.append(float(total.get_delta_for_epsilon(eps)))
        if time.process_time() > until:
            break
    return deltas


def admitted(eps: float, delta: float, queries: list[Any], expected: Any) -> int:
    """By hand: the Rényi divergence of one order, fixed before the first query.

    That is valid against an adaptive analyst; the best of all orders afterwards is not. The order
    is the one with most room for the kind of query that is expected.
    """

    def room(order: float) -> float:
        made = rdp.RdpAccountant([order])
        made.compose(_renyi_event(expected))
        # Linear in the count: the divergence that is left over that of one query.
        allowed = _room(order, eps, delta)
        return float(allowed / made._rdp[0]) if made._rdp[0] > 0 else math.inf

    order = max((1.0 + 0.25 * k for k in range(1, 800)), key=room)
    made = rdp.RdpAccountant([order])
    count = 0
    for mechanism, times in queries:
        asked = _renyi_event(mechanism)
        for _ in range(times):
            made.compose(asked)
            if not made.get_epsilon(delta) <= eps:
                return count
            count += 1
    return count


def _renyi_event(mechanism: dict[str, Any]) -> Any:
    """An event that the Rényi accountant has.

    It has none for randomized response, whose concentrated divergence is at most `eps² / 2`.
    """
    match mechanism:
        case {"kind": "pure_dp", "eps": eps}:
            return dp_accounting.ZCDpEvent(0.5 * eps**2)
    return event(mechanism)


def _room(order: float, eps: float, delta: float) -> float:
    """The divergence that this order may have: of the library's own conversion, by bisection."""
    low, high = 0.0, 2.0 * eps + 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        fits = rdp.compute_epsilon([order], [middle], delta)[0] <= eps
        low, high = (middle, high) if fits else (low, middle)
    return low


if __name__ == "__main__":
    operations = (epsilons, epsilon_ends, delta, stream, admitted)
    protocol.serve({operation.__name__: operation for operation in operations})
