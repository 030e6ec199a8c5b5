"""Counted work: every step ends, with the same verdict everywhere, and large ones are quick."""

from __future__ import annotations

import json
from typing import Any

import pytest

import residua as rz
from residua import mechanisms as m
from residua.records import canonical
from residua.verify import Report, verify_records
from verify.written_chains import Written, written_by

pytestmark = pytest.mark.needs("flint")


def _report(chain: Written, **options: Any) -> Report:
    return verify_records({chain.name: chain.records}, chain.tables, **options)


def _many(count: int, least: float, apart: float) -> m.Mechanism:
    return m.Composed(tuple(m.Laplace(least + apart * i) for i in range(count)))


@pytest.mark.parametrize(("mu", "query"), [
    (1.0, _many(50, 1e4, 1.0)),
    (2.0, _many(4, 4.0, 0.1)),
    (6.0, m.SelfComposed(m.Laplace(40.0), 1000)),
    (3.0, _many(2, 1.0, 99.0)),
])  # fmt: skip
def test_many_different_queries_at_once_are_proven(mu: float, query: m.Mechanism) -> None:
    report = _report(written_by(rz.GdpResidueFilter(mu), [query]), limit=5.0)
    assert report.ok, report.text


def test_many_that_keep_too_much_are_not_proven() -> None:
    chain = written_by(rz.GdpResidueFilter(1.0), [_many(3, 30.0, 1.0)])
    body = json.loads(chain.records[1].text)
    had, has = (float(body[name]["left"][0]) for name in ("before", "after"))
    for share in (0.5, 0.999):
        body["after"]["left"] = [repr(had - share * (had - has))]
        texts = [chain.texts()[0], canonical(body)]
        report = verify_records({"b": texts}, {}, limit=2.0)
        assert report.steps[1].verdict != "proven", share


def test_a_step_that_takes_too_long_is_undecided() -> None:
    chain = written_by(rz.GdpResidueFilter(1.0), [_many(50, 1e4, 1.0), m.Laplace(4.0)])
    for _ in range(2):
        # Nothing that was worked out before makes a difference.
        report = _report(chain, limit=0.05)
        assert [step.verdict for step in report.steps] == ["proven", "undecided", "proven"]
        assert "work limit" in report.steps[1].reason
        assert "rests on step 1, which is undecided" in report.steps[2].reason
        assert report.exit_code == 7
        assert _report(chain, limit=30).ok
    for wrong in (0.0, -1.0, float("nan"), float("inf"), "1"):
        with pytest.raises(ValueError, match="limit"):
            _report(chain, limit=wrong)


HUGE: list[Any] = [
    {"kind": "pure_dp", "eps": 1e9},
    {"kind": "laplace", "scale": 1e-9},
    {"kind": "self_composed", "count": 10**12, "mechanism": {"kind": "laplace", "scale": 9.0}},
    {"kind": "approximate_dp", "eps": 0.1, "delta": 1e-9, "steps": 10**9},
    {"kind": "discrete_gaussian", "sigma": 1.0, "sensitivity": 10**12},
    {"kind": "discrete_laplace", "scale": 10.0, "sensitivity": 30000},
    {"kind": "composed", "mechanisms": [{"kind": "pure_dp", "eps": 0.001 * k} for k in range(999)]},
    {"kind": "subsampled_gaussian", "sigma": 0.01, "sampling_rate": 1e-9, "steps": 10**6},
    {"kind": "from_tradeoff", "alphas": [k / 2000 for k in range(2001)],
     "betas": [(1 - k / 2000) ** 2 for k in range(2001)]},
]  # fmt: skip


@pytest.mark.parametrize("filter", [
    rz.BasicFilter(1.0, 1e-6), rz.GdpFilter(1.0), rz.GdpResidueFilter(1.0), rz.ZcdpFilter(1.0),
    rz.ApproximateGdpResidueFilter(1.0, 1e-3), rz.AutoFilter(1.0, 1e-6), rz.RenyiFilter(8.0, 1.0),
    rz.NaturalFilter(rz.approximate_dp(1.0, 1e-6), rounds=4),
], ids=lambda f: f.kind)  # fmt: skip
def test_whatever_a_record_asks_the_verifier_ends(filter: rz.Filter) -> None:
    chain = written_by(filter, [m.PureDp(0.01)])
    for mechanism in HUGE:
        body = json.loads(chain.records[1].text)
        body["mechanism"] = mechanism
        texts = [chain.texts()[0], canonical(body)]
        report = verify_records({"b": texts}, chain.tables, limit=0.1)
        assert report.steps[1].verdict != "proven", mechanism


