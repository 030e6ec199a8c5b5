"""`AsyncClient`: the verbs of `Client`, to be awaited."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
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
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="residua-client")

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
        return await self._do(
            verbs.create_budget(
                name, filter, relation=relation, unit=unit, parent=parent,
                partition=partition, data=data, window=window, shares_data=shares_data,
            )
        )  # fmt: skip

    async def budget(self, name: str) -> Budget:
        """A budget as it stands now."""
        return await self._do(verbs.budget(name))

    async def budgets(self) -> tuple[Budget, ...]:
        """All budgets in scope, by name."""
        found: list[Budget] = []
        after: str | None = None
        while True:
            page, after = await self._do(verbs.budgets(after))
            found += page
            if after is None:
                return tuple(found)

    async def retire(self, name: str, reason: str) -> None:
        """Close a budget for good."""
        await self._do(verbs.retire(name, reason))

    async def refresh(self, name: str) -> Budget:
        """Begin a new window if the old one is over."""
        return await self._do(verbs.refresh(name))

    # -- spending -----------------------------------------------------------------------

    async def check(
        self, budgets: Any, query: Any, *, assume_budget_relation: bool = False
    ) -> Answer:
        """Whether a spend would be admitted now."""
        return await self._do(verbs.check(budgets, query, assume_budget_relation))

    async def spend(
        self,
        budgets: Any,
        query: Any,
        key: str | None = None,
        *,
        assume_budget_relation: bool = False,
    ) -> Receipt:
        """Debit a query, durably. Run its mechanism after this, once, and only if it says so."""
        receipt = await self._do(verbs.spend(budgets, query, key, assume_budget_relation))
        # A key that was made here is known to nobody else: no run was permitted under it before.
        return replace(receipt, replayed=False) if key is None and receipt.replayed else receipt

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

        made: AsyncReservation = await self._do(
            verbs.reserve(budgets, query, key, ttl, assume_budget_relation, read)
        )
        return made

    async def commit(self, hold: str, key: str | None = None) -> Receipt:
        """Debit what a hold holds, durably. Only then may its mechanism start."""
        return await self._do(verbs.commit(hold, key))

    async def cancel(self, hold: str, reason: str = "cancelled") -> None:
        """Let a hold go whose mechanism was not started and never will be."""
        await self._do(verbs.cancel(hold, reason))

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
        return await self._do(verbs.holds())

    # -- reading ------------------------------------------------------------------------

    async def history(
        self, name: str, after: int | None = None, limit: int | None = None
    ) -> tuple[Record, ...]:
        """The records of a budget, oldest first."""
        found: list[Record] = []
        while limit is None or len(found) < limit:
            page, following = await self._do(
                verbs.history(name, after, None if limit is None else limit - len(found))
            )
            found += page
            if following is None:
                break
            after = following
        return tuple(found)

    async def status(self) -> Any:
        """The ledger at a glance."""
        return await self._do(verbs.status())

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

        lines = (await self._do(verbs.export())).splitlines()
        limits = limit, total_limit, memory_limit
        given = lines, expect_head, since, jobs, progress, *limits
        return await asyncio.to_thread(verify_export, *given)

    async def export(self, to: str | Path | IO[str]) -> int:
        """Write every record, and the tables they name, as JSON Lines; the number of lines."""
        text = await self._do(verbs.export())
        return write_lines(to, text.splitlines(keepends=True))

    # -- there and back -----------------------------------------------------------------

    async def _do(self, call: Call[T]) -> T:
        attempt, loop = 1, asyncio.get_running_loop()
        while True:
            outcome = await loop.run_in_executor(self._threads, self._transport.send, call)
            pause = wait(call, outcome, attempt, self._attempts)
            if pause is None:
                return result(call, outcome, self.url)
            await asyncio.sleep(pause)
            attempt += 1

    async def close(self) -> None:
        """Let the connections go."""
        self._transport.close()
        self._threads.shutdown(wait=False)

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
