"""Whatever a ledger admits, its verifier settles; what it could not settle is rejected at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import residua as rz
from residua import mechanisms as m
from residua.errors import ResiduaError
from residua.provable import unprovable, unprovable_commit
from residua.records import lines
from residua.verify import verify_records
from verify.queries import FILTERS, Draw
from verify.written_chains import written_by

pytestmark = pytest.mark.needs("flint", "sqlalchemy")

ROUNDS = int(os.environ.get("RESIDUA_FUZZ", "1"))
"""How many times as many cases as usual: a long run sets it."""
_FEW = {"approximate_gdp_residue": 3, "auto": 3, "menu": 3}
"""Filters that take seconds to decide get fewer queries."""


@pytest.mark.parametrize("kind", FILTERS)
def test_what_is_admitted_is_proven(kind: str, tmp_path: Path) -> None:
    draw = Draw(kind)
    ledger = rz.open_ledger(f"sqlite:///{tmp_path}/budgets.db")
    wanted, admitted = ROUNDS * _FEW.get(kind, 8), 0
    for number in range(40 * wanted):
        if admitted >= wanted:
            break
        relation = draw.choice(("add-remove", "add-remove", "replace-one", "zero-out"))
        try:
            filter = draw.filter(kind)
            ledger.create_budget(str(number), filter, relation=relation)
        except ResiduaError:
            continue
        for _ in range(3):
            admitted += _spend(ledger, str(number), filter, draw.mechanism(), relation)
    report = ledger.verify()
    assert report.ok, report.text.split("What this")[0]
    assert admitted >= min(3, wanted)


def _spend(
    ledger: rz.Ledger, name: str, filter: rz.Filter, query: m.Mechanism, relation: str
) -> bool:
    """Ask for what would be admitted: a refusal takes a second to work out what would fit."""
    if relation not in query.supported:
        return False
    if unprovable(query.to_dict(), filter.to_dict(), relation) is not None:
        with pytest.raises(rz.ArgumentError, match="verified"):
            ledger.check(name, query, assume_budget_relation=True)
        return False
    try:
        if not filter.request(query, relation=relation).admitted:
            return False
        assert ledger.spend(name, query, assume_budget_relation=True).admitted
    except ResiduaError:
        # Such as a query after which a natural filter has no description.
        return False
    return True


EXTREME: list[tuple[rz.Filter, m.Mechanism, str]] = [
    (rz.PureFilter(1.0), m.Laplace(1e200, 1e-200), "sensitivity / scale of laplace"),
    (rz.GdpFilter(1.0), m.Gaussian(sigma=1e200, sensitivity=1e-200), "sensitivity / sigma"),
    (rz.GdpResidueFilter(1.0), m.Laplace(1e308), "sensitivity / scale of laplace"),
    (rz.PureFilter(1.0), m.Laplace(1e308), "sensitivity / scale of laplace"),
    (rz.ApproximateGdpResidueFilter(1.0, 1e-3), m.TruncatedLaplace(1e5, 1e300), "bound / scale"),
    (rz.GdpFilter(1.0), m.Gdp(1e-12), "mu of gdp"),
    (rz.PureFilter(1.0), m.SelfComposed(m.PureDp(1e-9), 10**7), "copies in one query"),
    (rz.MenuFilter(1.0, 1e-6, [m.PureDp(0.1)]), m.Zcdp(0.001), "zcdp under the filter menu"),
    (rz.GdpFilter(1.0), m.DiscreteLaplace(1e4, 257), "sensitivity of discrete_laplace"),
    (rz.BasicFilter(1.0, 1e-6), m.DiscreteGaussian(sigma=129.0), "sigma of discrete_gaussian"),
    (rz.BasicFilter(1.0, 1e-6), m.Zcdp(1e-9), "rho of zcdp .* between 1e-08 and 600, got 1e-09"),
    (rz.BasicFilter(9.0, 0.1), m.Composed((m.Zcdp(0.01), m.PureDp(0.1))), "zCDP bounds and other"),
    (
        rz.BasicFilter(9.0, 0.1),
        m.Composed((m.DiscreteGaussian(sigma=50.0), m.PureDp(0.1))),
        "discrete Gaussian noise and other queries",
    ),
    (rz.ZcdpFilter(1.0), m.PoissonSampled(m.Laplace(9.0), 0.1), "under the filter zcdp"),
    (
        rz.BasicFilter(9.0, 0.1),
        m.PoissonSampled(m.ApproximateDp(0.5, 1e-3), 0.5),
        "no proof is known for poisson_sampled of approximate_dp",
    ),
    (
        rz.BasicFilter(9.0, 0.1),
        m.PoissonSampled(m.Zcdp(0.0, 0.5, 1e-3), 0.5),
        "no proof is known for poisson_sampled of zcdp",
    ),
]


@pytest.mark.parametrize(("filter", "query", "why"), EXTREME, ids=lambda each: str(each)[:40])
def test_what_cannot_be_proven_is_rejected(
    filter: rz.Filter, query: m.Mechanism, why: str, tmp_path: Path
) -> None:
    ledger = rz.open_ledger(f"sqlite:///{tmp_path}/budgets.db")
    ledger.create_budget("b", filter)
    for ask in (ledger.spend, ledger.check, ledger.reserve):
        with pytest.raises(rz.ArgumentError, match=why):
            ask("b", query, assume_budget_relation=True)
    assert len(ledger.history("b")) == 1, "nothing is recorded"
    assert ledger.verify().ok


def test_a_query_without_a_proof_is_rejected_before_it_is_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = rz.open_ledger(f"sqlite:///{tmp_path}/budgets.db")
    ledger.create_budget("b", rz.GdpFilter(1.0))
    assert ledger.spend("b", m.PureDp(0.01), assume_budget_relation=True).admitted
    decided: list[object] = []
    monkeypatch.setattr(rz.GdpFilter, "_costs", lambda *given: decided.append(given))
    many = m.SelfComposed(m.Laplace(20.0), 9)
    for ask in (ledger.spend, ledger.reserve):
        with pytest.raises(rz.ArgumentError, match="verified"):
            ask("b", many, assume_budget_relation=True)
    assert decided == []


SLACK: list[tuple[rz.Filter, list[m.Mechanism], str]] = [
    (
        rz.ApproximateGdpResidueFilter(3.7322940243756166, 2.8933509173990053e-06),
        [m.SubsampledGaussian(0.23068651533577234, 0.1)],
        "zero-out",
    ),
    (
        rz.ApproximateGdpResidueFilter(1e-4, 0.3),
        [
            m.Composed((m.ApproximateDp(0.6187656150987279, 1e-9), m.Laplace(1.616120830890779))),
            m.DiscreteLaplace(75216.55665218396, 3),
        ],
        "zero-out",
    ),
]


@pytest.mark.parametrize(("filter", "queries", "relation"), SLACK, ids=lambda each: str(each)[:40])
def test_what_takes_slack_close_to_the_end_is_proven(
    filter: rz.Filter, queries: list[m.Mechanism], relation: str, tmp_path: Path
) -> None:
    ledger = rz.open_ledger(f"sqlite:///{tmp_path}/budgets.db")
    ledger.create_budget("b", filter, relation=relation)
    for query in queries:
        assert ledger.spend("b", query, assume_budget_relation=True).admitted
    report = ledger.verify()
    assert report.ok, report.text.split("What this")[0]


HALF = m.FromAtoms((0.001, -0.001), (0.50025, 0.49975))
WIDENED: list[tuple[rz.Filter, m.Mechanism, str]] = [
    (rz.PureFilter(1.0), m.DiscreteLaplace(1e9, 10**8 + 1), "add-remove"),
    (rz.BasicFilter(1.0, 1e-6), m.DiscreteLaplace(5e3, 4999), "replace-one"),
    (rz.GdpResidueFilter(1.0), m.DiscreteLaplace(5e3, 256), "add-remove"),
    (rz.ZcdpFilter(1.0), m.DiscreteGaussian(sigma=1e6, sensitivity=10**5), "add-remove"),
    (rz.ApproximateZcdpFilter(1.0, 1e-6, 1e-7), m.DiscreteGaussian(sigma=200.0), "add-remove"),
    (rz.RenyiFilter(7.5, 1.0), m.DiscreteGaussian(sigma=5e3, sensitivity=3), "replace-one"),
    (rz.RenyiFilter(88.0, 1e6), m.Zcdp(0.0, 599.9841591242468), "add-remove"),
    (rz.PureFilter(1.0), HALF, "add-remove"),
    (rz.BasicFilter(1.0, 0.9), m.FromAtoms((0.25, -0.5), (0.6, 0.3), 0.1), "add-remove"),
    (rz.GdpFilter(1.0), HALF, "zero-out"),
    (rz.GdpResidueFilter(1.0), HALF, "replace-one"),
    (rz.GdpResidueFilter(1.0), m.PoissonSampled(HALF, 0.25), "add-remove"),
    (rz.BasicFilter(9.0, 1e-3), m.Zcdp(0.01, 0.1, 1e-5), "add-remove"),
    (rz.BasicFilter(9.0, 1e-3), m.SelfComposed(m.DiscreteGaussian(sigma=99.0), 3), "add-remove"),
    (rz.BasicFilter(600.0, 1e-8), m.DiscreteGaussian(sigma=0.127399, sensitivity=3), "add-remove"),
    (rz.PlanFilter(1.0, 1e-6, (m.PureDp(0.05),) * 4), m.ExponentialMechanism(0.14), "add-remove"),
    (rz.PlanFilter(1.0, 1e-6, (m.ExponentialMechanism(0.2),) * 4), m.PureDp(0.0999), "add-remove"),
    (rz.NaturalFilter(rz.approximate_dp(0.15, 1e-4), 15), m.Zcdp(0.0, 1e-3, 4e-5), "add-remove"),
    (rz.GdpFilter(5.0), m.PoissonSampled(m.ExponentialMechanism(6.0), 0.01), "add-remove"),
    (rz.GdpResidueFilter(1.2), m.PoissonSampled(m.Laplace(0.12), 0.01), "add-remove"),
    (
        rz.AutoFilter(3.0, 1e-6),
        m.Composed((m.SubsampledGaussian(0.75, 0.01), m.Gaussian(sigma=3.5))),
        "add-remove",
    ),
    (rz.PlanFilter(1.0, 1e-5, [m.ApproximateDp(0.1, 1e-6)]), m.Gaussian(sigma=100.0), "add-remove"),
]


@pytest.mark.parametrize(("filter", "query", "relation"), WIDENED, ids=lambda each: str(each)[:40])
def test_what_ranges_were_widened_for_is_proven(
    filter: rz.Filter, query: m.Mechanism, relation: str, tmp_path: Path
) -> None:
    ledger = rz.open_ledger(f"sqlite:///{tmp_path}/budgets.db")
    ledger.create_budget("b", filter, relation=relation)
    assert ledger.spend("b", query, assume_budget_relation=True).admitted
    report = ledger.verify()
    assert report.ok, report.text.split("What this")[0]


@pytest.mark.parametrize("eps", [0.61017, 0.610172, 0.610173])
def test_a_small_query_after_one_that_takes_all_but_a_little_delta(eps: float) -> None:
    filter = rz.NaturalFilter(rz.approximate_dp(0.61017, 1.684e-6), 5)
    chain = written_by(filter, [m.Laplace(1.0 / eps), m.Laplace(3e5)])
    assert chain.records[2].admitted
    report = verify_records({"b": chain.records}, chain.tables)
    assert report.ok, report.text.split("What this")[0]


@pytest.mark.parametrize("query", [m.Laplace, m.ExponentialMechanism, m.PureDp])
@pytest.mark.parametrize("mu", [0.12, 2.18, 36.0])
@pytest.mark.parametrize("share", [1.0, 1.0 - 1e-9, 0.99, 0.5])
def test_the_largest_query_that_fits_a_gaussian_is_proven(
    query: type[m.Mechanism], mu: float, share: float
) -> None:
    """Costs close to the end of a budget were too small by 1e-12, or took too many cells."""
    filter = rz.GdpResidueFilter(mu)

    def of(eps: float) -> m.Mechanism:
        return m.Laplace(1.0 / eps) if query is m.Laplace else query(eps)

    low, high = 1e-3, 599.0
    for _ in range(50):
        middle = (low * high) ** 0.5
        fits = filter.decide(filter.initial(), of(middle)).admitted
        low, high = (middle, high) if fits else (low, middle)
    chain = written_by(filter, [of(low * share)])
    assert chain.records[1].admitted
    report = verify_records({"b": chain.records}, {})
    assert report.ok, report.text.split("What this")[0]


def test_a_plan_with_laplace_noise_refuses_what_lies_below_no_planned_query() -> None:
    filter = rz.PlanFilter(1.0, 1e-6, [m.Laplace(20.0)] * 12)
    assert not filter.check(m.Laplace(12.0)).admitted
    assert filter.check(m.Laplace(25.0)).admitted


def test_a_plan_does_not_split_points_for_a_gaussian() -> None:
    """Two of them lie above it, and one does not: there is no proof that what is left does."""
    filter = rz.PlanFilter(1.0, 1e-5, [m.ApproximateDp(0.1, 1e-6)] * 4)
    assert filter.check(m.Gaussian(sigma=40.0)).admitted
    assert not filter.check(m.Gaussian(sigma=20.0)).admitted


def test_commits_and_menus_reject_what_has_too_many_outcomes() -> None:
    batch = [m.SelfComposed(m.DiscreteLaplace(50.0, 10), 63).to_dict()]
    assert "outcomes of a batch" in (unprovable_commit(batch, "add-remove") or "")
    assert unprovable_commit([m.SelfComposed(m.PureDp(0.01), 63).to_dict()], "add-remove") is None
    sampled, menu = m.SubsampledGaussian(0.1, 0.01).to_dict(), {"kind": "menu"}
    assert "at most 8 under replace-one" in (unprovable(sampled, menu, "replace-one") or "")
    assert unprovable(sampled, menu, "add-remove") is None


def test_filters_whose_steps_cannot_be_proven_are_not_created(tmp_path: Path) -> None:
    ledger = rz.open_ledger(f"sqlite:///{tmp_path}/budgets.db")
    for number, filter in enumerate([
        rz.GdpFilter(1e5),
        rz.GdpResidueFilter(1e-50),
        rz.PureFilter(1e-200),
        rz.RenyiFilter(1.0 + 1e-8, 1.0),
        rz.PlanFilter(1.0, 1e-6, [m.Laplace(1e15)]),
        rz.NaturalFilter(rz.approximate_dp(1.0, 1e-3), 9, [m.Zcdp(0.125)]),
    ]):  # fmt: skip
        with pytest.raises(rz.ArgumentError, match="verified"):
            ledger.create_budget(f"b{number}", filter)
    assert ledger.budgets() == ()


def test_what_a_forged_record_asks_ends_in_little_memory(tmp_path: Path) -> None:
    """A query that made the verifier take gigabytes and die, in a process of its own."""
    filter, query = rz.ApproximateGdpResidueFilter(1.0, 1e-3), m.TruncatedLaplace(1e5, 1e300)
    assert unprovable(query.to_dict(), filter.to_dict(), "add-remove") is not None
    chain = written_by(filter, [query])
    assert chain.records[1].admitted
    export = tmp_path / "export.jsonl"
    export.write_text("".join(lines(chain.records)), encoding="ascii")
    # What needs more than two gigabytes dies there, and the exit code says so.
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30));"
        "from residua.cli import main; sys.argv[0] = 'residua'; main()"
    )
    command = [sys.executable, "-c", code, "verify", str(export)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 7, done.stdout + done.stderr
    assert "undecided" in done.stdout
