"""What a natural filter guarantees: proven again by moments, and forged tables are not."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import residua as rz
from residua import mechanisms as m
from residua.records import canonical, digest
from residua.verify import Report, verify_records
from residua.verify.descriptions.mechanisms import StepQuery
from residua.verify.proofs.filters import prove_step
from verify.written_chains import Written, described, plain, written_by

pytestmark = pytest.mark.needs("flint")

FILTER = rz.NaturalFilter(rz.approximate_dp(1.0, 1e-6))
"""For any number of rounds: only moments show what it keeps."""
TOLD = json.loads(FILTER.tables(FILTER.initial())["guarantee"])


def created(filter: rz.NaturalFilter, table: bytes) -> Report:
    """What is said of a first record with this table."""
    body = json.loads(Written(filter).records[0].text)
    body["tables"] = {"guarantee": digest(table)}
    return verify_records({"b": [canonical(body)]}, {digest(table): table})


def verdict(change: dict[str, Any], filter: rz.NaturalFilter = FILTER) -> str:
    """Of a table that is changed; None takes a field away."""
    told = json.loads(filter.tables(filter.initial())["guarantee"])
    changed = {name: value for name, value in {**told, **change}.items() if value is not None}
    return created(filter, json.dumps(changed).encode()).steps[0].verdict


def test_the_honest_table_is_proven() -> None:
    assert TOLD.keys() == {"eps", "delta", "jump", "level", "order", "v"} and TOLD["v"] == 2
    assert TOLD["eps"] == FILTER.proven.guarantee.epsilon(TOLD["delta"])
    assert verdict({}) == "proven"


@pytest.mark.parametrize(
    "change",
    [{"eps": TOLD["eps"] * 1.01}, {"eps": 599.0}, {"eps": 1000.0}],
    ids=str,
)
def test_what_says_less_is_true_all_the_same(change: dict[str, Any]) -> None:
    assert verdict(change) == "proven"


@pytest.mark.parametrize(
    "change",
    [
        {"eps": TOLD["eps"] * (1 - 1e-6)},
        {"eps": 1.0},
        {"eps": 0.0},
        {"delta": TOLD["delta"] * (1 - 1e-6)},
        {"delta": TOLD["delta"] * (1 + 1e-6)},
        {"delta": 1e-6},
        {"delta": 1.0},
        {"jump": 1.0},
        {"jump": 0.9},
        {"jump": 1.0 + 1e-7},
        {"jump": 0.0},
        {"jump": TOLD["jump"] * 0.99},
        {"jump": 9.0},
        {"level": 1.0},
        {"level": 0.5},
        {"level": 1.0 + 1e-15},
        {"level": TOLD["level"] * 1.01},
        {"order": 0.0},
        {"order": 1e-320},
        {"order": TOLD["order"] * 0.9},
        {"order": TOLD["order"] * 1.2},
        {"order": 1e300},
        {"jump": None, "level": None, "order": None},
    ],
    ids=str,
)
def test_a_guarantee_that_is_not_shown_is_undecided(change: dict[str, Any]) -> None:
    assert verdict(change) == "undecided"


@pytest.mark.parametrize(
    "change",
    [
        {"order": -TOLD["order"]},
        {"jump": -1.0},
        {"eps": -1.0},
        {"order": None},
        {"eps": None},
        {"delta": None},
        {"v": None},
        {"v": 1},
        {"v": 3},
        {"v": "2"},
        {"more": 1.0},
        {"eps": "4"},
        {"eps": 4},
        {"order": [5.0]},
        {"level": True},
        *({name: value} for name in ("eps", "order", "jump") for value in (math.nan, math.inf)),
        {"points": [1.0], "draws": []},
    ],
    ids=str,
)
def test_a_table_that_is_none_is_refuted(change: dict[str, Any]) -> None:
    assert verdict(change) == "refuted"


@pytest.mark.parametrize(
    "table", [b"", b"[]", b"null", b"2", b'{"v":2}', b"{", b"\xff", b'{"eps":1e999}']
)
def test_what_is_no_table_does_not_end_the_verifier(table: bytes) -> None:
    assert created(FILTER, table).steps[0].verdict == "refuted"


def test_a_table_too_deep_to_read_is_undecided() -> None:
    assert created(FILTER, b"[" * 10_000).steps[0].verdict == "undecided"


def test_a_table_of_another_budget_is_not_proven() -> None:
    other = rz.NaturalFilter(rz.approximate_dp(0.9, 1e-6))
    assert created(FILTER, other.tables(other.initial())["guarantee"]).steps[0].verdict != "proven"
    chain = Written(FILTER)
    body = json.loads(chain.records[0].text)
    body["tables"] = {}
    assert verify_records({"b": [canonical(body)]}, {}).steps[0].verdict == "undecided"


def test_few_rounds_by_composition() -> None:
    few = rz.NaturalFilter(rz.approximate_dp(1.0, 1e-6), rounds=2)
    told = json.loads(few.tables(few.initial())["guarantee"])
    assert told.keys() == {"eps", "delta", "v"}
    for factor, expected in ((1.0, "proven"), (0.99, "undecided"), (1.01, "proven")):
        assert verdict({"eps": told["eps"] * factor}, few) == expected
    cut = {name: TOLD[name] for name in ("jump", "level", "order")}
    assert verdict({"eps": TOLD["eps"], **cut}, few) == "proven", "moments are for any number"
    rounds = rz.NaturalFilter(rz.approximate_dp(1.0, 1e-6), rounds=3)
    assert verdict(dict.fromkeys(cut) | {"eps": told["eps"]}, rounds) == "undecided"


def test_spends_without_a_number_of_rounds_are_proven(tmp_path: Path) -> None:
    with rz.open_ledger(tmp_path / "a.db") as ledger:
        ledger.create_budget("natural", FILTER)
        for query in (m.PureDp(0.1), m.Laplace(20.0), m.ApproximateDp(0.1, 1e-8)):
            assert ledger.spend("natural", query).admitted
        assert not ledger.spend("natural", m.PureDp(1.0)).admitted
        report = ledger.verify()
        assert report.ok and report.proven == 4, report.text


def test_queries_that_are_not_symmetric_are_never_proven_in_one_direction(tmp_path: Path) -> None:
    """The filter charges both directions; a ledger does not take what nobody can prove."""
    query = m.SubsampledGaussian(20.0, 0.01)
    loss = query.pld()
    decision = FILTER.decide(FILTER.initial(), query)
    assert not loss.is_symmetric and decision.admitted
    spent = FILTER.spent_in(decision.state)
    assert loss <= spent and loss.reverse() <= spent
    with rz.open_ledger(tmp_path / "a.db") as ledger:
        ledger.create_budget("natural", FILTER)
        with pytest.raises(rz.ArgumentError, match="no proof is known for subsampled_gaussian"):
            ledger.spend("natural", query)
    chain = written_by(FILTER, [m.PureDp(0.1)])
    before, after = chain.records[0].body["state"], chain.records[1].body["after"]
    asked = StepQuery(described(query), "add-remove", {}, {})
    assert plain(FILTER, FILTER.initial()) == before
    assert prove_step(FILTER.to_dict(), before, after, asked).verdict != "proven"
