"""Adversaries on paper and played: which query first, and which next after which outcome.

A strategy asks a query, looks at its loss, and goes on with the strategy for that loss. Its PLD is
given by adaptive composition: the outcome `(i, j)` has the mass `p_i p'_{i,j}` under `P` and
`q_i q'_{i,j}` under `Q`, where `p'_i, q'_i` belong to what follows outcome `i`.

The best answer to a threshold: `h_{L ⊕ V}(x) = p_inf + Σ p_i h_V(x e^{-z_i})`, so after the
outcome `z_i` the adversary goes on with what is best at `x e^{-z_i}` (`attaining` in
`worst_case.py`).

A query with a continuous loss is looked at through finitely many outcomes: `seen`, a PLD dominated
by the query's, is what is left of it by some processing of the answer (Blackwell).

**Simulation.** A strategy is played against a filter many times (`simulate`). Answers are drawn as
the first data set gives them (`P`), and each run scores `(1 - x e^-Z)_+` for its total loss `Z`:
the likelihood-ratio estimator, whose mean is `h(x)` exactly, while counting events under both data
sets would take a difference of two proportions.

The confidence interval is for means of variables in [0, 1], valid at every sample size: the better
end of the Chernoff bound in its relative-entropy form (Hoeffding 1963), which for coin flips is
close to Clopper–Pearson, and of the empirical Bernstein bound (Maurer and Pontil 2009), each side
of each at a quarter of the error.

Runs are independent, so how many of them see each outcome is multinomial: a million runs cost as
much as the outcomes they meet.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import groupby
from math import lcm
from typing import Any, NamedTuple

import numpy as np
from scipy.special import rel_entr

from residua import checks
from residua.adversary.finite import ACCURACY, RESPONSE_BITS, finite_atoms, irrational_factors
from residua.bounds import Interval, Verdict
from residua.errors import ArgumentError
from residua.filters.amounts import State
from residua.filters.base import Filter
from residua.filters.query import Query, as_query, describe, loss_of
from residua.pld.arithmetic.exact import ExactAtoms, Side, floats, from_masses, region
from residua.pld.constructors import from_exact, identity
from residua.pld.order.compare import dominated
from residua.pld.pld import Pld
from residua.work_limit import remembered


@dataclass(frozen=True, eq=False)
class Strategy:
    """Ask `query`; after its `i`-th smallest finite loss go on with `then[i]`.

    An empty `then` stops whatever comes out. After an infinite loss nothing is left to learn.
    Strategies may share what follows; a shared part is looked at once.
    """

    query: Query
    then: tuple[Strategy, ...] = ()
    seen: Pld | None = None
    """What is looked at, if not the whole loss: finite, and dominated by it."""

    def __post_init__(self) -> None:
        as_query(self.query)
        object.__setattr__(self, "then", tuple(self.then))
        for i, after in enumerate(self.then):
            checks.instance(f"then[{i}]", after, Strategy, "a Strategy")
        if self.seen is not None:
            if irrational_factors(self.seen) is None:
                raise ArgumentError(f"seen must be a finite PLD, got {describe(self.seen)}")
            if _is_refuted(self.seen, self.loss):
                raise ArgumentError(
                    f"seen must be dominated by {describe(self.query)}, got {describe(self.seen)}"
                )
        if self.then:
            if self.seen is None and irrational_factors(self.loss) is None:
                raise ArgumentError(
                    f"seen must be a finite PLD dominated by {describe(self.query)}, got None"
                )
            count = len(self.outcomes("below"))
            if len(self.then) != count:
                raise ArgumentError(
                    f"then must have one strategy for each of the {count} finite losses"
                    f" of {describe(self.query)}, got {len(self.then)}"
                )

    @property
    def loss(self) -> Pld:
        """The PLD of the query."""
        return loss_of(self.query)

    @property
    def looked_at(self) -> Pld:
        """What is looked at: finite where anything follows."""
        return self.loss if self.seen is None else self.seen

    @property
    def stops(self) -> bool:
        """Whether nothing is asked here."""
        return not self.then and self.loss.is_identity

    def outcomes(self, side: Side, accuracy: float = ACCURACY) -> ExactAtoms:
        """The outcomes that are looked at, as rational atoms on a side."""
        return finite_atoms(self.looked_at, side, accuracy)

    def pld(self) -> Pld:
        """The PLD of the whole interaction, from above; exact if all masses are rational."""
        return from_exact(self.exact("above"))

    def exact(self, side: Side, accuracy: float = ACCURACY) -> ExactAtoms:
        """The PLD of the whole interaction in rationals, above it or below it.

        What is asked last is rounded to the side. Before that a rounded mass moves outcomes
        between futures, which is on neither side: total variation bounds it, `2^-64` for each
        irrational query of a path, and the testing region is moved by that much.
        """

        @cache
        def law(here: Strategy) -> ExactAtoms:
            own = here.outcomes(side, accuracy)
            if not here.then:
                return own
            p: list[Fraction] = []
            q: list[Fraction] = []
            for i, rest in enumerate(map(law, here.then)):
                p += [Fraction(own.p[i] * a, own.p_den * rest.p_den) for a in rest.p]
                q += [Fraction(own.q[i] * b, own.q_den * rest.q_den) for b in rest.q]
            return from_masses(p, q)

        @cache
        def rounded(here: Strategy) -> int:
            """The most irrational queries of any path that are followed by others."""
            own = irrational_factors(here.looked_at)
            return (own or 0) + max(map(rounded, here.then)) if here.then else 0

        return _shift_region(law(self), side, rounded(self))

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain data; a shared part is written out each time."""
        out: dict[str, Any] = {"ask": describe(self.query)}
        if self.then:
            own = self.outcomes("below")
            out["then"] = [
                {"after_loss": _loss_at(own, i), **after.to_dict()}
                for i, after in enumerate(self.then)
                if not after.stops
            ]
        return out

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        if self.stops:
            return ["stop"]
        lines = [f"ask {describe(self.query)}"]
        for branch in self.branches():
            head, *more = branch.then._lines()
            lines.append(f"  loss {branch.label}: {head}")
            lines += [f"    {line}" for line in more]
        return lines

    def branches(self) -> tuple[Branch, ...]:
        """What follows, neighbouring losses that are followed alike taken together."""
        if all(after.stops for after in self.then):
            return ()
        numbers: dict[Any, int] = {}

        @cache
        def shape(here: Strategy) -> int:
            """A number for what is done, the same for strategies that read alike."""
            after = () if all(one.stops for one in here.then) else tuple(map(shape, here.then))
            return numbers.setdefault((describe(here.query), after), len(numbers))

        own, place, found = self.outcomes("below"), 0, []
        for _, alike in groupby(self.then, shape):
            first, *others = alike
            end = place + len(others)
            found.append(Branch(_loss_at(own, place), _loss_at(own, end), first))
            place = end + 1
        return tuple(found)


