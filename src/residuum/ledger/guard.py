"""Guards: code that runs a mechanism, and cannot run it without paying, or twice.

A guard holds, commits, and then enters the callable. What fails before the commit lets the hold go;
after it nothing comes back, whatever happens. A replayed receipt never runs anything. Exceptions of
the callable may depend on the data, so whoever called gets one constant error, and the log
`residuum.guard` the details.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from residuum.errors import (
    AlreadySpent,
    LedgerError,
    MechanismFailed,
    OutcomeUnknown,
    Refused,
)
from residuum.ledger.receipts import Receipt

LOG = logging.getLogger("residuum.guard")
FAILED = "the mechanism failed; it was paid for, and nothing comes back"


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

    def admit(self) -> Receipt:
        """Hold and commit; the receipt of a run that is permitted now. Raises otherwise."""
        hold = self.ledger.reserve(
            self.budgets,
            self.mechanism,
            key=self.key,
            ttl=self.ttl,
            assume_budget_relation=self.assumed,
        )
        if not hold.admitted:
            raise Refused(hold.reason, hold)
        try:
            receipt: Receipt = hold.commit()
        except OutcomeUnknown:
            raise
        except BaseException:
            with suppress(LedgerError):
                hold.cancel("the guard failed before it committed")
            raise
        if receipt.replayed:
            raise AlreadySpent(f"key {hold.key!r} was used before: what it permits has run")
        if not receipt.admitted:
            with suppress(LedgerError):
                hold.cancel("the commit was refused")
            raise Refused(receipt.reason, receipt)
        return receipt

    # -- as a context manager -----------------------------------------------------------

    def __enter__(self) -> Receipt:
        return self.admit()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            raise failed(error) from None

    async def __aenter__(self) -> Receipt:
        return await asyncio.to_thread(self.admit)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)

    # -- as a decorator -----------------------------------------------------------------

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, paid for at each call; `guard_key=` passes a key for one call."""
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def paid_later(*args: Any, guard_key: str | None = None, **kwargs: Any) -> Any:
                guard = self._for(guard_key, args, kwargs)
                await asyncio.to_thread(guard.admit)
                try:
                    return await function(*args, **kwargs)
                except Exception as error:
                    wrong = failed(error)
                raise wrong

            return paid_later

        @functools.wraps(function)
        def paid(*args: Any, guard_key: str | None = None, **kwargs: Any) -> Any:
            self._for(guard_key, args, kwargs).admit()
            try:
                return function(*args, **kwargs)
            except Exception as error:
                wrong = failed(error)
            # Outside of the handler, so that the error does not carry the other one with it.
            raise wrong

        return paid

    def _for(self, key: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Guard:
        """The guard of one call."""
        made = self.mechanism(*args, **kwargs) if callable(self.mechanism) else self.mechanism
        return replace(self, mechanism=made, key=self.key if key is None else key)


def failed(error: Exception) -> MechanismFailed:
    """One constant error for callers; the details go to the log."""
    LOG.error("a guarded mechanism failed after it was paid for", exc_info=error)
    return MechanismFailed(FAILED)
