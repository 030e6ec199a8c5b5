"""The workloads of several seeds in one comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from residua.planning.comparison import SuiteComparison


@dataclass(frozen=True)
class PooledComparison(SuiteComparison):
    """What filters admit of the random workloads that several seeds draw."""

    seeds: tuple[int, ...] = ()

    def caption(self) -> str:
        several = f"seeds {', '.join(map(str, self.seeds))}"
        return super().caption().replace(f"seed {self.seed}", several, 1)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "seeds": list(self.seeds)}


def pooled(found: Sequence[SuiteComparison]) -> SuiteComparison:
    """One comparison of the workloads of all: of the same budget and filters, in this order."""
    first, *others = found
    if not others:
        return first
    rows = tuple(row for one in found for row in one.rows)
    seeds = tuple(one.seed for one in found)
    return PooledComparison(first.eps, first.delta, first.filters, rows, first.seed, seeds)
