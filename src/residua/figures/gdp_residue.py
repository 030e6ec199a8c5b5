"""What the GDP residue filter saves: three queries on Gaussian budgets.

Before each query `L` a Gaussian budget `G_mu` is whole. The GDP filter replaces `L` by the least
Gaussian above it, `L ⪯ G_nu`, and goes on with `mu_naive = sqrt(mu² - nu²)`. The GDP residue filter
goes on with the largest `mu_res` such that `G_{mu_res} ⊕ L ⪯ G_mu`. Above: tradeoff curves of the
budget, the query, both residual budgets and both compositions, as in the paper's Figure 1. Below:
how far each composition stays under the budget's delta, which is budget that no query can use.

The paper does not print the parameters of its panels. `R_0.5` on `G_2` and on `G_1` have the gains
of its first two. For the third it prints a gain of 0.147 alone, for a pure-DP query that a Gaussian
approximates badly, and a composition close to the budget. Many pairs have that gain; `R_0.98` on
`G_2` is the one drawn here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from residua.bounds import Floats
from residua.figures import style
from residua.figures.picture import Picture, delta_line, thin, tradeoff_line
from residua.figures.style import as_math
from residua.pld.constructors import gaussian, pure_dp
from residua.pld.pld import Pld
from residua.pld.residue.gdp_parameter import gdp_parameter
from residua.pld.residue.gdp_residue import gdp_residue

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["GdpResiduePicture", "ResiduePanel", "gdp_residue_panels"]

RESIDUE_EPS_GRID = np.linspace(-3.0, 5.0, 321)
"""Where delta is drawn; below 0 it is that of the reversed curve."""
BUDGET_ALONE: dict[str, Any] = {"linewidth": 1.1, "linestyle": (0, (4, 1.5, 1, 1.5, 1, 1.5))}
"""How a line of a residual budget by itself differs from its composition with the query."""


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
    def unused(self) -> float:
        """The largest delta of the budget that the residue filter leaves unused, as drawn."""
        return float(np.max(_unused(self, self.mu_res)))

    @property
    def gain(self) -> float:
        """How much more the residue filter leaves."""
        return self.mu_res - self.mu_naive


@dataclass(frozen=True)
class GdpResiduePicture(Picture):
    """Three panels: a small query, the same on a smaller budget, a query far from Gaussian."""

    panels: tuple[ResiduePanel, ...]

    name: ClassVar[str] = "gdp-residue"
    title: ClassVar[str] = "What the GDP residue filter saves"

    @property
    def caption(self) -> str:
        panels = "; ".join(
            f"({letter}) {p.words} on G_{p.mu:g} leaves mu = {p.mu_naive:.4f} by the GDP filter and"
            f" {p.mu_res:.4f} by the residue filter, a gain of {p.gain:.4f}"
            for letter, p in zip("abc", self.panels, strict=True)
        )
        a, b, c = (f"{math.ceil(1e4 * p.unused) / 1e4:.4f}" for p in self.panels)
        return (
            f"A query on a Gaussian budget. {panels}. Above: tradeoff curves of the budget, the"
            " query, what each filter leaves, and the query composed with it. Below: the delta of"
            " the budget that no later query can use; the residue filter leaves at most"
            f" {a}, {b} and {c} unused, and its curve touches 0, so no larger Gaussian could be"
            " left. The parameters behind the paper's third panel are unknown; (c) has the gain"
            " that it reports."
        )

    def numbers(self) -> dict[str, Any]:
        return {
            "panels": [
                {
                    "mu": p.mu, "query": repr(p.query), "mu_naive": p.mu_naive,
                    "mu_res": p.mu_res, "gain": p.gain, "unused": p.unused,
                }
                for p in self.panels
            ]
        }  # fmt: skip

    def draw(self) -> Figure:
        figure, (above, below) = style.canvas(
            12.0, 7.4, self.caption, nrows=2, ncols=3, height_ratios=[3, 2]
        )
        for letter, panel, top, low in zip("abc", self.panels, above, below, strict=True):
            _draw_curves(top, panel)
            _draw_unused(low, panel)
            top.set_title(
                f"({letter}) {as_math(f'{panel.words} on G_{panel.mu:g}')}", fontsize=10.5
            )
        handles, labels = above[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
        return figure


def gdp_residue_panels() -> GdpResiduePicture:
    """The three panels of the paper's Figure 1; the parameters of the third are a choice."""
    return GdpResiduePicture(
        (
            residue_panel(2.0, pure_dp(0.5), "R_0.5"),
            residue_panel(1.0, pure_dp(0.5), "R_0.5"),
            residue_panel(2.0, pure_dp(0.98), "R_0.98"),
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
        ("budget", gaussian(mu=panel.mu), style.BUDGET),
        ("query", panel.query, style.QUERY),
        ("what the GDP filter leaves", gaussian(mu=panel.mu_naive), style.FIRST | BUDGET_ALONE),
        ("query and what the GDP filter leaves", _composed(panel, panel.mu_naive), style.FIRST),
        ("what the residue filter leaves", gaussian(mu=panel.mu_res), style.REAL | BUDGET_ALONE),
        ("query and what the residue filter leaves", _composed(panel, panel.mu_res), style.REAL),
    )
    for label, pld, how in curves:
        axes.plot(*tradeoff_line(pld), label=label, **how)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="type I error", ylabel="least type II error")
    axes.set_aspect("equal")
    text = (
        f"$\\mu_{{\\mathrm{{naive}}}}$ = {panel.mu_naive:.4f}\n"
        f"$\\mu_{{\\mathrm{{res}}}}$ = {panel.mu_res:.4f}\ngain {panel.gain:.4f}"
    )
    style.annotate(axes, text, 0.97, 0.96, ha="right", va="top")


def _draw_unused(axes: Axes, panel: ResiduePanel) -> None:
    for mu, how in ((panel.mu_naive, style.FIRST), (panel.mu_res, style.REAL)):
        axes.plot(*thin(RESIDUE_EPS_GRID, _unused(panel, mu)), **how)
    axes.axhline(0.0, **style.BUDGET)
    axes.set(
        xlim=(RESIDUE_EPS_GRID[0], RESIDUE_EPS_GRID[-1]),
        xlabel="ε",
        ylabel="δ of the budget, unused",
    )
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 3))


def _unused(panel: ResiduePanel, mu: float) -> Floats:
    """Delta of the budget beyond that of the query composed with `G_mu`."""
    budget = gaussian(mu=panel.mu)
    return delta_line(budget, RESIDUE_EPS_GRID) - delta_line(_composed(panel, mu), RESIDUE_EPS_GRID)


def _composed(panel: ResiduePanel, mu: float) -> Pld:
    return gaussian(mu=mu) + panel.query
