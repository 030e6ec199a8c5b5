"""Recovery from exports that lack records of some budgets: what is left verifies."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import residua as rz
from residua.records import from_line

pytestmark = pytest.mark.needs("flint")

eps = rz.pure_dp


def recovered(
    tmp_path: Path, ask: Callable[[rz.Ledger], object], kept: dict[str, int]
) -> rz.Ledger:
    """A new ledger from an export of another that has only so many records of some budgets."""
    with rz.open_ledger(tmp_path / "old.db") as old:
        old.create_budget("a", rz.PureFilter(1.0))
        old.create_budget("b", rz.PureFilter(1.0))
        ask(old)
        heads = {each.name: each.head for each in old.budgets()}
        old.export(tmp_path / "export.jsonl")
    ledger = rz.open_ledger(tmp_path / "new.db")
    ledger.recover(export=shortened(tmp_path / "export.jsonl", kept), heads=heads, retire=True)
    return ledger


def shortened(path: Path, kept: dict[str, int]) -> list[str]:
    """The lines of an export without the last records of some budgets."""
    lines = path.read_text().splitlines(keepends=True)
    records = [(from_line(line), line) for line in lines]
    return [line for each, line in records if each.seq < kept.get(each.budget, each.seq + 1)]


def types(ledger: rz.Ledger) -> dict[str, list[str]]:
    return {
        each.name: [record.type for record in ledger.history(each.name)]
        for each in ledger.budgets()
    }


def _spend(ledger: rz.Ledger) -> object:
    return ledger.spend(["a", "b"], eps(0.125), key="k")


def _hold(ledger: rz.Ledger) -> rz.Reservation:
    return ledger.reserve(["a", "b"], eps(0.125), key="h")


def _commit(ledger: rz.Ledger) -> object:
    return ledger.commit(_hold(ledger).id, key="k")


def _cancel(ledger: rz.Ledger) -> None:
    ledger.cancel(_hold(ledger).id, "not needed")


LOST = {
    "the spend": (_spend, 1, ["spend"], []),
    "the hold": (_hold, 1, ["hold", "expire"], []),
    "the commit": (_commit, 2, ["hold", "commit"], ["hold", "expire"]),
    "hold and commit": (_commit, 1, ["hold", "commit"], []),
    "the cancel": (_cancel, 2, ["hold", "cancel"], ["hold", "expire"]),
    "the whole chain": (_hold, 0, ["hold", "expire"], []),
}


@pytest.mark.parametrize("short", ["a", "b"])
@pytest.mark.parametrize("lost", LOST)
def test_a_ledger_that_lost_a_part_of_a_group_verifies(
    tmp_path: Path, lost: str, short: str
) -> None:
    """The budget is closed; what others say of its records is not verified against them."""
    ask, kept, whole, part = LOST[lost]
    other = "b" if short == "a" else "a"
    with recovered(tmp_path, ask, {short: kept}) as ledger:
        assert types(ledger) == {
            short: ["create", *part, "recover"],
            other: ["create", *whole, "resume"],
        }
        report = ledger.verify()
        assert report.ok and report.exit_code == 0, report.text
        (note,) = [note for note in report.notes if "lost records in a recovery" in note]
        assert f"{short!r}" in note and f"from number {max(kept, 1)} on" in note
        assert ledger.holds() == ()
        assert ledger.spend(other, eps(0.125)).admitted and ledger.verify().ok
        # What was recovered is exported and recovered once more.
        ledger.export(tmp_path / "again.jsonl")
        heads = {each.name: each.head for each in ledger.budgets()}
    with rz.open_ledger(tmp_path / "third.db") as third:
        assert third.recover(export=tmp_path / "again.jsonl", heads=heads).retired == ()
        assert third.verify().ok and third.holds() == ()


@pytest.mark.parametrize("short", ["a", "b"])
@pytest.mark.parametrize("lost", ["the spend", "the commit", "hold and commit"])
def test_a_key_of_which_a_record_was_lost_is_answered_by_the_others(
    tmp_path: Path, lost: str, short: str
) -> None:
    ask, kept, *_ = LOST[lost]
    first: list[rz.Receipt] = []
    with recovered(tmp_path, lambda old: first.append(ask(old)), {short: kept}) as ledger:
        if lost == "the spend":
            again = [ledger.spend(["a", "b"], eps(0.125), key="k")]
        else:
            (hold,) = {r.body["hold"] for r in ledger.history("b" if short == "a" else "a")[1:3]}
            again = [ledger.commit(hold, key="k"), ledger.commit(hold)]
        for each in again:
            left = {name: mark for name, mark in first[0].budgets.items() if name != short}
            assert each.replayed and each.admitted and dict(each.budgets) == left
            assert each.remaining[short] is None


@pytest.mark.parametrize("seed", range(6))
def test_a_ledger_recovered_from_any_part_of_its_export_verifies(tmp_path: Path, seed: int) -> None:
    draw = random.Random(f"lost {seed}")

    def ask(ledger: rz.Ledger) -> None:
        ledger.create_budget("q", rz.PureFilter(1.0), parent="a")
        ledger.create_budget("qq", rz.PureFilter(1.0), parent="q")
        ledger.create_budget("whole", rz.PureFilter(1.0))
        ledger.create_budget("n", rz.PureFilter(1.0), parent="whole", partition="n")
        names = ["a", "b", "q", "qq", "n"]
        for _ in range(20):
            some, open_ = draw.sample(names, draw.randint(1, 2)), ledger.holds()
            kind = draw.choice(["spend", "hold", "hold", "commit", "cancel"])
            if kind == "spend":
                ledger.spend(some, eps(0.03125))
            elif kind == "hold":
                ledger.reserve(some, eps(0.03125))
            elif open_ and kind == "commit":
                ledger.commit(draw.choice(open_).id)
            elif open_:
                ledger.cancel(draw.choice(open_).id, "not needed")
        ledger.retire("b", "done")
        ledger.retire("whole", "done")

    kept = {
        name: draw.randint(1, 4) for name in draw.sample(["a", "b", "q", "qq", "n", "whole"], 3)
    }
    with recovered(tmp_path, ask, kept) as ledger:
        report = ledger.verify()
        assert report.ok, report.text


def test_a_budget_is_not_recovered_without_the_one_above_it(tmp_path: Path) -> None:
    def ask(ledger: rz.Ledger) -> None:
        ledger.create_budget("q", rz.PureFilter(1.0), parent="a")

    with pytest.raises(
        rz.errors.BrokenRecord, match="'q' cannot be taken over without that of 'a'"
    ):
        recovered(tmp_path, ask, {"a": 0})
    with rz.open_ledger(tmp_path / "new.db") as ledger:
        assert ledger.budgets() == ()
