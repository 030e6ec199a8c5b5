"""Connections that die, files that are replaced, leaders that are interrupted."""

from __future__ import annotations

import os
import pickle
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

import residua as rz
from batches import Call, many
from ledger.conftest import idle_drivers
from residua.ledger.domain import rules
from residua.ledger.operations import claims, committer
from residua.ledger.operations.requests import Request
from residua.ledger.operations.unit_of_work import UnitOfWork
from residua.mechanisms import Laplace, PureDp
from residua.work_limit import work

Open = Callable[..., rz.Ledger]

CUT = (
    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
    " WHERE application_name = 'residua' AND pid <> pg_backend_pid()"
)


@pytest.fixture
def remote(schema_url: str, tmp_path: Path) -> Iterator[rz.Ledger]:
    """A ledger on PostgreSQL with a budget of 1."""
    with rz.open_ledger(schema_url, anchor=tmp_path / "anchor") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        yield ledger


def left(ledger: rz.Ledger) -> Fraction:
    (amount,) = ledger.budget("b").state.left  # type: ignore[attr-defined]
    return Fraction(amount)


@pytest.mark.needs("pgserver", "psycopg")
def test_a_connection_that_is_cut_before_the_commit_spends_nothing_and_the_next_call_works(
    postgres: str, remote: rz.Ledger
) -> None:
    """One that died while it was not used is not even noticed."""
    import psycopg

    for key in ("first", "second"):
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(CUT)
        receipt = remote.spend("b", rz.pure_dp(0.25), key=key)
        assert receipt.admitted and not receipt.replayed
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(CUT)
    assert len(remote.history("b")) == 3 and left(remote) == Fraction(1, 2)


@pytest.mark.needs("pgserver", "psycopg")
def test_a_connection_that_died_without_a_word_is_not_even_noticed(remote: rz.Ledger) -> None:
    for key in ("first", "second"):
        remote.spend("b", rz.pure_dp(0.25), key=key)
    for driver in idle_drivers(remote):
        with socket.socket(fileno=os.dup(driver.pgconn.socket)) as line:
            line.shutdown(socket.SHUT_RDWR)
    third = remote.spend("b", rz.pure_dp(0.25), key="third")
    assert third.admitted and not third.replayed and left(remote) == Fraction(1, 4)


@pytest.mark.needs("pgserver", "psycopg")
def test_a_server_that_is_cut_again_and_again_is_unavailable_and_nothing_is_spent(
    postgres: str, remote: rz.Ledger
) -> None:
    """Every attempt is cut while it waits for a lock that another holds."""
    import psycopg

    stop = threading.Event()

    def cut() -> None:
        with psycopg.connect(postgres, autocommit=True) as connection:
            while not stop.is_set():
                connection.execute(CUT + " AND wait_event_type = 'Lock'")
                time.sleep(0.05)

    path = remote.store.place.url.query["options"]
    assert isinstance(path, str)
    with psycopg.connect(postgres, options=path) as holder:
        holder.execute("SELECT id FROM residua_budgets FOR UPDATE")
        cutter = threading.Thread(target=cut)
        cutter.start()
        try:
            with pytest.raises(rz.StoreUnavailable, match="nothing was spent"):
                remote.spend("b", rz.pure_dp(0.25), key="k")
        finally:
            stop.set()
            cutter.join()
    assert not remote.spend("b", rz.pure_dp(0.25), key="k").replayed
    assert left(remote) == Fraction(3, 4)


