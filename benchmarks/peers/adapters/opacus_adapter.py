"""Opacus's accountants: `which` is prv, rdp or gdp. Subsampled Gaussians; a rate of 1 is none."""

from __future__ import annotations

from typing import Any

import protocol
from opacus.accountants import GaussianAccountant, PRVAccountant, RDPAccountant

ACCOUNTANTS = {"prv": PRVAccountant, "rdp": RDPAccountant, "gdp": GaussianAccountant}


def step(mechanism: dict[str, Any]) -> tuple[float, float]:
    match mechanism:
        case {"kind": "gaussian", "sigma": sigma}:
            return sigma, 1.0
        case {"kind": "subsampled_gaussian", "sigma": sigma, "rate": rate}:
            return sigma, rate
    raise protocol.Cannot("Gaussian noise alone")


def composed(parts: list[Any], which: str) -> Any:
    made = ACCOUNTANTS[which]()
    if which == "gdp" and len(parts) > 1:
        raise protocol.Cannot("equal steps alone")
    # As many calls of step() leave this in its history, one entry for equal neighbours.
    made.history = [(*step(mechanism), count) for mechanism, count in parts]
    return made


def epsilons(
    parts: list[Any], deltas: list[float], which: str = "prv", eps_error: float = 0.01
) -> list[Any]:
    total = composed(parts, which)
    more = {"eps_error": eps_error} if which == "prv" else {}
    return protocol.each(lambda delta: total.get_epsilon(delta, **more), deltas)


def stream_epsilon(
    mechanisms: list[dict[str, Any]], delta: float, which: str = "prv"
) -> list[float]:
    made = ACCOUNTANTS[which]()
    if which == "gdp":
        raise protocol.Cannot("equal steps alone")
    found = []
    for mechanism in mechanisms:
        sigma, rate = step(mechanism)
        made.step(noise_multiplier=sigma, sample_rate=rate)
        found.append(float(made.get_epsilon(delta)))
    return found


if __name__ == "__main__":
    protocol.serve({"epsilons": epsilons, "stream_epsilon": stream_epsilon})
