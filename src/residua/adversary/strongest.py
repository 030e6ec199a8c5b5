"""The strongest adversary of the natural filter that is known: small queries, then a large one.

Against a budget `B` the analyst asks small randomized responses in blocks and adds up their losses.
After each block there is a choice: go on with the next block, or stop with one last query. The
filter looks at the queries alone, so the last query may be any `L` with `n R_e ⊕ L ⪯ B`, whatever
the loss `z` so far. It is chosen for `z`: a randomized response that is asked with as much
probability as just fits, of the size with the largest `h_L(e^{eps - z})`. (With one constraint the
best of all symmetric queries mixes two sizes; in place of the smaller one this takes none, which
costs a few percent.) When to stop is decided from the last block backwards,

    V_n(z) = max( largest h_L(e^{eps - z}),  E V_{n'}(z + loss of the next block) ),

and `V_0(0)` is what the analyst reaches at `eps`. Floats choose the blocks, the queries and when to
stop. The value of these choices is then proven from below: that each last query fits, by the
certified order; its curve, by its lower end; the weights of the sums, with their roundings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from residua import checks
from residua.adversary.discretise import generalised_response
from residua.adversary.rule import as_rounds
from residua.adversary.strategy import STOP, Strategy
from residua.bounds import LARGEST_EPS, Floats
from residua.errors import ArgumentError
from residua.filters.costs import response_point
from residua.pld.constructors import identity, pure_dp
from residua.pld.order.compare import dominated
from residua.pld.pld import Pld, query
from residua.work_limit import work

FEW_COPIES, MOST_COPIES = 200, 1600
"""How many small queries fit, at least and at most: more of them let the analyst look earlier."""
FIRST_LOOKS, LAST_LOOKS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.65), (0.8, 1.0)
"""When the analyst may look first and last: shares of the small queries that fit."""


@dataclass(frozen=True)
class Block:
    """The choice after `copies` small queries: for each loss so far a last query, or to go on.

    `last[i]` belongs to the `i`-th smallest loss and is a number in `endings`, or -1 to go on. The
    first of the endings is to ask nothing.
    """

    copies: int
    endings: tuple[Pld, ...]
    last: tuple[int, ...]


@dataclass(frozen=True)
class NaturalAttack:
    """An adversary of the natural filter: what it asks, and a proven lower bound of its delta."""

    budget: Pld
    eps: float
    promised: float
    """The delta of the budget at `eps`, rounded up."""
    delta: float
    """What the adversary reaches at `eps`, at least."""
    size: float
    """The small queries are `pure_dp(size)`."""
    blocks: tuple[Block, ...]

    @property
    def rounds(self) -> int:
        """The most queries that it asks, a block being one."""
        return len(self.blocks) + 1

    @property
    def ratio(self) -> float:
        """How often the promised delta fits into what is reached."""
        return self.delta / self.promised if self.promised > 0.0 else math.inf

    def strategy(self) -> Strategy:
        """The adversary as a tree, a block being one query; for few and small blocks."""
        after: list[Strategy] | None = None
        starts = (0, *(block.copies for block in self.blocks[:-1]))
        for start, block in zip(reversed(starts), reversed(self.blocks), strict=True):
            width = block.copies - start
            endings = [STOP, *map(Strategy, block.endings[1:])]
            choices = [
                endings[k] if after is None or k >= 0 else after[i]
                for i, k in enumerate(block.last)
            ]
            asked = width * pure_dp(self.size)
            after = [Strategy(asked, tuple(choices[i : i + width + 1])) for i in range(start + 1)]
        assert after is not None
        return after[0]


def natural_attack(
    budget: Pld,
    rounds: int,
    eps: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> NaturalAttack:
    """The strongest adversary that is known of the natural filter with a budget.

    Args:
        budget: compositions of what is asked stay below it; a Gaussian, an `(eps, delta)` budget,
            or a composition.
        rounds: how many queries may be asked, 2 or more; at most 100 are, or 20 where the budget is
            not `(eps, delta)`.
        eps: where delta is compared; by default the `eps` of an `(eps, delta)` budget.
        progress: called with the blocks that are proven, and all of them.

    Returns:
        The adversary, with a proven lower bound on the delta that it reaches.

    Raises:
        ArgumentError: an argument is out of range, or `eps` is missing.
    """
    query("budget", budget)
    rounds = as_rounds(rounds)
    checks.require(2 <= rounds <= 1000, "rounds", "between 2 and 1000", rounds)
    point = response_point(budget)
    if eps is None and point is None:
        raise ArgumentError("eps must be given for a budget that is not (eps, delta), got None")
    at = checks.between("eps", point[0] if eps is None and point else eps, 0.0, LARGEST_EPS / 4.0)
    checks.require(0.0 < budget.delta(at) < 1.0, "eps", "where delta is between 0 and 1", at)
    game = _Game(budget, at)
    # An analyst need not use all rounds: more than these would take minutes.
    looks = min(rounds, 100 if game.levels.size == 1 else 20)
    copies = min(max(FEW_COPIES, 16 * looks), MOST_COPIES)
    # Plans are compared with fewer sizes of a last query than the one that is proven has.
    plans = [(game.value(plan, 100), plan) for plan in game.plans(looks, copies)]
    if not plans:
        raise ArgumentError(f"budget must leave room for small queries, got {budget!r}")
    return game.prove(max(plans)[1], progress)


class _Plan(NamedTuple):
    """When the analyst looks: after so many small queries of a size."""

    size: float
    copies: tuple[int, ...]


class _Choice(NamedTuple):
    """The best last query after each loss."""

    sizes: Floats
    """All that may be asked, smallest first."""
    shares: Floats
    """The probabilities with which they fit."""
    best: NDArray[np.int_]
    """For the `i`-th smallest loss the number of the best size."""
    height: Floats
    """What it reaches then."""


@dataclass(frozen=True)
class _Game:
    """A budget and the point at which delta is compared."""

    budget: Pld
    eps: float
    levels: Floats = field(init=False)
    """Where the budget is read while last queries are chosen."""
    room: Floats = field(init=False)
    """The budget's delta there, a little reduced."""
    largest: float = field(init=False)
    """The largest size of response."""

    def __post_init__(self) -> None:
        point = response_point(self.budget)
        levels, kept = np.array([self.eps if point is None else point[0]]), 1.0 - 1e-9
        if point is None:
            rare = float(self.budget.mass_at_infinity_bounds.hi)
            top = float(
                self.budget.epsilon(rare + 1e-3 * (float(self.budget.delta(self.eps)) - rare))
            )
            # What fits at these points may stick out between them.
            levels, kept = np.unique([self.eps, *np.linspace(0.0, top, 40)]), 0.995
        room = np.asarray(self.budget.delta_bounds(levels).lo) * kept
        checks.set_fields(self, levels=levels, room=room, largest=3.0 * float(levels.max()) + 1.0)

    def plans(self, rounds: int, copies: int) -> Iterator[_Plan]:
        """Plans that look after numbers of queries with a constant ratio."""
        size = self._size_for(copies)
        for first, last in product(FIRST_LOOKS, LAST_LOOKS):
            looks = np.round(np.geomspace(first, last, rounds - 1) * copies).astype(int)
            each = tuple(sorted(set(looks.tolist()) - {0}))
            if size > 0.0 and each:
                yield _Plan(size, each)

    def _size_for(self, copies: int) -> float:
        """The size of response of which so many copies just fit."""
        low, high = 0.0, self.largest
        for _ in range(40):
            middle = (low + high) / 2.0
            losses, weights = _losses(middle, copies), _weights(middle, copies)
            height = [weights @ _complement(losses - level) for level in self.levels]
            low, high = (middle, high) if np.all(height <= self.room) else (low, middle)
        return low

    def value(self, plan: _Plan, sizes: int) -> float:
        """What a plan reaches, in floats."""
        value: Floats | None = None
        after = 0
        for copies in reversed(plan.copies):
            choice = self._choose(plan.size, copies, sizes)
            if choice is not None:
                value, _ = _stop_or_go(choice.height, value, plan.size, after - copies)
                after = copies
        return 0.0 if value is None else float(_weights(plan.size, after) @ value)

    def _choose(self, size: float, copies: int, sizes: int) -> _Choice | None:
        """The best last query for each loss; None where none fits."""
        work(40.0 * copies * sizes * self.levels.size)
        losses, weights = _losses(size, copies), _weights(size, copies)
        asked = np.geomspace(2e-3 * self.largest, self.largest, sizes)
        none = np.array([weights @ _complement(losses - level) for level in self.levels])
        cost = np.array([weights @ _height(asked, (u - losses)[:, None]) for u in self.levels])
        if not np.all(none <= self.room):
            return None
        more = np.maximum(cost - none[:, None], 1e-300)
        shares = np.minimum(np.min((self.room - none)[:, None] / more, axis=0), 1.0)
        without = _complement(losses - self.eps)[:, None]
        reached = without + (_height(asked, (self.eps - losses)[:, None]) - without) * shares
        best = np.argmax(reached, axis=1)
        return _Choice(asked, shares, best, reached[np.arange(copies + 1), best])

    def prove(
        self, plan: _Plan, progress: Callable[[int, int], None] | None = None
    ) -> NaturalAttack:
        """A plan with what it is proven to reach."""
        value: Floats | None = None
        after = 0
        blocks: list[Block] = []
        for done, copies in enumerate(reversed(plan.copies), 1):
            choice = self._choose(plan.size, copies, 400)
            # Fewer small queries fit where more do.
            spent = copies * pure_dp(plan.size)
            if choice is not None and (after or dominated(spent, self.budget).proven):
                _, stops = _stop_or_go(choice.height, value, plan.size, after - copies)
                weights = _weights(plan.size, copies)
                endings = self._endings(choice, stops, weights, spent)
                heights = self._heights(endings, _losses(plan.size, copies))
                value, stops = _stop_or_go(heights.max(axis=0), value, plan.size, after - copies)
                last = np.where(stops, heights.argmax(axis=0), -1)
                blocks.append(Block(copies, endings, tuple(last.tolist())))
                after = copies
            if progress is not None:
                progress(done, len(plan.copies))
        if value is None:
            raise ArgumentError(f"budget must leave room for small queries, got {self.budget!r}")
        # Roundings of sums with non-negative terms: 1e6 operations of relative error 2^-50.
        reached = float(_weights(plan.size, after) @ value) * (1.0 - 1e-9)
        promised = float(self.budget.delta(self.eps))
        return NaturalAttack(
            self.budget, self.eps, promised, reached, plan.size, tuple(reversed(blocks))
        )

    def _endings(
        self, choice: _Choice, stops: NDArray[np.bool_], weights: Floats, spent: Pld
    ) -> tuple[Pld, ...]:
        """Of the best last queries those for the losses that matter most, proven to fit."""
        gain = np.cumsum(weights * choice.height * stops)
        # Twelve: each takes a proof, and more of them reach only a little more.
        levels = (np.arange(12) + 0.5) / 12 * gain[-1]
        numbers = choice.best[np.minimum(np.searchsorted(gain, levels), gain.size - 1)]
        found = [identity()]
        for number in dict.fromkeys(numbers.tolist()):
            for less in (1.0 - 1e-9, 0.999, 0.98, 0.9):
                share = Fraction(float(choice.shares[number]) * less)
                sizes = 0.0, float(choice.sizes[number])
                ending = generalised_response([1 - share, share], sizes, "below")
                if dominated(spent + ending, self.budget).proven:
                    found.append(ending)
                    break
        return tuple(found)

    def _heights(self, endings: tuple[Pld, ...], losses: Floats) -> Floats:
        """What each last query reaches after each loss, lower bounds."""
        # A larger point gives a lower bound in spite of its rounding.
        x = np.exp(self.eps - losses) * (1.0 + 1e-12)
        found = np.zeros((len(endings), x.size))
        for row, ending in zip(found, endings, strict=True):
            row[:] = ending.hockey_stick_bounds(x).lo
        return found


