"""From the event loop to the gate and back.

The gate serialises; what it costs to get there is switching between threads. So requests that wait
go together: one thread is woken when all have come who are expected, hands them to the gate as one
batch, which is one transaction, and the loop is woken once for all answers. A query that is new at
a budget, or that took long to decide before, is decided in a thread of its own before it joins the
others. A request that has been handed over is finished even if its caller goes away.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Condition, Lock, Thread
from typing import Any

from residua.errors import ResiduaError
from residua.filters.additive.base import Additive
from residua.ledger.api.commands import Call
from residua.ledger.api.ledger import Ledger
from residua.ledger.domain.described_query import Asked, asked, from_text
from residua.ledger.domain.receipts import Receipt, Reservation, Standings, standings_of
from residua.records import canonical
from residua.service.problems import Problem

_Waiting = tuple[Call, "asyncio.Future[Any]"]
MOST = 256
"""Requests in one transaction."""
SLOW_THREADS = 8
"""For queries that are new at a budget, or take long to decide."""
LONGEST_PAUSE, SHARE = 0.02, 0.5
"""How long a transaction waits for who may come, in seconds, and as a share of the last one."""


class Dispatcher:
    """The one thread that leads at the gate for the whole service, and some for what is slow."""

    def __init__(self, ledger: Ledger):
        self._ledger = ledger
        self._waiting: list[_Waiting] = []
        self._enough = 1
        """The thread is woken when so many wait."""
        self._changed = Condition(Lock())
        self._closed = False
        self._slow = ThreadPoolExecutor(SLOW_THREADS, thread_name_prefix="residua-slow")
        self._thread = Thread(target=self._lead, name="residua-gate", daemon=True)
        self._thread.start()

    async def ask(self, principal: str, verb: str, **arguments: Any) -> Any:
        """What the ledger's verb of that name answers to a principal."""
        if "query" in arguments and not self._ledger.decides_quickly(
            arguments["budgets"], arguments["query"]
        ):
            return await self._alone(principal, verb, arguments)
        # Who goes away leaves a cancelled future behind, which `_settle` passes over.
        return await self.hand(Call(verb, arguments, principal))

    def hand(self, call: Call) -> asyncio.Future[Any]:
        """Hand a call to the gate that it decides quickly; what will be its answer."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        with self._changed:
            self._check_open()
            self._waiting.append((call, future))
            if len(self._waiting) == self._enough:
                self._changed.notify()
        return future

    async def _alone(self, principal: str, verb: str, arguments: dict[str, Any]) -> Any:
        """Ask in another thread, which decides before it queues: nobody waits for it."""
        work = partial(getattr(self._ledger.as_principal(principal), verb), **arguments)
        with self._changed:
            self._check_open()
            future = self._slow.submit(work)
        return await asyncio.shield(asyncio.wrap_future(future))

    def _check_open(self) -> None:
        if self._closed:
            raise Problem(503, "shutting-down", "the service is shutting down; nothing was spent")

    def _lead(self) -> None:
        around, patience = 1, 0.0
        while batch := self._gathered(around, patience):
            begun = time.monotonic()
            self._answer(batch)
            # Those who were answered may well come again: with those who wait, so many are around.
            around = min(MOST, len(batch) + len(self._waiting))
            patience = min(LONGEST_PAUSE, SHARE * (time.monotonic() - begun))

    def _gathered(self, around: int, patience: float) -> list[_Waiting]:
        """What waits, after waiting a little for those who are expected; nothing at the end.

        What a transaction costs hardly depends on how much is in it, so two halves of the callers
        that take turns are served half as fast as all of them together.
        """
        with self._changed:
            self._wait_for(1, None)
            self._wait_for(around, patience)
            batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        return batch

    def _wait_for(self, enough: int, seconds: float | None) -> None:
        self._enough = enough
        self._changed.wait_for(lambda: self._closed or len(self._waiting) >= enough, seconds)

    def _answer(self, batch: list[_Waiting]) -> None:
        answers: list[Any]
        try:
            answers = self._ledger.many([call for call, _ in batch])
        except Exception as error:
            # The thread must live on whatever happens; each caller gets the error, and the log.
            answers = [error] * len(batch)
        loops: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
        for (_, future), answer in zip(batch, answers, strict=True):
            loops.setdefault(future.get_loop(), []).append((future, answer))
        for loop, settled in loops.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, settled)

    def close(self) -> None:
        """Finish what has come in, and take no more."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify()
        self._slow.shutdown(wait=True)
        self._thread.join()


def query_of(mechanism: Mapping[str, Any]) -> Asked:
    """A query from its description; of those that come again, each is read once."""
    try:
        text = canonical(mechanism)
    except ValueError:  # A number beyond all floats: the mechanism says which field it is in.
        return asked(mechanism)
    return from_text(text)


def is_quick(receipt: Receipt | Reservation) -> bool:
    """Whether what is left can be worked out in no time, and there is nothing else to."""
    if not receipt.admitted:
        return False
    standings = standings_of(receipt)
    return isinstance(standings, Standings) and all(
        isinstance(one.filter, Additive) and not one.holds for one in standings.all.values()
    )


def _settle(settled: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, answer in settled:
        if future.done():
            continue
        if isinstance(answer, BaseException):
            future.set_exception(_own(answer))
        else:
            future.set_result(answer)


def _own(error: BaseException) -> BaseException:
    """An error for one caller alone: one object raised in many tasks would grow a long trace."""
    if isinstance(error, ResiduaError):
        # Not called: what some take is not what they keep, and a failure here would leave the
        # others of a batch without an answer.
        mine = type(error).__new__(type(error), *error.args)
        mine.__dict__.update(error.__dict__)
        mine.__cause__ = error.__cause__
        return mine
    return error
