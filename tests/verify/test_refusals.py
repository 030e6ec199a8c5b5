"""What the library refuses, the verifier never proves: both read the same forged descriptions."""

from __future__ import annotations

import json
import os
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import residua as rz
from filters.catalogue import CATALOGUE, DESCRIBED
from mechanisms.examples import GOLDEN
from residua import mechanisms as m
from residua.errors import ResiduaError
from residua.filters.codec import from_dict as filter_from_dict
from residua.filters.query import as_mechanism
from residua.ledger.domain.described_query import describe_query
from residua.provable import unprovable_filter
from residua.records import NOTHING_BEFORE, canonical, digest
from residua.verify import verify_records
from verify.mutations import mutated
from verify.written_chains import Written, plain, written_by

pytestmark = pytest.mark.needs("flint")

ROUNDS = int(os.environ.get("RESIDUA_FUZZ", "1"))
"""How many times as many cases as usual: a long run sets it."""

RELATIONS = ("add-remove", "replace-one", "zero-out")
GENEROUS: list[rz.Filter] = [
    rz.PureFilter(600.0),
    rz.BasicFilter(600.0, 0.9),
    rz.RenyiFilter(2.0, 1e6),
    rz.RenyiCurveFilter({1.5: 1e6, 8.0: 1e6}),
    rz.ZcdpFilter(1e6),
    rz.ApproximateZcdpFilter(600.0, 0.9, 0.1),
    rz.GdpFilter(60.0),
    rz.GdpResidueFilter(60.0),
    rz.ApproximateGdpResidueFilter(60.0, 0.9),
]


def proven(config: Any, before: Any, after: Any, mechanism: Any, relation: str) -> bool:
    """Whether a step is proven; it ends soon whatever is asked."""
    from residua.verify.chains.steps import measured
    from residua.verify.descriptions.mechanisms import StepQuery, units_of
    from residua.verify.proofs.filters import prove_step

    asked = StepQuery(mechanism, relation, {}, {})
    proof, _ = measured(partial(prove_step, config, before, after, asked), 0.2)
    # A declared unit is compared with the budget's where chains are checked.
    return proof.verdict == "proven" and set(units_of(mechanism)) <= {"person"}


def library_reads(mechanism: Any, relation: str) -> bool:
    """Whether a ledger would take this as a query under a relation."""
    try:
        query = describe_query(canonical(mechanism))
        return query.contradicts(relation, "person") is None
    except (ResiduaError, ValueError):
        return False


@pytest.mark.parametrize("place", range(len(GOLDEN)), ids=lambda place: GOLDEN[place][1][:60])
def test_no_description_is_proven_that_the_library_refuses(place: int) -> None:
    draw = random.Random(place)
    whole = [plain(f, f.initial()) for f in GENEROUS]
    nothing = [{**state, "left": ["0"] * len(state["left"])} for state in whole]
    refused = 0
    for _ in range(25 * ROUNDS):
        made = mutated(draw, GOLDEN[place][0].to_dict(), draw.choice((1, 1, 2)))
        relation = draw.choice(RELATIONS)
        if library_reads(made, relation):
            continue
        refused += 1
        for filter, before, after in zip(GENEROUS, whole, nothing, strict=True):
            bad = proven(filter.to_dict(), before, after, made, relation)
            assert not bad, (filter, relation, made)
    assert refused > 0


@pytest.mark.parametrize("mechanism", [
    {"kind": "from_atoms", "losses": [0.0], "masses": [0.5], "mass_at_infinity": 0.0},
    {"kind": "from_atoms", "losses": [0.0, 3.0], "masses": [1.0, None]},
    {"kind": "from_atoms", "losses": [0.0, 3.0], "masses": [0.5, 0.1]},
    {"kind": "from_atoms", "losses": [-1.0], "masses": [1.0]},
    {"kind": "laplace", "scale": 9.0, "sensitivty": 100.0},
    {"kind": "gaussian", "sigma": 9.0, "note": ""},
    {"kind": "pure_dp", "eps": 0.1, "unit": 5},
    {"kind": "pure_dp", "eps": 0.1, "relation": "remove"},
    {"kind": "pure_dp", "eps": 0.1, "version": True},
    {"kind": "poisson_sampled", "sampling_rate": 0.0,
     "mechanism": {"kind": "gaussian", "sigma": 9.0, "sensitvity": 4.0}},
    {"kind": "from_tradeoff", "alphas": [0.0, 0.1, 0.2, 1.0], "betas": [1.0, 0.2, 0.7, 0.0]},
    {"kind": "self_composed", "count": 2**53 + 1, "mechanism": {"kind": "pure_dp", "eps": 0.0}},
    {"kind": "composed", "mechanisms": []},
    {"kind": "randomized_response", "eps": 0.1, "noise_parameter": 0.5},
], ids=canonical)  # fmt: skip
def test_descriptions_that_were_proven_once(mechanism: Any) -> None:
    assert not library_reads(mechanism, "zero-out")
    filter = rz.BasicFilter(600.0, 0.9)
    before = plain(filter, filter.initial())
    after = {**before, "left": ["0", "0"]}
    assert not proven(filter.to_dict(), before, after, mechanism, "zero-out")


