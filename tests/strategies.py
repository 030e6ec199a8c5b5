"""Hypothesis strategies: a PLD of the library beside its exact law (a `Case`).

Finite pairs come as floats with exact meaning (each vector divided by its exact sum);
they include tiny and huge masses, equal and nearly equal likelihood ratios, and mass at
either infinity.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

from hypothesis import assume
from hypothesis import strategies as st
from mpmath import mp

import oracles
import residua as rz
from oracles import Finite, Law


@dataclass(frozen=True)
class Case:
    """A PLD and its law; `rounded` counts the factors whose masses the library rounded."""

    pld: rz.Pld
    law: Law
    rounded: int = 0

    def truth(self, x: object) -> object:
        """`h(x)`, as a number or a bracket."""
        if self.rounded:
            return oracles.ulps(self.law.hockey_stick, x, self.rounded)
        return self.law.hockey_stick(x)

    def delta(self, eps: float) -> object:
        return self.truth(mp.exp(oracles.real(eps)))

    def __add__(self, other: Case) -> Case:
        return Case(self.pld + other.pld, self.law + other.law, self.rounded + other.rounded)

    def times(self, n: int) -> Case:
        return Case(n * self.pld, self.law.times(n), n * self.rounded)

    def reverse(self) -> Case:
        return Case(self.pld.reverse(), self.law.reverse(), self.rounded)


def log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    """Floats spread evenly over orders of magnitude."""
    return st.floats(math.log(low), math.log(high)).map(math.exp)


def _weights(size: int) -> st.SearchStrategy[list[float]]:
    plain = st.integers(1, 1000).map(float)
    extreme = log_uniform(1e-250, 1.0)
    return st.lists(st.one_of(plain, plain, plain, extreme), min_size=size, max_size=size)


def _normalised(weights: list[float]) -> list[float]:
    total = math.fsum(weights)
    return [w / total for w in weights]


@st.composite
def pairs(
    draw: st.DrawFn,
    max_size: int = 8,
    plus: bool | None = None,
    minus: bool | None = None,
) -> tuple[list[float], list[float]]:
    """Two probability vectors; `plus`, `minus`: whether to have mass at that infinity."""
    size = draw(st.integers(2, max_size))
    p = draw(_weights(size))
    q = draw(_weights(size))
    for i in range(size):
        kind = draw(st.integers(0, 5))
        if kind == 0:
            q[i] = p[i]  # one likelihood ratio, several times
        elif kind == 1:
            q[i] = p[i] * (1 + draw(st.integers(-4, 4)) * 2.0**-52)
    if draw(st.booleans()) if plus is None else plus:
        p, q = [*p, draw(_weights(1))[0]], [*q, 0.0]
    if draw(st.booleans()) if minus is None else minus:
        p, q = [0.0, *p], [draw(_weights(1))[0], *q]
    p, q = _normalised(p), _normalised(q)
    assume(all(v == 0 or v > 1e-280 for v in (*p, *q)))
    return p, q


def from_pair(p: list[float], q: list[float]) -> Case:
    return Case(rz.from_pair(p, q), Law(Finite.of(p, q)))


def finite(
    max_size: int = 8, plus: bool | None = None, minus: bool | None = None
) -> st.SearchStrategy[Case]:
    """Finite PLDs built from two probability vectors, meant exactly."""
    return pairs(max_size, plus, minus).map(lambda pair: from_pair(*pair))


@st.composite
def dyadic(draw: st.DrawFn, max_size: int = 6, bits: int = 20) -> Case:
    """Finite PLDs whose masses are multiples of 2^-bits: floats without any rounding."""
    size = draw(st.integers(1, max_size))
    whole = 2**bits
    vectors = []
    for _ in range(2):
        cuts = draw(st.lists(st.integers(0, whole), min_size=size - 1, max_size=size - 1))
        edges = [0, *sorted(cuts), whole]
        steps = [b - a for a, b in itertools.pairwise(edges)]
        vectors.append([Fraction(s, whole) for s in draw(st.permutations(steps))])
    p, q = vectors
    return Case(rz.from_pair([float(v) for v in p], [float(v) for v in q]), Law(Finite.of(p, q)))


@st.composite
def atoms(draw: st.DrawFn) -> Case:
    """PLDs from losses and masses; losses are moved up until `E e^-Z <= 1`."""
    size = draw(st.integers(1, 6))
    losses = draw(st.lists(st.floats(-6, 6), min_size=size, max_size=size))
    at_infinity = draw(st.sampled_from([0.0, 0.0, 1e-12, 0.25]))
    masses = [w * (1 - at_infinity) for w in _normalised(draw(_weights(size)))]
    assume(min(masses) > 1e-270)
    whole = math.fsum(m * math.exp(-z) for m, z in zip(masses, losses, strict=True))
    rise = math.log(whole) + draw(st.sampled_from([0.0, 1e-6, 0.5]))
    if rise > 0 or draw(st.booleans()):
        losses = [z + rise for z in losses]
    pld = rz.from_atoms(losses, masses, mass_at_infinity=at_infinity)
    return Case(pld, Law(oracles.from_atoms(losses, masses, at_infinity)), rounded=1)


def _gaussian(mu: float) -> Case:
    return Case(rz.gaussian(mu=mu), Law(variance=oracles.exact(mu) ** 2))


def _laplace(eps: float) -> Case:
    scale = 1 / eps
    return Case(rz.laplace(scale=scale), Law(laplaces=((1 / oracles.exact(scale), 1),)))


def _response(eps: float, delta: float) -> Case:
    return Case(rz.approximate_dp(eps, delta), Law(oracles.approximate_dp(eps, delta)))


def gaussians(low: float = 1e-9, high: float = 50.0) -> st.SearchStrategy[Case]:
    return log_uniform(low, high).map(_gaussian)


def laplaces(low: float = 1e-6, high: float = 50.0) -> st.SearchStrategy[Case]:
    return log_uniform(low, high).map(_laplace)


def responses(low: float = 1e-6, high: float = 30.0) -> st.SearchStrategy[Case]:
    deltas = st.one_of(st.just(0.0), log_uniform(1e-30, 0.99))
    return st.builds(_response, st.one_of(st.just(0.0), log_uniform(low, high)), deltas)


def singles() -> st.SearchStrategy[Case]:
    """One mechanism of any kind."""
    return st.one_of(finite(), dyadic(), atoms(), gaussians(), laplaces(), responses())


@st.composite
def compositions(draw: st.DrawFn) -> Case:
    """Small sums of tame parts, whose oracle is quick."""
    total = draw(finite(max_size=3))
    if draw(st.booleans()):
        total = total + draw(responses(0.01, 3.0)).times(draw(st.integers(1, 3)))
    smooth = draw(st.sampled_from(["none", "gaussian", "laplace", "both"]))
    if smooth in ("gaussian", "both"):
        total = total + draw(gaussians(0.2, 5.0))
    if smooth in ("laplace", "both"):
        total = total + draw(laplaces(0.05, 2.0)).times(draw(st.integers(1, 3)))
    return total


losses = st.one_of(st.floats(-5, 5), st.floats(-80, 80), st.sampled_from([0.0, -1.0, 1.0])).map(
    lambda t: t if abs(t) > 1e-9 else 0.0
)
"""Where to read a curve, as `t = ln x`; the oracle has no digits for `t` next to 0."""

orders = st.one_of(
    st.floats(0.01, 60),
    st.sampled_from([0.5, 1.0, 2.0, 1 - 1e-5, 1 + 1e-5, 1 - 1e-12, 1 + 2.0**-52, 1e7, math.inf]),
)
"""Orders of Rényi divergence, next to 1 included."""
