"""Budgets that the natural filter breaks, with the adversary that breaks them.

A first query `L`, then `A` or `C`, each of which fits: `L ⊕ A ⪯ B` and `L ⊕ C ⪯ B`. The analyst
chooses after the answer to `L` and gets `L ⊕ (A ∨ C)`. Above: tradeoff curves, where lower is less
private. Below: delta beyond the budget's, where above 0 is a broken promise.

The worst case and its gap are those of `natural_cost`, proven; smooth queries count as seen through
finitely many outcomes, from below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from residua.adversary.attack import natural_cost
from residua.adversary.freeness import triple_budget
from residua.adversary.unsound import (
    APPROXIMATE_BUDGET,
    GAMBLE,
    GAUSSIAN_QUERIES,
    LARGE,
    SMALL,
    STEADY,
)
from residua.figures import picture
from residua.figures.picture import Picture, as_math, tradeoff_line
from residua.pld.constructors import approximate_dp, gaussian, pure_dp
from residua.pld.pld import Pld

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


EPS_GRID = np.linspace(0.0, 4.0, 321)
"""Where delta is drawn."""
SHADE = "#F6D5BF"


@dataclass(frozen=True)
class Counterexample:
    """Two plans that fit a budget, and what choosing between them after looking does."""

    heading: str
    budget: Pld
    budget_words: str
    first: Pld
    futures: tuple[Pld, Pld]
    words: tuple[str, str, str]
    """The first query and the two futures, in words."""
    rounds: int
    eps: float
    """Where the gap is largest, as searched."""
    promised: float
    """Delta of the budget there, from above."""
    real: float
    """Delta of the adversary there, from below."""
    adaptive: Pld
    """What the adversaries reach, from below."""

    @property
    def gap(self) -> float:
        """By how much the promise is broken."""
        return self.real - self.promised

    @property
    def summary(self) -> str:
        """The budget, the queries and the gap, in a clause of the caption."""
        first, a, c = self.words
        return (
            f"budget {self.budget_words}; {first}, then {a} or {c}: delta {self.real:.4f} where"
            f" {self.promised:.4f} is promised at eps = {self.eps:.3f}, a gap of {self.gap:.4f}"
        )


@dataclass(frozen=True)
class CounterexamplePicture(Picture):
    """Two counterexamples side by side."""

    name: str  # type: ignore[misc]
    title: str  # type: ignore[misc]
    opening: str
    panels: tuple[Counterexample, Counterexample]

    @property
    def caption(self) -> str:
        panels = "; ".join(
            f"({letter}) {p.summary}" for letter, p in zip("ab", self.panels, strict=True)
        )
        return (
            f"{self.opening} {panels}. Either plan, fixed in advance, stays within the budget;"
            " choosing between them after the first answer does not. Above: tradeoff curves, lower"
            " is less private. Below: delta beyond that of the budget."
        )

    def draw(self) -> Figure:
        figure, (above, below) = picture.canvas(
            10.0, 8.0, self.caption, nrows=2, ncols=2, height_ratios=[3, 2]
        )
        for letter, panel, top, low in zip("ab", self.panels, above, below, strict=True):
            _draw_curves(top, panel)
            _draw_excess(low, panel)
            top.set_title(f"({letter}) {panel.heading}", fontsize=10.5)
        return figure


def natural_filter_fails() -> CounterexamplePicture:
    """Approximate queries on an approximate budget, and pure queries in three rounds."""
    one, more = pure_dp(1.0), pure_dp(1.2)
    return CounterexamplePicture(
        "natural-filter-fails",
        "Two budgets that the natural filter breaks",
        "The natural filter breaks its budget.",
        (
            counterexample(
                "approximate-DP queries and budget",
                (APPROXIMATE_BUDGET, "R_{1.395, 0.509}"),
                (STEADY, GAMBLE, STEADY),
                ("R_{1.404, 0.0208}", "R_{0.0847, 0.478}", "R_{1.404, 0.0208}"),
                [STEADY, GAMBLE],
                2,
            ),
            counterexample(
                "pure-DP queries, three rounds",
                (triple_budget((one, more, 2 * one)), "(R_1 ⊕ R_1.2) ∨ (R_1 ⊕ R_1 ⊕ R_1)"),
                (one, more, 2 * one),
                ("R_1", "R_1.2", "R_1 ⊕ R_1"),
                [one, more],
                3,
            ),
        ),
    )


def gaussian_budgets() -> CounterexamplePicture:
    """A Gaussian budget, and a Gaussian budget with a delta."""
    return CounterexamplePicture(
        "gaussian-budgets",
        "Gaussian budgets do not help the natural filter",
        "Gaussian budgets do not help.",
        (
            counterexample(
                "a Gaussian budget",
                (gaussian(mu=1.0), "G_1"),
                GAUSSIAN_QUERIES,
                ("R_0.5", "R_0.78", "G_0.8599"),
                GAUSSIAN_QUERIES,
                2,
            ),
            counterexample(
                "a Gaussian budget with a delta",
                (gaussian(mu=1.0) + approximate_dp(0.0, 0.2), "G_1 ⊕ R_{0, 0.2}"),
                (SMALL, LARGE, SMALL),
                ("R_{0.84, 0.028}", "R_{0.33, 0.155}", "R_{0.84, 0.028}"),
                [SMALL, LARGE],
                2,
            ),
        ),
    )


def counterexample(
    heading: str,
    budget: tuple[Pld, str],
    asked: tuple[Pld, Pld, Pld],
    words: tuple[str, str, str],
    catalogue: Sequence[Pld],
    rounds: int,
) -> Counterexample:
    """Compute a counterexample: both plans fit, and the worst case breaks the natural filter."""
    promise, named = budget
    first, *futures = asked
    assert all(first + after <= promise for after in futures), "either plan fits"
    cost = natural_cost(catalogue, promise, rounds)
    assert cost.witness is not None and cost.strategy is not None, "a known counterexample"
    assert cost.strategy.loss == first
    at = cost.witness
    return Counterexample(
        heading,
        promise,
        named,
        first,
        (futures[0], futures[1]),
        words,
        rounds,
        math.log(at),
        float(promise.hockey_stick(at)),
        float(cost.worst.hockey_stick_bounds(at).lo),
        cost.worst.below,
    )


def _draw_curves(axes: Axes, panel: Counterexample) -> None:
    first, a, c = panel.words
    (alpha, high), (_, low) = tradeoff_line(panel.budget), tradeoff_line(panel.adaptive)
    axes.fill_between(alpha, low, high, where=list(low < high), interpolate=True, color=SHADE, lw=0)
    axes.plot(alpha, high, label=as_math(f"budget {panel.budget_words}"), **picture.BUDGET)
    for words, after, how in zip(
        (a, c), panel.futures, (picture.FIRST, picture.SECOND), strict=True
    ):
        line = tradeoff_line(panel.first + after)
        axes.plot(*line, label=as_math(f"{first} ⊕ {words}"), **how)
    axes.plot(alpha, low, label="chosen after the answer", **picture.REAL)
    top = math.ceil(20 * float(high[0])) / 20
    axes.set(xlim=(0, top), ylim=(0, top), xlabel="type I error", ylabel="least type II error")
    axes.set_aspect("equal")
    axes.legend(loc="upper right", fontsize=8.5, framealpha=1.0)


def _draw_excess(axes: Axes, panel: Counterexample) -> None:
    eps = np.unique(np.append(EPS_GRID, panel.eps))
    promised = np.asarray(panel.budget.delta(eps))
    plans = [np.asarray((panel.first + after).delta(eps)) - promised for after in panel.futures]
    real = np.asarray(panel.adaptive.delta(eps)) - promised
    axes.axhline(0.0, **picture.BUDGET)
    for plan, how in zip(plans, (picture.FIRST, picture.SECOND), strict=True):
        axes.plot(eps, plan, **how)
    axes.plot(eps, real, **picture.REAL)
    axes.fill_between(eps, 0.0, real, where=list(real > 0.0), interpolate=True, color=SHADE, lw=0)
    axes.plot([panel.eps], [panel.gap], marker="o", color=picture.REAL["color"])
    low = max(-2.5 * panel.gap, min(float(plan.min()) for plan in plans))
    axes.set(xlim=(0.0, EPS_GRID[-1]), ylim=(1.1 * low, 1.45 * panel.gap))
    axes.set(xlabel="ε", ylabel="δ beyond the budget's")
    text = f"δ = {panel.real:.4f} for {panel.promised:.4f}\nat ε = {panel.eps:.3f}"
    picture.annotate(axes, text, 0.97, 0.95, ha="right", va="top")
