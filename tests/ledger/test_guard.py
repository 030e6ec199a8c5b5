"""Guards hold, commit, then run: once, and never for free."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

import residuum as rz
from residuum.mechanisms import Laplace, PureDp


@pytest.fixture
def budget(ledger: rz.Ledger) -> rz.Ledger:
    ledger.create_budget("b", rz.PureFilter(1.0))
    return ledger


def left(ledger: rz.Ledger) -> Fraction:
    (amount,) = ledger.budget("b").state.left  # type: ignore[attr-defined]
    return Fraction(amount)


def test_a_guard_pays_before_it_runs(budget: rz.Ledger) -> None:
    @budget.guard("b", PureDp(0.25))
    def count(rows: int) -> int:
        assert left(budget) == Fraction(3, 4), "debited before it starts"
        return rows + 1

    assert count(41) == 42
    assert count.__name__ == "count"
    assert [r.type for r in budget.history("b")] == ["create", "hold", "commit"]


def test_a_fresh_key_for_each_call_unless_one_is_passed(budget: rz.Ledger) -> None:
    runs = []
    guarded = budget.guard("b", PureDp(0.25))(runs.append)
    guarded(1)
    guarded(2)
    guarded(3, guard_key="monday")
    with pytest.raises(rz.AlreadySpent, match="monday"):
        guarded(3, guard_key="monday")
    assert runs == [1, 2, 3] and left(budget) == Fraction(1, 4)


def test_one_key_from_many_threads_runs_once(budget: rz.Ledger) -> None:
    runs = []
    guarded = budget.guard("b", PureDp(0.1), key="once")(runs.append)

    def ask(worker: int) -> str:
        try:
            guarded(worker)
        except rz.AlreadySpent:
            return "already"
        return "ran"

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(ask, range(6)))
    assert found.count("ran") == len(runs) == 1 and left(budget) == Fraction(9, 10)


def test_a_refusal_runs_nothing(budget: rz.Ledger) -> None:
    runs = []
    guarded = budget.guard("b", PureDp(2.0))(runs.append)
    with pytest.raises(rz.Refused, match="would fit") as refused:
        guarded(1)
    assert not runs and not refused.value.answer.admitted  # type: ignore[attr-defined]
    assert left(budget) == 1 and budget.holds() == ()


def test_the_mechanism_may_depend_on_the_arguments(budget: rz.Ledger) -> None:
    @budget.guard("b", lambda rows, scale: Laplace(scale))
    def noisy(rows: int, scale: float) -> float:
        return rows / scale

    assert noisy(10, scale=5.0) == 2.0
    mechanism = budget.history("b")[-1].mechanism
    assert mechanism is not None and mechanism["scale"] == 5.0
    with pytest.raises(rz.ArgumentError, match="scale"):
        noisy(10, scale=-1.0)
    assert left(budget) == Fraction(4, 5)


def test_whatever_fails_inside_is_one_constant_error_and_nothing_comes_back(
    budget: rz.Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    @budget.guard("b", PureDp(0.25))
    def leaky(secret: str) -> None:
        raise ValueError(f"no row for {secret}")

    messages = set()
    for secret in ("alice", "bob"):
        with caplog.at_level(logging.ERROR), pytest.raises(rz.MechanismFailed) as failed:
            leaky(secret)
        messages.add(str(failed.value))
        assert failed.value.__cause__ is None and failed.value.__context__ is None
    assert len(messages) == 1 and not any("alice" in message for message in messages)
    assert "no row for alice" in caplog.text
    assert left(budget) == Fraction(1, 2)


def test_as_a_context_manager(budget: rz.Ledger) -> None:
    with budget.guard("b", PureDp(0.25), key="k") as receipt:
        assert receipt.admitted and not receipt.replayed
    with pytest.raises(rz.AlreadySpent), budget.guard("b", PureDp(0.25), key="k"):
        pytest.fail("entered twice")
    with pytest.raises(rz.MechanismFailed), budget.guard("b", PureDp(0.25)):
        raise RuntimeError("secret")
    with pytest.raises(rz.Refused), budget.guard("b", PureDp(0.75)):
        pytest.fail("entered without budget")
    assert left(budget) == Fraction(1, 2)


def test_async(budget: rz.Ledger) -> None:
    @budget.guard("b", PureDp(0.1))
    async def count(rows: int) -> int:
        await asyncio.sleep(0)
        if rows < 0:
            raise ValueError(rows)
        return rows + 1

    async def main() -> list[int]:
        async with budget.guard("b", PureDp(0.1)) as receipt:
            assert receipt.admitted
        with pytest.raises(rz.MechanismFailed):
            await count(-1)
        return list(await asyncio.gather(*(count(i) for i in range(4))))

    assert asyncio.run(main()) == [1, 2, 3, 4]
    assert left(budget) == Fraction(4, 10)


def test_a_hold_that_cannot_be_committed_is_let_go(budget: rz.Ledger) -> None:
    """The budget is retired between hold and commit: nothing runs, nothing stays held."""
    guard = budget.guard("b", PureDp(0.25), key="k")
    budget.reserve("b", PureDp(0.25), key="k", ttl=60.0)
    budget.retire("b", "over")
    with pytest.raises(rz.LedgerError):
        guard.admit()
    assert budget.holds() == () and left(budget) == 1
