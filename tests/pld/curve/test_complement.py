"""What a curve lacks of 1: node values left of 0, and sums over them, against high precision."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import oracles
import residua as rz
from mixture_oracles import range_moment, range_sum
from residua.pld.arithmetic.ulp_bounds import U
from residua.pld.curve import chernoff
from residua.pld.curve.contour import parameters
from residua.pld.families import symmetric
from residua.pld.families.symmetric import BoundedRange

LINES = (-0.45, -0.3, -0.25, -0.1, -1e-3, -1e-6)


def laplace_moment(eps: object, s: object) -> object:
    w = s + mp.mpf(1) / 2
    return mp.exp(-eps / 2) * (mp.cosh(w * eps) + mp.sinh(w * eps) / (2 * w))


@pytest.mark.parametrize("lam", LINES)
@pytest.mark.parametrize("eps", [1e-6, 0.01, 1.0, 7.0, 300.0])
@pytest.mark.parametrize("atomic", [None, 0.0, 0.25, 0.9])
def test_nodes_left_of_zero(eps, atomic, lam):
    omega = np.array([0.0, 1e-5, 0.01, 0.3, 1.0, 2.5, 17.0, 1e3])
    one, at = np.array([[eps]]), mp.mpf(lam)
    weights = (0.5, 0.5) if atomic is None else BoundedRange(eps, atomic).weights
    law = (one, *(np.array([[weight]]) for weight in weights))
    value, error = symmetric.nodes(*law, lam, omega)
    fall = symmetric.log_decay(*law, lam, omega[1:])
    with mp.workdps(60):

        def moment(s: object) -> object:
            if atomic is None:
                return laplace_moment(mp.mpf(eps), s)
            return range_moment(mp.mpf(eps), mp.mpf(atomic), s)

        truth = [moment(at + 1j * mp.mpf(w)) / moment(at) for w in omega]
        wrong = [abs(mp.mpc(complex(v)) - x) for v, x in zip(value[0], truth, strict=True)]
        errors = np.broadcast_to(error, value.shape)[0]
        assert all(a <= mp.mpf(b) for a, b in zip(wrong, errors, strict=True))
        for i, bound in enumerate(fall[0], start=1):
            assert all(mp.log(abs(x)) <= mp.mpf(bound) for x in truth[i:])


@pytest.mark.parametrize("lam", LINES[:-1])
@pytest.mark.parametrize(
    ("pld", "law"),
    [
        (6 * rz.laplace(1.0), oracles.Law(laplaces=((Fraction(1), 6),))),
        (
            2 * rz.laplace(0.5) + 2 * rz.pure_dp(0.25) + rz.gaussian(mu=0.5),
            oracles.Law(oracles.approximate_dp(0.25).power(2), ((Fraction(2), 2),), Fraction(1, 4)),
        ),
    ],
)
def test_sums_left_of_zero(pld, law, lam, monkeypatch):
    """Any line in the strip encloses the complement, well chosen or not."""
    moments = pld._evaluator._moments
    spread = parameters._spread(moments, lam)
    monkeypatch.setattr(parameters, "_tilt", lambda *_, **__: (lam, spread))
    t = np.array([0.0, 0.3, 1.0, 2.0])
    low, high = parameters.choose_line(moments, 1.0, 1e-3).curve(t, 0.0)
    bound = chernoff.complement_bound(moments.log_moment, t, np.zeros(4))
    for i, at in enumerate(t):
        truth = 1 - law.hockey_stick(mp.exp(mp.mpf(at)))
        assert mp.mpf(low[i]) <= truth <= mp.mpf(high[i])
        assert truth <= mp.mpf(bound[i])


@pytest.mark.parametrize("below", [0.2, 1.0, 3.0])
def test_bounded_ranges_below_the_mean(below):
    n = 40
    bounds = (n * rz.bounded_range(1.0)).delta_bounds(below)
    truth = range_sum(((mp.mpf(1), mp.mpf(0), n),), mp.exp(mp.mpf(below)))
    assert mp.mpf(bounds.lo) <= truth <= mp.mpf(bounds.hi)
    assert bounds.width <= 1e-6


def test_tables_from_below():
    table = (300 * rz.pure_dp(0.5))._evaluator._table
    t = np.array([0.0, 1.0, 20.0, 36.0, 149.9])
    low, high = table.complement(t, 0.0)
    for i, at in enumerate(t):
        truth = 1 - oracles.response_power(0.5, 0, 300, mp.exp(mp.mpf(at)))
        assert mp.mpf(low[i]) <= truth <= mp.mpf(high[i])
        assert high[i] - low[i] <= 1e-9 * high[i] + U
