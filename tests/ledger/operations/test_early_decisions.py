"""Decisions that are made off the lock, and what is kept of a query meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from residua.errors import ArgumentError, LedgerError, TooExpensive
from residua.filters.additive.basic import PureFilter
from residua.ledger.domain import rules
from residua.ledger.domain.described_query import describe_query
from residua.ledger.domain.rules import BudgetDecision, BudgetSnapshot
from residua.ledger.operations.early_decisions import QUICK_SECONDS, EarlyDecisions, Slow, here
from residua.mechanisms import Gaussian, PureDp
from residua.mechanisms.composition import Composed
from residua.work_limit import limited, remembered, work

pytestmark = pytest.mark.needs("sqlalchemy")

SECOND = 450_000_000


def snapshot(spent: float = 0.0) -> BudgetSnapshot:
    filter = PureFilter(1.0)
    state = filter.decide(filter.initial(), PureDp(spent)).state
    return BudgetSnapshot(filter, state, (), "add-remove", "person")


@remembered(maxsize=8)
def _groundwork(n: int) -> int:
    work(2 * SECOND)
    return n


def costly(snapshots: dict[str, BudgetSnapshot]) -> dict[str, BudgetDecision]:
    _groundwork(1)
    return {name: BudgetDecision(True, each.state, "") for name, each in snapshots.items()}


def elsewhere(do: Callable[..., Any], *arguments: Any) -> Any:
    return do(*arguments)


def test_a_decision_is_made_within_a_limit_or_early() -> None:
    early, first, second = EarlyDecisions(), {"b": snapshot()}, {"b": snapshot(0.25)}
    with pytest.raises(Slow) as slow:
        early.find(SECOND, costly, first)
    assert slow.value.budgets == {"b"}
    early.compute(slow.value, elsewhere)
    assert early.find(SECOND, costly, first)["b"].admitted
    with pytest.raises(Slow):  # What is in a cache now would take as long in another process.
        early.find(SECOND, costly, second)
    assert early.find(None, costly, second)["b"].admitted, "without a limit it is decided"
    assert early.find(3 * SECOND, costly, second)["b"].admitted


def test_what_counts_much_and_is_quick_here_may_count_as_much_again() -> None:
    early, more = EarlyDecisions(), [0]

    def judge(snapshots: dict[str, BudgetSnapshot]) -> dict[str, BudgetDecision]:
        work(more[0])
        return costly(snapshots)

    early.compute(Slow(judge, frozenset("b"), ({"b": snapshot()},)), here)
    assert early.find(SECOND, judge, {"b": snapshot(0.25)})["b"].admitted
    more[0] = 2 * SECOND
    with pytest.raises(Slow):
        early.find(SECOND, judge, {"b": snapshot(0.5)})
    with pytest.raises(Slow):
        early.find(SECOND, judge, {"c": snapshot()})


def test_what_is_no_longer_quick_here_is_made_early_again() -> None:
    """A cache has what other budgets had computed, and may not have the next state."""
    early, seconds = EarlyDecisions(), [0.0]

    def judge(snapshots: dict[str, BudgetSnapshot]) -> dict[str, BudgetDecision]:
        begun = time.thread_time()
        while time.thread_time() - begun < seconds[0]:
            pass
        return costly(snapshots)

    costly({})
    early.compute(Slow(judge, frozenset("b"), ({"b": snapshot()},)), here)
    seconds[0] = 2 * QUICK_SECONDS
    assert early.find(SECOND, judge, {"b": snapshot(0.25)})["b"].admitted
    with pytest.raises(Slow):
        early.find(SECOND, judge, {"b": snapshot(0.5)})


def test_a_limit_around_it_is_not_taken_for_the_limit_under_the_lock() -> None:
    with pytest.raises(TooExpensive), limited("all", SECOND // 2):
        EarlyDecisions().find(SECOND, costly, {"b": snapshot()})


@pytest.mark.parametrize(
    ("raised", "expected", "words"),
    [
        (ArgumentError("wrong"), ArgumentError, "wrong"),
        (ZeroDivisionError("zero"), LedgerError, "the decision failed, nothing was spent.*zero"),
    ],
)
def test_an_error_is_found_in_place_of_a_ruling(
    raised: Exception, expected: type[Exception], words: str
) -> None:
    def judge(_: object) -> dict[str, BudgetDecision]:
        raise raised

    early = EarlyDecisions()
    early.compute(Slow(judge, frozenset("b"), ({},)), here)
    with pytest.raises(expected, match=words):
        early.find(SECOND, judge, {})


def test_a_long_description_is_not_kept_with_its_ruling() -> None:
    """A caller chooses how long it is."""
    early = EarlyDecisions()
    queries = [describe_query(Gaussian(sigma=2.0))]
    for first in (2.0, 3.0):
        queries.append(
            describe_query(Composed(tuple(Gaussian(sigma=first + n) for n in range(200))))
        )
    for query in queries:
        early.compute(
            Slow(rules.judge, frozenset("b"), ({"b": snapshot()}, rules.spend, query)), here
        )
    kept = [key[3] for key in early._known]
    assert kept[0] == queries[0].text
    assert len(set(kept)) == 3 and max(map(len, kept)) < 100 < len(queries[1].text)
