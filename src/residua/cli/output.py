"""What commands print, draw and report while they work.

With `--json` a command prints one JSON object, otherwise Rich tables. Decimals shown to a reader
keep their meaning: lower ends are rounded down and upper ends up, so a printed interval contains
the computed one. JSON carries the floats themselves, every digit; since JSON has no infinity, an
infinite value is the string "inf" there. The numbers are complete without a picture, so a missing
matplotlib is not a failure.
"""

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, Inexact
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any, NamedTuple

from residua.errors import ArgumentError, ResiduaError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from residua.adversary.strategy import Strategy
    from residua.bounds import Interval


DIGITS = 9
"""Significant digits that tables show."""


def below(x: float, digits: int = DIGITS) -> str:
    """`x` to some significant digits, rounded down."""
    return _decimal(x, Context(prec=digits, rounding=ROUND_FLOOR))


def above(x: float, digits: int = DIGITS) -> str:
    """`x` to some significant digits, rounded up."""
    return _decimal(x, Context(prec=digits, rounding=ROUND_CEILING))


def number(x: float) -> float | str:
    """`x` as JSON can carry it."""
    return float(x) if math.isfinite(x) else str(float(x))


def bounds(interval: "Interval") -> dict[str, float | str]:
    """An interval of two floats as JSON can carry it."""
    return {"lo": number(float(interval.lo)), "hi": number(float(interval.hi))}


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    # Half of a surrogate pair cannot be printed; this is how JSON escapes it.
    print(text.encode(errors="backslashreplace").decode())


def print_fields(rows: Sequence[tuple[str, str]]) -> None:
    """Print names with their values, which may be of any length."""
    wide = max(len(name) for name, _ in rows) + 2
    for name, value in rows:
        print(f"{name:<{wide}}{value}")


def print_columns(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows whose last field is text: wrapped on a terminal, a line each elsewhere."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print("\n".join(columns(names, rows, width)))


def columns(
    names: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None
) -> list[str]:
    """Rows under their names, aligned; nothing is cut.

    The last field wraps within `width`, under the row where too little room is left beside it.
    """
    wide = [max(map(len, field)) for field in zip(names, *rows, strict=True)][:-1]
    start = sum(wide) + 2 * len(wide)
    lines = []
    for row in (names, *rows):
        first = "".join(f"{field:<{n}}  " for field, n in zip(row[:-1], wide, strict=True))
        if width is None:
            lines.append((first + row[-1]).rstrip())
            continue
        beside = width - start >= 24  # Narrower text is hard to read.
        indent = start if beside else 4
        text = textwrap.wrap(
            row[-1], max(width - indent, 1), break_long_words=False, break_on_hyphens=False
        )
        text = [" " * indent + line for line in text]
        if beside and text:
            text[0] = first + text[0][start:]
        else:
            text = [first.rstrip(), *text]
        lines.extend(text)
    return lines


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose first column reads left and whose numbers align right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    result = Table(box=box.SIMPLE_HEAD, show_header=any(columns))
    for place, column in enumerate(columns):
        # A query may wrap; digits may not.
        result.add_column(
            column, justify="right" if place else "left", no_wrap=place > 0, overflow="fold"
        )
    for row in rows:
        result.add_row(*row)

    class Printer(Console):
        def on_broken_pipe(self) -> None:
            """Raise: Rich would exit with 1, which means something else here."""
            raise

    console = Printer(markup=False, highlight=False)
    console.print(title, style="bold")
    console.print(result)


def _decimal(x: float, context: Context) -> str:
    if not math.isfinite(x) or x == 0.0:
        return str(float(x))
    digits = context.create_decimal(Decimal(x))
    if not context.flags[Inexact]:
        digits = digits.normalize(context)
    return f"{digits:f}" if -5 <= digits.adjusted() < context.prec else f"{digits:e}"


class Picture(NamedTuple):
    """A picture that was asked for, or why there is none."""

    file: str | None = None
    trouble: str = ""

    @property
    def words(self) -> str:
        """Where it is, or why there is none."""
        return self.trouble or str(self.file)


def save_picture(draw: Callable[[], "Figure"], folder: Path | None, name: str) -> Picture:
    """Draw and save a picture, if a directory was given for it."""
    if folder is None:
        return Picture()

    def save() -> str:
        figure = draw()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            figure.savefig(folder / name, dpi=150)
        except (OSError, ValueError) as error:
            raise ArgumentError(
                f"out must be a writable directory, got {folder} ({error})"
            ) from error
        return str(folder / name)

    return _drawn(save)


def draw_strategy(strategy: "Strategy | None", file: Path | None) -> Picture:
    """Draw an adversary, if one was found and a file for it was given."""
    if file is None:
        return Picture()
    if strategy is None:
        return Picture(trouble="no picture: no adversary was found to exceed it")
    from residua.figures.picture import save
    from residua.figures.strategy import strategy_tree

    about = {"Title": "The adversary", "Description": str(strategy)}
    return _drawn(lambda: str(save(strategy_tree(strategy), file, about)))


def _drawn(draw: Callable[[], str]) -> Picture:
    """The file of a picture; the numbers are complete without it, so a missing package is none."""
    from residua.errors import TooLargeError

    try:
        return Picture(draw())
    except ResiduaError as error:
        if isinstance(error, TooLargeError) or isinstance(error.__cause__, ModuleNotFoundError):
            return Picture(trouble=f"no picture: {error}")
        raise


@contextmanager
def progress(
    title: str, console: "Console | None" = None, delay: float = 1.0, plain: bool = False
) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar on standard error, only on a terminal and only after a while.

    Args:
        title: what the bar says until something else is reported.
        console: where it is shown.
        delay: seconds before it is shown.
        plain: whether each report is a line of text where there is no terminal.

    Returns:
        A function to report with: what comes next, how much is done, and of how much.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = console or Console(stderr=True)
    bar = Progress(console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(title, total=None)

    def report(what: str, done: int, total: int) -> None:
        if plain and not console.is_terminal:
            print(f"{what or title} ({done + 1} of {total})", file=console.file, flush=True)
        bar.update(task, description=what or title, completed=done, total=total)

    timer = Timer(delay, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield report
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
