"""Mechanisms as the adapters read them, and compositions: lists of a mechanism and a count."""

from __future__ import annotations

from typing import Any

Mechanism = dict[str, Any]
Parts = list[list[Any]]


def gaussian(sigma: float) -> Mechanism:
    return {"kind": "gaussian", "sigma": float(sigma)}


def laplace(scale: float) -> Mechanism:
    return {"kind": "laplace", "scale": float(scale)}


def pure_dp(eps: float) -> Mechanism:
    return {"kind": "pure_dp", "eps": float(eps)}


def subsampled(sigma: float, rate: float) -> Mechanism:
    return {"kind": "subsampled_gaussian", "sigma": float(sigma), "rate": float(rate)}


def shown(parts: Parts) -> str:
    return " + ".join(f"{n:,} × {_one(m)}" if n > 1 else _one(m) for m, n in parts)


def _one(mechanism: Mechanism) -> str:
    match mechanism:
        case {"kind": "gaussian", "sigma": sigma}:
            return f"Gaussian σ={sigma:g}"
        case {"kind": "laplace", "scale": scale}:
            return f"Laplace b={scale:g}"
        case {"kind": "pure_dp", "eps": eps}:
            return f"response ε={eps:g}"
        case {"sigma": sigma, "rate": rate}:
            return f"subsampled Gaussian σ={sigma:g} q={rate:g}"
    raise ValueError(f"no such mechanism: {mechanism}")
