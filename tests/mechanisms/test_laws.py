"""Laws of mechanisms, over every example: sides, directions, order in the parameters, extremes."""

from __future__ import annotations

import inspect
import itertools
import math
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from mechanisms.examples import EXAMPLES, name
from residua import Pld
from residua.mechanisms import (
    KINDS,
    REPLACE_ONE,
    ApproximateDp,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    FromAtoms,
    FromTradeoff,
    Gaussian,
    Gdp,
    Laplace,
    Mechanism,
    MixtureOfGaussians,
    PoissonSampled,
    PureDp,
    RandomizedResponse,
    Rdp,
    ReportNoisyMax,
    SampledWithoutReplacement,
    SelfComposed,
    SubsampledGaussian,
    TruncatedLaplace,
    Zcdp,
)
from residua.pld.arithmetic.exact import Side

EPS = np.array([-30.0, -8.0, -3.0, -1.5, -1.0, -0.6, -0.3, -0.1, -0.03, -1e-3, -1e-6, 0.0])
EPS = np.unique(np.concatenate([EPS, -EPS, np.linspace(-2.0, 2.0, 21)]))
NEAR = EPS[np.abs(EPS) <= 3.0]
"""For compositions of many: far from their losses a read is slow."""
DELTAS = np.array([1e-4, 1e-8])
THOROUGH = (
    os.environ.get("RESIDUA_THOROUGH") == "1" or os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
)

every = pytest.mark.parametrize("mechanism", EXAMPLES, ids=name)


@pytest.fixture(autouse=True)
def _strict() -> Iterable[None]:
    """Whatever numpy would warn of is an error."""
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        yield


def sides(mechanism: Mechanism) -> Iterable[tuple[str, str, Pld, Pld]]:
    """Relation, direction, above and below; once where relations or directions share them."""
    seen = set()
    for relation in mechanism.supported:
        below = mechanism.plds(relation, side="below")
        for direction, above in mechanism.plds(relation).items():
            if (above, below[direction]) not in seen:
                seen.add((above, below[direction]))
                yield relation, direction, above, below[direction]


def _where(mechanism: Mechanism) -> Any:
    return NEAR if isinstance(mechanism, SelfComposed) else EPS


def nowhere_above(small: Pld, large: Pld, slack: float = 0.0, where: Any = EPS) -> None:
    """No point of one curve is proven above the other (by more than `slack`)."""
    lows = np.asarray(small.delta_bounds(where).lo)
    highs = np.asarray(large.delta_bounds(where).hi)
    assert np.all(lows <= highs + slack), (where[lows > highs + slack], small, large)


def test_every_kind_is_in_the_catalogue() -> None:
    """A new kind adds examples; they are what every law here runs over."""
    shown = {type(mechanism) for mechanism in EXAMPLES}
    assert set(KINDS.values()) - shown == set()
    assert {cls.kind for cls in shown} == set(KINDS)
    declared = {cls for cls in _subclasses(Mechanism) if not inspect.isabstract(cls)}
    assert declared == set(KINDS.values())


def _subclasses(cls: type) -> set[type]:
    own = {one for one in cls.__subclasses__() if one.__module__.startswith("residua.")}
    return own.union(*(_subclasses(one) for one in own))


# -- sides and directions -------------------------------------------------------------------


@every
def test_directions(mechanism: Mechanism) -> None:
    for relation in mechanism.supported:
        wanted = ["replace"] if relation == REPLACE_ONE else ["remove", "add"]
        assert list(mechanism.plds(relation)) == wanted
        assert mechanism.pld(relation=relation) is mechanism.plds(relation)[wanted[0]]
        for direction in wanted:
            assert mechanism.pld(direction, relation) is mechanism.plds(relation)[direction]
    assert mechanism.plds() == mechanism.plds(mechanism.supported[0])


@every
def test_below_is_below(mechanism: Mechanism) -> None:
    for _, _, above, below in sides(mechanism):
        nowhere_above(below, above, where=_where(mechanism))


