"""Leading and waiting: everybody is answered, whoever is interrupted."""

from __future__ import annotations

import linecache
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import residua as rz
from residua.ledger.operations import committer, group_commit
from residua.ledger.operations.group_commit import CommitQueue, Slot
from residua.mechanisms import PureDp


class _Turns:
    """Carries out slots, each turn when it is let; notes what each turn had."""

    def __init__(self) -> None:
        self.turns: list[list[Any]] = []
        self.let = threading.Semaphore(0)
        self.queue = CommitQueue(self.carry_out)
        self.threads: list[threading.Thread] = []
        self.raised: list[BaseException] = []

    def carry_out(self, slots: Sequence[Slot]) -> None:
        self.turns.append([slot.request for slot in slots])
        self.let.acquire()
        for slot in slots:
            slot.answer = slot.request

    def come(self, name: Any) -> Slot:
        """Queue up in another thread; returns when it leads or waits."""
        slot = Slot(name)

        def run() -> None:
            try:
                self.queue.run(slot)
            except BaseException as error:
                self.raised.append(error)

        before = len(self.turns), len(self.queue._waiting)
        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()
        while (len(self.turns), len(self.queue._waiting)) == before:
            time.sleep(0.001)
        return slot

    def join(self) -> None:
        for thread in self.threads:
            thread.join(30.0)
            assert not thread.is_alive()


def test_who_comes_first_leads_and_the_next_leads_after() -> None:
    turns = _Turns()
    slots = [turns.come(name) for name in "abcd"]
    assert turns.turns == [["a"]]
    for _ in range(2):
        turns.let.release()
    turns.join()
    assert turns.turns == [["a"], ["b", "c", "d"]]
    assert [slot.result() for slot in slots] == ["a", "b", "c", "d"]
    turns.let.release()
    turns.queue.run(Slot("e"))
    assert turns.turns[-1] == ["e"], "nobody leads any more"


def test_a_turn_that_fails_is_answered_to_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = _Turns()
    first = turns.come("a")
    others = [turns.come(name) for name in "bc"]
    error = rz.StoreUnavailable("away")

    def fail(slots: Sequence[Slot]) -> None:
        raise error

    monkeypatch.setattr(turns.queue, "_carry_out", fail)
    turns.let.release()
    turns.join()
    assert first.result() == "a" and not turns.raised
    own, copied = sorted((slot.error for slot in others), key=lambda each: each is not error)
    assert own is error and type(copied) is rz.StoreUnavailable and copied is not error


class _Pressed(threading.Condition):
    """Whoever waits waits until somebody presses the key."""

    def __init__(self, press: threading.Event, lock: Any):
        super().__init__(lock)
        self.press = press

    def wait(self, timeout: float | None = None) -> bool:
        super().wait(0.001)
        if self.press.is_set():
            raise KeyboardInterrupt
        return True


def test_one_who_is_interrupted_while_waiting_holds_nobody_up() -> None:
    turns, press = _Turns(), threading.Event()
    first = turns.come("a")
    turns.queue._changed = _Pressed(press, turns.queue._changed._lock)  # type: ignore[attr-defined]
    turns.come("b")
    press.set()
    while not turns.raised:
        time.sleep(0.001)
    turns.let.release()
    turns.join()
    assert [type(error) for error in turns.raised] == [KeyboardInterrupt]
    assert first.result() == "a"
    turns.let.release()
    last = Slot("c")
    turns.queue.run(last)
    assert last.result() == "c", "nobody leads, so whoever comes does"
    assert turns.turns == [["a"], ["c"]], "what nobody took is not done"


class _Key:
    """Presses it when a thread comes to so-and-so-many-th line of what queues and leads."""

    FILES = (group_commit.__file__, committer.__file__)
    NAMES = ("run", "_lead", "_leave", "_through", "_run", "_carry_out")

    def __init__(self, at: int):
        self.at = at
        self.lines = 0
        self.where = ""

    def traced(self, frame: FrameType, event: str, arg: object) -> Any:
        code = frame.f_code
        known = code.co_filename in self.FILES and code.co_name in self.NAMES
        return self.line if known else None

    def line(self, frame: FrameType, event: str, arg: object) -> Any:
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        # No signal is looked at between the end of such a block and its lock being let go.
        if event == "line" and not text.startswith("with "):
            self.lines += 1
            if self.lines == self.at:
                self.where = f"{frame.f_code.co_name}: {text}"
                sys.settrace(None)
                raise KeyboardInterrupt
        return self.line


def test_a_caller_interrupted_at_any_line_does_not_block_others(tmp_path: Path) -> None:
    with rz.open_ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        ledger.create_budget("b", rz.PureFilter(600.0))
        ledger.spend("b", PureDp(0.25))
        at, before = 0, None
        while before != "":
            at += 1
            key = _Key(at)

            def interrupted(key: _Key = key) -> None:
                before = sys.gettrace()
                sys.settrace(key.traced)
                try:
                    ledger.spend("b", PureDp(0.25))
                except KeyboardInterrupt:
                    assert key.where
                finally:
                    sys.settrace(before)

            def another() -> None:
                try:
                    ledger.spend("b", PureDp(0.25))
                except rz.OutcomeUnknown as error:
                    assert "interrupted" in str(error)

            threads = [threading.Thread(target=f, daemon=True) for f in (interrupted, another)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60.0)
                assert not thread.is_alive(), f"waits for ever after {key.where}"
            assert ledger.spend("b", PureDp(0.25)).admitted
            before = key.where
        assert at > 10
