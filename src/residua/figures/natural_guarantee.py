"""What the natural `(eps, delta)` filter really guarantees, against rounds.

For arbitrary symmetric queries, chosen adaptively: the least `eps'` that is proven at a larger
delta (`adversary/natural/guarantee.py`), beside what composing the budget with itself would give.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from residua.adversary.natural.guarantee import Guarantee, natural_guarantee
from residua.figures import style
from residua.figures.picture import Picture
from residua.pld.constructors import approximate_dp

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["GuaranteePicture", "guarantee_by_rounds"]

ROUNDS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 20, 30, 50, 100, 200)
"""The numbers of rounds that are drawn."""


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

    def numbers(self) -> dict[str, Any]:
        return {
            "eps": self.eps, "delta": self.delta, "target_delta": self.target_delta,
            "rounds": list(self.rounds), "proven": [g.eps for g in self.proven],
            "methods": [g.method for g in self.proven],
            "composed": [e if math.isfinite(e) else None for e in self.composed],
        }  # fmt: skip

    def draw(self) -> Figure:
        figure, ((axes,),) = style.canvas(8.0, 4.6, self.caption)
        finite = [(k, e) for k, e in zip(self.rounds, self.composed, strict=True) if e < math.inf]
        axes.axhline(self.eps, label=f"promised: ({self.eps:g}, {self.delta:g})", **style.BUDGET)
        axes.plot(
            *zip(*finite, strict=True), marker="s", ms=4, zorder=3,
            label=f"the budget composed with itself, at {self.target_delta:g}", **style.FIRST,
        )  # fmt: skip
        axes.plot(
            self.rounds, [g.eps for g in self.proven], marker="o", ms=4,
            label=f"proven, at {self.target_delta:g}", **style.REAL,
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
    progress: Callable[[int, int], None] | None = None,
    eps: float = 1.0,
    delta: float = 1e-6,
    rounds: tuple[int, ...] = ROUNDS,
) -> GuaranteePicture:
    """Compute the guarantee for each number of rounds, at ten times delta."""
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
