"""How much of a workload each filter admits, beside the non-adaptive optimum.

A workload is requested in order until the first refusal; what was admitted is divided by the most
that fits when all queries are known in advance (`workload.py`). The optimum is rounded up, so no
ratio is flattering.

**Statistics of a suite** of random workloads (`suite.py`). A workload with a small optimum has few
possible ratios, and one refusal changes its ratio by a tenth or more. Workloads whose optimum is
below `SMALL` are therefore summarised apart. The interval of the mean is a percentile bootstrap:
workloads are resampled with replacement, and the interval holds the middle 95 % of the means.
Ratios are bounded by one and skewed, which a normal approximation would ignore. The resampling has
a fixed seed, so the interval is a function of the ratios.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters.base import Filter
from residua.filters.counting import MOST, admitted
from residua.filters.target import target
from residua.mechanisms.mechanism import Mechanism
from residua.planning import suite
from residua.planning.candidates import Candidate, Setting, candidates
from residua.planning.how_many import Progress
from residua.planning.workload import Run, Workload, optimum
from residua.pld.pld import Pld

SMALL = 10
"""Workloads with an optimum below this are reported apart."""


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


def bootstrap_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The percentile bootstrap interval of the mean; None for fewer than two values."""
    count = len(values)
    if count < 2:
        return None
    random = np.random.default_rng(0)
    draws = random.multinomial(count, np.full(count, 1.0 / count), size=10_000)
    low, high = np.quantile(draws @ np.asarray(values) / count, [0.025, 0.975])
    return float(low), float(high)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


@dataclass(frozen=True)
class Row:
    """One workload: the optimum, and what each filter admitted."""

    workload: str
    optimum: int
    admitted: tuple[int, ...]
    family: str = ""
    """The family of a random workload."""

    def ratios(self) -> tuple[float | None, ...]:
        """Admitted over optimum; None where nothing fits at all."""
        return tuple(n / self.optimum if self.optimum else None for n in self.admitted)


@dataclass(frozen=True)
class FilterComparison:
    """What filters admit of workloads within one `(eps, delta)`."""

    eps: float
    delta: float
    filters: tuple[str, ...]
    rows: tuple[Row, ...]

    def admitted(self, workload: str, filter: str) -> int:
        """How many queries of a workload a filter admitted."""
        return self._row(workload).admitted[self._column(filter)]

    def ratio(self, workload: str, filter: str) -> float | None:
        """The same, over the optimum."""
        return self._row(workload).ratios()[self._column(filter)]

    def _row(self, workload: str) -> Row:
        known = {row.workload: row for row in self.rows}
        return known[checks.one_of("workload", workload, tuple(known))]

    def _column(self, filter: str) -> int:
        return self.filters.index(checks.one_of("filter", filter, self.filters))

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "eps": self.eps,
            "delta": self.delta,
            "filters": list(self.filters),
            "workloads": [
                {
                    "workload": row.workload,
                    "optimum": row.optimum,
                    "admitted": dict(zip(self.filters, row.admitted, strict=True)),
                    "ratio": dict(zip(self.filters, row.ratios(), strict=True)),
                }
                for row in self.rows
            ],
        }

    def records(self) -> list[dict[str, Any]]:
        """As rows, for a data frame: `pandas.DataFrame(comparison.records())`."""
        return [
            {
                "workload": row.workload,
                "family": row.family,
                "filter": name,
                "admitted": count,
                "optimum": row.optimum,
                "ratio": ratio,
            }
            for row in self.rows
            for name, count, ratio in zip(self.filters, row.admitted, row.ratios(), strict=True)
        ]

    def table(self) -> str:
        """As text: for one workload a line for each filter, for several a line for each."""
        if len(self.rows) > 1:
            head, lines = self.headings(), self.cells()
        else:
            (row,) = self.rows
            head = row.workload, "admitted", "ratio"
            best = str(row.optimum), ratio_text(1.0 if row.optimum else None)
            lines = [("(non-adaptive optimum)", *best)]
            for name, count, ratio in zip(self.filters, row.admitted, row.ratios(), strict=True):
                lines.append((name, str(count), ratio_text(ratio)))
        return align_columns(head, lines)

    def headings(self) -> tuple[str, ...]:
        """The headings of the table of ratios."""
        return "workload", "optimum", *self.filters

    def cells(self) -> list[tuple[str, ...]]:
        """The cells of the table, a line for each workload."""
        return [
            (row.workload, str(row.optimum), *map(ratio_text, row.ratios())) for row in self.rows
        ]

    def caption(self) -> str:
        """What there is to say about the table."""
        return ""

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from residua.figures.notebook import comparison_html

        return comparison_html(self)


