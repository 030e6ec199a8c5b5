"""Any strategy can be drawn."""

from __future__ import annotations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import residua as rz
from adversary.games import sequence
from residua.adversary.strategy import STOP
from residua.figures.strategy import place_nodes, strategy_tree

COIN = rz.from_pair([0.25, 0.75], [0.75, 0.25])
LAPLACE = rz.mechanisms.Laplace(scale=2.0)


def size(tree: rz.Strategy) -> tuple[int, int]:
    """How many rounds a tree has, and how many ends."""
    nodes = place_nodes(tree)
    return max(node.depth for node in nodes), sum(not node.children for node in nodes)


def _texts(strategy: rz.Strategy, **more: object) -> list[str]:
    figure = strategy_tree(strategy, **more)
    figure.canvas.draw()
    (axes,) = figure.axes
    return [text.get_text() for text in axes.texts]


def test_queries_and_losses_are_shown() -> None:
    tree = rz.Strategy(COIN, (STOP, rz.Strategy(LAPLACE)))
    texts = _texts(tree, names={COIN: "a coin"})
    assert "a coin" in texts
    assert '{"kind":"laplace","scale":2.0' not in texts
    assert any("laplace" in text.lower() for text in texts)
    assert "-1.099" in texts and "+1.099" in texts
    assert size(tree) == (1, 2)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_nothing_overlaps(depth: int) -> None:
    long = rz.approximate_dp(0.123456789, 0.0123456789)
    tree = rz.Strategy(long)
    for level in range(depth):
        other = rz.Strategy(rz.pure_dp(1.0 + level), (rz.Strategy(long), tree))
        tree = rz.Strategy(long, (tree, other))
    figure = strategy_tree(tree)
    FigureCanvasAgg(figure).draw()
    (axes,) = figure.axes
    boxes = [(text.get_text(), text.get_window_extent()) for text in axes.texts]
    for i, (text, box) in enumerate(boxes):
        assert box.x0 >= 0 and box.x1 <= figure.bbox.width
        for other_text, other_box in boxes[i + 1 :]:
            assert not box.overlaps(other_box), f"{text!r} covers {other_text!r}"


def test_losses_followed_alike_share_a_line() -> None:
    tree = sequence([COIN, COIN, COIN])
    texts = _texts(tree)
    assert texts.count("-1.099 to +1.099") == 2
    assert size(tree) == (2, 1)


def test_a_strategy_that_stops_is_a_dot() -> None:
    figure = strategy_tree(STOP)
    (axes,) = figure.axes
    assert len(axes.get_lines()) == 1 and not axes.texts


def test_a_continuous_query_is_seen_through_outcomes() -> None:
    rule = rz.NaturalRule([rz.pure_dp(0.5), rz.gaussian(mu=0.8)], rz.gaussian(mu=1.0))
    tree = rz.worst_case(rule, 2, accuracy=0.2).strategy(1.6)
    assert _texts(tree)


def test_too_large_a_tree_says_so() -> None:
    tree = rz.Strategy(COIN)
    for depth in range(7):
        tree = rz.Strategy(COIN, (tree, rz.Strategy(rz.pure_dp(0.1 * (depth + 1)), (tree, STOP))))
    with pytest.raises(rz.TooLargeError, match="more than 200 branches"):
        strategy_tree(tree)


def test_only_strategies_are_drawn() -> None:
    with pytest.raises(rz.ArgumentTypeError, match="strategy must be a Strategy"):
        strategy_tree(COIN)
