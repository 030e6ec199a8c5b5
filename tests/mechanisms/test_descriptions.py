"""Descriptions: frozen values, canonical JSON both ways, errors that name field and value."""

# mypy: disable-error-code="misc"
from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.examples import EXAMPLES, GOLDEN, name
from residua import ArgumentError, ArgumentTypeError, ResiduaError
from residua.mechanisms import (
    KINDS,
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
    from_json,
)
from residua.mechanisms.black_boxes import BlackBox

every = pytest.mark.parametrize("mechanism", EXAMPLES, ids=name)

# -- values ---------------------------------------------------------------------------------


def test_every_kind_has_an_example() -> None:
    assert {m.kind for m in EXAMPLES} == set(KINDS)
    assert all(cls.kind == kind for kind, cls in KINDS.items())


@every
def test_frozen(mechanism: Mechanism) -> None:
    for field in dataclasses.fields(mechanism):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(mechanism, field.name, 1.0)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(mechanism, field.name)


@every
def test_equal_by_value(mechanism: Mechanism) -> None:
    twin = from_json(mechanism.to_json())
    assert twin is not mechanism and twin == mechanism and hash(twin) == hash(mechanism)
    assert len({mechanism, twin}) == 1
    others = [m for m in EXAMPLES if m is not mechanism]
    assert all(mechanism != other for other in others)
    for again in (copy.deepcopy(mechanism), pickle.loads(pickle.dumps(mechanism))):
        assert again == mechanism


def test_kinds_with_the_same_numbers_differ() -> None:
    assert Gaussian(sigma=2.0) != Laplace(2.0)  # type: ignore[comparison-overlap]
    assert Gdp(1.0) != PureDp(1.0)  # type: ignore[comparison-overlap]


@every
def test_repr_reads_back(mechanism: Mechanism) -> None:
    names = {cls.__name__: cls for cls in KINDS.values()}
    assert eval(repr(mechanism), names) == mechanism


@every
def test_says_what_it_is(mechanism: Mechanism) -> None:
    cls = type(mechanism)
    assert cls.version == 1
    assert cls.pair and cls.reference and "\n" not in cls.pair + cls.reference
    assert cls.__doc__
    assert mechanism.supported


# -- JSON -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("mechanism", "text"), GOLDEN, ids=[name(m) for m, _ in GOLDEN])
def test_golden(mechanism: Mechanism, text: str) -> None:
    """What ledgers hold is written and read the same forever."""
    assert mechanism.to_json() == text
    assert from_json(text) == mechanism


@every
def test_json_is_canonical(mechanism: Mechanism) -> None:
    text = mechanism.to_json()
    parsed = json.loads(text)
    assert text == json.dumps(parsed, sort_keys=True, separators=(",", ":"))
    assert text == from_json(text).to_json()
    assert mechanism.to_dict() == parsed
    shuffled = json.dumps(dict(reversed(parsed.items())), indent=2)
    assert from_json(shuffled).to_json() == text


@every
def test_json_from_anything_like_it(mechanism: Mechanism) -> None:
    text = mechanism.to_json()
    kinds: list[Any] = [text, text.encode(), bytearray(text.encode()), json.loads(text)]
    for given_ in kinds:
        assert from_json(given_) == mechanism
        assert Mechanism.from_json(given_) == mechanism
        assert type(mechanism).from_json(given_) == mechanism
    assert from_json(mechanism.to_dict()) == mechanism


@every
def test_a_stated_version(mechanism: Mechanism) -> None:
    assert from_json({**mechanism.to_dict(), "version": 1}) == mechanism


def test_reading_does_not_change_what_is_given() -> None:
    given_ = {"kind": "gaussian", "sigma": 1.0, "steps": 3, "version": 1}
    before = dict(given_)
    from_json(given_)
    assert given_ == before


