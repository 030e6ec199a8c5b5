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

**What the natural `(eps, delta)` filter really guarantees**, from both sides: the delta that the
strongest known adversary reaches, proven from below (`adversary/strongest.py`), and the least
`eps'` that is proven for arbitrary queries in any number of rounds
(`adversary/natural_guarantee.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from residua.adversary.natural_guarantee import guarantee_curve
from residua.adversary.strongest import natural_attack
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
    """What is reached and what is proven; deltas in units of the budget's."""

    eps: float
    delta: float
    rounds: tuple[int, ...]
    reached: tuple[float, ...]
    """Delta of the strongest known adversary at `eps`, in so many rounds, from below."""
    times: tuple[float, ...]
    proven: tuple[float, ...]
    """The proven `eps'` at so many times delta."""
    attack_rounds: int
    attacked: tuple[float, ...]
    """Where the adversary with `attack_rounds` compares delta."""
    attack: tuple[float, ...]
    """Delta that it reaches there, from below."""

    name: ClassVar[str] = "natural-guarantee"
    title: ClassVar[str] = "What the natural filter really guarantees"

    @property
    def caption(self) -> str:
        reached = dict(zip(self.rounds, self.reached, strict=True))
        least = ", ".join(f"{_below(reached[k])} in {k}" for k in (2, 10, self.rounds[-1]))
        proven = dict(zip(self.times, self.proven, strict=True))
        most = ", ".join(f"{_above(proven[n])} at {n:g} delta" for n in (2.0, 10.0, 100.0))
        attack = ", ".join(
            f"{_below(delta)} delta at {eps:g}"
            for eps, delta in zip(self.attacked, self.attack, strict=True)
        )
        return (
            f"A natural filter with the budget ({self.eps:g}, {self.delta:g}) does not keep it."
            f" Left: the strongest known adversary reaches at eps = {self.eps:g} at least this many"
            f" times the delta that is promised: {least} rounds. Right: for arbitrary queries in"
            f" any number of rounds it is proven that eps is at most {most}. The adversary reaches"
            f" in {self.attack_rounds} rounds at least {attack}. The truth lies between the lines."
        )

    def draw(self) -> Figure:
        figure, ((left, right),) = picture.canvas(11.0, 4.4, self.caption, ncols=2)
        left.axhline(1.0, label="promised", **picture.BUDGET)
        left.plot(self.rounds, self.reached, marker="o", ms=4, label="reached", **picture.REAL)
        left.set_xscale("log")
        left.set_xticks(self.rounds, labels=[str(k) for k in self.rounds])
        left.set(
            xlabel="rounds", ylabel=f"δ({self.eps:g}) / {self.delta:g}",
            ylim=(0, 1.15 * max(self.reached)),
        )  # fmt: skip
        left.legend(loc="upper left", fontsize=9, framealpha=1.0)
        right.plot(self.times, self.proven, label="proven, any number of rounds", **picture.FIRST)
        right.plot(
            self.attack, self.attacked, marker="o", ms=4,
            label=f"reached in {self.attack_rounds} rounds", **picture.REAL,
        )  # fmt: skip
        right.plot(
            [1.0],
            [self.eps],
            label="promised",
            **(picture.BUDGET | {"marker": "s", "linestyle": ""}),
        )
        right.set_xscale("log")
        ticks = [1, 2, 5, 10, 20, 50, 100, 1000]
        right.set_xticks(ticks, labels=[str(k) for k in ticks])
        right.set(xlabel=f"δ / {self.delta:g}", ylabel="ε", ylim=(0, 1.1 * max(self.proven)))
        right.legend(loc="upper right", fontsize=9, framealpha=1.0)
        for axes in (left, right):
            axes.minorticks_off()
        return figure


def _above(value: float) -> str:
    """Two decimals, rounded up."""
    return str(Decimal(value).quantize(Decimal("0.01"), rounding=ROUND_CEILING))


def _below(value: float) -> str:
    """Two decimals, rounded down."""
    return str(Decimal(value).quantize(Decimal("0.01"), rounding=ROUND_FLOOR))


def guarantee_by_rounds(
    progress: Progress | None = None, rounds: tuple[int, ...] = (2, 3, 5, 10, 20, 50)
) -> GuaranteePicture:
    """Compute what is proven of the natural (1, 1e-6) filter, and what breaks it by how much."""
    eps, delta, attack_rounds = 1.0, 1e-6, 20
    budget = approximate_dp(eps, delta)
    attacked = (1.005, 1.02, 1.05, 1.1, 1.2)
    plays = [(k, eps) for k in rounds] + [(attack_rounds, at) for at in attacked]
    reached = []
    for done, (k, at) in enumerate(plays, 1):
        reached.append(natural_attack(budget, k, at).delta / delta)
        if progress is not None:
            progress(done, len(plays))
    times = tuple(sorted({*np.geomspace(1.3, 1000.0, 40).tolist(), 2.0, 10.0, 100.0}))
    curve = guarantee_curve(budget, [n * delta for n in times])
    return GuaranteePicture(
        eps, delta, rounds, tuple(reached[: len(rounds)]),
        times, tuple(found.eps for found in curve),
        attack_rounds, attacked, tuple(reached[len(rounds) :]),
    )  # fmt: skip


GALLERY: dict[str, Callable[[Progress], Picture]] = {
    "gdp-residue": lambda _: gdp_residue_panels(),
    "natural-filter-fails": lambda _: natural_filter_fails(),
    "gaussian-budgets": lambda _: gaussian_budgets(),
    "strategy": strategy_gain,
    "natural-guarantee": guarantee_by_rounds,
}
