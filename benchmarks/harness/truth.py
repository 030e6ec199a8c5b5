"""The exact `delta(eps)` of a composition in mpmath, where there is a formula for it.

The oracles are those of the tests (`tests/oracles.py`, `tests/mixture_oracles.py`), which import
nothing of the library: the normal cdf, sums over the binomial law, exact expansions of Laplace sums
and their transforms with a bound on what is left out. A composition of subsampled Gaussians has no
formula; what is said about it rests on our proven interval, and says so.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mpmath import mp, mpf

import mixture_oracles
import oracles
from benchmarks.harness.parts import Parts


def has_formula(parts: Parts) -> bool:
    sampled = [n for m, n in parts if m["kind"] == "subsampled_gaussian"]
    return not sampled or (len(parts) == 1 and sampled == [1])


def delta_ends(parts: Parts, eps: float) -> tuple[Any, Any]:
    """Numbers of mpmath that enclose `delta(eps)`: equal but for large sums of Laplaces."""
    t = mpf(eps)
    if parts[0][0]["kind"] == "subsampled_gaussian":
        (mechanism, _), *_ = parts
        ways = (_sampled(mechanism["sigma"], mechanism["rate"], way) for way in ("remove", "add"))
        value = max(way.delta(t) for way in ways)
        return value, value
    found = _delta(_key(parts), mp.exp(t))
    return (found.lo, found.hi) if isinstance(found, oracles.Bracket) else (found, found)


@lru_cache(maxsize=64)
def _sampled(sigma: float, rate: float, way: str) -> Any:
    return mixture_oracles.subsampled(sigma, rate, way)


def _key(parts: Parts) -> tuple[tuple[str, float, int], ...]:
    return tuple((m["kind"], next(v for k, v in m.items() if k != "kind"), n) for m, n in parts)


def _delta(key: tuple[tuple[str, float, int], ...], x: Any) -> Any:
    if len(key) == 1:
        kind, size, n = key[0]
        if kind == "gaussian":
            return oracles.gaussian(mp.sqrt(n) / oracles.real(size), x)
        if kind == "pure_dp":
            return oracles.response_power(size, 0.0, n, x)
        eps = 1 / oracles.exact(size)
        return oracles.laplace_sum([(eps, n)], x) if n <= 100 else oracles.laplace_power(eps, n, x)
    return _law(key).hockey_stick(x)


@lru_cache(maxsize=16)
def _law(key: tuple[tuple[str, float, int], ...]) -> Any:
    total = oracles.Law()
    for kind, size, n in key:
        if kind == "gaussian":
            total += oracles.Law(variance=n / oracles.exact(size) ** 2)
        elif kind == "laplace":
            total += oracles.Law(laplaces=((1 / oracles.exact(size), n),))
        else:
            total += oracles.Law(oracles.approximate_dp(size).power(n))
    return total


def epsilon(parts: Parts, delta: float, low: float, high: float) -> float:
    """The exact `eps(delta)` to 15 digits, from a bracket: bisection, then secants inside it."""
    a, b, wanted = mpf(low), mpf(high), mpf(delta)

    def f(t: Any) -> Any:
        return mp.log(delta_ends(parts, t)[0]) - mp.log(wanted)

    f_a, f_b = f(a), f(b)
    while f_a < 0:
        a, f_a = a - (b - a) - mpf("1e-12"), f(a - (b - a) - mpf("1e-12"))
    while f_b > 0:
        b, f_b = b + (b - a) + mpf("1e-12"), f(b + (b - a) + mpf("1e-12"))
    for _ in range(60):
        if b - a <= mpf("1e-16") * b:
            break
        c = b - f_b * (b - a) / (f_b - f_a) if f_a != f_b else (a + b) / 2
        f_c = f(c)
        if f_c == 0:
            return float(c)
        # Illinois: the end that stays counts half, so that both move.
        if f_c > 0:
            a, f_a, f_b = c, f_c, f_b / 2
        else:
            b, f_b, f_a = c, f_c, f_a / 2
    return float((a + b) / 2)
