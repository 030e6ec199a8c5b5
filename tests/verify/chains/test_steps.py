"""Every filter and every mechanism: honest steps are proven, dishonest ones are not."""

from __future__ import annotations

import dataclasses
import json
import struct
from fractions import Fraction
from typing import Any

import pytest

import residua as rz
from filters.catalogue import CATALOGUE, DESCRIBED
from mechanisms.examples import GOLDEN
from residua import mechanisms as m
from residua.filters import amounts
from residua.filters.amounts import Left
from residua.filters.potential.renyi_commit import Commit
from residua.filters.query import as_mechanism
from residua.provable import unprovable
from residua.records import canonical, digest
from residua.verify import Report, verify_records
from residua.verify.descriptions.mechanisms import loss_of
from residua.verify.proofs.filters import FIXED_COSTS, KINDS
from residua.verify.proofs.gaussian_budget import gdp_residue
from residua.verify.proofs.order import basic
from verify.written_chains import Written, plain, written_by

pytestmark = pytest.mark.needs("flint")


def verified(chain: Written) -> Report:
    return verify_records({chain.name: chain.records}, chain.tables)


def shown(report: Report) -> str:
    return report.text.split("What this")[0]


def test_the_verifier_knows_whose_costs_add_up() -> None:
    """Otherwise steps beside an open hold are undecided."""
    made = [CATALOGUE[name].make() for name in DESCRIBED]
    fixed = {filter.kind for filter in made if getattr(filter, "fixed_costs", False)}
    assert fixed & set(KINDS) == set(FIXED_COSTS)


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_filter_of_the_catalogue_is_proven(name: str) -> None:
    entry = CATALOGUE[name]
    chain = written_by(entry.make(), [as_mechanism(entry.part)] * (entry.times + 1))
    report = verified(chain)
    assert report.ok, shown(report)
    assert report.proven == entry.times + 1
    assert [r.admitted for r in chain.records[1:]] == [True] * entry.times + [False]


def _filters() -> list[rz.Filter]:
    return [
        rz.PureFilter(50.0),
        rz.BasicFilter(50.0, 0.5),
        rz.RenyiFilter(3.5, 50.0),
        rz.RenyiCurveFilter({1.5: 50.0, 8.0: 80.0}),
        rz.ZcdpFilter(50.0),
        rz.ApproximateZcdpFilter(50.0, 0.5, 0.1),
        rz.GdpFilter(9.0),
        rz.GdpResidueFilter(9.0),
        rz.ApproximateGdpResidueFilter(9.0, 0.2),
    ]


@pytest.mark.parametrize("mechanism", [g[0] for g in GOLDEN], ids=[g[1][:70] for g in GOLDEN])
def test_every_mechanism_under_every_sum(mechanism: m.Mechanism) -> None:
    relation = "add-remove" if "add-remove" in mechanism.supported else mechanism.supported[0]
    for filter in _filters():
        if _slow(mechanism, filter):
            continue
        chain = Written(filter, relation=relation)
        if not chain.spend(mechanism):
            continue
        step = verified(chain).steps[-1]
        assert step.verdict != "refuted", (filter, step)
        if step.verdict == "undecided":
            assert _has_no_formula(mechanism, filter), (filter, step)


def _slow(mechanism: m.Mechanism, filter: rz.Filter) -> bool:
    """What takes seconds to decide or to prove is left to a few tests of its own."""
    inner = (mechanism, *mechanism.parts)
    if filter.kind == "approximate_gdp_residue":
        wide = m.SubsampledGaussian | m.MixtureOfGaussians | m.DiscreteGaussian | m.PoissonSampled
        return any(isinstance(part, wide | m.Zcdp | m.Rdp) for part in inner)
    sampled = isinstance(mechanism, m.PoissonSampled | m.SampledWithoutReplacement)
    continuous = any(isinstance(part, m.Laplace | m.ExponentialMechanism) for part in inner)
    return sampled and continuous and filter.kind not in ("pure", "renyi")


def _has_no_formula(mechanism: m.Mechanism, filter: rz.Filter) -> bool:
    if isinstance(mechanism, m.SampledWithoutReplacement):
        return isinstance(mechanism.mechanism, m.Laplace)
    relation = "add-remove" if "add-remove" in mechanism.supported else mechanism.supported[0]
    return unprovable(mechanism.to_dict(), filter.to_dict(), relation) is not None


