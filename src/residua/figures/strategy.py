"""Pictures of an adversary: its strategy as a tree, and what each further round is worth to it.

In a tree time runs from left to right. A box is a query; a line out of it is the loss that was
seen, the largest on top; a dot is where the adversary stops. Neighbouring losses that are followed
alike share a line. What an infinite loss leads to is not drawn: nothing is left to learn.

The picture of the documentation has two queries: a coin that leans 5 to 3 towards the data set in
hand, and one that tells all with probability 1/32 and nothing otherwise. The budget is
`R_{1, 1/8}`. Everything is rational, so the values are exact: the best plan that is fixed in
advance stays below 1/8 by the filter's own test, the best that is chosen answer by answer does not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from residua import checks
from residua.adversary.rule import NaturalRule
from residua.adversary.strategy import Strategy
from residua.adversary.worst_case import Progress, worst_case
from residua.errors import TooLargeError
from residua.figures import picture
from residua.figures.picture import Picture
from residua.filters.query import describe
from residua.pld.constructors import approximate_dp, from_pair
from residua.pld.pld import Pld

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from residua.pld.pld import Pld


FILLS = ("#DCEBF5", "#F6D5BF", "#D9F0E6", "#F5DEEA", "#FBE8C6", "#E3F2FB")


class Node(NamedTuple):
    """A box or a dot, with its place: round and height."""

    strategy: Strategy
    depth: int
    height: float
    label: str
    """The loss that led here."""
    children: tuple[Node, ...]


def strategy_tree(
    strategy: Strategy, names: Mapping[Pld, str] | None = None, caption: str = ""
) -> Figure:
    """Draw any strategy; `names` are for queries whose own description is long."""
    nodes = place_nodes(strategy)
    longest = max((len(_name(n.strategy, names)) for n in nodes if not n.strategy.stops), default=0)
    labels = max(len(node.label) for node in nodes)
    # In inches; the gap is between a box and a loss.
    letter, gap, leaf = 0.078, 0.8, 0.5
    across = letter * (longest + labels) + gap
    width = across * (max(node.depth for node in nodes) + 1)
    height = 0.7 + leaf * _leaves(nodes)
    figure, ((axes,),) = picture.canvas(max(width, 4.0), max(height, 1.4), caption)
    _draw_tree(axes, nodes, names)
    return figure


def _leaves(nodes: Sequence[Node]) -> int:
    return sum(not node.children for node in nodes)


def _draw_tree(axes: Axes, nodes: Sequence[Node], names: Mapping[Pld, str] | None = None) -> None:
    """Draw a strategy into a panel."""
    colours: dict[str, str] = {}
    for node in nodes:
        for child in node.children:
            axes.plot(
                [node.depth, child.depth], [node.height, child.height],
                color="0.55", lw=1.0, zorder=1,
            )  # fmt: skip
            axes.text(
                (node.depth + child.depth) / 2, (node.height + child.height) / 2, child.label,
                ha="center", va="center", fontsize=7.5, color="0.25", zorder=2,
                bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none"},
            )  # fmt: skip
    for node in nodes:
        if node.strategy.stops:
            axes.plot([node.depth], [node.height], marker="o", ms=5, color="0.35", zorder=3)
            continue
        words = _name(node.strategy, names)
        fill = colours.setdefault(words, FILLS[len(colours) % len(FILLS)])
        box = {"boxstyle": "round,pad=0.3", "facecolor": fill, "edgecolor": "0.4", "lw": 0.8}
        axes.text(
            node.depth, node.height, picture.as_math(words), ha="center", va="center",
            fontsize=8.5, bbox=box, zorder=3,
        )  # fmt: skip
    depth = max(node.depth for node in nodes)
    axes.set(xlim=(-0.5, depth + 0.5), ylim=(-0.7, _leaves(nodes) - 0.3), yticks=[])
    axes.set_xticks(range(depth + 1), [f"round {i + 1}" for i in range(depth + 1)])
    axes.grid(False)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)


def _name(strategy: Strategy, names: Mapping[Pld, str] | None) -> str:
    known = (names or {}).get(strategy.loss)
    if known is not None:
        return known
    words = describe(strategy.query)
    return words if len(words) <= 34 else words[:32] + "…"


def place_nodes(strategy: Strategy) -> list[Node]:
    """The boxes and dots of a tree, each with its place; the first query first."""
    checks.instance("strategy", strategy, Strategy, "a Strategy")
    count, leaves = itertools.count(1), itertools.count()

    def place(here: Strategy, depth: int, label: str) -> Node:
        if next(count) > 200:
            raise TooLargeError(
                "the strategy has more than 200 branches, too many to draw; print it instead"
            )
        children = tuple(place(b.then, depth + 1, b.label) for b in here.branches())
        ends = [children[0].height, children[-1].height] if children else [next(leaves)] * 2
        return Node(here, depth, sum(ends) / 2, label, children)

    def every(node: Node) -> list[Node]:
        return [node, *(found for child in node.children for found in every(child))]

    return every(place(strategy, 0, ""))


COIN = from_pair([3 / 8, 5 / 8], [5 / 8, 3 / 8])
REVEAL = approximate_dp(0.0, 1 / 32)
NAMES = {COIN: "coin 5:3", REVEAL: "reveal 1/32"}


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

    def draw(self) -> Figure:
        nodes = place_nodes(self.strategy)
        figure, ((tree, gain),) = picture.canvas(
            12.5, max(4.2, 0.9 + 0.4 * _leaves(nodes)), self.caption, ncols=2, width_ratios=[2.1, 1]
        )
        _draw_tree(tree, nodes, NAMES)
        tree.set_title(f"the best strategy in {self.rounds} rounds", fontsize=10.5)
        rounds = range(1, len(self.adaptive) + 1)
        gain.axhline(self.promised, label="promised", **picture.BUDGET)
        gain.plot(rounds, self.fixed, marker="s", label="fixed in advance", **picture.FIRST)
        gain.plot(rounds, self.adaptive, marker="o", label="chosen after answers", **picture.REAL)
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


def strategy_gain(progress: Progress | None = None) -> StrategyPicture:
    """Value the game in 1, 2, … rounds and take the tree where it stops growing."""
    eps, delta = 1.0, 0.125
    rule, x = NaturalRule([COIN, REVEAL], approximate_dp(eps, delta)), math.exp(eps)
    adaptive, fixed = [], []
    most = 6  # one more than the last round that adds anything
    for rounds in range(1, most + 1):
        worst = worst_case(rule, rounds)
        assert worst.exact
        adaptive.append(float(worst.hockey_stick_bounds(x).lo))
        fixed.append(max(float(plan.delta(eps)) for plan in _plans(rule, rounds)))
        if progress is not None:
            progress(rounds, most)
    last = adaptive.index(adaptive[-1]) + 1
    unlimited = worst_case(rule)
    assert unlimited.unlimited
    assert float(unlimited.hockey_stick_bounds(x).lo) == adaptive[-1], "more rounds add nothing"
    tree = worst_case(rule, last).strategy(x)
    return StrategyPicture(eps, delta, tuple(fixed), tuple(adaptive), last, tree)


def _plans(rule: NaturalRule, rounds: int) -> list[Pld]:
    """The plans of at most `rounds` queries that fit, fixed in advance."""
    counts = [(a, b) for a in range(rounds + 1) for b in range(rounds + 1 - a)]
    return [rule.composed(count) for count in counts if rule.fits(count)]
