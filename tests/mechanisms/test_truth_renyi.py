"""Rényi bounds beside the coins that they allow, and mechanisms known to keep them."""

# mypy: disable-error-code="misc"
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import mechanism_oracles as oracle
import oracles
import residua as rz
from mechanisms.enclosing import FACTOR, THOROUGH, dominates
from residua.mechanisms import (
    Mechanism,
    PureDp,
    Rdp,
    Zcdp,
)


@pytest.fixture(autouse=True)
def _digits() -> Iterable[None]:
    """Enough for everything here, and twice as fast as 60."""
    with mp.workdps(40):
        yield


FINE = 1.0 + np.geomspace(1e-4, 1e5, 1500)
ABOVE_ONE = [1.0, 1.1, 1.5, 2.5, 6.0, 20.0, 100.0]


def _largest_within(p: Any, q: Any, orders: Any, bounds: Any) -> Any:
    """`(1-s) Q + s P` with the largest `s` that keeps the bounds in both directions."""
    low, high = 0.0, 1.0
    for _ in range(40):
        s = 0.5 * (low + high)
        m = (1 - s) * q + s * p
        good = np.all(oracle.renyi(m, q, orders) <= bounds) and np.all(
            oracle.renyi(q, m, orders) <= bounds
        )
        low, high = (s, high) if good else (low, s)
    return (1 - low) * q + low * p


def _random_pairs(size: int, orders: Any, bounds: Any, count: int) -> list[Any]:
    rng = np.random.default_rng(17 + size)
    out = []
    for _ in range(count):
        p, q = (rng.dirichlet(np.full(size, rng.choice([0.1, 0.5, 2.0]))) for _ in range(2))
        p, q = (np.maximum(v, 1e-9) / np.maximum(v, 1e-9).sum() for v in (p, q))
        out.append((_largest_within(p, q, orders, bounds), q))
    return out


RENYI: list[tuple[Mechanism, Any, Any]] = [
    (Zcdp(0.5), FINE, 0.5 * FINE),
    (Zcdp(0.01), FINE, 0.01 * FINE),
    (Zcdp(0.1, 0.3), FINE, 0.3 + 0.1 * FINE),
    (Rdp((2.0,), (0.5,)), np.array([2.0]), np.array([0.5])),
    (Rdp((1.5, 4.0, 32.0), (0.2, 0.5, 2.0)), np.array([1.5, 4, 32]), np.array([0.2, 0.5, 2])),
    (Rdp((1.01, 64.0), (0.3, 0.4)), np.array([1.01, 64]), np.array([0.3, 0.4])),
    (Rdp((300.0,), (1.0,)), np.array([300.0]), np.array([1.0])),
]
if THOROUGH:
    RENYI += [(Zcdp(0.0, 0.2), FINE, 0.2 + 0.0 * FINE), (Zcdp(3.0), FINE, 3.0 * FINE)]
renyi_bounds = pytest.mark.parametrize(
    ("mechanism", "orders", "bounds"), RENYI, ids=[repr(m) for m, _, _ in RENYI]
)


@renyi_bounds
def test_renyi_bounds_hold_random_mechanisms(
    mechanism: Mechanism, orders: Any, bounds: Any
) -> None:
    """Two and three outcomes, as far apart as the bounds allow: all below, both ways."""
    pld = mechanism.pld()
    for size in (2, 3):
        for p, q in _random_pairs(size, orders, bounds, 15 * FACTOR):
            dominates(pld, lambda x, p=p, q=q: oracle.hockey_stick(p, q, x), slack=1e-10)
            dominates(pld, lambda x, p=p, q=q: oracle.hockey_stick(q, p, x), slack=1e-10)


@renyi_bounds
def test_renyi_bounds_are_attained_by_coins(mechanism: Mechanism, orders: Any, bounds: Any) -> None:
    """The curve is that of the best coin at every `x`: nothing above is lost, nothing is gained."""
    pld, below = mechanism.pld(), mechanism.pld(side="below")
    # The polygon around the region has a width of its own, in eps.
    xs = ABOVE_ONE + [float(x * np.exp(-3e-3)) for x in ABOVE_ONE]
    if isinstance(mechanism, Zcdp):
        coins = oracle.zcdp_hockey_stick(mechanism.rho, mechanism.xi, xs)
    else:
        coins = oracle.region_hockey_stick(orders, bounds, xs)
    best, wider = coins[: len(ABOVE_ONE)], coins[len(ABOVE_ONE) :]
    for x, coin, more in zip(ABOVE_ONE, best, wider, strict=True):
        top, low = pld.hockey_stick_bounds(x).hi, below.hockey_stick_bounds(x).lo
        # The scan over coins is good to 1e-7 of their value, and to 1e-15 near 0.
        assert coin * (1 - 1e-7) <= top + 1e-15 and top <= more * (1 + 1e-7) + 1e-15, x
        assert low <= coin * (1 + 1e-7) + 1e-15, x
        mirrored = 1 - 1 / x + coin / x
        assert pld.hockey_stick(1 / x) >= mirrored * (1 - 1e-7)


