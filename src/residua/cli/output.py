"""What commands print: one JSON object with `--json`, Rich tables otherwise.

Decimals shown to a reader keep their meaning: lower ends are rounded down and upper ends up, so a
printed interval contains the computed one. JSON carries the floats themselves, every digit; since
JSON has no infinity, an infinite value is the string "inf" there.
"""

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, Inexact
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from residua.bounds import Interval

__all__ = [
    "AsJson",
    "below",
    "above",
    "bounds",
    "columns",
    "number",
    "print_columns",
    "print_fields",
    "print_json",
    "print_table",
]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]

DIGITS = 9
MIN_BESIDE = 24
"""The least room in which text is wrapped beside other fields."""


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
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    # Half of a pair, as damaged texts have, cannot be printed; this is how JSON escapes it.
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
        beside = width - start >= MIN_BESIDE
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
            """Rich would leave with 1, which means something else here."""
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