def test_equal_values_have_equal_json() -> None:
    """Also where Python has two zeros."""
    pairs: list[tuple[Mechanism, Mechanism]] = [
        (FromAtoms((-0.0,), (1.0,)), FromAtoms((0.0,), (1.0,))),
        (Laplace(1.0, -0.0), Laplace(1.0, 0.0)),
        (Gdp(-0.0), Gdp(0.0)),
        (FromTradeoff((-0.0, 1.0), (1.0, -0.0)), FromTradeoff((0.0, 1.0), (1.0, 0.0))),
        (
            MixtureOfGaussians(1.0, (-0.0, 1.0), (0.5, 0.5)),
            MixtureOfGaussians(1.0, (0.0, 1.0), (0.5, 0.5)),
        ),
        (Gaussian(sigma=1), Gaussian(sigma=1.0)),
        (Gaussian(sigma=np.float64(1.0)), Gaussian(sigma=1.0)),
        (DiscreteLaplace(2, np.int64(3)), DiscreteLaplace(2.0, 3)),
        (Rdp([2, 4], np.array([0.5, 1.0])), Rdp((2.0, 4.0), (0.5, 1.0))),
    ]
    for one, other in pairs:
        assert one == other and hash(one) == hash(other)
        assert one.to_json() == other.to_json()


def test_steps_are_short_for_self_composed() -> None:
    short = '{"kind":"laplace","scale":2,"steps":10}'
    assert from_json(short) == SelfComposed(Laplace(2.0), 10)
    assert from_json(short).to_json() == (
        '{"count":10,"kind":"self_composed",'
        '"mechanism":{"kind":"laplace","scale":2.0,"sensitivity":1.0}}'
    )
    inside = '{"kind":"composed","mechanisms":[{"kind":"gdp","mu":1,"steps":2}]}'
    assert from_json(inside) == Composed((SelfComposed(Gdp(1.0), 2),))


DEFAULTS: list[tuple[str, Mechanism]] = [
    ('{"kind":"gaussian","sigma":1}', Gaussian(sigma=1.0, sensitivity=1.0)),
    ('{"kind":"laplace","scale":1}', Laplace(1.0, 1.0)),
    ('{"kind":"discrete_gaussian","sigma":1}', DiscreteGaussian(sigma=1.0, sensitivity=1)),
    ('{"kind":"discrete_laplace","scale":1}', DiscreteLaplace(1.0, 1)),
    ('{"kind":"truncated_laplace","scale":1,"bound":2}', TruncatedLaplace(1.0, 2.0, 1.0)),
    ('{"kind":"randomized_response","eps":1}', RandomizedResponse(eps=1.0, num_buckets=2)),
    ('{"kind":"exponential_mechanism","eps":1}', ExponentialMechanism(1.0, False)),
    ('{"kind":"report_noisy_max","scale":1}', ReportNoisyMax(1.0, "laplace", 1.0, False)),
    ('{"kind":"subsampled_gaussian","sigma":1,"sampling_rate":1}', SubsampledGaussian(1.0, 1.0)),
    ('{"kind":"pure_dp","eps":1}', PureDp(1.0, None)),
    ('{"kind":"approximate_dp","eps":1,"delta":0}', ApproximateDp(1.0, 0.0, None)),
    ('{"kind":"gdp","mu":1}', Gdp(1.0, None)),
    ('{"kind":"zcdp","rho":1}', Zcdp(1.0, 0.0, 0.0, None)),
    ('{"kind":"rdp","orders":[2],"epsilons":[1]}', Rdp((2.0,), (1.0,), None)),
    ('{"kind":"from_atoms","losses":[0],"masses":[1]}', FromAtoms((0.0,), (1.0,), 0.0)),
    ('{"kind":"pure_dp","eps":1,"relation":null}', PureDp(1.0, None)),
]


@pytest.mark.parametrize(("text", "mechanism"), DEFAULTS)
def test_defaults_and_whole_numbers(text: str, mechanism: Mechanism) -> None:
    """Missing fields are filled, and 1 means 1.0 where a float is meant."""
    assert from_json(text) == mechanism
    assert from_json(text).to_json() == mechanism.to_json()


