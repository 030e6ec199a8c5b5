"""riskcal: tradeoff curves of dp_accounting's PLDs (`grid`), or in closed form (`grid` 0)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import protocol
from dp_accounting.pld import privacy_loss_distribution as pld
from riskcal import analysis


def composed(mechanism: dict[str, Any], count: int, grid: float) -> Any:
    options = {"value_discretization_interval": grid}
    match mechanism:
        case {"kind": "gaussian", "sigma": sigma}:
            one = pld.from_gaussian_mechanism(sigma, **options)
        case {"kind": "laplace", "scale": scale}:
            one = pld.from_laplace_mechanism(scale, **options)
        case {"kind": "subsampled_gaussian", "sigma": sigma, "rate": rate}:
            one = pld.from_gaussian_mechanism(sigma, sampling_prob=rate, **options)
        case _:
            raise protocol.Cannot(f"no {mechanism['kind']}")
    return one.self_compose(count) if count > 1 else one


def tradeoff(parts: list[Any], alphas: list[float], grid: float = 1e-4) -> list[float]:
    (mechanism, count), *rest = parts
    levels = np.asarray(alphas)
    if not grid:
        if rest or mechanism["kind"] != "gaussian":
            raise protocol.Cannot("closed forms for Gaussians alone")
        mu = math.sqrt(count) / mechanism["sigma"]
        return np.asarray(analysis.get_beta_from_gdp(mu, levels)).tolist()
    total = composed(mechanism, count, grid)
    for other, times in rest:
        total = total.compose(composed(other, times, grid))
    return np.asarray(analysis.get_beta_from_pld(total, levels)).tolist()


if __name__ == "__main__":
    protocol.serve({"tradeoff": tradeoff})