MIXED: list[tuple[str, Any, list[Any]]] = [
    ("menu", lambda: rz.MenuFilter(1.0, 1e-6, [rz.pure_dp(0.25)], [100]),
     [m.PureDp(0.25), m.Laplace(8.0), m.PureDp(0.1)]),
    ("menu without prices", lambda: rz.MenuFilter(1.0, 1e-6, [rz.pure_dp(0.1)]),
     [m.PureDp(0.1), m.PureDp(0.1), m.Gaussian(sigma=30.0)]),
    ("auto", lambda: rz.AutoFilter(1.0, 1e-6),
     [m.PureDp(0.1), m.PureDp(0.1), m.Laplace(10.0), m.Gaussian(sigma=30.0),
      m.SelfComposed(m.PureDp(0.01), 5)]),
    ("auto, Gaussians", lambda: rz.AutoFilter(1.0, 1e-6),
     [m.Gaussian(sigma=20.0)] * 3 + [m.Composed((m.PureDp(0.02), m.Laplace(40.0)))]),
    ("plan", lambda: rz.PlanFilter(1.0, 1e-6, [m.Gaussian(sigma=20.0), m.PureDp(0.05)] * 5),
     [m.Gaussian(sigma=20.0), m.PureDp(0.05), m.PureDp(0.02), m.Gaussian(sigma=25.0)]),
    ("plan of Laplace", lambda: rz.PlanFilter(1.0, 1e-6, [m.Laplace(10.0)] * 12),
     [m.Laplace(10.0), m.Laplace(12.0)]),
    ("plan, off it", lambda: rz.PlanFilter(1.0, 1e-6, [m.PureDp(0.05)] * 20),
     [m.PureDp(0.13), m.Laplace(10.0), m.PureDp(0.05)]),
    ("plan of Gaussians, off it", lambda: rz.PlanFilter(1.0, 1e-6, [m.Gaussian(sigma=20.0)] * 20),
     [m.Laplace(15.0), m.PureDp(0.08), m.Gaussian(sigma=15.0)]),
    ("plan of Laplace, off it", lambda: rz.PlanFilter(1.0, 1e-6, [m.Laplace(20.0)] * 12),
     [m.Laplace(25.0), m.PureDp(0.04)]),
    ("plan of coins, off it", lambda: rz.PlanFilter(1.0, 1e-6, [m.PureDp(0.05)] * 12),
     [m.Laplace(12.0), m.PureDp(0.08)]),
    ("natural, any queries", lambda: rz.NaturalFilter(rz.approximate_dp(0.5, 1e-3), rounds=20),
     [m.PureDp(0.1), m.Laplace(10.0), m.PureDp(0.2)]),
    ("natural, one query", lambda: rz.NaturalFilter(rz.gaussian(mu=1.0), catalogue=[
        rz.pure_dp(0.1), rz.pure_dp(0.1) + rz.pure_dp(0.1)]), [m.PureDp(0.1), m.PureDp(0.1)]),
    ("natural", lambda: rz.NaturalFilter(rz.pure_dp(1.0)),
     [m.PureDp(0.1), m.Laplace(10.0), m.PureDp(0.3)]),
    ("gdp", lambda: rz.GdpFilter(1.0),
     [m.Composed((m.Gaussian(sigma=4.0), m.PureDp(0.1))), m.Laplace(4.0)]),
    ("gdp_residue", lambda: rz.GdpResidueFilter(1.0),
     [m.Composed((m.Gaussian(sigma=4.0), m.PureDp(0.1))), m.SelfComposed(m.PureDp(0.1), 6),
      m.RandomizedResponse(eps=0.3, num_buckets=5), m.DiscreteLaplace(5.0, 2)]),
    ("approximate_gdp_residue", lambda: rz.ApproximateGdpResidueFilter.within(1.0, 1e-6),
     [m.TruncatedLaplace(10.0, 150.0), m.ApproximateDp(0.1, 1e-8), m.Laplace(10.0)]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "make", "queries"), MIXED, ids=[each[0] for each in MIXED])
def test_mixed_runs_are_proven(name: str, make: Any, queries: list[Any]) -> None:
    relation = "replace-one" if name == "gdp_residue" else "add-remove"
    chain = written_by(make(), queries, relation=relation)
    report = verified(chain)
    assert report.ok, shown(report)
    assert all(r.admitted for r in chain.records[1:])


@pytest.mark.parametrize("mass", [1e-30, 1e-45, 1e-150, 1e-280])
@pytest.mark.parametrize("loss", [-1.2, 0.3, 1.9])
def test_tiny_masses_are_proven_by_their_parameter(mass: float, loss: float) -> None:
    query = m.FromAtoms((loss, 0.0), (mass, 1.0 - mass))  # as given `E e^-Z` is 1 within 1e-12
    state = rz.GdpResidueFilter(1.0).check(query).state
    assert isinstance(state, Left)
    loss_again = loss_of(json.loads(query.to_json()), "add-remove")
    assert gdp_residue(Fraction(1), state.left[0], loss_again).verdict == "proven"


@pytest.mark.parametrize(
    "filter",
    [
        rz.ApproximateZcdpFilter(3.0, 1e-3, 5e-4),
        rz.ApproximateZcdpFilter(3.0, 1e-3, 5e-4, conversion="whitehouse"),
    ],
    ids=repr,
)
def test_approximate_zcdp_is_proven(filter: rz.Filter) -> None:
    box = m.Zcdp(0.01, delta=1e-4, relation="add-remove")
    queries = [box, m.SelfComposed(box, 2), m.Zcdp(0.0, delta=1e-5, relation="add-remove")]
    chain = written_by(filter, queries)
    assert all(r.admitted for r in chain.records[1:])
    report = verified(chain)
    assert report.ok, shown(report)


