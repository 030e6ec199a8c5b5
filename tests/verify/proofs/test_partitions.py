"""Partitions and quotas: what they promise beside their cap, and whom they charge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import residua as rz
from residua import mechanisms as m
from residua.records import canonical, digest, lines
from residua.verify import Report, verify_export, verify_records
from verify.written_chains import Written, spend_together

pytestmark = pytest.mark.needs("flint")


def _report(*chains: Written) -> Report:
    tables = {name: content for c in chains for name, content in c.tables.items()}
    return verify_records({c.name: c.records for c in chains}, tables)


def _divided(cap: rz.Filter, *parts: rz.Filter, relation: str = "add-remove") -> Report:
    whole = Written(cap, name="all", relation=relation)
    chains = [
        Written(part, name=f"p{i}", relation=relation, parent="all", partition=f"{i}")
        for i, part in enumerate(parts)
    ]
    return _report(whole, *chains)


UNION = rz.UnionFilter([rz.PureFilter(1.0), rz.GdpResidueFilter(0.2)])
STATED = rz.UnionFilter([rz.BasicFilter(1.0, 1e-7), rz.RenyiCommitFilter(0.5, 2e-7)])
FITTING = [
    (rz.PureFilter(1.0), rz.PureFilter(1.0)),
    (rz.PureFilter(1.0), rz.PureFilter(0.1)),
    (rz.BasicFilter(1.0, 1e-6), rz.PureFilter(1.0)),
    (rz.BasicFilter(1.0, 1e-6), rz.GdpFilter(0.1)),
    (rz.GdpResidueFilter(1.0), rz.GdpFilter(1.0)),
    (rz.GdpResidueFilter(1.0), rz.PureFilter(0.5)),
    (rz.ApproximateGdpResidueFilter(1.0, 1e-3), rz.GdpResidueFilter(1.0)),
    (rz.ZcdpFilter(0.5), rz.GdpResidueFilter(1.0)),
    (rz.ZcdpFilter(0.5), rz.ZcdpFilter(0.25)),
    (rz.RenyiFilter(8.0, 1.0), rz.ZcdpFilter(0.125)),
    (rz.RenyiCurveFilter({2: 0.25, 8: 1}), rz.RenyiCurveFilter({2: 0.25, 8: 0.5})),
    (rz.AutoFilter(1.0, 1e-6), rz.ApproximateZcdpFilter(1.0, 1e-6)),
    (rz.AdditiveProfileFilter(1.0, 1e-3, 4), rz.AdditiveProfileFilter(1.0, 1e-3, 4)),
    (rz.AdditiveProfileFilter(1.0, 1e-3, 4), rz.BasicFilter(4.0, 1e-2)),
    (rz.BasicFilter(5.0, 0.02), rz.AdditiveProfileFilter(1.0, 1e-3, 4)),
    (STATED, UNION),
    (STATED, rz.PureFilter(1.0)),
    (STATED, rz.GdpResidueFilter(0.2)),
    (rz.BasicFilter(1.0, 1e-6), rz.TargetResidueFilter(1.0, 1e-6)),
    (rz.TargetResidueFilter(1.0, 1e-6), rz.PureFilter(1.0)),
    (rz.BasicFilter(1.0, 1e-6), UNION),
    (STATED, rz.BasicFilter(1.0, STATED.delta)),
    (rz.BasicFilter(1.0, STATED.delta), STATED),
    (rz.BasicFilter(1.0, 1e-6), rz.PlanFilter(1.0, 1e-6, [m.PureDp(0.05)] * 4)),
    (rz.PlanFilter(1.0, 1e-6, [m.PureDp(0.05)] * 4), rz.PureFilter(0.1)),
    (rz.ApproximateGdpResidueFilter(2.0, 1e-4), rz.PureFilter(1.0)),
    (rz.ApproximateGdpResidueFilter(1.0, 1e-2), rz.BasicFilter(0.82, 1e-3)),
    (rz.ApproximateGdpResidueFilter(1.0, 1e-2), rz.GdpFilter(1.001)),
    (rz.PureFilter(1.0), rz.NaturalFilter(rz.pure_dp(1.0))),
    (rz.NaturalFilter(rz.pure_dp(1.0)), rz.PureFilter(1.0)),
    (rz.NaturalFilter(rz.gaussian(mu=1.0), None, "gaussian"), rz.GdpFilter(0.5)),
    (rz.NaturalFilter(rz.approximate_dp(0.3, 1e-6), 5),) * 2,
]


@pytest.mark.parametrize(("cap", "part"), FITTING)
def test_a_partition_below_its_parent_is_proven(cap: rz.Filter, part: rz.Filter) -> None:
    report = _divided(cap, part)
    assert report.ok, report.text


def test_two_partitions_may_fill_the_parent() -> None:
    parts = rz.PureFilter(0.5), rz.BasicFilter(0.5, 1e-6)
    assert _divided(rz.AutoFilter(1.0, 1e-6), *parts, relation="replace-one").ok


NATURAL = rz.NaturalFilter(rz.approximate_dp(0.3, 1e-6), 5)
REJECTED = [
    (rz.PureFilter(1.0), rz.PlanFilter(1.0, 1e-6, [m.PureDp(0.05)] * 4), "add-remove"),
    (rz.BasicFilter(5.0, 1e-3), rz.ZcdpFilter(0.01), "add-remove"),
    (rz.BasicFilter(5.0, 1e-3), rz.RenyiFilter(8.0, 0.1), "add-remove"),
    (rz.ApproximateGdpResidueFilter(2.0, 1e-4), rz.RenyiCurveFilter({2: 0.1}), "add-remove"),
    (rz.BasicFilter(5.0, 1e-3), NATURAL, "add-remove"),
    (NATURAL, rz.PureFilter(0.1), "add-remove"),
    (NATURAL, NATURAL, "replace-one"),
    (UNION, rz.PureFilter(0.5), "add-remove"),
    (rz.BasicFilter(2.0, 1e-3), rz.UnionFilter([rz.ZcdpFilter(0.01)], 1.0), "add-remove"),
    (rz.RenyiCurveFilter({1.7: 12474.0, 36.0: 28.0}), rz.GdpFilter(1.68), "zero-out"),
    (rz.RenyiFilter(3.0, 262181.0), rz.AutoFilter(1.0, 1e-9), "add-remove"),
]


@pytest.mark.parametrize(("cap", "part", "relation"), REJECTED, ids=lambda each: str(each)[:40])
def test_a_partition_without_a_proof_is_not_created(
    cap: rz.Filter, part: rz.Filter, relation: str, tmp_path: Path
) -> None:
    pytest.importorskip("sqlalchemy")
    ledger = rz.open_ledger(f"sqlite:///{tmp_path}/budgets.db")
    ledger.create_budget("all", cap, relation=relation)
    with pytest.raises(rz.ArgumentError, match=r"^filter must"):
        ledger.create_budget("p", part, parent="all", partition="1")
    assert ledger.verify().ok


EXCEEDING = [
    (rz.PureFilter(1.0), rz.PureFilter(1.001)),
    (rz.PureFilter(1.0), rz.GdpFilter(0.01)),
    (rz.AdditiveProfileFilter(1.0, 1e-3, 4), rz.PureFilter(5.0)),
    (rz.BasicFilter(4.0, 1e-3), rz.AdditiveProfileFilter(1.0, 1e-3, 4)),
    (rz.BasicFilter(1.0, 1e-6), rz.BasicFilter(1.0, 2e-6)),
    (STATED, rz.PureFilter(1.01)),
    (rz.TargetResidueFilter(1.0, 1e-6), rz.BasicFilter(1.0, 1.01e-6)),
    (STATED, rz.BasicFilter(1.0, STATED.delta * (1 + 1e-9))),
    (rz.BasicFilter(1.0, 1e-9), UNION),
    (rz.PureFilter(1.0), UNION),
    (rz.AutoFilter(1.0, 1e-6), rz.GdpFilter(1.0)),
    (rz.GdpResidueFilter(1.0), rz.GdpResidueFilter(1.01)),
    (rz.GdpResidueFilter(1.0), rz.PureFilter(5.0)),
    (rz.ZcdpFilter(0.5), rz.GdpFilter(1.1)),
    (rz.RenyiFilter(8.0, 1.0), rz.RenyiFilter(8.0, 1.5)),
]


@pytest.mark.parametrize(("cap", "part"), EXCEEDING)
def test_a_partition_above_its_parent_is_refuted(cap: rz.Filter, part: rz.Filter) -> None:
    report = _divided(cap, part)
    assert [step.verdict for step in report.steps] == ["proven", "refuted"]
    assert "exceeds" in report.steps[1].reason
    assert report.exit_code == 1


def test_what_is_not_told_from_the_parent_is_undecided() -> None:
    report = _divided(rz.RenyiFilter(8.0, 1.0), rz.RenyiFilter(2.0, 0.1))
    assert [step.verdict for step in report.steps] == ["proven", "undecided"]


def test_the_same_filter_with_another_table_is_not_the_same_promise() -> None:
    filter = rz.AdditiveProfileFilter(1.0, 1e-3, 4)
    cap = Written(filter, name="all")
    part = Written(filter, name="p", parent="all", partition="1")
    assert _report(cap, part).ok
    other = dict(part.records.pop().body)
    plan = json.loads(filter.tables(part.state)["plan"])
    table = canonical({**plan, "eps": plan["eps"] + 0.1}).encode()
    part.tables[digest(table)] = table
    common = {"v", "ledger", "budget", "seq", "prev", "time", "by", "type"}
    fields = {name: value for name, value in other.items() if name not in common}
    part.append("create", {**fields, "tables": {"plan": digest(table)}})
    assert [step.verdict for step in _report(cap, part).steps] == ["proven", "refuted"]


def test_under_replace_one_any_two_partitions_fit_the_parent() -> None:
    part = rz.PureFilter(0.6)
    assert _divided(rz.PureFilter(1.0), part, part).ok
    assert _divided(rz.PureFilter(1.0), part, relation="replace-one").ok
    assert _divided(rz.PureFilter(1.2), part, part, part, relation="replace-one").ok
    report = _divided(rz.PureFilter(1.0), part, part, relation="replace-one")
    assert [step.verdict for step in report.steps] == ["proven", "refuted", "refuted"]


def test_divergences_of_two_partitions_add_up(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    ledger = rz.open_ledger(f"sqlite:///{tmp_path}/budgets.db")
    ledger.create_budget("all", rz.RenyiFilter(8.0, 8.0), relation="replace-one")
    for name, filter in (("a", rz.GdpFilter(1.0)), ("b", rz.PureFilter(1.0))):
        ledger.create_budget(name, filter, parent="all", partition=name)
    with pytest.raises(rz.ArgumentError, match=r"order 8 must be at most 8, .* got up to 8.5"):
        ledger.create_budget("c", rz.GdpFilter(1.0606601717798212), parent="all", partition="c")
    assert ledger.verify().ok


def test_two_partitions_have_two_labels() -> None:
    cap = Written(rz.PureFilter(1.0), name="all")
    parts = [
        Written(rz.PureFilter(1.0), name=n, parent="all", partition="north") for n in ("a", "b")
    ]
    assert _report(cap, parts[0]).ok
    assert [(p.budget, p.seq) for p in _report(cap, *parts).problems] == [("b", 0)]


def test_a_partition_has_the_window_of_its_parent_or_none() -> None:
    def found(window: float | None, own: float | None) -> int:
        cap = Written(rz.PureFilter(1.0), name="all", window=window)
        part = Written(rz.PureFilter(1.0), name="p", parent="all", partition="1", window=own)
        return len(_report(cap, part).problems)

    assert [found(None, None), found(60.0, None), found(60.0, 60.0)] == [0, 0, 0]
    assert [found(None, 60.0), found(60.0, 30.0)] == [1, 1]


def test_a_partition_of_a_quota_charges_the_cap() -> None:
    cap = Written(rz.PureFilter(1.0), name="cap")
    quota = Written(rz.PureFilter(1.0), name="quota", parent="cap")
    part = Written(rz.PureFilter(1.0), name="part", parent="quota", partition="1")
    spend_together([part, cap], m.PureDp(0.5), "both")
    assert _report(cap, quota, part).ok
    part.spend(m.PureDp(0.5))
    problems = _report(cap, quota, part).problems
    assert [(p.budget, p.seq) for p in problems] == [("part", 2)]
    assert "'cap' is not charged" in problems[0].what


def test_budgets_in_a_circle_are_found() -> None:
    one, two = (Written(rz.PureFilter(1.0), name=a, parent=b) for a, b in ("xy", "yx"))
    spend_together([one, two], m.PureDp(0.5), "both")
    assert any("its own ancestor" in p.what for p in _report(one, two).problems)


def test_a_parent_without_its_first_record_is_a_problem() -> None:
    cap = Written(rz.PureFilter(1.0), name="cap")
    part = Written(rz.PureFilter(1.0), name="part", parent="cap", partition="1")
    quota = Written(rz.PureFilter(1.0), name="quota", parent="part")
    spend_together([quota, part], m.PureDp(0.5), "both")
    assert _report(cap, part, quota).ok
    export = [*lines(cap.records), *lines(part.records[1:]), *lines(quota.records)]
    report = verify_export(export)
    assert report.exit_code == 1
    assert any(p.budget == "quota" and "create" in p.what for p in report.problems)