def test_all_steps_share_a_total_of_work() -> None:
    import flint

    chain = written_by(rz.GdpResidueFilter(2.0), [m.Laplace(4.0 + k) for k in range(8)])
    whole = _report(chain)
    assert whole.ok
    for jobs in (1, 2):
        report = _report(chain, total_limit=0.01, jobs=jobs)
        verdicts = [step.verdict for step in report.steps]
        first = verdicts.index("undecided")
        assert 0 < first < len(verdicts)
        assert verdicts == ["proven"] * first + ["undecided"] * (len(verdicts) - first)
        assert "total work limit" in report.steps[first].reason
        assert report.exit_code == json.loads(report.to_json())["exit_code"] == 7
        # As often as one likes, and in as many processes.
        assert verdicts == [s.verdict for s in _report(chain, total_limit=0.01).steps]
        # And whatever precision the caller works with.
        before, flint.ctx.prec = flint.ctx.prec, 1500
        try:
            assert verdicts == [s.verdict for s in _report(chain, total_limit=0.01).steps]
            assert flint.ctx.prec == 1500
        finally:
            flint.ctx.prec = before
    for wrong in (0.0, -1.0, float("nan"), "1"):
        for name in ("total_limit", "memory_limit"):
            with pytest.raises(ValueError, match=name):
                _report(chain, **{name: wrong})


def test_memory_is_counted_before_it_is_used() -> None:
    chain = written_by(rz.GdpFilter(1.0), [m.SelfComposed(m.PureDp(0.01), 64)])
    assert _report(chain).ok
    report = _report(chain, memory_limit=0.05)
    assert [step.verdict for step in report.steps] == ["proven", "undecided"]
    assert "memory limit" in report.steps[1].reason and report.exit_code == 7


GIGANTIC: list[tuple[rz.Filter, m.Mechanism]] = [
    (rz.ApproximateGdpResidueFilter(1.0, 1e-3), m.TruncatedLaplace(1e5, 1e300)),
    (rz.ApproximateGdpResidueFilter(1.0, 1e-3), m.Laplace(1e308)),
    (rz.GdpResidueFilter(1.0), m.Laplace(1e308)),
    (rz.AutoFilter(1.0, 1e-6), m.Gaussian(sigma=1e150)),
]


@pytest.mark.parametrize(("filter", "query"), GIGANTIC, ids=repr)
def test_extreme_parameters_end_soon_in_little_memory(
    filter: rz.Filter, query: m.Mechanism
) -> None:
    """Ledgers do not take them, but a record may say anything."""
    chain = written_by(filter, [m.PureDp(0.01)])
    body = json.loads(chain.records[1].text)
    body["mechanism"] = query.to_dict()
    texts = [chain.texts()[0], canonical(body)]
    report = verify_records({"b": texts}, chain.tables, limit=5.0)
    assert report.steps[1].verdict != "refuted"


def test_large_tables_are_counted() -> None:
    """Tables that a forger made large took a minute and more memory than a step may use."""
    from residua.verify.arithmetic.work_limit import Exhausted, limit_work
    from residua.verify.proofs.natural import profile_first
    from residua.verify.proofs.potentials import potential_of

    head = {"cells": 10, "delta": 1e-6, "eps": 1.0, "half": 2_000_000, "v": 1, "whole": 4096}
    numbers = bytes(8 * (2 * 2_000_000 + 1))
    with limit_work(60.0), pytest.raises(Exhausted, match="memory limit"):
        potential_of({"potential": json.dumps(head).encode() + b"\n" + numbers})
    sizes = [1.0 + n for n in range(700_000)]
    plan = {"v": 1, "points": sizes, "draws": [0] * (len(sizes) - 1), "eps": 1.0, "delta": 1e-6}
    with limit_work(60.0), pytest.raises(Exhausted, match="work limit"):
        profile_first({}, {}, {"plan": json.dumps(plan).encode()})


def test_a_message_does_not_repeat_all_of_a_large_value() -> None:
    chain = written_by(rz.PureFilter(1.0), [m.PureDp(0.25)])
    body = json.loads(chain.records[1].text)
    for left in ("9" * 10_000, ["9" * 10_000], ["9" * 10_000, "1"]):
        body["after"]["left"] = left
        report = verify_records({"b": [chain.texts()[0], canonical(body)]}, {})
        assert report.steps[1].verdict == "refuted" and len(report.steps[1].reason) < 200
