"""A thousand equal queries, composed and read: Gaussians, and subsampled Gaussians."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.parts import Parts, gaussian, subsampled
from benchmarks.harness.run import Run
from benchmarks.harness.section import Goal, Plot, Section, Table, table, time_text
from benchmarks.harness.speed import Work, all_of, goal, goals, times_table
from benchmarks.peers.participants import (
    AUTODP_RDP,
    GOOGLE_COARSE,
    GOOGLE_FINE,
    GOOGLE_RDP,
    MICROSOFT,
    OPACUS_GDP,
    OPACUS_PRV,
    OPACUS_RDP,
    OPENDP,
    OURS,
    US,
)
from benchmarks.peers.race import race

COUNT = 1000
DELTA = 1e-6
RACERS = (
    US,
    GOOGLE_FINE,
    GOOGLE_COARSE,
    GOOGLE_RDP,
    MICROSOFT,
    OPACUS_PRV,
    OPACUS_RDP,
    OPACUS_GDP,
    AUTODP_RDP,
    OPENDP,
)
BOTH_ENDS = (US, GOOGLE_FINE, GOOGLE_COARSE, MICROSOFT)


def gaussians(share: float) -> Parts:
    return [[gaussian(38.0 + 4.0 * share), COUNT]]


def sampled(share: float) -> Parts:
    return [[subsampled(0.95 + 0.1 * share, 0.01), COUNT]]


def inputs(run: Run, made: Any, seed: int) -> list[dict[str, Any]]:
    shares = np.random.default_rng([9, seed]).uniform(size=1 + run.repeats).tolist()
    return [{"parts": made(share), "deltas": [DELTA]} for share in shares]


def measure(run: Run) -> Section:
    works = []
    for place, (name, made) in enumerate(
        (("Gaussians", gaussians), ("subsampled Gaussians (q = 0.01)", sampled))
    ):
        asked = inputs(run, made, place)
        results = race(run.field, RACERS, "epsilons", asked)
        ends = run.field.ask(US, "epsilon_ends", **asked[0]).value[0]
        title = f"{COUNT:,} equal {name}, eps at {DELTA:g}"
        works.append(Work(title, tuple(results), tuple(ends)))
    results = race(run.field, BOTH_ENDS, "epsilon_ends", inputs(run, sampled, 2))
    both = Work(f"{COUNT:,} equal subsampled Gaussians, both ends of eps", tuple(results))
    return Section(
        "many_equal",
        "A thousand equal queries",
        "Building is part of the work. The last table is of those who bound eps from both sides: "
        "the width between the ends is what is known of it. dp_accounting's ends are two PLDs, "
        "one rounded down and one up; floating-point errors are charged in ours alone.",
        (*(times_table(work, "eps") for work in works), widths_table(both)),
        goals(goal(works[0], GOOGLE_FINE.label, 10.0), *interval_goals(both)),
        all_of([*works, both]),
        (
            Plot(
                "many-equal",
                f"{COUNT:,} equal subsampled Gaussians: both ends of eps",
                "",
                "processor seconds",
                tuple(both.times),
                {"time": tuple(both.times.values())},
                bars=True,
                log_y=False,
            ),
        ),
    )


def widths(work: Work) -> dict[str, float]:
    """How far the ends are apart, of who has both."""
    found = {}
    for result in work.results:
        if result.cpu is not None:
            low, high = result.answer.value[0]
            found[result.who.label] = high - low
    return found


def widths_table(work: Work) -> Table:
    rows, apart = [], widths(work)
    for result in work.results:
        label = result.who.label
        if label not in apart:
            rows.append([label, result.why[:60], "", ""])
            continue
        ratio = work.ratio(label)
        shown = f"{ratio:.3g} x" if ratio else ""
        rows.append([label, time_text(result.cpu), shown, f"{apart[label]:.1e}"])
    return table(["", "processor time", "of ours", "width in eps"], rows, work.name)


def interval_goals(work: Work) -> list[Goal | None]:
    """Beside the fastest of all, at a width that is no larger than the narrowest of all."""
    rivals = {label: time for label, time in work.times.items() if label != OURS}
    apart = widths(work)
    if not rivals or OURS not in apart:
        return []
    fastest = min(rivals, key=rivals.__getitem__)
    narrowest = min(width for label, width in apart.items() if label != OURS)
    what = f"{work.name}: our width beside the narrowest peer's"
    figure = f"{apart[OURS]:.1e} beside {narrowest:.1e}"
    width = Goal(what, figure, "no wider", apart[OURS] <= narrowest)
    return [goal(work, fastest, 5.0), width]