def test_kinds_without_defaults_are_in_the_table_of_defaults_or_have_none() -> None:
    listed = {m.kind for _, m in DEFAULTS}
    for kind, cls in KINDS.items():
        optional = [f for f in dataclasses.fields(cls) if f.default is not dataclasses.MISSING]
        assert kind in listed or {f.name for f in optional} <= {"relation", "unit"}, kind


# -- bad JSON -------------------------------------------------------------------------------


def refused(call: Callable[[], object], *words: str) -> None:
    """An error of the package, whose message has all these words."""
    with pytest.raises((ArgumentError, ArgumentTypeError)) as caught:
        call()
    message = str(caught.value)
    assert len(message) < 1000
    for word in words:
        assert word in message, message


@every
def test_unknown_field(mechanism: Mechanism) -> None:
    refused(lambda: from_json({**mechanism.to_dict(), "sgima": 2.5}), "sgima", mechanism.kind)
    refused(lambda: from_json({**mechanism.to_dict(), "Kind": "gaussian"}), "Kind")


@every
def test_missing_field(mechanism: Mechanism) -> None:
    for field in dataclasses.fields(mechanism):
        if field.default is dataclasses.MISSING:
            fields = mechanism.to_dict()
            del fields[field.name]
            refused(lambda fields=fields: from_json(fields), field.name, mechanism.kind)


@every
def test_wrong_version(mechanism: Mechanism) -> None:
    for version in (0, 2, -1, "1", 1.5, None, True, [1], math.nan):
        given_ = {**mechanism.to_dict(), "version": version}
        refused(lambda given_=given_: from_json(given_), "version", repr(version))


@every
@pytest.mark.parametrize("value", ["x", True, [], {}, [[1.0]], {"kind": "gaussian"}], ids=repr)
def test_wrong_type_in_each_field(mechanism: Mechanism, value: object) -> None:
    for field in dataclasses.fields(mechanism):
        given_ = {**mechanism.to_dict(), field.name: value}
        if value is True and isinstance(getattr(mechanism, field.name), bool):
            continue
        if value == "x" and field.name == "unit":  # any line of text is a unit
            continue
        # What is nested is refused before it is known which field it is in.
        words = [field.name] if value == [] or not isinstance(value, dict | list) else []
        refused(lambda given_=given_, words=words: from_json(given_), *words)


@every
@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9" * 350])
def test_numbers_that_are_none(mechanism: Mechanism, value: str) -> None:
    """JSON's constants, and literals beyond all floats."""
    whole = (int,) if value.isdigit() else ()
    for field in dataclasses.fields(mechanism):
        given_ = getattr(mechanism, field.name)
        if isinstance(given_, whole) and not isinstance(given_, bool):
            continue  # a large count may be allowed
        if isinstance(given_, tuple) and given_ and isinstance(given_[0], float):
            text = "[" + ",".join([value] * len(given_)) + "]"
        elif isinstance(given_, int | float) and not isinstance(given_, bool):
            text = value
        else:
            continue
        fields = {**mechanism.to_dict(), field.name: "HERE"}
        written = json.dumps(fields).replace('"HERE"', text)
        refused(lambda written=written: from_json(written))
        if not value.strip("-").isalpha():
            refused(lambda written=written: from_json(written), field.name)


@pytest.mark.parametrize("kind", ["Gaussian", "GAUSSIAN", "", "gauss", None, 1, True, [], {}])
def test_unknown_kind(kind: object) -> None:
    refused(lambda: from_json({"kind": kind, "sigma": 1.0}), "kind", repr(kind), "gaussian")


def test_no_kind() -> None:
    refused(lambda: from_json({"sigma": 1.0}), "kind is missing")
    refused(lambda: from_json("{}"), "kind")


@pytest.mark.parametrize(
    "text",
    [
        '{"kind":"gaussian","sigma":1,"sigma":2}',
        '{"kind":"gaussian","kind":"laplace","sigma":1}',
        '{"kind":"self_composed","count":1,"mechanism":{"kind":"gdp","mu":1,"mu":1}}',
    ],
)
def test_duplicate_field(text: str) -> None:
    duplicate = "kind" if '"laplace"' in text else "mu" if '"mu"' in text else "sigma"
    refused(lambda: from_json(text), "duplicate", duplicate)


