"""Guards: they run a mechanism only after it was paid for, and only once.

A guard holds, commits, and then calls the function. A failure or a cancelled task before the commit
releases the hold; after the commit nothing is refunded, whatever happens. A replayed receipt never
runs anything. The function's exceptions may depend on the data, so the caller gets one constant
error without a cause, and the details go to the log `residua.guard`. The same holds for coroutines
and generators, which run later. Interrupts and cancellations are raised again as new exceptions of
the same class, without arguments and without context: a mechanism can raise them itself, with any
contents.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

from residua.errors import (
    AlreadySpent,
    ArgumentTypeError,
    MechanismFailed,
    OutcomeUnknown,
    Refused,
    ResiduaError,
)
from residua.ledger.domain.receipts import Receipt

LOG = logging.getLogger("residua.guard")
FAILED = "the mechanism failed; it was paid for, and nothing is refunded"
_BEFORE = "the guard failed before it committed"
_REFUSED = "the commit was refused"
_PASSING = (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)
"""Exceptions that are not failures of a mechanism, and must reach the caller that ends it."""


@dataclass(frozen=True)
class Guard:
    """A budget and a mechanism, waiting for what is to be run."""

    ledger: Any
    """A `Ledger`, or a client of one: whatever makes reservations."""
    budgets: Any
    mechanism: Any
    key: str | None
    ttl: float
    assumed: bool

    def admit(self, given_up: Event | None = None) -> Receipt:
        """Hold and commit; the receipt of a run that is permitted now. Raises otherwise.

        Nothing is committed once `given_up` is set.
        """
        if self._is_async:
            raise ArgumentTypeError(
                "a guard of an AsyncClient must be awaited: async with, or an async function"
            )
        try:
            self._hold_and_commit(given_up).send(None)
        except StopIteration as done:
            receipt: Receipt = done.value
            return receipt
        raise AssertionError("only an asynchronous ledger is awaited")

    async def admit_async(self) -> Receipt:
        """The same, without holding up the event loop; a task cancelled in time pays nothing."""
        given_up = Event()
        if self._is_async:
            return await self._hold_and_commit(given_up)
        try:
            return await asyncio.to_thread(self.admit, given_up)
        except asyncio.CancelledError:
            given_up.set()
            raise

    async def _hold_and_commit(self, given_up: Event | None) -> Receipt:
        """Hold and commit; only a ledger that is asynchronous is awaited."""
        hold = await _answered(
            self.ledger.reserve(
                self.budgets,
                self.mechanism,
                key=self.key,
                ttl=self.ttl,
                assume_budget_relation=self.assumed,
            )
        )
        if not hold.admitted:
            raise Refused(hold.reason, hold)
        try:
            if given_up is not None and given_up.is_set():
                raise asyncio.CancelledError
            receipt: Receipt = await _answered(hold.commit())
        except OutcomeUnknown:
            raise
        except BaseException:
            # A commit that arrived is not undone: there is no such hold any more.
            with suppress(ResiduaError):
                await _answered(hold.cancel(_BEFORE))
            raise
        if not receipt.admitted:
            with suppress(ResiduaError):
                await _answered(hold.cancel(_REFUSED))
        return _permitted(receipt, hold.key)

    @property
    def _is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.ledger.reserve)

    # -- as a context manager -----------------------------------------------------------

    def __enter__(self) -> Receipt:
        return self.admit()

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            return
        wrong = public_error(error)
        try:
            raise wrong
        finally:
            # Raised while the other one is handled, it would carry that with it.
            wrong.__context__ = None

    async def __aenter__(self) -> Receipt:
        return await self.admit_async()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.__exit__(kind, error, trace)

    # -- as a decorator -----------------------------------------------------------------

    @staticmethod
    def run(function: Callable[[], Any]) -> Any:
        """What a function gives that was paid for; what it raises becomes the constant error."""
        try:
            return _guarded(function())
        except BaseException as error:
            wrong = public_error(error)
        # Outside of the handler, so that the error does not carry the other one with it.
        raise wrong

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, paid for at each call; `guard_key=` passes a key for one call."""
        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def paid_stream(*args: Any, guard_key: str | None = None, **kwargs: Any) -> Any:
                await self._for(guard_key, args, kwargs).admit_async()
                async with aclosing(_stream(function(*args, **kwargs))) as stream:
                    said = None
                    with suppress(StopAsyncIteration):
                        while True:
                            said = yield await stream.asend(said)

            return paid_stream
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def paid_later(*args: Any, guard_key: str | None = None, **kwargs: Any) -> Any:
                await self._for(guard_key, args, kwargs).admit_async()
                return await _awaited(function(*args, **kwargs))

            return paid_later

        @functools.wraps(function)
        def paid(*args: Any, guard_key: str | None = None, **kwargs: Any) -> Any:
            self._for(guard_key, args, kwargs).admit()
            return self.run(lambda: function(*args, **kwargs))

        return paid

    def _for(self, key: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Guard:
        """The guard of one call."""
        made = self.mechanism(*args, **kwargs) if callable(self.mechanism) else self.mechanism
        return replace(self, mechanism=made, key=self.key if key is None else key)


async def _answered(answer: Any) -> Any:
    """The answer of a ledger, awaited if it is that of an asynchronous client."""
    return await answer if inspect.isawaitable(answer) else answer


def _permitted(receipt: Receipt, key: str) -> Receipt:
    """A receipt that permits a run now; raises on any other."""
    if receipt.replayed:
        raise AlreadySpent(f"key {key!r} was used before: the query that it permits has run")
    if not receipt.admitted:
        raise Refused(receipt.reason, receipt)
    return receipt


def public_error(error: BaseException) -> BaseException:
    """The error that callers may see: a constant one, or a new interrupt of the same class."""
    for kind in _PASSING:
        if isinstance(error, kind):
            if error.args or type(error) is not kind:
                LOG.error("a guarded mechanism was interrupted; its exception", exc_info=error)
            return kind()
    LOG.error("a guarded mechanism failed after it was paid for", exc_info=error)
    return MechanismFailed(FAILED)


def _guarded(result: Any) -> Any:
    """The result of a callable; coroutines and generators, which are yet to run, under guard."""
    if inspect.iscoroutine(result):
        return _awaited(result)
    if inspect.isgenerator(result):
        return _generated(result)
    return _stream(result) if inspect.isasyncgen(result) else result


async def _awaited(coroutine: Any) -> Any:
    try:
        return _guarded(await coroutine)
    except BaseException as error:
        wrong = public_error(error)
    raise wrong


def _generated(inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    try:
        return (yield from inner)
    except BaseException as error:
        wrong = public_error(error)
    raise wrong


async def _stream(inner: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    said = None
    try:
        while True:
            said = yield await inner.asend(said)
    except StopAsyncIteration:
        return
    except BaseException as error:
        wrong = public_error(error)
    finally:
        await inner.aclose()
    raise wrong
