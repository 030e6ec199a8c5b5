"""Saving a picture: the numbers stand without it, so a missing matplotlib is no failure."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from residuum.errors import ArgumentError, ResiduumError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["save"]


def save(draw: Callable[[], "Figure"], picture: Path) -> tuple[Path | None, str]:
    """The path of the saved picture, or why there is none."""
    try:
        figure = draw()
    except ResiduumError as error:
        if isinstance(error.__cause__, ModuleNotFoundError):
            return None, f"no picture: {error}"
        raise
    try:
        picture.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(picture, dpi=150)
    except OSError as error:
        raise ArgumentError(
            f"out must be a directory to write in, got {picture.parent} ({error})"
        ) from error
    return picture, ""
