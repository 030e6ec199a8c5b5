"""A race as a section's parts: times beside ours, and where each answer lies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.harness.section import Goal, Table, at_least, table, time_text
from benchmarks.peers.participants import OURS
from benchmarks.peers.race import Result, seconds

Ends = tuple[float, float]


@dataclass(frozen=True)
class Work:
    """One race: what was done, who did it, and the proven ends of the last answer."""

    name: str
    results: tuple[Result, ...]
    ends: Ends | None = None

    @property
    def times(self) -> dict[str, float]:
        return seconds(self.results)

    def ratio(self, label: str) -> float | None:
        """Their time over ours."""
        times = self.times
        return times[label] / times[OURS] if label in times and OURS in times else None

    def least_ratio(self, label: str) -> float | None:
        """The same; of who did not finish, the time that was allowed over ours."""
        for result in self.results:
            late = re.match(r"no answer in ([\d.]+) s", result.why) if result.cpu is None else None
            if result.who.label == label and late and OURS in self.times:
                return float(late[1]) / self.times[OURS]
        return self.ratio(label)


def snapshot(answer: float, ends: Ends) -> str:
    """Where an answer lies that claims to be an upper bound."""
    low, high = ends
    if answer < low:
        return f"below the truth by {(low - answer) / abs(low):.1e}"
    return "within our interval" if answer <= high else f"above by {(answer - high) / high:.1e}"


def last(result: Result) -> float | None:
    """The last number of the first answer."""
    value = result.answer.value
    while isinstance(value, list) and value:
        value = value[-1]
    return float(value) if isinstance(value, int | float) else None


def times_table(work: Work, read: str) -> Table:
    """One line for each participant; who cannot do it says so."""
    rows = []
    for result in work.results:
        label, number = result.who.label, last(result)
        if result.cpu is None:
            rows.append([label, result.why[:60], "", "", ""])
            continue
        ratio = work.ratio(label)
        said = "" if number is None else f"{number:.6g}"
        where = "" if number is None or work.ends is None else snapshot(number, work.ends)
        if label == OURS and work.ends is not None:
            where = f"proven, width {work.ends[1] - work.ends[0]:.1e}"
        rows.append([label, time_text(result.cpu), f"{ratio:.3g} x" if ratio else "", said, where])
    heads = ["", "processor time", "of ours", read, "which is"]
    return table(heads, rows, work.name)


def faster(work: Work) -> list[str]:
    """Peers that took less time than we did, and whether their answer holds."""
    found = []
    for result in work.results:
        ratio = work.ratio(result.who.label)
        if ratio is None or ratio >= 1.0:
            continue
        number = last(result)
        where = "" if number is None or work.ends is None else snapshot(number, work.ends)
        answer = f"; its answer is {where}" if where else ""
        found.append(f"{work.name}: {result.who.label} takes {ratio:.2g} of our time{answer}")
    return found


def goal(work: Work, label: str, target: float) -> Goal | None:
    ratio = work.least_ratio(label)
    return None if ratio is None else at_least(f"{work.name}, beside {label}", ratio, target)


def goals(*found: Goal | None) -> tuple[Goal, ...]:
    return tuple(one for one in found if one is not None)


def all_of(works: Sequence[Work]) -> tuple[str, ...]:
    return tuple(line for work in works for line in faster(work))
