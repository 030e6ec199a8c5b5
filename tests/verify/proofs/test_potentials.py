"""Walks on potentials: the verifier's composition beside the filters' own, and the curves."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import residua as rz
from residua import mechanisms as m
from residua.filters.potential.grid import grid_for, step_of

pytestmark = pytest.mark.needs("flint")

QUERIES = [
    m.PureDp(0.1),
    m.PureDp(0.0123),
    m.Laplace(7.0),
    m.Gaussian(sigma=15.0),
    m.ApproximateDp(0.05, 1e-8),
    m.ExponentialMechanism(0.2),
    m.FromTradeoff((0.0, 0.25, 1.0), (1.0, 0.6875, 0.0)),
]


@pytest.mark.parametrize("query", QUERIES, ids=[q.kind for q in QUERIES])
def test_composition_on_a_grid_agrees(query: m.Mechanism) -> None:
    """Theirs is rounded up, ours encloses: a hair below it."""
    from residua.verify.arithmetic.balls import bits
    from residua.verify.descriptions.mechanisms import loss_of
    from residua.verify.proofs.potentials import Potential, composed

    grid = grid_for(1.0, 1e-6)
    rng = np.random.default_rng(3)
    smooth = rz.gaussian(mu=0.15)
    t = (np.arange(grid.size) - grid.half) * float(grid.spacing)
    excess = np.array([smooth.delta(abs(x)) * min(1.0, np.exp(x)) for x in t])
    values = excess * (1.0 + 0.01 * rng.random(grid.size))
    theirs = step_of(grid, query.pld()).after(values)
    with bits(192):
        given = Potential(1.0, 1e-6, grid.cells, grid.half, 0, tuple(values.tolist()))
        ours = composed(loss_of(query.to_dict(), "add-remove"), given)
        found = np.array([float(a.upper()) for a in ours])
    assert np.all(found <= theirs * (1.0 + 1e-12))
    # In the far tail theirs is what rounding losses to the grid, and cutting, costs.
    assert np.all(found >= theirs * (1.0 - 1e-5) - 1e-13)


def test_several_copies_on_a_finer_lattice_agree() -> None:
    from residua.verify.arithmetic.balls import bits
    from residua.verify.descriptions.mechanisms import loss_of
    from residua.verify.proofs.potentials import Potential, composed

    grid = grid_for(1.0, 1e-6)
    values = np.exp(-(np.linspace(-4.0, 4.0, grid.size) ** 2))
    theirs = step_of(grid, 8 * m.Laplace(40.0).pld()).after(values)
    with bits(192):
        given = Potential(1.0, 1e-6, grid.cells, grid.half, 0, tuple(values.tolist()))
        loss = loss_of(m.Laplace(40.0).to_dict(), None).times(8)
        ours = np.array([float(a.upper()) for a in composed(loss, given)])
    assert np.all(np.abs(ours / theirs - 1.0) <= 1e-3)


CURVES = [
    (m.SubsampledGaussian(1.0, 0.1), "add-remove"),
    (m.SubsampledGaussian(1.5, 0.3), "replace-one"),
    (m.MixtureOfGaussians(1.0, (0.0, 0.5, 1.0), (0.5, 0.25, 0.25)), "add-remove"),
    (m.DiscreteGaussian(sigma=2.0, sensitivity=2), "add-remove"),
    (m.DiscreteLaplace(2.0, 3), "add-remove"),
    (m.TruncatedLaplace(1.0, 8.0), "add-remove"),
    (m.PoissonSampled(m.Laplace(1.0), 0.2), "add-remove"),
    (m.PoissonSampled(m.DiscreteLaplace(2.0, 2), 0.25), "add-remove"),
    (
        m.SampledWithoutReplacement(m.RandomizedResponse(eps=1.0, num_buckets=4), 10, 3),
        "replace-one",
    ),
    (m.FromAtoms((1.0, -0.5), (0.5, 0.25), 0.25), "add-remove"),
]


@pytest.mark.parametrize(("query", "relation"), CURVES, ids=[q.kind for q, _ in CURVES])
def test_curves_of_descriptions_agree_with_the_library(query: m.Mechanism, relation: str) -> None:
    """Derived twice, independently: inside the library's intervals in both directions."""
    from flint import arb

    from residua.verify.arithmetic.balls import bits
    from residua.verify.descriptions.mechanisms import loss_of
    from residua.verify.losses.hockey_stick import curve

    loss = loss_of(query.to_dict(), relation)
    above, below = (query.pld(relation=relation, side=side) for side in ("above", "below"))
    if len(loss.factors) > 1:
        lost, core = (factor for factor, _ in loss.factors)
    for t in (0.0, 0.3, 0.9, 1.7):
        for back in (False, True):
            sides = (p.reverse() if back else p for p in (above, below))
            high, low = (
                float(pld.delta_bounds(t).hi if i == 0 else pld.delta_bounds(t).lo)
                for i, pld in enumerate(sides)
            )
            with bits(128):
                if len(loss.factors) > 1:
                    missing = lost.missing()
                    inner = curve(core, arb(t), back)
                    assert inner is not None
                    found = missing + (1 - missing) * inner
                else:
                    given = curve(loss.factors[0][0], arb(t), back)
                    assert given is not None
                    found = given
                assert low * (1 - 1e-9) - 1e-15 <= float(found.mid()) <= high * (1 + 1e-9) + 1e-15


