"""The yardstick: how much of a workload each filter admits, beside the non-adaptive optimum.

A workload is requested in order until the first refusal; what was admitted is divided by the most
that fits when all queries are known in advance (`optimum.py`). The optimum is rounded up, so no
ratio is flattering.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters.base import Filter
from residua.filters.counting import MOST, admitted
from residua.mechanisms.mechanism import Mechanism
from residua.planning.candidates import Setting, contenders
from residua.planning.optimum import optimum
from residua.planning.suite import named, names, suite
from residua.planning.workload import Run, Workload
from residua.pld.pld import Pld

Progress = Callable[[str, int, int], None]
"""Told what comes next, how many measurements are done and how many there are."""


@dataclass(frozen=True)
class Row:
    """One workload: the optimum, and what each filter admitted."""

    workload: str
    optimum: int
    admitted: tuple[int, ...]

    def ratios(self) -> tuple[float | None, ...]:
        """Admitted over optimum; None where nothing fits at all."""
        return tuple(n / self.optimum if self.optimum else None for n in self.admitted)


@dataclass(frozen=True)
class Yardstick:
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
        """As rows, for a data frame: `pandas.DataFrame(measured.records())`."""
        return [
            {
                "workload": row.workload,
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
        if len(self.rows) == 1:
            head, *lines = self._single()
        else:
            head, lines = self._heading(), [self._cells(row) for row in self.rows]
        # Names of kinds are long: they break at their underscores.
        parts = [cell.split("_") for cell in head]
        deep = max(map(len, parts))
        heads = zip(*([""] * (deep - len(part)) + part for part in parts), strict=True)
        return aligned(list(heads), list(lines))

    def _heading(self) -> tuple[str, ...]:
        return "workload", "optimum", *self.filters

    def _cells(self, row: Row) -> tuple[str, ...]:
        return row.workload, str(row.optimum), *map(shown, row.ratios())

    def _single(self) -> Iterator[tuple[str, ...]]:
        (row,) = self.rows
        yield row.workload, "admitted", "ratio"
        yield "(non-adaptive optimum)", str(row.optimum), shown(1.0 if row.optimum else None)
        for name, count, ratio in zip(self.filters, row.admitted, row.ratios(), strict=True):
            yield name, str(count), shown(ratio)

    def _repr_html_(self) -> str:
        """As a table in a notebook: ratios, and the counts where the pointer rests."""

        def line(tag: str, cells: list[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"

        lines = [line("th", [html.escape(text) for text in self._heading()])]
        for row in self.rows:
            cells = [html.escape(row.workload), str(row.optimum)]
            cells += [
                f'<span title="{count}">{shown(ratio)}</span>'
                for count, ratio in zip(row.admitted, row.ratios(), strict=True)
            ]
            lines.append(line("td", cells))
        caption = f"<caption>admitted / optimum within ({self.eps:g}, {self.delta:g})</caption>"
        return f"<table>{caption}{''.join(lines)}</table>"


def aligned(heads: list[tuple[str, ...]], lines: list[tuple[str, ...]]) -> str:
    """Text in columns under a rule, the first to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*heads, *lines, strict=True)]
    texts = [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (*heads, *lines)
    ]
    rule = "-" * max(map(len, texts))
    return "\n".join([*texts[: len(heads)], rule, *texts[len(heads) :]])


def shown(ratio: float | None) -> str:
    """A ratio in two digits, rounded down; a dash where there is none."""
    return "-" if ratio is None else f"{int(100 * ratio + 1e-9) / 100:.2f}"


def compare_filters(
    eps: float,
    delta: float,
    workload: Any = "suite",
    filters: Any = None,
    *,
    most: int = MOST,
    relation: str | None = None,
    progress: Progress | None = None,
) -> Yardstick:
    """How many queries of a workload each filter admits before its first refusal.

    `workload` is a `Workload`, a query (asked without end), a list of queries (asked once), a list
    of workloads, the path of a workload file, "suite" for all built-in workloads or the name of
    one. `filters` is a list of kinds or of filters, or maps names to them; without it every kind
    that can be set up for `(eps, delta)`. Counting ends at `most`.
    """
    eps = checks.real("eps", eps, "positive and at most 600")
    checks.require(0.0 < eps <= 600.0, "eps", "positive and at most 600", eps)
    delta = checks.real("delta", delta, "in (0, 1)")
    checks.require(0.0 < delta < 1.0, "delta", "in (0, 1)", delta)
    most = checks.count("most", most)
    workloads = as_workloads(workload, eps, delta)
    running = contenders(filters)
    total = len(workloads) * (1 + len(running))
    rows: list[Row] = []
    for place, one in enumerate(workloads):
        counts: list[int] = []

        def tell(what: str, done: int, name: str = one.name) -> None:
            if progress is not None:
                progress(f"{name}: {what}", done, total)

        done = place * (1 + len(running))
        tell("optimum", done)
        best = optimum(eps, delta, one, most=most, relation=relation)
        setting = Setting(eps, delta, one, relation)
        for column, contender in enumerate(running):
            tell(contender.name, done + 1 + column)
            counts.append(measured(contender.build(setting), one, most, relation))
        rows.append(Row(one.name, best, tuple(counts)))
    if progress is not None:
        progress("", total, total)
    return Yardstick(eps, delta, tuple(one.name for one in running), tuple(rows))


def measured(filter: Filter, workload: Workload, most: int, relation: str | None = None) -> int:
    """How many queries of a workload a filter admits from its first state, before it refuses."""
    state, total = filter.initial(), 0
    for query, count in workload.runs(most):
        got, state = admitted(filter, state, (query,), count, relation)
        total += got
        if got < count:
            break
    return total


def as_workloads(given: Any, eps: float, delta: float) -> tuple[Workload, ...]:
    """The workloads that an argument of `compare_filters` stands for."""
    if isinstance(given, Workload):
        return (given,)
    if isinstance(given, Pld | Mechanism):
        return (Workload("workload", (Run(given),), repeat=True),)
    if isinstance(given, str) and given == "suite":
        return suite(eps, delta)
    if isinstance(given, str) and given in names():
        return (named(given, eps, delta),)
    if isinstance(given, str) and Path(given).name == given and not Path(given).exists():
        known = ("suite", *names())
        raise ArgumentError(
            f"workload must be a file or one of {', '.join(known)}, got"
            f" {checks.shown(given)}{checks.near(given, known)}"
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
        checks.require(known.count(name) == 1, "workload", "made of different names", name)
    return workloads
