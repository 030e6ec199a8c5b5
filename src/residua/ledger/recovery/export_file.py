"""The destination of an export: a file by its path, or an open stream."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError

_SQLITE = b"SQLite format 3\0"
"""How a file of SQLite begins."""
_KEPT = re.compile(
    re.escape(_SQLITE) + rb"|\xd9\xd5\x05\xf9\x20\xa1\x63\xd7|\x37\x7f\x06[\x82\x83]"
    rb'|[0-9a-f]{16} \{"incarnation"'
)
"""How a database begins, what lies beside one, and an anchor."""


def is_database(path: Path) -> bool:
    """Whether a file is a database of SQLite. Raises `OSError` where it cannot be read."""
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def check_spares(what: str, path: Path) -> None:
    """Raise where an export would be written over a database or an anchor."""
    if path.is_file():
        with path.open("rb") as file:
            if _KEPT.match(file.read(64)):
                raise ArgumentError(f"{what} must not be a database or an anchor, got {path}")


def write_lines(to: str | Path | IO[str], lines: Iterable[str]) -> int:
    """Write the lines of an export; their number."""
    if isinstance(to, str | Path):
        try:
            check_spares("to", Path(to))
            with Path(to).open("w", encoding="ascii") as file:
                return _written(file, lines)
        except OSError as error:
            raise ArgumentError(f"to must be a writable file, got {to} ({error})") from None
    try:
        to.write("")
    except (AttributeError, TypeError):
        raise ArgumentTypeError(
            f"to must be a path or a text file, got {checks.shown(to)}"
        ) from None
    return _written(to, lines)


def _written(file: IO[str], lines: Iterable[str]) -> int:
    count = 0
    for line in lines:
        file.write(line)
        count += 1
    return count