BROKEN: list[str | bytes] = [
    "",
    " ",
    "{",
    "}",
    '{"kind":"gaussian","sigma":1',
    '{"kind":"gaussian","sigma":1,}',
    "{'kind':'gaussian','sigma':1}",
    '{"kind":"gaussian","sigma":01}',
    '{"kind":"gaussian","sigma":.5}',
    '{"kind":"gaussian","sigma":0x1}',
    '{"kind":"gaussian","sigma":1} {"kind":"gaussian","sigma":1}',
    '{"kind":"gaussian","sigma":1}\x00',
    '\x00{"kind":"gaussian","sigma":1}',
    '{"kind":"gaussian","sig\x00ma":1}',
    '{"kind":"gauss\\u0000ian","sigma":1}',
    '\ufeff{"kind":"gaussian","sigma":1}',
    b"\xff\xfe",
    b'{"kind":"gaussian","sigma":1\xff}',
    '{"kind":"gaussian","sigma":1}'.encode("utf-16"),
    "gaussian",
    "\ud800",
]


@pytest.mark.parametrize("text", BROKEN, ids=lambda t: repr(t)[:40])
def test_broken_json(text: str | bytes) -> None:
    refused(lambda: from_json(text))


@pytest.mark.parametrize("text", ["null", "true", "1", "1.5", '"gaussian"', "[]", "[{}]"])
def test_json_that_is_no_object(text: str) -> None:
    refused(lambda: from_json(text), "mechanism", "object")


@pytest.mark.parametrize(
    "value", [None, 1, 1.5, True, [], (), set(), object(), Gaussian(sigma=1.0)]
)
def test_no_json_at_all(value: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="mechanism"):
        from_json(value)


@pytest.mark.parametrize("depth", [40, 200, 600, 900, 5_000, 100_000])
def test_deep_nesting(depth: int) -> None:
    left = '{"kind":"self_composed","count":1,"mechanism":'
    refused(lambda: from_json(left * depth + '{"kind":"gdp","mu":1}' + "}" * depth), "mechanism")
    lists = "[" * depth + "]" * depth
    refused(lambda: from_json('{"kind":"rdp","epsilons":[1],"orders":' + lists + "}"))
    refused(lambda: from_json(lists))


def test_what_can_be_built_can_be_read() -> None:
    """Nesting in Python ends where nesting in JSON does."""
    mechanism: Mechanism = Gaussian(sigma=1.0)
    with pytest.raises(ArgumentError, match="nested"):
        for _ in range(200):
            mechanism = SelfComposed(mechanism, 1)
            assert from_json(mechanism.to_json()) == mechanism
            mechanism = Composed((mechanism,))
            assert from_json(mechanism.to_json()) == mechanism
    deepest: Mechanism = Laplace(1.0)
    for _ in range(20):
        deepest = Composed((deepest, Gdp(1.0)))
    assert from_json(deepest.to_json()) == deepest


@pytest.mark.parametrize("steps", [-1, 1.5, "2", True, [1], 2**53 + 1])
def test_bad_steps(steps: object) -> None:
    given_ = {"kind": "gaussian", "sigma": 1.0, "steps": steps}
    refused(lambda: from_json(given_), "steps", repr(steps))


@given(st.text() | st.binary())
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    with pytest.raises(ResiduaError):
        from_json(text)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(st.sampled_from(EXAMPLES), st.data())
def test_any_value_is_taken_or_refused(mechanism: Mechanism, data: st.DataObject) -> None:
    fields = mechanism.to_dict()
    field = data.draw(st.sampled_from(sorted(fields)))
    fields[field] = data.draw(values)
    try:
        made = from_json(fields)
    except ResiduaError:
        return
    assert from_json(made.to_json()) == made


def test_a_kind_reads_its_own_only() -> None:
    assert Gaussian.from_json('{"kind":"gaussian","sigma":1}') == Gaussian(sigma=1.0)
    refused(lambda: Gaussian.from_json('{"kind":"gdp","mu":1}'), "gaussian", "gdp")


