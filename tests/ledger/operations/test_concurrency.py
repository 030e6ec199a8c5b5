"""Many at once: threads and processes on overlapping budgets overspend nothing and lose nothing."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

import residua as rz
from residua.mechanisms import PureDp
from residua.records import follows

Open = Callable[..., rz.Ledger]


def intact(ledger: rz.Ledger, name: str) -> int:
    """Check a chain of pure spends and that nothing was overspent; the number admitted."""
    before, admitted, left = None, 0, Fraction(1)
    keys: set[tuple[str, str]] = set()
    for record in ledger.history(name):
        assert follows(before, record) is None
        if record.type == "spend":
            who = (str(record.body["by"]), str(record.key))
            assert who not in keys
            keys.add(who)
            if record.admitted:
                admitted += 1
                left -= Fraction(str(record.body["mechanism"]["eps"]))
            assert (
                record.body["after"]["left"] == [str(float(left))]
                or Fraction(record.body["after"]["left"][0]) == left
            )
        before = record
    assert left >= 0
    assert before is not None and before.hash == ledger.budget(name).head
    return admitted


def test_threads_on_overlapping_budgets(ledger: rz.Ledger) -> None:
    names = ["a", "b", "c"]
    for name in names:
        ledger.create_budget(name, rz.PureFilter(1.0))
    pairs = [["a", "b"], ["b", "c"], ["c", "a"], ["a", "b", "c"]]

    def work(worker: int) -> int:
        return sum(
            ledger.spend(pairs[(worker + i) % 4], PureDp(0.05), key=f"{worker}-{i}").admitted
            for i in range(8)
        )

    with ThreadPoolExecutor(8) as pool:
        admitted = sum(pool.map(work, range(8)))
    assert 20 <= admitted <= 30, "each takes from two at least, of which there are three times 20"
    counts = [intact(ledger, name) for name in names]
    assert max(counts) == 20, "at least one is used up"
    with ThreadPoolExecutor(8) as pool:
        again = list(
            pool.map(lambda w: ledger.spend(pairs[w % 4], PureDp(0.05), f"{w}-0"), range(8))
        )
    assert all(receipt.replayed for receipt in again)


def test_one_key_from_many_threads_permits_one_run(open_: Open) -> None:
    """Two open ledgers, as two processes would have."""
    one, two = open_(), open_()
    one.create_budget("b", rz.PureFilter(1.0))
    asking = [one, two] * 8

    with ThreadPoolExecutor(16) as pool:
        receipts = list(pool.map(lambda l: l.spend("b", PureDp(0.5), key="once"), asking))
    assert sorted(receipt.replayed for receipt in receipts) == [False] + [True] * 15
    assert len({receipt.head for receipt in receipts}) == 1
    assert intact(one, "b") == 1


def test_keys_that_meet_on_different_budgets(open_: Open) -> None:
    """The second to come waits for the first, and is told that the key is taken."""
    one, two = open_(), open_()
    for name in ("a", "b"):
        one.create_budget(name, rz.PureFilter(1.0))

    def ask(place: int) -> str:
        ledger, name = ((one, "a"), (two, "b"))[place % 2]
        try:
            ledger.spend(name, PureDp(0.01), key=f"k{place // 2}")
            return "spent"
        except rz.KeyReused:
            return "reused"

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(24)))
    assert found.count("spent") == found.count("reused") == 12
    assert intact(one, "a") + intact(one, "b") == 12


def test_holds_from_many_threads_never_exceed_the_budget(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))

    def work(worker: int) -> int:
        held = ledger.reserve("b", PureDp(0.15))
        if not held.admitted:
            return 0
        if worker % 3 == 0:
            held.cancel("not needed")
            return 0
        return int(held.commit().admitted)

    with ThreadPoolExecutor(8) as pool:
        committed = sum(pool.map(work, range(16)))
    assert ledger.holds() == ()
    assert ledger.budget("b").state.left == (1 - committed * Fraction(15, 100),)  # type: ignore[attr-defined]


SPENDS = """
import sys
import threading
import time
import residua as rz
ledger = rz.open_ledger(sys.argv[1], principal=sys.argv[2], anchor=sys.argv[3])
print(sum(ledger.spend(["a", "b"], rz.pure_dp(0.05), key=str(i)).admitted for i in range(15)))
"""

OPENS = """
import sys
import threading
import time
import residua as rz
sys.stdin.readline()
ledger = rz.open_ledger(sys.argv[1], anchor=sys.argv[3])
try:
    ledger.create_budget("b", rz.PureFilter(1.0))