# -- configurations and states ------------------------------------------------------------------


def _first_is_proven(config: Any, state: Any, tables: dict[str, bytes]) -> bool:
    from residua.verify.chains.steps import measured
    from residua.verify.proofs.filters import prove_first

    return measured(partial(prove_first, config, state, tables), 1.0)[0].verdict == "proven"


def _library_begins(config: Any, state: Any) -> bool:
    """Whether the library has such a filter, and such a state of it."""
    try:
        filter = filter_from_dict({**config, **_labels(config)})
        if unprovable_filter(filter.to_dict()) is not None:
            return False
        if filter.kind == "additive_profile":
            return True
        if filter.kind in LABELS:
            return filter.to_json() == canonical(config)
        filter.state_from_json(canonical(state))
    except (ResiduaError, ValueError):
        return False
    return True


def _labels(config: Any) -> dict[str, Any]:
    """Of an additive profile, the natural budget: any that is one will do beside its target."""
    label = config.get("kind") == "additive_profile" if isinstance(config, dict) else False
    one = label and all(type(config.get(name)) is float for name in ("eps", "delta"))
    if not one or not (1e-9 <= config["eps"] <= 100.0 and 1e-30 <= config["delta"] < 1.0):
        return {}
    return {"eps": 1.0, "delta": 0.001}


LABELS = ("menu", "auto", "additive_profile")
"""Filters whose tables are proven to keep the target: menus and natural budgets only name them."""


@pytest.mark.parametrize("name", DESCRIBED)
def test_no_configuration_is_proven_that_the_library_refuses(name: str) -> None:
    from residua.verify.descriptions.configurations import fingerprint

    draw = random.Random(name)
    filter = CATALOGUE[name].make()
    first, tables = plain(filter, filter.initial()), filter.tables(filter.initial())
    assert _first_is_proven(filter.to_dict(), first, tables)
    refused = 0
    for _ in range(60 * ROUNDS):
        config = mutated(draw, filter.to_dict(), draw.choice((1, 1, 2)))
        state = {**first, "of": fingerprint(config)}
        if isinstance(config, dict) and draw.random() < 0.5:
            state["kind"] = config.get("kind")
        if not _library_begins(config, state):
            refused += 1
            assert not _first_is_proven(config, state, tables), (config, state)
    assert refused > 0


@pytest.mark.parametrize("name", DESCRIBED)
def test_no_state_is_proven_that_the_library_refuses(name: str) -> None:
    from residua.verify.chains.steps import measured
    from residua.verify.descriptions.mechanisms import StepQuery
    from residua.verify.proofs.filters import prove_step

    draw = random.Random(name)
    entry = CATALOGUE[name]
    chain = written_by(entry.make(), [as_mechanism(entry.part)] * 2)
    config = chain.filter.to_dict()
    step = json.loads(chain.records[2].text)
    tables = [{n: chain.tables[h] for n, h in r.body["tables"].items()} for r in chain.records[1:]]
    asked = StepQuery(step["mechanism"], "add-remove", *tables)
    refused = 0
    for _ in range(40 * ROUNDS):
        after = mutated(draw, step["after"])
        try:
            chain.filter.state_from_json(canonical(after))
        except (ResiduaError, ValueError):
            refused += 1
            claim = partial(prove_step, config, step["before"], after, asked)
            assert measured(claim, 1.0)[0].verdict != "proven", after
    assert refused > 0


# -- chains -------------------------------------------------------------------------------------


def _problems(*chains: Written) -> list[str]:
    report = verify_records({c.name: c.records for c in chains}, {})
    return [problem.what for problem in report.problems]


def test_a_state_that_cannot_be_read_is_refuted() -> None:
    from residua.verify.descriptions.configurations import fingerprint
    from residua.verify.proofs.filters import prove_first

    config = json.loads(rz.RenyiCommitFilter(1.0, 1e-6).to_json())
    state = {"kind": "renyi_commit", "of": fingerprint(config), "left": 5, "committed": True}
    proof = prove_first(config, {**state, "to": None, "inner": None}, {})
    assert proof == ("refuted", "an amount must be a string, got 5")


def test_a_bound_needs_a_relation_or_the_word_of_whoever_asked() -> None:
    chain = written_by(rz.ZcdpFilter(1.0), [m.Zcdp(0.1)])
    assert verify_records({"b": chain.records}, {}).ok
    body = json.loads(chain.records[1].text)
    for assumed in (False, None, 1, "true"):
        texts = [chain.records[0].text, canonical({**body, "assumed": assumed})]
        report = verify_records({"b": texts}, {})
        assert report.exit_code == 1, assumed
    declared = {**body["mechanism"], "relation": "add-remove"}
    texts = [chain.records[0].text, canonical({**body, "assumed": False, "mechanism": declared})]
    assert verify_records({"b": texts}, {}).ok


