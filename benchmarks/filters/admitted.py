"""Utility: queries that a filter admits, over the most that any filter could.

The optimum is that of `residua compare`: the longest prefix of the sequence that is within
`(eps, delta)` when all of it is known beforehand. Peers answer by asking their own filter one query
after the other; dp_accounting has no filter, so what counts for it is its Rényi accountant with one
order, fixed beforehand, which is valid against an adaptive analyst.
"""

from __future__ import annotations

from typing import Any

import residua as rz
from benchmarks.harness.parts import Parts, gaussian, laplace, pure_dp, subsampled
from benchmarks.harness.run import Run
from benchmarks.harness.section import Section, table
from benchmarks.peers.participants import Participant
from residua import mechanisms as m
from residua.planning.candidates import kinds
from residua.planning.suite import named
from residua.planning.workload import Workload

EPS, DELTA = 1.0, 1e-6
WORKLOADS = ("pure 0.05", "pure 0.1", "pure 0.5", "Laplace 10", "Gaussian 20", "mixed",
             "half planned", "weekly report", "explorer")  # fmt: skip
PEERS = (
    Participant("OpenDP, zCDP filter", "opendp", {"concentrated": True}),
    Participant("OpenDP, pure filter", "opendp", {"concentrated": False}),
    Participant("tmlt.core, zCDP budget", "tmlt.core", {"concentrated": True}),
    Participant("tmlt.core, pure budget", "tmlt.core", {"concentrated": False}),
    Participant("dp_accounting, one Rényi order by hand", "dp-accounting"),
)
MOST = 2000


def plain(mechanism: Any) -> dict[str, Any]:
    """A mechanism as the adapters read it."""
    match mechanism:
        case m.Gaussian():
            return gaussian(mechanism.sigma)
        case m.Laplace():
            return laplace(mechanism.scale)
        case m.PureDp():
            return pure_dp(mechanism.eps)
        case m.SubsampledGaussian():
            return subsampled(mechanism.sigma, mechanism.rate)
    return {"kind": mechanism.kind}


def sequence(workload: Workload) -> Parts:
    """The queries in order, as long as any peer could want."""
    return [[plain(run.query), run.times] for run in workload.runs(MOST)]


def measure(run: Run) -> Section:
    names = run.few(list(WORKLOADS), 2)
    workloads = [named(name, EPS, DELTA) for name in names]
    filters = ["basic", "gdp_residue"] if run.quick else list(kinds())
    measured = rz.compare_filters(EPS, DELTA, workloads, filters)
    optimum = {row["workload"]: row["optimum"] for row in measured.to_dict()["workloads"]}
    ours = {f: {w: measured.ratio(w, f) for w in names} for f in measured.filters}
    rows = [["most possible", *(str(optimum[name]) for name in names)]]
    rows += [[f"residua, {f.replace('_', ' ')}", *(_ratio(ours[f][w]) for w in names)]
             for f in ours]  # fmt: skip
    better = []
    for peer in PEERS:
        cells = []
        for name, workload in zip(names, workloads, strict=True):
            queries = sequence(workload)
            expected = plain((workload.expected or workload.queries)[0].query)
            answer = run.field.ask(
                peer, "admitted", 90.0, eps=EPS, delta=DELTA, queries=queries, expected=expected
            )
            if not answer.given:
                cells.append("—" if answer.cannot else "error")
                continue
            ratio = answer.value / optimum[name]
            cells.append(_ratio(ratio))
            auto = ours.get("auto", {}).get(name)
            if auto is not None and ratio > auto:
                better.append(
                    f"{name}: {peer.label} admits {ratio:.2f} of the optimum, auto {auto:.2f}"
                )
        rows.append([peer.label, *cells])
    return Section(
        "admitted",
        "Utility: how much a filter admits",
        f"Share of the non-adaptive optimum within ({EPS:g}, {DELTA:g}), admitted before the first "
        "refusal; a dash where a filter has no such query. prv_accountant, autodp, riskcal and "
        "Opacus have no filter, and nothing that can be stopped at any time. More workloads and "
        "budgets: [choosing a filter](choosing-a-filter.md).",
        (table(["", *names], rows),),
        (),
        tuple(better),
    )


def _ratio(ratio: float | None) -> str:
    from residua.planning.comparison import shown

    return shown(ratio)