except rz.BudgetExists:
    pass
print(ledger.id, ledger.read_only, ledger.spend("b", rz.pure_dp(0.01)).admitted)
"""


def together(script: str, url: str, anchor: Path, processes: int) -> list[str]:
    """The outputs of a script run by several processes at once."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script, url, f"p{i}", str(anchor)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        for i in range(processes)
    ]  # fmt: skip
    found = []
    for each in started:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    for each in started:
        out, err = each.communicate(timeout=120)
        assert each.returncode == 0, err
        found.append(out.strip())
    return found


def test_two_processes_on_one_ledger(open_: Open, url: str, tmp_path: Path) -> None:
    ledger = open_()
    for name in ("a", "b"):
        ledger.create_budget(name, rz.PureFilter(1.0))
    admitted = together(SPENDS, url, tmp_path / "ledger.anchor", 2)
    assert sum(map(int, admitted)) == 20
    assert intact(ledger, "a") == intact(ledger, "b") == 20
    assert open_().read_only is None


def test_two_processes_that_make_the_same_ledger_at_once(
    open_: Open, url: str, tmp_path: Path
) -> None:
    found = together(OPENS, url, tmp_path / "ledger.anchor", 2)
    assert found[0] == found[1] and found[0].endswith("None True")
    assert intact(open_(), "b") == 2


@pytest.mark.needs("psycopg")
def test_a_spend_waits_for_one_that_is_under_way_elsewhere(open_: Open, url: str) -> None:
    """A batch that meets a locked budget decides on the state after it, never before."""
    one, two = open_(), open_()
    one.create_budget("b", rz.PureFilter(1.0))
    with ThreadPoolExecutor(2) as pool:
        spends = [
            pool.submit(lambda l=l: [l.spend("b", PureDp(0.1)).admitted for _ in range(10)])
            for l in (one, two)
        ]
        admitted = [sum(each.result()) for each in spends]
    assert sum(admitted) == 10
    assert intact(one, "b") == 10


def test_what_is_kept_of_a_head_does_not_count_when_another_wrote(open_: Open) -> None:
    """Every decision is made on the head that was read under the lock."""
    one, two = open_(), open_()
    one.create_budget("b", rz.PureFilter(1.0))
    for ledger in (one, two, two, one):
        assert ledger.spend("b", PureDp(0.25)).admitted
    assert not two.spend("b", PureDp(0.25)).admitted and not one.spend("b", PureDp(0.25)).admitted
    records = one.history("b")[1:]
    assert all(b.body["before"] == a.body["after"] for a, b in itertools.pairwise(records))
    assert intact(two, "b") == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_process_that_forked_must_open_the_ledger_again(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    child = os.fork()
    if not child:
        told = 0
        for ask in (lambda: ledger.spend("b", rz.pure_dp(0.25)), lambda: ledger.budget("b")):
            try:
                ask()
            except rz.StoreUnavailable as error:
                told += "forked" in str(error)
        ledger.close()
        os._exit(told)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 2
    assert ledger.spend("b", rz.pure_dp(0.25)).admitted
    assert len(ledger.history("b")) == 2


@pytest.mark.needs("flint")
def test_no_spend_slips_between_a_retirement_and_what_it_states(open_: Open) -> None:
    """A retirement states where the budgets under it end; spends on these lock it."""
    ledger = open_()
    ledger.create_budget("whole", rz.PureFilter(500.0))
    names = [f"part {place}" for place in range(4)]
    for name in names:
        ledger.create_budget(name, rz.PureFilter(500.0), parent="whole", partition=name)
    quota = "quota"
    ledger.create_budget(quota, rz.PureFilter(500.0), parent=names[0])
    begun = threading.Barrier(len(names) + 2)

    def spend(name: str) -> int:
        mine = open_()
        begun.wait()
        for times in itertools.count():
            try:
                mine.spend(name, PureDp(0.001))
            except rz.RetiredBudget:
                return times
        raise AssertionError

    with ThreadPoolExecutor(len(names) + 1) as pool:
        spent = [pool.submit(spend, name) for name in (*names[1:], quota, quota)]
        begun.wait()
        time.sleep(0.3)
        ledger.retire("whole", "done")
        assert sum(each.result() for each in spent) > 0
    last = ledger.history("whole")[-1].body["below"]
    assert last == {each.name: each.seq for each in ledger.budgets() if each.name != "whole"}
    assert ledger.verify().ok
