"""How long a decision is taken to be, and what is kept of a query meanwhile."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import residua as rz
from residua.ledger.domain.described_query import asked
from residua.ledger.operations import early_decisions
from residua.ledger.operations.early_rulings import (
    OPERATIONS_A_SECOND,
    Found,
    short_of,
    timed,
)
from residua.mechanisms import Gaussian, PureDp
from residua.mechanisms.composition import Composed
from residua.work_limit import limited, remembered, work

pytestmark = pytest.mark.needs("sqlalchemy")


@remembered(maxsize=8)
def _groundwork(n: int) -> int:
    work(2 * OPERATIONS_A_SECOND)
    return n


def test_what_is_in_a_cache_takes_as_long_elsewhere() -> None:
    """A worker that was asked before answers at once; under the lock it could take a minute."""

    def judge() -> dict[str, Any]:
        assert _groundwork(1) == 1
        return {}

    for _ in range(2):
        found = timed(judge)
        assert found.result() == {} and found.seconds < 1
        assert found.seconds_anywhere == pytest.approx(2.0, rel=0.01)
        with limited("this", int(3 * OPERATIONS_A_SECOND)) as budget:
            timed(judge)
        assert budget.done >= 2 * OPERATIONS_A_SECOND, "a limit around it counts it as well"


def test_a_decision_that_is_quick_for_a_worker_is_not_made_under_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cached(judge: Callable[..., Any], *arguments: Any) -> Found:
        return timed(judge, *arguments)._replace(seconds=0.0, operations=int(OPERATIONS_A_SECOND))

    def elsewhere(do: Callable[..., Any], *arguments: Any) -> Any:
        called.append(do)
        return do(*pickle.loads(pickle.dumps(arguments)))

    monkeypatch.setattr(early_decisions, "timed", cached)
    called: list[object] = []
    with rz.open_ledger(f"sqlite:///{tmp_path}/b.db", anchor=tmp_path / "anchor") as ledger:
        for name in ("here", "elsewhere"):
            ledger.create_budget(name, rz.PureFilter(1.0))
        query = Composed((PureDp(0.01), PureDp(0.02)))
        for _ in range(3):
            before = len(called)
            assert ledger.with_compute(elsewhere).spend("elsewhere", query).admitted
            assert len(called) > before, "each time, as the budget has moved"
        ledger.spend("here", query)
        took = ledger._gate._early._took
        assert took[("here",), asked(query).text] < early_decisions.QUICK
        assert took[("elsewhere",), asked(query).text] == 1.0


def test_a_long_description_is_not_kept_with_its_time() -> None:
    short, long = (
        asked(Gaussian(sigma=2.0)),
        asked(Composed(tuple(Gaussian(sigma=2.0 + n) for n in range(200)))),
    )
    other = asked(Composed(tuple(Gaussian(sigma=3.0 + n) for n in range(200))))
    assert short_of(short) == short.text
    assert len(short_of(long)) < 100 < len(long.text)
    assert short_of(long) == short_of(asked(long.text)) != short_of(other)