@pytest.mark.needs("pgserver", "psycopg")
def test_a_connection_that_is_cut_during_the_commit_leaves_the_outcome_unknown(
    postgres: str, remote: rz.Ledger
) -> None:
    """A commit that takes its time, by a deferred trigger, is cut in the middle."""
    import psycopg

    path = remote.store.place.url.query["options"]
    assert isinstance(path, str)
    with psycopg.connect(postgres, options=path, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN IF NEW.key = 'slow' THEN PERFORM pg_sleep(20); END IF; RETURN NEW; END $$"
        )
        connection.execute(
            "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON residua_keys"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()"
        )
        found: list[BaseException] = []

        def spend() -> None:
            try:
                remote.spend("b", rz.pure_dp(0.25), key="slow")
            except rz.LedgerError as error:
                found.append(error)

        spender = threading.Thread(target=spend)
        spender.start()
        committing = (
            "SELECT count(*) FROM pg_stat_activity WHERE query = 'COMMIT' AND state = 'active'"
        )
        while connection.execute(committing).fetchone() == (0,):
            time.sleep(0.02)
        connection.execute(CUT)
        spender.join()
        connection.execute("DROP TRIGGER slow ON residua_keys")
    assert [type(error) for error in found] == [rz.OutcomeUnknown]
    assert "same key" in str(found[0])
    tells = remote.spend("b", rz.pure_dp(0.25), key="slow")
    assert tells.admitted and not tells.replayed, "the server rolled it back"
    assert left(remote) == Fraction(3, 4)


@pytest.mark.needs("pgserver", "psycopg")
def test_a_commit_that_waited_for_a_cancel_is_told(
    postgres: str, remote: rz.Ledger, schema_url: str, tmp_path: Path
) -> None:
    """What it read of the hold before it had the lock does not count any more."""
    import psycopg

    path = remote.store.place.url.query["options"]
    assert isinstance(path, str)
    hold = remote.reserve("b", PureDp(0.25))
    answers: list[object] = []

    def commit() -> None:
        with rz.open_ledger(schema_url, anchor=tmp_path / "anchor") as other:
            try:
                answers.append(other.commit(hold.id))
            except rz.UnknownHold as error:
                answers.append(error)

    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE application_name = 'residua' AND wait_event_type = 'Lock'"
    )
    with (
        psycopg.connect(postgres, autocommit=True) as watcher,
        psycopg.connect(postgres, options=path) as holder,
    ):
        holder.execute("SELECT id FROM residua_budgets FOR UPDATE")
        threads = [
            threading.Thread(target=lambda: hold.cancel("not needed")),
            threading.Thread(target=commit),
        ]
        for number, thread in enumerate(threads, 1):
            thread.start()
            while watcher.execute(waiting).fetchone() != (number,):
                time.sleep(0.02)
        holder.rollback()
        for thread in threads:
            thread.join()
    assert [type(answer) for answer in answers] == [rz.UnknownHold]
    assert "cancelled" in str(answers[0])
    assert left(remote) == 1


def test_a_file_that_is_replaced_under_an_open_ledger_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with rz.open_ledger(path) as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        shutil.copy(path, tmp_path / "backup.db")
        ledger.spend("b", rz.pure_dp(0.5))
        (tmp_path / "backup.db").replace(path)
        with pytest.raises(rz.ReadOnlyLedger, match="replaced"):
            ledger.spend("b", rz.pure_dp(0.5))
        path.unlink()
        with pytest.raises(rz.StoreUnavailable):
            ledger.spend("b", rz.pure_dp(0.5))


@dataclass(frozen=True)
class Interrupted(Request):
    """Somebody presses the key while this is decided."""

    def run(self, work: UnitOfWork) -> None:
        raise KeyboardInterrupt


