"""The yardstick as a picture: bars for what each filter admits of each workload."""

from typing import TYPE_CHECKING

import numpy as np

from residua.errors import ArgumentTypeError
from residua.figures.style import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from residua.planning.comparison import Yardstick

__all__ = ["yardstick"]


def yardstick(measured: "Yardstick") -> "Figure":
    """Admitted over optimum: a group of bars for each workload, a colour for each filter."""
    from residua.planning.comparison import Yardstick

    if not isinstance(measured, Yardstick):
        raise ArgumentTypeError(f"measured must be a Yardstick, got {measured!r}")
    rows, names = measured.rows, measured.filters
    figure, (axes,) = new_figure(panels=1)
    figure.set_size_inches(4.0 + (0.7 + 0.1 * len(names)) * len(rows), 5.2)
    places = np.arange(len(rows), dtype=np.float64)
    width = 0.85 / max(len(names), 1)
    for column, name in enumerate(names):
        heights = [row.ratios()[column] or 0.0 for row in rows]
        left = places + (column - (len(names) - 1) / 2) * width
        axes.bar(left, heights, width, label=name)
    axes.axhline(1.0, color="0.5", linestyle=":", label="non-adaptive optimum")
    labels = [f"{row.workload}\n({row.optimum})" for row in rows]
    axes.set_xticks(places, labels, rotation=30 if len(rows) > 4 else 0)
    axes.set_ylim(0.0, 1.08)
    axes.set_ylabel("admitted / optimum")
    axes.set_title(f"Filters within ({measured.eps:g}, {measured.delta:g})")
    figure.legend(loc="outside right upper")
    return figure
