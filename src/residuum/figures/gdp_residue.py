"""What the GDP residue filter saves: three queries on Gaussian budgets.

Before each query `L` a Gaussian budget `G_mu` is whole. The GDP filter replaces `L` by the least
Gaussian above it, `L ⪯ G_nu`, and goes on with `mu_naive = sqrt(mu² - nu²)`. The GDP residue filter
goes on with the largest `mu_res` such that `G_{mu_res} ⊕ L ⪯ G_mu`. Above: tradeoff curves. Below:
how far the composition stays under the budget's delta, which is budget that nobody can use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from residuum.figures import style
from residuum.figures.lines import delta_line, thinned, tradeoff_line
from residuum.figures.picture import Picture
from residuum.figures.style import as_math
from residuum.pld.constructors import from_pair, gaussian, pure_dp
from residuum.pld.gdp_parameter import gdp_parameter
from residuum.pld.gdp_residue import gdp_residue
from residuum.pld.value import Pld

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["GdpResiduePicture", "ResiduePanel", "gdp_residue_panels"]

_EPS = np.linspace(-3.0, 4.0, 281)


@dataclass(frozen=True)
class ResiduePanel:
    """One query on one budget."""

    mu: float
    query: Pld
    words: str
    """The query, in words."""
    mu_naive: float
    """What the GDP filter leaves."""
    mu_res: float
    """What the GDP residue filter leaves."""

    @property
    def gain(self) -> float:
        """How much more the residue filter leaves."""
        return self.mu_res - self.mu_naive


@dataclass(frozen=True)
class GdpResiduePicture(Picture):
    """Three panels: nearly Gaussian, the same on a small budget, far from Gaussian."""

    panels: tuple[ResiduePanel, ...]

    name: ClassVar[str] = "gdp-residue"
    title: ClassVar[str] = "What the GDP residue filter saves"

    @property
    def caption(self) -> str:
        told = "; ".join(
            f"({letter}) {p.words} on G_{p.mu:g} leaves mu = {p.mu_naive:.4f} by the GDP filter and"
            f" {p.mu_res:.4f} by the residue filter, a gain of {p.gain:.4f}"
            for letter, p in zip("abc", self.panels, strict=True)
        )
        return (
            f"A query on a Gaussian budget. {told}. Above: tradeoff curves; the composition with"
            " what the residue filter leaves nearly meets the budget. Below: the delta of the"
            " budget that no later query can use; the residue filter's curve touches 0, so no"
            " larger Gaussian could be left."
        )

    def numbers(self) -> dict[str, Any]:
        return {
            "panels": [
                {
                    "mu": p.mu, "query": repr(p.query), "mu_naive": p.mu_naive,
                    "mu_res": p.mu_res, "gain": p.gain,
                }
                for p in self.panels
            ]
        }  # fmt: skip

    def draw(self) -> Figure:
        figure, (above, below) = style.canvas(
            12.0, 7.2, self.caption, nrows=2, ncols=3, height_ratios=[3, 2]
        )
        for letter, panel, top, low in zip("abc", self.panels, above, below, strict=True):
            _draw_curves(top, panel)
            _draw_waste(low, panel)
            top.set_title(
                f"({letter}) {as_math(f'{panel.words} on G_{panel.mu:g}')}", fontsize=10.5
            )
        handles, labels = above[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
        return figure


def gdp_residue_panels() -> GdpResiduePicture:
    """The paper's two nearly Gaussian panels, and a query that answers one time in eight."""
    seldom = from_pair([56 / 64, 7 / 64, 1 / 64], [56 / 64, 1 / 64, 7 / 64])
    return GdpResiduePicture(
        (
            residue_panel(2.0, pure_dp(0.5), "R_0.5"),
            residue_panel(1.0, pure_dp(0.5), "R_0.5"),
            residue_panel(1.0, seldom, "a loss of ±ln 7 one time in eight"),
        )
    )


def residue_panel(mu: float, query: Pld, words: str) -> ResiduePanel:
    """What the two filters leave of `G_mu`, each rounded down."""
    nu = gdp_parameter(query)
    left = gdp_residue(mu, query)
    assert left is not None and nu <= mu, "the query fits"
    naive = math.nextafter(math.sqrt(math.nextafter(mu * mu - nu * nu, 0.0)), 0.0)
    return ResiduePanel(mu, query, words, naive, left)


def _draw_curves(axes: Axes, panel: ResiduePanel) -> None:
    curves = (
        ("query", panel.query, style.QUERY),
        ("budget", gaussian(mu=panel.mu), style.BUDGET),
        ("query and what the GDP filter leaves", _left(panel, panel.mu_naive), style.FIRST),
        ("query and what the residue filter leaves", _left(panel, panel.mu_res), style.REAL),
    )
    for label, pld, how in curves:
        axes.plot(*tradeoff_line(pld), label=label, **how)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="type I error", ylabel="least type II error")
    axes.set_aspect("equal")
    told = (
        f"$\\mu_{{\\mathrm{{naive}}}}$ = {panel.mu_naive:.4f}\n"
        f"$\\mu_{{\\mathrm{{res}}}}$ = {panel.mu_res:.4f}\ngain {panel.gain:.4f}"
    )
    style.say(axes, told, 0.97, 0.96, ha="right", va="top")


def _draw_waste(axes: Axes, panel: ResiduePanel) -> None:
    whole = delta_line(gaussian(mu=panel.mu), _EPS)
    for mu, how in ((panel.mu_naive, style.FIRST), (panel.mu_res, style.REAL)):
        axes.plot(*thinned(_EPS, whole - delta_line(_left(panel, mu), _EPS)), **how)
    axes.axhline(0.0, **style.BUDGET)
    axes.set(xlim=(_EPS[0], _EPS[-1]), xlabel="ε", ylabel="δ of the budget, unused")
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 3))


def _left(panel: ResiduePanel, mu: float) -> Pld:
    return gaussian(mu=mu) + panel.query
