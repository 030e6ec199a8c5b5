"""The scalar equation of a central law: one reading of both sides, against 60 digits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf

import residua as rz
from residua.pld.residue import single_contact
from residua.pld.residue.initial_guess import about
from residua.pld.residue.symmetric_family import CentralLaw, density


def gap(law: CentralLaw, v: mpf, c: mpf) -> mpf:
    """`h_{L ⊕ G_m}(1) - h_{G_mu}(1)`, by error functions."""
    e, m2 = mpf(law.eps), v - c
    m = mp.sqrt(m2)

    def integral(a: mpf) -> mpf:
        """`∫ e^{-at - t²/2m²} dt` over `(0, e)`."""
        ends = (mp.erf((e / m + a * m) / mp.sqrt(2)), mp.erf(a * m / mp.sqrt(2)))
        return m * mp.sqrt(mp.pi / 2) * mp.exp(a * a * m2 / 2) * (ends[0] - ends[1])

    half = mpf(1) / 2
    falling, level, rising = integral(half), integral(mpf(0)), integral(-half)
    if law.is_laplace:
        query = falling - mp.exp(-e / 2) * level
    else:
        query = mpf(law.response) * (falling - mp.exp(-e) * rising) / (1 + mp.exp(-e))
        flat = falling - 2 * mp.exp(-e / 2) * level + mp.exp(-e) * rising
        query += mpf(law.flat) * flat / (1 - mp.exp(-e))
    scale = mp.exp(-m2 / 8) / mp.sqrt(2 * mp.pi * m2)
    mine = mp.erf(mp.sqrt(m2 / 8)) + 2 * query * scale
    return mine - mp.erf(mp.sqrt(v / 8))


def cases(count: int) -> list[tuple[CentralLaw, float]]:
    """Laws of every kind and budgets from barely enough to ample."""
    rng = np.random.default_rng(40)
    found = []
    while len(found) < count:
        eps, weight = 10.0 ** rng.uniform(-6.0, 1.3), float(rng.choice([0.0, 0.5, 1.0]))
        laplace = bool(rng.integers(2))
        law = CentralLaw(eps, 0.0 if laplace else weight, 0.0 if laplace else 1.0 - weight, laplace)
        v = (eps * 10.0 ** rng.uniform(-0.3, 3.0)) ** 2
        if v < 1e3 and single_contact.fits(law, v):
            found.append((law, v))
    return found


def test_on_either_side_of_the_truth(thorough: bool) -> None:
    for place, (law, v) in enumerate(cases(400 if thorough else 60)):
        v_up = math.nextafter(v, math.inf) if place % 2 else v
        found = single_contact.cost_at_zero(law, v, v_up)
        assert found is not None
        low, high = found
        with mp.workdps(60 + int(v)):
            assert gap(law, mpf(v_up), mpf(low)) >= 0
            assert high == v or gap(law, mpf(v), mpf(high)) <= 0
        assert high - low <= 1e-11 * high


@pytest.mark.parametrize("off", [0.0, 1e-12, -1e-12, 1e-9, -1e-9, 1e-4, -1e-4])
def test_a_reading_nearby_proves_nothing_wrong(off: float) -> None:
    """Both ends from the sides at another cost; where none is found, raising and lowering do."""
    proven = 0
    for law, v in cases(12):
        both = single_contact._lacking if law.eps > 3.0 else single_contact._themselves
        _, near, _ = single_contact._root(law, v, both)
        c = min(near * (1.0 + off), 0.5 * (near + v))
        at, weight, error = both(law, v - c, c), density(law, v - c), 1e-13
        high = single_contact._above(law, v, at, weight, error)
        low = single_contact._below(v, at, weight, error)
        raised = single_contact._raised(law, v, near, both, error)
        lowered = single_contact._lowered(law, v, near, both, error)
        with mp.workdps(60 + int(v)):
            exact = mpf(v)
            if high is not None:
                assert gap(law, exact, mpf(high)) <= 0
                assert lowered <= high
            if low is not None:
                assert gap(law, exact, mpf(low)) >= 0
                assert low <= raised
        proven += high is not None and low is not None
    assert proven >= (12 if abs(off) < 1e-6 else 0)


def test_how_fast_the_sides_part() -> None:
    """`d/dc` of the gap is `-½ e^{-m²/8} / √(2π m²)` times the density."""
    for law, v in cases(12):
        with mp.workdps(80):
            exact, c = mpf(v), mpf(0.4 * v)
            step = mpf(10) ** -30 * c
            slope = (gap(law, exact, c + step) - gap(law, exact, c - step)) / (2 * step)
            m2 = exact - c
            expected = -mp.exp(-m2 / 8) / mp.sqrt(2 * mp.pi * m2) / 2
            assert float(slope / expected) == pytest.approx(density(law, float(m2)), rel=1e-12)


def test_starts_are_close() -> None:
    for law, v in cases(40):
        found = single_contact.cost_at_zero(law, v, v)
        assert found is not None
        assert 0.0 < about(law, v) < v
        if v < 1e2 and found[1] < 0.9 * v:
            assert about(law, v) == pytest.approx(found[1], rel=1e-3)


@pytest.mark.parametrize(
    "query",
    [rz.laplace(scale=50.0), rz.laplace(scale=1.0), rz.pure_dp(0.01), rz.pure_dp(1.0)],
    ids=repr,
)
def test_within_a_hair_of_the_whole_budget(query: rz.Pld) -> None:
    """Where hardly anything is left the root is hard to find; it is still an answer."""
    nu = rz.gdp_parameter(query)
    admitted = []
    for step in range(-30, 300, 3):
        left = rz.gdp_residue(nu * (1.0 + 37.0 * step * 2.0**-52), query)
        admitted.append(left is not None)
        assert left is None or 0.0 <= left < 0.2 * nu
    assert admitted == sorted(admitted) and admitted[-1]