@pytest.mark.parametrize(
    ("delta", "verdict"),
    [("0.01001", "proven"), ("0.010001", "undecided"), ("0.0099", "undecided")],
)
def test_approximate_zcdp_converts_with_what_its_delta_leaves(delta: str, verdict: str) -> None:
    """By the conversion 0.01-zCDP is (0.6, 1e-5)-DP, and (0.6, 1e-6)-DP at no order."""
    box = {"kind": "zcdp", "rho": 0.01, "delta": 0.01, "relation": "add-remove"}
    loss = loss_of(box, "add-remove")
    assert basic((Fraction("0.6"), Fraction(delta)), loss).verdict == verdict


def test_a_delta_that_is_not_charged_is_refuted() -> None:
    filter = rz.ApproximateZcdpFilter(3.0, 1e-3, 5e-4)
    chain = written_by(filter, [m.Zcdp(0.01, delta=1e-4, relation="add-remove")])
    before, after = filter.initial(), chain.state
    assert isinstance(before, Left) and isinstance(after, Left)
    free = (after.left[0], before.left[1])
    assert _verdicts(chain, _with_left(chain, free)) == "refuted"


def test_asymmetric_queries_are_proven_in_both_directions() -> None:
    one_way = m.FromTradeoff((0.0, 0.25, 1.0), (1.0, 0.5, 0.0))
    for filter in (rz.GdpResidueFilter(3.0), rz.RenyiFilter(4.0, 5.0), rz.ZcdpFilter(5.0)):
        report = verified(written_by(filter, [one_way]))
        assert report.ok, shown(report)


def test_ratios_that_are_worked_out_are_charged_in_full() -> None:
    """`1/scale` is no decimal that someone wrote: its rounding must not cost too little."""
    for k in range(60):
        scale = 0.5 + 0.3217 * k
        chain = written_by(rz.PureFilter(50.0), [m.DiscreteLaplace(scale), m.ReportNoisyMax(scale)])
        report = verified(chain)
        assert report.ok, (scale, shown(report))


def test_laws_above_prove_what_has_no_list_of_outcomes(thorough: bool) -> None:
    chain = written_by(rz.GdpResidueFilter(1.0), [m.Composed((m.PureDp(0.1), m.Laplace(10.0)))])
    assert verified(chain).ok
    if not thorough:
        return
    slack = rz.ApproximateGdpResidueFilter.within(1.0, 1e-6)
    assert verified(written_by(slack, [m.SubsampledGaussian(1.0, 0.01)])).ok


def test_commits_are_proven() -> None:
    filter = rz.RenyiCommitFilter(1.0, 1e-6)
    after = filter.decide(filter.initial(), m.Gaussian(sigma=20.0)).state
    to = filter.largest_gaussian(after)
    chain = written_by(
        filter, [m.Gaussian(sigma=20.0), Commit(to), m.Gaussian(sigma=20.0), m.Laplace(20.0)]
    )
    assert verified(chain).ok
    batch = written_by(filter, [m.Gaussian(sigma=20.0), Commit([rz.pure_dp(0.1)] * 5)])
    assert verified(batch).ok


def test_a_commit_beyond_the_potential_is_refuted() -> None:
    filter = rz.RenyiCommitFilter(1.0, 1e-6)
    to = filter.largest_gaussian(filter.initial())
    chain = written_by(filter, [Commit(to)])
    more = rz.GdpResidueFilter(to.mu * 1.001)
    body = json.loads(chain.records[1].text)
    body["mechanism"]["to"] = body["after"]["to"] = more.to_dict()
    inner = plain(more, more.initial())
    del inner["kind"]
    body["after"]["inner"] = inner
    assert _verdicts(chain, body) == "refuted"


# -- cheating -----------------------------------------------------------------------------------


def _verdicts(chain: Written, body: dict[str, Any]) -> str:
    """The verdict on the first step after its record was replaced."""
    texts = [*chain.texts()[:1], canonical(body)]
    report = verify_records({chain.name: texts}, chain.tables)
    assert not report.problems, report.problems
    return report.steps[1].verdict


def _with_left(chain: Written, left: tuple[Fraction, ...]) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(chain.records[1].text)
    body["after"]["left"] = [amounts.text(each) for each in left]
    return body


CHEATS: list[tuple[rz.Filter, m.Mechanism]] = [
    (rz.PureFilter(1.0), m.PureDp(0.1)),
    (rz.BasicFilter(1.0, 1e-3), m.ApproximateDp(0.1, 1e-4)),
    (rz.RenyiFilter(8.0, 1.0), m.Laplace(5.0)),
    (rz.RenyiCurveFilter({2: 0.25, 8: 1}), m.PureDp(0.2)),
    (rz.ZcdpFilter(0.5), m.Laplace(2.0)),
    (rz.ApproximateZcdpFilter(1.0, 1e-3, 5e-4), m.ApproximateDp(0.1, 1e-4)),
    (rz.ApproximateZcdpFilter(1.0, 1e-3, 5e-4), m.Zcdp(0.01, delta=1e-4, relation="add-remove")),
    (rz.GdpFilter(1.0), m.Laplace(4.0)),
    (rz.GdpResidueFilter(1.0), m.Laplace(4.0)),
    (rz.GdpResidueFilter(1.0), m.FromTradeoff((0.0, 0.25, 1.0), (1.0, 0.6875, 0.0))),
    (rz.ApproximateGdpResidueFilter(1.0, 1e-3), m.Laplace(4.0)),
    (rz.AdditiveProfileFilter(1.0, 1e-3, 4), m.PureDp(0.01)),
]


