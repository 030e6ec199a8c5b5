"""Leading and waiting: everybody is answered, whoever is interrupted."""

from __future__ import annotations

import linecache
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import residua as rz
from residua.ledger.operations import committer, group_commit
from residua.ledger.operations.group_commit import Ticket, Turns
from residua.mechanisms import PureDp


def test_who_comes_first_leads_and_the_next_leads_after() -> None:
    queue: Turns[str] = Turns()
    first = Ticket(["a"])
    assert queue.leads(first)
    found: list[tuple[str, bool]] = []

    def come(name: str) -> None:
        ticket = Ticket([name])
        if queue.leads(ticket):
            queue.take(ticket)
            found.append((name, True))
            queue.done(ticket)
        else:
            found.append((name, False))

    assert queue.take(first) == [first]
    others = [threading.Thread(target=come, args=(name,)) for name in "bcd"]
    for number, other in enumerate(others, 1):
        other.start()
        while len(queue._waiting) < number:
            time.sleep(0.001)
    queue.done(first)
    for other in others:
        other.join()
    assert sorted(found) == [("b", True), ("c", False), ("d", False)]
    again = Ticket(["e"])
    assert queue.leads(again), "nobody leads any more"


def test_a_leader_waits_for_those_who_were_there_and_no_longer() -> None:
    queue: Turns[str] = Turns()
    first = Ticket(["a"])
    assert queue.leads(first)
    assert queue.take(first) == [first], "who is alone does not wait"
    queue._around, queue._patience = 3, 60.0
    came = [threading.Thread(target=lambda: queue.leads(Ticket(["c"]))) for _ in range(3)]
    for one in came:
        one.start()
    assert [ticket.wanted for ticket in queue.take(first)] == [["c"]] * 3
    queue.done(first)
    for one in came:
        one.join()
    assert queue._around == 3 and 0.0 < queue._patience <= group_commit.LONGEST_PAUSE
    late = Ticket(["d"])
    assert queue.leads(late)
    assert queue.take(late) == [late], "nobody came, and it went on"
    queue.done(late)
    assert queue._around == 1


class _Interrupted:
    """A lock that is waited for until somebody presses the key, before or after it is let go."""

    def __init__(self, press: threading.Event, waits: threading.Event):
        self.press, self.waits = press, waits

    def acquire(self) -> bool:
        self.waits.set()
        self.press.wait()
        raise KeyboardInterrupt

    def release(self) -> None:
        pass

    def locked(self) -> bool:
        return True


@pytest.mark.parametrize("told", [False, True])
def test_one_who_is_interrupted_while_waiting_holds_nobody_up(told: bool) -> None:
    """Even one who has been told to lead."""
    queue: Turns[str] = Turns()
    leader = Ticket(["a"])
    assert queue.leads(leader)
    queue.take(leader)
    press, waits = threading.Event(), threading.Event()
    leaving: Ticket[str] = Ticket(["b"])
    leaving._turn = _Interrupted(press, waits)  # type: ignore[assignment]
    raised: list[BaseException] = []

    def come() -> None:
        try:
            queue.leads(leaving)
        except KeyboardInterrupt as error:
            assert queue.leave(leaving) == []
            raised.append(error)

    thread = threading.Thread(target=come)
    thread.start()
    waits.wait()
    if told:
        queue.done(leader)
    press.set()
    thread.join()
    if not told:
        queue.done(leader)
    assert len(raised) == 1 and not leaving.done
    last = Ticket(["c"])
    assert queue.leads(last), "nobody leads, so whoever comes does"
    assert [ticket.wanted for ticket in queue.take(last)] == [["c"]], "what nobody took is not done"


class _Key:
    """Presses it when a thread comes to so-and-so-many-th line of what queues and leads."""

    FILES = (group_commit.__file__, committer.__file__)
    NAMES = ("leads", "take", "done", "_pass_on", "leave", "finish", "_through", "_answer")

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


def test_whoever_is_interrupted_at_whatever_line_holds_nobody_up(tmp_path: Path) -> None:
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
