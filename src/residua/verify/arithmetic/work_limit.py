"""Limits on the work and memory of a proof, counted rather than timed: every machine stops alike.

A step of a record is untrusted text, and its writer can make it as large as they like. Every loop
over it declares beforehand how many ball operations it takes, at the precision in force, and every
list how many balls it will hold; where a step has had its share of either, `Exhausted` is raised
and the step is undecided. The share of work is given in seconds of a machine
that does `RATE` such operations a second. What is remembered from an earlier step counts as if it
were worked out again, so the order of steps does not matter either.

All steps of a verification share a total of work. A step that would exceed what the steps before it
have left is undecided, and so are those after it: also in several processes, which report what they
used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import ParamSpec, TypeVar

from flint import ctx

LIMIT = 60.0
"""Seconds of counted work for one step, by default."""
TOTAL = 3600.0
"""Seconds of counted work for all steps together, by default."""
MEMORY = 1024.0
"""Megabytes that a process may use for proofs, by counting, by default."""
RATE = 1_000_000
"""Counted operations that take a second, by definition."""

P = ParamSpec("P")
T = TypeVar("T")


class Exhausted(Exception):
    """A step has had its share of work or memory; the message says of which."""


class Share:
    """The work and memory that a step may use, and has used."""

    def __init__(self, seconds: float, megabytes: float):
        self.most, self.done = seconds * RATE, 0.0
        self.bytes = megabytes * 2.0**20

    @property
    def seconds(self) -> float:
        """The work that was done."""
        return self.done / RATE

    def take(self, amount: float) -> None:
        self.done += amount
        if not self.done <= self.most:
            raise Exhausted(f"work limit: not settled with {self.most / RATE:g} s of counted work")

    def hold(self, size: float) -> None:
        # As many of the largest lists may be there at the same time.
        if not 8 * size <= self.bytes:
            raise Exhausted(f"memory limit: not settled within {self.bytes / 2.0**20:g} MB")


_share: ContextVar[Share] = ContextVar("share")


@contextmanager
def limit_work(seconds: float, megabytes: float = MEMORY) -> Iterator[Share]:
    """Within, no more than so much work is done and memory used.

    Precision starts at flint's default, whatever the caller has set: it counts in the work.
    """
    share = Share(seconds, megabytes)
    token = _share.set(share)
    before, ctx.prec = ctx.prec, 53
    try:
        yield share
    finally:
        ctx.prec = before
        _share.reset(token)


def _mine() -> Share:
    share = _share.get(None)
    if share is None:
        share = Share(float("inf"), MEMORY)
        _share.set(share)
    return share


def work(operations: float) -> None:
    """Declare that so many operations follow; raises where they are too many."""
    # Up to so many bits the overhead of an operation decides.
    _mine().take(operations * max(1.0, ctx.prec / 192))


def reserve_memory(balls: float) -> None:
    """Declare that a list of so many balls follows; raises where that is too long."""
    # A ball takes so many bytes besides its mantissa.
    _mine().hold(balls * (112 + ctx.prec / 8))


def counted_cache(maxsize: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A cache of what is made at the precision in force, whose hits cost what they saved."""

    def around(function: Callable[P, T]) -> Callable[P, T]:
        @lru_cache(maxsize=maxsize)
        def measured(_precision: int, *args: P.args, **kwargs: P.kwargs) -> tuple[T, float]:
            share = _mine()
            before = share.done
            return function(*args, **kwargs), share.done - before

        def cached(*args: P.args, **kwargs: P.kwargs) -> T:
            share = _mine()
            before = share.done
            found, cost = measured(ctx.prec, *args, **kwargs)  # type: ignore[arg-type]
            share.take(before + cost - share.done)
            return found

        return cached

    return around
