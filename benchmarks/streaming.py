"""A stream of different queries, with a read after each: what an accountant does all day."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from benchmarks.parts import Mechanism, gaussian, laplace, pure_dp, subsampled
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
from benchmarks.run import Run
from benchmarks.section import Goal, Section
from benchmarks.speed import Work, all_of, goal, goals, times_table

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
DELTA_READERS = (US, GOOGLE_FINE, GOOGLE_COARSE, GOOGLE_RDP, MICROSOFT)
EPSILON_READERS = (US, OPACUS_PRV, OPACUS_RDP, AUTODP_RDP)
LIMIT = 160.0
SHORT = {MICROSOFT: 10.0, OPACUS_PRV: 30.0, GOOGLE_COARSE: 60.0}
"""The first two compose everything anew for each read: they would take the square of the time."""


def limits(run: Run) -> tuple[float, dict[Participant, float]]:
    return (20.0, {MICROSOFT: 10.0}) if run.quick else (LIMIT, SHORT)


def inputs(run: Run, made: object, count: int, **more: float) -> list[dict[str, object]]:
    # The second of a thousand is not needed: it takes long enough for the clock.
    repeats = run.repeats if count <= 100 else max(1, run.repeats // 2)
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


def measure(run: Run) -> Section:
    works: list[Work] = []
    tables, aims = [], []
    for name, (made, eps, counts) in STREAMS.items():
        for count in (12,) if run.quick else counts:
            asked = inputs(run, made, count, eps=eps)
            results = race(run.field, DELTA_READERS, "stream", asked, *limits(run))
            parts = [[mechanism, 1] for mechanism in asked[0]["mechanisms"]]  # type: ignore[attr-defined]
            ends = tuple(run.field.ask(US, "delta_ends", parts=parts, eps=eps).value)
            work = Work(f"{count:,} {name}, delta({eps:g}) after each", tuple(results), ends)
            works.append(work)
            tables.append(times_table(work, "last delta"))
            aims += [goal(work, GOOGLE_FINE.label, 10.0), tightness(work, GOOGLE_FINE)]
    asked = inputs(run, sampled, 12 if run.quick else 100, delta=1e-6)
    results = race(run.field, EPSILON_READERS, "stream_epsilon", asked, *limits(run))
    parts = [[mechanism, 1] for mechanism in asked[0]["mechanisms"]]  # type: ignore[attr-defined]
    ends = tuple(run.field.ask(US, "epsilon_ends", parts=parts, deltas=[1e-6]).value[0])
    work = Work(f"{len(parts)} subsampled Gaussians, eps(1e-6) after each", tuple(results), ends)
    return Section(
        "streaming",
        "Streams of different queries",
        "Each query is built, composed with all before it, and read. Targets are beside "
        "dp_accounting with the grid that it takes by itself, 1e-4. Peers that read eps alone have "
        "a table of their own.",
        (*tables, times_table(work, "last eps")),
        goals(*aims),
        all_of([*works, work]),
    )