@dataclass(frozen=True)
class SuiteComparison(FilterComparison):
    """What filters admit of the random workloads that a seed draws."""

    seed: int = 0

    @cached_property
    def summaries(self) -> tuple[Summary, ...]:
        """The statistics of each filter."""
        return tuple(self.summary(name) for name in self.filters)

    def summary(self, filter: str) -> Summary:
        """The statistics of one filter."""
        column = self._column(filter)
        large: list[float] = []
        small: list[float] = []
        families: dict[str, list[float]] = {}
        for row in self.rows:
            ratio = row.ratios()[column]
            if ratio is None:
                continue
            (large if row.optimum >= SMALL else small).append(ratio)
            if row.optimum >= SMALL:
                families.setdefault(row.family, []).append(ratio)
        large.sort()
        return Summary(
            filter,
            len(large),
            _mean(large),
            bootstrap_interval(large),
            large[math.ceil(len(large) / 10) - 1] if large else None,
            large[0] if large else None,
            {name: math.fsum(found) / len(found) for name, found in families.items()},
            len(small),
            _mean(small),
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain data: the statistics of each filter, and every workload."""
        plain = super().to_dict()
        workloads = [
            {**one, "family": row.family}
            for one, row in zip(plain.pop("workloads"), self.rows, strict=True)
        ]
        summaries = [one.to_dict() for one in self.summaries]
        return {**plain, "seed": self.seed, "summaries": summaries, "workloads": workloads}

    def table(self) -> str:
        """The statistics as text, a line for each filter."""
        return f"{align_columns(self.headings(), self.cells())}\n\n{self.caption()}"

    def headings(self) -> tuple[str, ...]:
        """The headings of the table."""
        columns = ("filter", "mean", "95 % interval\nof the mean", "10th\nperc.", "min")
        return (*columns, f"optimum\n< {SMALL}", *self._families)

    @cached_property
    def _families(self) -> tuple[str, ...]:
        found = {row.family for row in self.rows if row.optimum >= SMALL}
        known = [family for family in suite.FAMILIES if family in found]
        return (*known, *sorted(found - set(known)))

    def cells(self) -> list[tuple[str, ...]]:
        """The cells of the table, a line for each filter."""
        return [
            (
                one.filter,
                ratio_text(one.mean, 3),
                _format_interval(one.interval),
                ratio_text(one.tenth_percentile),
                ratio_text(one.minimum),
                ratio_text(one.small_mean),
                *(ratio_text(one.families.get(family)) for family in self._families),
            )
            for one in self.summaries
        ]

    def caption(self) -> str:
        """The subject of the table, in a sentence or two."""
        small = sum(0 < row.optimum < SMALL for row in self.rows)
        large = sum(row.optimum >= SMALL for row in self.rows)
        return (
            f"{len(self.rows)} workloads drawn with seed {self.seed}: {large} with an optimum of"
            f" at least {SMALL}, and {small} below, which count in 'optimum < {SMALL}' alone."
        )


def align_columns(head: Sequence[str], lines: Sequence[tuple[str, ...]]) -> str:
    """Text in columns under a rule, the first to the left and the others to the right.

    Headings break at their line ends and, since names of kinds are long, at their underscores.
    """
    parts = [re.split("[_\n]", cell) for cell in head]
    deep = max(map(len, parts))
    heads = list(zip(*([""] * (deep - len(part)) + part for part in parts), strict=True))
    widths = [max(map(len, column)) for column in zip(*heads, *lines, strict=True)]
    texts = [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (*heads, *lines)
    ]
    return "\n".join([*texts[:deep], "-" * max(map(len, texts)), *texts[deep:]])


def ratio_text(ratio: float | None, digits: int = 2) -> str:
    """A ratio in decimals, rounded down; a dash where there is none."""
    if ratio is None:
        return "-"
    return f"{math.floor(10**digits * ratio + 1e-9) / 10**digits:.{digits}f}"


def _format_interval(interval: tuple[float, float] | None) -> str:
    """An interval in three decimals, rounded outwards."""
    if interval is None:
        return "-"
    low, high = interval
    return f"{ratio_text(low, 3)}-{math.ceil(1000 * high - 1e-9) / 1000:.3f}"


def compare_filters(
    eps: float,
    delta: float,
    workload: Any = "suite",
    filters: Any = None,
    *,
    seed: int | None = None,
    count: int | None = None,
    family: str | None = None,
    shape: str | None = None,
    most: int = MOST,
    relation: str | None = None,
    progress: Progress | None = None,
) -> FilterComparison:
    """Count how many queries of a workload each filter admits before its first refusal.

    Args:
        eps: The budget's epsilon, at most 600.
        delta: The budget's delta, in (0, 1).
        workload: A `Workload`, a query (asked without end), a list of queries (asked once), a list
            of workloads, the path of a workload file, or "suite" for random workloads.
        filters: A list of kinds or of filters, or a mapping of names to them; without it, every
            kind that can be set up for `(eps, delta)`.
        seed: What the suite is drawn from; the development seed without it.
        count: How many workloads to draw; 60 without it.
        family: Draw workloads of this family alone; see `residua.planning.suite.FAMILIES`.
        shape: Draw workloads of this shape alone; see `residua.planning.suite.SHAPES`.
        most: Where counting ends.
        relation: The neighbouring relation for mechanisms.
        progress: Called before each measurement.

    Returns:
        The counts and ratios; for a suite a `SuiteComparison`, which has statistics as well.

    Raises:
        ArgumentError: An argument is out of range.
        ArgumentTypeError: An argument has the wrong type.
    """
    eps, delta = target(eps, delta)
    most = checks.count("most", most)
    running = candidates(filters)
    names = tuple(one.name for one in running)
    setting = partial(Setting, eps, delta, relation=relation)
    if isinstance(workload, str) and workload == "suite":
        seed = suite.DEVELOPMENT_SEED if seed is None else seed
        draws = suite.suite_draws(seed, suite.COUNT if count is None else count, family, shape)
        total = len(draws) * (1 + len(running))

        def drawn() -> Iterator[Workload]:
            for place, one in enumerate(draws):
                if progress is not None:
                    now = place * (1 + len(running))
                    progress(f"drawing: {one.family}, {one.shape}", now, total)
                yield suite.draw_workload(eps, delta, **one._asdict())

        rows = _rows(drawn(), len(draws), running, setting, most, progress)
        return SuiteComparison(eps, delta, names, rows, int(seed))
    for name, given in (("seed", seed), ("count", count), ("family", family), ("shape", shape)):
        if given is not None:
            raise ArgumentError(
                f"{name} applies only to workload='suite', got {checks.shown(given)}"
            )
    workloads = as_workloads(workload)
    rows = _rows(workloads, len(workloads), running, setting, most, progress)
    return FilterComparison(eps, delta, names, rows)


def _rows(
    workloads: Iterable[Workload],
    count: int,
    running: Sequence[Candidate],
    setting: Callable[[Workload], Setting],
    most: int,
    progress: Progress | None,
) -> tuple[Row, ...]:
    """Measure the candidates on each workload, which is drawn when its turn comes."""
    steps = itertools.count()

    def report(what: str) -> None:
        if progress is not None:
            progress(what, next(steps), count * (1 + len(running)))

    rows = []
    for workload in workloads:
        given = setting(workload)
        report(f"{workload.name}: optimum")
        best = optimum(given.eps, given.delta, workload, most=most, relation=given.relation)
        counts = []
        for candidate in running:
            report(f"{workload.name}: {candidate.name}")
            filter = candidate.build(given)
            counts.append(count_admitted(filter, workload, most, given.relation))
        family = workload.family if isinstance(workload, suite.DrawnWorkload) else ""
        rows.append(Row(workload.name, best, tuple(counts), family))
    report("")
    return tuple(rows)


def count_admitted(
    filter: Filter, workload: Workload, most: int, relation: str | None = None
) -> int:
    """How many queries of a workload a filter admits from its first state, before it refuses."""
    state, total = filter.initial(), 0
    for query, count in workload.runs(most):
        got, state = admitted(filter, state, (query,), count, relation)
        total += got
        if got < count:
            break
    return total


def as_workloads(given: Any) -> tuple[Workload, ...]:
    """The workloads that an argument of `compare_filters` describes, unless it is "suite"."""
    if isinstance(given, Workload):
        return (given,)
    if isinstance(given, Pld | Mechanism):
        return (Workload("workload", (Run(given),), repeat=True),)
    if isinstance(given, str) and Path(given).name == given and not Path(given).exists():
        raise ArgumentError(
            f"workload must be a file or 'suite', got {checks.shown(given)}"
            f"{checks.suggestion(given, ('suite',))}"
        )
    if isinstance(given, str | Path):
        return (Workload.from_file(given),)
    if isinstance(given, list | tuple) and given:
        if all(isinstance(one, Workload) for one in given):
            return _different(tuple(given))
        return (Workload("workload", tuple(given)),)
    raise ArgumentTypeError(
        f"workload must be a workload, queries, a file or 'suite', got {checks.shown(given)}"
    )


def _different(workloads: tuple[Workload, ...]) -> tuple[Workload, ...]:
    known = [one.name for one in workloads]
    for name in known:
        checks.require(
            known.count(name) == 1, "workload", "made of workloads with different names", name
        )
    return workloads
