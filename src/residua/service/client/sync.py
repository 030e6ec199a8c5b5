"""`Client`: a ledger behind a service, with the verbs of one in a database."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeVar

from residua.ledger.api.guard import Guard
from residua.ledger.api.views import Budget
from residua.ledger.domain.receipts import Answer, Hold, Receipt, Reservation
from residua.ledger.recovery.export_file import write_lines
from residua.records import Record
from residua.service.api import values
from residua.service.client import verbs
from residua.service.client.calls import (
    ATTEMPTS,
    Call,
    address,
    headers,
    result,
    wait,
)
from residua.service.client.transport import Transport

T = TypeVar("T")


class Client:
    """The budget service at `url`. Safe to share between threads.

    Spends carry a key, made here if you bring none, so a call that brought no answer is repeated
    safely: it is answered with the receipt of the first. A receipt that is `replayed` permits no
    run. Where nothing answers, `OutcomeUnknown` says so, and the same key finds out.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        attempts: int = ATTEMPTS,
        connections: int = 100,
    ):
        self.url = address(url)
        self._attempts = attempts
        self._transport = Transport(self.url, headers(token), timeout, connections)

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
        return self._do(
            verbs.create_budget(
                name, filter, relation=relation, unit=unit, parent=parent,
                partition=partition, data=data, window=window, shares_data=shares_data,
            )
        )  # fmt: skip

    def budget(self, name: str) -> Budget:
        """A budget as it stands now."""
        return self._do(verbs.budget(name))

    def budgets(self) -> tuple[Budget, ...]:
        """All budgets in scope, by name."""
        found: list[Budget] = []
        after: str | None = None
        while True:
            page, after = self._do(verbs.budgets(after))
            found += page
            if after is None:
                return tuple(found)

    def retire(self, name: str, reason: str) -> None:
        """Close a budget for good."""
        self._do(verbs.retire(name, reason))

    def refresh(self, name: str) -> Budget:
        """Begin a new window if the old one is over."""
        return self._do(verbs.refresh(name))

    # -- spending -----------------------------------------------------------------------

    def check(self, budgets: Any, query: Any, *, assume_budget_relation: bool = False) -> Answer:
        """Whether a spend would be admitted now."""
        return self._do(verbs.check(budgets, query, assume_budget_relation))

    def spend(
        self,
        budgets: Any,
        query: Any,
        key: str | None = None,
        *,
        assume_budget_relation: bool = False,
    ) -> Receipt:
        """Debit a query, durably. Run its mechanism after this, once, and only if it says so."""
        receipt = self._do(verbs.spend(budgets, query, key, assume_budget_relation))
        # A key that was made here is known to nobody else: no run was permitted under it before.
        return replace(receipt, replayed=False) if key is None and receipt.replayed else receipt

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

        made: Reservation = self._do(
            verbs.reserve(budgets, query, key, ttl, assume_budget_relation, read)
        )
        return made

    def commit(self, hold: str, key: str | None = None) -> Receipt:
        """Debit what a hold holds, durably. Only then may its mechanism start."""
        return self._do(verbs.commit(hold, key))

    def cancel(self, hold: str, reason: str = "cancelled") -> None:
        """Let a hold go whose mechanism was not started and never will be."""
        self._do(verbs.cancel(hold, reason))

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
        return self._do(verbs.holds())

    # -- reading ------------------------------------------------------------------------

    def history(
        self, name: str, after: int | None = None, limit: int | None = None
    ) -> tuple[Record, ...]:
        """The records of a budget, oldest first."""
        found: list[Record] = []
        while limit is None or len(found) < limit:
            page, following = self._do(
                verbs.history(name, after, None if limit is None else limit - len(found))
            )
            found += page
            if following is None:
                break
            after = following
        return tuple(found)

    def status(self) -> Any:
        """The ledger at a glance."""
        return self._do(verbs.status())

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

        lines = (self._do(verbs.export())).splitlines()
        limits = limit, total_limit, memory_limit
        return verify_export(lines, expect_head, since, jobs, progress, *limits)

    def export(self, to: str | Path | IO[str]) -> int:
        """Write every record, and the tables they name, as JSON Lines; the number of lines."""
        text = self._do(verbs.export())
        return write_lines(to, text.splitlines(keepends=True))

    # -- there and back -----------------------------------------------------------------

    def _do(self, call: Call[T]) -> T:
        attempt = 1
        while True:
            outcome = self._transport.send(call)
            pause = wait(call, outcome, attempt, self._attempts)
            if pause is None:
                return result(call, outcome, self.url)
            time.sleep(pause)
            attempt += 1

    def close(self) -> None:
        """Let the connections go."""
        self._transport.close()

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