# -- bad parameters -------------------------------------------------------------------------

NOT_POSITIVE = [0, 0.0, -1.0, -1e-300, math.nan, math.inf, -math.inf, 10**400]
NEGATIVE = [-1, -1.0, -5e-324, math.nan, math.inf, -math.inf, 10**400]
NO_PROBABILITY = [-1, -1e-300, 1.0 + 2**-52, 2, math.nan, math.inf, -math.inf]
NO_COUNT = [-1, -(10**30)]
NO_NUMBER: list[Any] = [None, "1", True, np.True_, 1j, [1.0], {}, b"1", Gaussian(sigma=1.0)]
NO_INTEGER: list[Any] = [None, "1", True, 1.0, 1.5, math.nan, [1]]

PARAMETERS: list[tuple[str, Callable[[Any], object], list[Any]]] = [
    ("sigma", lambda v: Gaussian(sigma=v), NOT_POSITIVE),
    ("sigma", lambda v: DiscreteGaussian(sigma=v), NOT_POSITIVE),
    ("scale", Laplace, NOT_POSITIVE),
    ("scale", DiscreteLaplace, NOT_POSITIVE),
    ("scale", ReportNoisyMax, NOT_POSITIVE),
    ("scale", lambda v: TruncatedLaplace(v, 1.0), NOT_POSITIVE),
    ("bound", lambda v: TruncatedLaplace(1.0, v), NOT_POSITIVE),
    ("sigma", lambda v: SubsampledGaussian(v, 0.5), NOT_POSITIVE),
    ("sigma", lambda v: MixtureOfGaussians(v, (0.0, 1.0), (0.5, 0.5)), NOT_POSITIVE),
    ("sensitivity", lambda v: Gaussian(sigma=1.0, sensitivity=v), NEGATIVE),
    ("sensitivity", lambda v: Laplace(1.0, v), NEGATIVE),
    ("sensitivity", lambda v: TruncatedLaplace(1.0, 1.0, v), NEGATIVE),
    ("sensitivity", lambda v: SubsampledGaussian(1.0, 0.5, v), NEGATIVE),
    ("sensitivity", lambda v: ReportNoisyMax(1.0, sensitivity=v), NEGATIVE),
    ("eps", PureDp, NEGATIVE),
    ("eps", ExponentialMechanism, NEGATIVE),
    ("eps", lambda v: ApproximateDp(v, 0.1), NEGATIVE),
    ("mu", Gdp, NEGATIVE),
    ("rho", Zcdp, NEGATIVE),
    ("xi", lambda v: Zcdp(1.0, v), NEGATIVE),
    ("delta", lambda v: ApproximateDp(1.0, v), NO_PROBABILITY),
    ("delta", lambda v: Zcdp(1.0, delta=v), NO_PROBABILITY),
    ("sampling_rate", lambda v: SubsampledGaussian(1.0, v), NO_PROBABILITY),
    ("sampling_rate", lambda v: PoissonSampled(Laplace(1.0), v), NO_PROBABILITY),
    ("noise_parameter", lambda v: RandomizedResponse(noise_parameter=v), NO_PROBABILITY),
    ("mass_at_infinity", lambda v: FromAtoms((0.0,), (1.0,), v), NO_PROBABILITY),
]

INTEGERS: list[tuple[str, Callable[[Any], object], list[Any]]] = [
    ("sensitivity", lambda v: DiscreteGaussian(sigma=1.0, sensitivity=v), NO_COUNT),
    ("sensitivity", lambda v: DiscreteLaplace(1.0, v), NO_COUNT),
    (
        "num_buckets",
        lambda v: RandomizedResponse(eps=1.0, num_buckets=v),
        [*NO_COUNT, 0, 1, 2**53 + 1],
    ),
    ("count", lambda v: SelfComposed(Gaussian(sigma=1.0), v), [*NO_COUNT, 2**53 + 1]),
    ("source_size", lambda v: SampledWithoutReplacement(Laplace(1.0), v, 0), [*NO_COUNT, 0]),
    ("sample_size", lambda v: SampledWithoutReplacement(Laplace(1.0), 5, v), [*NO_COUNT, 6]),
]


