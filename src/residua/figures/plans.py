"""Pictures of plans: how much of a workload filters admit, and how many more queries fit."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from residua.errors import ArgumentTypeError
from residua.figures.style import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from residua.planning.comparison import FilterComparison, SuiteComparison
    from residua.planning.frontier import Frontier


def draw_comparison(measured: "FilterComparison") -> "Figure":
    """Admitted over optimum: bars for each workload, or statistics for each filter of a suite."""
    from residua.planning.comparison import FilterComparison, SuiteComparison

    if not isinstance(measured, FilterComparison):
        raise ArgumentTypeError(f"measured must be a FilterComparison, got {measured!r}")
    if isinstance(measured, SuiteComparison):
        return _draw_suite(measured)
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


def _draw_suite(measured: "SuiteComparison") -> "Figure":
    """The mean of each filter with its confidence interval, its 10th percentile and minimum."""
    figure, (axes,) = new_figure(panels=1)
    figure.set_size_inches(8.0, 1.6 + 0.32 * len(measured.filters))
    found = [one for one in measured.summaries if one.mean is not None]
    places = np.arange(len(found), dtype=np.float64)
    means = np.array([one.mean for one in found])
    ends = np.array([one.interval or (one.mean, one.mean) for one in found]).reshape(-1, 2)
    axes.barh(places, means, 0.6, label="mean, 95 % interval")
    spread = np.abs(ends.T - means)
    axes.errorbar(means, places, xerr=spread, fmt="none", ecolor="0.2", capsize=3)
    tenths = np.array([one.tenth_percentile for one in found], dtype=np.float64)
    minima = np.array([one.minimum for one in found], dtype=np.float64)
    axes.plot(tenths, places, "k|", label="10th percentile")
    axes.plot(minima, places, "kx", label="minimum")
    axes.set_yticks(places, [one.filter for one in found])
    axes.invert_yaxis()
    axes.set_xlim(0.0, 1.05)
    axes.set_xlabel("admitted / optimum")
    axes.set_title(f"Random workloads within ({measured.eps:g}, {measured.delta:g})")
    figure.legend(loc="outside right upper")
    return figure


def frontier(measured: "Mapping[str, Frontier] | Frontier") -> "Figure":
    """A panel for each kind of query and a line for each labelled frontier, in steps.

    To see what spending takes away, give the frontiers of two states of one filter.
    """
    from residua.planning.frontier import Frontier

    given = {"": measured} if isinstance(measured, Frontier) else measured
    if not isinstance(given, Mapping) or not all(isinstance(f, Frontier) for f in given.values()):
        raise ArgumentTypeError(
            f"measured must be a Frontier, or map labels to some, got {given!r}"
        )
    titles = list(dict.fromkeys(line.family for one in given.values() for line in one.lines))
    figure, panels = new_figure(panels=len(titles))
    figure.set_size_inches(4.2 * len(titles), 4.0)
    for title, axes in zip(titles, panels, strict=True):
        for label, one in given.items():
            for line in one.lines:
                if line.family == title and line.values:
                    axes.plot(line.values, line.counts, marker=".", label=label)
                    axes.set_xlabel(line.parameter)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.grid(alpha=0.3, which="both", linewidth=0.5)
        axes.set_title(title)
        if not axes.lines:
            axes.text(0.5, 0.5, "none fits", ha="center", transform=axes.transAxes)
    panels[0].set_ylabel("how many more fit")
    if any(given):
        lines, labels = panels[0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside lower center", ncols=len(given))
    return figure
