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
from residua.provable import unprovable
from residua.records import lines
from verify.chains import written_by
from verify.queries import FILTERS, Draw

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
    (rz.GdpResidueFilter(1.0), m.FromAtoms((0.001, 0.0), (0.5, 0.5)), "mean square of the losses"),
    (rz.GdpResidueFilter(1.0), m.Laplace(1e308), "sensitivity / scale of laplace"),
    (rz.PureFilter(1.0), m.Laplace(1e308), "sensitivity / scale of laplace"),
    (rz.ApproximateGdpResidueFilter(1.0, 1e-3), m.TruncatedLaplace(1e5, 1e300), "bound / scale"),
    (rz.GdpFilter(1.0), m.Gdp(1e-12), "mu of gdp"),
    (rz.PureFilter(1.0), m.SelfComposed(m.PureDp(1e-9), 10**7), "copies in one query"),
    (rz.AutoFilter(1.0, 1e-6), m.Zcdp(0.001), "zcdp under the filter auto"),
    (rz.ZcdpFilter(1.0), m.PoissonSampled(m.Laplace(9.0), 0.1), "under the filter zcdp"),
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


def test_filters_whose_steps_cannot_be_proven_are_not_created(tmp_path: Path) -> None:
    ledger = rz.open_ledger(f"sqlite:///{tmp_path}/budgets.db")
    for number, filter in enumerate([
        rz.GdpFilter(1e5),
        rz.GdpResidueFilter(1e-50),
        rz.PureFilter(1e-200),
        rz.RenyiFilter(1.0 + 1e-8, 1.0),
        rz.PlanFilter(1.0, 1e-6, [m.Laplace(1e15)]),
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
