"""The certified GDP residue beside the plain method, bisection over a grid that proves nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import ndtr

import residua as rz
from benchmarks.harness.rows import Row, milliseconds_below, times_faster
from benchmarks.harness.timing import median_in_a_row, median_time, side_by_side
from benchmarks.pld import finite
from residua.pld.residue import gdp_residue

GRID = 4801
STEPS = 50


def curve(m: float, t: np.ndarray) -> np.ndarray:
    a = 0.5 * m - t / m
    return np.asarray(ndtr(a) - np.exp(t) * ndtr(a - m))


def plain(mu: float, losses: np.ndarray, masses: np.ndarray) -> float:
    """The largest `m` that a grid does not refute, by bisection; the cost that goes with it."""
    t = np.linspace(-12.0 * mu, 12.0 * mu, GRID)
    budget = curve(mu, t)
    shifted = t[:, None] - losses
    low, high = 0.0, mu
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        fits = bool(np.all(curve(middle, shifted) @ masses <= budget + 1e-15))
        low, high = (middle, high) if fits else (low, middle)
    return mu * mu - low * low


def plain_response(eps: float, mu: float) -> float:
    p = 1.0 / (1.0 + math.exp(-eps))
    return plain(mu, np.array([eps, -eps]), np.array([p, 1.0 - p]))


def cold(mu: float, query: rz.Pld) -> rz.Interval | None:
    """A decision that was not made before."""
    _forget()
    return rz.gdp_residue_cost(mu * mu, query)


def _decided(
    decide: Callable[[rz.Pld], object], family: Callable[[float], rz.Pld], number: float
) -> object:
    return decide(family(number))


def _forget() -> None:
    gdp_residue.cost_bounds.cache_clear()  # type: ignore[attr-defined]


def run(repeats: int) -> list[Row]:
    rows = []
    several = 20 * repeats
    compared = side_by_side(
        lambda eps: cold(1.0, rz.pure_dp(eps)),
        lambda eps: plain_response(eps, 1.0),
        lambda repeat: 0.3 + 0.01 * repeat,
        repeats,
    )
    answer = compared.ours
    rows.append(
        Row(
            work="residue of randomized response, beside bisection on 4,801 points",
            ours_ms=compared.ours_ms,
            target=times_faster(10.0),
            peer="grid",
            peer_ms=compared.peer_ms,
            proven=None if answer is None else (float(answer.lo), float(answer.hi)),
            peer_value=compared.theirs,
        )
    )
    families: tuple[tuple[str, Callable[[float], rz.Pld]], ...] = (
        ("randomized response", rz.pure_dp),
        ("Laplace", rz.laplace),
    )
    decisions: tuple[tuple[str, Callable[[rz.Pld], object]], ...] = (
        ("residue of {}, certified", lambda query: cold(2.0, query)),
        ("decision of the GDP residue filter on {}", rz.GdpResidueFilter(2.0).check),
    )
    for name, family in families:
        for work, decide in decisions:
            rows.append(
                Row(
                    work=work.format(name),
                    ours_ms=median_in_a_row(
                        partial(_decided, decide, family),
                        lambda repeat: 1.0 + 0.001 * repeat,
                        several,
                    ),
                    target=milliseconds_below(0.1),
                )
            )
    rng = np.random.default_rng(11)

    def atoms(_: int) -> tuple[np.ndarray, np.ndarray]:
        p = rng.dirichlet(np.ones(5))
        q = p * np.exp(0.3 * rng.standard_normal(5))
        return p, q / q.sum()

    listed = side_by_side(
        lambda pair: cold(2.0, rz.from_pair(*pair)),
        lambda pair: plain(2.0, np.log(pair[0] / pair[1]), pair[0]),
        atoms,
        repeats,
    )
    rows.append(
        Row(
            work="residue of five atoms, beside bisection on 4,801 points",
            ours_ms=listed.ours_ms,
            target=times_faster(10.0),
            peer="grid",
            peer_ms=listed.peer_ms,
            proven=None if listed.ours is None else (float(listed.ours.lo), float(listed.ours.hi)),
            peer_value=listed.theirs,
        )
    )

    def long(repeat: int) -> rz.Pld:
        return rz.from_pair(*finite.vectors(np.random.default_rng([7, repeat]), 1.0))

    rows.append(
        Row(
            work=f"residue of {finite.ATOMS:,} atoms, certified",
            ours_ms=median_time(lambda query: cold(5.0, query), long, 3 * repeats),
            target=milliseconds_below(50.0),
        )
    )
    query = rz.pure_dp(0.5)
    desk = rz.GdpResidueFilter(1.0)
    for work, again in (
        ("the same residue again", lambda _: rz.gdp_residue_cost(1.0, query)),
        ("the same decision again", lambda _: desk.check(query)),
    ):
        rows.append(
            Row(
                work=work,
                ours_ms=median_in_a_row(again, lambda repeat: repeat, several),
                target=milliseconds_below(0.02),
            )
        )
    return rows
