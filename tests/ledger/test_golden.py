"""A golden file for each version of records, which must be read for ever.

`python tests/ledger/test_golden.py` writes the file of the present version where there is none;
what was released is never written again.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import residuum as rz
from residuum import records
from residuum.ledger.export import read_export
from residuum.mechanisms import Gaussian, Laplace, PureDp, SubsampledGaussian

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
VERSIONS = range(1, records.VERSION + 1)


def golden(version: int) -> Path:
    return GOLDEN / f"records-v{version}.jsonl"


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
    lines = golden(version).read_text().splitlines(keepends=True)
    first = records.from_line(lines_of(lines)[0])
    with rz.open_ledger(tmp_path / "a.db") as ledger:
        adopt(ledger, str(first.body["ledger"]))
    (tmp_path / "a.db.anchor").unlink()
    with rz.open_ledger(tmp_path / "a.db") as ledger:
        last = {record.budget: record.hash for record in map(records.from_line, lines_of(lines))}
        done = ledger.recover(export=io.StringIO("".join(lines)), heads=last)
        assert done.applied == len(lines_of(lines))
        for budget in ledger.budgets():
            for record in ledger.history(budget.name):
                if record.moves:
                    before = budget.filter.state_from_json(record.body["before"])
                    query = rz.mechanisms.from_json(record.mechanism)
                    now = budget.filter.decide(before, query, relation=budget.neighbouring)
                    then = budget.filter.state_from_json(record.body["after"])
                    assert now.admitted
                    # Bounds may become tighter, so the last digits of a cost may fall.
                    assert now.state.left == pytest.approx(then.left, rel=1e-6)  # type: ignore[attr-defined]
            if not budget.retired and not budget.holds:
                assert ledger.spend(budget.name, PureDp(1e-6)).admitted


def lines_of(lines: list[str]) -> list[str]:
    """Those that are records."""
    return [line for line in lines if line.startswith('{"hash"')]


def adopt(ledger: rz.Ledger, id: str) -> None:
    """Give an empty ledger the id of another."""
    from sqlalchemy import update

    from residuum.ledger import schema

    with ledger.store.writing() as connection:
        mine = schema.meta.c.name == "ledger"
        connection.execute(update(schema.meta).where(mine).values(value=id))
        connection.commit()


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
            ledger.spend(["census", "mixed"], Gaussian(12.0))
            ledger.spend("mixed", SubsampledGaussian(4.0, 0.01))
            ledger.reserve("quota", PureDp(0.1)).commit()
            ledger.reserve("quota", PureDp(0.1)).cancel("not needed")
            ledger.reserve("mixed", Gaussian(50.0), ttl=0.05)
            ledger.spend("daily", PureDp(0.5))
            time.sleep(1.05)
            ledger.refresh("daily")
            ledger.spend("mixed", Gaussian(60.0))
            ledger.retire("closed", "the study is over")
            ledger.spend("lost", Gaussian(10.0))
            seq, head = ledger.budget("lost").seq, ledger.budget("lost").head
            ledger._gate.anchor.write({"lost": (seq + 1, head)})  # type: ignore[union-attr]
        with rz.open_ledger(where, principal="bob") as ledger:
            ledger.recover(retire=True)
            heads = {each.name: each.head for each in ledger.budgets()}
        where.with_name("golden.db.anchor").unlink()
        with rz.open_ledger(where, principal="bob") as ledger:
            ledger.recover(heads=heads)
            ledger.export(path)


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    if not golden(records.VERSION).exists():
        written(golden(records.VERSION))