@pytest.mark.parametrize(("filter", "query"), CHEATS, ids=[c[0].kind for c in CHEATS])
@pytest.mark.parametrize("share", [Fraction(1, 2), 1 - Fraction(1, 10**5)])
def test_a_state_that_keeps_too_much_is_refuted(
    filter: rz.Filter, query: m.Mechanism, share: Fraction
) -> None:
    chain = written_by(filter, [query])
    before, after = filter.initial(), chain.state
    assert isinstance(before, Left)
    assert isinstance(after, Left)
    kept = tuple(a - (a - b) * share for a, b in zip(before.left, after.left, strict=True))
    assert _verdicts(chain, _with_left(chain, after.left)) == "proven"
    assert _verdicts(chain, _with_left(chain, kept)) == "refuted"
    risen = tuple(a + a / 1000 for a in before.left)
    assert _verdicts(chain, _with_left(chain, risen)) == "refuted"


def test_the_reverse_direction_is_looked_at() -> None:
    """A residue that would do for `x >= 1` alone."""
    mu = 3.0
    for betas in ((1.0, 0.6, 0.0), (1.0, 0.05, 0.0)):
        query = m.FromTradeoff((0.0, 0.05 if betas[1] == 0.6 else 0.6, 1.0), betas)
        chain = written_by(rz.GdpResidueFilter(mu), [query])
        assert chain.records[1].admitted
        left = chain.state.left[0]  # type: ignore[attr-defined]
        verdicts = set()
        for tenths in range(1, 10):
            kept = left + (Fraction(mu) ** 2 - left) * Fraction(tenths, 10)
            verdicts.add(_verdicts(chain, _with_left(chain, (kept,))))
        assert verdicts == {"refuted"}


def test_a_first_state_that_is_too_rich_is_refuted() -> None:
    for filter in (rz.PureFilter(1.0), rz.ApproximateZcdpFilter(1.0, 1e-6, conversion="whitehouse"),
                   rz.RenyiCommitFilter(1.0, 1e-6)):  # fmt: skip
        chain = Written(filter)
        body = json.loads(chain.records[0].text)
        left = body["state"]["left"]
        one = left if isinstance(left, str) else left[0]
        richer = amounts.text(Fraction(one) * Fraction(1001, 1000))
        body["state"]["left"] = richer if isinstance(left, str) else [richer, *left[1:]]
        report = verify_records({"b": [canonical(body)]}, {})
        assert report.steps[0].verdict == "refuted", filter


def test_a_menu_that_keeps_too_high_a_potential_is_not_proven() -> None:
    filter = rz.MenuFilter(1.0, 1e-6, [m.PureDp(0.1)])
    chain = written_by(filter, [m.PureDp(0.1), m.PureDp(0.1)])
    before, after = (json.loads(chain.records[i].text) for i in (1, 2))
    assert before["tables"] != after["tables"]
    after["tables"] = before["tables"]
    texts = [*chain.texts()[:2], canonical(after)]
    assert verify_records({"b": texts}, chain.tables).steps[2].verdict != "proven"


def _forged(chain: Written, query: m.Mechanism, after: Any, tables: dict[str, bytes]) -> None:
    """Append a spend that leaves whatever it says."""
    chain.tables |= {digest(content): content for content in tables.values()}
    fields = chain.asking(query, f"forged-{len(chain.records)}", [chain.place], True)
    last = chain.records[-1].body
    fields["before"] = last["after"] if "after" in last else last["state"]
    fields["after"] = after
    fields["tables"] = {name: digest(content) for name, content in tables.items()}
    fields["holds"] = []
    chain.append("spend", fields)


