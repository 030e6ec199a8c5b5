"""Configurations and states as JSON: golden texts, and everything that is not one."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import residua as rz
from filters.catalogue import ADDITIVE, CATALOGUE, DESCRIBED, Entry
from residua import filters, mechanisms
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters import amounts
from residua.filters.amounts import Left
from residua.filters.codec import _parse


@pytest.fixture(params=DESCRIBED)
def entry(request: pytest.FixtureRequest) -> Entry:
    return CATALOGUE[request.param]


def test_golden_configurations(entry):
    filter = entry.make()
    assert filter.to_json() == entry.json
    assert filter.to_dict() == json.loads(entry.json)
    for text in (entry.json, entry.json.encode(), filter.to_dict()):
        made = filters.from_json(text)
        assert made == filter
        assert type(made) is type(filter)
        assert made.fingerprint == filter.fingerprint
        assert type(filter).from_json(text) == filter == rz.Filter.from_json(text)


def test_golden_states(entry):
    filter = entry.make()
    assert filter.request(entry.part)
    text = filter.state_to_json(filter.state)
    said = json.loads(text)
    if entry.fields is not None:
        said = {"kind": filter.kind, "of": filter.fingerprint} | entry.fields
    assert text == json.dumps(said, separators=(",", ":"), sort_keys=True)
    for given_text in (text, text.encode(), said):
        assert filter.state_from_json(given_text) == filter.state
    other = filters.from_json(entry.json)
    other.resume(other.state_from_json(text))
    assert other.remaining == filter.remaining
    assert other.history == ()
    assert other.request(entry.part).state == filter.request(entry.part).state


FINGERPRINTS = {
    "pure": "cad808263b12b420",
    "basic": "878c2a12426ffd3b",
    "renyi": "a9cd040b0dc0a1b3",
    "zcdp": "766b30c3d9c5fd60",
    "approximate_zcdp": "5b445dc90f83119d",
}


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_fingerprints_stay(name):
    assert CATALOGUE[name].make().fingerprint == FINGERPRINTS[name]


def test_configurations_read_strictly(entry):
    filter = entry.make()
    data = filter.to_dict()
    field = next(name for name in data if name != "kind")
    inner = entry.json[1:-1]
    wrong = [
        "",
        "{",
        "[]",
        "null",
        "1",
        b"\xff",
        "{" + inner + "," + inner + "}",
        "{" + inner + ',"more":1}',
        "{" + inner + ',"version":2}',
        "{" + inner + ',"version":1.0}',
        "{" + inner + ',"version":true}',
        "{" + inner + ',"_desk":{}}',
        "[" * 100_000,
        data | {"kind": "none"},
        data | {"kind": None},
        data | {"kind": []},
        {"kind": filter.kind},
        {name: value for name, value in data.items() if name != "kind"},
        None,
        3,
        [data],
    ]
    for value in ("1", [1.0], {"kind": []}, {"kind": "pure"}, {}, True, math.nan, [[]], "nan"):
        wrong.append(data | {field: value})
    for text in ("NaN", "Infinity", "-Infinity", "1e999", "-1", "9" * 500, '"1"', "true", "[[1]]"):
        wrong.append(json.dumps(data | {field: "@"}).replace('"@"', text))
    for text in wrong:
        with pytest.raises(rz.ResiduaError):
            filters.from_json(text)
    other = next(e for e in CATALOGUE.values() if e.json and e.make().kind != filter.kind)
    with pytest.raises(rz.ArgumentError, match="kind must be"):
        type(filter).from_json(other.json)


WRONG_FIELDS = (3.5, [], [3], "none", "-1", math.nan, {"a": 1})


def test_states_read_strictly(entry):
    """What all states have in common: a head, and every field once."""
    filter = entry.make()
    assert filter.request(entry.part)
    data = json.loads(filter.state_to_json(filter.state))
    wrong = ["", "[]", "null", "3", b"\xff", None, filter.state]
    wrong += [json.dumps(data)[:-1] + ',"more":1}', json.dumps(data)[:-1] + ',"of":"x"}']
    # Lists of counts are what these have in a state.
    lists = ([], [3]) if filter.kind in ("plan", "menu", "auto") else ()
    for name in data:
        kept = (*lists, data[name])
        wrong += [data | {name: value} for value in WRONG_FIELDS if value not in kept]
        wrong.append({key: value for key, value in data.items() if key != name})
    wrong += [data | {"version": 2}, data | {"of": "0" * 16}]
    for given_text in wrong:
        with pytest.raises(rz.ResiduaError):
            filter.state_from_json(given_text)


@pytest.mark.parametrize("name", ADDITIVE)
def test_amounts_in_states_read_strictly(name):
    entry = CATALOGUE[name]
    filter = entry.make()
    assert filter.request(entry.part)
    before = filter.state
    data = json.loads(filter.state_to_json(filter.state))
    left = data["left"]
    text = json.dumps(data)
    more = [amounts.text(a + Fraction(1, 10**40)) for a in filter.initial().left]  # type: ignore[attr-defined]
    bad_amounts = ["-0.1", "+0.1", "nan", "inf", "1e-3", "0.1 ", " 0.1", "", ".", "1/0", "0/0", "/"]
    bad_amounts += ["1/2/3", "1.5/2", "-1/2", "1_0", "٣", "²", "9" * 1501, "1/" + "9" * 1600, "0x1"]
    bad_amounts += [0.1, 0, None, True, [], {}, ["0.1"]]
    wrong = [
        "",
        "[]",
        "null",
        text[:-1] + ',"more":1}',
        text[:-1] + ',"left":' + json.dumps(left) + "}",
        data | {"kind": "none"},
        data | {"kind": []},
        data | {"of": "0" * 16},
        data | {"of": None},
        data | {"of": 3},
        data | {"version": 2},
        data | {"left": []},
        data | {"left": [*left, "0"]},
        data | {"left": left[:-1]},
        data | {"left": left[0]},
        data | {"left": {}},
        data | {"left": more},
        {name: value for name, value in data.items() if name != "left"},
        {name: value for name, value in data.items() if name != "of"},
        *(data | {"left": [amount, *left[1:]]} for amount in bad_amounts),
        None,
        before,
    ]
    for given_text in wrong:
        with pytest.raises(rz.ResiduaError):
            filter.state_from_json(given_text)
    for other in (e.make() for e in CATALOGUE.values() if e.json):
        if other != filter:
            with pytest.raises(rz.ArgumentError):
                other.state_from_json(text)
    assert filter.state == before


def test_what_lives_in_memory_says_so():
    filter = CATALOGUE["update"].make()
    for call in (filter.to_json, filter.to_dict, lambda: filter.state_to_json(filter.state)):
        with pytest.raises(rz.ArgumentError, match="cannot be stored"):
            call()
    for text in ("{}", '{"kind":"update"}'):
        with pytest.raises(rz.ArgumentError):
            filter.state_from_json(text)
        with pytest.raises(rz.ArgumentError):
            filters.from_json(text)


def test_nested_objects_are_queries_where_a_kind_means_both():
    assert _parse({"kind": "zcdp", "rho": 0.5}) == rz.mechanisms.Zcdp(0.5)
    assert _parse([{"kind": "pure", "eps": 0.5}]) == (rz.PureFilter(0.5),)
    for wrong in ({}, {"kind": []}, {"kind": None}, {"kind": "none"}):
        with pytest.raises(rz.ArgumentError):
            _parse(wrong)


@pytest.mark.parametrize("name", ADDITIVE)
@given(st.data())
def test_states_survive_as_text_and_in_another_process(name, data):
    filter = CATALOGUE[name].make()
    shares = st.fractions(min_value=0, max_value=1)
    left = tuple(data.draw(shares) * whole for whole in filter.initial().left)  # type: ignore[attr-defined]
    state = Left(filter.fingerprint, left)
    assert filter.state_from_json(filter.state_to_json(state)) == state
    again = pickle.loads(pickle.dumps(state))
    assert (again, hash(again)) == (state, hash(state))
    assert vars(again).keys() == {"of", "left"}, "nothing else is kept"


# --------------------------------------------------------------------------- amounts

fractions = st.fractions(min_value=0, max_value=10**6)
floats = st.floats(0, 1e6)


@given(st.one_of(fractions, floats.map(amounts.written), floats.map(amounts.rounded_up)))
def test_amounts_survive_as_text(amount):
    text = amounts.text(amount)
    assert amounts.from_text("left", text) == amount
    assert amounts.text(amounts.from_text("left", text)) == text
    assert set(text) <= set("0123456789./")


@given(st.one_of(fractions, floats.map(Fraction), floats.map(amounts.written)))
def test_amounts_as_floats_are_on_the_safe_side(amount):
    low, high = amounts.reported(amount), amounts.charged(amount)
    assert amounts.written(low) <= amount <= amounts.written(high)
    assert high <= math.nextafter(math.nextafter(low, math.inf), math.inf)
    if amounts.written(low) == amount:
        assert low == high
    down, up = amounts.root_down(amount), amounts.root_up(amount)
    assert amounts.written(down) ** 2 <= amount <= amounts.written(up) ** 2
    assert up <= down * (1 + 1e-15) + 1e-300


@given(st.floats(0, 1e300))
def test_costs_are_rounded_up(value):
    up, down = amounts.rounded_up(value), amounts.rounded_down(value)
    assert down <= Fraction(value) <= up
    assert up - down <= Fraction(value) / 10**16 * 2


@given(fractions, fractions)
def test_what_is_left_is_the_exact_difference(amount, cost):
    exact = None if cost > amount else amounts.shorten(amount - cost)
    assert amounts.subtract(amount, cost) == exact
    assert amounts.subtract(amount, Fraction(0)) is amount
    assert amounts.subtract(amount, amount) == 0


@given(st.lists(st.integers(2, 10**9), min_size=1, max_size=60))
def test_long_amounts_are_shortened_downwards(denominators):
    amount = Fraction(1)
    for d in denominators:
        before = amount
        amount = amounts.shorten(amount - Fraction(1, 100 * d))
        assert before - Fraction(1, 100 * d) - Fraction(1, 2**512) <= amount
        assert amount <= before - Fraction(1, 100 * d)
        assert amount.denominator.bit_length() <= 513
        assert amounts.from_text("left", amounts.text(amount)) == amount


ODD = [
    mechanisms.ExponentialMechanism(0.05),
    mechanisms.DiscreteLaplace(50.0, 3),
    mechanisms.TruncatedLaplace(20.0, 400.0),
    mechanisms.RandomizedResponse(eps=0.1, num_buckets=10),
    mechanisms.PoissonSampled(mechanisms.DiscreteLaplace(20.0, 2), 0.1),
    mechanisms.FromAtoms((0.05, -0.05), (0.52, 0.48)),
]
"""Mechanisms whose losses do not say what they came from."""


@pytest.mark.parametrize("relation", ["add-remove", "replace-one", "zero-out"])
@pytest.mark.parametrize("name", ["auto", "menu", "plan", "renyi_commit", "gdp_residue"])
def test_states_after_any_mechanism(name, relation):
    """What a filter knows of earlier queries is written down whatever they were."""
    filter = CATALOGUE[name].make()
    queries = [query for query in ODD if relation in query.supported]
    for query in queries + queries[::-1]:
        filter.request(query, relation=relation)
        text = filter.state_to_json(filter.state)
        other = CATALOGUE[name].make()
        state = other.state_from_json(text)
        assert state == filter.state
        assert other.state_to_json(state) == text
        for asked in (query, ODD[0]):
            first, second = (
                f.decide(f.check_state(state), asked, relation=relation) for f in (filter, other)
            )
            assert first.admitted == second.admitted and first.state == second.state


@pytest.mark.parametrize(
    "given_query",
    [
        {"mechanism": {"kind": "laplace", "scale": 1.0}, "relation": "sideways"},
        {"mechanism": 3, "relation": "replace-one"},
        {"mechanism": {"kind": "laplace", "scale": 1.0}, "relation": "replace-one", "more": 1},
    ],
)
def test_names_read_strictly(given_query):
    filter = rz.AutoFilter(1.0, 1e-6)
    fields = json.loads(filter.state_to_json(filter.initial()))
    with pytest.raises((ArgumentError, ArgumentTypeError)):
        filter.state_from_json({**fields, "seen": [[given_query, 1]]})


# -- how states grow -----------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in DESCRIBED if name != "natural"])
def test_a_state_does_not_grow_with_the_history(name: str) -> None:
    """However many different queries were admitted; but for the natural filter's, below.

    Exact amounts are as long as their rationals, up to 512 bits.
    """
    filter, sizes = CATALOGUE[name].make(), []
    for i in range(120):
        filter.request(mechanisms.PureDp(1e-5 * (1 + i / 1009)))
        filter.request(mechanisms.Gaussian(sigma=1000.0 + i))
        sizes.append(len(filter.state_to_json(filter.state)))
    assert any(decision.admitted for decision in filter.history)
    assert max(sizes[60:]) <= max(sizes[:60]) + 10 < 2000


@pytest.mark.parametrize(
    ("budget", "family", "query"),
    [
        (rz.gaussian(mu=1.0), "gaussian", lambda i: mechanisms.Gaussian(sigma=1000.0 + i)),
        (rz.pure_dp(1.0), None, lambda i: mechanisms.PureDp(1e-5 * (1 + i))),
    ],
    ids=["gaussian", "pure"],
)
def test_the_state_of_a_natural_filter_counts_equal_queries(
    budget: rz.Pld, family: str | None, query: Callable[[int], mechanisms.Mechanism]
) -> None:
    """It grows with the different queries, one entry for each, in whatever order they come."""
    filter = rz.NaturalFilter(budget, catalogue=family)
    for n in range(2, 6):
        for i in range(40):
            assert filter.request(query(i % n)).admitted
        written = json.loads(filter.state_to_json(filter.state))
        assert len(written["loss"]["mechanisms"]) == n
        again = filter.state_from_json(written)
        assert again == filter.state
        assert filter.decide(again, query(0)).state == filter.decide(filter.state, query(0)).state
    assert written["rounds"] == 160
