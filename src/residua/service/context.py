"""What one running service has: the ledger, the tokens, threads for work, and counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar, cast

from starlette.requests import Request

from residua.ledger.api.ledger import Ledger
from residua.service.auth.access import Caller, Gatekeeper
from residua.service.auth.token_store import TokenStore
from residua.service.dispatch import Dispatcher
from residua.service.limits import STRANGERS_BURST, STRANGERS_RATE, Rate, Turns
from residua.service.metrics import Metrics
from residua.service.problems import Problem
from residua.service.settings import Settings
from residua.service.verification import Verifier

T = TypeVar("T")


@dataclass(frozen=True)
class Office:
    """The parts of a service. Nothing else is shared between requests."""

    settings: Settings
    ledger: Ledger
    tokens: TokenStore
    gatekeeper: Gatekeeper
    metrics: Metrics
    dispatch: Dispatcher
    pool: ThreadPoolExecutor
    doors: ThreadPoolExecutor
    """For looking tokens up, so that nobody's plan keeps an engine waiting at the door."""
    rate: Rate
    strangers: Rate
    turns: Turns
    verifier: Verifier

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """Do what may take long, or waits for the store, away from the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self.pool, work, *arguments)

    async def run_for(self, caller: Caller, work: Callable[..., T], *arguments: object) -> T:
        """The same for work whose length the caller chooses: some threads are left to others."""
        async with self.turns.turn(caller.token or caller.principal):
            return await self.run(work, *arguments)

    async def caller(self, request: Request) -> Caller:
        """Who asks; raises where that is nobody, or somebody who asks too often."""
        return await self.bearer(request, request.headers.get("authorization"))

    async def bearer(self, request: Request, header: str | None) -> Caller:
        """Who asks, by an `Authorization` header wherever it came from."""
        try:
            caller = self.gatekeeper.known(header)
            if caller is None:
                loop = asyncio.get_running_loop()
                caller = await loop.run_in_executor(self.doors, self.gatekeeper.caller, header)
        except Problem:
            self.strangers.take(request.client.host if request.client else "")
            raise
        request.scope["state"]["caller"] = caller
        self.rate.take(caller.token or caller.principal)
        return caller

    def close(self) -> None:
        """Finish what has begun, then let the ledger go."""
        self.dispatch.close()
        self.verifier.close()
        self.pool.shutdown(wait=True)
        self.doors.shutdown(wait=True)
        self.ledger.close()


def opened(settings: Settings, ledger: Ledger) -> Office:
    """An office around an open ledger."""
    tokens = TokenStore(ledger)
    metrics = Metrics()
    pool = ThreadPoolExecutor(settings.threads, thread_name_prefix="residua")
    return Office(
        settings=settings,
        ledger=ledger,
        tokens=tokens,
        gatekeeper=Gatekeeper(tokens.find, settings.dev),
        metrics=metrics,
        dispatch=Dispatcher(ledger),
        pool=pool,
        doors=ThreadPoolExecutor(2, thread_name_prefix="residua-doors"),
        rate=Rate(settings.rate, settings.burst),
        strangers=Rate(STRANGERS_RATE, STRANGERS_BURST),
        turns=Turns(max(1, settings.threads // 2)),
        verifier=Verifier(ledger, metrics, settings.verify_every),
    )


async def authenticated(request: Request) -> None:
    """Find out who asks, before anything else of the request is looked at."""
    await office_of(request).caller(request)


def caller_of(request: Request) -> Caller:
    """Who asks, once that is known."""
    return cast(Caller, request.scope["state"]["caller"])


def office_of(request: Request) -> Office:
    """The office that a request came to."""
    return cast(Office, request.scope["state"]["office"])
