"""Golden files of each version of records, which must be read and verified for ever.

`records` has every type of record; `kinds` has filters whose states and steps are of another kind
(potentials and tables, plans, commitments, unions), partitions and the other relations.
`python tests/ledger/test_golden.py` writes the files of the present version where there are none;
what was released is never written again.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import residua as rz
from residua import records
from residua.filters.codec import KINDS
from residua.ledger.recovery.export import read_export
from residua.mechanisms import Gaussian, Laplace, PureDp, SubsampledGaussian
from residua.mechanisms.relations import RELATIONS
from residua.verify import verify_export

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
VERSIONS = range(1, records.VERSION + 1)


PROVEN = {("records", 1): 22, ("kinds", 1): 50}
"""How many steps each file has, all of which are proven."""


DECLARATION = {
    "source": "/data/staff.parquet",
    "columns": [["person_id", "integer"], ["dept", "text"], ["salary", "real"]],
    "unit_column": "person_id",
    "max_groups": 3,
    "max_rows": 2,
    "bounds": {"salary": ["0", "200000", "0.01"]},
    "keys": {"dept": ["eng", "ops", "hr"]},
    "data_version": "1",
    "shared_answers": False,
}


def golden(version: int, what: str = "records") -> Path:
    return GOLDEN / f"{what}-v{version}.jsonl"


@pytest.mark.needs("flint")
@pytest.mark.parametrize(("what", "version"), PROVEN)
def test_every_golden_file_is_verified(what: str, version: int) -> None:
    report = verify_export(golden(version, what))
    assert report.ok, report.text
    assert report.proven == PROVEN[what, version]


@pytest.mark.parametrize("version", VERSIONS)
def test_golden_files_have_every_kind(version: int) -> None:
    """Of filters, relations, partitions, tables and commitments."""
    filters, relations, parts, tables, asked = set(), set(), set(), set(), set()
    for what in ("records", "kinds"):
        for chain in read_export(golden(version, what)).chains.values():
            first = chain[0].body
            filters.add(first["filter"]["kind"])
            relations.add(first["relation"])
            parts.add(first["partition"])
            for record in chain:
                tables |= set(record.body.get("tables", ()))
                asked.add((record.mechanism or {}).get("kind"))
    assert filters == set(KINDS)
    assert relations == set(RELATIONS)
    assert len(parts) > 2
    assert tables == {"potential", "guarantee", "plan", "1.potential"}
    assert "commit" in asked


@pytest.mark.parametrize("version", VERSIONS)
def test_records_of_every_version_are_read(version: int) -> None:
    read = read_export(golden(version))
    seen = set()
    for name, chain in read.chains.items():
        before = None
        for record in chain:
            assert records.follows(before, record) is None
            assert record.body["v"] == version and record.budget == name
            assert isinstance(records.state_after(record), dict)
            seen.add(record.type)
            before = record
    assert seen == set(records.FIELDS), "every type of record is in it"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_ledger_goes_on_from_records_of_every_version(version: int, tmp_path: Path) -> None:
    """States and descriptions still mean what they meant: a ledger takes them over and spends."""
    with taken_over(golden(version), tmp_path) as ledger:
        for budget in ledger.budgets():
            for record in ledger.history(budget.name):
                if record.moves:
                    before = budget.filter.state_from_json(record.body["before"])
                    query = rz.mechanisms.from_json(record.mechanism)
                    now = budget.filter.decide(before, query, relation=budget.relation)
                    then = budget.filter.state_from_json(record.body["after"])
                    assert now.admitted
                    # Bounds may become tighter, so the last digits of a cost may fall.
                    assert now.state.left == pytest.approx(then.left, rel=1e-6)  # type: ignore[attr-defined]
            if not budget.retired and not budget.holds:
                assert ledger.spend(budget.name, PureDp(1e-6)).admitted


@pytest.mark.needs("flint")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_ledger_goes_on_from_every_kind(version: int, tmp_path: Path) -> None:
    """From the states as they are stored, and with the tables that were exported."""
    with taken_over(golden(version, "kinds"), tmp_path) as ledger:
        for budget in ledger.budgets():
            if not any(each.parent == budget.name for each in ledger.budgets()):
                # A budget that is committed to one query has no room for another.
                room = budget.name != "commit to one"
                assert ledger.spend(budget.name, PureDp(1e-6)).admitted is room, budget
        report = ledger.verify()
        assert report.ok, report.text


@contextmanager
def taken_over(path: Path, directory: Path) -> Iterator[rz.Ledger]:
    """A ledger that begins with all records of an export."""
    lines = path.read_text().splitlines(keepends=True)
    read = [records.from_line(line) for line in lines if line.startswith('{"hash"')]
    with rz.open_ledger(directory / "a.db") as ledger:
        last = {record.budget: record.hash for record in read}
        done = ledger.recover(export=io.StringIO("".join(lines)), heads=last)
        assert done.applied == len(read)
        yield ledger


def written(path: Path) -> None:
    """A ledger with every type of record, exported."""
    import tempfile
    import time

    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory) / "golden.db"
        with rz.open_ledger(where, principal="alice") as ledger:
            ledger.create_budget("census", rz.GdpResidueFilter(1.0), data="census")
            ledger.create_budget("quota", rz.PureFilter(1.0), parent="census")
            ledger.create_budget("daily", rz.BasicFilter(1.0, 1e-6), window=1.0)
            ledger.create_budget("mixed", rz.ApproximateZcdpFilter(1.0, 1e-6, 5e-7))
            ledger.create_budget("closed", rz.RenyiFilter(8.0, 1.0))
            ledger.create_budget("lost", rz.ZcdpFilter(0.5))
            ledger.spend("quota", Laplace(20.0), key="first")
            ledger.spend("quota", PureDp(9.0), key="too much")
            ledger.spend(["census", "mixed"], Gaussian(sigma=12.0))
            ledger.spend("mixed", SubsampledGaussian(4.0, 0.01))
            ledger.declare_table("staff", "quota", DECLARATION)
            asked = {"table": "staff", "version": 1, "sql": "SELECT COUNT(*) FROM staff"}
            ledger.reserve("quota", PureDp(0.1), question=asked).commit()
            ledger.reserve("quota", PureDp(0.1)).cancel("not needed")
            ledger.reserve("mixed", Gaussian(sigma=50.0), ttl=0.05)
            ledger.spend("daily", PureDp(0.5))
            time.sleep(1.05)
            ledger.refresh("daily")
            ledger.spend("mixed", Gaussian(sigma=60.0))
            ledger.retire("closed", "the study is over")
            ledger.spend("lost", Gaussian(sigma=10.0))
            seq, head = ledger.budget("lost").seq, ledger.budget("lost").head
            ledger._committer.anchor.write({"lost": (seq + 1, head)})
        with rz.open_ledger(where, principal="bob") as ledger:
            ledger.recover(retire=True)
            heads = {each.name: each.head for each in ledger.budgets()}
        where.with_name("golden.db.anchor").unlink()
        with rz.open_ledger(where, principal="bob") as ledger:
            ledger.recover(heads=heads)
            ledger.export(path)


def kinds_written(path: Path) -> None:
    """A ledger with the kinds that `written` has not, exported."""
    import tempfile

    from residua.filters.potential.renyi_commit import Commit

    with (
        tempfile.TemporaryDirectory() as directory,
        rz.open_ledger(Path(directory) / "golden.db", principal="alice") as ledger,
    ):
        menu = [rz.pure_dp(0.25), rz.gaussian(sigma=10.0)]
        ledger.create_budget("menu", rz.MenuFilter(1.0, 1e-6, menu))
        ledger.spend("menu", PureDp(0.25))
        ledger.spend("menu", Laplace(30.0))
        ledger.create_budget("auto", rz.AutoFilter(1.0, 1e-6))
        ledger.spend("auto", Gaussian(sigma=10.0))
        ledger.create_budget("plan", rz.PlanFilter(1.0, 1e-6, [Laplace(20.0)] * 5))
        ledger.spend("plan", Laplace(20.0))
        ledger.spend("plan", PureDp(0.03))
        ledger.reserve("plan", Laplace(20.0)).commit()
        ledger.create_budget("natural", rz.NaturalFilter(rz.approximate_dp(1.0, 1e-6), rounds=5))
        ledger.spend("natural", PureDp(0.1))
        ledger.spend("natural", Laplace(20.0))
        ledger.create_budget("natural pure", rz.NaturalFilter(rz.pure_dp(1.0)))
        ledger.spend("natural pure", PureDp(0.1))
        ledger.create_budget("profile", rz.AdditiveProfileFilter(1.0, 1e-6, 10))
        ledger.spend("profile", PureDp(0.01))
        ledger.create_budget("commit", rz.RenyiCommitFilter(1.0, 1e-3, 8.0))
        ledger.spend("commit", Gaussian(sigma=20.0))
        ledger.spend("commit", Commit(rz.GdpResidueFilter(0.05)))
        ledger.spend("commit", Gaussian(sigma=30.0))
        ledger.reserve("commit", Gaussian(sigma=50.0)).commit()
        ledger.create_budget("commit to one", rz.RenyiCommitFilter(1.0, 1e-3, 8.0))
        ledger.spend("commit to one", Commit(Gaussian(sigma=10.0)))
        ledger.create_budget("target", rz.TargetResidueFilter(1.0, 1e-6))
        ledger.spend("target", PureDp(0.1))
        ledger.spend("target", Laplace(20.0))
        ledger.spend("target", Gaussian(sigma=50.0))
        ledger.spend("target", PureDp(0.02))
        ledger.create_budget("gdp", rz.GdpFilter(1.0))
        ledger.spend("gdp", Gaussian(sigma=10.0))
        ledger.create_budget("slack", rz.ApproximateGdpResidueFilter(1.0, 1e-6))
        ledger.spend("slack", SubsampledGaussian(4.0, 0.01))
        ledger.create_budget("curve", rz.RenyiCurveFilter({2.0: 0.1, 8.0: 0.5}))
        ledger.spend("curve", Gaussian(sigma=20.0))
        menu_too = rz.UnionFilter((rz.PureFilter(1.0), rz.MenuFilter(1.0, 1e-6, menu)))
        ledger.create_budget("union", menu_too)
        ledger.spend("union", PureDp(0.25))
        ledger.spend("union", Gaussian(sigma=30.0))
        ledger.reserve("union", PureDp(0.01)).commit()
        moved = {"relation": "replace-one", "unit": "household"}
        ledger.create_budget("replaced", rz.GdpResidueFilter(1.0), **moved)
        ledger.create_budget(
            "north", rz.GdpResidueFilter(0.5), parent="replaced", partition="north"
        )
        ledger.create_budget(
            "south", rz.GdpResidueFilter(0.5), parent="replaced", partition="south"
        )
        ledger.create_budget("quota", rz.PureFilter(0.25), parent="south")
        ledger.spend("north", PureDp(0.1), assume_budget_relation=True)
        ledger.spend(["quota", "north"], Gaussian(sigma=20.0), assume_budget_relation=True)
        ledger.spend("quota", PureDp(0.1), assume_budget_relation=True)
        ledger.create_budget("zeroed", rz.PureFilter(1.0), relation="zero-out")
        ledger.spend("zeroed", PureDp(0.1))
        ledger.export(path)


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for what, make in {"records": written, "kinds": kinds_written}.items():
        if not golden(records.VERSION, what).exists():
            make(golden(records.VERSION, what))
