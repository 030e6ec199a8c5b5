"""`Client` and `AsyncClient`: a ledger behind a service, with the methods of one in a database.

Both have the same methods, written once. A `Method` returns its call; one of several calls is a
generator: it yields calls, is sent what each of them returned, and returns the result. `Client`
waits for each call, `AsyncClient` awaits it.

Names and arguments are those of `Ledger`, so that code moves from a database to a service by
changing one line.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

import httpx

from residua import checks
from residua.filters.base import Filter
from residua.filters.codec import from_json as filter_from_json
from residua.ledger.api.guard import Guard
from residua.ledger.api.views import Budget
from residua.ledger.domain import arguments
from residua.ledger.domain.described_query import describe_query
from residua.ledger.domain.receipts import Answer, Hold, Receipt, Reservation
from residua.ledger.recovery.export_file import write_lines
from residua.records import Record
from residua.service.api import values
from residua.service.client.calls import (
    RETRY_FOR,
    Attempts,
    Call,
    Outcome,
    Retries,
    Sessions,
    address,
    answer_of,
    failure_of,
    headers,
    keyed,
    nothing,
    once,
    page_of,
    segment,
)

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[[], Any]
"""What a method computes itself, away from an event loop."""
Flow = Generator[Call[Any] | Work, Any, T]
S = TypeVar("S", covariant=True)


class Steps(Protocol[S]):
    """What a method does: a call, or a generator of several."""

    def __iter__(self) -> Flow[S]: ...


PAGE = 500
"""Budgets or records that one call asks for."""


class Method(Generic[P, T]):
    """A method of both clients, from the generator of its calls."""

    def __init__(self, steps: Callable[Concatenate[Any, P], Steps[T]]):
        self._steps = steps
        self.__doc__ = steps.__doc__

    @overload
    def __get__(self, client: Client, kind: Any = None) -> Callable[P, T]: ...

    @overload
    def __get__(
        self, client: AsyncClient, kind: Any = None
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...

    @overload
    def __get__(self, client: None, kind: Any = None) -> Callable[..., Any]: ...

    def __get__(self, client: Any, kind: Any = None) -> Any:
        steps = self._steps

        @functools.wraps(steps)
        def method(self: Client, *args: Any, **kwargs: Any) -> Any:
            return self._run(steps(self, *args, **kwargs))

        @functools.wraps(steps)
        async def awaited(self: AsyncClient, *args: Any, **kwargs: Any) -> Any:
            return await self._run(steps(self, *args, **kwargs))

        found: Any = awaited if issubclass(kind, AsyncClient) else method
        return found if client is None else found.__get__(client)


R = TypeVar("R")


class _BudgetService(Generic[R]):
    """The methods of both clients, with reservations of a kind."""

    _http: type[httpx.Client | httpx.AsyncClient]

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
        self._sessions: Sessions[Any] = Sessions(
            self._http, headers(token), timeout, connections, proxy
        )

    # -- budgets ------------------------------------------------------------------------

    @Method
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
    ) -> Call[Budget]:
        """A new budget."""
        made = filter if isinstance(filter, Filter) else filter_from_json(filter)
        fields = {
            "relation": relation, "unit": unit, "parent": parent, "partition": partition,
            "data": data, "window": window, "shares_data": shares_data,
        }  # fmt: skip
        given = {name: value for name, value in fields.items() if value not in (None, False)}
        body = {"name": arguments.label("name", name), "filter": made.to_dict(), **given}
        return once("/v1/budgets", values.budget_from, body)

    @Method
    def budget(self, name: str) -> Call[Budget]:
        """The present state of a budget."""
        return Call("GET", _budget(name), values.budget_from)

    @Method
    def budgets(self) -> Flow[tuple[Budget, ...]]:
        """All budgets in scope, by name."""
        found: list[Budget] = []
        params: dict[str, Any] = {"limit": PAGE}
        while True:
            page, after = yield Call(
                "GET", "/v1/budgets", page_of(values.budget_from), params=params
            )
            found += page
            if after is None:
                return tuple(found)
            params = {**params, "after": after}

    @Method
    def retire(self, name: str, reason: str) -> Call[None]:
        """Close a budget for good."""
        return once(f"{_budget(name)}/retire", nothing, {"reason": arguments.reason(reason)})

    @Method
    def refresh(self, name: str) -> Call[Budget]:
        """Begin a new window if the old one is over."""
        return once(f"{_budget(name)}/refresh", values.budget_from, None)

    # -- spending -----------------------------------------------------------------------

    @Method
    def check(
        self, budgets: Any, query: Any, *, assume_budget_relation: bool = False
    ) -> Call[Answer]:
        """Whether a spend would be admitted now."""
        path, body = _query(budgets, query, assume_budget_relation)
        return Call("POST", f"{path}/check", values.answer_from, body)

    @Method
    def spend(
        self,
        budgets: Any,
        query: Any,
        key: str | None = None,
        *,
        assume_budget_relation: bool = False,
    ) -> Call[Receipt]:
        """Debit a query, durably. Then run its mechanism once, if the receipt permits it."""
        path, body = _query(budgets, query, assume_budget_relation)
        return keyed(f"{path}/spend", values.receipt_from, body, key)

    @Method
    def reserve(
        self,
        budgets: Any,
        query: Any,
        key: str | None = None,
        ttl: float = 3600.0,
        *,
        assume_budget_relation: bool = False,
    ) -> Call[R]:
        """Hold budget for a mechanism that has not started."""
        path, body = _query(budgets, query, assume_budget_relation)
        body["ttl"] = checks.positive("ttl", ttl)
        return keyed(f"{path}/reserve", self._reservation, body, key)

    def _reservation(self, data: Any) -> R:
        """A reservation, from an answer."""
        raise NotImplementedError

    @Method
    def commit(self, hold: str, key: str | None = None) -> Call[Receipt]:
        """Debit what a hold holds, durably. Only then may its mechanism start."""
        # Without a key the hold itself is one: committed again it gives the same receipt, replayed.
        body = {} if key is None else {"key": arguments.key(key)}
        path, named = f"{_hold(hold)}/commit", key or f"of hold {hold}"
        return Call("POST", path, values.receipt_from, body, key=named, writes=True)

    @Method
    def cancel(self, hold: str, reason: str = "cancelled") -> Call[None]:
        """Release a hold whose mechanism was not started and never will be."""
        return once(f"{_hold(hold)}/cancel", nothing, {"reason": arguments.reason(reason)})

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

        It promises what `Ledger.guard` does; the mechanism runs here, not in the service. That of
        an `AsyncClient` is for async functions and `async with`.
        """
        return Guard(self, budgets, mechanism, key, ttl, assume_budget_relation)

    @Method
    def holds(self) -> Call[tuple[Hold, ...]]:
        """The open reservations in scope, with their ages."""

        def read(data: Any) -> tuple[Hold, ...]:
            return tuple(values.hold_from(one) for one in data["items"])

        return Call("GET", "/v1/holds", read)

    # -- reading ------------------------------------------------------------------------

    @Method
    def history(
        self, name: str, after: int | None = None, limit: int | None = None
    ) -> Flow[tuple[Record, ...]]:
        """The records of a budget, oldest first."""
        found: list[Record] = []
        path = f"{_budget(name)}/history"
        while limit is None or len(found) < limit:
            rest = PAGE if limit is None else limit - len(found)
            params = {"limit": max(1, min(rest, PAGE))}
            if after is not None:
                params["after"] = checks.count("after", after)
            page, after = yield Call("GET", path, page_of(values.record_from), params=params)
            found += page
            if after is None:
                break
        return tuple(found)

    @Method
    def status(self) -> Call[Any]:
        """The ledger at a glance."""
        return Call("GET", "/v1/status", lambda data: data)

    @Method
    def verify(
        self,
        expect_head: Any = None,
        since: Any = None,
        jobs: int = 1,
        progress: Any = None,
        limit: float | None = None,
        total_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> Flow[Any]:
        """Check every chain and re-prove every step, here: the service is not trusted.

        `expect_head`: a receipt, or heads that were given out, without which one cannot tell
        whether the end of a chain is missing. Limits are as for a ledger.
        """
        from residua.verify import verify_export

        lines = (yield _EXPORT).splitlines()
        limits = limit, total_limit, memory_limit
        return (yield partial(verify_export, lines, expect_head, since, jobs, progress, *limits))

    @Method
    def export(self, to: str | Path | IO[str]) -> Flow[int]:
        """Write every record, and the tables they name, as JSON Lines; the number of lines."""
        return write_lines(to, (yield _EXPORT).splitlines(keepends=True))

    def _flow(self, steps: Steps[T]) -> Generator[Call[Any] | Work | float, Any, T]:
        """The steps of a method, with each call made again as it may be; floats are pauses."""
        flow, result = iter(steps), None
        while True:
            try:
                step = flow.send(result)
            except StopIteration as end:
                done: T = end.value
                return done
            if not isinstance(step, Call):
                result = yield step
                continue
            attempts = Attempts(step, self.url, self._retries)
            while (pause := attempts.pause(outcome := (yield step))) is not None:
                yield pause
            result = attempts.result(outcome)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"


class Client(_BudgetService[Reservation]):
    """The budget service at `url`. Safe to share between threads.

    Spends carry a key, made here if you bring none, so a call that brought no answer is repeated
    safely: it is answered with the receipt of the first, `replayed`, which permits no run. Where
    nothing answers, `OutcomeUnknown` says so, and the same key finds out.

    Args:
        url: the address of the service.
        token: the caller's token, as `residua token create` prints it.
        timeout: seconds for each attempt to connect, to send and to read.
        attempts: attempts in all; by default a few while nothing can have been carried out, and
            from then on until `retry_for` seconds have passed, in which a service restarts.
        retry_for: seconds in which an unknown outcome is asked for again.
        connections: the most connections at one time.
        proxy: the address of a proxy; by default those of the environment (`HTTPS_PROXY`,
            `NO_PROXY`) count.
    """

    _http = httpx.Client

    def _reservation(self, data: Any) -> Reservation:
        return values.reservation_from(data, self)

    def _run(self, steps: Steps[T]) -> T:
        flow = self._flow(steps)
        result: Any = None
        try:
            while True:
                step = flow.send(result)
                if isinstance(step, Call):
                    result = self._send(step)
                elif isinstance(step, float):
                    time.sleep(step)
                else:
                    result = step()
        except StopIteration as end:
            done: T = end.value
            return done

    def _send(self, call: Call[Any]) -> Outcome:
        try:
            return answer_of(self._sessions.of(call).request(**call.request(self.url)))
        except httpx.HTTPError as error:
            return failure_of(error)

    def close(self) -> None:
        """Close the connections."""
        for each in self._sessions.both:
            each.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(_BudgetService["AsyncReservation"]):
    """The budget service at `url`. For one event loop.

    Its promises and its arguments are those of `Client`; its methods are awaited.
    """

    _http = httpx.AsyncClient

    def _reservation(self, data: Any) -> AsyncReservation:
        return AsyncReservation(values.reservation_from(data, self), self)

    async def _run(self, steps: Steps[T]) -> T:
        flow = self._flow(steps)
        result: Any = None
        try:
            while True:
                step = flow.send(result)
                if isinstance(step, Call):
                    result = await self._send(step)
                elif isinstance(step, float):
                    await asyncio.sleep(step)
                else:
                    result = await asyncio.to_thread(step)
        except StopIteration as end:
            done: T = end.value
            return done

    async def _send(self, call: Call[Any]) -> Outcome:
        try:
            return answer_of(await self._sessions.of(call).request(**call.request(self.url)))
        except httpx.HTTPError as error:
            return failure_of(error)

    async def close(self) -> None:
        """Close the connections."""
        for each in self._sessions.both:
            await each.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


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
        """Release the hold: the mechanism was not started and never will be."""
        await self._client.cancel(self.hold.id, reason)


_EXPORT: Call[str] = Call("GET", "/v1/export", lambda text: text, text=True)


def _budget(name: str) -> str:
    return f"/v1/budgets/{segment(arguments.label('name', name))}"


def _hold(hold: str) -> str:
    return f"/v1/holds/{segment(arguments.label('hold', hold))}"


def _query(names: Any, query: Any, assumed: bool) -> tuple[str, dict[str, Any]]:
    found, _ = arguments.names(names)
    body: dict[str, Any] = {"mechanism": describe_query(query).plain}
    if len(found) > 1:
        body["also"] = list(found[1:])
    if checks.flag("assume_budget_relation", assumed):
        body["assume_budget_relation"] = True
    return _budget(found[0]), body
