"""The contours made lately of one composition, by what they were made for.

Making one is a pure function of the composition and that, so it does not matter to any result
whether one is found here or made again. Twins of a PLD share them.
"""

from __future__ import annotations

from residuum.pld.contour import Contour
from residuum.pld.parted import Parted

Purpose = tuple[float, float, float, float, tuple[float, float, int] | None]
"""Where it is read, accuracy, room and sharpness, and the line of nodes to start from."""

_MOST = 64
_MOST_NODES = 1 << 18


class Lately:
    """A few contours, the last one first."""

    def __init__(self) -> None:
        self._kept: tuple[tuple[Purpose, Contour | Parted], ...] = ()

    def find(self, purpose: Purpose) -> Contour | Parted | None:
        """The contour made for exactly that, if it is still there."""
        return next((made for wanted, made in self._kept if wanted == purpose), None)

    def keep(self, purpose: Purpose, contour: Contour | Parted) -> None:
        """Add one, and drop the oldest while there are too many."""
        kept, nodes = [], 0
        for entry in ((purpose, contour), *self._kept[: _MOST - 1]):
            nodes += entry[1].line.count
            if nodes > _MOST_NODES:
                break
            kept.append(entry)
        self._kept = tuple(kept)
