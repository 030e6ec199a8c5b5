"""Whoever reads and computes keeps nobody from spending."""

from __future__ import annotations

import io
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import residua as rz
from batches import Call, many
from residua.ledger.api import verifying, views
from residua.ledger.domain import rules
from residua.ledger.operations.early_decisions import QUICK
from residua.ledger.recovery import export
from residua.mechanisms import Laplace, PureDp
from residua.work_limit import work

Open = Callable[..., rz.Ledger]
SOON = 5.0
"""Seconds in which a spend must be done; SQLite gives up on a lock after 60."""


@contextmanager
def stuck(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> Iterator[threading.Event]:
    """A function that another thread does not return from until this ends; set when it is there.

    What takes long is much work, which is said beforehand.
    """
    there, go_on = threading.Event(), threading.Event()
    function, me = getattr(module, name), threading.current_thread()

    def slow(*arguments: Any, **named: Any) -> Any:
        if threading.current_thread().name.startswith("reader"):
            work(2 * QUICK)
            there.set()
            assert go_on.wait(60.0)
        return function(*arguments, **named)

    assert not me.name.startswith("reader")
    monkeypatch.setattr(module, name, slow)
    try:
        yield there
    finally:
        go_on.set()


def spends_soon(ledger: rz.Ledger, *names: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(ledger.spend, list(names), PureDp(0.0001)).result(SOON).admitted


def read_beside(
    monkeypatch: pytest.MonkeyPatch,
    place: tuple[Any, str],
    read: Callable[[], Any],
    ledger: rz.Ledger,
) -> Any:
    """The result of a reader that computes for long, while spends go on."""
    with ThreadPoolExecutor(1, thread_name_prefix="reader") as pool:
        with stuck(monkeypatch, *place) as there:
            reading = pool.submit(read)
            assert there.wait(30.0)
            for _ in range(3):
                spends_soon(ledger, "b")
        return reading.result()


@pytest.fixture
def two(open_: Open) -> tuple[rz.Ledger, rz.Ledger]:
    """The same ledger twice, as two processes have it."""
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.create_budget("gdp", rz.GdpFilter(1.0))
    ledger.create_budget("whole", rz.PureFilter(1.0))
    for name in ("p", "q"):
        ledger.create_budget(name, rz.PureFilter(0.5), parent="whole", partition=name)
    ledger.spend("b", PureDp(0.25))
    return ledger, open_()


@pytest.mark.parametrize(
    ("verb", "query"), [("check", Laplace(5.0)), ("spend", rz.SelfComposed(Laplace(50.0), 2))]
)
def test_a_slow_decision_does_not_stop_spends(
    two: tuple[rz.Ledger, rz.Ledger], monkeypatch: pytest.MonkeyPatch, verb: str, query: Any
) -> None:
    """Whether it is only asked for, or made for a spend."""
    ledger, other = two
    ledger.spend("b", PureDp(0.001))
    decide = getattr(other, verb)
    answer = read_beside(monkeypatch, (rules, "decided"), lambda: decide("gdp", query), ledger)
    assert answer.admitted


def test_the_supremum_of_partitions_does_not_stop_spends(
    two: tuple[rz.Ledger, rz.Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, other = two
    shown = read_beside(
        monkeypatch, (views, "parse_filter"), lambda: other.budget("whole").guarantee, ledger
    )
    assert "supremum of its partitions" in shown.text


@pytest.fixture
def long(open_: Open) -> tuple[rz.Ledger, rz.Ledger]:
    """A ledger with many records, twice."""
    ledger = open_()
    ledger.create_budget("a", rz.PureFilter(1.0))
    ledger.create_budget("b", rz.PureFilter(1.0))
    call = Call("spend", {"budgets": "a", "query": PureDp(0.0001)})
    for _ in range(5):
        many(ledger, [call] * 500)
    return ledger, open_()


def test_verifying_many_records_does_not_stop_spends_and_sees_one_moment(
    long: tuple[rz.Ledger, rz.Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, other = long
    ledger.spend(["a", "b"], PureDp(0.001))
    group = ledger.history("b")[-1].seq
    verified: list[Any] = []
    chain = verifying.chain  # type: ignore[attr-defined]

    def slow(*arguments: Any) -> Iterator[Any]:
        """Between two records of every chain, somebody spends from all budgets."""
        for number, record in enumerate(chain(*arguments)):
            if number in (1, 1500):
                spends_soon(ledger, "a", "b")
            verified.append(record)
            yield record

    monkeypatch.setattr(verifying, "chain", slow)
    report = other.verify()
    assert report.ok
    last = [record.seq for record in verified if record.budget == "b"][-1]
    assert last == group, "what came since is not looked at"


def test_exporting_many_records_does_not_stop_spends_and_is_of_one_moment(
    long: tuple[rz.Ledger, rz.Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, other = long

    class Slow(io.StringIO):
        lines = 0

        def write(self, text: str) -> int:
            self.lines += 1
            if self.lines in (2, 1500):
                spends_soon(ledger, "a", "b")
            return super().write(text)

    to = Slow()
    before = {name: len(ledger.history(name)) for name in ("a", "b")}
    other.export(to)
    found = export.read_export(to.getvalue().splitlines())
    assert {name: len(records) for name, records in found.chains.items()} == before


def test_a_backup_of_a_file_does_not_stop_spends(tmp_path: Path) -> None:
    """The copy has all that was committed before it began to be finished."""
    path, copy = tmp_path / "b.db", tmp_path / "copy.db"
    with rz.open_ledger(f"sqlite:///{path}", anchor=tmp_path / "anchor") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        spent = iter(range(5))

        def beside(_status: int, _left: int, _total: int) -> None:
            if next(spent, None) is not None:
                spends_soon(ledger, "b")

        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target, pages=2, progress=beside, sleep=0.0)
            found = target.execute("SELECT count(*) FROM residua_records").fetchone()
        assert next(spent, None) is None
        assert found == (len(ledger.history("b")),) == (6,)


def test_a_long_history_is_read_in_short_transactions(
    long: tuple[rz.Ledger, rz.Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, _ = long
    longest, reading = [0.0], ledger.store.reading

    @contextmanager
    def timed() -> Iterator[Any]:
        begun = time.monotonic()
        with reading() as connection:
            yield connection
        longest[0] = max(longest[0], time.monotonic() - begun)

    monkeypatch.setattr(ledger.store, "reading", timed)
    records = ledger.history("a")
    assert [record.seq for record in records] == list(range(2501))
    assert 0.0 < longest[0] < 1.0
