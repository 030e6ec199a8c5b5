"""`Client`: a ledger behind a service, with the verbs of one in a database."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeVar

import httpx

from residua.ledger.api.guard import Guard
from residua.ledger.api.views import Budget
from residua.ledger.domain.receipts import Answer, Hold, Receipt, Reservation
from residua.records import Record
from residua.service.api import values
from residua.service.client import verbs
from residua.service.client.calls import (
    RETRY_FOR,
    Attempts,
    Call,
    Outcome,
    Retries,
    address,
    headers,
)
from residua.service.client.sessions import Options, Sessions, answered, failed

T = TypeVar("T")


class Client:
    """The budget service at `url`. Safe to share between threads.

    Spends carry a key, made here if you bring none, so a call that brought no answer is repeated
    safely: it is answered with the receipt of the first, `replayed`, which permits no run. Where
    nothing answers, `OutcomeUnknown` says so, and the same key finds out.

    `timeout`: seconds for each attempt to connect, to send and to read. `attempts`: in all; by
    default a few while nothing can have been carried out, and from then on until `retry_for`
    seconds have passed, in which a service restarts. `connections`: at most so many at one time.
    `proxy`: its address; by default those of the environment (`HTTPS_PROXY`, `NO_PROXY`) count.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        attempts: int | None = None,
        retry_for: float = RETRY_FOR,
        connections: int = 100,
        proxy: str | None = None,
    ):
        self.url = address(url)
        self._retries = Retries(attempts, retry_for)
        options = Options(headers(token), timeout, connections, proxy)
        self._sessions = Sessions(httpx.Client, options)

    # -- budgets ------------------------------------------------------------------------

    def create_budget(
        self,
        name: str,
        filter: Any,
        relation: str | None = None,
        unit: str | None = None,
        parent: str | None = None,
        partition: str | None = None,
        data: str | None = None,
        window: float | None = None,
        shares_data: bool = False,
    ) -> Budget:
        """A new budget."""
        return self._run(
            verbs.create_budget(
                name, filter, relation=relation, unit=unit, parent=parent,
                partition=partition, data=data, window=window, shares_data=shares_data,
            )
        )  # fmt: skip

    def budget(self, name: str) -> Budget:
        """The present state of a budget."""
        return self._run(verbs.budget(name))

    def budgets(self) -> tuple[Budget, ...]:
        """All budgets in scope, by name."""
        return self._run(verbs.budgets())

    def retire(self, name: str, reason: str) -> None:
        """Close a budget for good."""
        self._run(verbs.retire(name, reason))

    def refresh(self, name: str) -> Budget:
        """Begin a new window if the old one is over."""
        return self._run(verbs.refresh(name))

    # -- spending -----------------------------------------------------------------------

    def check(self, budgets: Any, query: Any, *, assume_budget_relation: bool = False) -> Answer:
        """Whether a spend would be admitted now."""
        return self._run(verbs.check(budgets, query, assume_budget_relation))

    def spend(
        self,
        budgets: Any,
        query: Any,
        key: str | None = None,
        *,
        assume_budget_relation: bool = False,
    ) -> Receipt:
        """Debit a query, durably. Then run its mechanism once, if the receipt permits it."""
        return self._run(verbs.spend(budgets, query, key, assume_budget_relation))

    def reserve(
        self,
        budgets: Any,
        query: Any,
        key: str | None = None,
        ttl: float = 3600.0,
        *,
        assume_budget_relation: bool = False,
    ) -> Reservation:
        """Hold budget for a mechanism that has not started."""

        def read(data: Any) -> Reservation:
            return values.reservation_from(data, self)

        return self._run(verbs.reserve(budgets, query, key, ttl, assume_budget_relation, read))

    def commit(self, hold: str, key: str | None = None) -> Receipt:
        """Debit what a hold holds, durably. Only then may its mechanism start."""
        return self._run(verbs.commit(hold, key))

    def cancel(self, hold: str, reason: str = "cancelled") -> None:
        """Let a hold go whose mechanism was not started and never will be."""
        self._run(verbs.cancel(hold, reason))

    def guard(
        self,
        budgets: Any,
        mechanism: Any,
        key: str | None = None,
        *,
        ttl: float = 60.0,
        assume_budget_relation: bool = False,
    ) -> Guard:
        """A decorator and a context manager: hold, commit, and only then run, once.

        What it promises is what `Ledger.guard` does; the mechanism runs here, not in the service.
        """
        return Guard(self, budgets, mechanism, key, ttl, assume_budget_relation)

    def holds(self) -> tuple[Hold, ...]:
        """The open reservations in scope, with their ages."""
        return self._run(verbs.holds())

    # -- reading ------------------------------------------------------------------------

    def history(
        self, name: str, after: int | None = None, limit: int | None = None
    ) -> tuple[Record, ...]:
        """The records of a budget, oldest first."""
        return self._run(verbs.history(name, after, limit))

    def status(self) -> Any:
        """The ledger at a glance."""
        return self._run(verbs.status())

    def verify(
        self,
        expect_head: Any = None,
        since: Any = None,
        jobs: int = 1,
        progress: Any = None,
        limit: float | None = None,
        total_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> Any:
        """Check every chain and re-prove every step, here: the service is not trusted.

        `expect_head`: a receipt, or heads that were given out, without which one cannot tell
        whether the end of a chain is missing. Limits are as for a ledger.
        """
        from residua.verify import verify_export

        lines = self._run(verbs.exported()).splitlines()
        limits = limit, total_limit, memory_limit
        return verify_export(lines, expect_head, since, jobs, progress, *limits)

    def export(self, to: str | Path | IO[str]) -> int:
        """Write every record, and the tables they name, as JSON Lines; the number of lines."""
        return self._run(verbs.export(to))

    # -- there and back -----------------------------------------------------------------

    def _run(self, verb: verbs.Verb[T]) -> T:
        try:
            call = next(verb)
            while True:
                call = verb.send(self._do(call))
        except StopIteration as end:
            done: T = end.value
            return done

    def _do(self, call: Call[T]) -> T:
        attempts = Attempts(call, self.url, self._retries)
        while True:
            outcome = self._send(call)
            pause = attempts.pause(outcome)
            if pause is None:
                return attempts.result(outcome)
            time.sleep(pause)

    def _send(self, call: Call[Any]) -> Outcome:
        """One attempt."""
        try:
            return answered(
                self._sessions.of(call).request(
                    call.method, self.url + call.path, params=call.params, content=call.content
                )
            )
        except httpx.HTTPError as error:
            return failed(error)

    def close(self) -> None:
        """Let the connections go."""
        for each in self._sessions.both:
            each.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"
