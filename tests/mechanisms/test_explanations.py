"""What descriptions say of themselves: pairs, notes and losses, in words that can be read."""

from __future__ import annotations

from typing import Any

import pytest

import residua as rz
from mechanisms.examples import EXAMPLES, name
from residua import ArgumentError, ArgumentTypeError
from residua.mechanisms import (
    KINDS,
    Composed,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    Mechanism,
    PoissonSampled,
    PureDp,
    RandomizedResponse,
    ReportNoisyMax,
    SampledWithoutReplacement,
    SelfComposed,
    TruncatedLaplace,
    Zcdp,
    from_json,
)

every = pytest.mark.parametrize("mechanism", EXAMPLES, ids=name)


@every
def test_the_pair_of_every_part_is_shown(mechanism: Mechanism) -> None:
    first, *inside = mechanism.pairs()
    assert first == mechanism.pair
    text = str(mechanism.explain(delta=0.01))
    for part in mechanism.parts:
        assert f"{part.kind}: {part.pair}" in inside
    assert all(line in text for line in mechanism.pairs())


def test_pairs_of_nested_mechanisms_are_shown_once() -> None:
    noisy = Composed((Laplace(1.0), Laplace(2.0), PoissonSampled(Laplace(3.0), 0.1)))
    assert SelfComposed(noisy, 3).pairs() == (
        SelfComposed.pair,
        f"composed: {Composed.pair}",
        f"laplace: {Laplace.pair}",
        f"poisson_sampled: {PoissonSampled.pair}",
    )
    assert Laplace(1.0).pairs() == (Laplace.pair,)


def test_notes_of_parts_are_passed_on() -> None:
    inner = Zcdp(0.125)
    wanted = tuple(f"zcdp: {note}" for note in inner.notes())
    assert wanted
    assert SelfComposed(inner, 3).notes() == wanted
    assert Composed((Gaussian(sigma=1.0), inner, inner)).notes() == wanted
    assert Composed((Gaussian(sigma=1.0), Laplace(1.0))).notes() == ()


def test_poisson_sampling_says_what_it_does_under_replace_one() -> None:
    assert "replace-one" in PoissonSampled.pair


def test_a_relation_without_a_pair() -> None:
    with pytest.raises(ArgumentError) as refused:
        RandomizedResponse(eps=1.0).plds("add-remove")
    assert str(refused.value) == (
        "relation must be one that randomized_response has a pair for (replace-one, zero-out),"
        " got 'add-remove'"
    )


def test_a_missing_kind_is_named() -> None:
    for given in (
        '{"scale": 2.0}',
        '{"kind": "self_composed", "count": 2, "mechanism": {"scale": 2}}',
    ):
        with pytest.raises(ArgumentError, match=r"kind is missing: .*got only \['scale'\]"):
            from_json(given)
    with pytest.raises(ArgumentError, match=r"kind must be one of .*got None"):
        from_json('{"kind": null}')
    assert all(kind in str(refused_kind()) for kind in KINDS)


def refused_kind() -> ArgumentError:
    with pytest.raises(ArgumentError) as refused:
        from_json("{}")
    return refused.value


def test_long_texts_are_refused_in_a_short_line() -> None:
    """Reading is linear in the text, and messages do not repeat it."""
    many = "{" + ",".join(f'"a{i}":1' for i in range(50_000)) + "}"
    long = "x" * 100_000
    given: list[Any] = [
        many,
        many[:-1] + ',"a7":2}',
        {"kind": long},
        {"kind": "laplace", "scale": 1.0, long: 1},
        {"kind": "laplace", "scale": 1.0, "version": long},
        {"kind": "randomized_response", "eps": 1.0, "noise_parameter": long},
        {"kind": "composed", "mechanisms": long},
        {long: 1},
    ]
    for text in given:
        with pytest.raises((ArgumentError, ArgumentTypeError)) as refused:
            from_json(text)
        assert len(str(refused.value)) < 1000


def test_bounded_noise_shows_its_failure_probability() -> None:
    pld = TruncatedLaplace(1.0, 8.0).pld()
    delta = float(pld.mass_at_infinity)
    assert f"approximate_dp(0.0, {delta!r})" in repr(pld).split(" + ")
    assert eval(repr(pld), {name: getattr(rz, name) for name in rz.__all__}) == pld  # type: ignore[attr-defined]
    assert repr(3 * rz.approximate_dp(0.0, 0.25)) == "3 * approximate_dp(0.0, 0.25)"


BOUNDED: list[Mechanism] = [
    Laplace(1.0),
    DiscreteLaplace(2.0, 3),
    PureDp(0.5),
    RandomizedResponse(eps=1.0, num_buckets=5),
    ExponentialMechanism(0.5),
    ReportNoisyMax(4.0),
    PoissonSampled(Laplace(0.5), 0.3),
    PoissonSampled(ExponentialMechanism(1.0), 0.2),
    PoissonSampled(DiscreteLaplace(2.0, 2), 0.25),
    SampledWithoutReplacement(Laplace(1.0), 100, 5),
]


@pytest.mark.parametrize("mechanism", BOUNDED, ids=name)
def test_bounded_losses_stay_bounded(mechanism: Mechanism) -> None:
    """Discretising puts nothing at infinity where the loss has an end: Rényi divergences hold."""
    for relation in mechanism.supported:
        for direction, above in mechanism.plds(relation).items():
            assert above.mass_at_infinity == 0.0
            below = mechanism.pld(direction, relation, side="below")
            for order in (1.5, 8.0, 100.0):
                assert below.renyi_bounds(order).lo <= above.renyi_bounds(order).hi < 700.0
