"""Exports that no ledger wrote: one error that names the record, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import residua as rz
from ledger.damage import rows
from residua.errors import BrokenRecord
from residua.records import digest
from verify.forging import Bodies, bodies_of, export_lines, of_type, only, relinked

pytestmark = pytest.mark.needs("flint")

eps = rz.pure_dp


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Bodies:
    """A family with a hold that was cancelled, one that was committed, a refusal, a retirement."""
    with rz.open_ledger(tmp_path_factory.mktemp("honest") / "a.db") as ledger:
        ledger.create_budget("a", rz.PureFilter(1.0))
        ledger.create_budget("q", rz.PureFilter(1.0), parent="a")
        hold = ledger.reserve("a", eps(0.5))
        ledger.spend("a", eps(0.25))
        ledger.cancel(hold.id, "not needed")
        ledger.commit(ledger.reserve("q", eps(0.125)).id)
        ledger.spend("q", eps(5.0))
        ledger.retire("a", "done")
        return bodies_of(ledger)


def _set(budget: str, type: str, field: str, value: object) -> Callable[[Bodies], None]:
    def change(bodies: Bodies) -> None:
        of_type(bodies, budget, type)[field] = value

    return change


def _without_name(bodies: Bodies) -> None:
    del of_type(bodies, "a", "cancel")["group"][0]["budget"]


def _other_name(bodies: Bodies) -> None:
    of_type(bodies, "a", "commit")["group"][0]["budget"] = -1.0


def _beside_hold(field: object) -> Callable[[Bodies], None]:
    """What the first spend of `a`, which has an open hold beside it, says of that."""

    def change(bodies: Bodies) -> None:
        next(body for body in bodies["a"] if body["type"] == "spend")["holds"] = field

    return change


def _commit_of_one(bodies: Bodies) -> None:
    bodies["q"] = [body for body in bodies["q"] if body["type"] in ("create", "hold")]
    bodies["a"] = [body for body in bodies["a"] if body.get("admitted") is not False]
    only(of_type(bodies, "a", "commit"), "a")
    of_type(bodies, "a", "retire")["below"] = {"q": 1}


FORGED: dict[str, tuple[Callable[[Bodies], None], str]] = {
    "a member without a name": (_without_name, "'a' at number 3: group must list"),
    "a member whose name is a number": (_other_name, "'a' at number 5: group must list"),
    "assumed is a list": (_set("a", "hold", "assumed", [[]]), "'a' at number 4: assumed must"),
    "assumed is a number": (_set("q", "hold", "assumed", 2), "'q' at number 1: assumed must"),
    "a unit that no column holds": (_set("a", "create", "unit", 10**30), "number 0: unit must"),
    "a filter of no kind": (_set("a", "create", "filter", {}), "'a' at number 0: it cannot"),
    "no mechanism": (_set("q", "commit", "mechanism", {"kind": "x"}), "'q' at number 2"),
    "a request that is a number": (_set("a", "spend", "request", 0.5), "'a' at number 6: request"),
    "holds that rise": (_beside_hold([{"left": ["1"]}]), "'a' at number 2 is not what"),
    "holds of another form": (_beside_hold([{"left": {"0": 1}}]), "'a' at number 2"),
    "nothing set aside": (_set("a", "hold", "holds", []), "'a' at number 4: holds must have"),
    "too little set aside": (
        _set("a", "hold", "holds", [{"takes": ["0.0625"]}]),
        "'a' at number 4 is not what",
    ),
    "too much set aside": (_beside_hold([{"takes": ["0.9"]}]), "'a' at number 2 is not what"),
    "too many holds": (_beside_hold([{}, {}, {}, {}]), "'a' at number 2: holds must have"),
    "holds that are no list": (_beside_hold({}), "'a' at number 2: holds must be"),
    "below nothing": (_set("a", "retire", "below", {}), "'a' at number 7: below must name 'q'"),
    "below a negative number": (_set("a", "retire", "below", {"q": -3}), "number 7: below must"),
    "below half a number": (_set("a", "retire", "below", {"q": 1.5}), "number 7: below must"),
    "below a huge number": (_set("a", "retire", "below", {"q": 10**400}), "number 7: below must"),
    "below too early": (_set("a", "retire", "below", {"q": 1}), "'q' at number 2: a commit after"),
    "binding, and admitted": (_set("a", "commit", "binding", 1e12), "'a' at number 5: binding"),
    "refused by another budget": (_set("a", "spend", "binding", "zz"), "number 6: binding"),
    "a commit of a part": (_commit_of_one, "'a' at number 5: the commit lacks 'q'"),
    "tables without a move": (_set("a", "hold", "tables", {"t": "0" * 64}), "number 4: tables"),
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_export_is_one_error_that_names_the_record(
    tmp_path: Path, honest: Bodies, kind: str
) -> None:
    change, what = FORGED[kind]
    bodies = {name: [dict(body) for body in chain] for name, chain in honest.items()}
    for chain in bodies.values():
        for body in chain:
            body |= {"group": [dict(m) for m in body["group"]]} if "group" in body else {}
    change(bodies)
    texts = relinked(bodies)
    heads = {name: digest(chain[-1]) for name, chain in texts.items()}
    with rz.open_ledger(tmp_path / "new.db") as ledger:
        before = rows(ledger)
        with pytest.raises(BrokenRecord, match="the export of ") as error:
            ledger.recover(export=export_lines(texts), heads=heads, retire=True)
        assert what in str(error.value)
        assert rows(ledger) == before


def test_an_export_that_was_not_changed_is_taken_over(tmp_path: Path, honest: Bodies) -> None:
    texts = relinked(honest)
    heads = {name: digest(chain[-1]) for name, chain in texts.items()}
    with rz.open_ledger(tmp_path / "new.db") as ledger:
        assert ledger.recover(export=export_lines(texts), heads=heads).retired == ()
        assert ledger.verify().ok
