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
    found: list[tuple[str, bool]] = []

    def come(name: str) -> None:
        ticket = Ticket([name])
        if turns.leads(ticket):
            batch = turns.take()
            found.append((name, True))
            turns.pass_on()
            for each in batch:
                each.finish()
        else:
            found.append((name, False))

    assert turns.take() == [first]
    others = [threading.Thread(target=come, args=(name,)) for name in "bcd"]
    for number, other in enumerate(others, 1):
        other.start()
        while len(turns._waiting) < number:
            time.sleep(0.001)
    turns.pass_on()
    first.finish()
    for other in others:
        other.join()
    assert sorted(found) == [("b", True), ("c", False), ("d", False)]
    again = Ticket(["e"])
    assert turns.leads(again), "nobody leads any more"


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
    turns.take()
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
        turns.pass_on()
    press.set()
    thread.join()
    if not told:
        turns.pass_on()
    assert len(raised) == 1 and not leaving.done
    assert turns.leads(Ticket(["c"])), "nobody leads, so whoever comes does"
    assert [ticket.wanted for ticket in turns.take()] == [["c"]], "what nobody took is not done"
