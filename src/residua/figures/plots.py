"""What commands draw of queries and of filters: curves, comparisons of filters, frontiers.

A line of a hockey-stick or tradeoff curve is the safe side: the upper bound of delta, the lower
bound of the type II error. The shaded band reaches to the other end of the proven interval; where
the interval is narrow, and it mostly is, the band is as thin as the line. Where a PLD is above a
loss that had to be discretised, the one below it can be given too, and the band reaches to its far
end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from residua import checks
from residua.bounds import Floats
from residua.errors import ArgumentError, ArgumentTypeError
from residua.figures.notebook import LEAST_DELTA
from residua.figures.picture import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from residua.planning.comparison import FilterComparison, SuiteComparison
    from residua.planning.how_many import Frontier
    from residua.pld.pld import Pld


def curves(
    plds: Mapping[str, Pld],
    eps: ArrayLike | None = None,
    below: Mapping[str, Pld] | None = None,
) -> Figure:
    """Draw delta against eps, and least type II error against type I error, side by side.

    Args:
        plds: one line for each labelled PLD.
        eps: where delta is read; 0 to 4 by default.
        below: the lower PLDs of some labels, to which the bands reach.

    Raises:
        ArgumentError: no PLD is given.
    """
    if not isinstance(plds, Mapping) or not plds:
        raise ArgumentError(f"plds must map at least one label to a Pld, got {plds!r}")
    figure, ((profile, tradeoff),) = canvas(12.8, 5.2, ncols=2)
    grid = np.linspace(0.0, 4.0, 161) if eps is None else _floats(eps)
    alphas = np.linspace(0.0, 1.0, 201)
    tradeoff.plot([0, 1], [1, 0], color="0.7", linestyle=":", label="no loss at all")
    top = LEAST_DELTA
    for label, pld in plds.items():
        lower = (below or {}).get(label, pld)
        lo, hi = _floats(lower.delta_bounds(grid).lo), _floats(pld.delta_bounds(grid).hi)
        top = max(top, float(hi.max()))
        shown = hi > LEAST_DELTA
        _draw_band(
            profile,
            grid,
            np.where(shown, hi, np.nan),
            np.where(shown, np.maximum(lo, LEAST_DELTA), np.nan),
            label,
        )
        errors, far = pld.tradeoff_bounds(alphas).lo, lower.tradeoff_bounds(alphas).hi
        _draw_band(tradeoff, alphas, _floats(errors), _floats(far), label)
    profile.set_yscale("log")
    profile.set(xlim=(float(grid.min()), float(grid.max())), ylim=(LEAST_DELTA, 2 * top))
    profile.set(xlabel="ε", ylabel="δ(ε)", title="Privacy profile")
    tradeoff.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title="Tradeoff curve")
    tradeoff.set(xlabel="type I error α", ylabel="least type II error τ(α)")
    for axes in (profile, tradeoff):
        axes.legend()
    return figure


def _draw_band(axes: Axes, x: Floats, line: Floats, far: Floats, label: str) -> None:
    """A line, and a band from it to the far end."""
    (drawn,) = axes.plot(x, line, label=label)
    axes.fill_between(x, far, line, color=drawn.get_color(), alpha=0.25, linewidth=0)


def _floats(values: ArrayLike) -> Floats:
    return np.atleast_1d(np.asarray(values, dtype=np.float64))


def draw_comparison(measured: FilterComparison) -> Figure:
    """Admitted over optimum: bars for each workload, or statistics for each filter of a suite."""
    from residua.planning.comparison import FilterComparison, SuiteComparison

    checks.instance("measured", measured, FilterComparison, "a FilterComparison")
    if isinstance(measured, SuiteComparison):
        return _draw_suite(measured)
    rows, names = measured.rows, measured.filters
    figure, ((axes,),) = canvas(4.0 + (0.7 + 0.1 * len(names)) * len(rows), 5.2)
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


def _draw_suite(measured: SuiteComparison) -> Figure:
    """The mean of each filter with its confidence interval, its 10th percentile and minimum."""
    figure, ((axes,),) = canvas(8.0, 1.6 + 0.32 * len(measured.filters))
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


def frontier(measured: Mapping[str, Frontier] | Frontier) -> Figure:
    """A panel for each kind of query and a line for each labelled frontier, in steps.

    To see what spending takes away, give the frontiers of two states of one filter.
    """
    from residua.planning.how_many import Frontier

    given = {"": measured} if isinstance(measured, Frontier) else measured
    if not isinstance(given, Mapping) or not all(isinstance(f, Frontier) for f in given.values()):
        raise ArgumentTypeError(
            f"measured must be a Frontier, or map labels to some, got {given!r}"
        )
    titles = list(dict.fromkeys(line.family for one in given.values() for line in one.lines))
    figure, (panels,) = canvas(4.2 * len(titles), 4.0, ncols=len(titles))
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
