"""Saving a picture: the numbers stand without it, so a missing matplotlib is no failure."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from residua.errors import ArgumentError, ResiduaError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from residua.adversary.strategy import Strategy

__all__ = ["Draw", "save", "tell", "tree"]

Draw = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Draw the adversary, if there is one, to this file."),
]


def save(draw: Callable[[], "Figure"], picture: Path) -> tuple[Path | None, str]:
    """The path of the saved picture, or why there is none."""
    try:
        figure = draw()
    except ResiduaError as error:
        if isinstance(error.__cause__, ModuleNotFoundError):
            return None, f"no picture: {error}"
        raise
    try:
        picture.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(picture, dpi=150)
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"out must be a directory to write in, got {picture.parent} ({error})"
        ) from error
    return picture, ""


def tree(strategy: "Strategy | None", picture: Path | None) -> tuple[Path | None, str]:
    """Draw an adversary where that is wanted, and there is one."""
    if picture is None:
        return None, ""
    if strategy is None:
        return None, "no picture: no adversary was found to exceed it"
    from residua.errors import TooLargeError
    from residua.figures import style
    from residua.figures.strategy_tree import strategy_tree

    about = {"Title": "The adversary", "Description": str(strategy)}
    try:
        return style.save(strategy_tree(strategy), picture, about), ""
    except TooLargeError as error:
        return None, f"no picture: {error}"
    except ResiduaError as error:
        if isinstance(error.__cause__, ModuleNotFoundError):
            return None, f"no picture: {error}"
        raise


def tell(wanted: Path | None, picture: Path | None, trouble: str) -> None:
    """Say where a picture is, or why there is none, if one was wanted."""
    if wanted is not None:
        print(f"\n{trouble}" if picture is None else f"\nthe adversary, drawn: {picture}")
