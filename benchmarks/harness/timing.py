"""The clock, and two sides measured alternately on the same fresh inputs."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Generic, TypeVar

Input = TypeVar("Input")
Ours = TypeVar("Ours")
Theirs = TypeVar("Theirs")
Result = TypeVar("Result")


def timed(work: Callable[[Input], Result], argument: Input) -> tuple[float, Result]:
    """Milliseconds for one call, and its result."""
    gc.collect()
    start = time.perf_counter()
    result = work(argument)
    return 1000.0 * (time.perf_counter() - start), result


def median_time(
    work: Callable[[Input], object], fresh: Callable[[int], Input], repeats: int
) -> float:
    """Median milliseconds of `work(fresh(i))`, `i = 1..repeats`; `fresh(0)` warms up."""
    work(fresh(0))
    return median(timed(work, fresh(repeat))[0] for repeat in range(1, repeats + 1))


def median_in_a_row(
    work: Callable[[Input], object], fresh: Callable[[int], Input], repeats: int
) -> float:
    """The same for work of microseconds, one after the other and no collection in between.

    A collection walks all there is in memory and leaves the processor's caches to that: what
    follows it at once is then measured at several times what it takes in a row.
    """
    arguments = [fresh(repeat) for repeat in range(repeats + 1)]
    work(arguments[0])
    gc.collect()
    gc.disable()
    try:
        times = []
        for argument in arguments[1:]:
            start = time.perf_counter()
            work(argument)
            times.append(1000.0 * (time.perf_counter() - start))
    finally:
        gc.enable()
    return median(times)


@dataclass(frozen=True)
class SideBySide(Generic[Ours, Theirs]):
    """Median times of both sides, and what each answered in the last repeat."""

    ours_ms: float
    peer_ms: float
    ours: Ours
    theirs: Theirs


def side_by_side(
    ours: Callable[[Input], Ours],
    theirs: Callable[[Input], Theirs],
    fresh: Callable[[int], Input],
    repeats: int,
) -> SideBySide[Ours, Theirs]:
    """Both sides on `fresh(1)`, `fresh(2)`, ..., after a warm-up of each on `fresh(0)`."""
    ours(fresh(0))
    theirs(fresh(0))
    our_times, their_times = [], []
    for repeat in range(1, repeats + 1):
        argument = fresh(repeat)
        our_time, our_answer = timed(ours, argument)
        their_time, their_answer = timed(theirs, argument)
        our_times.append(our_time)
        their_times.append(their_time)
    return SideBySide(median(our_times), median(their_times), our_answer, their_answer)
