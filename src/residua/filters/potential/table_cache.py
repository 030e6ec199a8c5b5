"""Value tables on disk, so that each is worked out once.

A file is named by the hash of everything the table is made of (grid, steps, prices), and carries
the hash of its own contents. It is read only if both agree and a few levels satisfy the residue
condition; anything else is as if the file were not there. Files are written beside their place and
renamed, so a reader never sees half of one. `XDG_CACHE_HOME` says where, by default `~/.cache`.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from residua.bounds import Floats
from residua.filters.potential.grid import Grid
from residua.filters.potential.value_table import Item, Progress, Table, value_table

_FORMAT = "residua value table 2"
_PROBES = 5


def cached_table(grid: Grid, items: Sequence[Item], progress: Progress | None = None) -> Table:
    """The table of a price list, from disk if it is there and in order."""
    key = _key(grid, items)
    path = _directory() / f"{key}.npz"
    found = _read(path, key, grid, items)
    if found is not None:
        return found
    made = value_table(grid, items, progress=progress)
    _write(path, key, made)
    return made


def _directory() -> Path:
    home = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path.home() / ".cache"
    return base / "residua" / "tables"


def _key(grid: Grid, items: Sequence[Item]) -> str:
    digest = hashlib.sha256(f"{_FORMAT} {grid!r}".encode())
    for item in items:
        digest.update(f"{item.price} {item.step.low} {item.step.masses.size};".encode())
        digest.update(item.step.excess.tobytes())
        digest.update(item.step.masses.tobytes())
    return digest.hexdigest()


def _content(key: str, levels: Floats) -> str:
    return hashlib.sha256(f"{key} {levels.shape}".encode() + levels.tobytes()).hexdigest()


def _read(path: Path, key: str, grid: Grid, items: Sequence[Item]) -> Table | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            levels = np.asarray(stored["levels"], dtype=np.float64)
            content = str(stored["content"])
    except Exception:  # whatever is wrong with the file, it is worked out anew
        return None
    sound = (
        levels.ndim == 2
        and levels.shape[0] >= 1
        and levels.shape[1] == grid.size
        and content == _content(key, levels)
        and grid.fits(levels[-1])
        and all(_consistent(levels, items, int(s)) for s in _probes(len(levels)))
    )
    if not sound:
        return None
    levels.flags.writeable = False
    return Table(grid, levels)


def _probes(count: int) -> Floats:
    return np.unique(np.linspace(0, count - 1, _PROBES).astype(np.int64))


def _consistent(levels: Floats, items: Sequence[Item], s: int) -> bool:
    """Whether level `s` lies above the one before and what the items make of lower ones."""
    below = [levels[s - 1]] if s else []
    below += [item.step.after(levels[s - item.price]) for item in items if item.price <= s]
    return bool(np.all(levels[s] >= 0.0)) and all(bool(np.all(b <= levels[s])) for b in below)


def _write(path: Path, key: str, table: Table) -> None:
    """Keep a table; where that is not possible, go without."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, levels=table.levels, content=_content(key, table.levels))
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError:
        return
