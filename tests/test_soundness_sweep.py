"""The exact value is inside every interval: Gaussian, randomized response, Laplace, subsampled.

Deltas from 1e-2 to 1e-30, one to 10^5 compositions. Each setting asks for `epsilon(delta)`,
then reads `delta` back at its upper end, and checks both against the exact law: no delta
negative, none infinite where the truth is finite, relative width of delta at most 1e-6 with
a Gaussian part, width in eps at most 1e-3 without.

Every fourth setting runs by default; all of them with RESIDUA_THOROUGH=1 (or the thorough
hypothesis profile).
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest
from mpmath import mp

import oracles
import residua as rz
from oracles import Bracket

THOROUGH = (
    os.environ.get("RESIDUA_THOROUGH") == "1" or os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
)
DELTAS = (1e-2, 1e-4, 1e-6, 1e-9, 1e-12, 1e-18, 1e-24, 1e-30)


@dataclass(frozen=True)
class Setting:
    """One query, how often, and the delta asked for."""

    name: str
    build: Callable[[], rz.Pld]
    truth: Callable[[object], object]
    delta: float
    gaussian: bool = False
    at_infinity: float = 0.0

    @property
    def id(self) -> str:
        return f"{self.name}, delta {self.delta:g}"


def gaussians() -> list[Setting]:
    return [
        Setting(
            f"{n} gaussian(sigma={sigma})",
            lambda n=n, sigma=sigma: n * rz.gaussian(sigma=sigma),
            lambda x, n=n, sigma=sigma: oracles.gaussian(mp.sqrt(n) / oracles.real(sigma), x),
            delta,
            gaussian=True,
        )
        for sigma, n, delta in itertools.product(
            (0.5, 1.0, 4.0, 50.0), (1, 10, 1000, 10**5), DELTAS
        )
    ]


def responses() -> list[Setting]:
    kinds = [(0.01, 0.0), (0.1, 0.0), (0.5, 1e-14), (2.0, 0.0)]
    return [
        Setting(
            f"{n} approximate_dp({eps}, {own})",
            lambda n=n, eps=eps, own=own: n * rz.approximate_dp(eps, own),
            lambda x, n=n, eps=eps, own=own: oracles.response_power(eps, own, n, x),
            delta,
            at_infinity=-math.expm1(n * math.log1p(-own)),
        )
        for (eps, own), n, delta in itertools.product(kinds, (1, 30, 1000, 10**5), DELTAS)
    ]


def laplaces() -> list[Setting]:
    kinds = [(0.5, 1), (0.5, 12), (4.0, 1), (4.0, 5), (4.0, 60), (20.0, 30), (20.0, 100)]
    kinds += [(20.0, 1000), (50.0, 5000), (400.0, 10**5)]
    return [
        Setting(
            f"{n} laplace(scale={scale})",
            lambda n=n, scale=scale: n * rz.laplace(scale=scale),
            lambda x, n=n, scale=scale: laplace_truth(scale, n, x),
            delta,
        )
        for (scale, n), delta in itertools.product(kinds, DELTAS)
    ]


def laplace_truth(scale: float, n: int, x: object) -> object:
    eps = 1 / oracles.exact(scale)
    if n <= 100:
        return oracles.laplace_sum([(eps, n)], x)
    return oracles.laplace_power(eps, n, x)


def smoothed_laplace_truth(sigma: float, scale: float, n: int, x: object) -> object:
    variance = 1 / oracles.exact(sigma) ** 2
    law = oracles.Law(laplaces=((1 / oracles.exact(scale), n),), variance=variance)
    return law.hockey_stick(x) if n <= 100 else oracles.contour(law, mp.log(x), digits=20)


LATTICES = [(1.0, 0.01, 1 / 16, 48), (2.0, 0.005, 1 / 64, 32), (0.7, 0.001, 1 / 8, 40)]


@cache
def lattice(kind: int) -> tuple[list[float], list[float], dict[int, object]]:
    """Losses and masses of a subsampled Gaussian on a lattice, and its normalised masses."""
    sigma, rate, step, top = LATTICES[kind]
    losses, masses = oracles.subsampled_lattice(sigma, rate, step, top)
    total = mp.fsum(masses)
    at = {round(z / step): oracles.real(m) / total for z, m in zip(losses, masses, strict=True)}
    return losses, masses, at


def lattice_truth(kind: int, n: int, x: object) -> Bracket:
    _, _, at = lattice(kind)
    step = LATTICES[kind][2]
    return oracles.ulps(lambda y: oracles.lattice_power(at, step, n, y), x, n)


def subsampled() -> list[Setting]:
    return [
        Setting(
            f"{n} subsampled(sigma={LATTICES[kind][0]}, rate={LATTICES[kind][1]})",
            lambda kind=kind, n=n: n * rz.from_atoms(*lattice(kind)[:2]),
            lambda x, kind=kind, n=n: lattice_truth(kind, n, x),
            delta,
        )
        for kind, n, delta in itertools.product(range(3), (1, 30, 1000, 10**5), DELTAS)
    ]


@cache
def response_atoms(eps: float, n: int) -> oracles.Finite:
    return oracles.approximate_dp(eps).power(n)


def mixtures() -> list[Setting]:
    """Gaussians with randomized responses or subsampled steps among them."""
    with_responses = [
        Setting(
            f"{m} gaussian(sigma={sigma}) + {n} pure_dp({eps})",
            lambda m=m, sigma=sigma, n=n, eps=eps: (
                m * rz.gaussian(sigma=sigma) + n * rz.pure_dp(eps)
            ),
            lambda x, m=m, sigma=sigma, n=n, eps=eps: oracles.Law(
                response_atoms(eps, n), variance=m / oracles.real(sigma) ** 2
            ).hockey_stick(x),
            delta,
            gaussian=True,
        )
        for (m, sigma, n, eps), delta in itertools.product(
            [(1, 1.0, 1, 1.0), (10, 8.0, 20, 0.1), (100, 30.0, 100, 0.05), (1, 20.0, 5, 0.5)],
            DELTAS,
        )
    ]
    with_laplaces = [
        Setting(
            f"gaussian(sigma={sigma}) + {n} laplace(scale={scale})",
            lambda sigma=sigma, n=n, scale=scale: (
                rz.gaussian(sigma=sigma) + n * rz.laplace(scale=scale)
            ),
            lambda x, sigma=sigma, n=n, scale=scale: smoothed_laplace_truth(sigma, scale, n, x),
            delta,
            gaussian=True,
        )
        for (sigma, n, scale), delta in itertools.product(
            [(1.0, 1, 1.0), (2.0, 50, 20.0), (1.5, 3, 2.0), (3.0, 10**4, 400.0), (0.5, 9, 5.0)],
            DELTAS,
        )
    ]
    return with_responses + with_laplaces


SETTINGS = [*gaussians(), *responses(), *laplaces(), *subsampled(), *mixtures()]
# A quarter of them, so that every query and every delta has its turn.
SHORT = [setting for i, setting in enumerate(SETTINGS) if (i + i // len(DELTAS)) % 4 == 0]


def ends(truth: object) -> Bracket:
    return truth if isinstance(truth, Bracket) else Bracket(truth, truth)


def test_the_sweep_is_large_enough():
    assert len(SETTINGS) >= 500
    assert len({setting.id for setting in SETTINGS}) == len(SETTINGS)


@pytest.mark.parametrize("setting", SETTINGS if THOROUGH else SHORT, ids=lambda setting: setting.id)
def test_sound(setting):
    L = setting.build()
    wanted = mp.mpf(setting.delta)
    eps = L.epsilon_bounds(setting.delta)
    assert 0 <= eps.lo <= eps.hi
    if setting.at_infinity > setting.delta:
        assert eps.lo == math.inf
        read = 1.0  # somewhere all the same
        truth = setting.truth(mp.exp(read))
    else:
        assert eps.hi < math.inf
        read = eps.hi
        truth = setting.truth(mp.exp(mp.mpf(read)))
        assert ends(truth).lo <= wanted
        if eps.lo > 0:
            assert ends(setting.truth(mp.exp(mp.mpf(eps.lo)))).hi >= wanted
        assert eps.width <= 1e-3
    delta = L.delta_bounds(read)
    assert 0 <= delta.lo <= delta.hi <= 1
    assert oracles.agrees(delta, truth)
    relative = delta.width <= 1e-6 * delta.hi
    if setting.gaussian:
        assert relative
    elif not relative:
        assert mp.mpf(delta.hi) <= ends(setting.truth(mp.exp(mp.mpf(read) - 1e-3))).hi
        assert mp.mpf(delta.lo) >= ends(setting.truth(mp.exp(mp.mpf(read) + 1e-3))).lo
