"""`AsyncClient`: the verbs of `Client`, to be awaited."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
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


@dataclass(frozen=True)
class AsyncReservation:
    """A reservation whose `commit` and `cancel` are awaited; all else is as in `Reservation`."""

    hold: Reservation
    _client: AsyncClient

    def __getattr__(self, name: str) -> Any:
        return getattr(self.hold, name)

    def __bool__(self) -> bool:
        return self.hold.admitted

    async def commit(self, key: str | None = None) -> Receipt:
        """Debit what is held. Only then, and only once, may the mechanism start."""
        return await self._client.commit(self.hold.id, key)

    async def cancel(self, reason: str = "cancelled") -> None:
        """Let the hold go: the mechanism was not started and never will be."""
        await self._client.cancel(self.hold.id, reason)


class AsyncClient:
    """The budget service at `url`. For one event loop.

    Its promises and its arguments are those of `Client`.
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
        self._sessions = Sessions(httpx.AsyncClient, options)

    # -- budgets ------------------------------------------------------------------------

    async def create_budget(
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
        return await self._run(
            verbs.create_budget(
                name, filter, relation=relation, unit=unit, parent=parent,
                partition=partition, data=data, window=window, shares_data=shares_data,
            )
        )  # fmt: skip

    async def budget(self, name: str) -> Budget:
        """The present state of a budget."""
        return await self._run(verbs.budget(name))

    async def budgets(self) -> tuple[Budget, ...]:
        """All budgets in scope, by name."""
        return await self._run(verbs.budgets())

    async def retire(self, name: str, reason: str) -> None:
        """Close a budget for good."""
        await self._run(verbs.retire(name, reason))

    async def refresh(self, name: str) -> Budget:
        """Begin a new window if the old one is over."""
        return await self._run(verbs.refresh(name))

    # -- spending -----------------------------------------------------------------------

    async def check(
        self, budgets: Any, query: Any, *, assume_budget_relation: bool = False
    ) -> Answer:
        """Whether a spend would be admitted now."""
        return await self._run(verbs.check(budgets, query, assume_budget_relation))

    async def spend(
        self,
        budgets: Any,
        query: Any,
        key: str | None = None,
        *,
        assume_budget_relation: bool = False,
    ) -> Receipt:
        """Debit a query, durably. Then run its mechanism once, if the receipt permits it."""
        return await self._run(verbs.spend(budgets, query, key, assume_budget_relation))

    async def reserve(
        self,
        budgets: Any,
        query: Any,
        key: str | None = None,
        ttl: float = 3600.0,
        *,
        assume_budget_relation: bool = False,
    ) -> AsyncReservation:
        """Hold budget for a mechanism that has not started."""

        def read(data: Any) -> AsyncReservation:
            return AsyncReservation(values.reservation_from(data, None), self)

        return await self._run(
            verbs.reserve(budgets, query, key, ttl, assume_budget_relation, read)
        )

    async def commit(self, hold: str, key: str | None = None) -> Receipt:
        """Debit what a hold holds, durably. Only then may its mechanism start."""
        return await self._run(verbs.commit(hold, key))

    async def cancel(self, hold: str, reason: str = "cancelled") -> None:
        """Let a hold go whose mechanism was not started and never will be."""
        await self._run(verbs.cancel(hold, reason))

    def guard(
        self,
        budgets: Any,
        mechanism: Any,
        key: str | None = None,
        *,
        ttl: float = 60.0,
        assume_budget_relation: bool = False,
    ) -> Guard:
        """A decorator of async functions, for `async with` too: hold, commit, and only then run.

        What it promises is what `Ledger.guard` does; the mechanism runs here, not in the service.
        """
        return Guard(self, budgets, mechanism, key, ttl, assume_budget_relation)

    async def holds(self) -> tuple[Hold, ...]:
        """The open reservations in scope, with their ages."""
        return await self._run(verbs.holds())

    # -- reading ------------------------------------------------------------------------

    async def history(
        self, name: str, after: int | None = None, limit: int | None = None
    ) -> tuple[Record, ...]:
        """The records of a budget, oldest first."""
        return await self._run(verbs.history(name, after, limit))

    async def status(self) -> Any:
        """The ledger at a glance."""
        return await self._run(verbs.status())

    async def verify(
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

        lines = (await self._run(verbs.exported())).splitlines()
        limits = limit, total_limit, memory_limit
        given = lines, expect_head, since, jobs, progress, *limits
        return await asyncio.to_thread(verify_export, *given)

    async def export(self, to: str | Path | IO[str]) -> int:
        """Write every record, and the tables they name, as JSON Lines; the number of lines."""
        return await self._run(verbs.export(to))

    # -- there and back -----------------------------------------------------------------

    async def _run(self, verb: verbs.Verb[T]) -> T:
        try:
            call = next(verb)
            while True:
                call = verb.send(await self._do(call))
        except StopIteration as end:
            done: T = end.value
            return done

    async def _do(self, call: Call[T]) -> T:
        attempts = Attempts(call, self.url, self._retries)
        while True:
            outcome = await self._send(call)
            pause = attempts.pause(outcome)
            if pause is None:
                return attempts.result(outcome)
            await asyncio.sleep(pause)

    async def _send(self, call: Call[Any]) -> Outcome:
        """One attempt."""
        try:
            return answered(
                await self._sessions.of(call).request(
                    call.method, self.url + call.path, params=call.params, content=call.content
                )
            )
        except httpx.HTTPError as error:
            return failed(error)

    async def close(self) -> None:
        """Let the connections go."""
        for each in self._sessions.both:
            await each.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self.url!r})"
