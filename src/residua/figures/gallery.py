"""The pictures of `residua figures`, by name; two of them are computed here.

**What the GDP residue filter saves**: three queries on Gaussian budgets. Before each query `L` a
Gaussian budget `G_mu` is whole. The GDP filter replaces `L` by the least Gaussian above it, `L ⪯
G_nu`, and goes on with `mu_naive = sqrt(mu² - nu²)`. The GDP residue filter goes on with the
largest `mu_res` such that `G_{mu_res} ⊕ L ⪯ G_mu`. Above: tradeoff curves of the budget, the query,
both residual budgets and both compositions, as in the paper's Figure 1. Below: how far each
composition stays under the budget's delta, which is budget that no query can use.

The paper does not print the parameters of its panels. `R_0.5` on `G_2` and on `G_1` have the gains
of its first two. For the third it prints a gain of 0.147 alone, for a pure-DP query that a Gaussian
approximates badly, and a composition close to the budget. Many pairs have that gain; `R_0.98` on
`G_2` is the one drawn here.

**What the natural `(eps, delta)` filter really guarantees**, against rounds, for arbitrary
symmetric queries, chosen adaptively: the least `eps'` that is proven at a larger delta
(`adversary/natural_guarantee.py`), beside what composing the budget with itself would give.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from residua.adversary.natural_guarantee import Guarantee, natural_guarantee
from residua.adversary.worst_case import Progress
from residua.bounds import Floats
from residua.figures import picture
from residua.figures.counterexamples import gaussian_budgets, natural_filter_fails
from residua.figures.picture import Picture, as_math, tradeoff_line
from residua.figures.strategy import strategy_gain
from residua.pld.constructors import approximate_dp, gaussian, pure_dp
from residua.pld.pld import Pld
from residua.pld.residue.gdp_parameter import gdp_parameter
from residua.pld.residue.gdp_residue import gdp_residue

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


EPS_GRID = np.linspace(-3.0, 5.0, 321)
"""Where delta is drawn; below 0 it is that of the reversed curve."""


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

    def draw(self) -> Figure:
        figure, (above, below) = picture.canvas(
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
    # A residual budget by itself is thinner than its composition with the query, and dashed.
    alone = {"linewidth": 1.1, "linestyle": (0, (4, 1.5, 1, 1.5, 1, 1.5))}
    curves = (
        ("budget", gaussian(mu=panel.mu), picture.BUDGET),
        ("query", panel.query, picture.QUERY),
        ("what the GDP filter leaves", gaussian(mu=panel.mu_naive), picture.FIRST | alone),
        (
            "query and what the GDP filter leaves",
            _plus(panel, panel.mu_naive),
            picture.FIRST,
        ),
        ("what the residue filter leaves", gaussian(mu=panel.mu_res), picture.REAL | alone),
        (
            "query and what the residue filter leaves",
            _plus(panel, panel.mu_res),
            picture.REAL,
        ),
    )
    for label, pld, how in curves:
        axes.plot(*tradeoff_line(pld), label=label, **how)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="type I error", ylabel="least type II error")
    axes.set_aspect("equal")
    text = (
        f"$\\mu_{{\\mathrm{{naive}}}}$ = {panel.mu_naive:.4f}\n"
        f"$\\mu_{{\\mathrm{{res}}}}$ = {panel.mu_res:.4f}\ngain {panel.gain:.4f}"
    )
    picture.annotate(axes, text, 0.97, 0.96, ha="right", va="top")


def _draw_unused(axes: Axes, panel: ResiduePanel) -> None:
    for mu, how in ((panel.mu_naive, picture.FIRST), (panel.mu_res, picture.REAL)):
        axes.plot(EPS_GRID, _unused(panel, mu), **how)
    axes.axhline(0.0, **picture.BUDGET)
    axes.set(
        xlim=(EPS_GRID[0], EPS_GRID[-1]),
        xlabel="ε",
        ylabel="δ of the budget, unused",
    )
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 3))


def _unused(panel: ResiduePanel, mu: float) -> Floats:
    """Delta of the budget beyond that of the query composed with `G_mu`."""
    budget, spent = gaussian(mu=panel.mu), _plus(panel, mu)
    left: Floats = np.asarray(budget.delta(EPS_GRID)) - np.asarray(spent.delta(EPS_GRID))
    return left


def _plus(panel: ResiduePanel, mu: float) -> Pld:
    return gaussian(mu=mu) + panel.query


@dataclass(frozen=True)
class GuaranteePicture(Picture):
    """Proven `eps'` at `target_delta`, by rounds."""

    eps: float
    delta: float
    target_delta: float
    rounds: tuple[int, ...]
    proven: tuple[Guarantee, ...]
    composed: tuple[float, ...]
    """`eps'` of the budget composed with itself; inf where no finite one has this delta."""

    name: ClassVar[str] = "natural-guarantee"
    title: ClassVar[str] = "What the natural filter really guarantees"

    def at(self, rounds: int) -> float:
        """The proven `eps'` in a number of rounds."""
        return self.proven[self.rounds.index(rounds)].eps

    @property
    def last_composed(self) -> int:
        """The most rounds, of those drawn, in which composing the budget says anything."""
        return max(k for k, e in zip(self.rounds, self.composed, strict=True) if math.isfinite(e))

    @property
    def caption(self) -> str:
        last = self.rounds[-1]
        proven = ", ".join(f"{_above(self.at(k))} in {k}" for k in dict.fromkeys((10, 100, last)))
        return (
            f"A natural filter with budget ({self.eps:g}, {self.delta:g}) is not proven to keep it."
            f" What is proven at delta = {self.target_delta:g}, for arbitrary symmetric queries"
            f" chosen adaptively, is eps = {proven} rounds. Composing the budget with itself"
            f" gives {_above(self.composed[self.rounds.index(self.last_composed)])} in"
            f" {self.last_composed} rounds and nothing at this delta in"
            f" {self.rounds[self.rounds.index(self.last_composed) + 1]}."
        )

    def draw(self) -> Figure:
        figure, ((axes,),) = picture.canvas(8.0, 4.6, self.caption)
        finite = [(k, e) for k, e in zip(self.rounds, self.composed, strict=True) if e < math.inf]
        axes.axhline(self.eps, label=f"promised: ({self.eps:g}, {self.delta:g})", **picture.BUDGET)
        axes.plot(
            *zip(*finite, strict=True), marker="s", ms=4, zorder=3,
            label=f"the budget composed with itself, at {self.target_delta:g}", **picture.FIRST,
        )  # fmt: skip
        axes.plot(
            self.rounds, [g.eps for g in self.proven], marker="o", ms=4,
            label=f"proven, at {self.target_delta:g}", **picture.REAL,
        )  # fmt: skip
        for k in (10, 100):
            axes.annotate(
                _above(self.at(k)), (k, self.at(k)), (6, -14), textcoords="offset points",
                fontsize=9,
            )  # fmt: skip
        axes.set_xscale("log")
        ticks = [1, 2, 5, 10, 20, 50, 100, 200]
        axes.set_xticks(ticks, labels=[str(k) for k in ticks])
        axes.minorticks_off()
        axes.set(xlabel="rounds", ylabel="ε", ylim=(0, 1.15 * self.proven[-1].eps))
        axes.legend(loc="upper left", fontsize=9, framealpha=1.0)
        return figure


def _above(value: float) -> str:
    """Two decimals, rounded up."""
    return str(Decimal(value).quantize(Decimal("0.01"), rounding=ROUND_CEILING))


def guarantee_by_rounds(
    progress: Progress | None = None,
    rounds: tuple[int, ...] = (*range(1, 13), 15, 20, 30, 50, 100, 200),
) -> GuaranteePicture:
    """Compute the guarantee for each number of rounds, at ten times delta."""
    eps, delta = 1.0, 1e-6
    proven, composed = [], []
    for done, k in enumerate(rounds, 1):
        found = natural_guarantee(eps, delta, k)
        proven.append(found)
        composed.append(float((k * approximate_dp(eps, delta)).epsilon(found.delta)))
        if progress is not None:
            progress(done, len(rounds))
    return GuaranteePicture(
        eps, delta, proven[0].delta, tuple(rounds), tuple(proven), tuple(composed)
    )


GALLERY: dict[str, Callable[[Progress], Picture]] = {
    "gdp-residue": lambda _: gdp_residue_panels(),
    "natural-filter-fails": lambda _: natural_filter_fails(),
    "gaussian-budgets": lambda _: gaussian_budgets(),
    "strategy": strategy_gain,
    "natural-guarantee": guarantee_by_rounds,
}
