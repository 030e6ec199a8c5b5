"""Statistics of a suite: what share of the optimum each filter admits, over random workloads.

A workload with a small optimum has few possible ratios, and one refusal changes its ratio by a
tenth or more. Workloads whose optimum is below `SMALL` are therefore summarised apart.

The interval of the mean is a percentile bootstrap: workloads are resampled with replacement, and
the interval holds the middle 95 % of the means. Ratios are bounded by one and skewed, which a
normal approximation would ignore. The resampling has a fixed seed, so the interval is a function
of the ratios.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

SMALL = 10
"""Workloads with an optimum below this are reported apart."""

CONFIDENCE = 0.95

_RESAMPLES = 10_000
_SEED = 0


@dataclass(frozen=True)
class Measurement:
    """One filter on one workload: `ratio` is admitted over optimum."""

    family: str
    optimum: int
    ratio: float


@dataclass(frozen=True)
class Summary:
    """Admitted over optimum for one filter: statistics over the workloads of a suite.

    All but the last two fields are over the workloads with an optimum of at least `SMALL`. A
    statistic is None where no workload counts, and so is the interval for fewer than two.
    """

    filter: str
    workloads: int
    mean: float | None
    interval: tuple[float, float] | None
    """The 95 % confidence interval of the mean."""
    tenth_percentile: float | None
    """The least ratio that at least a tenth of the workloads do not exceed."""
    minimum: float | None
    families: dict[str, float]
    """The mean for each family."""
    small_workloads: int
    """How many workloads have an optimum below `SMALL`."""
    small_mean: float | None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        interval = None if self.interval is None else list(self.interval)
        return {**self.__dict__, "interval": interval, "families": dict(self.families)}


def summarise(filter: str, measurements: Sequence[Measurement]) -> Summary:
    """The statistics of one filter; a workload of which nothing fits must be left out."""
    large = [one for one in measurements if one.optimum >= SMALL]
    small = [one.ratio for one in measurements if one.optimum < SMALL]
    ratios = sorted(one.ratio for one in large)
    families: dict[str, list[float]] = {}
    for one in large:
        families.setdefault(one.family, []).append(one.ratio)
    return Summary(
        filter,
        len(ratios),
        _mean(ratios),
        bootstrap_interval(ratios),
        ratios[math.ceil(len(ratios) / 10) - 1] if ratios else None,
        ratios[0] if ratios else None,
        {name: math.fsum(found) / len(found) for name, found in families.items()},
        len(small),
        _mean(small),
    )


def bootstrap_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The percentile bootstrap interval of the mean; None for fewer than two values."""
    count = len(values)
    if count < 2:
        return None
    random = np.random.default_rng(_SEED)
    draws = random.multinomial(count, np.full(count, 1.0 / count), size=_RESAMPLES)
    tail = 0.5 * (1.0 - CONFIDENCE)
    low, high = np.quantile(draws @ np.asarray(values) / count, [tail, 1.0 - tail])
    return float(low), float(high)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
