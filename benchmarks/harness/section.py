"""What a benchmark reports: plain values that JSON can hold and any writer can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """Text in cells; the first column is a name, the others are figures."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class Goal:
    """A figure beside its target."""

    what: str
    figure: str
    target: str
    met: bool


@dataclass(frozen=True)
class Plot:
    """Lines (`x` numbers) or bars (`x` words); one list of values for each name."""

    name: str
    title: str
    x_label: str
    y_label: str
    x: tuple[Any, ...]
    series: dict[str, tuple[float | None, ...]]
    bars: bool = False
    log_x: bool = False
    log_y: bool = True


@dataclass(frozen=True)
class Section:
    """One benchmark. `better` are the figures in which a peer is ahead, computed, not chosen."""

    name: str
    title: str
    about: str
    tables: tuple[Table, ...] = ()
    goals: tuple[Goal, ...] = ()
    better: tuple[str, ...] = ()
    plots: tuple[Plot, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(found: dict[str, Any]) -> Section:
        tables = tuple(
            Table(tuple(t["heads"]), tuple(map(tuple, t["rows"])), t["caption"])
            for t in found["tables"]
        )
        plots = tuple(
            Plot(
                **p
                | {
                    "x": tuple(p["x"]),
                    "series": {name: tuple(values) for name, values in p["series"].items()},
                }
            )
            for p in found["plots"]
        )
        goals = tuple(Goal(**g) for g in found["goals"])
        words = {key: found[key] for key in ("name", "title", "about")}
        return Section(
            **words, tables=tables, goals=goals, better=tuple(found["better"]), plots=plots
        )


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> Table:
    return Table(tuple(heads), tuple(tuple(row) for row in rows), caption)


def time_text(seconds: float | None) -> str:
    """A duration with three digits and the unit that fits."""
    if seconds is None:
        return ""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def at_least(what: str, ratio: float, target: float) -> Goal:
    return Goal(what, f"{ratio:.3g} x", f"at least {target:g} x", ratio >= target)
