"""What a gate does while a server commits: nothing that anybody could tell, but sooner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import residua as rz
from residua.filters.base import Filter
from residua.ledger.api.commands import Call, spend
from residua.ledger.domain import rules
from residua.ledger.operations.foresight import _PATIENCE, Foresight
from residua.ledger.operations.spending import Spend
from residua.ledger.operations.unit_of_work import Page
from residua.mechanisms import Laplace, PureDp

QUERY = Laplace(scale=40.0)


@pytest.fixture(autouse=True)
def from_nothing() -> None:
    rules.decided.cache_clear()


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The states on which a filter decided, in order."""
    found: list[Any] = []
    decide = Filter.decide

    def noted(self: Filter, state: Any, query: Any, **options: Any) -> Any:
        found.append(state)
        return decide(self, state, query, **options)

    monkeypatch.setattr(Filter, "decide", noted)
    return found


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """One with two budgets on it, and a quota below the second."""
    with rz.open_ledger(tmp_path / "l.db") as ledger:
        ledger.create_budget("a", rz.GdpResidueFilter(mu=1.0))
        ledger.create_budget("b", rz.GdpResidueFilter(mu=2.0))
        ledger.create_budget("c", rz.GdpResidueFilter(mu=1.5), parent="b")
        with ledger._gate.looking(["a", "c"]) as looked_at:
            yield looked_at


def asking(*names: str) -> list[Spend]:
    return [spend("local", name, QUERY) for name in names]


def never() -> bool:
    return False


def test_what_was_asked_twice_is_decided_for_a_third_time(page: Page, decided: list[Any]) -> None:
    foresight = Foresight()
    foresight.look_ahead(page, asking("a", "a", "c"), never)
    assert decided == [], "it was asked in one turn alone"
    foresight.look_ahead(page, asking("a", "a", "c"), never)
    first = page.entries["a"].state
    second = rules.decided(page.entries["a"].filter, first, QUERY, "add-remove").state
    b, c = page.entries["b"].state, page.entries["c"].state
    assert decided == [first, second, c, b], "one after another, and what is above"


def test_something_else_is_not_expected(page: Page, decided: list[Any]) -> None:
    foresight = Foresight()
    foresight.look_ahead(page, asking("a"), never)
    foresight.look_ahead(page, [spend("local", "a", Laplace(scale=41.0))], never)
    assert decided == []


def test_it_ends_when_the_server_has_answered(page: Page, decided: list[Any]) -> None:
    foresight = Foresight()
    foresight.look_ahead(page, asking("a", "a", "a"), never)
    foresight.look_ahead(page, asking("a", "a", "a"), lambda: len(decided) == 2)
    assert len(decided) == 2


def test_a_budget_with_holds_is_left_alone(tmp_path: Path, decided: list[Any]) -> None:
    with rz.open_ledger(tmp_path / "l.db") as ledger:
        ledger.create_budget("a", rz.GdpResidueFilter(mu=1.0))
        ledger.reserve("a", Laplace(scale=50.0))
        with ledger._gate.looking(["a"]) as page:
            decided.clear()
            foresight = Foresight()
            for _ in range(3):
                foresight.look_ahead(page, asking("a"), never)
    assert decided == []


def test_decisions_that_take_long_are_left_to_who_asks(
    page: Page, decided: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from residua.ledger.operations import foresight as module

    clock = [0.0]

    def work() -> float:
        clock[0] += 0.002
        return clock[0]

    monkeypatch.setattr(module.time, "thread_time", work)
    foresight = Foresight()
    for _ in range(4 * _PATIENCE):
        rules.decided.cache_clear()
        foresight.look_ahead(page, asking("a"), never)
    assert len(decided) == _PATIENCE
    now = module.time.monotonic()
    monkeypatch.setattr(module.time, "monotonic", lambda: now + 2.0)
    rules.decided.cache_clear()
    foresight.look_ahead(page, asking("a"), never)
    assert len(decided) == _PATIENCE + 1, "and tried again later"


@pytest.mark.needs("pgserver", "psycopg")
class TestOnAServer:
    """Where there is somebody to wait for."""

    @pytest.fixture
    def remote(self, schema_url: str, tmp_path: Path) -> Iterator[rz.Ledger]:
        with rz.open_ledger(schema_url, anchor=tmp_path / "anchor") as ledger:
            ledger.create_budget("b", rz.PureFilter(1.0))
            yield ledger

    def test_the_gate_finds_decisions_ready(
        self, remote: rz.Ledger, decided: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gate = remote._gate
        look_ahead = gate._foresight.look_ahead
        early: list[int] = []

        def patient(page: Page, spends: Any, answered: Callable[[], bool]) -> None:
            # A server that is quicker than the decision would not show anything.
            before = len(decided)
            look_ahead(page, spends, never)
            early.append(len(decided) - before)

        monkeypatch.setattr(gate._foresight, "look_ahead", patient)
        calls = [Call("spend", {"budgets": "b", "query": PureDp(0.01)})] * 3
        assert remote.spend("b", PureDp(0.01)).admitted  # It is known to be quick from here on.
        for _ in range(5):
            assert all(each.admitted for each in remote.many(calls))
        assert early[2:] == [3, 3, 3, 3]
        before = len(decided)
        assert all(each.admitted for each in remote.many(calls))
        assert len(decided) - before == early[-1], "at the gate itself nothing was left to decide"
        (left,) = remote.budget("b").state.left  # type: ignore[attr-defined]
        assert Fraction(left) == Fraction(81, 100)
        assert remote.verify().ok

    @pytest.mark.parametrize("where", ["_foresight.look_ahead", "anchor.expect"])
    def test_what_fails_meanwhile_does_not_fail_the_spend(
        self, remote: rz.Ledger, monkeypatch: pytest.MonkeyPatch, where: str
    ) -> None:
        holder, name = where.split(".")

        def fails(*_: object) -> None:
            raise ZeroDivisionError

        owner = remote._gate.anchor if holder == "anchor" else remote._gate._foresight
        monkeypatch.setattr(owner, name, fails)
        for number in range(4):
            receipt = remote.spend("b", PureDp(0.125), key=str(number))
            assert receipt.admitted and not receipt.replayed
        assert remote.verify().proven == 5
        (left,) = remote.budget("b").state.left  # type: ignore[attr-defined]
        assert Fraction(left) == Fraction(1, 2)

    def test_an_interrupt_meanwhile_leaves_what_the_key_tells(
        self, remote: rz.Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The commit was sent: whoever was interrupted asks again, and what it says holds."""
        remote.spend("b", PureDp(0.125), key="first")

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(remote._gate._foresight, "look_ahead", interrupted)
            remote.spend("b", PureDp(0.125), key="second")
        receipt = remote.spend("b", PureDp(0.125), key="second")
        assert receipt.admitted
        assert len(remote.history("b")) == 3
        (left,) = remote.budget("b").state.left  # type: ignore[attr-defined]
        assert Fraction(left) == Fraction(3, 4), "once, whoever did it"
        assert remote.verify().ok