def _stop_or_go(
    height: Floats, after: Floats | None, size: float, width: int
) -> tuple[Floats, NDArray[np.bool_]]:
    """The value after each loss, and where it is best to stop."""
    if after is None:
        return height, np.ones(height.size, dtype=bool)
    going = np.correlate(after, _weights(size, width), "valid")
    better: Floats = np.maximum(height, going)
    return better, height >= going


def _losses(size: float, copies: int) -> Floats:
    """The losses of so many randomized responses, the smallest first."""
    return size * np.arange(-copies, copies + 1, 2, dtype=np.float64)


def _weights(size: float, copies: int) -> Floats:
    """The probabilities of these losses, each with a relative error of at most 8 ulps a copy."""
    ahead = np.arange(copies)
    ratios = (copies - ahead) / (ahead + 1.0) * math.exp(size)
    top = int(np.searchsorted(-ratios, -1.0))
    up, down = np.cumprod(ratios[top:]), np.cumprod(1.0 / ratios[:top][::-1])[::-1]
    weights = np.concatenate([down, [1.0], up])
    found: Floats = weights / weights.sum()
    return found


def _height(size: Floats, t: Floats) -> Floats:
    """`h` of a randomized response at `e^t`."""
    found: Floats = expit(size) * _complement(size - t) + expit(-size) * _complement(-size - t)
    return found


def _complement(t: Floats) -> Floats:
    """`(1 - e^-t)_+`."""
    found: Floats = -np.expm1(-np.maximum(t, 0.0))
    return found
