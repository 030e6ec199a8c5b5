"""Wrong calls are typed errors that spend nothing and leave the ledger as it was, on each store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import residua as rz
from batches import together
from ledger.conftest import STORES
from residua.ledger.operations.requests import Request
from residua.ledger.operations.spending import Spend
from residua.ledger.operations.unit_of_work import UnitOfWork
from residua.mechanisms import FromAtoms, Laplace, PureDp

CALLS: list[tuple[str, type[Exception], Callable[[rz.Ledger], Any]]] = [
    ("unknown budget", rz.UnknownBudget, lambda l: l.spend("nobody", PureDp(0.1))),
    ("unknown in a list", rz.UnknownBudget, lambda l: l.spend(["b", "nobody"], PureDp(0.1))),
    ("unknown history", rz.UnknownBudget, lambda l: l.history("nobody")),
    ("unknown check", rz.UnknownBudget, lambda l: l.check("nobody", PureDp(0.1))),
    ("retired", rz.RetiredBudget, lambda l: l.spend("old", PureDp(0.1))),
    ("retired hold", rz.RetiredBudget, lambda l: l.reserve("old", PureDp(0.1))),
    ("no names", rz.ArgumentError, lambda l: l.spend([], PureDp(0.1))),
    ("names of numbers", rz.ArgumentTypeError, lambda l: l.spend([1], PureDp(0.1))),
    ("no name", rz.ArgumentTypeError, lambda l: l.spend(None, PureDp(0.1))),
    ("name with a line break", rz.ArgumentError, lambda l: l.spend("a\nb", PureDp(0.1))),
    ("malformed JSON", rz.ArgumentError, lambda l: l.spend("b", '{"kind": "laplace", ')),
    ("JSON that is a list", rz.ArgumentTypeError, lambda l: l.spend("b", "[1]")),
    ("unknown kind", rz.ArgumentError, lambda l: l.spend("b", {"kind": "magic"})),
    ("missing field", rz.ArgumentError, lambda l: l.spend("b", {"kind": "laplace"})),
    ("NaN", rz.ArgumentError, lambda l: l.spend("b", '{"kind":"pure_dp","eps":NaN}')),
    ("no noise", rz.ArgumentError, lambda l: l.spend("b", {"kind": "laplace", "scale": 0.0})),
    ("a number", rz.ArgumentTypeError, lambda l: l.spend("b", 0.1)),
    ("nothing", rz.ArgumentTypeError, lambda l: l.spend("b", None)),
    ("empty key", rz.ArgumentError, lambda l: l.spend("b", PureDp(0.1), key="")),
    ("long key", rz.ArgumentError, lambda l: l.spend("b", PureDp(0.1), key="x" * 1000)),
    ("key of another type", rz.ArgumentTypeError, lambda l: l.spend("b", PureDp(0.1), key=7)),
    ("half a character", rz.ArgumentError, lambda l: l.spend("b", PureDp(0.1), key="\ud800")),
    ("no time to live", rz.ArgumentError, lambda l: l.reserve("b", PureDp(0.1), ttl=0.0)),
    ("NaN to live", rz.ArgumentError, lambda l: l.reserve("b", PureDp(0.1), ttl=float("nan"))),
    ("for ever", rz.ArgumentError, lambda l: l.reserve("b", PureDp(0.1), ttl=1e12)),
    ("unknown hold", rz.UnknownHold, lambda l: l.commit("nothing")),
    ("unknown hold to cancel", rz.UnknownHold, lambda l: l.cancel("nothing", "why")),
    ("no reason", rz.ArgumentError, lambda l: l.retire("b", " ")),
    ("exists", rz.BudgetExists, lambda l: l.create_budget("b", rz.PureFilter(1.0))),
    ("filter of nothing", rz.ArgumentTypeError, lambda l: l.create_budget("c", None)),
    ("filter unknown", rz.ArgumentError, lambda l: l.create_budget("c", {"kind": "magic"})),
    ("relation", rz.ArgumentError, lambda l: l.create_budget("c", rz.PureFilter(1.0), "swap")),
    ("window", rz.ArgumentError, lambda l: l.create_budget("c", rz.PureFilter(1.0), window=0.0)),
    ("tiny", rz.ArgumentError, lambda l: l.create_budget("c", rz.PureFilter(1.0), window=1e-300)),
    ("short", rz.ArgumentError, lambda l: l.create_budget("c", rz.PureFilter(1.0), window=0.999)),
    ("flag", rz.ArgumentTypeError, lambda l: l.spend("b", PureDp(0.1), assume_budget_relation=1)),
    ("after", rz.ArgumentError, lambda l: l.history("b", after=-1)),
    ("principal", rz.ArgumentError, lambda l: l.as_principal("")),
]  # fmt: skip


@pytest.mark.parametrize(("error", "call"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_a_wrong_call(
    shared: rz.Ledger, error: type[Exception], call: Callable[[rz.Ledger], Any]
) -> None:
    before = [(b.name, b.head) for b in shared.budgets()]
    with pytest.raises(error) as found:
        call(shared)
    assert isinstance(found.value, rz.ResiduaError) and str(found.value)
    assert [(b.name, b.head) for b in shared.budgets()] == before
    assert shared.spend("b", PureDp(1e-9)).admitted, "the connection is usable"


@pytest.fixture(scope="module", params=STORES)
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    home = tmp_path_factory.mktemp("bad")
    where = f"sqlite:///{home}/a.db"
    if request.param == "postgresql":
        where = request.getfixturevalue("postgres") + "&options=-csearch_path%3Dbad_calls"
        import psycopg

        with psycopg.connect(request.getfixturevalue("postgres"), autocommit=True) as connection:
            connection.execute("CREATE SCHEMA bad_calls")
    with rz.open_ledger(where, anchor=home / "anchor") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        ledger.create_budget("old", rz.PureFilter(1.0))
        ledger.retire("old", "test")
        yield ledger


def test_a_filter_with_a_history_is_not_taken_as_new(shared: rz.Ledger) -> None:
    used = rz.PureFilter(1.0)
    used.request(PureDp(0.5))
    with pytest.raises(rz.ArgumentError, match="history"):
        shared.create_budget("used", used)


def test_a_filter_that_lives_in_memory_only(shared: rz.Ledger) -> None:
    anything = rz.UpdateFilter(rz.gaussian(mu=1.0), lambda budget, loss: None)
    with pytest.raises(rz.ArgumentError, match="cannot be stored"):
        shared.create_budget("update", anything)


def test_a_query_that_cannot_be_verified_leaves_nothing_behind(shared: rz.Ledger) -> None:
    shared.create_budget("natural", rz.NaturalFilter(rz.pure_dp(1.0)))
    head = shared.budget("natural").head
    pair = rz.from_pair([0.5, 0.3, 0.2], [0.4, 0.35, 0.25])
    atoms = FromAtoms(*_atoms(pair), relation="add-remove")
    with pytest.raises(rz.ArgumentError, match="no proof is known for from_atoms"):
        shared.spend("natural", atoms, key="atoms")
    assert shared.budget("natural").head == head
    assert shared.spend("natural", Laplace(100.0), key="atoms").admitted, "errors are not sticky"


def _atoms(loss: rz.Pld) -> tuple[tuple[float, ...], tuple[float, ...]]:
    p, q = loss.pair()
    return tuple(float(np.log(a / b)) for a, b in zip(p, q, strict=True)), tuple(map(float, p))


@dataclass(frozen=True)
class Failing(Request):
    """A request whose decision fails in a way that nobody foresaw."""

    def run(self, work: UnitOfWork) -> None:
        raise ZeroDivisionError("of all things")


def test_a_decision_that_fails_is_an_error_of_its_own_caller_alone(shared: rz.Ledger) -> None:
    good = Spend.of("local", "b", PureDp(1e-9))
    requests = [good, Failing(principal="local", names=("b",)), good]
    first, failed, second = together(shared, requests)
    assert isinstance(failed, rz.LedgerError) and "of all things" in str(failed)
    assert first.admitted and second.replayed


@pytest.mark.parametrize("given", ["gdp_residue", "", 5, None, ["gdp_residue"]])
def test_a_filter_or_its_json_is_expected(ledger: rz.Ledger, given: Any) -> None:
    with pytest.raises((rz.ArgumentError, rz.ArgumentTypeError)) as caught:
        ledger.create_budget("b", given)
    assert str(caught.value).startswith("filter must be a filter or its JSON, such as {")


@pytest.mark.parametrize("window", [0, 0.5, -1.0])
def test_a_window_is_at_least_a_second(ledger: rz.Ledger, window: float) -> None:
    with pytest.raises(rz.ArgumentError, match="window must be at least 1 second"):
        ledger.create_budget("b", rz.PureFilter(1.0), window=window)
