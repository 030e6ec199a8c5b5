"""Clients, a network that fails and a service that is killed: what they were told is recorded.

`RESIDUA_HISTORIES` says how many histories there are for each store.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import residua as rz
from residua.errors import OutcomeUnknown, StoreUnavailable, UnknownHold
from residua.service import auth
from residua.service.auth import TokenStore
from service import proxy
from service.client.history import CAPACITY, Entry, Request, check, requests
from service.running import process

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy", "flint")

HISTORIES = int(os.environ.get("RESIDUA_HISTORIES", "1"))
RESTARTS, BETWEEN = 2, 25
"""How often the service is killed, and after how many answers."""
MOST = 80
"""Requests of each client."""
PAUSE = 0.3
"""Seconds that a client waits after a request that failed."""
FAULTS = [
    *(20 * [None]),
    *proxy.FAULTS.values(),
    proxy.first(10),
    proxy.dropped,
    proxy.cut,
    proxy.repeated,
    proxy.delayed,
]


def outcome_of(request: Request, begun: float, call: Callable[[], Any]) -> Entry:
    """Carry a call out, or read its result, and say what came of it."""
    outcome, answer = "told", None
    try:
        answer = call()
    except OutcomeUnknown as error:
        assert request.verb == "cancel" or request.key in str(error), error
        assert "nothing was spent" not in str(error)
        outcome = "unknown"
    except StoreUnavailable as error:
        assert request.verb == "cancel" or "nothing was spent" in str(error), error
        outcome = "unspent"
    except UnknownHold as error:
        # Of a request that arrived twice, the second answer.
        assert request.verb == "cancel" and "it was cancelled" in str(error), error
    return Entry(request, begun, time.monotonic(), outcome, answer)


class Clients:
    """Clients at work, each in a thread, and their history."""

    def __init__(self, seed: object):
        self.seed, self.entries = seed, list[Entry]()
        self.over, self.errors = Event(), list[BaseException]()
        self.threads: list[Thread] = []

    def start(self, worker: str, work: Callable[..., None], *options: Any) -> None:
        def run() -> None:
            try:
                work(requests(worker, self.seed, MOST), *options)
            except BaseException as error:
                self.errors.append(error)

        self.threads.append(Thread(target=run, name=worker))
        self.threads[-1].start()

    def note(self, entry: Entry) -> Entry:
        self.entries.append(entry)
        return entry

    def wait(self, url: str, token: str, attempts: int | None) -> Callable[..., None]:
        """The work of a `Client`."""

        def work(asked: Generator[Request, Entry, None]) -> None:
            with rz.Client(url, token, attempts=attempts) as client:
                request = next(asked, None)
                while request is not None and not self.over.is_set():
                    given, named = request.arguments
                    call = getattr(client, request.verb)
                    begun = time.monotonic()
                    entry = outcome_of(request, begun, lambda: call(*given, **named))  # noqa: B023
                    time.sleep(0.0 if entry.outcome == "told" else PAUSE)
                    request = _next(asked, self.note(entry))

        return work

    def await_(self, url: str, token: str, attempts: int | None) -> Callable[..., None]:
        """The work of an `AsyncClient`."""

        async def awaited(asked: Generator[Request, Entry, None]) -> None:
            async with rz.AsyncClient(url, token, attempts=attempts) as client:
                request = next(asked, None)
                while request is not None and not self.over.is_set():
                    given, named = request.arguments
                    begun = time.monotonic()
                    done = asyncio.ensure_future(getattr(client, request.verb)(*given, **named))
                    await asyncio.wait([done])
                    entry = outcome_of(request, begun, done.result)
                    await asyncio.sleep(0.0 if entry.outcome == "told" else PAUSE)
                    request = _next(asked, self.note(entry))

        return lambda asked: asyncio.run(awaited(asked))

    def told(self) -> int:
        """How many answers came through the proxy."""
        return sum(
            entry.outcome == "told" and not entry.request.key.startswith("direct")
            for entry in list(self.entries)
        )

    def await_outcome(self, outcome: str) -> None:
        """Wait until some call has had this outcome."""
        deadline = time.monotonic() + 60
        while all(entry.outcome != outcome for entry in list(self.entries)):
            if self.errors:
                raise self.errors[0]
            assert time.monotonic() < deadline, f"no call is {outcome}"
            time.sleep(0.01)

    def join(self) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join(120)
            assert not thread.is_alive()
        if self.errors:
            raise self.errors[0]


def _next(asked: Generator[Request, Entry, None], entry: Entry) -> Request | None:
    try:
        return asked.send(entry)
    except StopIteration:
        return None


def books_of(store: str, anchor: Path) -> dict[str, Any]:
    with rz.open_ledger(store, anchor=anchor, create=False) as ledger:
        assert ledger.read_only is None
        return {name: ledger.history(name) for name in CAPACITY}


def prepared(store: str, anchor: Path) -> str:
    """A ledger with the budgets; the token of an engine."""
    with rz.open_ledger(store, anchor=anchor) as ledger:
        for name, eps in CAPACITY.items():
            ledger.create_budget(name, rz.PureFilter(eps=eps))
        made, token = auth.new_token("engine", principal="engine")
        TokenStore(ledger).add(made)
    return token


def resolve(client: rz.Client, entries: list[Entry], books: Mapping[str, Any]) -> list[Entry]:
    """Ask for unknown outcomes with the same key."""
    kept = {record.key for records in books.values() for record in records}
    found = []
    for entry in entries:
        request = entry.request
        if entry.outcome == "unknown" and request.verb != "cancel":
            given, named = request.arguments
            answer = getattr(client, request.verb)(*given, **named)
            assert answer.replayed is (request.key in kept), f"{request}: the key tells"
            ended = entry.ended if answer.replayed else time.monotonic()
            entry = replace(entry, outcome="told", answer=answer, ended=ended)
        found.append(entry)
    return found


def record_history(store: str, anchor: Path, seed: object) -> None:
    token, chance, clients = prepared(store, anchor), random.Random(f"{seed}"), Clients(seed)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url, faults = f"http://127.0.0.1:{port}", [chance.choice(FAULTS) for _ in range(1000)]
    with proxy.proxied(url, faults) as between:
        for life in range(RESTARTS + 1):
            with process(store, anchor, port=port) as running:
                assert running.url == url
                if life == 0:
                    clients.start("patient", clients.wait(between.url, token, None))
                    clients.start("hasty", clients.wait(between.url, token, 1))
                    clients.start("direct", clients.wait(url, token, 1))
                    clients.start("async", clients.await_(between.url, token, None))
                    clients.start("hasty-async", clients.await_(between.url, token, 2))
                before, deadline = clients.told(), time.monotonic() + 30
                while clients.told() < before + BETWEEN and time.monotonic() < deadline:
                    time.sleep(0.01)
                if life == RESTARTS:
                    clients.join()
                    books = books_of(store, anchor)
                    counts = check(clients.entries, books)
                    with rz.Client(url, token) as client:
                        entries = resolve(client, clients.entries, books)
                else:
                    running.child.send_signal(chance.choice((signal.SIGKILL, signal.SIGTERM)))
                    running.child.wait(60)
                    # Somebody asks while nobody is there, and learns that nothing was spent.
                    clients.start(f"direct-{life}", clients.wait(url, token, 1))
                    clients.await_outcome("unspent")
                    time.sleep(chance.uniform(0.0, 0.5))
    check(entries, books_of(store, anchor))
    print(f"\n{seed}: {dict(counts)}, {len(between.requests)} requests through the proxy")
    assert counts["told"] > RESTARTS * BETWEEN and counts["unknown"] > 0 and counts["unspent"] > 0
    with rz.open_ledger(store, anchor=anchor, create=False) as ledger:
        report = ledger.verify()
        assert report.ok and report.proven > 0


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_a_history_with_sqlite(tmp_path: Path, seed: int) -> None:
    record_history(f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor", f"sqlite {seed}")


@pytest.mark.needs("pgserver", "psycopg")
@pytest.mark.parametrize("seed", range(HISTORIES))
def test_a_history_with_postgres(postgres: str, tmp_path: Path, seed: int) -> None:
    record_history(postgres, tmp_path / "anchor", f"postgres {seed}")


# -- what the check would find ---------------------------------------------------------------


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Entry], dict[str, Any]]:
    """A history without faults, at a ledger in this process."""
    tmp_path = tmp_path_factory.mktemp("history")
    store, anchor = f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor"
    prepared(store, anchor)
    entries: list[Entry] = []
    with rz.open_ledger(store, anchor=anchor) as ledger:
        asked = requests("one", 0, 150)
        request: Request | None = next(asked)
        while request is not None:
            given, named = request.arguments
            answer = getattr(ledger, request.verb)(*given, **named)
            told = None if request.verb == "cancel" else answer
            number = float(len(entries))
            entries.append(Entry(request, number, number + 0.5, "told", told))
            request = _next(asked, entries[-1])
    return entries, books_of(store, anchor)


def test_the_check_passes_and_finds_lies(history: tuple[list[Entry], dict[str, Any]]) -> None:
    entries, books = history
    assert check(entries, books)["told"] == len(entries)
    spends = [n for n, entry in enumerate(entries) if entry.request.verb == "spend"]
    admitted = next(n for n in spends if entries[n].answer.admitted)
    refused = next(n for n in spends if not entries[n].answer.admitted)
    entry = entries[admitted]
    cancel = next(n for n, each in enumerate(entries) if each.request.verb == "cancel")
    lies: dict[str, list[Entry]] = {
        "said to be unspent": _with(entries, admitted, outcome="unspent", answer=None),
        "not cancelled": _with(entries, cancel, outcome="unspent"),
        "never asked": [each for each in entries if each is not entry],
        "another hash": _with(
            entries, admitted, answer=replace(entry.answer, budgets=_forged(entry.answer.budgets))
        ),
        "refused, and said to be admitted": _with(
            entries, refused, answer=replace(entries[refused].answer, admitted=True)
        ),
        "another query": _with(entries, admitted, request=replace(entry.request, eps=0.03)),
        "recorded before it was asked": _with(entries, admitted, begun=1e9, ended=1e9),
    }
    for lie in lies.values():
        with pytest.raises(AssertionError):
            check(lie, books)
    (name, *_) = entry.request.names
    for broken in (
        {**books, name: [r for r in books[name] if r.key != entry.request.key]},
        {**books, name: [*books[name], books[name][-1]]},
    ):
        with pytest.raises(AssertionError):
            check(entries, broken)


def test_the_check_finds_overspending(
    history: tuple[list[Entry], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for eps, words in ((0.1, "overspent"), (100.0, "would fit")):
        monkeypatch.setitem(CAPACITY, "b", eps)
        monkeypatch.setitem(CAPACITY, "a", max(eps, 2.0))
        monkeypatch.setitem(CAPACITY, "c", max(eps, 0.5))
        with pytest.raises(AssertionError, match=words):
            check(*history)


def _with(entries: list[Entry], place: int, **changes: Any) -> list[Entry]:
    return [*entries[:place], replace(entries[place], **changes), *entries[place + 1 :]]


def _forged(budgets: Mapping[str, tuple[int, str]]) -> dict[str, tuple[int, str]]:
    return {name: (seq, head[::-1]) for name, (seq, head) in budgets.items()}