@every
def test_curves_are_curves(mechanism: Mechanism) -> None:
    """Between `(1 - x)_+` and 1, and decreasing."""
    where = _where(mechanism)
    for _, _, above, below in sides(mechanism):
        for pld in (above, below):
            curve = pld.delta_bounds(where)
            floor = np.maximum(-np.expm1(where), 0.0)
            assert np.all(np.asarray(curve.hi) >= floor * (1 - 1e-15))
            assert np.all(np.asarray(curve.lo) <= 1.0) and np.all(np.asarray(curve.lo) >= 0.0)
            assert np.all(np.asarray(curve.lo)[1:] <= np.asarray(curve.hi)[:-1])


CLOSE: dict[str, float] = {
    # Polygons with a width of their own; for zCDP also what lies between the orders used.
    "zcdp": 1e-2,
    "rdp": 2e-3,
}


@every
def test_the_width_is_what_was_asked_for(mechanism: Mechanism) -> None:
    """At the usual deltas above and below lie within the accuracy of each other in eps."""
    uses = mechanism.count if isinstance(mechanism, SelfComposed) else 1
    for relation, _, above, below in sides(mechanism):
        if relation == REPLACE_ONE and isinstance(mechanism, PoissonSampled):
            continue  # an upper bound, said not to be attained
        if isinstance(mechanism, ReportNoisyMax) and mechanism.noise != "gumbel":
            continue  # likewise
        high = np.asarray(above.epsilon_bounds(DELTAS).hi)
        low = np.asarray(below.epsilon_bounds(DELTAS).lo)
        with np.errstate(invalid="ignore"):
            gap = np.where(high == low, 0.0, high - low)
        allowed = CLOSE.get(mechanism.kind, 2e-6 * uses)
        assert np.all(gap <= allowed), (relation, gap, high, low)


@pytest.mark.parametrize("accuracy", [1e-2, 1e-4])
def test_accuracy_is_kept_and_used(accuracy: float) -> None:
    mechanism = PoissonSampled(Laplace(0.5), 0.2)
    for direction in ("remove", "add"):
        above = mechanism.pld(direction, accuracy=accuracy)
        below = mechanism.pld(direction, accuracy=accuracy, side="below")
        gap = above.epsilon_bounds(DELTAS).hi - np.asarray(below.epsilon_bounds(DELTAS).lo)
        assert np.all(gap <= 2 * accuracy)
        finer = mechanism.pld(direction)
        nowhere_above(finer, above, 1e-6)


SYMMETRIC = (
    Gaussian,
    Laplace,
    DiscreteGaussian,
    DiscreteLaplace,
    TruncatedLaplace,
    RandomizedResponse,
    ExponentialMechanism,
    ReportNoisyMax,
    PureDp,
    ApproximateDp,
    Gdp,
    Zcdp,
    Rdp,
)


def mirrored(one: Pld, other: Pld, slack: float, where: Any = EPS) -> None:
    """`h_rev(x) = 1 - x + x h(1/x)`, as intervals."""
    here, there = one.delta_bounds(where), other.delta_bounds(-where)
    x = np.exp(where)
    low = 1.0 - x + x * np.asarray(there.lo)
    high = 1.0 - x + x * np.asarray(there.hi)
    noise = slack * (1.0 + x)
    assert np.all(np.asarray(here.lo) <= high + noise)
    assert np.all(low <= np.asarray(here.hi) + noise)


@every
def test_symmetric_where_it_should_be(mechanism: Mechanism) -> None:
    """One exchanged record occurs in both orders; noise is symmetric in itself."""
    for relation, _, above, _ in sides(mechanism):
        if isinstance(mechanism, SYMMETRIC) or relation == REPLACE_ONE:
            slack = 1e-13 if isinstance(mechanism, SYMMETRIC) else 2e-6
            mirrored(above, above, slack, _where(mechanism))


@every
def test_add_is_remove_reversed(mechanism: Mechanism) -> None:
    for relation in mechanism.supported:
        if relation == REPLACE_ONE:
            continue
        plds = mechanism.plds(relation)
        mirrored(plds["remove"], plds["add"], 2e-6, _where(mechanism))


