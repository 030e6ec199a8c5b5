"""The frontier of what is left, as a picture: how many more queries fit, by kind and noise."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from residua.errors import ArgumentTypeError
from residua.figures.style import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from residua.planning.frontier import Frontier

__all__ = ["frontier"]


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
