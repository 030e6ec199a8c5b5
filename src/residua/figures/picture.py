"""A picture with its numbers: what is computed, what is said of it, and how it is drawn.

A picture is a frozen value. Its caption is built from its numbers, so a caption cannot say what
was not computed; the file carries it, so that a stale file can be told.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from residua.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "Picture", "write"]

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
