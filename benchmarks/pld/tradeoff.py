"""The tradeoff curve at a thousand levels: the least type II error for each type I error."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.parts import Parts, gaussian, laplace, shown, subsampled
from benchmarks.harness.run import Run
from benchmarks.harness.section import Section, Table, table, time_text
from benchmarks.harness.speed import Work, all_of, goal, goals
from benchmarks.peers.participants import (
    RISKCAL_CLOSED,
    RISKCAL_COARSE,
    RISKCAL_FINE,
    US,
    Participant,
)
from benchmarks.peers.race import Result, race

LEVELS = 1000
AUTODP = Participant("autodp", "autodp")
RACERS = (US, RISKCAL_FINE, RISKCAL_COARSE, RISKCAL_CLOSED, AUTODP)


def works(share: float) -> dict[str, Parts]:
    return {
        "Gaussian": [[gaussian(4.0 + share), 1]],
        "100 Gaussians": [[gaussian(9.0 + 2.0 * share), 100]],
        "100 Laplaces": [[laplace(9.0 + 2.0 * share), 100]],
        "1,000 subsampled Gaussians": [[subsampled(0.95 + 0.1 * share, 0.01), 1000]],
    }


def compared(name: str, work: Work, ends: list[list[float]]) -> Table:
    """Times, and how far each curve is from the proven one: too high claims too much privacy."""
    rows = []
    width = max(high - low for low, high in ends)
    for result in work.results:
        label = result.who.label
        if result.cpu is None:
            rows.append([label, result.why[:60], "", "", ""])
            continue
        ratio = work.ratio(label)
        above, off = errors(result, ends)
        where = [f"{above} of {len(ends)}", f"{off:.1e}"]
        if label == US.label:
            where = ["0, proven", f"{width:.1e}"]
        rows.append([label, time_text(result.cpu), f"{ratio:.3g} x" if ratio else "", *where])
    heads = ["", "processor time", "of ours", "levels where it claims too much", "largest error"]
    return table(heads, rows, f"{name}, {len(ends):,} levels")


def errors(result: Result, ends: list[list[float]]) -> tuple[int, float]:
    values = [float(value) for value in result.answer.value]
    above = sum(value > high for value, (_, high) in zip(values, ends, strict=True))
    far = max(max(v - high, low - v, 0.0) for v, (low, high) in zip(values, ends, strict=True))
    return above, far


def measure(run: Run) -> Section:
    count = 20 if run.quick else LEVELS
    alphas = np.linspace(0.0, 1.0, count + 2)[1:-1].tolist()
    rng = np.random.default_rng(5)
    shares = rng.uniform(size=1 + run.repeats).tolist()
    tables, found, aims = [], [], []
    for name in works(0.0):
        inputs: list[dict[str, Any]] = [
            {"parts": works(share)[name], "alphas": alphas} for share in shares
        ]
        results = race(run.field, RACERS, "tradeoff", inputs)
        ends = run.field.ask(US, "tradeoff_ends", **inputs[0]).value
        work = Work(f"Tradeoff curve of {name}", tuple(results))
        found.append(work)
        tables.append(compared(shown(inputs[0]["parts"]), work, ends))
        aims.append(goal(work, RISKCAL_FINE.label, 1.0))
    return Section(
        "tradeoff",
        "The tradeoff curve at a thousand levels",
        "The same work for each: the PLD is built, composed and read at every level. riskcal reads "
        "dp_accounting's PLDs, by default with a grid of 1e-4; for Gaussians it has the formula "
        "too. A curve above the true one claims more privacy than there is.",
        tuple(tables),
        goals(*aims),
        all_of(found),
    )
