"""OpenDP's measurements behind a ledger: paid first, run once a payment, one error for all."""

import asyncio
import logging
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import residua as rz

pytestmark = pytest.mark.needs("sqlalchemy")
guard_opendp = pytest.importorskip("residua.interop.opendp").guard_opendp


@pytest.fixture(scope="module")
def dp() -> Any:
    import opendp.prelude as prelude

    prelude.enable_features("contrib", "honest-but-curious")
    return prelude


@pytest.fixture(scope="module")
def space(dp: Any) -> Any:
    return dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


@pytest.fixture(scope="module")
def count(dp: Any, space: Any) -> Any:
    return space >> dp.t.then_count() >> dp.m.then_laplace(4.0)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[rz.Ledger]:
    with rz.open_ledger(f"sqlite:///{tmp_path}/budgets.db") as opened:
        opened.create_budget("people", rz.PureFilter(1.0))
        opened.create_budget("swaps", rz.PureFilter(1.0), relation="replace-one", data="x")
        yield opened


def left(ledger: rz.Ledger, name: str = "people") -> Fraction:
    (amount,) = ledger.budget(name).state.left  # type: ignore[attr-defined]
    return Fraction(amount)


def spied(dp: Any, space: Any, ledger: rz.Ledger, seen: list[Any]) -> Any:
    """A measurement that says what the ledger had left when it ran."""

    def run(data: Any) -> int:
        seen.append(left(ledger))
        return len(data)

    return dp.m.make_user_measurement(*space, dp.max_divergence(), run, lambda d: 0.25 * d, TO=int)


def test_it_is_paid_for_before_it_runs(dp: Any, space: Any, ledger: rz.Ledger) -> None:
    seen: list[Any] = []
    measured = guard_opendp(ledger, "people", spied(dp, space, ledger, seen), d_in=1)
    assert measured([1, 2, 3]) == 3
    assert seen == [Fraction(3, 4)], "debited before it starts"
    assert [r.type for r in ledger.history("people")] == ["create", "hold", "commit"]
    recorded = ledger.history("people")[-1].mechanism
    assert recorded == {"kind": "pure_dp", "eps": 0.25, "relation": "add-remove"}


def test_real_noise_until_the_budget_is_spent(count: Any, ledger: rz.Ledger) -> None:
    measured = guard_opendp(ledger, "people", count, d_in=1)
    answers = [measured([1] * 100) for _ in range(4)]
    assert all(isinstance(answer, int) for answer in answers)
    with pytest.raises(rz.Refused, match="0 % left"):
        measured([1] * 100)
    assert left(ledger) == 0
    assert ledger.verify().ok


def test_a_key_runs_once(dp: Any, space: Any, ledger: rz.Ledger) -> None:
    seen: list[Any] = []
    measured = guard_opendp(ledger, "people", spied(dp, space, ledger, seen), d_in=1)
    measured([1])
    measured([1], guard_key="monday")
    with pytest.raises(rz.AlreadySpent, match="monday"):
        measured([1], guard_key="monday")
    assert len(seen) == 2 and left(ledger) == Fraction(1, 2)

    def ask(_: int) -> bool:
        try:
            measured([1], guard_key="tuesday")
        except rz.AlreadySpent:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(ask, range(4))) == 1
    assert len(seen) == 3 and left(ledger) == Fraction(1, 4)


