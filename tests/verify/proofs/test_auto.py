"""The automatic filter: what it opens into is checked, and its steps are those of a union."""

from __future__ import annotations

import json
import os
import random
from fractions import Fraction
from typing import Any

import pytest

import residua as rz
from residua import mechanisms as m
from residua.errors import ResiduaError
from residua.filters.union.auto import COMPONENTS, components_for
from residua.records import canonical
from residua.verify import verify_records
from residua.verify.descriptions.configurations import amount, fingerprint
from residua.verify.descriptions.mechanisms import StepQuery
from residua.verify.proofs.filters import prove_first, prove_step
from residua.verify.proofs.union import first_state
from residua.verify.proofs.verdict import Proof
from verify.mutations import mutated
from verify.written_chains import described, plain, written_by

pytestmark = pytest.mark.needs("flint")

ROUNDS = int(os.environ.get("RESIDUA_FUZZ", "1"))
AUTO = rz.AutoFilter(1.0, 1e-6)
STEPS = m.SubsampledGaussian(1.0, 0.01)
HEAVY = m.SubsampledGaussian(0.771, 0.00217)

RUNS: list[tuple[rz.AutoFilter, list[m.Mechanism]]] = [
    (AUTO, [m.PureDp(0.1), m.Laplace(20.0), m.Gaussian(sigma=40.0), m.PureDp(0.05)]),
    (AUTO, [m.PureDp(0.0), m.Gaussian(sigma=30.0), m.Zcdp(0.001), m.DiscreteGaussian(sigma=1e2)]),
    (AUTO, [m.Zcdp(0.002), m.PureDp(0.01)]),
    (AUTO, [m.ApproximateDp(0.1, 1e-8), m.PureDp(0.01), m.ApproximateDp(0.2, 1e-7)]),
    (rz.AutoFilter(3.0, 1e-6), [STEPS, m.SelfComposed(STEPS, 60), STEPS, m.PureDp(0.02)]),
    (rz.AutoFilter(3.0, 1e-6, (STEPS,)), [m.PureDp(0.1), m.SelfComposed(STEPS, 60)]),
    (AUTO, [m.SelfComposed(HEAVY, 2), m.SelfComposed(m.SubsampledGaussian(1.26, 0.00217), 45)]),
    (rz.AutoFilter(8.0, 1e-5), [m.PureDp(1.0), m.PureDp(4.0), m.Gaussian(sigma=3.0)]),
    (rz.AutoFilter(12.8, 1.61e-12, (STEPS,)), [m.Gaussian(sigma=4.144), m.PureDp(0.1)]),
]


@pytest.mark.parametrize(("auto", "queries"), RUNS)
def test_honest_runs_are_proven(auto: rz.AutoFilter, queries: list[m.Mechanism]) -> None:
    chain = written_by(auto, queries)
    report = verify_records({chain.name: chain.records}, chain.tables)
    assert report.ok, report.text.split("What this")[0]
    assert all(record.admitted for record in chain.records[1:])
    assert report.proven == len(queries) + 1


def _step(before: Any, after: Any, query: Any, auto: rz.AutoFilter = AUTO) -> Proof:
    return prove_step(
        auto.to_dict(), before, after, StepQuery(described(query), "add-remove", {}, {})
    )


def _run(*queries: m.Mechanism, auto: rz.AutoFilter = AUTO) -> list[Any]:
    """The states along a run, as records have them."""
    state, found = auto.initial(), []
    for query in queries:
        found.append(plain(auto, state))
        decision = auto.decide(state, query)
        assert decision.admitted
        state = decision.state
    return [*found, plain(auto, state)]


def _copy(state: Any) -> Any:
    return json.loads(json.dumps(state))


def _with_filter(state: Any, place: int, **fields: Any) -> Any:
    """A component with other parameters, and a part that belongs to it."""
    made = _copy(state)
    made["filters"][place].update(fields)
    if made["parts"][place] is not None:
        made["parts"][place]["of"] = fingerprint(made["filters"][place])
    return made


def _amounts(state: Any) -> list[Fraction]:
    left = state["left"]
    found = [*(left if isinstance(left, list) else [left]), state.get("variance", "0")]
    return [Fraction(each) if type(each) is int else amount(each) for each in found]


def test_first_states_are_at_least_the_librarys() -> None:
    for eps, delta in ((1.0, 1e-6), (3.0, 1e-6), (8.0, 1e-5), (0.01, 1e-9), (50.0, 0.1)):
        for loss in (
            rz.pure_dp(0.1),
            rz.subsampled_gaussian(1.0, 0.01),
            rz.approximate_dp(1, 1e-9),
        ):
            for component in components_for(eps, delta, (loss,)):
                own, ours = plain(component, component.initial()), first_state(component.to_dict())
                assert own.keys() == ours.keys() and own["of"] == ours["of"]
                for had, has in zip(_amounts(own), _amounts(ours), strict=True):
                    assert had <= has <= had * (1 + Fraction(1, 10**9))
                assert prove_first(component.to_dict(), ours, {}).verdict == "proven"


