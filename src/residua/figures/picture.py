"""A picture with its numbers: what is computed, its caption, and how it is drawn.

A picture is a frozen value. Its caption is built from its numbers, so a caption cannot say what
was not computed; the file carries it, so that a stale file is noticed.

A tradeoff curve is drawn from the hockey-stick curve: `τ(α) = sup_x (1 - h(x) - x α)`, and 0
where that is negative. The sup over finitely many `x`, with `h` from above, is a lower bound of
the curve, and exact where these hold the kinks of a finite PLD. Lines are then thin: points that
lie on the chord of their neighbours, as far as an eye can tell, are left out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from residua.bounds import Floats
from residua.figures import style
from residua.pld.curve.reads import kinks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from residua.pld.pld import Pld


FORMATS = ("svg", "png")


class Picture(ABC):
    """Base of the pictures; subclasses are frozen dataclasses of numbers."""

    name: ClassVar[str]
    """Of its files, without the ending."""
    title: ClassVar[str]

    @property
    @abstractmethod
    def caption(self) -> str:
        """What is to be seen, with its numbers."""

    @abstractmethod
    def numbers(self) -> dict[str, Any]:
        """The numbers as plain data."""

    @abstractmethod
    def draw(self) -> Figure:
        """The picture, with its caption."""


def write(picture: Picture, directory: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Draw a picture into files of a directory, one of each format."""
    figure = picture.draw()
    about = {"Title": picture.title, "Description": picture.caption}
    paths = [directory / f"{picture.name}.{kind}" for kind in formats]
    return [style.save(figure, path, about) for path in paths]


TYPE_1_ERRORS = np.linspace(0.0, 1.0, 501)
"""Where tradeoff curves are drawn."""
LOG_THRESHOLDS = np.linspace(-14.0, 14.0, 1401)
"""Where hockey-stick curves are read for a tradeoff curve, beside their kinks."""
MOST_KINKS = 4096
"""A finite PLD with more is read at LOG_THRESHOLDS alone."""


def tradeoff_line(pld: Pld) -> tuple[Floats, Floats]:
    """Type I errors in [0, 1] and least type II errors, from below, for a symmetric PLD."""
    t = np.unique(np.concatenate([LOG_THRESHOLDS, kinks(pld, MOST_KINKS)]))
    x = np.exp(t)
    least = 1.0 - np.asarray(pld.hockey_stick(x))
    beta = np.array([max(0.0, float(np.max(least - x * alpha))) for alpha in TYPE_1_ERRORS])
    return thin(TYPE_1_ERRORS, beta)


def delta_line(pld: Pld, eps: Floats) -> Floats:
    """`delta(eps)` from above, at the points given."""
    return np.asarray(pld.delta(eps), dtype=np.float64)


def thin(x: Floats, y: Floats, share: float = 4e-4) -> tuple[Floats, Floats]:
    """The line without the points that are within a share of its height of what is left of it."""
    height = float(np.ptp(y)) or 1.0
    keep = np.zeros(x.size, dtype=bool)
    keep[[0, -1]] = True
    open_ = [(0, x.size - 1)]
    while open_:
        first, last = open_.pop()
        if last - first < 2:
            continue
        inner = slice(first + 1, last)
        chord = np.interp(x[inner], x[[first, last]], y[[first, last]])
        miss = np.abs(y[inner] - chord)
        worst = int(np.argmax(miss))
        if miss[worst] > share * height:
            middle = first + 1 + worst
            keep[middle] = True
            open_ += [(first, middle), (middle, last)]
    return x[keep], y[keep]