def _shown(value: object) -> str:
    return repr(value)[:40]


@pytest.mark.parametrize(("field", "make", "values_"), PARAMETERS + INTEGERS)
def test_values_out_of_range(field: str, make: Callable[[Any], object], values_: list[Any]) -> None:
    for value in values_:
        with pytest.raises(ArgumentError) as caught:
            make(value)
        assert field in str(caught.value) and _shown(value) in str(caught.value)


@pytest.mark.parametrize(
    ("field", "make", "values_"),
    [(f, m, NO_NUMBER) for f, m, _ in PARAMETERS] + [(f, m, NO_INTEGER) for f, m, _ in INTEGERS],
)
def test_values_of_the_wrong_type(
    field: str, make: Callable[[Any], object], values_: list[Any]
) -> None:
    for value in values_:
        with pytest.raises(ArgumentTypeError) as caught:
            make(value)
        assert field in str(caught.value), value


def test_relations() -> None:
    for make in (
        lambda r: PureDp(1.0, r),
        lambda r: ApproximateDp(1.0, 0.1, r),
        lambda r: Gdp(1.0, r),
        lambda r: Zcdp(1.0, relation=r),
        lambda r: Rdp((2.0,), (1.0,), r),
        lambda r: FromAtoms((0.0,), (1.0,), 0.0, r),
        lambda r: FromTradeoff((0.0, 1.0), (1.0, 0.0), r),
    ):
        refused(lambda make=make: make("swap"), "relation", "swap", "replace-one")
        refused(lambda make=make: make(1), "relation", "1")
        assert make("zero-out").supported == ("zero-out",)
        refused(lambda make=make: make("zero-out").plds("add-remove"), "relation", "add-remove")


def test_units() -> None:
    """A unit is part of the description, and changes no loss; a line of text in its one form."""
    for kind, cls in KINDS.items():
        declares = any(field.name == "unit" for field in dataclasses.fields(cls))
        assert declares is issubclass(cls, BlackBox), kind
    for mechanism in EXAMPLES:
        if isinstance(mechanism, BlackBox):
            declared = dataclasses.replace(mechanism, unit="event")
            assert declared.to_dict() == {**mechanism.to_dict(), "unit": "event"}
            assert from_json(declared.to_json()) == declared
            assert declared.plds() == mechanism.plds()
    for bad in ("", " event", "a\nb", "x" * 201, "e\u0301"):
        refused(lambda bad=bad: PureDp(1.0, unit=bad), "unit")
    refused(lambda: PureDp(1.0, unit=1), "unit", "1")
    refused(lambda: from_json('{"kind":"laplace","scale":1,"unit":"event"}'), "unit")


def test_lists() -> None:
    for make, field in (
        (lambda v: Rdp(v, (1.0,)), "orders"),
        (lambda v: Rdp((2.0,), v), "epsilons"),
        (lambda v: FromAtoms(v, (1.0,)), "losses"),
        (lambda v: FromAtoms((0.0,), v), "masses"),
        (lambda v: FromTradeoff(v, (1.0,)), "alphas"),
        (lambda v: FromTradeoff((0.0,), v), "betas"),
        (lambda v: MixtureOfGaussians(1.0, v, (1.0,)), "sensitivities"),
        (lambda v: MixtureOfGaussians(1.0, (1.0,), v), "probabilities"),
        (Composed, "mechanisms"),
    ):
        values_: list[Any] = [
            (),
            [],
            None,
            1.0,
            "12",
            {},
            (None,),
            ("1",),
            (math.nan,),
            (math.inf,),
        ]
        for value in values_:
            refused(lambda make=make, value=value: make(value), field)


