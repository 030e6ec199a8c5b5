"""A picture with its numbers: what is computed, its caption, how it is drawn, and how it looks.

A picture is a frozen value. Its caption is built from its numbers, so a caption cannot say what
was not computed; the file carries it, so that a stale file is noticed.

**One look for every picture**: colours that colour-blind readers tell apart, room for a caption.
Colours are those of Okabe and Ito (2008); lines that share axes differ in their dashes as well.
Nothing global is touched: each figure is made, and saved, within its own settings.
"""

from __future__ import annotations

import math
import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from residua.bounds import Floats
from residua.errors import ArgumentError, MissingPackage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from residua.pld.pld import Pld


BUDGET: dict[str, Any] = {"color": "#000000", "linewidth": 2.2, "linestyle": "-"}
QUERY: dict[str, Any] = {"color": "#7f7f7f", "linewidth": 1.4, "linestyle": (0, (1, 1.4))}
FIRST: dict[str, Any] = {"color": "#0072B2", "linewidth": 1.6, "linestyle": (0, (6, 2))}
SECOND: dict[str, Any] = {
    "color": "#009E73",
    "linewidth": 1.6,
    "linestyle": (0, (6, 1.5, 1.2, 1.5)),
}
REAL: dict[str, Any] = {"color": "#D55E00", "linewidth": 1.9, "linestyle": "-"}
"""Lines for a budget, a query by itself, one plan, the other plan, and what is real."""

CYCLE = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442",
    "#7f7f7f", "#882255", "#332288", "#999933", "#AA4499", "#661100", "#44AA99",
)  # fmt: skip
"""For pictures with many lines; beyond eight of them, after Tol (2021)."""

_TIED = "\N{NO-BREAK SPACE}"
"""At which no line is broken."""
_NAME = re.compile(r"\b([RG])_(\{[^}]*\}|[0-9.]*[0-9])")


def canvas(
    width: float, height: float, caption: str = "", **grid: Any
) -> tuple[Figure, list[list[Axes]]]:
    """A figure with rows of panels (`grid` as for `subplots`), and its caption below them.

    Says what to install where it cannot be made.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ModuleNotFoundError as error:
        raise MissingPackage.behind(error, "residua.figures") from error
    # A caption of nine points has 14.2 letters an inch, and a line of it is 0.172 inches high.
    lines = wrap(caption, int(width * 14.2))
    below = 0.172 * len(lines) + (0.12 if lines else 0.0)
    share = below / (height + below)
    layout = ConstrainedLayoutEngine(rect=(0.0, share, 1.0, 1.0 - share))
    figure = Figure(figsize=(width, height + below), layout=layout)
    if lines:
        figure.text(
            0.1 / width, 0.06 / (height + below), "\n".join(lines),
            fontsize=9.0, color="0.2", va="bottom", linespacing=1.25,
        )  # fmt: skip
    rows = figure.subplots(**{"nrows": 1, "ncols": 1, "squeeze": False, **grid})
    panels = [list(row) for row in rows]
    for axes in (axes for row in panels for axes in row):
        axes.set_prop_cycle(color=CYCLE)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, color="0.9", linewidth=0.7)
        axes.set_axisbelow(True)
    return figure, panels


def annotate(axes: Axes, text: str, x: float, y: float, **how: Any) -> None:
    """Text in a panel, at a share of its width and height, on its own background."""
    box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "0.75"}
    settings = {"transform": axes.transAxes, "fontsize": 9, "bbox": box, **how}
    axes.text(x, y, text, **settings)


def wrap(caption: str, letters: int) -> list[str]:
    """A caption in lines, with `R_{1.4, 0.02}` as `R(1.4, 0.02)`, none of them broken.

    Mathematics would be placed letter by letter, and an SVG's text could not be searched.
    """
    whole = _NAME.sub(_as_text, caption)
    return [line.replace(_TIED, " ") for line in textwrap.wrap(whole, letters)]


def as_math(words: str) -> str:
    """Names of PLDs in a text as mathematics: `R_1.2`, `R_{1.4, 0.02}`, `G_1`."""
    return _NAME.sub(_as_subscript, words)


def _as_text(found: re.Match[str]) -> str:
    return f"{found[1]}({found[2].strip('{}')})".replace(" ", _TIED)


def _as_subscript(found: re.Match[str]) -> str:
    below = found[2].strip("{}").replace(", ", r",\,")
    return f"${found[1]}_{{{below}}}$"


def save(figure: Figure, path: Path, about: Mapping[str, str] | None = None) -> Path:
    """Write a figure, with what it is about in the file; the same figure is the same file."""
    from matplotlib import rc_context

    kind = path.suffix.lower()
    metadata: dict[str, str | None] = dict(about or {})
    if kind == ".svg":
        metadata |= {"Creator": "residua", "Date": None}
    else:
        metadata["Software"] = "residua"
    # Text stays text, and identifiers do not change from run to run.
    with rc_context({"svg.hashsalt": "residua", "svg.fonttype": "none"}):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=150, metadata=metadata if kind in (".svg", ".png") else None)
        except (OSError, ValueError) as error:
            raise ArgumentError(
                f"path must be a file that can be written, got {path} ({error})"
            ) from error
    return path


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

    def numbers(self) -> dict[str, Any]:
        """The numbers as plain data: those that were computed, and those that follow."""
        return _plain_fields(self)

    @abstractmethod
    def draw(self) -> Figure:
        """The picture, with its caption."""


def _plain_fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass, and its properties that are numbers."""
    names = [field.name for field in fields(value)]
    derived = (name for name, each in vars(type(value)).items() if isinstance(each, property))
    names += [name for name in derived if isinstance(getattr(value, name), float)]
    return {name: _plain(getattr(value, name)) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "hockey_stick"):
        return repr(value)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return _plain_fields(value)
    return None if value == math.inf else value


def write(picture: Picture, directory: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Draw a picture into files of a directory, one of each format."""
    figure = picture.draw()
    about = {"Title": picture.title, "Description": picture.caption}
    paths = [directory / f"{picture.name}.{kind}" for kind in formats]
    return [save(figure, path, about) for path in paths]


TYPE_1_ERRORS = np.linspace(0.0, 1.0, 501)
"""Where tradeoff curves are drawn."""


def tradeoff_line(pld: Pld) -> tuple[Floats, Floats]:
    """Type I errors in [0, 1] and least type II errors, from below."""
    return TYPE_1_ERRORS, np.asarray(pld.tradeoff(TYPE_1_ERRORS))
