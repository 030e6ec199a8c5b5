"""A stream of different queries, with a read after each: what an accountant does all day."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.harness.parts import Mechanism, gaussian, laplace, pure_dp, subsampled
from benchmarks.harness.run import Run
from benchmarks.harness.section import Goal, Section
from benchmarks.harness.speed import Work, all_of, goal, goals, times_table
from benchmarks.peers.participants import (
    AUTODP_RDP,
    GOOGLE_COARSE,
    GOOGLE_FINE,
    GOOGLE_RDP,
    MICROSOFT,
    OPACUS_PRV,
    OPACUS_RDP,
    US,
    Participant,
)
from benchmarks.peers.race import Result, race
from benchmarks.peers.worker import Answer

Stream = list[Mechanism]
TIGHT = 1e-6
"""Relative: a read counts as at least as tight if it is at most this much above the peer's."""


def gaussians(rng: np.random.Generator, count: int) -> Stream:
    noise = rng.uniform(10.0, 30.0, count) * np.sqrt(count / 240)
    return [gaussian(sigma) for sigma in noise]


def laplaces(rng: np.random.Generator, count: int) -> Stream:
    noise = rng.uniform(10.0, 30.0, count) * np.sqrt(count / 210)
    return [laplace(scale) for scale in noise]


def mixed(rng: np.random.Generator, count: int) -> Stream:
    noise = rng.uniform(10.0, 30.0, count) * np.sqrt(count / 210)
    makers: tuple[Callable[[float], Mechanism], ...] = (
        gaussian,
        laplace,
        lambda size: pure_dp(1.0 / size),
    )
    return [makers[place % 3](size) for place, size in enumerate(noise)]


def sampled(rng: np.random.Generator, count: int) -> Stream:
    rates, noise = rng.uniform(0.005, 0.02, count), rng.uniform(0.8, 1.5, count)
    return [subsampled(sigma, rate) for sigma, rate in zip(noise, rates, strict=True)]


STREAMS = {
    "Gaussians": (gaussians, 4.0, (100, 1000)),
    "Gaussian, Laplace and randomized response in turn": (mixed, 4.0, (100, 1000)),
    "Laplaces": (laplaces, 4.0, (100,)),
    "subsampled Gaussians": (sampled, 2.0, (100, 1000)),
}
PATIENCE = 15.0
"""Seconds of the processor: a stream of a thousand that takes longer is compared as far as the
peer came, with our time for as many."""


def patient(who: Participant, seconds: float = PATIENCE) -> Participant:
    return replace(who, options=who.options | {"patience": seconds})


DELTA_READERS = (US, GOOGLE_FINE, GOOGLE_COARSE, GOOGLE_RDP, MICROSOFT)
LONG_READERS = (US, patient(GOOGLE_FINE), patient(GOOGLE_RDP, 3.0))
"""Of a thousand: without the coarser grid, and without who composes everything anew for each
read, which takes the square of the time."""
EPSILON_READERS = (US, OPACUS_PRV, OPACUS_RDP, AUTODP_RDP)
LIMIT = 90.0
ANEW = {MICROSOFT: 3.0, OPACUS_PRV: 3.0, OPACUS_RDP: 3.0, AUTODP_RDP: 3.0}
"""Who composes everything anew."""
MOST_REPEATS = 3
PROOF = 5.0
"""Seconds for the proven ends of the last read, in which nothing of the stream is reused."""


def limits(run: Run) -> tuple[float, dict[Participant, float]]:
    return (20.0 if run.quick else LIMIT), ANEW


def inputs(run: Run, made: object, count: int, **more: float) -> list[dict[str, Any]]:
    # A thousand take long enough for the clock.
    repeats = min(run.repeats, MOST_REPEATS) if count <= 100 else 1
    return [
        {"mechanisms": made(np.random.default_rng([1, i]), count), **more}  # type: ignore[operator]
        for i in range(1 + repeats)
    ]


def tightness(work: Work, who: Participant) -> Goal | None:
    """How many of our reads are at most the peer's: "equal or better accuracy"."""
    found = {r.who.label: r for r in work.results if r.cpu is not None}
    what = f"{work.name}: reads at least as tight as {who.label}"
    if US.label not in found:
        return Goal(what, "no answer of ours", "all", False)
    if who.label not in found:
        return None
    ours, theirs = _reads(found[US.label]), _reads(found[who.label])
    allowed = [value * (1.0 + TIGHT) for value in theirs]
    tight = sum(map(operator.le, ours, allowed))
    return Goal(what, f"{tight} of {len(ours)}", "all", tight == len(ours))


def _reads(result: Result) -> list[float]:
    return [float(value) for value in result.answer.value]


def parts_of(asked: list[dict[str, Any]]) -> list[Any]:
    return [[mechanism, 1] for mechanism in asked[0]["mechanisms"]]


def whole(result: Result, count: int) -> Result:
    """The same, or how far it came if that is not to the end."""
    if result.cpu is None or len(result.answer.value) == count:
        return result
    said = f"{len(result.answer.value)} of {count:,} reads in {result.cpu:.0f} s"
    return Result(result.who, None, None, Answer(error=said))


def as_far_as(run: Run, name: str, asked: list[dict[str, Any]], theirs: Result) -> Work:
    """Our time and reads for as many queries as the peer came to."""
    count = len(theirs.answer.value)
    first = [{**one, "mechanisms": one["mechanisms"][:count]} for one in asked]
    return Work(f"the first {count} of {name}", (*race(run.field, (US,), "stream", first), theirs))


def measure(run: Run) -> Section:
    works: list[Work] = []
    aims: list[Goal | None] = []
    for name, (made, eps, counts) in STREAMS.items():
        for count in (12,) if run.quick else counts:
            asked = inputs(run, made, count, eps=eps)
            readers = DELTA_READERS if count <= 100 else LONG_READERS
            results = race(run.field, readers, "stream", asked, *limits(run))
            proof = run.field.ask(US, "delta_ends", PROOF, parts=parts_of(asked), eps=eps)
            title = f"{count:,} {name}, delta({eps:g}) after each"
            complete = tuple(whole(result, count) for result in results)
            work = Work(title, complete, tuple(proof.value) if proof.given else None)
            works.append(work)
            fine = next(r for r in results if r.who.label == GOOGLE_FINE.label)
            if fine.cpu is not None and len(fine.answer.value) < count:
                work = as_far_as(run, title, asked, fine)
                works.append(work)
            aims += [goal(work, GOOGLE_FINE.label, 10.0), tightness(work, GOOGLE_FINE)]
    asked = inputs(run, sampled, 12 if run.quick else 50, delta=1e-6)[:2]
    results = race(run.field, EPSILON_READERS, "stream_epsilon", asked, *limits(run))
    parts = parts_of(asked)
    ends = tuple(run.field.ask(US, "epsilon_ends", parts=parts, deltas=[1e-6]).value[0])
    last = Work(f"{len(parts)} subsampled Gaussians, eps(1e-6) after each", tuple(results), ends)
    return Section(
        "streaming",
        "Streams of different queries",
        "Each query is built, composed with all before it, and read. Targets are beside "
        "dp_accounting with the grid that it takes by itself, 1e-4; where it would need more than "
        f"{PATIENCE:.0f} s, as far as it came, in a table of its own. Peers that compose "
        "everything anew for each read are asked for at most 100, and those that read eps alone "
        "have a table of their own.",
        (*(times_table(work, "last delta") for work in works), times_table(last, "last eps")),
        goals(*aims),
        all_of([*works, last]),
    )
