"""Comparisons as pictures."""

from __future__ import annotations

import numpy as np
import pytest

import residua as rz
from residua.figures.plots import draw_comparison
from residua.planning.comparison import Row


def test_bars_are_the_ratios() -> None:
    rows = (Row("daily", 10, (5, 9)), Row("weekly", 4, (4, 1)), Row("nothing", 0, (0, 0)))
    measured = rz.FilterComparison(1.0, 1e-6, ("basic", "renyi"), rows)
    (axes,) = draw_comparison(measured).axes
    first, second = axes.containers
    assert [bar.get_height() for bar in first] == [0.5, 1.0, 0.0]
    assert [bar.get_height() for bar in second] == [0.9, 0.25, 0.0]
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["daily\n(10)", "weekly\n(4)", "nothing\n(0)"]
    lefts = np.array([bar.get_x() for group in axes.containers for bar in group])
    assert len(set(np.round(lefts, 9))) == 6


def test_it_can_be_saved(tmp_path: object) -> None:
    path = tmp_path / "comparison.svg"
    draw_comparison(rz.compare_filters(1.0, 1e-6, rz.pure_dp(0.1), ["basic"])).savefig(path)
    assert path.stat().st_size > 0


def test_only_a_comparison_is_drawn() -> None:
    with pytest.raises(rz.ArgumentTypeError, match="measured must be a FilterComparison"):
        draw_comparison([1.0])


def test_a_suite_is_drawn_by_its_statistics() -> None:
    rows = (Row("a", 20, (10, 20), "pure"), Row("b", 20, (20, 20), "laplace"))
    measured = rz.SuiteComparison(1.0, 1e-6, ("basic", "renyi"), rows, 3)
    (axes,) = draw_comparison(measured).axes
    assert [bar.get_width() for bar in axes.patches] == [0.75, 1.0]  # type: ignore[attr-defined]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["basic", "renyi"]
    assert [list(line.get_xdata()) for line in axes.lines[-2:]] == [[0.5, 1.0]] * 2
