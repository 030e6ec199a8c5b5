"""Random workloads from stated families, by seed.

A suite of fixed workloads invites tuning to them. Here every workload is drawn: a family of noise,
a shape in time, sizes, and whether the analyst says beforehand what to expect. Constants of the
library may be chosen on `DEVELOPMENT_SEED`; published figures come from `REPORT_SEED`.

Sizes. A target `n` is log-uniform in [3, 1000], and the query is the one of its family with the
least noise of three significant digits for which `n` copies are proven to fit `(eps, delta)`. A
subsampled query is a number of steps of the subsampled Gaussian mechanism instead. The sampling
rate, log-uniform in [0.002, 0.05], is the same in the whole workload; so is the noise, log-uniform
in [0.8, 3], in half of the workloads, while in the other half it varies between the sizes by a
log-uniform factor in [1/1.5, 1.5]. The number of steps is chosen so that `n` queries fit; a
workload is drawn again if fewer than three steps fit. In a mixed workload each size comes from one
of the four other families.

Shapes. A constant workload has one size, the others have two to four:

    constant            one query without end
    bursts              runs of one size, chosen at random, of geometric length
    drifting            each size gives way gradually to the next one
    small then large    each size for its share of the budget, the smallest cost first
    large then small    the same, the largest cost first
    alternating         the sizes in turn

The draws use `random.Random.random` alone, whose sequence Python guarantees for a given seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import NamedTuple, TypeVar

from residua import checks
from residua.errors import ArgumentError
from residua.filters.target import target
from residua.mechanisms.black_boxes import PureDp
from residua.mechanisms.composition import SelfComposed
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.noise import Gaussian, Laplace
from residua.mechanisms.sampled import SubsampledGaussian
from residua.planning.candidates import gaussian_budget
from residua.planning.workload import Run, Workload, is_within, largest_count
from residua.work_limit import remembered

FAMILIES = ("pure", "laplace", "gaussian", "subsampled", "mixed")
"""The families of noise."""

SHAPES = ("constant", "bursts", "drifting", "small then large", "large then small", "alternating")
"""The shapes in time."""

DEVELOPMENT_SEED = 1
"""The seed for choosing constants and comparing variants; the default."""

REPORT_SEED = 20_261_118
"""The seed of the published tables. Nothing may be tuned to what it draws."""

COUNT = 2 * len(FAMILIES) * len(SHAPES)
"""Workloads in a suite by default: every family in every shape, with and without `expect`."""

FEWEST, MOST = 3, 1000
"""How many copies of a query fit: the range of the targets."""


_Item = TypeVar("_Item")


@dataclass(frozen=True)
class DrawnWorkload(Workload):
    """A workload with the family, the shape and the seed that it was drawn from."""

    family: str = ""
    shape: str = ""
    seed: int = 0


class Draw(NamedTuple):
    """The arguments of `draw_workload` for one workload of a suite."""

    seed: int
    family: str
    shape: str
    expect: bool


class _Size(NamedTuple):
    """A query, and how many copies of it fit."""

    query: Mechanism
    fits: int


def draw_workload(
    eps: float,
    delta: float,
    seed: int,
    *,
    family: str | None = None,
    shape: str | None = None,
    expect: bool | None = None,
) -> DrawnWorkload:
    """Draw one workload for the budget `(eps, delta)`.

    Args:
        eps: The budget's epsilon; the sizes depend on it.
        delta: The budget's delta.
        seed: A non-negative integer. The same arguments give the same workload everywhere.
        family: One of `FAMILIES`; drawn if it is not given.
        shape: One of `SHAPES`; drawn if it is not given.
        expect: Whether `expected` lists the queries of the workload; drawn if it is not given.

    Returns:
        The workload. Without `expect` its `expected` is empty.

    Raises:
        ArgumentError: An argument is out of range, or the budget is too small for the family.
    """
    eps, delta = target(eps, delta)
    seed = checks.count("seed", seed)
    draws = _Draws("workload", seed, eps, delta)
    # All three are drawn in any case: naming what would be drawn changes nothing else.
    drawn = draws.choice(FAMILIES), draws.choice(SHAPES), draws.chance(0.5)
    family = drawn[0] if family is None else checks.one_of("family", family, FAMILIES)
    shape = drawn[1] if shape is None else checks.one_of("shape", shape, SHAPES)
    expect = drawn[2] if expect is None else checks.flag("expect", expect)
    sizes = _draw_sizes(draws, family, shape, eps, delta)
    runs, repeat = _ARRANGED[shape](draws, sizes)
    name = f"{family}, {shape}, {'expect, ' if expect else ''}{seed}"
    expected = tuple(Run(size.query) for size in sizes) if expect else ()
    return DrawnWorkload(name, runs, repeat, expected, family, shape, seed)


def draw_suite(
    eps: float,
    delta: float,
    *,
    seed: int = DEVELOPMENT_SEED,
    count: int = COUNT,
    family: str | None = None,
    shape: str | None = None,
) -> tuple[DrawnWorkload, ...]:
    """Draw `count` workloads for the budget `(eps, delta)`, balanced over families and shapes.

    Args:
        eps: The budget's epsilon.
        delta: The budget's delta.
        seed: A non-negative integer that determines everything.
        count: How many workloads, at least one. A multiple of 60 has every family in every shape,
            with and without `expect`, equally often.
        family: Draw from this family alone.
        shape: Draw this shape alone.

    Returns:
        The workloads, with different names.

    Raises:
        ArgumentError: An argument is out of range, or the budget is too small for a family.
    """
    eps, delta = target(eps, delta)
    return tuple(
        draw_workload(eps, delta, one.seed, family=one.family, shape=one.shape, expect=one.expect)
        for one in suite_draws(seed, count, family, shape)
    )


def suite_draws(
    seed: int, count: int, family: str | None = None, shape: str | None = None
) -> tuple[Draw, ...]:
    """The draws that make up a suite.

    Families and shapes are each gone through in a shuffle order. Their numbers have no common
    divisor, so this reaches every pair, and every prefix is balanced in both.
    """
    seed, count = checks.count("seed", seed), checks.count("count", count)
    checks.require(count > 0, "count", "a positive integer", count)
    draws = _Draws("suite", seed)
    families: Sequence[str] = draws.shuffle(FAMILIES)
    shapes: Sequence[str] = draws.shuffle(SHAPES)
    if family is not None:
        families = (checks.one_of("family", family, FAMILIES),)
    if shape is not None:
        shapes = (checks.one_of("shape", shape, SHAPES),)
    pairs = len(families) * len(shapes)
    expects = draws.shuffle([place % 2 == 0 for place in range(pairs)])
    seeds: dict[int, None] = {}
    while len(seeds) < count:
        seeds[draws.below(10**9)] = None
    return tuple(
        Draw(
            one,
            families[place % len(families)],
            shapes[place % len(shapes)],
            # The next time round, each pair comes with the other choice.
            expects[place % pairs] != bool(place // pairs % 2),
        )
        for place, one in enumerate(seeds)
    )


class _Draws:
    """Random choices from a seed, all made from one reproducible sequence of uniform numbers."""

    def __init__(self, *key: object) -> None:
        self._uniform = Random(" ".join(map(str, ("residua", *key)))).random

    def below(self, end: int) -> int:
        return int(end * self._uniform())

    def chance(self, probability: float) -> bool:
        return self._uniform() < probability

    def choice(self, items: Sequence[_Item]) -> _Item:
        return items[self.below(len(items))]

    def shuffle(self, items: Sequence[_Item]) -> list[_Item]:
        keys = [self._uniform() for _ in items]
        return [items[place] for place in sorted(range(len(items)), key=keys.__getitem__)]

    def log_uniform(self, low: float, high: float) -> float:
        return low * math.exp(self._uniform() * math.log(high / low))


# -- sizes ------------------------------------------------------------------------------


def _draw_sizes(
    draws: _Draws, family: str, shape: str, eps: float, delta: float
) -> tuple[_Size, ...]:
    many = 1 if shape == "constant" else 2 + draws.below(3)
    for _ in range(100):
        sizes = _try_sizes(draws, family, many, eps, delta)
        if len(sizes) == many:
            return sizes
    raise ArgumentError(
        f"eps must leave room for {FEWEST} queries of the family {family!r} with delta"
        f" {delta!r}, got {eps!r}"
    )


def _try_sizes(
    draws: _Draws, family: str, many: int, eps: float, delta: float
) -> tuple[_Size, ...]:
    """Different sizes; fewer than `many` if the sampling rate and its noise leave no room."""
    rate = _digits(_index(draws.log_uniform(0.002, 0.05), up=False))
    noise, varies = draws.log_uniform(0.8, 3.0), draws.chance(0.5)
    sizes: dict[Mechanism, _Size] = {}
    for _ in range(4 * many):
        kind = draws.choice(FAMILIES[:-1]) if family == "mixed" else family
        wanted = round(draws.log_uniform(FEWEST, MOST))
        if kind == "subsampled":
            factor = draws.log_uniform(1 / 1.5, 1.5) if varies else 1.0
            sigma = _digits(_index(noise * factor, up=True))
            size = _subsampled(sigma, rate, wanted, eps, delta)
            if size is None:
                break
        else:
            size = _Size(_least_noise(kind, wanted, eps, delta), wanted)
        sizes.setdefault(size.query, size)
        if len(sizes) == many:
            break
    return tuple(sizes.values())


@remembered(maxsize=4096)
def _least_noise(family: str, count: int, eps: float, delta: float) -> Mechanism:
    """The query with the least noise of three digits for which `count` copies fit."""
    make = _MADE[family]

    def fits(index: int) -> bool:
        return is_within(count * make(index).pld(), eps, delta)

    # The Gaussian answer is near the others too.
    low = high = _index(math.sqrt(count) / gaussian_budget(eps, delta), up=True)
    least, most, step = _index(0.01, up=True), _index(1e15, up=True), 1
    while high < most and not fits(high):
        low, high, step = high, min(high + step, most), 2 * step
    if low == high:
        low, step = high - 1, 1
        while low > least and fits(low):
            low, high, step = max(low - 2 * step, least), low, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return make(high)


def _subsampled(sigma: float, rate: float, count: int, eps: float, delta: float) -> _Size | None:
    """Steps of the subsampled Gaussian; None if fewer than three fit."""
    whole = _steps_that_fit(sigma, rate, eps, delta)
    if whole < FEWEST:
        return None
    steps = max(whole // count, -(-whole // MOST))
    one = SubsampledGaussian(sigma, rate)
    return _Size(SelfComposed(one, steps) if steps > 1 else one, whole // steps)


@remembered(maxsize=4096)
def _steps_that_fit(sigma: float, rate: float, eps: float, delta: float) -> int:
    """How many steps are proven to fit, to within a hundredth."""
    loss = SubsampledGaussian(sigma, rate).pld()
    return largest_count(lambda steps: is_within(steps * loss, eps, delta), 1 << 40, 100)


def _digits(index: int) -> float:
    """The three-digit number of an index: 1.00 at 0, 1.01 at 1, 10.0 at 900, 0.999 at -1."""
    return float(f"{100 + index % 900}e{index // 900 - 2}")


def _index(value: float, up: bool) -> int:
    """The index of a positive number, rounded up or down to three digits."""
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    index = round(100 * float(mantissa)) - 100 + 900 * int(exponent)
    if up:
        return index + 1 if _digits(index) < value else index
    return index - 1 if _digits(index) > value else index


_MADE: dict[str, Callable[[int], Mechanism]] = {
    "pure": lambda index: PureDp(_digits(-index)),
    "laplace": lambda index: Laplace(_digits(index)),
    "gaussian": lambda index: Gaussian(sigma=_digits(index)),
}
"""A query from the index of its noise; that of pure differential privacy is `1 / eps`."""


# -- shapes -----------------------------------------------------------------------------

_Arranged = tuple[tuple[Run, ...], bool]


def _in_turn(_draws: _Draws, sizes: Sequence[_Size]) -> _Arranged:
    return tuple(Run(size.query) for size in sizes), True


def _bursts(draws: _Draws, sizes: Sequence[_Size]) -> _Arranged:
    runs = []
    for _ in range(300):  # more than any budget needs before the bursts start again
        query, times = draws.choice(sizes).query, 1
        while not draws.chance(0.3):
            times += 1
        runs.append(Run(query, times))
    return tuple(runs), True


def _stages(sizes: Sequence[_Size]) -> _Arranged:
    """Each size for its share of the budget, the last one without end."""
    *first, last = sizes
    runs = [Run(size.query, _share(size, sizes)) for size in first]
    return (*runs, _without_end(last)), False


def _without_end(size: _Size) -> Run:
    return Run(size.query, 10**6)


def _drifting(_draws: _Draws, sizes: Sequence[_Size]) -> _Arranged:
    """Blocks in which each size becomes rarer and the next one more frequent.

    A size has half of its share while it comes in and half while it gives way; the first one has
    the first half alone.
    """
    shares = [_share(size, sizes) for size in sizes]
    fade = 0.4, 0.3, 0.2, 0.1
    runs = [Run(sizes[0].query, -(-shares[0] // 2))]
    for (old, leaves), (new, comes) in pairwise(zip(sizes, shares, strict=True)):
        fading, rising = _divide(leaves // 2, fade), _divide(-(-comes // 2), fade[::-1])
        for less, more in zip(fading, rising, strict=True):
            runs += [Run(old.query, less)] if less else []
            runs += [Run(new.query, more)] if more else []
    return (*runs, _without_end(sizes[-1])), False


def _share(size: _Size, sizes: Sequence[_Size]) -> int:
    """How often a size is asked if all sizes get the same part of the budget."""
    return max(1, round(size.fits / len(sizes)))


def _divide(total: int, weights: Sequence[float]) -> list[int]:
    """`total` in whole parts that are proportional to the weights, which add up to one."""
    ends = [round(total * sum(weights[:place])) for place in range(1, len(weights))]
    return [end - start for start, end in zip([0, *ends], [*ends, total], strict=True)]


_ARRANGED: dict[str, Callable[[_Draws, Sequence[_Size]], _Arranged]] = {
    "constant": _in_turn,
    "bursts": _bursts,
    "drifting": _drifting,
    "small then large": lambda _, sizes: _stages(sorted(sizes, key=lambda one: -one.fits)),
    "large then small": lambda _, sizes: _stages(sorted(sizes, key=lambda one: one.fits)),
    "alternating": _in_turn,
}
"""The order of the queries for each shape, and whether it starts again."""
