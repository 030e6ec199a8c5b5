"""Two processes at one ledger: each decides on what the store has, and nothing else."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

import residua as rz
from residua.ledger.domain import clock
from residua.ledger.operations import committer
from residua.ledger.storage import rows, schema
from residua.ledger.storage.anchor import FileAnchor
from residua.mechanisms import Gaussian, PureDp
from residua.records import state_after

Open = Callable[..., rz.Ledger]
_OWN = ("time", "prev", "ledger", "hold", "expires", "group", "request")
"""What differs between two ledgers in which the same happened."""


def story(ledgers: list[rz.Ledger], seed: int) -> list[Any]:
    """Things that happen in two processes, and how each was answered."""
    rng = random.Random(seed)
    first = ledgers[0]
    first.create_budget("gdp", rz.GdpResidueFilter(mu=1.0))
    first.create_budget("pure", rz.PureFilter(1.0))
    first.create_budget("quota", rz.PureFilter(0.75), parent="pure")
    first.create_budget("whole", rz.PureFilter(1.0))
    first.create_budget("part", rz.PureFilter(0.5), parent="whole", partition="p")
    holds: list[Any] = []
    told: list[Any] = []
    at = first
    for number in range(60):
        # Mostly the same process as before.
        at = rng.choice(ledgers) if rng.random() < 0.2 else at
        step = rng.choice(["spend"] * 12 + ["group", "again", "reserve", "end", "bad", "child"])
        name = rng.choice(["gdp", "pure", "quota", "part"])
        query = Gaussian(sigma=8.0) if name == "gdp" else PureDp(rng.choice([0.01, 0.05, 0.3]))
        try:
            if step == "spend":
                said: Any = at.spend(name, query, key=f"k{number}")
            elif step == "group":
                said = at.spend(["quota", "part"], PureDp(0.01), key=f"k{number}")
            elif step == "again":
                said = at.spend("pure", PureDp(0.01), key=f"again{number % 3}")
            elif step == "reserve":
                holds.append(said := at.reserve(name, query, key=f"k{number}"))
            elif step == "end" and holds:
                hold = holds.pop(rng.randrange(len(holds)))
                commits = rng.random() < 0.5
                said = at.commit(hold.id, f"k{number}") if commits else at.cancel(hold.id, "no")  # type: ignore[func-returns-value]
            elif step == "child":
                said = at.create_budget(f"c{number}", rz.PureFilter(0.1), parent="pure") and None
            else:
                said = at.spend("nobody", query)
        except rz.ResiduaError as error:
            said = type(error)
        kind = said if said is None or isinstance(said, type) else (said.admitted, said.reason)
        told.append((step, kind, getattr(said, "replayed", None), getattr(said, "seq", None)))
    return told


def plain(ledger: rz.Ledger, name: str) -> list[Any]:
    """What happened to a budget."""
    return [
        {field: value for field, value in record.body.items() if field not in _OWN}
        for record in ledger.history(name)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_the_same_story_is_told_by_every_store(open_: Open, seed: int, tmp_path: Any) -> None:
    ledgers = [open_(), open_()]
    told = story(ledgers, seed)
    place = f"sqlite:///{tmp_path}/twin.db"
    twins = [open_(place, anchor=tmp_path / "twin.anchor") for _ in range(2)]
    assert story(twins, seed) == told
    for name in ("gdp", "pure", "quota", "part", "whole"):
        assert plain(ledgers[0], name) == plain(twins[0], name)
    assert ledgers[1].verify().ok


@pytest.mark.parametrize("times", [1, 100])
def test_a_head_that_moved_since_it_was_read_is_not_written_over(
    open_: Open, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """The update names the head that was decided on; where it changes nothing, all is undone."""
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    put, tries = ledger.store.put, []

    def moved(connection: Any, writes: Any) -> None:
        tries.append(connection)
        if len(tries) <= times:
            for write, given in writes:
                if write is rows.CHANGED_BUDGETS:
                    given[0]["old_head_hash"] = "0" * 64
        put(connection, writes)

    monkeypatch.setattr(ledger.store, "put", moved)
    if times == 1:
        receipt = ledger.spend("b", PureDp(0.25), key="k")
        assert receipt.admitted and not receipt.replayed and len(tries) == 2
    else:
        with pytest.raises(rz.StoreUnavailable, match="nothing was spent"):
            ledger.spend("b", PureDp(0.25), key="k")
        monkeypatch.undo()
        assert not ledger.spend("b", PureDp(0.25), key="k").replayed
    assert len(ledger.history("b")) == 2 and ledger.verify().ok


STRANGE: dict[str, Any] = {
    "head_seq": 7,
    "head_hash": "0" * 64,
    "retired": 1,
    "holds": '["h"]',
    "generation": 9,
    "spent": 0,
    "children": "quotas",
    "window_ends": "2000-01-01T00:00:00.000Z",
    "declared": '{"staff": [1, 2, false]}',
}
"""Another value of each column that a spend writes."""


@pytest.mark.parametrize("name", rows.CHANGED_BUDGETS.columns)
def test_a_row_that_somebody_else_changed_is_read_again(open_: Open, name: str) -> None:
    """Whichever column it is, and though nothing else tells of it."""
    ledger, other = open_(), open_()
    ledger.create_budget("b", rz.PureFilter(0.5), window=86400.0)
    for _ in range(2):
        ledger.spend("b", PureDp(0.25))
    b, r = schema.budgets, schema.records

    def stored(what: Any) -> list[Any]:
        with other.store.reading() as connection:
            return list(connection.execute(select(what)).scalars())

    with other.store.writing() as connection:
        connection.execute(update(b).values({name: STRANGE[name]}))
        connection.commit()
    if name in ("head_seq", "head_hash", "retired", "holds"):
        with pytest.raises(rz.ResiduaError):
            ledger.spend("b", PureDp(0.25))
        assert len(stored(r.c.seq)) == 3, "nothing was written"
    elif name == "window_ends":
        assert ledger.spend("b", PureDp(0.25)).admitted, "a new window has begun"
    else:
        assert not ledger.spend("b", PureDp(0.25)).admitted
        assert stored(b.c[name]) == [STRANGE[name]], "it was not written over"


def test_two_processes_on_one_budget_never_spend_from_the_same_state(open_: Open) -> None:
    one, other = open_(), open_()
    one.create_budget("b", rz.PureFilter(1.0))
    admitted = sum(
        (one, other)[n % 3 == 0].spend("b", PureDp(0.0625), key=f"{n}").admitted for n in range(24)
    )
    assert admitted == 16 and one.verify().ok
    states = [str(state_after(record)) for record in one.history("b") if record.admitted]
    assert len(set(states)) == len(states)


def test_a_key_that_another_process_used_is_answered_with_what_it_got(open_: Open) -> None:
    one, other = open_(), open_()
    for name in ("b", "c"):
        one.create_budget(name, rz.PureFilter(1.0))
    one.spend("b", PureDp(0.25), key="mine")
    # At another budget, so that only the key is in the way.
    done = other.spend("c", PureDp(0.25), key="k")
    with pytest.raises(rz.KeyReused):
        one.spend("b", PureDp(0.25), key="k")
    one.spend("c", PureDp(0.125))
    again = one.spend("c", PureDp(0.25), key="k")
    assert again.replayed and again.head == done.head and not done.replayed
    assert len(one.history("b")) == 2 and len(one.history("c")) == 3


def test_records_have_the_time_of_the_database(ledger: rz.Ledger) -> None:
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.spend("b", PureDp(0.01))
    time.sleep(0.05)
    ledger.spend("b", PureDp(0.01))
    ledger.spend("b", PureDp(0.01))
    first, second, third = (record.body["time"] for record in ledger.history("b")[1:])
    assert clock.age(first, second) >= 0.045 and second <= third
    with ledger.store.reading() as connection:
        ((_, _, now), *_) = ledger.store.ask(connection, [(ledger.store.facts_and_time, {})])[0]
    assert third <= now, "never ahead of the database"


def test_a_window_that_ends_is_noticed_by_the_next_spend(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(0.5), window=1.0)
    admitted, end = 0, time.monotonic() + 10.0
    while admitted < 5 and time.monotonic() < end:
        admitted += ledger.spend("b", PureDp(0.25)).admitted
        time.sleep(0.02)
    assert admitted == 5
    assert [record.type for record in ledger.history("b")].count("refresh") >= 2
    assert ledger.verify().ok


@pytest.mark.parametrize("point", ["written", "committed"])
def test_what_an_interrupted_caller_changed_is_read_again(
    open_: Open, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Whether or not it came to commit."""
    ledger = open_()
    ledger.create_budget("whole", rz.PureFilter(1.0))
    for _ in range(2):
        assert not ledger.spend("whole", PureDp(2.0)).admitted

    def pressed(at: str) -> None:
        if at == point:
            raise KeyboardInterrupt

    with monkeypatch.context() as during, pytest.raises(KeyboardInterrupt):
        during.setattr(committer, "point", pressed)
        ledger.create_budget("part", rz.PureFilter(1.0), parent="whole", partition="p")
    if point == "written":
        assert ledger.spend("whole", PureDp(1.0)).admitted
    else:
        with pytest.raises(rz.ArgumentError, match="partitions"):
            ledger.spend("whole", PureDp(1.0))
        assert ledger.spend("part", PureDp(1.0)).admitted
    assert ledger.verify().ok


