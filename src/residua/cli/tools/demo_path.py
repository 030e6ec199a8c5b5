"""Room for the ledger of a demonstration: nothing makes way but what a demonstration made."""

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from residua.errors import ArgumentError, ResiduaError

if TYPE_CHECKING:
    from residua.filters.base import Filter

__all__ = ["data_of", "room"]

BESIDE = ("", ".anchor", "-wal", "-shm", "-journal")
"""How the names of the files of one ledger end."""


def data_of(name: str) -> str:
    """The label of the data of one of the demonstration's budgets."""
    return f"visits, for {name}"


def room(out: Path, filters: Mapping[str, "Filter"]) -> tuple[Path, list[Path]]:
    """Where in `out` a new ledger may be made, and what was found at the names before it.

    The names are demo.db, demo-2.db and so on. Taken is the first that is free or has a ledger
    whose budgets are exactly those of a demonstration, with these filters, which is deleted.
    """
    if out.exists() and not out.is_dir():
        raise ArgumentError(f"out must be a directory, got {str(out)!r}, which is a file")
    kept: list[Path] = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for number in count(1):
            path = out / ("demo.db" if number == 1 else f"demo-{number}.db")
            files = [path.with_name(path.name + end) for end in BESIDE]
            there = [file for file in files if file.exists() or file.is_symlink()]
            if not there or _is_demonstration(path, filters):
                break
            kept.append(there[0])
        for old in there:
            old.unlink(missing_ok=True)
        path.touch()
        path.unlink()
    except OSError as error:
        raise ArgumentError(
            f"out must be a directory to write to, got {str(out)!r} ({error})"
        ) from None
    return path, kept


def _is_demonstration(path: Path, filters: Mapping[str, "Filter"]) -> bool:
    """Whether a file is a ledger with these budgets and no others; read only."""
    from residua.ledger.api.opening import open_ledger

    if not path.is_file() or path.stat().st_size == 0:
        return False
    try:
        with open_ledger(path, read_only=True) as ledger:
            found = {one.name: (one.filter.to_dict(), one.data) for one in ledger.budgets()}
    except ResiduaError:
        return False
    return found == {name: (each.to_dict(), data_of(name)) for name, each in filters.items()}
