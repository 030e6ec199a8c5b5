"""Pictures of hockey-stick and tradeoff curves, with the band that is proven.

A line is the safe side: the upper bound of delta, the lower bound of the type II error. The shaded
band reaches to the other end of the proven interval; where the interval is narrow, and it mostly
is, the band is as thin as the line. Where a PLD is above a loss that had to be
discretised, the one below it can be given too, and the band reaches to its far end.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from residua.errors import ArgumentError
from residua.figures.style import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from residua.bounds import Interval
    from residua.pld.pld import Pld

__all__ = ["curves"]

LEAST_DELTA = 1e-12
"""Where the logarithmic axis of delta ends; what is smaller is left out."""


def curves(
    plds: Mapping[str, "Pld"],
    eps: ArrayLike | None = None,
    below: Mapping[str, "Pld"] | None = None,
) -> "Figure":
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
    figure, (left, right) = new_figure(panels=2)
    _draw_hockey_stick(left, plds, eps, below or {})
    _draw_tradeoff(right, plds, below or {})
    return figure


def _draw_hockey_stick(
    axes: "Axes",
    plds: Mapping[str, "Pld"],
    eps: ArrayLike | None,
    below: Mapping[str, "Pld"],
) -> None:
    grid = np.linspace(0.0, 4.0, 161) if eps is None else _floats(eps)
    top = LEAST_DELTA
    for label, pld in plds.items():
        lo, hi = _ends(pld.delta_bounds(grid))
        if label in below:
            lo, _ = _ends(below[label].delta_bounds(grid))
        top = max(top, float(hi.max()))
        shown = hi > LEAST_DELTA
        lo, hi = np.where(shown, np.maximum(lo, LEAST_DELTA), np.nan), np.where(shown, hi, np.nan)
        (line,) = axes.plot(grid, hi, label=label)
        axes.fill_between(grid, lo, hi, color=line.get_color(), alpha=0.25, linewidth=0)
    axes.set_yscale("log")
    axes.set_xlim(float(grid.min()), float(grid.max()))
    axes.set_ylim(LEAST_DELTA, 2 * top)
    axes.set_xlabel("ε")
    axes.set_ylabel("δ(ε)")
    axes.set_title("Privacy profile")
    axes.legend()


def _draw_tradeoff(axes: "Axes", plds: Mapping[str, "Pld"], below: Mapping[str, "Pld"]) -> None:
    grid = np.linspace(0.0, 1.0, 201)
    axes.plot([0, 1], [1, 0], color="0.7", linestyle=":", label="no loss at all")
    for label, pld in plds.items():
        lo, hi = _ends(pld.tradeoff_bounds(grid))
        if label in below:
            _, hi = _ends(below[label].tradeoff_bounds(grid))
        (line,) = axes.plot(grid, lo, label=label)
        axes.fill_between(grid, lo, hi, color=line.get_color(), alpha=0.25, linewidth=0)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.set_xlabel("type I error α")
    axes.set_ylabel("least type II error τ(α)")
    axes.set_title("Tradeoff curve")
    axes.legend()


def _floats(values: ArrayLike) -> NDArray[np.float64]:
    return np.atleast_1d(np.asarray(values, dtype=np.float64))


def _ends(interval: "Interval") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return _floats(interval.lo), _floats(interval.hi)
