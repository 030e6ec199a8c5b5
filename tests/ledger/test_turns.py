"""Leading and waiting: everybody is answered, whoever is interrupted."""

from __future__ import annotations

import threading
import time

import pytest

from residuum.ledger.turns import Ticket, Turns


def test_who_comes_first_leads_and_the_next_leads_after() -> None:
    turns: Turns[str] = Turns()
    first = Ticket(["a"])
    assert turns.leads(first)
    assert turns.take() == [first]
    found: list[tuple[str, bool]] = []

    def come(name: str) -> None:
        ticket = Ticket([name])
        leads = turns.leads(ticket)
        found.append((name, leads))
        if leads:
            turns.done(turns.take())

    others = [threading.Thread(target=come, args=(name,)) for name in "bcd"]
    for number, other in enumerate(others, 1):
        other.start()
        while len(turns._waiting) < number:
            time.sleep(0.001)
    turns.done([first])
    for other in others:
        other.join()
    assert sorted(found) == [("b", True), ("c", False), ("d", False)]
    assert turns.leads(Ticket(["e"])), "nobody leads any more"


def test_a_leader_waits_for_those_who_were_there_and_no_longer() -> None:
    turns: Turns[str] = Turns()
    first = Ticket(["a"])
    assert turns.leads(first)
    assert turns.take() == [first], "who is alone does not wait"
    turns._around, turns._patience = 3, 60.0
    turns._waiting.append(Ticket(["b"]))
    came = [threading.Thread(target=lambda: turns.leads(Ticket(["c"]))) for _ in range(2)]
    for one in came:
        one.start()
    batch = turns.take()
    assert [ticket.wanted for ticket in batch] == [["b"], ["c"], ["c"]]
    turns.done(batch)
    for one in came:
        one.join()
    assert turns._around == 3 and 0.0 < turns._patience <= 0.02
    assert turns.leads(Ticket(["d"]))
    (late,) = turns.take()
    assert late.wanted == ["d"], "nobody came, and it went on"
    turns.done([late])
    assert turns._around == 1


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


@pytest.mark.parametrize("told", [False, True])
def test_one_who_is_interrupted_while_waiting_holds_nobody_up(told: bool) -> None:
    """Even one who has been told to lead."""
    turns: Turns[str] = Turns()
    assert turns.leads(Ticket(["a"]))
    first = turns.take()
    press, waits = threading.Event(), threading.Event()
    leaving: Ticket[str] = Ticket(["b"])
    leaving._turn = _Interrupted(press, waits)  # type: ignore[assignment]
    raised: list[BaseException] = []

    def come() -> None:
        try:
            turns.leads(leaving)
        except KeyboardInterrupt as error:
            raised.append(error)

    thread = threading.Thread(target=come)
    thread.start()
    waits.wait()
    if told:
        turns.done(first)
    press.set()
    thread.join()
    if not told:
        turns.done(first)
    assert len(raised) == 1 and not leaving.done
    assert turns.leads(Ticket(["c"])), "nobody leads, so whoever comes does"
    assert [ticket.wanted for ticket in turns.take()] == [["c"]], "what nobody took is not done"
