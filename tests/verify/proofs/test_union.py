"""Unions: parts are proven by their own filters, and the rule of unions on top."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest

import residua as rz
from residua import mechanisms as m
from residua.errors import ResiduaError
from residua.filters.codec import from_dict
from residua.filters.potential.renyi_commit import Commit
from residua.provable import unprovable, unprovable_filter
from residua.records import canonical
from residua.verify import Report, verify_records
from residua.verify.descriptions.configurations import fingerprint
from residua.verify.descriptions.mechanisms import StepQuery
from residua.verify.proofs.filters import prove_first, prove_step
from residua.verify.proofs.verdict import Proof
from verify.mutations import mutated
from verify.queries import Draw
from verify.written_chains import Written, described, plain, written_by

pytestmark = pytest.mark.needs("flint")

ROUNDS = int(os.environ.get("RESIDUA_FUZZ", "1"))
UNION = rz.UnionFilter(
    (rz.PureFilter(1.0), rz.BasicFilter(1.0, 1e-7), rz.GdpResidueFilter(0.2), rz.ZcdpFilter(0.02))
)
MANY = rz.UnionFilter(
    (
        rz.PureFilter(1.0),
        rz.AutoFilter(1.0, 1e-7),
        rz.NaturalFilter(rz.approximate_dp(0.5, 1e-7), rounds=5),
        rz.AdditiveProfileFilter(0.5, 1e-8, 4),
        rz.PlanFilter(1.0, 1e-6, (m.PureDp(0.1),) * 3),
        rz.RenyiCommitFilter(1.0, 1e-7),
    ),
    3.0,
)


def verified(chain: Written) -> Report:
    return verify_records({chain.name: chain.records}, chain.tables)


RUNS: list[tuple[rz.UnionFilter, list[m.Mechanism]]] = [
    (UNION, [m.PureDp(0.1), m.Laplace(20.0), m.Gaussian(sigma=40.0), m.PureDp(0.05)]),
    (UNION, [m.ApproximateDp(0.2, 5e-8), m.PureDp(0.3)]),
    (UNION, [m.Zcdp(0.004), m.Gaussian(sigma=30.0), m.DiscreteGaussian(sigma=1e4)]),
    (MANY, [m.PureDp(0.1), m.PureDp(0.05), m.PureDp(0.1), m.Gaussian(sigma=40.0)]),
]


@pytest.mark.parametrize(("union", "queries"), RUNS)
def test_honest_runs_are_proven(union: rz.UnionFilter, queries: list[m.Mechanism]) -> None:
    chain = written_by(union, queries)
    report = verified(chain)
    assert report.ok, report.text.split("What this")[0]
    assert all(record.admitted for record in chain.records[1:])
    assert report.proven == len(queries) + 1


def _step(before: Any, after: Any, query: Any, union: rz.UnionFilter = UNION) -> Proof:
    asked = StepQuery(described(query), "add-remove", {}, {})
    return prove_step(union.to_dict(), before, after, asked)


def _run(*queries: m.Mechanism) -> list[Any]:
    """The states along a run, as records have them."""
    state, found = UNION.initial(), []
    for query in queries:
        found.append(plain(UNION, state))
        decision = UNION.decide(state, query)
        assert decision.admitted
        state = decision.state
    return [*found, plain(UNION, state)]


def _with_part(state: Any, place: int, part: Any) -> Any:
    made = json.loads(json.dumps(state))
    made["parts"][place] = part
    return made


def test_a_component_that_comes_back_is_refuted() -> None:
    first, stopped, later = _run(m.Gaussian(sigma=40.0), m.PureDp(0.05))
    assert stopped["parts"][0] is None
    for part in (first["parts"][0], {**first["parts"][0], "left": ["0"]}):
        proof = _step(stopped, _with_part(later, 0, part), m.PureDp(0.05))
        assert proof.verdict == "refuted" and "component 0 comes back" in proof.reason


def test_a_live_component_that_does_not_pay_is_refuted() -> None:
    first, after = _run(m.PureDp(0.1))
    for place in range(4):
        proof = _step(first, _with_part(after, place, first["parts"][place]), m.PureDp(0.1))
        assert proof.verdict == "refuted" and f"component {place}" in proof.reason


def test_a_component_that_refuses_and_stays_live_is_refuted() -> None:
    """A Gaussian has no largest loss: no `eps` pays for it."""
    first, after = _run(m.Gaussian(sigma=40.0))
    part = {**first["parts"][0], "left": ["0"]}
    assert _step(first, _with_part(after, 0, part), m.Gaussian(sigma=40.0)).verdict == "refuted"


def test_a_component_may_always_be_stopped_unless_it_is_the_last() -> None:
    first, after = _run(m.PureDp(0.1))
    for place in range(4):
        assert _step(first, _with_part(after, place, None), m.PureDp(0.1)).verdict == "proven"
    last = {**after, "parts": [None, after["parts"][1], None, None]}
    assert _step(first, last, m.PureDp(0.1)).verdict == "proven"
    none = {**after, "parts": [None] * 4}
    assert _step(first, none, m.PureDp(0.1)).verdict == "refuted"
    assert _step(none, none, m.PureDp(0.1)).verdict == "refuted"


def test_nothing_is_stopped_or_spent_at_the_start() -> None:
    (first,) = _run()
    assert prove_first(UNION.to_dict(), first, {}).verdict == "proven"
    for place in range(4):
        assert prove_first(UNION.to_dict(), _with_part(first, place, None), {}).verdict == "refuted"
    richer = {**first["parts"][0], "left": ["1.5"]}
    assert prove_first(UNION.to_dict(), _with_part(first, 0, richer), {}).verdict == "refuted"


def test_parts_of_other_components_are_refuted() -> None:
    first, after = _run(m.PureDp(0.1))
    swapped = _with_part(after, 0, after["parts"][3])
    assert _step(first, swapped, m.PureDp(0.1)).verdict == "refuted"
    for parts in (after["parts"][:3], [*after["parts"], None], None, {}, "parts"):
        assert _step(first, {**after, "parts": parts}, m.PureDp(0.1)).verdict == "refuted"


def test_a_commit_is_not_proven() -> None:
    union = rz.UnionFilter((rz.RenyiCommitFilter(1.0, 1e-3, 8.0),))
    alone = union.filters[0]
    state = alone.decide(alone.initial(), Commit(rz.GdpResidueFilter(0.05))).state
    before = plain(union, union.initial())
    after = _with_part(before, 0, plain(alone, state))
    assert _step(before, after, Commit(rz.GdpResidueFilter(0.05)), union).verdict == "undecided"


# -- configurations -----------------------------------------------------------------------------


def _first_state(config: Any) -> Any:
    """The first state as one would forge it for a configuration."""
    parts = plain(UNION, UNION.initial())["parts"]
    filters = config.get("filters") if isinstance(config, dict) else None
    for part, each in zip(parts, filters if isinstance(filters, list) else (), strict=False):
        part["of"] = fingerprint(each)
        part["kind"] = each.get("kind") if isinstance(each, dict) else None
    return {"kind": "union", "of": fingerprint(config), "parts": parts[: len(filters or ())]}


def _library_begins(config: Any, state: Any) -> bool:
    try:
        filter = from_dict(config)
        if unprovable_filter(filter.to_dict()) is not None:
            return False
        filter.state_from_json(canonical(state))
    except (ResiduaError, ValueError):
        return False
    return True


def test_no_configuration_is_proven_that_the_library_refuses() -> None:
    draw, refused, proven = random.Random(5), 0, 0
    for _ in range(300 * ROUNDS):
        config = mutated(draw, UNION.to_dict(), draw.choice((1, 1, 2)))
        try:
            state = _first_state(config)
        except (TypeError, ValueError):
            continue
        word = prove_first(config, state, {}).verdict
        if not _library_begins(config, state):
            refused += 1
            assert word != "proven", (config, state)
        proven += word == "proven"
    assert refused > 50 and proven > 5


@pytest.mark.parametrize(
    "config",
    [
        {"filters": []},
        {"filters": [{"kind": "pure", "eps": 1.0}] * 17},
        {"filters": [{"kind": "pure", "eps": 2.0}]},
        {"filters": [{"kind": "basic", "eps": 1.0, "delta": 0.5}] * 2},
        {"filters": [{"kind": "union", "eps": 1.0, "filters": [{"kind": "pure", "eps": 1.0}]}]},
        {"filters": [{"kind": "gdp", "mu": 1e5}]},
        {"filters": [{"kind": "pure", "eps": 1.0}], "delta": 0.0},
        {"filters": [{"kind": "pure", "eps": 1.0}, None]},
    ],
)
def test_configurations_that_promise_nothing_are_refuted(config: Any) -> None:
    config = {"kind": "union", "eps": 1.0, **config}
    state = {"kind": "union", "of": fingerprint(config), "parts": [None]}
    assert prove_first(config, state, {}).verdict == "refuted"


# -- what can be proven -------------------------------------------------------------------------


def test_a_union_takes_what_one_of_its_components_takes() -> None:
    draw, taken = Draw("unions"), 0
    for _ in range(300):
        try:
            query = draw.mechanism().to_dict()
        except ResiduaError:
            continue
        for union in (UNION, MANY):
            each = [unprovable(query, f.to_dict(), "add-remove") for f in union.filters]
            assert (unprovable(query, union.to_dict(), "add-remove") is None) == (None in each)
            taken += None in each
    assert taken > 50


def test_quotas_and_caps_may_be_unions(tmp_path: Any) -> None:
    pytest.importorskip("sqlalchemy")
    with rz.open_ledger(tmp_path / "b.db") as ledger:
        ledger.create_budget("cap", UNION)
        ledger.create_budget(
            "quota", rz.UnionFilter((rz.PureFilter(0.5), rz.GdpFilter(0.2))), parent="cap"
        )
        ledger.create_budget("plain", rz.PureFilter(0.9), parent="cap")
        assert ledger.spend("quota", m.PureDp(0.05)).admitted
        assert ledger.spend("plain", m.PureDp(0.05)).admitted
        assert ledger.spend("quota", m.Gaussian(sigma=40.0)).admitted
        assert not ledger.spend("plain", m.PureDp(0.7)).admitted
        held = ledger.reserve("quota", m.PureDp(0.01))
        assert held.admitted and ledger.spend("plain", m.PureDp(0.01)).admitted
        assert held.commit().admitted
        with pytest.raises(rz.ArgumentError, match="quotas or partitions under it"):
            ledger.create_budget("part", UNION, parent="cap", partition="north")
        report = ledger.verify()
        assert report.ok, report.text