def test_sampling_is_not_symmetric() -> None:
    """Trap 2: the two directions differ, and each has its own curve."""
    for mechanism in (PoissonSampled(Laplace(1.0), 0.1), SubsampledGaussian(1.0, 0.1)):
        remove, add = mechanism.pld("remove"), mechanism.pld("add")
        assert remove.delta_bounds(0.1).lo > add.delta_bounds(0.1).hi


# -- order in the parameters ----------------------------------------------------------------


def _chains() -> dict[str, list[Mechanism]]:
    """Mechanisms that lose more and more."""
    atoms = FromAtoms((0.5, -0.25), (0.5, 0.375), 0.125)
    return {
        "gaussian sigma": [Gaussian(sigma=s) for s in (9.0, 3.0, 2.9, 1.0, 0.1)],
        "gaussian sensitivity": [
            Gaussian(sigma=1.0, sensitivity=s) for s in (0.0, 0.1, 1.0, 1.01, 5.0)
        ],
        "laplace scale": [Laplace(s) for s in (9.0, 3.0, 1.0, 0.2)],
        "laplace sensitivity": [Laplace(1.0, s) for s in (0.0, 1e-9, 0.5, 2.0)],
        "discrete gaussian sigma": [DiscreteGaussian(sigma=s) for s in (4.0, 2.0, 1.0, 0.5, 0.2)],
        "discrete laplace scale": [DiscreteLaplace(s, 2) for s in (4.0, 2.0, 1.99, 0.3)],
        "discrete laplace sensitivity": [DiscreteLaplace(2.0, k) for k in (0, 1, 2, 3, 8)],
        "truncated laplace bound": [TruncatedLaplace(1.0, a) for a in (9.0, 4.0, 1.0, 0.7, 0.5)],
        "truncated laplace sensitivity": [
            TruncatedLaplace(1.0, 1.0, s) for s in (0.0, 0.3, 0.9, 1.0, 1.1, 1.9, 2.0)
        ],
        "response eps": [RandomizedResponse(eps=e, num_buckets=3) for e in (0.0, 0.1, 1.0, 5.0)],
        "response noise": [RandomizedResponse(noise_parameter=n) for n in (1.0, 0.5, 0.1, 0.0)],
        "exponential eps": [ExponentialMechanism(e) for e in (0.0, 0.1, 1.0, 1.001, 9.0)],
        "exponential monotonic": [ExponentialMechanism(1.0, True), ExponentialMechanism(1.0)],
        "noisy max noise": [ReportNoisyMax(2.0, n) for n in ("gumbel", "exponential")],
        "noisy max scale": [ReportNoisyMax(s) for s in (5.0, 1.0, 0.5)],
        "subsampled sigma": [SubsampledGaussian(s, 0.2) for s in (5.0, 2.0, 1.0, 0.3, 0.04)],
        "subsampled rate": [SubsampledGaussian(1.0, q) for q in (0.0, 1e-6, 0.1, 0.9, 1.0)],
        "mixture sigma": [MixtureOfGaussians(s, (0, 1, 2), (0.5, 0.25, 0.25)) for s in (3, 1, 0.5)],
        "mixture shift": [
            MixtureOfGaussians(1.0, (0, 1, s), (0.5, 0.25, 0.25)) for s in (1, 1.5, 2)
        ],
        "sampled laplace": [PoissonSampled(Laplace(1.0), q) for q in (0.0, 1e-9, 0.1, 0.5, 1.0)],
        "sampled scale": [PoissonSampled(Laplace(s), 0.1) for s in (3.0, 1.0, 0.5)],
        "sampled discrete": [PoissonSampled(DiscreteLaplace(1.0, 2), q) for q in (0.1, 0.5, 1.0)],
        "sampled atoms": [PoissonSampled(atoms, q) for q in (0.0, 0.1, 0.7, 1.0)],
        "without replacement": [
            SampledWithoutReplacement(Laplace(1.0), 10, m) for m in (0, 1, 2, 9, 10)
        ],
        "pure eps": [PureDp(e) for e in (0.0, 1e-9, 1.0, 2.0)],
        "approximate delta": [ApproximateDp(1.0, d) for d in (0.0, 1e-9, 0.1, 1.0)],
        "gdp": [Gdp(m) for m in (0.0, 0.5, 3.0)],
        "zcdp": [Zcdp(0.0), Gaussian(sigma=2.0), Zcdp(0.125), Zcdp(0.125, 0.2)],
        "zcdp delta": [Zcdp(0.125, delta=d) for d in (0.0, 1e-9, 0.1, 1.0)],
        "rdp bounds": [Rdp((2.0, 9.0), (e, 4 * e)) for e in (0.01, 0.1)],
        "rdp orders": [Rdp((2.0, 9.0), (0.1, 0.4)), Rdp((9.0,), (0.4,))],
        "self composed": [SelfComposed(Laplace(3.0), n) for n in (0, 1, 2, 9)],
        "composed": [Composed((Laplace(2.0),)), Composed((Laplace(2.0), Gaussian(sigma=3.0)))],
        "pure holds response": [
            RandomizedResponse(eps=1.0, num_buckets=4),
            RandomizedResponse(eps=1.0, num_buckets=2),
        ],
        "pure holds laplace": [Laplace(1.0), PureDp(1.0)],
        "pure holds exponential": [ExponentialMechanism(1.0), Laplace(1.0)],
    }


