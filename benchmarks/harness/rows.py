"""What a benchmark reports: one row a comparison, with its target and both sides' answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A threshold on the figure of a row; `unit` is `x` for ratios, else a unit of time."""

    threshold: float
    unit: str
    at_least: bool

    def met(self, figure: float) -> bool:
        return figure >= self.threshold if self.at_least else figure < self.threshold

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<'} {self.threshold:g} {self.unit}"


def times_faster(threshold: float) -> Target:
    return Target(threshold, "x", at_least=True)


def milliseconds_below(threshold: float) -> Target:
    return Target(threshold, "ms", at_least=False)


@dataclass(frozen=True)
class Row:
    """One line of the table.

    `work` is what was timed, `ours_ms` and `peer_ms` the median times, `proven` the interval
    of the final read and `peer_value` what the peer says it is; `tighter` counts the reads
    of a stream where our upper bound is at most the peer's.
    """

    work: str
    ours_ms: float
    target: Target | None = None
    peer: str | None = None
    peer_ms: float | None = None
    proven: tuple[float, float] | None = None
    peer_value: float | None = None
    tighter: str = ""
    note: str = ""

    @property
    def figure(self) -> float:
        """The peer's time over ours, or our time in milliseconds where there is no peer."""
        return self.ours_ms if self.peer_ms is None else self.peer_ms / self.ours_ms

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        return "PASS" if self.target.met(self.figure) else "FAIL"

    @property
    def peer_standing(self) -> str:
        """Where the peer's number lies; below the proven interval it understates the loss."""
        if self.proven is None or self.peer_value is None:
            return ""
        lo, hi = self.proven
        if self.peer_value < lo:
            return "below: unsound"
        return "above: safe" if self.peer_value > hi else "inside"

    def to_json(self) -> dict[str, object]:
        return {
            "work": self.work,
            "peer": self.peer,
            "ours_ms": self.ours_ms,
            "peer_ms": self.peer_ms,
            "figure": self.figure,
            "unit": "ms" if self.peer_ms is None else "x",
            "target": None if self.target is None else str(self.target),
            "verdict": self.verdict or None,
            "proven": self.proven,
            "peer_value": self.peer_value,
            "peer_standing": self.peer_standing or None,
            "tighter": self.tighter or None,
            "note": self.note or None,
        }


def duration(milliseconds: float) -> str:
    if milliseconds < 1.0:
        return f"{1000.0 * milliseconds:.1f} us"
    return f"{milliseconds:.2f} ms" if milliseconds < 1000.0 else f"{milliseconds / 1000.0:.2f} s"


def aligned(lines: Sequence[tuple[str, ...]]) -> str:
    """Plain text in columns, the first line a heading."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([texts[0], "-" * max(map(len, texts)), *texts[1:]])


def speeds(rows: list[Row]) -> str:
    """Times, figures and targets."""
    lines = [("work", "ours", "peer", "peer time", "figure", "target", "", "")]
    for row in rows:
        lines.append(
            (
                row.work,
                duration(row.ours_ms),
                row.peer or "",
                "" if row.peer_ms is None else duration(row.peer_ms),
                duration(row.figure) if row.peer_ms is None else f"{row.figure:.1f} x",
                "" if row.target is None else str(row.target),
                row.verdict,
                row.note,
            )
        )
    return aligned(lines)


def answers(rows: list[Row]) -> str:
    """The proven interval of each final read beside the peer's number; empty if there is none."""
    lines = [
        ("work", "proven upper end", "width", "peer", "its number", "which is", "ours tighter")
    ]
    for row in rows:
        if row.proven is None:
            continue
        lo, hi = row.proven
        lines.append(
            (
                row.work,
                f"{hi:.9e}",
                f"{hi - lo:.1e}",
                row.peer or "",
                "" if row.peer_value is None else f"{row.peer_value:.9e}",
                row.peer_standing,
                row.tighter,
            )
        )
    return aligned(lines) if len(lines) > 1 else ""
