"""Costs of several large losses at once, against their definition with 400 digits."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

import residua as rz

Pairs = list[tuple[mpf, mpf]]


@pytest.fixture(autouse=True)
def many_digits() -> Iterator[None]:
    with mp.workdps(400):
        yield


def responses(*eps: float) -> tuple[rz.Pld, Pairs]:
    query = rz.identity()
    pairs: Pairs = [(mpf(1), mpf(1))]
    for e in eps:
        query += rz.pure_dp(e)
        much = 1 / (1 + mp.exp(-mpf(e)))
        one = [(much, 1 - much), (1 - much, much)]
        pairs = [(p * a, q * b) for p, q in pairs for a, b in one]
    return query, pairs


def atoms(p: list[float], q: list[float]) -> tuple[rz.Pld, Pairs]:
    query = rz.from_pair(np.array(p), np.array(q))
    exact = query._atoms.exact
    listed = zip(exact.p, exact.q, strict=True)
    return query, [(mpf(a) / exact.p_den, mpf(b) / exact.q_den) for a, b in listed]


def normal_cdf(y: mpf) -> mpf:
    """By ball arithmetic, which takes milliseconds where `mp.ncdf` takes half a second."""
    import flint

    before, flint.ctx.prec = flint.ctx.prec, 1500
    try:
        ball = (-flint.arb(mp.nstr(y, 420)) / flint.arb(2).sqrt()).erfc() / 2
        return mpf(ball.str(420, radius=False))
    finally:
        flint.ctx.prec = before


def complement(variance: mpf, t: mpf) -> mpf:
    """`1 - h(e^t)` of a Gaussian."""
    root = mp.sqrt(variance)
    return normal_cdf(t / root - root / 2) + mp.exp(t) * normal_cdf(-t / root - root / 2)


def excess_of_both(pairs: Pairs, v: Fraction, c: Fraction, t: mpf) -> mpf:
    """`h` of query and residue less `h` of the budget, at `e^t`."""
    m2, whole = (mpf(x.numerator) / x.denominator for x in (v - c, v))
    both = mp.fsum(p * complement(m2, t - mp.log(p / q)) for p, q in pairs)
    return complement(whole, t) - both


FEW = 2.0**-30
with mp.workdps(400):
    CASES = {
        "two": responses(16.0, 16.0),
        "twenties": responses(20.0, 20.0),
        "largest": responses(40.0, 40.0, 40.0, 40.0),
        "unequal": responses(40.0, 3.0),
        "four": responses(5.0, 10.0, 20.0, 40.0),
        "atoms": atoms([0.5, 0.5 - FEW, FEW], [FEW**2, FEW, 1.0 - FEW - FEW**2]),
    }


COSTS = {
    "two": (0.886419, 0.753966, 0.735209),
    "twenties": (0.879615, 0.746886, 0.728910),
    "largest": (0.913533, 0.834758, 0.826812),
    "unequal": (0.817254, 0.623054, 0.553971),
    "four": (0.985077, 0.971227, 0.949495),
    "atoms": (0.830952, 0.624499, 0.555087),
}
"""Relative to `nu²`, under each budget: of ends that were proven within 2e-8 of each other."""
CLOSE = (1.14, 1.07, 1.002)
"""How far above that the upper end may be under each budget."""
BUDGETS = (1e-3, 0.2, 2.0)
"""How far `mu` is above `nu`, relatively."""


@pytest.mark.parametrize("above", BUDGETS)
@pytest.mark.parametrize("name", CASES)
def test_the_cost_is_between_the_ends(name: str, above: float) -> None:
    query, at = CASES[name][0], BUDGETS.index(above)
    nu = rz.gdp_parameter(query)
    cost = rz.gdp_residue_cost(Fraction((nu * (1.0 + above)) ** 2), query)
    assert cost is not None
    true = COSTS[name][at] * nu * nu
    assert 0.0 < cost.lo <= true * (1.0 + 1e-5)
    assert true * (1.0 - 1e-5) <= cost.hi <= true * CLOSE[at]


@pytest.mark.needs("flint")
@pytest.mark.parametrize("above", BUDGETS)
@pytest.mark.parametrize("name", CASES)
def test_the_upper_end_holds_everywhere(name: str, above: float, thorough: bool) -> None:
    query, pairs = CASES[name]
    nu = rz.gdp_parameter(query)
    v = Fraction((nu * (1.0 + above)) ** 2)
    cost = rz.gdp_residue_cost(v, query)
    assert cost is not None
    low, high = Fraction(cost.lo), Fraction(cost.hi)
    # Never more than what the GDP filter charges.
    assert 0 <= low <= high <= Fraction(nu) ** 2 * (1 + Fraction(1, 10**12))
    if not thorough and above != (1e-3 if name == "two" else 0.2):
        return
    top = float(max(abs(mp.log(p / q)) for p, q in pairs))
    reach = 1.2 * top * float(v / high)
    shape = np.sinh(np.linspace(-4.0, 4.0, 25 if thorough else 6)) / np.sinh(4.0)
    for t in (*(reach * shape).tolist(), 0.0):
        assert excess_of_both(pairs, v, high, mpf(t)) <= 0, t
