"""Residues of several large losses at once, against their definition with 400 digits."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

import residua as rz
from residua.pld.residue.excess import (
    FiniteExcess,
    gaussian_lack,
    gaussian_transform,
    query_lack,
    tail_transform,
)
from residua.pld.residue.finite import finite_excess
from residua.pld.residue.large_losses import _searched, is_high

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


def lack(variance: mpf, t: mpf) -> mpf:
    """`1 - h(e^t)` of a Gaussian."""
    root = mp.sqrt(variance)
    return normal_cdf(t / root - root / 2) + mp.exp(t) * normal_cdf(-t / root - root / 2)


def excess_of_both(pairs: Pairs, v: Fraction, c: Fraction, t: mpf) -> mpf:
    """`h` of query and residue less `h` of the budget, at `e^t`."""
    m2, whole = (mpf(x.numerator) / x.denominator for x in (v - c, v))
    both = mp.fsum(p * lack(m2, t - mp.log(p / q)) for p, q in pairs)
    return lack(whole, t) - both


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


@pytest.mark.needs("flint")
@pytest.mark.parametrize("above", [1e-3, 0.2, 2.0])
@pytest.mark.parametrize("name", CASES)
def test_both_ends_are_within_a_millionth_of_the_cost(
    name: str, above: float, thorough: bool
) -> None:
    query, pairs = CASES[name]
    listed = finite_excess(query)
    assert listed is not None
    assert is_high(listed)
    v = Fraction((rz.gdp_parameter(query) * (1.0 + above)) ** 2)
    cost = rz.gdp_residue_cost(v, query)
    assert cost is not None
    low, high = Fraction(cost.lo), Fraction(cost.hi)
    assert high - low <= Fraction(1, 10**6) * low
    if not thorough and above != (1e-3 if name == "two" else 0.2):
        return
    contact = _searched(listed, float(v), 1e-300)
    at = contact.l * (float(v) - contact.c)
    # Below the lower end there is a place that refutes.
    assert excess_of_both(pairs, v, low, mpf(at)) > 0
    reach = 1.2 * max(listed.top, -listed.bottom) * float(v) / contact.c
    shape = np.sinh(np.linspace(-4.0, 4.0, 25 if thorough else 4)) / np.sinh(4.0)
    nearby = at + np.array([-1e-2, 1e-2]) * listed.top
    for t in (*(reach * shape).tolist(), *nearby.tolist(), at):
        assert excess_of_both(pairs, v, high, mpf(t)) <= 0, t


@pytest.mark.parametrize(("m2", "c"), [(3.0, 5.0), (40.0, 90.0), (0.5, 150.0)])
@pytest.mark.parametrize("name", ["two", "unequal", "atoms"])
def test_excess_and_lack_make_up_the_limit(name: str, m2: float, c: float) -> None:
    """Two ways to the same sum, one by quadrature and one in closed form."""
    listed: FiniteExcess | None = finite_excess(CASES[name][0])
    assert listed is not None
    l = np.array([-3.0, -0.7, 0.0, 0.2, 1.5])
    limit = np.logaddexp(tail_transform(m2, l).log, tail_transform(m2, -l).log)
    sides = [
        (listed.transform(m2, l), query_lack(listed, m2, l)),
        (gaussian_transform(m2, c, l), gaussian_lack(m2, c, l)),
    ]
    for excess, rest in sides:
        whole = np.logaddexp(excess.log, rest.log)
        allowed = excess.error + rest.error + 1e-13 * (1.0 + np.abs(limit))
        assert np.all(np.abs(whole - limit) <= allowed)


@pytest.mark.needs("flint")
@pytest.mark.parametrize("l", [-1.5, 0.0, 0.3, 4.0])
@pytest.mark.parametrize(("m2", "c"), [(3.0, 5.0), (40.0, 90.0), (0.5, 150.0)])
def test_lacks_are_within_their_errors(m2: float, c: float, l: float) -> None:
    listed = finite_excess(CASES["four"][0])
    assert listed is not None
    place = np.array([l])
    mine, theirs = query_lack(listed, m2, place), gaussian_lack(m2, c, place)
    t, factor = mpf(l) * m2, mpf(l) ** 2 * m2 / 2 + mpf(m2) / 8 + mp.log(2 * mp.pi * m2) / 2
    pairs = CASES["four"][1]
    both = mp.fsum(p * lack(mpf(m2), t - mp.log(p / q)) for p, q in pairs)
    for found, exact in ((mine, both), (theirs, lack(mpf(m2) + mpf(c), t))):
        gap = mp.log(exact) - t / 2 + factor - mpf(float(found.log[0]))
        assert abs(gap) <= float(found.error[0])


def test_small_losses_go_the_usual_way() -> None:
    for query in (3 * rz.pure_dp(1.0), rz.from_pair([0.3, 0.7], [0.6, 0.4])):
        listed = finite_excess(query)
        assert listed is not None
        assert not is_high(listed)