def test_a_budget_is_not_spent_three_times_within_milliseconds() -> None:
    chain = Written(rz.PureFilter(1.0), window=0.001)
    state = plain(chain.filter, chain.filter.initial())
    for generation in (1, 2, 3):
        chain.spend(m.PureDp(1.0))
        chain.append("refresh", {"generation": generation, "tables": {}, "state": state})
        chain.state = chain.filter.initial()
    report = verify_records({"b": chain.records}, {})
    assert report.exit_code == 1
    assert any(
        "window must be null or at least 1 s, got 0.001" in problem.what
        for problem in report.problems
    )


# -- chains that are forged field by field ------------------------------------------------------


def _honest(directory: Path) -> list[dict[str, Any]]:
    """The records of a ledger in which most things happened."""
    ledger = rz.open_ledger(f"sqlite:///{directory}/honest.db", principal="me")
    ledger.create_budget("b", rz.BasicFilter(2.0, 1e-3), data="census")
    ledger.spend("b", m.PureDp(0.5), key="one")
    ledger.spend("b", m.Zcdp(0.0, 0.25), key="two", assume_budget_relation=True)
    held = ledger.reserve("b", m.ApproximateDp(0.25, 1e-4), key="three")
    other = ledger.reserve("b", m.PureDp(0.125), key="held as well")
    ledger.spend("b", m.PureDp(0.125), key="beside")
    ledger.spend("b", m.PureDp(9.0), key="too much")
    ledger.commit(held.id, key="four")
    ledger.commit(other.id, key="last of all")
    ledger.cancel(ledger.reserve("b", m.PureDp(0.25), key="five").id)
    ledger.retire("b", "done")
    return [json.loads(record.text) for record in ledger.history("b")]


def _linked(bodies: list[Any]) -> list[str] | None:
    """Records with these bodies, linked anew by whoever forged them; None where one is none."""
    texts: list[str] = []
    for body in bodies:
        if not isinstance(body, dict):
            return None
        prev = digest(texts[-1]) if texts else NOTHING_BEFORE
        made = {**body, "prev": prev}
        for member in made["group"] if isinstance(made.get("group"), list) else ():
            if isinstance(member, dict) and member.get("budget") == made.get("budget"):
                member["prev"] = prev
        texts.append(canonical(made))
    return texts


def _ledger_writes(bodies: list[dict[str, Any]], directory: Path) -> bool:
    """Whether a ledger that is asked for the same, in this order, does all of it."""
    ledger = rz.open_ledger(f"sqlite:///{directory}/again.db")
    holds: dict[str, str] = {}
    try:
        for body in bodies:
            mine, kind = ledger.as_principal(body["by"]), body["type"]
            if body.get("admitted") is False:
                continue  # nothing is claimed of what was refused
            if kind == "create":
                fields = ("relation", "unit", "parent", "partition", "data", "window")
                given = {name: body[name] for name in (*fields, "shares_data")}
                mine.create_budget(body["budget"], body["filter"], **given)
            elif kind in ("spend", "hold"):
                ask = mine.spend if kind == "spend" else mine.reserve
                assumed = {"assume_budget_relation": body["assumed"]}
                answer = ask(body["budget"], body["mechanism"], body["key"], **assumed)
                if answer.replayed or not answer.admitted:
                    return False
                if kind == "hold":
                    holds[body["hold"]] = answer.id
            elif kind == "commit":
                if not mine.commit(holds[body["hold"]], body["key"]).admitted:
                    return False
            elif kind == "cancel" and body["hold"] in holds:
                mine.cancel(holds[body["hold"]])
            elif kind == "retire":
                mine.retire(body["budget"], body["reason"])
    except (ResiduaError, ValueError, KeyError, TypeError):
        return False
    return True


@pytest.mark.needs("sqlalchemy")
def test_no_forged_chain_is_proven_that_a_ledger_would_not_write(tmp_path: Path) -> None:
    draw = random.Random(7)
    honest = _honest(tmp_path)
    texts = _linked(honest)
    assert texts is not None and verify_records({"b": texts}, {}).ok
    assert _ledger_writes(honest, tmp_path)
    proven = 0
    for number in range(150 * ROUNDS):
        bodies = json.loads(json.dumps(honest))
        at = draw.randrange(len(bodies))
        name = draw.choice(sorted(bodies[at]))
        bodies[at][name] = mutated(draw, bodies[at][name])
        if draw.random() < 0.1:
            bodies.insert(draw.randrange(1, len(bodies)), bodies[at])
            for seq, body in enumerate(bodies):
                body["seq"] = seq
        forged = _linked(bodies)
        if forged is None or not verify_records({"b": forged}, {}, limit=0.5).ok:
            continue
        proven += 1
        where = tmp_path / str(number)
        where.mkdir()
        assert _ledger_writes(bodies, where), (at, name, bodies[at])
    assert proven > 0