def test_what_goes_wrong_inside_is_one_constant_error(
    dp: Any, space: Any, ledger: rz.Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    def run(data: Any) -> int:
        raise ValueError(f"no row for {data[0]}")

    leaky = dp.m.make_user_measurement(*space, dp.max_divergence(), run, lambda d: 0.25 * d, TO=int)
    measured, messages = guard_opendp(ledger, "people", leaky, d_in=1), set()
    for secret in (4711, 1147):
        with caplog.at_level(logging.ERROR), pytest.raises(rz.MechanismFailed) as failed:
            measured([secret])
        messages.add(str(failed.value))
        assert failed.value.__cause__ is None and failed.value.__context__ is None
    # What is no member of the domain fails in the same words.
    with pytest.raises(rz.MechanismFailed) as failed:
        measured("four")
    messages.add(str(failed.value))
    assert len(messages) == 1 and "4711" not in str(messages) and "4711" in caplog.text
    assert left(ledger) == Fraction(1, 4), "nothing is refunded"


def test_the_relation_is_the_budgets(dp: Any, count: Any, ledger: rz.Ledger) -> None:
    """One row for another is a distance of two, and costs twice as much."""
    guard_opendp(ledger, "swaps", count, d_in=2)([1, 2])
    assert left(ledger, "swaps") == Fraction(1, 2)
    with pytest.raises(rz.ArgumentError, match="d_in must be at least 2 under replace-one"):
        guard_opendp(ledger, "swaps", count, d_in=1)
    with pytest.raises(rz.ArgumentError, match="budgets must have one neighbouring relation"):
        guard_opendp(ledger, ["people", "swaps"], count, d_in=2)
    sized = dp.vector_domain(dp.atom_domain(T=int), size=2), dp.change_one_distance()
    exchanged = dp.m.make_user_measurement(
        *sized, dp.max_divergence(), len, lambda d: 0.1 * d, TO=int
    )
    with pytest.raises(rz.UnsupportedError, match="replace-one or zero-out"):
        guard_opendp(ledger, "people", exchanged, d_in=1)
    assert guard_opendp(ledger, "swaps", exchanged, d_in=1)([1, 2]) == 2
    fixed = dp.vector_domain(dp.atom_domain(bounds=(0, 1)), size=2), dp.symmetric_distance()
    total = fixed >> dp.t.then_sum() >> dp.m.then_laplace(10.0)
    with pytest.raises(rz.UnsupportedError, match="makes the number of records public"):
        guard_opendp(ledger, "people", total, d_in=1)
    assert left(ledger, "swaps") == Fraction(2, 5)


def test_a_unit_of_several_records_pays_for_all(count: Any, ledger: rz.Ledger) -> None:
    guard_opendp(ledger, "people", count, d_in=3)([1, 2, 3])
    assert left(ledger) == Fraction(1, 4)
    with pytest.raises(TypeError, match="d_in"):
        guard_opendp(ledger, "people", count)
    with pytest.raises(rz.ArgumentTypeError, match="d_in must be the distance"):
        guard_opendp(ledger, "people", count, d_in=None)


def test_several_budgets_take_all_or_none(count: Any, ledger: rz.Ledger) -> None:
    ledger.create_budget("ana", rz.PureFilter(0.3), parent="people")
    measured = guard_opendp(ledger, ["ana", "people"], count, d_in=1)
    measured([1])
    with pytest.raises(rz.Refused):
        measured([1])
    assert left(ledger) == Fraction(3, 4) and left(ledger, "ana") == Fraction(1, 20)


def test_what_is_no_measurement_is_named(ledger: rz.Ledger, count: Any) -> None:
    with pytest.raises(rz.ArgumentTypeError, match="must be an OpenDP Measurement"):
        guard_opendp(ledger, "people", rz.laplace(2.0), d_in=1)
    with pytest.raises(rz.UnknownBudget):
        guard_opendp(ledger, "nobody", count, d_in=1)


def test_a_map_that_fails_runs_nothing_and_pays_nothing(
    dp: Any, space: Any, ledger: rz.Ledger
) -> None:
    def failing(d_in: int) -> float:
        raise ValueError("the map broke")

    for map in (failing, lambda d_in: math.inf, lambda d_in: math.nan):
        wrong = dp.m.make_user_measurement(*space, dp.max_divergence(), len, map, TO=int)
        with pytest.raises(rz.ArgumentError, match="privacy map"):
            guard_opendp(ledger, "people", wrong, d_in=1)
    assert left(ledger) == 1 and len(ledger.history("people")) == 1


def test_a_conversation_is_charged_whole_when_it_starts(
    dp: Any, space: Any, count: Any, ledger: rz.Ledger
) -> None:
    whole = dp.c.make_adaptive_composition(*space, dp.max_divergence(), 1, [0.25, 0.25])
    held = guard_opendp(ledger, "people", whole, d_in=1)([1, 2, 3])
    assert left(ledger) == Fraction(1, 2)
    assert isinstance(held(count), int) and isinstance(held(count), int)
    assert left(ledger) == Fraction(1, 2), "its own budget is OpenDP's to keep"


def test_it_may_run_in_a_task(dp: Any, space: Any, ledger: rz.Ledger) -> None:
    """In a thread, which a cancelled task does not stop: paid, and the answer is dropped."""
    seen: list[Any] = []
    measured = guard_opendp(ledger, "people", spied(dp, space, ledger, seen), d_in=1)

    async def main() -> list[int]:
        tasks = (asyncio.to_thread(measured, [1] * n) for n in range(3))
        return list(await asyncio.gather(*tasks))

    assert asyncio.run(main()) == [0, 1, 2]
    assert len(seen) == 3 and left(ledger) == Fraction(1, 4)
