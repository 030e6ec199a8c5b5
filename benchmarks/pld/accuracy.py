"""eps for a given delta beside the exact value in mpmath, down to a delta of 1e-30."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.harness import truth
from benchmarks.harness.parts import Parts, gaussian, laplace, pure_dp, shown, subsampled
from benchmarks.harness.run import Run
from benchmarks.harness.section import Goal, Plot, Section, Table, table
from benchmarks.peers.participants import ACCOUNTANTS, US

DELTAS = [1e-6, 1e-12, 1e-20, 1e-30]
SETTINGS: list[Parts] = [
    [[gaussian(40.0), 1000]],
    [[gaussian(1.0), 1]],
    [[laplace(20.0), 100]],
    [[pure_dp(0.05), 1000]],
    [[subsampled(1.0, 0.01), 1]],
    [[gaussian(20.0), 10], [laplace(20.0), 10]],
]
PLOTTED = 0


def error(value: Any, exact: float) -> str:
    """Relative, with its sign: below the truth is the wrong side."""
    if isinstance(value, str):
        return "error"
    if not math.isfinite(value):
        return "infinite" if value > 0 else "nan"
    if value < 0:
        return "negative"
    return f"{(value - exact) / exact:+.0e}"


def exact(run: Run, parts: Parts) -> list[float]:
    """By mpmath alone; our interval is where its search begins."""
    ends = run.field.ask(US, "epsilon_ends", parts=parts, deltas=DELTAS).value
    return [truth.epsilon(parts, d, *e) for d, e in zip(DELTAS, ends, strict=True)]


def measure(run: Run) -> Section:
    tables: list[Table] = []
    wrong, finite, total = 0, 0, 0
    better: list[str] = []
    plots: list[Plot] = []
    for place, parts in enumerate(run.few(SETTINGS, 2)):
        values = exact(run, parts)
        rows, lines = [], {}
        for who in ACCOUNTANTS:
            answer = run.field.ask(who, "epsilons", 30.0, parts=parts, deltas=DELTAS)
            given = answer.value if answer.given else [answer.error] * len(DELTAS)
            if answer.cannot:
                rows.append([who.label, answer.cannot, *[""] * (len(DELTAS) - 1)])
                continue
            pairs = list(zip(given, values, strict=True))
            rows.append([who.label, *(error(value, e) for value, e in pairs)])
            lines[who.label] = tuple(_positive(value, e) for value, e in pairs)
            if who == US:
                total += len(pairs)
                wrong += sum(value < e for value, e in pairs)
                finite += sum(math.isfinite(float(value)) for value in given)
                ours = lines[who.label]
            else:
                better += [
                    f"{shown(parts)} at delta {delta:g}: {who.label} is closer to the exact eps, "
                    f"{theirs:.0e} above it where we are {mine:.0e} above"
                    for delta, theirs, mine in zip(DELTAS, lines[who.label], ours, strict=True)
                    if theirs is not None and mine is not None and theirs < mine
                ]
        named = [f"delta {d:g}: eps {e:.6g}" for d, e in zip(DELTAS, values, strict=True)]
        tables.append(table(["", *named], rows, shown(parts)))
        if place == PLOTTED:
            title = f"Relative error of eps above the exact value: {shown(parts)}"
            plots.append(
                Plot("accuracy", title, "delta", "error", tuple(DELTAS), lines, log_x=True)
            )
    return Section(
        "accuracy",
        "Accuracy down to 1e-30",
        "Relative error of eps for a given delta, against mpmath. A minus sign means less than the "
        "exact value: privacy is claimed that is not there.",
        tuple(tables),
        (
            Goal("answers of ours below the exact value", str(wrong), "0", wrong == 0),
            Goal("finite answers of ours", f"{finite} of {total}", "all", finite == total),
        ),
        tuple(better),
        tuple(plots),
    )


def _positive(value: Any, exact: float) -> float | None:
    """The error of an answer that holds; nothing where it does not."""
    if isinstance(value, str) or not math.isfinite(value) or value < exact:
        return None
    return float(value - exact) / exact