def test_moments_agree_with_quadrature() -> None:
    from flint import arb

    from residua.verify.arithmetic.balls import bits
    from residua.verify.losses.factors import Mixture, Noise
    from residua.verify.losses.pairs import Sampled

    rate, shift, s = Fraction(1, 5), Fraction(3, 4), mpmath.mpf("2.5")
    hidden = (Fraction(0), 1 - rate)
    mixture = Mixture((hidden, (shift, rate)), ((Fraction(0), Fraction(1)),))
    noise = Sampled(Noise(Fraction(1, 2), None), rate)
    q, a = mpmath.mpf(1) / 5, mpmath.mpf(3) / 4

    def ratio(y: mpmath.mpf) -> mpmath.mpf:
        return 1 - q + q * mpmath.exp(a * y - a * a / 2)

    def sampled(z: mpmath.mpf) -> mpmath.mpf:
        return 1 - q + q * mpmath.exp(z)

    e = mpmath.mpf(1) / 2
    height = (1 - (1 + mpmath.exp(-e)) / 2) / (4 * mpmath.sinh(e / 2))
    for back, power in ((False, 1 + s), (True, -s)):
        wanted = mpmath.quad(
            lambda y, p=power: ratio(y) ** p * mpmath.npdf(y), mpmath.linspace(-12, 16, 29)
        )
        flat = mpmath.quad(
            lambda z, p=power: height * mpmath.exp(-z / 2) * sampled(z) ** p, [-e, 0, e]
        )
        half = mpmath.mpf(1) / 2
        atoms = half * mpmath.exp(-e) * sampled(e) ** power + half * sampled(-e) ** power
        with bits(128):
            for factor, value in ((mixture, wanted), (noise, flat + atoms)):
                found = factor.moment(arb(2.5), back)
                assert found is not None
                assert abs(mpmath.mpf(float(found.mid())) - value) < 1e-12 * value


COMPOSED = [
    m.Composed((m.Gaussian(sigma=2.0), m.PureDp(0.3), m.SelfComposed(m.PureDp(0.05), 9))),
    m.Composed((m.SelfComposed(m.PureDp(0.3), 7), m.SelfComposed(m.PureDp(0.05), 9))),
    m.SelfComposed(m.ApproximateDp(0.1, 1e-4), 20),
    m.Composed((m.Laplace(2.0), m.SelfComposed(m.PureDp(0.05), 9))),
    m.Composed((m.FromTradeoff((0.0, 0.25, 1.0), (1.0, 0.5, 0.0)), m.PureDp(0.5))),
    m.Composed((m.FromTradeoff((0.0, 0.25, 1.0), (1.0, 0.5, 0.0)), m.SubsampledGaussian(1.0, 0.1))),
]


@pytest.mark.parametrize("query", COMPOSED)
def test_heights_of_compositions_agree_with_the_library(query: m.Mechanism) -> None:
    from flint import arb

    from residua.verify.arithmetic.balls import bits
    from residua.verify.descriptions.mechanisms import loss_of
    from residua.verify.losses.hockey_stick import larger_height

    pld = query.pld()
    for t in (0.0, 0.45, 0.5, 1.7):
        with bits(192):
            found = larger_height(loss_of(query.to_dict(), "add-remove"), arb(t))
        assert found is not None
        sides = [side.delta_bounds(t) for side in (pld, pld.reverse())]
        assert max(side.lo for side in sides) <= float(found.upper())
        assert float(found.lower()) <= max(side.hi for side in sides)
        assert float(found.rad()) < 1e-40


def test_order_of_bounded_compositions() -> None:
    from residua.verify.descriptions.mechanisms import loss_of
    from residua.verify.proofs.order import bounded_below

    def is_proven(one: m.Mechanism, two: m.Mechanism) -> bool:
        proven = bounded_below(*(loss_of(q.to_dict(), None) for q in (one, two)))
        assert not proven or one.pld() <= two.pld()
        return proven

    two, three = (m.SelfComposed(m.Laplace(4.0), n) for n in (2, 3))
    coins = m.SelfComposed(m.PureDp(0.3), 3)
    mixed = m.Composed((m.DiscreteLaplace(8.0, 2), m.Laplace(9.0)))
    assert is_proven(m.SelfComposed(m.PureDp(0.25), 3), coins)
    assert is_proven(m.Laplace(4.0), m.PureDp(0.3))
    assert is_proven(mixed, m.SelfComposed(m.PureDp(0.25), 2))
    assert is_proven(m.PureDp(0.13), m.SelfComposed(m.PureDp(0.05), 16))
    for one, other in ((three, two), (m.PureDp(0.3), m.Laplace(4.0)), (three, mixed),
                       (coins, m.SelfComposed(m.PureDp(0.3), 2)),
                       (m.PureDp(0.13), m.SelfComposed(m.PureDp(0.05), 4)),
                       (m.ApproximateDp(0.01, 1e-9), three)):  # fmt: skip
        assert not is_proven(one, other)