def test_a_step_without_loss_keeps_the_potential() -> None:
    filter = rz.MenuFilter(1.0, 1e-6, [m.Laplace(20.0)])
    chain = written_by(filter, [m.Laplace(20.0)])
    table = filter.tables(chain.state)["potential"]
    head, _, rest = table.partition(b"\n")
    large = head + b"\n" + struct.pack(f"<{len(rest) // 8}d", *[1e9] * (len(rest) // 8))
    same = plain(filter, chain.state)
    lower = {**same, "left": same["left"] - 1}
    for after, tables, verdict in (
        (same, {}, "proven"),
        (lower, {"potential": table}, "refuted"),
        (lower, {"potential": large}, "refuted"),
    ):
        forged = written_by(filter, [m.Laplace(20.0)])
        _forged(forged, m.PureDp(0.0), after, tables)
        report = verify_records({"b": forged.records}, forged.tables)
        assert [step.verdict for step in report.steps] == ["proven", "proven", verdict]
    forged = written_by(filter, [m.Laplace(20.0)])
    _forged(forged, m.PureDp(0.0), same, {"potential": large})
    problems = verify_records({"b": forged.records}, forged.tables).problems
    assert ["tables" in problem.what for problem in problems] == [True]


def test_a_profile_keeps_its_plan() -> None:
    filter = rz.AdditiveProfileFilter(1.0, 1e-3, 4)
    chain = Written(filter)
    plan = filter.tables(chain.state)["plan"]
    points = json.loads(plan)["points"]
    other = canonical({**json.loads(plan), "points": [500.0 + i for i in range(len(points))]})
    after = plain(filter, filter.decide(chain.state, m.PureDp(0.01)).state)
    _forged(chain, m.PureDp(0.01), after, {"plan": plan})
    _forged(chain, m.PureDp(0.0), after, {})
    assert verify_records({"b": chain.records}, chain.tables).ok
    for forged in ({"plan": other.encode()}, {}):
        chain = Written(filter)
        _forged(chain, m.PureDp(0.01), after, forged)
        report = verify_records({"b": chain.records}, chain.tables)
        assert [step.verdict for step in report.steps] == ["proven", "refuted"]


def _created(filter: rz.Filter, config: Any, table: Any, state: Any) -> Written:
    """A budget whose first record says what it likes."""
    chain = Written(filter)
    first = chain.records.pop().body
    content = canonical(table).encode()
    chain.tables[digest(content)] = content
    common = {"v", "ledger", "budget", "seq", "prev", "time", "by", "type"}
    fields = {name: value for name, value in first.items() if name not in common}
    state = {**first["state"], "of": digest(canonical(config))[:16], **state}
    more = {"filter": config, "tables": {"plan": digest(content)}, "state": state}
    chain.append("create", {**fields, **more})
    return chain


def test_a_profile_keeps_what_its_configuration_promises() -> None:
    filter = rz.AdditiveProfileFilter(1.0, 1e-3, 4)
    config = filter.to_dict()
    plan = json.loads(filter.tables(filter.initial())["plan"])
    honest = _created(filter, config, plan, {})
    assert verified(honest).ok
    lax = {"delta": 0.01, "draws": [], "eps": 599.0, "points": [100.0], "v": 1}
    for promised in (4.2792, 4.0, 599.0, None, 1e9, "599.0", float(10**9)):
        said = {**config, "target_eps": promised}
        if promised is None:
            del said["target_eps"]
        chain = _created(filter, said, lax, {"left": ["4", "0"]})
        after = {**chain.records[0].body["state"], "left": ["3", "0"]}
        _forged(chain, m.PureDp(99.0), after, {"plan": canonical(lax).encode()})
        verdicts = [step.verdict for step in verified(chain).steps]
        # A budget of eps 599 may be what it says that it is.
        honest_about_it = promised == 599.0
        assert (verdicts[0] == "proven") is honest_about_it, (promised, verdicts)
        assert (verdicts == ["proven", "proven"]) is honest_about_it, (promised, verdicts)
    for changed in ({"eps": 4.0}, {"points": [p * 1.5 for p in plan["points"]]}, {"v": 2},
                    {"draws": [n + 1 for n in plan["draws"]]}, {"eps": "4.2792"}):  # fmt: skip
        chain = _created(filter, config, {**plan, **changed}, {})
        assert verified(chain).steps[0].verdict != "proven", changed


def test_what_is_only_not_shown_is_not_refuted() -> None:
    """Bounds from above that a state falls short of; what the exact law needs is refuted."""
    from residua.verify.descriptions.mechanisms import StepQuery, loss_of
    from residua.verify.losses.factors import Loss, Mixture
    from residua.verify.proofs.filters import prove_step

    sampled = m.SubsampledGaussian(sigma=2.0, sampling_rate=0.1)
    with_noise = m.Composed((sampled, m.Laplace(scale=3.0)))
    quarter = Fraction(1, 4)
    # Under replace-one the Gaussian that is known to lie above has twice the shift of the tail.
    cases: list[tuple[rz.Filter, Any, str, Fraction, str]] = [
        (rz.GdpFilter(9.0), sampled, "add-remove", quarter, "proven"),
        (rz.GdpFilter(9.0), sampled, "add-remove", quarter * 99 / 100, "refuted"),
        (rz.GdpFilter(9.0), sampled, "replace-one", 4 * quarter, "proven"),
        (rz.GdpFilter(9.0), sampled, "replace-one", 2 * quarter, "undecided"),
        (rz.GdpFilter(9.0), sampled, "replace-one", quarter * 99 / 100, "refuted"),
        (rz.GdpFilter(9.0), with_noise, "add-remove", quarter * 101 / 100, "undecided"),
        (rz.GdpResidueFilter(9.0), sampled, "replace-one", 2 * quarter, "undecided"),
        (rz.GdpResidueFilter(9.0), sampled, "replace-one", quarter * 99 / 100, "refuted"),
        (rz.GdpResidueFilter(9.0), with_noise, "add-remove", quarter, "undecided"),
        (rz.ZcdpFilter(9.0), sampled, "add-remove", quarter / 2, "proven"),
        (rz.ZcdpFilter(9.0), sampled, "add-remove", quarter * 49 / 100, "refuted"),
        (rz.ZcdpFilter(9.0), sampled, "replace-one", quarter, "undecided"),
        (rz.ZcdpFilter(9.0), m.Composed((sampled, m.PureDp(0.1))), "add-remove", quarter / 2,
         "undecided"),
    ]  # fmt: skip
    for filter, query, relation, spent, verdict in cases:
        before = filter.initial()
        assert isinstance(before, Left)
        after = dataclasses.replace(before, left=(before.left[0] - spent,))
        asked = StepQuery(query.to_dict(), relation, {}, {})
        found = prove_step(filter.to_dict(), plain(filter, before), plain(filter, after), asked)
        assert found.verdict == verdict, (filter, query, relation, found)
    ((two, _),) = loss_of(sampled.to_dict(), "replace-one").factors
    assert isinstance(two, Mixture) and (two.tail, two.above) == (quarter, 4 * quarter)
    assert Loss(factors=((two, 1),)).variance == 0


def test_slack_covers_a_gaussian_that_is_too_large_by_a_hair() -> None:
    """`G_1.001 ⪯ G_1 ⊕ R_{0,0.01}` is true, and `G_1.02` is too large."""
    from residua.verify.losses.factors import Loss
    from residua.verify.proofs.gaussian_budget import approximate_gdp_residue

    left = (Fraction(1), Fraction(1, 100)), (Fraction(0), Fraction(0))
    for mu, verdict in ((Fraction(1001, 1000), "proven"), (Fraction(102, 100), "refuted")):
        assert approximate_gdp_residue(*left, Loss(variance=mu**2)).verdict == verdict
        larger = rz.gaussian(mu=float(mu)) <= rz.gaussian(mu=1.0) + rz.approximate_dp(0.0, 0.01)
        assert larger is (verdict == "proven")


@pytest.mark.parametrize("rounds", [0, -5, 1.5, 10**9])
def test_rounds_are_not_taken_back_by_asking_for_nothing(rounds: Any) -> None:
    chain = written_by(rz.NaturalFilter(rz.approximate_dp(0.5, 1e-3), rounds=20), [m.Laplace(20.0)])
    state = chain.records[-1].body["after"]
    assert state["rounds"] == 1
    _forged(chain, m.PureDp(0.0), {**state, "rounds": rounds}, {})
    (step,) = verified(chain).steps[2:]
    assert step.verdict == ("proven" if rounds == 10**9 else "refuted"), "fewer are left, or more"


def test_a_profile_without_sizes_is_undecided() -> None:
    profile = rz.AdditiveProfileFilter(1.0, 1e-3, 4)
    config = profile.to_dict()
    empty = {"delta": config["target_delta"], "eps": config["target_eps"], "v": 1}
    chain = _created(profile, config, {**empty, "points": [], "draws": []}, {"left": ["4"]})
    assert verified(chain).steps[0].verdict == "undecided"


def test_what_lies_close_to_its_charge_is_proven_all_the_same() -> None:
    """Steps that were undecided once: the charge is as near to the truth as the filter can tell."""
    batch = m.SubsampledGaussian(sigma=1.0, sampling_rate=0.001)
    plan = rz.PlanFilter(3.0, 1e-6, [m.Laplace(10.0)] * 10 + [m.Gaussian(sigma=5.0)] * 5)
    for filter, queries in (
        (rz.AutoFilter(1.0, 1e-5), [m.DiscreteGaussian(sigma=20.0)] * 2),
        (rz.GdpFilter(3.0), [m.SelfComposed(m.Laplace(5.0), 2)]),
        (rz.GdpResidueFilter(1.0), [m.Laplace(1e8)]),
        (plan, [m.DiscreteLaplace(20.0)]),
        (rz.RenyiCommitFilter(3.0, 1e-6), [batch]),
    ):
        relation = "replace-one" if batch in queries else "add-remove"
        chain = written_by(filter, queries, relation=relation)
        assert all(record.admitted for record in chain.records[1:])
        report = verified(chain)
        assert report.ok, shown(report)


def test_single_queries_are_compared_by_their_curves() -> None:
    from residua.verify.descriptions.mechanisms import loss_of
    from residua.verify.proofs.order import single_below

    queries: list[m.Mechanism] = [
        m.Laplace(10.0), m.Laplace(9.0), m.DiscreteLaplace(20.0), m.DiscreteLaplace(11.0),
        m.ExponentialMechanism(0.1), m.PoissonSampled(m.Laplace(5.0), 0.1), m.PureDp(0.09),
        m.PoissonSampled(m.DiscreteLaplace(2.0), 0.15), m.DiscreteLaplace(10.0, 2),
    ]  # fmt: skip
    losses = [loss_of(query.to_dict(), "zero-out").factors[0][0] for query in queries]
    found = 0
    for one, below in zip(queries, losses, strict=True):
        for two, above in zip(queries, losses, strict=True):
            if one is two or not single_below(below, above):
                continue
            found += 1
            ways = zip(*(each.plds("zero-out").values() for each in (one, two)), strict=True)
            assert all(a <= b for a, b in ways), (one, two)
    assert found >= 12


def test_a_plan_gives_no_more_than_a_query_takes_off() -> None:
    """One planned query less than the filter takes is never proven to be enough."""
    cases: list[tuple[m.Mechanism, m.Mechanism]] = [
        (m.PureDp(0.05), m.PureDp(0.13)),
        (m.PureDp(0.05), m.Laplace(12.0)),
        (m.Gaussian(sigma=20.0), m.Laplace(15.0)),
    ]
    for planned, query in cases:
        chain = written_by(rz.PlanFilter(1.0, 1e-6, [planned] * 12), [query])
        body = json.loads(chain.records[1].text)
        after = body["after"]
        if after["left"]:
            after["left"] = [after["left"][0] + 1]
        else:
            after["variance"] = str(Fraction(after["variance"]) * Fraction(1001, 1000))
        assert _verdicts(chain, body) != "proven", query


def test_what_rests_on_a_refuted_step_is_not_proven() -> None:
    chain = written_by(rz.PureFilter(1.0), [m.PureDp(0.1)])
    state = chain.records[-1].body["after"]
    _forged(chain, m.PureDp(0.5), {**state, "left": ["0.8"]}, {})
    _forged(chain, m.PureDp(0.1), {**state, "left": ["0.7"]}, {})
    report = verified(chain)
    assert [step.verdict for step in report.steps] == ["proven", "proven", "refuted", "undecided"]
    assert "rests on step 2, which was refuted" in report.steps[3].reason
    # An earlier report settles only what it has proven.
    again = verify_records({"b": chain.records}, chain.tables, since=report)
    assert again.steps == report.steps


def test_a_state_of_another_filter_is_refuted() -> None:
    chain = written_by(rz.GdpResidueFilter(1.0), [m.Gaussian(sigma=3.0)])
    body = json.loads(chain.records[1].text)
    body["after"]["of"] = "0" * 16
    assert _verdicts(chain, body) == "refuted"


def test_what_cannot_be_derived_is_undecided() -> None:
    chain = written_by(rz.PureFilter(1.0), [m.PureDp(0.1)])
    body = json.loads(chain.records[1].text)
    body["mechanism"] = {"kind": "magic", "eps": 0.1}
    assert _verdicts(chain, body) == "undecided"
    body["mechanism"] = {"kind": "laplace", "scale": 0.0}
    assert _verdicts(chain, body) == "undecided"
    body["mechanism"] = {"kind": "laplace", "scale": -2.0}
    assert _verdicts(chain, body) == "undecided"


MALFORMED: list[tuple[rz.Filter, dict[str, Any]]] = [
    (rz.PureFilter(1.0), {"eps": "1.0"}),
    (rz.PureFilter(1.0), {"eps": True}),
    (rz.PureFilter(1.0), {"eps": None}),
    (rz.PureFilter(1.0), {"eps": -1.0}),
    (rz.BasicFilter(1.0, 1e-3), {"delta": 1.5}),
    (rz.RenyiFilter(8.0, 1.0), {"alpha": 0}),
    (rz.RenyiFilter(8.0, 1.0), {"alpha": -8.0}),
    (rz.RenyiCurveFilter({2: 0.25, 8: 1}), {"curve": []}),
    (rz.RenyiCurveFilter({2: 0.25, 8: 1}), {"curve": [[0.5, 0.25], [8.0, 1.0]]}),
    (rz.ApproximateZcdpFilter(1.0, 1e-3), {"conversion": "none"}),
    (rz.GdpFilter(1.0), {"mu": -1.0}),
    (rz.AdditiveProfileFilter(1.0, 1e-3, 4), {"eps": None}),
]


@pytest.mark.parametrize(("filter", "change"), MALFORMED)
def test_a_configuration_that_is_none_is_refuted(filter: rz.Filter, change: Any) -> None:
    chain = Written(filter)
    body = json.loads(chain.records[0].text)
    body["filter"] |= change
    body["state"]["of"] = digest(canonical(body["filter"]))[:16]
    report = verify_records({"b": [canonical(body)]}, chain.tables)
    assert [step.verdict for step in report.steps] == ["refuted"]


UNREAD: list[Any] = [
    {"kind": "gaussian", "sigma": "9.0"},
    {"kind": "gaussian", "sigma": 9.0, "sensitivity": None},
    {"kind": "gaussian", "sigma": 9.0, "sensitivity": -1.0},
    {"kind": "pure_dp", "eps": True},
    {"kind": "discrete_laplace", "scale": 99.0, "sensitivity": 1.9},
    {"kind": "discrete_laplace", "scale": 99.0, "sensitivity": -2},
    {"kind": "exponential_mechanism", "eps": 0.01, "monotonic": "no"},
    {"kind": "report_noisy_max", "scale": 99.0, "noise": "none"},
    {"kind": "from_tradeoff", "alphas": [0.0, 1e300, 1.0], "betas": [1.0, 0.9, 0.0]},
    {"kind": "from_tradeoff", "alphas": [0.0, 0.5, 1.0], "betas": [1.0, 0.5, 0.1]},
    {"kind": "mixture_of_gaussians", "sigma": 99.0, "sensitivities": [0.0, 1.0],
     "probabilities": [0.99, 0.99]},
    {"kind": "rdp", "orders": [0.5], "epsilons": [0.0]},
    {"kind": "zcdp", "rho": -1.0},
    {"kind": "composed", "mechanisms": None},
    {"kind": "poisson_sampled", "mechanism": [], "sampling_rate": 0.1},
]  # fmt: skip


@pytest.mark.parametrize("mechanism", UNREAD)
def test_a_description_that_is_none_is_undecided(mechanism: Any) -> None:
    for filter in (rz.PureFilter(1.0), rz.ZcdpFilter(0.5), rz.RenyiFilter(8.0, 1.0)):
        chain = written_by(filter, [m.PureDp(0.5)])
        body = json.loads(chain.records[1].text)
        body["mechanism"], body["assumed"] = mechanism, True
        assert _verdicts(chain, body) == "undecided"


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [p for k, v in value.items() for p in _places(v, (*path, k))]
    if isinstance(value, list):
        return [p for k, v in enumerate(value) for p in _places(v, (*path, k))]
    return [path]


FORGED = [
    (rz.BasicFilter(1.0, 1e-3), m.ApproximateDp(0.1, 1e-4)),
    (rz.RenyiCurveFilter({2: 0.25, 8: 1}), m.Gaussian(sigma=9.0)),
    (rz.GdpResidueFilter(1.0), m.Gaussian(sigma=4.0)),
    (rz.RenyiCommitFilter(1.0, 1e-6), m.Gaussian(sigma=20.0)),
    (rz.NaturalFilter(rz.gaussian(mu=1.0), catalogue="gaussian"), m.Gaussian(sigma=8.0)),
]


@pytest.mark.parametrize(("filter", "query"), FORGED, ids=[f.kind for f, _ in FORGED])
def test_a_forged_number_never_gives_more(filter: rz.Filter, query: m.Mechanism) -> None:
    """Any one number of a spend: what is proven afterwards asks no more and leaves no more."""
    chain = written_by(filter, [query])
    for path in _places({n: chain.records[1].body[n] for n in ("mechanism", "after")}):
        for change in (0.5, 0.999, 1.001, 2.0, -1.0, 1e300, None, "x", True, []):
            body = json.loads(chain.records[1].text)
            at = body
            for name in path[:-1]:
                at = at[name]
            old = at[path[-1]]
            if isinstance(change, float) and isinstance(old, str):
                try:
                    at[path[-1]] = amounts.text(Fraction(old) * Fraction(change))
                except ValueError:
                    continue
            elif isinstance(change, float) and type(old) in (int, float):
                at[path[-1]] = old * change
            elif isinstance(change, float):
                continue
            else:
                at[path[-1]] = change
            if body == chain.records[1].body:
                continue
            report = verify_records({"b": [chain.texts()[0], canonical(body)]}, chain.tables)
            if report.ok:
                less = isinstance(change, float) and 0.0 <= change <= 1.0
                noise = path[-1] in ("sigma", "scale")
                spent = path[:2] == ("after", "loss")  # what a natural filter says was spent
                grows = isinstance(change, float) and change >= 1.0
                fine = grows if noise != spent else less
                assert fine, (path, change)


def test_the_state_is_a_value() -> None:
    report = verified(written_by(rz.PureFilter(1.0), [m.PureDp(0.1)]))
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.steps = ()
    assert json.loads(report.to_json())["proven"] == 2
    assert report.exit_code == 0


def _menus() -> list[tuple[rz.Filter, list[m.Mechanism]]]:
    menu = [rz.pure_dp(0.1), rz.gaussian(sigma=20.0)]
    asked: list[m.Mechanism] = [
        m.PureDp(0.1), m.PureDp(0.1), m.Gaussian(sigma=20.0), m.Laplace(30.0), m.PureDp(0.0),
        m.Gdp(mu=0.05), m.Laplace(scale=0.3, sensitivity=0.01),
        m.Laplace(scale=3.0, sensitivity=0.1), m.SubsampledGaussian(4.0, 0.01), m.PureDp(0.1),
    ]  # fmt: skip
    return [
        (rz.MenuFilter(1.0, 1e-6, menu), asked),
        (rz.MenuFilter(1.0, 1e-6, menu), asked[2:]),
        (rz.MenuFilter(1.0, 1e-6, menu, prices=(3, 1)), asked),
    ]


@pytest.mark.parametrize("place", range(3))
def test_what_a_menu_keeps_beside_its_potential_is_checked(place: int) -> None:
    filter, queries = _menus()[place]
    chain = written_by(filter, queries)
    report = verify_records({"b": chain.records}, chain.tables)
    assert report.ok, report.text
    tables = {h: {"potential": content} for h, content in chain.tables.items()}
    for record in chain.records[1:]:
        body = record.body
        state = body["after"]
        found = tables.get(body["tables"].get("potential"))
        if found is None:
            continue
        for left in (state["left"] + 10**9, body["before"]["left"] + 1, -1, "3", None, [1]):
            other = written_by(filter, queries[: record.seq - 1])
            _forged(other, queries[record.seq - 1], {**state, "left": left}, found)
            last = verify_records({"b": other.records}, other.tables).steps[-1]
            assert last.verdict == "refuted", (record.seq, left, last)
