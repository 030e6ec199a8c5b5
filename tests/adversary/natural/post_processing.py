"""The additive profile filter, run from randomized responses alone: the proof of its guarantee.

`adversary/natural_guarantee.py` says that what an analyst sees of the additive filter is a
post-processing of a fixed number of randomized responses about one bit, unless sizes are drawn too
often. `post_processed` carries that post-processing out. In each round

1. the query `L` is cut at the points `e_1 < … < e_{n-1}` and a size `i` is drawn by its profile;
2. the smallest unused copy of `RR_{e_j}`, `j >= i`, is taken, and flipped with a probability that
   makes it an answer of `RR_{e_i}`; size infinity, or no copy left, is FAIL;
3. a Markov kernel, which exists because `L` lies below its pessimistic PLD (Blackwell), turns size
   and bit into an answer of the query.

With copies without end the transcripts are distributed exactly as the filter's (`view`). With the
plan's copies each transcript is at most as likely, under either data set, and what is missing is
FAIL: the triangle lemma then gives `h <= h' + Pr[FAIL]`, where `h'` is a post-processing of the
copies. Probabilities here are floats; kernels are exact to 1e-9 (`pld/lattice.py`), and each
round adds that much for each outcome.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from residua import checks
from residua.adversary.buckets import Plan
from residua.adversary.discretise import discretise
from residua.adversary.rule import as_rounds
from residua.adversary.strategy import STOP, Strategy
from residua.bounds import Floats
from residua.errors import ArgumentError
from residua.filters.amounts import State
from residua.filters.base import Filter
from residua.filters.query import describe
from residua.pld.lattice import kernel
from residua.pld.pld import Pld

Transcript = tuple[int, ...]
"""What came out in each round: the place in the query's pair of distributions."""


@dataclass(frozen=True, eq=False)
class View:
    """How likely each transcript is under either data set; what is missing to 1 is FAIL."""

    masses: Mapping[Transcript, tuple[float, float]]

    @property
    def failure(self) -> tuple[float, float]:
        """The probability of FAIL under either data set."""
        sums = [math.fsum(mass[side] for mass in self.masses.values()) for side in (0, 1)]
        return max(0.0, 1.0 - sums[0]), max(0.0, 1.0 - sums[1])


def view(strategy: Strategy, filter: Filter | None = None) -> View:
    """What an analyst sees of a filter (or of none): the adaptive composition itself.

    Args:
        strategy: what is asked, of finite symmetric queries.
        filter: decides each query; a query that is refused ends the run. None admits everything.

    Returns:
        The probability of each transcript under either data set, in floats: not a bound.
    """
    masses: dict[Transcript, tuple[float, float]] = {}
    _check_run(strategy, filter)
    admit, start = _decisions(filter), None if filter is None else filter.initial()

    def go(here: Strategy, state: State | None, seen: Transcript, p: float, q: float) -> None:
        after = admit(here, state)
        if after is None:
            masses[seen] = p, q
            return
        first, second = seen_query(here).pair()
        for i, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            go(next_strategy(here, i), after[0], (*seen, i), p * a, q * b)

    go(strategy, start, (), 1.0, 1.0)
    return View(masses)


