"""What comes back for arguments that mean nothing: a number is the wrong answer."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.harness.parts import Parts, gaussian, laplace, subsampled
from benchmarks.harness.run import Run
from benchmarks.harness.section import Goal, Section, table
from benchmarks.peers.participants import (
    AUTODP_RDP,
    GOOGLE_FINE,
    GOOGLE_RDP,
    MICROSOFT,
    OPACUS_PRV,
    OPACUS_RDP,
    OPENDP,
    US,
)
from benchmarks.peers.worker import Answer

NAN, INF = math.nan, math.inf
WHO = (US, GOOGLE_FINE, GOOGLE_RDP, MICROSOFT, OPACUS_PRV, OPACUS_RDP, AUTODP_RDP, OPENDP)
CASES: dict[str, tuple[Parts, float]] = {
    "delta = NaN": ([[gaussian(4.0), 10]], NAN),
    "delta = -0.1": ([[gaussian(4.0), 10]], -0.1),
    "delta = 1.5": ([[gaussian(4.0), 10]], 1.5),
    "sigma = NaN": ([[gaussian(NAN), 10]], 1e-6),
    "sigma = -1": ([[gaussian(-1.0), 10]], 1e-6),
    "sigma = 0": ([[gaussian(0.0), 10]], 1e-6),
    "sigma = inf": ([[gaussian(INF), 10]], 1e-6),
    "scale = -1": ([[laplace(-1.0), 10]], 1e-6),
    "rate = 1.5": ([[subsampled(1.0, 1.5), 10]], 1e-6),
    "rate = -0.1": ([[subsampled(1.0, -0.1), 10]], 1e-6),
    "rate = NaN": ([[subsampled(1.0, NAN), 10]], 1e-6),
    "count = -1": ([[gaussian(4.0), -1]], 1e-6),
    "count = 2.5": ([[gaussian(4.0), 2.5]], 1e-6),
}
RIGHT = {"sigma = 0": "inf", "sigma = inf": "0"}
"""Limits that have a meaning: no noise, and nothing but noise."""


def text(answer: Answer) -> str:
    """An error in a word, or the number that came back."""
    if answer.cannot:
        return "not offered"
    value: Any = answer.error if answer.error else answer.value[0]
    if isinstance(value, str):
        return "refused" if "Error" in value or "Exception" in value else value
    return "NaN" if math.isnan(value) else f"{value:.4g}"


def measure(run: Run) -> Section:
    rows, numbers = [], {who.label: 0 for who in WHO}
    for case, (parts, delta) in run.few(list(CASES.items()), 4):
        cells = []
        for who in WHO:
            said = text(run.field.ask(who, "epsilons", 15.0, parts=parts, deltas=[delta]))
            cells.append(said)
            numbers[who.label] += said not in ("refused", "not offered", RIGHT.get(case))
        rows.append([case, *cells])
    rows.append(["numbers for nonsense", *(str(numbers[who.label]) for who in WHO)])
    ours = numbers[US.label]
    return Section(
        "bad_inputs",
        "Arguments that mean nothing",
        "eps for ten queries. “Refused” is an error of any kind; a number or NaN would go on into "
        "somebody's budget.",
        (table(["", *(who.label for who in WHO)], rows),),
        (Goal("numbers of ours for nonsense", str(ours), "0", ours == 0),),
    )
