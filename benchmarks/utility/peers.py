"""Filters of peers on random workloads: the columns beside ours.

Peers answer by asking their own filter one query after the other, up to the first refusal. A query
for which a peer has no privacy map is a refusal. dp_accounting has no filter; what counts for it is
its Rényi accountant with one order, fixed in advance, which is valid against an adaptive analyst.
prv_accountant, autodp, riskcal and Opacus have no filter, and nothing that can be stopped at any
time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.harness.parts import Parts, gaussian, laplace, pure_dp, subsampled
from benchmarks.peers.participants import Field, Participant
from residua import mechanisms as m
from residua.planning.comparison import SuiteComparison
from residua.planning.how_many import Progress
from residua.planning.workload import Workload

PEERS = (
    Participant("OpenDP, zCDP filter", "opendp", {"concentrated": True}),
    Participant("OpenDP, pure filter", "opendp", {"concentrated": False}),
    Participant("tmlt.core, zCDP budget", "tmlt.core", {"concentrated": True}),
    Participant("tmlt.core, pure budget", "tmlt.core", {"concentrated": False}),
    Participant("dp_accounting, one Rényi order by hand", "dp-accounting"),
)
MOST = 2000
"""More queries than any workload of the suite has room for."""
LIMIT = 90.0
"""Seconds for a workload."""


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
            return subsampled(mechanism.sigma, mechanism.sampling_rate)
        case m.SelfComposed():
            inner = plain(mechanism.mechanism)
            return {"kind": "self_composed", "mechanism": inner, "count": mechanism.count}
    return {"kind": mechanism.kind}


def sequence(workload: Workload) -> Parts:
    """The queries in order, as long as any peer could want."""
    return [[plain(run.query), run.times] for run in workload.runs(MOST)]


def with_peers(
    found: SuiteComparison,
    workloads: Sequence[Workload],
    field: Field,
    progress: Progress | None = None,
) -> tuple[SuiteComparison, list[str]]:
    """The comparison with a column for each peer that is installed, and notes on the others."""
    notes = []
    for peer in PEERS:
        home = field.home(peer.package)
        if home.python is None:
            notes.append(f"{peer.label}: {home.why}")
            continue
        counts, failed = [], []
        for place, workload in enumerate(workloads):
            if progress is not None:
                progress(f"{workload.name}: {peer.label}", place, len(workloads))
            answer = field.ask(
                peer,
                "admitted",
                LIMIT,
                eps=found.eps,
                delta=found.delta,
                queries=sequence(workload),
                expected=plain((workload.expected or workload.queries)[0].query),
            )
            counts.append(answer.value if answer.given else 0)
            failed += [] if answer.given else [answer.cannot or answer.error]
        if failed:
            notes.append(
                f"{peer.label}: no answer on {len(failed)} of {len(workloads)} workloads, counted"
                f" as nothing admitted (first reason: {failed[0]})"
            )
        rows = tuple(
            replace(row, admitted=(*row.admitted, count))
            for row, count in zip(found.rows, counts, strict=True)
        )
        found = replace(found, filters=(*found.filters, peer.label), rows=rows)
    return found, notes