@pytest.mark.parametrize("rho", [1e-3, 0.01, 0.5, 2.0] if THOROUGH else [0.01, 0.5])
def test_zcdp_holds_gaussian_noise(rho: float) -> None:
    mu = mp.sqrt(2 * oracles.real(rho))
    dominates(Zcdp(rho).pld(), lambda x: oracles.gaussian(mu, x), slack=1e-30)


DELTAS = [1e-12, 1e-3, 0.3]


@pytest.mark.parametrize("delta", DELTAS)
def test_approximate_zcdp_holds_random_mechanisms(delta: float) -> None:
    """By definition: outputs within the bound given an event, anything at all outside of it.

    The events differ, have different probabilities, and share outcomes with what is outside.
    """
    rng = np.random.default_rng(7)
    pld = Zcdp(0.1, delta=delta).pld()
    for p, q in _random_pairs(3, FINE, 0.1 * FINE, 15 * FACTOR):
        outputs = []
        for given in (p, q):
            outside = rng.dirichlet(np.full(4, 0.3))
            lost = delta * rng.choice([1.0, 0.6])
            outputs.append((1.0 - lost) * np.append(given, 0.0) + lost * outside)
        p, q = outputs
        dominates(pld, lambda x, p=p, q=q: oracle.hockey_stick(p, q, x), slack=1e-10)
        dominates(pld, lambda x, p=p, q=q: oracle.hockey_stick(q, p, x), slack=1e-10)


@pytest.mark.parametrize("delta", DELTAS)
def test_approximate_zcdp_is_attained(delta: float) -> None:
    """`delta + (1 - delta) h`, at every point, where `h` is the curve of zCDP."""
    plain, mine = Zcdp(0.1, 0.05), Zcdp(0.1, 0.05, delta)
    for side in ("above", "below"):
        known, curve = plain.pld(side=side), mine.pld(side=side)
        for x in [0.2, 0.9, *ABOVE_ONE]:
            zcdp, found = known.hockey_stick_bounds(x), curve.hockey_stick_bounds(x)
            low, high = (delta + (1.0 - delta) * end for end in (zcdp.lo, zcdp.hi))
            assert found.lo <= high * (1.0 + 1e-15) and low * (1.0 - 1e-15) <= found.hi
            assert found.hi - found.lo <= 1e-11 * found.hi + 1e-15
    assert mine.pld() == plain.pld() + rz.approximate_dp(0.0, delta)
    assert Zcdp(0.1, 0.05, 0.0).pld() == plain.pld()


@pytest.mark.parametrize("orders", [(2.0,), (1.5, 3.0, 17.0), (64.0, 256.0)])
def test_rdp_holds_gaussian_and_laplace_noise(orders: tuple[float, ...]) -> None:
    mu = mpf(0.75)
    pld = Rdp(orders, tuple(float(mu**2 * a / 2) * (1 + 1e-15) for a in orders)).pld()
    dominates(pld, lambda x: oracles.gaussian(mu, x), slack=1e-30)
    eps = mpf(0.75)
    bounds = [float(mp.log(oracles.laplace_moment(eps, mpf(a))) / (a - 1)) for a in orders]
    pld = Rdp(orders, tuple(b * (1 + 1e-15) for b in bounds)).pld()
    dominates(pld, lambda x: oracles.laplace(eps, x), slack=1e-30)


@pytest.mark.parametrize(("rho", "xi"), [(0.01, 0.0), (0.5, 0.0), (1e-3, 1.0), (1e-6, 0.2)])
def test_zcdp_below_is_within_the_bound(rho: float, xi: float) -> None:
    """Every test that `below` allows is a pair of coins within the bound at all orders."""
    exact = Zcdp(rho, xi).pld(side="below")._atoms.exact
    vertices = [(q, p) for q, p in exact.vertices() if 0 < q < p < 1]
    assert len(vertices) > 50
    p = np.array([float(p) for _, p in vertices])
    q = np.array([float(q) for q, _ in vertices])
    p_bar = np.array([float(1 - p) for _, p in vertices])
    q_bar = np.array([float(1 - q) for q, _ in vertices])
    keep = (q > 1e-25) & (p_bar > 1e-25)
    logs = [np.log(v[keep]) for v in (p, p_bar, q, q_bar)]
    assert oracle.most_excess(logs[0], logs[1], logs[2], logs[3], rho, xi).max() <= 1e-12


def test_zcdp_without_rho_is_pure() -> None:
    """`D_α <= xi` at every order is `xi`-DP, whatever its size; a tiny `rho` changes little."""
    for xi in (1e-9, 0.2, 5.0, 150.0):
        assert Zcdp(0.0, xi).plds() == PureDp(xi).plds()
        assert Zcdp(0.0, xi).plds(side="below") == PureDp(xi).plds(side="below")
    nearly = Zcdp(1e-14, 0.2)
    assert nearly.pld(side="below") == PureDp(0.2).pld()
    assert nearly.pld().epsilon(1e-9) < 0.2 + 1e-3


def test_zcdp_below_when_xi_is_large() -> None:
    """Not Gaussian noise, which is past `xi + rho α` at large orders if `rho` is small."""
    below = Zcdp(0.1, 150.0).pld(side="below")
    assert below.gaussian is None and below == PureDp(150.0).pld()