CHAINS = _chains()


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_more_noise_never_loses_more(chain: str) -> None:
    for less, more in itertools.pairwise(CHAINS[chain]):
        for relation, direction, pld, _ in sides(less):
            nowhere_above(pld, more.pld(direction, relation), 2e-6)


@pytest.mark.parametrize(
    "mechanism",
    [
        PoissonSampled(Laplace(1.0), 0.3),
        PoissonSampled(DiscreteGaussian(sigma=1.0), 0.3),
        PoissonSampled(Gaussian(sigma=0.5), 0.05),
        SubsampledGaussian(1.0, 0.3),
        ExponentialMechanism(1.0, True),
    ],
    ids=name,
)
def test_replacing_costs_at_least_removing(mechanism: Mechanism) -> None:
    """The other record may be one that contributes nothing."""
    replaced = mechanism.pld(relation=REPLACE_ONE)
    for direction, pld in mechanism.plds("add-remove").items():
        nowhere_above(pld, replaced, 2e-6)
        assert direction in ("remove", "add")


INNER: list[Mechanism] = [
    Laplace(1.5),
    Gaussian(sigma=2.0),
    DiscreteLaplace(1.0, 2),
    DiscreteGaussian(sigma=1.0),
    TruncatedLaplace(1.0, 4.0),
    ExponentialMechanism(1.0),
    FromAtoms((0.5, -0.25), (0.5, 0.375), 0.125),
    PureDp(1.0),
    ApproximateDp(0.5, 0.1),
]


@pytest.mark.parametrize("inner", INNER, ids=name)
def test_sampling_all_or_nothing(inner: Mechanism) -> None:
    side: Side
    for side in ("above", "below"):
        for relation in ("add-remove", "zero-out"):
            all_of_it = PoissonSampled(inner, 1.0).plds(relation, side=side)
            assert all_of_it == inner.plds(relation, side=side)
            none = PoissonSampled(inner, 0.0).plds(relation, side=side)
            assert all(pld.is_identity for pld in none.values())
        whole = SampledWithoutReplacement(inner, 3, 3).pld(side=side)
        assert whole == inner.pld(relation=REPLACE_ONE, side=side)
        nothing = SampledWithoutReplacement(inner, 3, 0).pld(side=side)
        assert nothing.is_identity
    assert PoissonSampled(inner, 0.0).pld(relation=REPLACE_ONE).is_identity


def test_two_ways_to_sample_a_gaussian() -> None:
    one, other = (
        SubsampledGaussian(1.3, 0.2, 0.7),
        PoissonSampled(Gaussian(sigma=1.3, sensitivity=0.7), 0.2),
    )
    for relation in one.supported:
        assert one.plds(relation) == other.plds(relation)
    two_point = MixtureOfGaussians(1.3, (0.0, 0.7), (0.75, 0.25))
    assert two_point.plds() == SubsampledGaussian(1.3, 0.25, 0.7).plds()