def test_lists_that_do_not_fit() -> None:
    refused(lambda: Rdp((2.0, 3.0), (1.0,)), "epsilons", "2", "1")
    refused(lambda: Rdp((1.0,), (1.0,)), "orders", "1.0")
    refused(lambda: Rdp((0.5,), (1.0,)), "orders", "0.5")
    refused(lambda: Rdp((2.0,), (-0.5,)), "epsilons", "-0.5")
    refused(lambda: FromAtoms((0.0, 1.0), (1.0,)), "masses")
    refused(lambda: FromAtoms((0.0,), (0.5,)), "masses", "0.5")
    refused(lambda: FromAtoms((0.0,), (-1.0,)), "masses", "-1.0")
    refused(lambda: FromAtoms((-1.0,), (1.0,)), "E[e^-Z]", "2.718")
    refused(lambda: FromTradeoff((0.0, 1.0), (0.5, 0.25)), "betas", "0.25")
    refused(lambda: FromTradeoff((0.5, 1.0), (0.5, 0.0)), "alphas", "0.5")
    refused(lambda: FromTradeoff((0.0, 0.5, 1.0), (0.9, 0.6, 0.0)), "betas")
    refused(lambda: MixtureOfGaussians(1.0, (0.0, 1.0), (0.5, 0.25)), "probabilities", "0.75")
    refused(lambda: MixtureOfGaussians(1.0, (-1.0, 1.0), (0.5, 0.5)), "sensitivities", "-1.0")
    refused(lambda: MixtureOfGaussians(1.0, (1.0, 1.0), (1.5, -0.5)), "probabilities", "1.5")
    refused(lambda: MixtureOfGaussians(1.0, (1.0,), (0.5, 0.5)), "probabilities")


def test_choices() -> None:
    refused(lambda: ReportNoisyMax(1.0, "normal"), "noise", "normal", "gumbel")
    refused(lambda: ReportNoisyMax(1.0, 1), "noise", "1")
    values_: list[Any] = [1, 0, None, "yes", np.True_]
    for value in values_:
        refused(lambda value=value: ReportNoisyMax(1.0, monotonic=value), "monotonic")
        refused(lambda value=value: ExponentialMechanism(1.0, value), "monotonic")
    refused(RandomizedResponse, "eps", "noise_parameter")
    refused(
        lambda: RandomizedResponse(eps=1.0, noise_parameter=0.5), "eps", "noise_parameter", "0.5"
    )


def test_mechanisms_inside() -> None:
    values_: list[Any] = [None, 1.0, "gaussian", {}, Gaussian(sigma=1.0).pld(), Gaussian]
    for value in values_:
        refused(lambda value=value: SelfComposed(value, 2), "mechanism")
        refused(lambda value=value: PoissonSampled(value, 0.5), "mechanism")
        refused(lambda value=value: SampledWithoutReplacement(value, 2, 1), "mechanism")
        refused(lambda value=value: Composed((value,)), "mechanisms")


def test_sampling_wants_a_pair_to_sample() -> None:
    local = RandomizedResponse(eps=1.0)
    assert PoissonSampled(local, 0.5).supported == ("zero-out",)
    refused(lambda: PoissonSampled(PureDp(1.0, "replace-one"), 0.5), "mechanism", "PureDp")
    mixture = MixtureOfGaussians(1.0, (0.0, 1.0), (0.5, 0.5))
    refused(lambda: SampledWithoutReplacement(mixture, 2, 1), "mechanism", "replace-one")


def test_nothing_in_common() -> None:
    parts = (PureDp(1.0, "replace-one"), Zcdp(1.0, relation="zero-out"))
    refused(lambda: Composed(parts), "relation", "replace-one", "zero-out")


@every
def test_questions_that_make_no_sense(mechanism: Mechanism) -> None:
    for relation in ("swap", "", 1, True, "ADD-REMOVE"):
        refused(lambda relation=relation: mechanism.plds(relation), "relation")
    for side in ("both", None, 1):
        refused(lambda side=side: mechanism.plds(side=side), "side")
    for accuracy in (0.0, -1.0, math.nan, 2.0, "fine", None):
        refused(lambda accuracy=accuracy: mechanism.plds(accuracy=accuracy), "accuracy")
    refused(lambda: mechanism.pld("sideways"), "direction", "sideways")
