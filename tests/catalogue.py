"""Every kind of PLD by name, each with its exact law. The laws run over all of it.

A new representation adds one line.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations, product

import mixture_oracles
import oracles
import residua as rz
from mixture_oracles import Blend
from oracles import Finite, Law
from strategies import Case, from_pair

EIGHTH = 0.125


def _finite(p: list[float], q: list[float]) -> Callable[[], Case]:
    return lambda: from_pair(p, q)


def _gaussian(mu: float) -> Case:
    return Case(rz.gaussian(mu=mu), Law(variance=oracles.exact(mu) ** 2))


def _laplace(scale: float) -> Case:
    return Case(rz.laplace(scale=scale), Law(laplaces=((1 / oracles.exact(scale), 1),)))


def _response(eps: float, delta: float = 0.0) -> Case:
    return Case(rz.approximate_dp(eps, delta), Law(oracles.approximate_dp(eps, delta)))


def _pure(eps: float) -> Case:
    return Case(rz.pure_dp(eps), Law(oracles.approximate_dp(eps)))


def _from_tradeoff() -> Case:
    alphas, betas = [0.0, 0.125, 0.5, 0.875], [0.75, 0.5, 0.125, 0.0]
    return Case(rz.from_tradeoff(alphas, betas), Law(Finite.from_tradeoff(alphas, betas)))


def _from_hockey_stick() -> Case:
    xs, values = [0.5, 1.0, 2.0, 4.0], [0.5625, 0.25, 0.125, 0.0625]
    law = Law(Finite.from_hockey_stick(xs, values))
    return Case(rz.from_hockey_stick(xs, values), law, rounded=20)


def _from_atoms() -> Case:
    losses, masses = [1.5, -0.25, 0.5], [0.25, 0.25, 0.375]
    pld = rz.from_atoms(losses, masses, mass_at_infinity=EIGHTH)
    return Case(pld, Law(oracles.from_atoms(losses, masses, EIGHTH)), rounded=1)


def _subsampled(sigma: float, rate: float, direction: str) -> Case:
    law = mixture_oracles.subsampled(sigma, rate, direction)
    return Case(rz.subsampled_gaussian(sigma, rate, direction), Blend(((law, 1),)))


def _mixture_of_gaussians() -> Case:
    shifts, weights = [0.0, 0.5, 1.0], [0.5, 0.25, 0.25]
    law = mixture_oracles.mixture(2.0, shifts, weights, "remove")
    return Case(rz.mixture_of_gaussians(2.0, shifts, weights), Blend(((law, 1),)))


def _bounded_range(eps: float, atomic: float = 0.0) -> Case:
    law = Blend(ranges=((oracles.exact(eps), oracles.exact(atomic), 1),))
    return Case(rz.bounded_range(eps, atomic=atomic), law)


SYMMETRIC = _finite([0.5, 0.375, 0.125], [0.125, 0.375, 0.5])
PLUS = _finite([0.25, 0.5, EIGHTH, EIGHTH], [0.5, 0.25, 0.25, 0.0])
MINUS = _finite([0.25, 0.5, 0.25, 0.0], [0.375, 0.25, 0.25, EIGHTH])
BOTH = _finite([0.25, 0.5, 0.25 - 2**-10, 2**-10, 0.0], [0.5, 0.25, EIGHTH, 0.0, EIGHTH])

CASES: dict[str, Callable[[], Case]] = {
    "identity": lambda: Case(rz.identity(), Law()),
    "infinite": lambda: Case(rz.approximate_dp(1.0, 1.0), Law(oracles.INFINITE)),
    "gaussian small": lambda: _gaussian(0.01),
    "gaussian": lambda: _gaussian(1.0),
    "gaussian large": lambda: _gaussian(8.0),
    "laplace": lambda: _laplace(2.0),
    "laplace large": lambda: _laplace(0.25),
    "pure_dp": lambda: _pure(0.5),
    "approximate_dp": lambda: _response(0.5, 0.01),
    "only delta": lambda: _response(0.0, 0.01),
    "finite symmetric": SYMMETRIC,
    "finite +inf": PLUS,
    "finite -inf": MINUS,
    "finite both": BOTH,
    "finite from losses": _from_atoms,
    "from_tradeoff": _from_tradeoff,
    "from_hockey_stick": _from_hockey_stick,
    "gaussian + finite": lambda: _gaussian(1.0) + BOTH(),
    "gaussian + laplace": lambda: _gaussian(0.5) + _laplace(2.0),
    "laplace + finite": lambda: _laplace(2.0) + PLUS(),
    "5 laplace": lambda: _laplace(4.0).times(5),
    "20 responses": lambda: _pure(0.1).times(20),
    "finite composed": lambda: MINUS() + BOTH().times(2),
    "mixed": lambda: _gaussian(0.75) + _laplace(2.0).times(2) + _response(0.5, 1e-6) + MINUS(),
    "subsampled remove": lambda: _subsampled(1.0, 0.125, "remove"),
    "subsampled add": lambda: _subsampled(1.0, 0.25, "add"),
    "mixture of gaussians": _mixture_of_gaussians,
    "bounded range": lambda: _bounded_range(0.5),
    "bounded range with atoms": lambda: _bounded_range(0.5, 0.25),
    "subsampled + gaussian": lambda: _subsampled(1.0, 0.125, "remove") + _gaussian(0.5),
    "subsampled replace": lambda: _subsampled(2.0, 0.25, "replace"),
    "20 subsampled": lambda: _subsampled(2.0, 0.25, "remove").times(20),
}
NAMES = list(CASES)


@cache
def case(name: str) -> Case:
    """The PLD and its law."""
    return CASES[name]()


FINITE = [
    "identity",
    "infinite",
    "only delta",
    "finite symmetric",
    "finite +inf",
    "finite -inf",
    "finite both",
    "finite from losses",
    "from_tradeoff",
    "from_hockey_stick",
    "finite composed",
]
"""The PLDs whose atoms are exact rationals."""

EXACT = [name for name in FINITE if name not in ("finite from losses", "from_hockey_stick")]
"""Those of them whose law the oracle knows without rounding."""

ATOMIC = [*FINITE, "pure_dp", "approximate_dp", "20 responses"]
"""The PLDs with finitely many atoms, irrational masses included."""

PAIRS = list(combinations(NAMES, 2))
UNPROVEN = {
    "mixture of gaussians",
    "subsampled replace",
    "subsampled + gaussian",
    "20 subsampled",
}
"""Entries whose supremum with some others `<=` leaves open: no pairs of them in laws of the
lattice."""
LATTICE_PAIRS = [(a, b) for a, b in PAIRS if not {a, b} & UNPROVEN]
FINITE_PAIRS = list(product(FINITE, FINITE))
TRIPLES = [
    ("gaussian", "laplace", "finite both"),
    ("pure_dp", "approximate_dp", "gaussian small"),
    ("finite +inf", "finite -inf", "finite symmetric"),
    ("identity", "mixed", "laplace"),
    ("infinite", "gaussian + finite", "pure_dp"),
    ("from_tradeoff", "from_hockey_stick", "only delta"),
    ("gaussian + laplace", "20 responses", "finite +inf"),
    ("5 laplace", "finite -inf", "gaussian large"),
]

READ_AT = (-7.0, -1.0, -0.5, -0.1, 0.0, 0.2, 0.5, 1.0, 2.5, 9.0)
"""Where the laws read a curve, as `ln x`."""

XS = (1e-4, 0.25, 0.6, 0.9, 1.0, 1.2, 1.75, 3.0, 12.0, 9000.0)
"""Where they read it as `x`."""


@cache
def truth(name: str, x: float) -> object:
    """`h(x)` of a catalogue entry, exactly (or bracketed)."""
    return case(name).truth(x)


@cache
def truth_at(name: str, t: float) -> object:
    """`h(e^t)` of a catalogue entry."""
    return case(name).delta(t)


def low(value: object) -> object:
    """The least a truth can be."""
    return value.lo if isinstance(value, oracles.Bracket) else value


def high(value: object) -> object:
    """The most a truth can be."""
    return value.hi if isinstance(value, oracles.Bracket) else value


def overlap(a: rz.Interval, b: rz.Interval) -> bool:
    """Whether two intervals can hold one value."""
    return bool((a.lo <= b.hi) and (b.lo <= a.hi))


@cache
def compared(a: str, b: str) -> rz.Comparison:
    """`compare` of two entries, asked once."""
    return rz.compare(case(a).pld, case(b).pld)


def below(a: str, b: str) -> bool:
    """Whether one entry is proven to lie below another."""
    return compared(a, b).verdict in (rz.Order.LESS, rz.Order.EQUAL)


@cache
def join(a: str, b: str) -> rz.Pld:
    """`A | B` of two entries."""
    return case(a).pld | case(b).pld


@cache
def meet(a: str, b: str) -> rz.Pld:
    """`A & B` of two entries."""
    return case(a).pld & case(b).pld