def test_nothing_is_chosen_at_the_start() -> None:
    first, after = _run(m.PureDp(0.1))
    assert prove_first(AUTO.to_dict(), first, {}).verdict == "proven"
    assert prove_first(AUTO.to_dict(), after, {}).verdict == "refuted"


def test_components_that_promise_too_much_are_refuted() -> None:
    first, after = _run(m.PureDp(0.1))
    later = _run(m.PureDp(0.1), m.PureDp(0.05))[-1]
    for place in range(len(after["filters"])):
        has_delta = "delta" in after["filters"][place]
        changes = [({"eps": 1.5}, "eps"), *[({"delta": 9.95e-7}, "deltas")] * has_delta]
        for fields, word in changes:
            proof = _step(first, _with_filter(after, place, **fields), m.PureDp(0.1))
            assert proof.verdict == "refuted" and word in proof.reason
            forged = _with_filter(after, place, **fields), _with_filter(later, place, **fields)
            assert _step(*forged, m.PureDp(0.05)).verdict == "refuted"


def test_components_that_change_are_refuted() -> None:
    _, after, later = _run(m.PureDp(0.1), m.PureDp(0.05))
    assert _step(after, later, m.PureDp(0.05)).verdict == "proven"
    swapped = _copy(later)
    swapped["filters"].reverse()
    swapped["parts"].reverse()
    proof = _step(after, swapped, m.PureDp(0.05))
    assert proof.verdict == "refuted" and proof.reason == "the components change"
    smaller = _with_filter(later, 0, delta=1e-7)
    assert _step(after, smaller, m.PureDp(0.05)).verdict == "refuted"
    emptied = {**later, "filters": [], "parts": []}
    assert _step(after, emptied, m.PureDp(0.05)).verdict == "refuted"
    assert _step(after, emptied, m.PureDp(0.0)).verdict == "refuted"


def test_components_of_other_kinds_are_refuted() -> None:
    first, _ = _run(m.PureDp(0.1))
    for other in (rz.GdpFilter(0.1), rz.ApproximateZcdpFilter(1.0, 1e-7), rz.AutoFilter(1.0, 1e-7)):
        state = other.decide(other.initial(), m.PureDp(0.1)).state
        after = {**first, "filters": [other.to_dict()], "parts": [plain(other, state)]}
        assert other.kind not in COMPONENTS
        assert _step(first, after, m.PureDp(0.1)).verdict == "refuted"


def test_a_component_that_does_not_pay_is_refuted() -> None:
    first, after, later = _run(m.PureDp(0.1), m.PureDp(0.05))
    for place, component in enumerate(after["filters"]):
        opened = _copy(after)
        opened["parts"][place] = first_state(component)
        assert _step(first, opened, m.PureDp(0.1)).verdict == "refuted"
        again = _copy(later)
        again["parts"][place] = after["parts"][place]
        assert _step(after, again, m.PureDp(0.05)).verdict == "refuted"


def test_a_component_that_starts_with_too_much_is_refuted() -> None:
    first, after = _run(m.Gaussian(sigma=40.0))
    for place, part in enumerate(after["parts"]):
        if part is None:
            continue
        richer = _copy(after)
        richer["parts"][place]["left"] = str(amount(part["left"]) * 2)
        assert _step(first, richer, m.Gaussian(sigma=40.0)).verdict == "refuted"


def test_a_component_that_comes_back_is_refuted() -> None:
    _, stopped, later = _run(m.Zcdp(0.002), m.PureDp(0.01))
    place = stopped["parts"].index(None)
    revived = _copy(later)
    revived["parts"][place] = first_state(later["filters"][place])
    proof = _step(stopped, revived, m.PureDp(0.01))
    assert proof.verdict == "refuted" and f"component {place} comes back" in proof.reason


def test_nothing_opens_without_a_query() -> None:
    first, after = _run(m.PureDp(0.1))
    proof = _step(first, first, m.PureDp(0.1))
    assert proof.verdict == "refuted" and "no component" in proof.reason
    assert _step(first, first, m.PureDp(0.0)).verdict == "proven"
    dead = {**after, "parts": [None] * len(after["parts"])}
    assert _step(first, dead, m.PureDp(0.1)).verdict == "refuted"


def test_no_state_is_proven_that_the_library_does_not_read() -> None:
    draw, refused = random.Random(7), 0
    first, after, later = _run(m.PureDp(0.1), m.PureDp(0.05))
    for _ in range(200 * ROUNDS):
        before, state, query = draw.choice(
            [(first, after, m.PureDp(0.1)), (after, later, m.PureDp(0.05))]
        )
        forged = mutated(draw, state, draw.choice((1, 1, 2)))
        try:
            AUTO.state_from_json(canonical(forged))
        except (ResiduaError, ValueError, TypeError):
            refused += 1
            assert _step(before, forged, query).verdict != "proven", forged
    assert refused > 100
