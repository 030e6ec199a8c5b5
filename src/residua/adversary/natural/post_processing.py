"""The additive profile filter, run from randomized responses alone.

The proof behind `guarantee.py` says that what an analyst sees of the additive filter is a
post-processing of a fixed number of randomized responses about one bit, unless sizes are drawn too
often. Here that post-processing is carried out. In each round

1. the query `L` is cut at the points `e_1 < … < e_{n-1}` and a size `i` is drawn by its profile;
2. the smallest unused copy of `RR_{e_j}`, `j >= i`, is taken, and flipped with a probability that
   makes it an answer of `RR_{e_i}`; size infinity, or no copy left, is FAIL;
3. a Markov kernel, which exists because `L` lies below its pessimistic PLD (Blackwell), turns size
   and bit into an answer of the query.

With copies without end the transcripts are distributed exactly as the filter's (`view`). With the
plan's copies each transcript is at most as likely, under either data set, and what is missing is
FAIL: the triangle lemma then gives `h <= h' + Pr[FAIL]`, where `h'` is a post-processing of the
copies. Probabilities here are floats; kernels are exact to 1e-9 (`pld/lattice/kernel.py`), and each
round adds that much for each outcome.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from residua import checks
from residua.adversary.natural.buckets import overflow
from residua.adversary.natural.discretise import discretise
from residua.adversary.natural.guarantee import Plan, arguments, total
from residua.adversary.rule import as_rounds
from residua.adversary.strategy import STOP, Strategy
from residua.bounds import Floats
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters.base import Filter
from residua.filters.query import described
from residua.filters.state import State
from residua.pld.constructors import from_pair
from residua.pld.lattice.kernel import kernel
from residua.pld.pld import Pld

Transcript = tuple[int, ...]
"""What came out in each round: the place in the query's pair of distributions."""

FAIL: Transcript = (-1,)
"""The transcript of a run that had no copy left."""


@dataclass(frozen=True, eq=False)
class View:
    """How likely each transcript is under either data set; what is missing to 1 is FAIL."""

    masses: Mapping[Transcript, tuple[float, float]]

    @cached_property
    def failure(self) -> tuple[float, float]:
        """The probability of FAIL under either data set."""
        sums = [math.fsum(mass[side] for mass in self.masses.values()) for side in (0, 1)]
        return max(0.0, 1.0 - sums[0]), max(0.0, 1.0 - sums[1])

    def total_variation(self, other: View) -> tuple[float, float]:
        """Half the sum of the differences, FAIL included, under either data set."""
        keys = {**self.masses, **other.masses}
        none = (0.0, 0.0)
        apart = [
            math.fsum(
                abs(self.masses.get(key, none)[side] - other.masses.get(key, none)[side])
                for key in keys
            )
            + abs(self.failure[side] - other.failure[side])
            for side in (0, 1)
        ]
        return 0.5 * apart[0], 0.5 * apart[1]

    def pld(self) -> Pld:
        """The PLD of the two distributions, FAIL as an outcome of its own; rounded."""
        rows = np.array([*self.masses.values(), self.failure])
        return from_pair(*(rows / rows.sum(axis=0)).T)


