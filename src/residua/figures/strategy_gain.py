"""An adversary of the natural filter, and what each further round is worth to it.

Two queries: a coin that leans 5 to 3 towards the data set in hand, and one that tells all with
probability 1/32 and nothing otherwise. The budget is `R_{1, 1/8}`. Everything is rational, so the
values are exact: the best plan that is fixed in advance stays below 1/8 by the filter's own test,
the best that is chosen answer by answer does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from residua.adversary.natural.rule import NaturalRule
from residua.adversary.strategy import Strategy
from residua.adversary.worst_case import worst_case
from residua.figures import style
from residua.figures.picture import Picture
from residua.figures.strategy_tree import draw_tree, size
from residua.pld.constructors import approximate_dp, from_pair
from residua.pld.pld import Pld

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["StrategyPicture", "strategy_gain"]

EPS, DELTA = 1.0, 0.125
COIN = from_pair([3 / 8, 5 / 8], [5 / 8, 3 / 8])
REVEAL = approximate_dp(0.0, 1 / 32)
NAMES = {COIN: "coin 5:3", REVEAL: "reveal 1/32"}
MOST_ROUNDS = 6


@dataclass(frozen=True)
class StrategyPicture(Picture):
    """The tree of the last round that helps, and delta against rounds."""

    eps: float
    promised: float
    fixed: tuple[float, ...]
    """Delta of the best plan fixed in advance, in 1, 2, … rounds, from above."""
    adaptive: tuple[float, ...]
    """Delta of the best adversary, in 1, 2, … rounds, from below."""
    rounds: int
    """Of the tree."""
    strategy: Strategy

    name: ClassVar[str] = "strategy"
    title: ClassVar[str] = "An adversary of the natural filter, and its gain over rounds"

    @property
    def ratio(self) -> float:
        """What the tree reaches, in units of the promise."""
        return self.adaptive[self.rounds - 1] / self.promised

    @property
    def caption(self) -> str:
        first = next(k for k, delta in enumerate(self.adaptive, 1) if delta > self.promised)
        grown = ", ".join(
            f"{self.adaptive[k - 1]:.4f} in {k}" for k in range(first, self.rounds + 1)
        )
        return (
            f"An adversary of the natural filter with budget R_{{{self.eps:g}, {self.promised:g}}},"
            " a coin that leans 5 to 3 and a query that reveals all with probability 1/32. Left:"
            f" the best strategy in {self.rounds} rounds; a line is the loss that was seen, the"
            " largest on top. Right: plans that are fixed in advance keep delta(1) within"
            f" {max(self.fixed):.4f}; chosen answer by answer it is {grown} rounds"
            f" and no more in any number of them: {self.ratio:.2f} times what is promised."
        )

    def numbers(self) -> dict[str, Any]:
        return {
            "eps": self.eps, "promised": self.promised, "fixed": list(self.fixed),
            "adaptive": list(self.adaptive), "rounds": self.rounds, "ratio": self.ratio,
            "strategy": self.strategy.to_dict(),
        }  # fmt: skip

    def draw(self) -> Figure:
        _, leaves = size(self.strategy)
        figure, ((tree, gain),) = style.canvas(
            12.5, max(4.2, 0.9 + 0.4 * leaves), self.caption, ncols=2, width_ratios=[2.1, 1]
        )
        draw_tree(tree, self.strategy, NAMES)
        tree.set_title(f"the best strategy in {self.rounds} rounds", fontsize=10.5)
        rounds = range(1, len(self.adaptive) + 1)
        gain.axhline(self.promised, label="promised", **style.BUDGET)
        gain.plot(rounds, self.fixed, marker="s", label="fixed in advance", **style.FIRST)
        gain.plot(rounds, self.adaptive, marker="o", label="chosen after answers", **style.REAL)
        for k, delta in zip(rounds, self.adaptive, strict=True):
            if k <= self.rounds and delta > self.promised:
                gain.annotate(
                    f"{delta:.4f}", (k, delta), (-4, 6), textcoords="offset points",
                    ha="right", fontsize=8.5,
                )  # fmt: skip
        gain.set(xlabel="rounds", ylabel=f"δ({self.eps:g})", ylim=(0, 1.2 * max(self.adaptive)))
        gain.set_xticks(list(rounds))
        gain.set_title("its gain over rounds", fontsize=10.5)
        gain.legend(loc="lower right", fontsize=9, framealpha=1.0)
        return figure


def strategy_gain(progress: Callable[[int, int], None] | None = None) -> StrategyPicture:
    """Value the game in 1, 2, … rounds and take the tree where it stops growing."""
    budget, x = approximate_dp(EPS, DELTA), math.exp(EPS)
    rule = NaturalRule([COIN, REVEAL], budget)
    adaptive, fixed = [], []
    for rounds in range(1, MOST_ROUNDS + 1):
        worst = worst_case(rule, rounds)
        assert worst.exact
        adaptive.append(float(worst.hockey_stick_bounds(x).lo))
        fixed.append(max(_delta(plan) for plan in _plans(rule, rounds)))
        if progress is not None:
            progress(rounds, MOST_ROUNDS)
    settled = adaptive.index(adaptive[-1]) + 1
    unlimited = worst_case(rule)
    assert unlimited.unlimited
    assert float(unlimited.hockey_stick_bounds(x).lo) == adaptive[-1], "more rounds add nothing"
    tree = worst_case(rule, settled).strategy(x)
    return StrategyPicture(EPS, DELTA, tuple(fixed), tuple(adaptive), settled, tree)


def _plans(rule: NaturalRule, rounds: int) -> list[Pld]:
    """What fits of so many queries, fixed in advance."""
    counts = [(a, b) for a in range(rounds + 1) for b in range(rounds + 1 - a)]
    return [rule.composed(count) for count in counts if rule.fits(count)]


def _delta(plan: Pld) -> float:
    return float(plan.delta(EPS))
