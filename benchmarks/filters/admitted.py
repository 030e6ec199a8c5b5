"""Utility: queries that a filter admits, over the most that any filter could.

The workloads are random (`residua.planning.suite`), drawn with the seed for reports. The optimum is
that of `residua compare`: the longest prefix of the sequence that is within `(eps, delta)` when all
of it is known in advance.
"""

from __future__ import annotations

import residua as rz
from benchmarks.harness.run import Run
from benchmarks.harness.section import Section, table
from benchmarks.utility.peers import PEERS, with_peers
from residua.planning.candidates import kinds
from residua.planning.comparison import SuiteComparison, ratio_text
from residua.planning.suite import COUNT, REPORT_SEED, draw_suite

EPS, DELTA = 1.0, 1e-6


def measure(run: Run) -> Section:
    count = 5 if run.quick else COUNT
    filters = ["basic", "gdp_residue"] if run.quick else list(kinds())
    ours = rz.compare_filters(EPS, DELTA, "suite", filters, seed=REPORT_SEED, count=count)
    assert isinstance(ours, SuiteComparison)
    workloads = draw_suite(EPS, DELTA, seed=REPORT_SEED, count=count)
    found, notes = with_peers(ours, workloads, run.field)
    rows = [[_label(name, ours), *cells] for name, *cells in found.cells()]
    about = [
        f"Share of the non-adaptive optimum within ({EPS:g}, {DELTA:g}), admitted before the first"
        f" refusal. {found.caption()} prv_accountant, autodp, riskcal and Opacus have no filter,"
        " and nothing that can be stopped at any time. More budgets:"
        " [choosing a filter](choosing-a-filter.md).",
        *(f"{note}." for note in notes),
    ]
    return Section(
        "admitted",
        "Utility: how much a filter admits",
        " ".join(about),
        (table([head.replace("\n", " ") for head in found.headings()], rows),),
        (),
        tuple(_better(found)),
    )


def _label(name: str, ours: SuiteComparison) -> str:
    return f"residua, {name.replace('_', ' ')}" if name in ours.filters else name


def _better(found: SuiteComparison) -> list[str]:
    """The families in which a peer admits more than the automatic filter, in the mean."""
    if "auto" not in found.filters:
        return []
    auto, lines = found.summary("auto"), []
    for name in (peer.label for peer in PEERS if peer.label in found.filters):
        for family, mean in found.summary(name).families.items():
            if mean > auto.families[family]:
                lines.append(
                    f"{family} workloads: {name} admits {ratio_text(mean, 3)} of the optimum in the"
                    f" mean, auto {ratio_text(auto.families[family], 3)}"
                )
    return lines