def view(strategy: Strategy, filter: Filter | None = None) -> View:
    """What an analyst sees of a filter (or of none): the adaptive composition itself.

    Args:
        strategy: what is asked, of finite symmetric queries.
        filter: decides each query; a query that is refused ends the run. None admits everything.

    Returns:
        The probability of each transcript under either data set, in floats: not a bound.
    """
    masses: dict[Transcript, tuple[float, float]] = {}
    desk = _Desk(_checked(strategy, filter), filter)

    def go(here: Strategy, state: State | None, seen: Transcript, p: float, q: float) -> None:
        after = desk.asked(here, state)
        if after is None:
            masses[seen] = p, q
            return
        first, second = _query(here).pair()
        for i, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            go(_next(here, i), after[0], (*seen, i), p * a, q * b)

    go(strategy, desk.start, (), 1.0, 1.0)
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
    plan = _planned(plan)
    if rounds is not None:
        rounds = as_rounds(rounds)
    found: dict[Transcript, list[float]] = {}
    none = tuple(0 for _ in plan.points)
    copies = none if rounds is None else plan.copies(rounds)
    sizes = (*plan.points, math.inf)
    desk = _Desk(_checked(strategy, filter), filter)

    def go(
        here: Strategy, state: State | None, seen: Transcript, used: tuple[int, ...], w: Floats
    ) -> None:
        after = desk.asked(here, state)
        if after is None:
            so_far = found.setdefault(seen, [0.0, 0.0])
            so_far[0] += float(w[0])
            so_far[1] += float(w[1])
            return
        step = desk.step(here, plan.points)
        following: dict[tuple[int, tuple[int, ...]], Floats] = {}
        for size, share in enumerate(step.profile):
            taken = size if rounds is None else _smallest(used, copies, size)
            if not share or taken is None:
                continue
            spent = none if rounds is None else _plus(used, taken)
            own, flipped = _response(sizes[taken]), _flip(sizes[taken], sizes[size])
            heads = own * (1.0 - flipped) + (1.0 - own) * flipped
            for bit, odds in enumerate(np.array([[heads, 1.0 - heads], [1.0 - heads, heads]])):
                if not odds.any():
                    continue
                for i, chance in enumerate(step.answers[size, bit].tolist()):
                    if chance > 0.0:
                        key = (i, spent)
                        following[key] = following.get(key, 0.0) + w * share * odds * chance
        for (i, spent), weight in following.items():
            go(_next(here, i), after[0], (*seen, i), spent, weight)

    go(strategy, desk.start, (), none, np.ones(2))
    return View({seen: (sides[0], sides[1]) for seen, sides in found.items()})


def sample(
    strategy: Strategy,
    plan: Plan,
    rounds: int,
    truth: int,
    samples: int,
    seed: int,
    filter: Filter | None = None,
) -> Counter[Transcript]:
    """Run the simulation so many times, about the bit `truth`; how often each transcript came out.

    Each run draws its copies first and looks at nothing else about the bit.
    """
    checks.require(truth in (0, 1), "truth", "0 or 1", truth)
    random = np.random.default_rng(seed)
    copies = plan.copies(rounds)
    seen: Counter[Transcript] = Counter()
    desk = _Desk(_checked(strategy, filter), filter)
    for _ in range(checks.count("samples", samples)):
        pool = [
            [truth ^ int(random.random() >= _response(e)) for _ in range(n)]
            for e, n in zip(plan.points, copies, strict=True)
        ]
        seen[_run(desk, plan, pool, random)] += 1
    return seen


def _run(desk: _Desk, plan: Plan, pool: list[list[int]], random: np.random.Generator) -> Transcript:
    """One run, from bits that were drawn before."""
    here, state = desk.strategy, desk.start
    seen: Transcript = ()
    while (after := desk.asked(here, state)) is not None:
        step = desk.step(here, plan.points)
        size = _drawn(step.profile, random)
        taken = next((j for j in range(size, len(pool)) if pool[j]), None)
        if taken is None:
            return FAIL
        flipped = random.random() < _flip(plan.points[taken], plan.points[size])
        bit = pool[taken].pop() ^ int(flipped)
        i = _drawn(step.answers[size, bit], random)
        here, state, seen = _next(here, i), after[0], (*seen, i)
    return seen


def failure_bound(plan: Plan, eps: float, delta: float, rounds: int) -> float:
    """The probability of FAIL that the guarantee charges.

    Args:
        plan: sizes, and how many copies of each there are; `AdditiveProfileFilter(...).plan`.
        eps, delta: the promise that the natural filter checks, both positive.
        rounds: the most queries there are.

    Returns:
        An upper bound of the probability that `post_processed` runs out of copies, for any analyst.
    """
    plan = _planned(plan)
    eps, delta, rounds, _ = arguments(eps, delta, rounds, 1.0)
    allowed = zip(plan.points, plan.draws, strict=False)
    overflows = (
        overflow(total(e, eps, delta, rounds), draws) for e, draws in allowed if draws < rounds
    )
    return total(plan.points[-1], eps, delta, rounds) + math.fsum(overflows)


