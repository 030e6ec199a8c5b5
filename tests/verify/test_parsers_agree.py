"""The verifier and the library accept and reject the same descriptions, and read them alike."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from filters.expensive import FILTERS, QUERIES
from residua.errors import ResiduaError
from residua.filters.codec import from_json as filter_from_json
from residua.mechanisms.codec import from_json
from residua.records import canonical
from residua.sizes import LARGEST_COUNT
from residua.verify.descriptions.configurations import misconfigured
from residua.verify.descriptions.fields import Malformed, read

SHORT = 16
"""Longer lists are left out: their contents are as in short ones."""


def is_short(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(is_short, value.values()))
    return not isinstance(value, list) or (len(value) <= SHORT and all(map(is_short, value)))


PLAIN = [
    plain
    for queries in QUERIES.values()
    for plain in (query.to_dict() for query in queries)
    if is_short(plain)
]
NUMBERS = st.one_of(
    st.sampled_from(
        [0, 1, -1, 2, 0.0, -0.0, 0.5, 1.0, 1.5, 1e-320, 1e-9, 1e9, 1e308, LARGEST_COUNT]
    ),
    st.sampled_from([LARGEST_COUNT + 1, 10**30, 10**310, -(10**400) + 1, 1 + 1e-9, 1.0 - 2**-53]),
    st.integers(-3, 70),
    st.floats(allow_nan=False, allow_infinity=False),
)
NAMES = st.sampled_from(
    ["laplace", "gumbel", "add-remove", "replace-one", "person", "a\nb", "", " x", "e\u0301", "é"]
)
SCALARS = st.one_of(NUMBERS, NAMES, st.booleans(), st.none())
VALUES = st.deferred(
    lambda: st.one_of(
        SCALARS,
        st.lists(NUMBERS, max_size=4),
        st.lists(SCALARS, max_size=3),
        st.lists(st.sampled_from(PLAIN), max_size=3),
        st.sampled_from(PLAIN),
        st.just([[1.0]]),
        st.just({}),
    )
)
FIELDS = sorted({name for plain in PLAIN for name in plain} | {"steps", "version", "unit", "q"})


@st.composite
def changed(draw: st.DrawFn, plain: Any, depth: int = 0) -> Any:
    """A description with a few fields changed, added or taken away, perhaps further inside."""
    made = dict(plain)
    for _ in range(draw(st.integers(0, 3))):
        name = draw(st.sampled_from(FIELDS if draw(st.booleans()) else sorted(made) or FIELDS))
        inner = made.get(name)
        action = draw(st.sampled_from(("set", "drop", "inside", "inside")))
        if action == "drop":
            made.pop(name, None)
        elif action == "inside" and isinstance(inner, dict) and depth < 3:
            made[name] = draw(changed(inner, depth + 1))
        elif action == "inside" and isinstance(inner, list) and inner:
            made[name] = draw(changed_list(inner, depth))
        else:
            made[name] = draw(VALUES)
    return made


@st.composite
def changed_list(draw: st.DrawFn, given: list[Any], depth: int) -> list[Any]:
    made = list(given)
    place = draw(st.integers(0, len(made) - 1))
    each = made[place]
    nested = isinstance(each, dict) and depth < 3
    action = draw(st.sampled_from(("set", "drop", "double")))
    if action == "drop":
        del made[place]
    elif action == "double":
        made.insert(place, each)
    else:
        made[place] = draw(changed(each, depth + 1)) if nested else draw(VALUES)
    return made


def library(text: str) -> str | None:
    """The full form that the library reads, or None."""
    try:
        return canonical(json.loads(from_json(text).to_json()))
    except ResiduaError:
        return None


def verifier(text: str) -> str | None:
    """The full form that the verifier reads, or None."""
    try:
        return canonical(read(json.loads(text)))
    except Malformed:
        return None


def agree(plain: Any) -> None:
    text = json.dumps(plain)
    theirs, ours = library(text), verifier(text)
    assert theirs == ours, text


@pytest.mark.parametrize("plain", PLAIN, ids=lambda plain: plain["kind"])
def test_both_read_what_the_library_writes(plain: Any) -> None:
    agree(plain)
    assert library(json.dumps(plain)) is not None


@given(st.sampled_from(PLAIN).flatmap(changed))
@example({"kind": "laplace", "scale": 1.0, "sensitivity": None})
@example({"kind": "laplace", "scale": 10**310})
@example({"kind": "laplace", "scale": 1, "version": True})
@example({"kind": "laplace", "scale": 1, "steps": True})
@example({"kind": "laplace", "scale": 1, "steps": None})
@example({"kind": ["laplace"], "scale": 1})
@example({"kind": "discrete_gaussian", "sigma": 1, "sensitivity": 1.0})
@example({"kind": "randomized_response", "eps": None, "noise_parameter": 0.5})  # was rejected
@example({"kind": "composed", "mechanisms": {"kind": "laplace", "scale": 1}})
@example({"kind": "pure_dp", "eps": 1.0, "unit": "e\u0301"})
@example({"kind": "zcdp", "rho": -0.0})
def test_both_accept_and_reject_the_same_mechanisms(plain: Any) -> None:
    agree(plain)


@given(VALUES)
def test_both_accept_and_reject_the_same_values(value: Any) -> None:
    agree(value)


CONFIGURATIONS = {name: make().to_dict() for name, make in FILTERS.items()}
CHEAP = sorted(CONFIGURATIONS.keys() - {"menu", "additive_profile", "natural"})
"""Reading one of the others works out a table, or a guarantee, which is proven apart."""


@given(st.sampled_from(CHEAP).map(CONFIGURATIONS.__getitem__).flatmap(changed))
def test_the_verifier_takes_no_filter_that_the_library_rejects(plain: Any) -> None:
    """It takes the full form alone, and what can be proven: less than the library reads."""
    text = json.dumps(plain)
    if misconfigured(json.loads(text)) is None:
        assert canonical(filter_from_json(text).to_dict()) == canonical(plain)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_verifier_takes_what_the_library_writes(name: str) -> None:
    assert misconfigured(CONFIGURATIONS[name]) is None
