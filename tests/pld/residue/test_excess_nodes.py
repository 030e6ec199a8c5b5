"""One quadrature for all `l` (`excess_nodes.py`) against each tent in ball arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

import residua as rz
from residua.pld.residue.contact_equation import compressed
from residua.pld.residue.excess import FiniteExcess
from residua.pld.residue.excess_nodes import order
from residua.pld.residue.gdp_residue import listed_atoms

flint = pytest.importorskip("flint")


def exact(excess: FiniteExcess, m2: float, l: float) -> object:
    """`ln A(l)`: every tent by differences of error functions."""
    arb = flint.arb
    m2_, m = arb(m2), arb(m2).sqrt()
    total = arb(0)
    for w, z in zip(excess.weights.tolist(), excess.losses.tolist(), strict=True):
        pull, size = (arb(l), arb(z)) if z > 0.0 else (-arb(l), -arb(z))
        for sign in (1, -1):
            # ∫ e^{sign (|z| - y)/2 + pull y - y²/2m²} dy over (0, |z|)
            a = pull - arb(sign) / 2
            ends = ((size - a * m2_) / m, -a * m)
            parts = [(end / arb(2).sqrt()).erf() for end in ends]
            scale = (arb(sign) * size / 2 + a * a * m2_ / 2).exp() * m * (arb.pi() / 2).sqrt()
            total += arb(w) * sign * scale * (parts[0] - parts[1])
    return total.log()


def lists(count: int) -> list[tuple[FiniteExcess, float, list[float]]]:
    rng = np.random.default_rng(12)
    made = []
    for _ in range(count):
        size = int(rng.integers(1, 12))
        w = np.exp(-rng.uniform(0.0, 10.0 ** rng.uniform(0.0, 2.0), size))
        z = np.sort(rng.normal(size=size) * 10.0 ** rng.uniform(-4.0, 1.0))
        m2 = 10.0 ** rng.uniform(-2.0, 2.0)
        l = rng.normal(size=3) * 10.0 ** rng.uniform(-1.0, 1.5) / max(1.0, math.sqrt(m2))
        made.append((FiniteExcess(w / w.sum(), z, 0.0, 0.0), m2, [0.0, *l.tolist()]))
    return made


def test_within_the_error_that_is_charged(thorough: bool) -> None:
    before, flint.ctx.prec = flint.ctx.prec, 6000
    at_nodes = 0
    try:
        for excess, m2, l in lists(300 if thorough else 40):
            at_nodes += excess._nodes(m2, np.array(l)) is not None
            whole, single = (f(m2, np.array(l)) for f in (excess.transform, excess._tent_by_tent))
            for place, at in enumerate(l):
                truth = exact(excess, m2, at)
                for made in (whole, single):
                    error = abs(flint.arb(float(made.log[place])) - truth)
                    assert error <= float(made.error[place])
                    assert error <= 1e-12 * (1.0 + abs(float(truth)))
                assert whole.mean[place] == pytest.approx(
                    single.mean[place], rel=1e-8, abs=1e-9 * float(np.abs(excess.losses).max())
                )
    finally:
        flint.ctx.prec = before
    assert at_nodes >= 30


def test_a_narrow_gaussian() -> None:
    """Where `m` is small beside the losses: inside them, at their ends, and just beyond."""
    rng = np.random.default_rng(15)
    before, flint.ctx.prec = flint.ctx.prec, 16_000
    narrow = 0
    try:
        for _ in range(2):
            z = np.sort(rng.normal(size=3))
            w = np.exp(-rng.uniform(0.0, 8.0, 3))
            excess = FiniteExcess(w / w.sum(), z, 0.0, 0.0)
            reach = float(np.abs(z).max())
            m2 = (reach / rng.uniform(100.0, 120.0)) ** 2
            l = np.array([0.0, 0.3, -0.9, 1.0, 1.01, -1.2]) * reach / m2
            narrow += excess._nodes(m2, l) is None
            made = excess.transform(m2, l)
            for place, at in enumerate(l.tolist()):
                if (at * reach < 0.0 and z[0] > 0.0) or (at > 0.0 and z[-1] < 0.0):
                    continue
                error = abs(flint.arb(float(made.log[place])) - exact(excess, m2, at))
                assert error <= float(made.error[place])
    finally:
        flint.ctx.prec = before
    assert narrow == 2


def test_losses_that_are_off_are_charged() -> None:
    """Moving every loss by its error moves the transform by no more than the error says."""
    rng = np.random.default_rng(13)
    for excess, m2, l in lists(20):
        d = 1e-6 * float(np.abs(excess.losses).max())
        doubtful = FiniteExcess(excess.weights, excess.losses, 0.0, d)
        off = np.sort(excess.losses + d * rng.choice([-1.0, 1.0], excess.losses.size))
        moved = FiniteExcess(excess.weights, off, 0.0, 0.0).transform(m2, np.array(l))
        made = doubtful.transform(m2, np.array(l))
        assert np.all(np.abs(made.log - moved.log) <= made.error + moved.error)


def test_weights_of_either_sign() -> None:
    """A list that stands for a longer one, at its nodes and tent by tent, against the longer."""
    rng = np.random.default_rng(14)
    z = np.sort(rng.normal(size=3000))
    long = FiniteExcess(np.full(z.size, 1.0 / z.size), z, 0.0, 0.0)
    short = compressed(long, 2.0)
    assert short.losses.size < 300 and float(short.weights.min()) < 0.0
    l = np.linspace(-3.0, 3.0, 5)
    made, single, truth = (
        short.transform(4.0, l),
        short._tent_by_tent(4.0, l),
        long.transform(4.0, l),
    )
    assert np.all(np.abs(made.log - truth.log) <= made.error)
    assert made.log == pytest.approx(single.log, abs=1e-13)


def test_shorter_panels_take_fewer_nodes() -> None:
    orders = [order(halvings) for halvings in range(20)]
    assert orders == sorted(orders, reverse=True)
    assert orders[0] <= 12 and orders[-1] == 4
    assert math.isfinite(orders[0])


@pytest.mark.parametrize(
    ("m2", "l"), [(4.7e-5, 9834.9), (4.7e-5, 2000.0), (4.7e-5, 0.0), (1e-3, 500.0)]
)
def test_weights_of_a_short_list_that_cancel_are_charged(m2: float, l: float) -> None:
    """The atom at 0 of two Laplaces: all but nothing, made of weights of both signs around it."""
    written = listed_atoms(2 * rz.laplace(scale=2.0591358204112873))
    assert written is not None
    long = written.excess
    short = compressed(long, 0.689)
    assert float(short.weights.min()) < 0.0 < float(short.weights.max())
    made, truth = (one.transform(m2, np.array([l])) for one in (short, long))
    assert abs(made.log[0] - truth.log[0]) <= made.error[0] + truth.error[0]
