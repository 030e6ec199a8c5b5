"""How much work a proof may take: operations are counted, so the end is the same on every machine.

A step of a record is somebody else's text, and can be made as large as its writer likes. Whatever
loops over it says beforehand how many ball operations that takes, at the precision in force; where
a step has had its share, `Exhausted` is raised and the step is undecided. The share is given in
seconds of a machine that does `RATE` such operations a second. What is remembered from an earlier
step counts as if it were worked out again, so the order of steps does not matter either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import ParamSpec, TypeVar

from flint import ctx

LIMIT = 60.0
"""Seconds of counted work for one step, unless told."""
RATE = 1_000_000
_WORD = 192

P = ParamSpec("P")
T = TypeVar("T")


class Exhausted(Exception):
    """A step has had its share of work."""


class _Share:
    def __init__(self, most: float):
        self.most, self.done = most, 0.0

    def take(self, amount: float) -> None:
        self.done += amount
        if self.done > self.most:
            raise Exhausted


_share: ContextVar[_Share] = ContextVar("share")


@contextmanager
def effort(seconds: float) -> Iterator[None]:
    """Within, no more than so much work is done."""
    token = _share.set(_Share(seconds * RATE))
    try:
        yield
    finally:
        _share.reset(token)


def _mine() -> _Share:
    share = _share.get(None)
    if share is None:
        share = _Share(float("inf"))
        _share.set(share)
    return share


def work(operations: float) -> None:
    """Say that so many operations follow; raises where they are too many."""
    _mine().take(operations * max(1.0, ctx.prec / _WORD))


def remembered(maxsize: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A cache whose hits cost what they saved."""

    def around(function: Callable[P, T]) -> Callable[P, T]:
        def worked(*args: P.args, **kwargs: P.kwargs) -> tuple[T, float]:
            share = _mine()
            before = share.done
            return function(*args, **kwargs), share.done - before

        cached = lru_cache(maxsize=maxsize)(worked)

        def asked(*args: P.args, **kwargs: P.kwargs) -> T:
            share = _mine()
            before = share.done
            found, cost = cached(*args, **kwargs)  # type: ignore[arg-type]
            share.take(before + cost - share.done)
            return found

        return asked

    return around