def test_a_leader_that_is_interrupted_leaves_a_gate_that_works(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    with pytest.raises(KeyboardInterrupt):
        ledger._committer.submit(Interrupted(principal="local", names=("b",)))
    assert ledger.spend("b", PureDp(0.5)).admitted
    assert left(ledger) == Fraction(1, 2)


# -- what a spend costs ----------------------------------------------------------------------


def test_a_spend_reads_and_writes_the_same_however_long_the_history_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rz.open_ledger(tmp_path / "a.db") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        statements: list[str] = []

        def spend() -> list[str]:
            statements.clear()
            ledger.spend("b", PureDp(0.001))
            return [text for text in statements if text.split()[0] not in ("BEGIN", "COMMIT")]

        spend()
        event.listen(
            ledger.store.engine,
            "checkout",
            lambda driver, *_: driver.set_trace_callback(statements.append),
        )
        early = spend()
        many(ledger, [Call("spend", {"budgets": "b", "query": PureDp(0.001)})] * 200)
        assert [text[:30] for text in spend()] == [text[:30] for text in early]
        # Meta and the head are read; the row, the record and the key are written.
        assert len(early) == 5, early
        assert sum("residua_records" in text for text in early) == 2


@pytest.mark.needs("pgserver", "psycopg")
def test_a_spend_takes_the_same_round_trips_however_long_the_history_is(
    remote: rz.Ledger, tmp_path: Path
) -> None:
    """By what libpq says that it sent."""
    for number in range(8):
        remote.spend("b", PureDp(0.001), key=f"first {number}")
    (driver,) = idle_drivers(remote)

    def spend(key: str) -> list[str]:
        with (tmp_path / key).open("w+b") as file:
            driver.pgconn.trace(file.fileno())
            assert remote.spend("b", PureDp(0.001), key=key).admitted
            driver.pgconn.untrace()
            file.seek(0)
            lines = [line.decode().split("\t") for line in file]
        sent = [" ".join(words)[:22].split("0 ")[0] for _, way, _, *words in lines if way == "F"]
        return [words for words in sent if not words.startswith("Flush")]

    early = spend("1")
    many(remote, [Call("spend", {"budgets": "b", "query": PureDp(0.001)})] * 200)
    assert spend("2") == early
    kinds = [line.split()[0] for line in early]
    # Lock, meta, head, key; row, record, key: each set in one round trip.
    assert kinds.count("Execute") + kinds.count("Query") <= 9, early
    assert kinds.count("Sync") + kinds.count("Query") <= 4, early


def test_what_waits_shares_a_transaction(open_: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    commits: list[object] = []
    commit = ledger.store.commit

    def counted(connection: Any, *others: Any) -> None:
        commits.append(connection)
        commit(connection, *others)

    monkeypatch.setattr(ledger.store, "commit", counted)
    many(ledger, [Call("spend", {"budgets": "b", "query": PureDp(0.001)})] * 50)
    assert len(commits) == 1 and len(ledger.history("b")) == 51


def twice(eps: float) -> rz.SelfComposed:
    """A query that costs `eps`, by no closed form."""
    return rz.SelfComposed(PureDp(eps / 2), 2)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries of `twice` take long to decide, by the work that is counted."""
    words = rules.admitted

    def admitted(query: Any, decision: Any) -> str:
        if isinstance(query.query, rz.SelfComposed):
            work(2 * committer.QUICK)  # type: ignore[attr-defined]
        return words(query, decision)

    monkeypatch.setattr(rules, "admitted", admitted)


@pytest.mark.usefixtures("slow")
def test_a_slow_decision_is_made_early_and_again_when_the_state_moved(open_: Open) -> None:
    ledger, elsewhere = open_(), Elsewhere()
    ledger.create_budget("b", rz.PureFilter(1.0))
    moves = [lambda: ledger.spend("b", PureDp(0.125))]
    elsewhere.before = lambda: [move() for move in moves] and moves.clear()  # type: ignore[func-returns-value]
    assert ledger.with_compute(elsewhere).spend("b", twice(0.25)).admitted
    assert elsewhere.called == ["judge"] * 2
    assert left(ledger) == Fraction(5, 8)


@pytest.mark.usefixtures("slow")
def test_a_slow_commit_is_decided_early(open_: Open) -> None:
    ledger, elsewhere = open_(), Elsewhere()
    ledger.create_budget("b", rz.PureFilter(1.0))
    hold = ledger.reserve("b", twice(0.25))
    other = ledger.with_compute(elsewhere)
    assert other.commit(hold.id).admitted
    assert elsewhere.called == ["judge_commit"]
    assert left(ledger) == Fraction(3, 4)


class Elsewhere:
    """Computes as another process would: by what can be pickled alone."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.before: Callable[[], object] = lambda: None

    def __call__(self, do: Callable[..., Any], *arguments: Any) -> Any:
        self.called.append(arguments[0].__name__)
        self.before()
        do, arguments = pickle.loads(pickle.dumps((do, arguments)))
        return pickle.loads(pickle.dumps(do(*arguments)))


@pytest.mark.usefixtures("slow")
def test_what_takes_long_to_decide_is_computed_elsewhere(open_: Open) -> None:
    ledger, elsewhere = open_(), Elsewhere()
    ledger.create_budget("b", rz.PureFilter(1.0))
    other = ledger.with_compute(elsewhere)
    assert other.spend("b", PureDp(0.25)).admitted and not elsewhere.called
    assert other.check("b", twice(0.25)).admitted
    assert elsewhere.called == ["judge"]
    receipt = open_().with_compute(elsewhere).spend("b", twice(0.25), key="k")
    assert receipt.admitted and elsewhere.called == ["judge"] * 2
    assert left(ledger) == Fraction(1, 2)
    with pytest.raises(rz.ArgumentError, match="query must be one that can be verified"):
        other.spend("b", rz.SelfComposed(Laplace(1e250), 2))


@pytest.mark.usefixtures("slow")
def test_what_computes_elsewhere_may_fail_and_nothing_is_spent(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))

    def gone(*_: Any) -> Any:
        raise ConnectionError("the worker is gone")

    with pytest.raises(ConnectionError, match="the worker is gone"):
        ledger.with_compute(gone).spend("b", twice(0.25), key="k")
    assert left(ledger) == 1
    assert ledger.spend("b", twice(0.25), key="k").admitted
    again = ledger.with_compute(gone).spend("b", twice(0.25), key="k")
    assert again.replayed, "what was decided under a key is not decided again"


def test_the_first_state_of_a_price_list_is_worked_out_elsewhere(open_: Open) -> None:
    ledger, asked_for = open_(), list[str]()

    def elsewhere(do: Callable[..., Any], *arguments: Any) -> Any:
        asked_for.append(do.__name__)
        return pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(do))(*arguments)))

    other = ledger.with_compute(elsewhere)
    other.create_budget("pure", rz.PureFilter(1.0))
    other.create_budget("auto", {"kind": "auto", "eps": 1.0, "delta": 1e-6})
    assert asked_for == []
    menu = rz.MenuFilter(1.0, 1e-6, [PureDp(0.1), Laplace(scale=20.0)])
    other.create_budget("menu", menu)
    assert asked_for == ["new_filter"]
    assert ledger.budget("menu").state == menu.initial()
    assert ledger.spend("menu", PureDp(0.1)).admitted and ledger.verify().ok