@dataclass(frozen=True, eq=False)
class _Step:
    """A query cut by size: the chance of each size (infinity last), and the kernel's rows."""

    profile: Floats
    answers: Mapping[tuple[int, int], Floats]
    """By size and bit: the chances of the query's outcomes."""


@lru_cache(maxsize=256)
def _step(query: Pld, points: tuple[float, ...]) -> _Step:
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
    return _Step(profile / profile.sum(), answers)


def _drawn(chances: Floats, random: np.random.Generator) -> int:
    """A place, drawn with these chances."""
    at = int(np.searchsorted(np.cumsum(chances), random.random(), side="right"))
    return min(at, int(np.flatnonzero(chances)[-1]))


def _response(e: float) -> float:
    """The chance that `RR_e` tells the truth."""
    return 1.0 / (1.0 + math.exp(-e))


def _flip(have: float, want: float) -> float:
    """The chance of a flip that turns an answer of `RR_have` into one of the smaller `RR_want`."""
    return (_response(have) - _response(want)) / (2.0 * _response(have) - 1.0)


def _smallest(used: Sequence[int], copies: Sequence[int], size: int) -> int | None:
    return next((j for j in range(size, len(copies)) if used[j] < copies[j]), None)


def _plus(used: tuple[int, ...], taken: int) -> tuple[int, ...]:
    return (*used[:taken], used[taken] + 1, *used[taken + 1 :])


def _query(strategy: Strategy) -> Pld:
    return strategy.loss if strategy.seen is None else strategy.seen


def _next(strategy: Strategy, outcome: int) -> Strategy:
    """What follows an outcome; after an infinite loss nothing does."""
    return strategy.then[outcome] if outcome < len(strategy.then) else STOP


class _Desk:
    """The filter's decisions, each looked up once; states that it gives out are kept."""

    def __init__(self, strategy: Strategy, filter: Filter | None):
        self.strategy, self.filter = strategy, filter
        self.start = None if filter is None else filter.initial()
        self._known: dict[tuple[int, int], tuple[State | None] | None] = {}
        self._steps: dict[int, _Step] = {}

    def asked(self, here: Strategy, state: State | None) -> tuple[State | None] | None:
        """The state after what is asked was admitted; None where nothing is, or it was refused."""
        key = (id(here), id(state))
        if key not in self._known:
            self._known[key] = self._decided(here, state)
        return self._known[key]

    def _decided(self, here: Strategy, state: State | None) -> tuple[State | None] | None:
        if here.stops:
            return None
        if self.filter is None or state is None:
            return (None,)
        decision = self.filter.decide(state, here.query)
        return (decision.state,) if decision.admitted else None

    def step(self, here: Strategy, points: tuple[float, ...]) -> _Step:
        """What is asked, cut by size."""
        if id(here) not in self._steps:
            self._steps[id(here)] = _step(_query(here), points)
        return self._steps[id(here)]


def _planned(plan: Any) -> Plan:
    if not isinstance(plan, Plan):
        raise ArgumentTypeError(f"plan must be a Plan, got {checks.shown(plan)}")
    return plan


def _checked(strategy: Any, filter: Any) -> Strategy:
    if not isinstance(strategy, Strategy):
        raise ArgumentTypeError(f"strategy must be a Strategy, got {checks.shown(strategy)}")
    if filter is not None and not isinstance(filter, Filter):
        raise ArgumentTypeError(f"filter must be a Filter, got {checks.shown(filter)}")
    for here in _all(strategy, set()):
        loss = _query(here)
        if not loss.is_finite or not loss.is_symmetric:
            raise ArgumentError(
                f"strategy must ask finite symmetric queries, got {described(loss)}"
            )
    return strategy


def _all(strategy: Strategy, known: set[int]) -> Iterator[Strategy]:
    if id(strategy) not in known:
        known.add(id(strategy))
        yield strategy
        for after in strategy.then:
            yield from _all(after, known)
