"""An adversary as a tree: which query first, and which next after which loss.

Time runs from left to right. A box is a query; a line out of it is the loss that was seen, the
largest on top; a dot is where the adversary stops. Neighbouring losses that are followed alike
share a line. What an infinite loss leads to is not drawn: nothing is left to learn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from residua import checks
from residua.adversary.strategy import Strategy
from residua.errors import ArgumentTypeError, TooLargeError
from residua.figures import style
from residua.filters.query import described

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from residua.pld.pld import Pld

__all__ = ["draw_tree", "size", "strategy_tree"]

_MOST = 200
"""Nodes of a tree that can still be read."""
_DOWN, _LETTER, _GAP = 0.5, 0.078, 0.8
"""Inches for a leaf, for a letter, and between a box and a loss."""

_FILL = ("#DCEBF5", "#F6D5BF", "#D9F0E6", "#F5DEEA", "#FBE8C6", "#E3F2FB")


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
    root = _placed(strategy)
    depth, leaves = size(strategy)
    nodes = _all(root)
    longest = max((len(_name(n.strategy, names)) for n in nodes if not n.strategy.stops), default=0)
    labels = max(len(node.label) for node in nodes)
    across = _LETTER * (longest + labels) + _GAP
    width, height = across * (depth + 1), 0.7 + _DOWN * leaves
    figure, ((axes,),) = style.canvas(max(width, 4.0), max(height, 1.4), caption)
    draw_tree(axes, strategy, names, root)
    return figure


def size(strategy: Strategy) -> tuple[int, int]:
    """How many rounds a tree has, and how many ends."""
    root = _placed(strategy)
    nodes = list(_all(root))
    return max(node.depth for node in nodes), sum(not node.children for node in nodes)


def draw_tree(
    axes: Axes,
    strategy: Strategy,
    names: Mapping[Pld, str] | None = None,
    root: Node | None = None,
) -> None:
    """Draw a strategy into a panel."""
    root = _placed(strategy) if root is None else root
    nodes = list(_all(root))
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
        fill = colours.setdefault(words, _FILL[len(colours) % len(_FILL)])
        box = {"boxstyle": "round,pad=0.3", "facecolor": fill, "edgecolor": "0.4", "lw": 0.8}
        axes.text(
            node.depth, node.height, style.as_math(words), ha="center", va="center",
            fontsize=8.5, bbox=box, zorder=3,
        )  # fmt: skip
    depth = max(node.depth for node in nodes)
    leaves = sum(not node.children for node in nodes)
    axes.set(xlim=(-0.5, depth + 0.5), ylim=(-0.7, leaves - 0.3), yticks=[])
    axes.set_xticks(range(depth + 1), [f"round {i + 1}" for i in range(depth + 1)])
    axes.grid(False)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)


def _name(strategy: Strategy, names: Mapping[Pld, str] | None) -> str:
    known = (names or {}).get(strategy.loss)
    if known is not None:
        return known
    words = described(strategy.query)
    return words if len(words) <= 34 else words[:32] + "…"


def _placed(strategy: Strategy) -> Node:
    if not isinstance(strategy, Strategy):
        raise ArgumentTypeError(f"strategy must be a Strategy, got {checks.shown(strategy)}")
    count = 0
    leaves = 0

    def place(here: Strategy, depth: int, label: str) -> Node:
        nonlocal count, leaves
        count += 1
        if count > _MOST:
            raise TooLargeError(
                f"the strategy has more than {_MOST} branches, too many to draw; print it instead"
            )
        children = tuple(place(b.then, depth + 1, b.label) for b in here.branches())
        if children:
            height = (children[0].height + children[-1].height) / 2
        else:
            height = float(leaves)
            leaves += 1
        return Node(here, depth, height, label, children)

    return place(strategy, 0, "")


def _all(node: Node) -> list[Node]:
    return [node, *(found for child in node.children for found in _all(child))]
