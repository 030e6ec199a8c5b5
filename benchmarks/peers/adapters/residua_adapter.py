"""This library, asked the same questions through the same pipe as the peers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import Any

import protocol

import residua as rz


def directions(mechanism: dict[str, Any]) -> list[rz.Pld]:
    """One PLD where both directions are alike, else that of each."""
    match mechanism:
        case {"kind": "gaussian", "sigma": sigma}:
            return [rz.gaussian(sigma=sigma)]
        case {"kind": "laplace", "scale": scale}:
            return [rz.laplace(scale=scale)]
        case {"kind": "pure_dp", "eps": eps}:
            return [rz.pure_dp(eps)]
        case {"kind": "subsampled_gaussian", "sigma": sigma, "rate": rate}:
            plds = rz.SubsampledGaussian(sigma, rate).plds()
            return [plds["remove"], plds["add"]]
    raise protocol.Cannot(f"no {mechanism['kind']}")


def composed(parts: list[Any]) -> list[rz.Pld]:
    made = [(directions(mechanism), count) for mechanism, count in parts]
    ways = max(len(plds) for plds, _ in made)
    return [reduce(add, (n * plds[way % len(plds)] for plds, n in made)) for way in range(ways)]


def epsilons(parts: list[Any], deltas: list[float]) -> list[Any]:
    both = composed(parts)
    return protocol.each(lambda delta: max(pld.epsilon(delta) for pld in both), deltas)


def epsilon_ends(parts: list[Any], deltas: list[float]) -> list[list[float]]:
    """Proven lower and upper ends."""
    both = composed(parts)
    found = []
    for delta in deltas:
        ends = [pld.epsilon_bounds(delta) for pld in both]
        found.append([max(float(e.lo) for e in ends), max(float(e.hi) for e in ends)])
    return found


def delta(parts: list[Any], eps: float) -> float:
    return max(pld.delta(eps) for pld in composed(parts))


def delta_ends(parts: list[Any], eps: float) -> list[float]:
    ends = [pld.delta_bounds(eps) for pld in composed(parts)]
    return [max(float(e.lo) for e in ends), max(float(e.hi) for e in ends)]


def _streamed(mechanisms: list[dict[str, Any]]) -> Iterator[list[rz.RunningComposition]]:
    totals: list[rz.RunningComposition] = []
    for mechanism in mechanisms:
        losses = directions(mechanism)
        totals = totals or [rz.RunningComposition() for _ in losses]
        for total, loss in zip(totals, losses, strict=True):
            total.compose(loss)
        yield totals


def stream(mechanisms: list[dict[str, Any]], eps: float) -> list[float]:
    return [max(total.delta(eps) for total in both) for both in _streamed(mechanisms)]


def stream_epsilon(mechanisms: list[dict[str, Any]], delta: float) -> list[float]:
    return [max(total.epsilon(delta) for total in both) for both in _streamed(mechanisms)]


def tradeoff(parts: list[Any], alphas: list[float]) -> list[float]:
    return [min(both) for both in zip(*(p.tradeoff(alphas) for p in composed(parts)), strict=True)]


def tradeoff_ends(parts: list[Any], alphas: list[float]) -> list[list[float]]:
    ends = [pld.tradeoff_bounds(alphas) for pld in composed(parts)]
    lows, highs = zip(*(e.lo for e in ends), strict=True), zip(*(e.hi for e in ends), strict=True)
    return [[min(lo), min(hi)] for lo, hi in zip(lows, highs, strict=True)]


def decisions(history: int, more: int, sigma: float) -> float:
    """Seconds for each of `more` decisions after `history`."""
    office, query = rz.ZcdpFilter(rho=1e6), rz.Gaussian(sigma=sigma)
    for _ in range(history):
        office.request(query)
    start = time.process_time()
    for _ in range(more):
        assert office.request(query).admitted
    return (time.process_time() - start) / more


OPERATIONS = {
    operation.__name__: operation
    for operation in (
        epsilons,
        epsilon_ends,
        delta,
        delta_ends,
        stream,
        stream_epsilon,
        tradeoff,
        tradeoff_ends,
        decisions,
    )
}

if __name__ == "__main__":
    protocol.serve(OPERATIONS)