@pytest.mark.usefixtures("slow")
def test_a_slow_decision_elsewhere_never_takes_the_lock(
    open_: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody spends each time that it is decided, so that it is never up to date."""
    ledger, elsewhere = open_(), Elsewhere()
    ledger.create_budget("b", rz.PureFilter(1.0))
    # This very thread: it would wait for itself, until the claim is over.
    monkeypatch.setattr(claims, "LONGEST", 0.05)
    elsewhere.before = lambda: ledger.spend("b", PureDp(0.001))
    with pytest.raises(rz.Contended, match="changed 4 times"):
        ledger.with_compute(elsewhere).spend("b", twice(0.25))
    assert len(elsewhere.called) >= 4
    assert left(ledger) == 1 - len(elsewhere.called) * Fraction(1, 1000)
    assert ledger.spend("b", twice(0.25)).admitted, "who computes here gets its way"


@pytest.mark.usefixtures("slow")
def test_a_slow_decision_elsewhere_has_its_turn_on_a_budget_that_is_always_spent_from(
    open_: Open,
) -> None:
    """Others wait for it, for a bounded time; those on other budgets do not."""
    ledger, elsewhere = open_(), Elsewhere()
    ledger.create_budget("a", rz.PureFilter(1.0))
    ledger.create_budget("b", rz.PureFilter(1.0), parent="a")
    ledger.create_budget("free", rz.PureFilter(1.0))
    over, longest = threading.Event(), dict[str, float]()

    def spend(name: str) -> None:
        while not over.is_set():
            begun = time.monotonic()
            assert ledger.spend(name, PureDp(0.0001)).admitted
            longest[name] = max(longest.get(name, 0.0), time.monotonic() - begun)

    elsewhere.before = lambda: time.sleep(0.3)
    others = [threading.Thread(target=spend, args=(name,)) for name in ("a", "b", "free")]
    for each in others:
        each.start()
    try:
        assert ledger.with_compute(elsewhere).spend("b", twice(0.25)).admitted
    finally:
        over.set()
        for each in others:
            each.join()
    assert len(elsewhere.called) >= 3, "two attempts were lost, and then the budgets claimed"
    assert min(longest["a"], longest["b"]) > max(0.25, longest["free"])
    assert not ledger._committer._claims


@pytest.mark.usefixtures("slow")
def test_what_is_computed_under_a_claim_is_up_to_date(
    open_: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a claim is waited for, whoever has claimed the budgets before moves them."""
    ledger, elsewhere = open_(), Elsewhere()
    ledger.create_budget("b", rz.PureFilter(1.0))
    known, moves = ledger._committer._claims, [0.0625, 0.0625]
    claimed = known.claimed

    def waited(*arguments: Any) -> Any:
        ledger.spend("b", PureDp(0.125))
        return claimed(*arguments)

    monkeypatch.setattr(known, "claimed", waited)
    elsewhere.before = lambda: moves and ledger.spend("b", PureDp(moves.pop()))
    assert ledger.with_compute(elsewhere).spend("b", twice(0.25)).admitted
    assert elsewhere.called == ["judge"] * 3 and not known


def test_those_who_wait_for_a_claim_are_told_to_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    one, budgets = claims.Claims(), frozenset({"b"})
    monkeypatch.setattr(claims, "LONGEST_WAIT", 0.05)
    with one.claimed("slow", budgets, claims.WaitLimit()):
        assert one.until("other", budgets) and not one.until("slow", budgets)
        assert one.until("other", frozenset({"c"})) is None
        with pytest.raises(rz.Contended, match="retry"):
            one.wait("other", budgets, claims.WaitLimit())
        monkeypatch.setattr(claims, "MOST_WAITING", 0)
        with pytest.raises(rz.Contended, match="retry"):
            one.wait("other", budgets, claims.WaitLimit())
    assert not one


def test_all_waits_of_a_request_for_claims_together_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each claim ends, and then another one begins before the request has its turn."""
    one, budgets, limit = claims.Claims(), frozenset({"b"}), claims.WaitLimit()
    monkeypatch.setattr(claims, "LONGEST", 0.1)
    limit.left = 0.5
    begun = time.monotonic()
    with pytest.raises(rz.Contended, match="retry"):
        for number in range(100):
            with one.claimed(number, budgets, claims.WaitLimit()):
                one.wait("other", budgets, limit)
    assert 0.4 < time.monotonic() - begun < 5.0


def test_a_spend_that_is_barred_again_and_again_is_answered(
    open_: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever its wait is over, the budget is claimed by another request."""
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.create_budget("free", rz.PureFilter(1.0))
    monkeypatch.setattr(claims, "LONGEST_WAIT", 0.25)
    committer, waits = ledger._committer, list[float]()

    def wait(request: object, wanted: frozenset[str], limit: claims.WaitLimit) -> None:
        waits.append(limit.left)
        limit.left -= 0.0625
        if limit.left <= 0:
            raise rz.Contended("retry")

    with committer._claims.claimed("slow", frozenset({"b"}), claims.WaitLimit()):
        monkeypatch.setattr(committer._claims, "wait", wait)
        with pytest.raises(rz.Contended):
            ledger.spend("b", PureDp(0.1))
        assert ledger.spend("free", PureDp(0.1)).admitted
    assert waits == [0.25, 0.1875, 0.125, 0.0625]
