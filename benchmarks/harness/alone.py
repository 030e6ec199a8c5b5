"""Benchmarks without a peer as a section: rows with their targets."""

from __future__ import annotations

import importlib

from benchmarks.harness.rows import Row, duration
from benchmarks.harness.run import Run
from benchmarks.harness.section import Goal, Section, table

MODULES = {
    "compare_finite": (
        "benchmarks.pld.compare_finite",
        "The order of two PLDs of ten thousand atoms",
    ),
    "supremum_finite": (
        "benchmarks.pld.supremum_finite",
        "The supremum of two PLDs of ten thousand atoms",
    ),
    "gdp_residue": ("benchmarks.pld.gdp_residue", "The certified GDP residue"),
    "individual": ("benchmarks.individual", "Budgets of a million subjects, one core"),
    "import_time": ("benchmarks.import_time", "Importing"),
}
"""The module and the title of each."""


def section(name: str, run: Run) -> Section:
    module, title = MODULES[name]
    benchmark = importlib.import_module(module)
    rows: list[Row] = benchmark.run(run.repeats)
    cells = [
        [row.work, duration(row.ours_ms), row.peer or "", _peer(row), _figure(row), row.note]
        for row in rows
    ]
    heads = ["", "ours", "beside", "its time", "figure", ""]
    goals = tuple(
        Goal(row.work, _figure(row), str(row.target), row.verdict == "PASS")
        for row in rows
        if row.target is not None
    )
    better = tuple(
        f"{row.work}: {row.peer} is faster" for row in rows if row.peer_ms and row.figure < 1.0
    )
    about = (benchmark.__doc__ or "").strip()
    return Section(name, title, about, (table(heads, cells),), goals, better)


def _peer(row: Row) -> str:
    return "" if row.peer_ms is None else duration(row.peer_ms)


def _figure(row: Row) -> str:
    return duration(row.figure) if row.peer_ms is None else f"{row.figure:.1f} x"