class Branch(NamedTuple):
    """What is done after losses from `low` to `high`."""

    low: float
    high: float
    then: Strategy

    @property
    def label(self) -> str:
        """The losses, in words."""
        low, high = (f"{z:+.4g}" if abs(z) > 5e-13 else "0" for z in (self.low, self.high))
        return low if self.low == self.high else f"{low} to {high}"


STOP = Strategy(identity())
"""Ask nothing more."""


def _shift_region(atoms: ExactAtoms, side: Side, roundings: int) -> ExactAtoms:
    """The testing region moved outwards or inwards by `roundings` units of 2^-RESPONSE_BITS."""
    if roundings == 0:
        return atoms
    p_den, q_den = (lcm(den, 1 << RESPONSE_BITS) for den in (atoms.p_den, atoms.q_den))
    up, right = (roundings * (den >> RESPONSE_BITS) for den in (p_den, q_den))
    if side == "below":
        up, right = -up, -right
    points = []
    for p, q in zip(atoms.p_tails, atoms.q_tails, strict=True):
        across = min(max(q * (q_den // atoms.q_den) - right, 0), q_den)
        height = min(max(p * (p_den // atoms.p_den) + up, 0), p_den)
        # The diagonal belongs to every region.
        points.append((across, max(height, across * p_den // q_den)))
    return region(points, q_den, p_den)


@remembered(maxsize=1024)
def _is_refuted(seen: Pld, loss: Pld) -> bool:
    return dominated(seen, loss).verdict is Verdict.NO


def _loss_at(atoms: ExactAtoms, i: int) -> float:
    kink = atoms.kink(i)
    return math.log(kink.numerator) - math.log(kink.denominator)


@dataclass(frozen=True)
class Simulation:
    """What a strategy was seen to achieve at `x`."""

    x: float
    estimate: float
    interval: Interval
    """Contains the exact `h(x)` with the stated confidence."""
    samples: int
    refused: int
    """Runs in which the filter refused at least one query (the run then passes)."""


def simulate(
    strategy: Strategy,
    x: float,
    filter: Filter | None = None,
    *,
    samples: int = 100_000,
    seed: int | None = None,
    confidence: float = 0.99,
) -> Simulation:
    """Play a strategy many times and estimate the `h(x)` that it achieves.

    Args:
        strategy: what is asked.
        x: the threshold, `e^eps`.
        filter: decides each query; a run ends with the first refusal. None admits everything.
        samples: how many runs are played.
        seed: random seed.
        confidence: of the interval.

    Returns:
        The estimate, and an interval that contains the exact value with that confidence.
    """
    checks.instance("strategy", strategy, Strategy, "a Strategy")
    if filter is not None:
        checks.instance("filter", filter, Filter, "a Filter")
    x = checks.positive("x", x)
    samples = checks.count("samples", samples)
    checks.require(samples >= 2, "samples", "2 or more", samples)
    confidence = checks.between("confidence", confidence, 0.5, 1.0 - 1e-9)
    random, state = np.random.default_rng(seed), None if filter is None else filter.initial()
    played = _play(filter, random, strategy, samples, 0.0, state)
    runs, losses, refused = zip(*played, strict=True)
    counts = np.array(runs)
    scores = np.maximum(0.0, -np.expm1(np.minimum(math.log(x) - np.array(losses), 0.0)))
    bounds = interval(scores, counts, 1.0 - confidence)
    estimate = float(scores @ counts) / samples
    return Simulation(x, estimate, bounds, samples, int(counts @ np.array(refused)))


def _play(
    filter: Filter | None,
    random: np.random.Generator,
    strategy: Strategy,
    runs: int,
    loss: float,
    state: State | None,
) -> Iterator[tuple[int, float, bool]]:
    """Play `runs` runs on: how many end with which total loss, and whether by a refusal."""
    if strategy.stops:
        yield runs, loss, False
        return
    if filter is not None and state is not None:
        decision = filter.decide(state, strategy.query)
        if not decision.admitted:
            yield runs, loss, True
            return
        state = decision.state
    own = strategy.outcomes("below")
    p, q = floats(own.p, own.p_den), floats(own.q, own.q_den)
    drawn = np.append(p, own.p_inf / own.p_den)
    *counts, infinite = random.multinomial(runs, drawn / drawn.sum()).tolist()
    if infinite:
        yield infinite, math.inf, False
    then = strategy.then or (STOP,) * len(counts)
    for count, more, after in zip(counts, np.log(p / q).tolist(), then, strict=True):
        if count:
            yield from _play(filter, random, after, count, loss + more, state)


def interval(scores: Any, counts: Any, error: float) -> Interval:
    """Confidence interval for the mean of scores in [0, 1], `counts` of each."""
    samples = float(counts.sum())
    mean = float(scores @ counts) / samples
    variance = float(((scores - mean) ** 2) @ counts) / (samples - 1.0)
    log, more = math.log(4.0 / error), math.log(8.0 / error)
    bernstein = math.sqrt(2.0 * variance * more / samples) + 7.0 * more / (3.0 * (samples - 1.0))
    low = max(mean - bernstein, _entropy_end(mean, log / samples, -1.0), 0.0)
    high = min(mean + bernstein, _entropy_end(mean, log / samples, 1.0), 1.0)
    return Interval(low, high)


def _entropy_end(mean: float, budget: float, sign: float) -> float:
    """The farthest `m` on one side with `KL(mean || m) <= budget`, rounded outwards."""
    inner, outer = mean, 1.0 if sign > 0 else 0.0
    for _ in range(100):
        middle = 0.5 * (inner + outer)
        inside = _relative_entropy(mean, middle) <= budget
        inner, outer = (middle, outer) if inside else (inner, middle)
    return outer


def _relative_entropy(a: float, b: float) -> float:
    if not 0.0 < b < 1.0:
        return 0.0 if a == b else math.inf
    return float(rel_entr(a, b) + rel_entr(1.0 - a, 1.0 - b))