@pytest.mark.parametrize("point", ["decided", "committing", "committed"])
def test_the_key_tells_an_interrupted_caller_what_was_decided(
    open_: Open, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))

    def pressed(at: str) -> None:
        if at == point:
            raise KeyboardInterrupt

    with monkeypatch.context() as during, pytest.raises(KeyboardInterrupt):
        during.setattr(committer, "point", pressed)
        ledger.spend("b", PureDp(0.125), key="k")
    receipt = ledger.spend("b", PureDp(0.125), key="k")
    assert receipt.admitted and receipt.replayed == (point == "committed")
    assert len(ledger.history("b")) == 2 and ledger.verify().ok


def test_a_writer_that_is_not_the_gate_is_noticed(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    for _ in range(2):
        ledger.spend("b", PureDp(0.25))
    with ledger.store.writing() as connection:
        connection.execute(update(schema.budgets).values(retired=1))
        connection.commit()
    with pytest.raises(rz.RetiredBudget):
        ledger.spend("b", PureDp(0.25))


def test_another_record_of_the_same_number_that_was_acknowledged_is_noticed(
    open_: Open, tmp_path: Path
) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    for _ in range(2):
        last = ledger.spend("b", PureDp(0.25))
    other = FileAnchor(tmp_path / "ledger.anchor")
    other.write({"b": (last.seq, "0" * 64)})
    other.close()
    with pytest.raises(rz.ReadOnlyLedger, match="another record"):
        ledger.spend("b", PureDp(0.25))
