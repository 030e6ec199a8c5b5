"""What is known of a mechanism's privacy loss, for people to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from residua import checks
from residua.bounds import Interval
from residua.pld.pld import Pld

if TYPE_CHECKING:
    from residua.mechanisms.mechanism import Mechanism


@dataclass(frozen=True)
class Direction:
    """One direction: the PLD above, and `eps` at the asked `delta` with all widths included."""

    name: str
    pld: Pld
    epsilon: Interval


@dataclass(frozen=True)
class Explanation:
    """The answer of `explain()`; `print` it."""

    mechanism: Mechanism
    relation: str
    delta: float
    directions: tuple[Direction, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        m = self.mechanism
        lines = [
            f"{m!r}",
            *(f"  pair       {pair}" for pair in m.pairs()),
            f"  reference  {m.reference}",
            f"  relation   {self.relation}",
        ]
        for one in self.directions:
            lines.append(f"  {one.name:<9}  {one.pld!r}")
            lines.append(
                f"             eps at delta {self.delta:g}: "
                f"between {one.epsilon.lo:.9g} and {one.epsilon.hi:.9g}"
            )
        lines += [f"  note       {note}" for note in self.notes]
        return "\n".join(lines)


def explain(mechanism: Mechanism, relation: str | None, delta: float) -> Explanation:
    """Both sides of the loss of each direction, and the mechanism's own remarks."""
    level = checks.probability("delta", delta)
    name = mechanism.supported[0] if relation is None else relation
    above = mechanism.plds(name)
    below = mechanism.plds(name, side="below")
    rows = []
    for direction, pld in above.items():
        low = float(below[direction].epsilon_bounds(level).lo)
        rows.append(Direction(direction, pld, Interval(low, max(low, pld.epsilon(level)))))
    return Explanation(mechanism, name, level, tuple(rows), mechanism.notes())