NOTHING: list[Mechanism] = [
    Gaussian(sigma=1.0, sensitivity=0.0),
    Laplace(1.0, 0.0),
    DiscreteGaussian(sigma=1.0, sensitivity=0),
    DiscreteLaplace(1.0, 0),
    TruncatedLaplace(1.0, 1.0, 0.0),
    SubsampledGaussian(1.0, 0.5, 0.0),
    SubsampledGaussian(1.0, 0.0),
    MixtureOfGaussians(1.0, (0.0, 0.0), (0.5, 0.5)),
    ReportNoisyMax(1.0, "laplace", 0.0),
    ReportNoisyMax(1.0, "gumbel", 0.0),
    ExponentialMechanism(0.0),
    RandomizedResponse(eps=0.0, num_buckets=5),
    RandomizedResponse(num_buckets=3, noise_parameter=1.0),
    PureDp(0.0),
    ApproximateDp(0.0, 0.0),
    Gdp(0.0),
    Zcdp(0.0),
    Rdp((2.0, 3.0), (0.0, 1.0)),
    FromAtoms((0.0,), (1.0,)),
    FromTradeoff((0.0, 1.0), (1.0, 0.0)),
    SelfComposed(Laplace(1.0), 0),
    Composed((Gaussian(sigma=1.0, sensitivity=0.0), PureDp(0.0))),
    PoissonSampled(Laplace(1.0, 0.0), 0.5),
    SampledWithoutReplacement(Laplace(1.0, 0.0), 4, 2),
]


@pytest.mark.parametrize("mechanism", NOTHING, ids=name)
def test_nothing_is_lost(mechanism: Mechanism) -> None:
    """Sensitivity 0, eps 0 and the like are the identity itself, not an approximation of it."""
    for _, _, above, below in sides(mechanism):
        assert above.is_identity and below.is_identity


# -- composition ----------------------------------------------------------------------------


def test_composition_adds_plds() -> None:
    parts = (Laplace(2.0), SubsampledGaussian(1.0, 0.1), PureDp(0.5))
    for relation in Composed(parts).supported:
        for direction, pld in Composed(parts).plds(relation).items():
            assert pld == sum(m.pld(direction, relation) for m in parts)
    for relation in parts[1].supported:
        for direction, pld in SelfComposed(parts[1], 7).plds(relation).items():
            assert pld == 7 * parts[1].pld(direction, relation)


def test_a_composition_keeps_its_direction() -> None:
    """Trap 2: one direction throughout, never the worse of the two at every step."""
    run = SelfComposed(SubsampledGaussian(1.0, 0.2), 20)
    remove, add = run.pld("remove"), run.pld("add")
    mirrored(remove, add, 1e-9)
    assert remove != add


# -- caching --------------------------------------------------------------------------------


@every
def test_equal_descriptions_share_their_plds(mechanism: Mechanism) -> None:
    twin = Mechanism.from_json(mechanism.to_json())
    side: Side
    for relation in mechanism.supported:
        for side in ("above", "below"):
            mine = mechanism.plds(relation, side=side)
            again = twin.plds(relation, side=side)
            assert all(mine[d] is again[d] for d in mine)
            mine.clear()  # a copy: the cache is out of reach
            assert mechanism.plds(relation, side=side) == again


# -- explanations ---------------------------------------------------------------------------


@every
def test_explanations(mechanism: Mechanism) -> None:
    for relation in mechanism.supported[:1] if not THOROUGH else mechanism.supported:
        explained = mechanism.explain(relation, delta=1e-6)
        assert explained.mechanism == mechanism and explained.relation == relation
        text = str(explained)
        assert mechanism.pair in text and mechanism.reference in text and relation in text
        for one in explained.directions:
            assert one.epsilon.lo <= one.epsilon.hi
            assert one.pld is mechanism.pld(one.name, relation)
            assert one.epsilon.hi == math.inf or one.pld.delta(one.epsilon.hi) <= 1e-6
    assert mechanism.explain().relation == mechanism.supported[0]
