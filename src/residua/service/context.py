"""The context of a running service: the ledger, tokens, threads, processes and counts.

`Readiness` says whether the store answers. Anyone may ask that, so asking must not cost the store
anything: it is looked at once a second at most, however many callers ask, and nobody waits for a
store that is slow, or for other work.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

from starlette.requests import Request

from residua.ledger.api.ledger import Ledger
from residua.ledger.operations.early_decisions import Compute
from residua.service.auth import Authenticator, Caller, TokenStore
from residua.service.limits import (
    ANONYMOUS_BURST,
    ANONYMOUS_RATE,
    Connections,
    RateLimiter,
    WorkerThreads,
)
from residua.service.metrics import Metrics
from residua.service.pool import NotHere, Pool, not_here, while_connected
from residua.service.problems import Problem
from residua.service.settings import Settings
from residua.service.verification import Verifier
from residua.work_limit import OPERATIONS, limited

T = TypeVar("T")

MOST_WORK = 3 * OPERATIONS
"""Of an answer that commits nothing: a decision, its reason, and what is left."""
QUEUE = 1024
"""Requests that wait for a thread of one kind; further ones get an error that says to retry."""


@dataclass(frozen=True)
class ServiceContext:
    """The parts of a service. Nothing else is shared between requests."""

    settings: Settings
    ledger: Ledger
    tokens: TokenStore
    authenticator: Authenticator
    metrics: Metrics
    connections: Connections
    spend_threads: WorkerThreads
    """For spends: many, since they wait together for one commit."""
    read_threads: WorkerThreads
    """For histories and everything else that reads the store."""
    pool: Pool
    """Worker processes, for slow computations."""
    token_threads: WorkerThreads
    """For looking up tokens, so that authentication never waits for a plan."""
    rate_limiter: RateLimiter
    anonymous_limiter: RateLimiter
    readiness: Readiness
    verifier: Verifier
    play_plan: dict[tuple[str, ...], dict[str, Any]] = field(default_factory=dict)
    """The results of the plans of the playground, of which there are few."""

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """Call `work`, which may be slow or wait for the store, in a thread."""
        return await self.read_threads.run(work, *arguments)

    async def compute(
        self,
        request: Request,
        caller: Caller,
        work: Callable[[Compute], T],
    ) -> T:
        """Call `work`, which reads the store and makes slow computations by its argument.

        It is first called in a thread, with a function that raises `NotHere` for a slow
        computation, so that cheap requests do not wait for a worker process. If that is raised, it
        is called again with a function that computes in a worker process, under a limit on its
        work. If the client leaves, the computation is stopped.
        """
        try:
            return await self.read_threads.run_fairly(caller.principal, work, not_here)
        except NotHere:
            pass

        def limited_work(compute: Compute) -> T:
            return work(partial(compute, within_limit))

        return await self.compute_slowly(request, caller, limited_work)

    async def spend(self, request: Request, caller: Caller, work: Callable[[Compute], T]) -> T:
        """The same for work that commits, in one of the many threads for spends."""
        try:
            if not self.spend_threads.is_busy:
                return await self.spend_threads.run(work, not_here)
            waiting = asyncio.ensure_future(self.spend_threads.run(work, not_here))
            return await while_connected(request, waiting)
        except NotHere:
            pass
        return await self.compute_slowly(request, caller, work)

    async def compute_slowly(
        self, request: Request, caller: Caller, work: Callable[[Compute], T]
    ) -> T:
        """Compute with a worker, unless the client leaves."""
        computing = asyncio.ensure_future(self.pool.run(caller.principal, work))
        outcome = "done"
        try:
            return await while_connected(request, computing)
        except Problem as problem:
            outcome = problem.name
            raise
        finally:
            self.metrics.count_computation(outcome)

    async def bearer(self, request: Request, header: str | None) -> Caller:
        """The caller that an `Authorization` header names, wherever it came from.

        Raises if the token is not valid or the caller exceeds the rate limit. Only a token that was
        valid a moment ago is looked up without a limit for the address that it comes from.
        """
        address = request.client.host if request.client else ""
        try:
            caller = self.authenticator.known(header)
        except Problem:
            self.anonymous_limiter.take(address)
            raise
        if caller is None:
            caller = await self._looked_up(header, address)
        request.scope["state"]["caller"] = caller
        self.rate_limiter.take(caller.name)
        return caller

    async def _looked_up(self, header: str | None, address: str) -> Caller:
        is_anonymous = not self.authenticator.was_known(header)
        if is_anonymous:
            self.anonymous_limiter.take(address)
        caller = await self.token_threads.run(self.authenticator.caller, header)
        if is_anonymous:
            self.anonymous_limiter.give_back(address)
        return caller

    def close(self) -> None:
        """Finish the work that has begun, then close the ledger."""
        self.verifier.close()
        self.pool.close()
        for workers in (self.spend_threads, self.read_threads, self.token_threads):
            workers.close()
        self.readiness.close()
        self.ledger.close()


def within_limit(do: Callable[..., T], *arguments: Any) -> T:
    """Call a function within the limit on the work of an answer; raises `TooExpensive`."""
    with limited("the answer", MOST_WORK):
        return do(*arguments)


def open_context(settings: Settings, ledger: Ledger) -> ServiceContext:
    """The context around an open ledger."""
    tokens = TokenStore(ledger)
    metrics = Metrics()
    return ServiceContext(
        settings=settings,
        ledger=ledger,
        tokens=tokens,
        authenticator=Authenticator(tokens.find, settings.dev),
        metrics=metrics,
        connections=Connections(settings.head_within),
        # Many: they wait together for one commit.
        spend_threads=WorkerThreads("residua-spend", 64, QUEUE),
        read_threads=WorkerThreads("residua-work", settings.threads, QUEUE),
        pool=Pool(settings.workers, settings.compute_within, settings.worker_memory),
        token_threads=WorkerThreads("residua-tokens", 2, QUEUE),
        rate_limiter=RateLimiter(settings.rate, settings.burst),
        anonymous_limiter=RateLimiter(ANONYMOUS_RATE, ANONYMOUS_BURST),
        readiness=Readiness(lambda: tokens.find("")),
        verifier=Verifier(ledger, metrics, settings.verify_every),
    )


def caller_of(request: Request) -> Caller:
    """The caller of an authenticated request."""
    return cast(Caller, request.scope["state"]["caller"])


def authorize(request: Request, permission: str, *budgets: str) -> tuple[ServiceContext, Caller]:
    """The context and the caller of a request, who must have a permission for these budgets."""
    caller = caller_of(request)
    caller.require(permission, *budgets)
    return context_of(request), caller


def context_of(request: Request) -> ServiceContext:
    """The context of the service that handles a request."""
    return cast(ServiceContext, request.app.state.context)


class Readiness:
    """Looks at the store in a separate thread. Asked from one event loop."""

    EVERY = 1.0
    """Seconds for which an answer is good."""
    PATIENCE = 2.0
    """Seconds after which a store that does not answer is not ready."""

    def __init__(self, look: Callable[[], object], clock: Callable[[], float] = time.monotonic):
        self._look, self._clock = look, clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="residua-ready")
        self._looking: asyncio.Future[bool] | None = None
        self._begun = float("-inf")

    async def is_ready(self) -> bool:
        """Whether the store answered within the last second, or answers soon."""
        if self._looking is None or (
            self._looking.done() and self._clock() >= self._begun + self.EVERY
        ):
            self._begun = self._clock()
            self._looking = asyncio.get_running_loop().run_in_executor(self._thread, self._answers)
        rest = self._begun + self.PATIENCE - self._clock()
        if not self._looking.done() and rest > 0:
            await asyncio.wait({self._looking}, timeout=rest)
        return self._looking.done() and self._looking.result()

    def _answers(self) -> bool:
        try:
            self._look()
        except Exception:
            # Whatever it is: a store that cannot be read is not ready.
            return False
        return True

    def close(self) -> None:
        """Look no more."""
        self._thread.shutdown(wait=True)