def post_processed(
    strategy: Strategy, plan: Plan, rounds: int | None, filter: Filter | None = None
) -> View:
    """The same transcripts, simulated from randomized responses about one bit.

    Args:
        strategy: what is asked, of finite symmetric queries.
        plan: sizes, and how many copies of each there are; `AdditiveProfileFilter(...).plan`.
        rounds: the most queries there are, which the copies depend on. None: copies never end,
            those that tell the bit itself (size infinity) included.
        filter: as for `view`.

    Returns:
        The law of the simulation, in floats; what is missing from 1 is FAIL, where copies ran out.
    """
    checks.instance("plan", plan, Plan, "a Plan")
    if rounds is not None:
        rounds = as_rounds(rounds)
    found: dict[Transcript, list[float]] = {}
    none = tuple(0 for _ in plan.points)
    copies = none if rounds is None else plan.copies(rounds)
    sizes = (*plan.points, math.inf)
    _check_run(strategy, filter)
    admit, start = _decisions(filter), None if filter is None else filter.initial()

    def go(
        here: Strategy, state: State | None, seen: Transcript, used: tuple[int, ...], w: Floats
    ) -> None:
        after = admit(here, state)
        if after is None:
            so_far = found.setdefault(seen, [0.0, 0.0])
            so_far[0] += float(w[0])
            so_far[1] += float(w[1])
            return
        step = step_of(seen_query(here), plan.points)
        following: dict[tuple[int, tuple[int, ...]], Floats] = {}
        for size, share in enumerate(step.profile):
            taken = size if rounds is None else _smallest(used, copies, size)
            if not share or taken is None:
                continue
            spent = none if rounds is None else _plus(used, taken)
            own, flipped = response(sizes[taken]), flip(sizes[taken], sizes[size])
            heads = own * (1.0 - flipped) + (1.0 - own) * flipped
            for bit, odds in enumerate(np.array([[heads, 1.0 - heads], [1.0 - heads, heads]])):
                if not odds.any():
                    continue
                for i, chance in enumerate(step.answers[size, bit].tolist()):
                    if chance > 0.0:
                        key = (i, spent)
                        following[key] = following.get(key, 0.0) + w * share * odds * chance
        for (i, spent), weight in following.items():
            go(next_strategy(here, i), after[0], (*seen, i), spent, weight)

    go(strategy, start, (), none, np.ones(2))
    return View({seen: (sides[0], sides[1]) for seen, sides in found.items()})


@dataclass(frozen=True, eq=False)
class Step:
    """A query cut by size: the chance of each size (infinity last), and the kernel's rows."""

    profile: Floats
    answers: Mapping[tuple[int, int], Floats]
    """By size and bit: the chances of the query's outcomes."""


@cache
def step_of(query: Pld, points: tuple[float, ...]) -> Step:
    cut = discretise(query, points)
    p, q = cut.pessimistic.pair()
    rows = kernel(query, cut.pessimistic)
    answers: dict[tuple[int, int], Floats] = {}
    for row, a, b in zip(rows, p.tolist(), q.tolist(), strict=True):
        if a == 0.0 or b == 0.0:
            size = len(points)
        else:
            size = int(np.argmin(np.abs(np.array(points) - abs(math.log(a / b)))))
        answers[size, int(b > a)] = row
    profile = np.array(cut.profile)
    return Step(profile / profile.sum(), answers)


def response(e: float) -> float:
    """The chance that `RR_e` tells the truth."""
    return 1.0 / (1.0 + math.exp(-e))


def flip(have: float, want: float) -> float:
    """The chance of a flip that turns an answer of `RR_have` into one of the smaller `RR_want`."""
    return (response(have) - response(want)) / (2.0 * response(have) - 1.0)


def _smallest(used: Sequence[int], copies: Sequence[int], size: int) -> int | None:
    return next((j for j in range(size, len(copies)) if used[j] < copies[j]), None)


def _plus(used: tuple[int, ...], taken: int) -> tuple[int, ...]:
    return (*used[:taken], used[taken] + 1, *used[taken + 1 :])


def seen_query(strategy: Strategy) -> Pld:
    return strategy.loss if strategy.seen is None else strategy.seen


def next_strategy(strategy: Strategy, outcome: int) -> Strategy:
    """What follows an outcome; after an infinite loss nothing does."""
    return strategy.then[outcome] if outcome < len(strategy.then) else STOP


Admit = Callable[[Strategy, State | None], tuple[State | None] | None]
"""The state after what is asked was admitted, in a tuple; None where nothing is, or refused."""


def _decisions(filter: Filter | None) -> Admit:
    """What a filter decides, each decision made once."""

    @cache
    def admit(here: Strategy, state: State | None) -> tuple[State | None] | None:
        if here.stops:
            return None
        if filter is None or state is None:
            return (None,)
        decision = filter.decide(state, here.query)
        return (decision.state,) if decision.admitted else None

    return admit


def _check_run(strategy: Any, filter: Any) -> None:
    checks.instance("strategy", strategy, Strategy, "a Strategy")
    if filter is not None:
        checks.instance("filter", filter, Filter, "a Filter")
    for here in _all(strategy, set()):
        loss = seen_query(here)
        if not loss.is_finite or not loss.is_symmetric:
            raise ArgumentError(f"strategy must ask finite symmetric queries, got {describe(loss)}")


def _all(strategy: Strategy, known: set[int]) -> Iterator[Strategy]:
    if id(strategy) not in known:
        known.add(id(strategy))
        yield strategy
        for after in strategy.then:
            yield from _all(after, known)
