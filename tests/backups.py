"""Backups as the documentation makes them, and their restoration."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path


def sqlite(store: str, to: Path) -> Callable[[], None]:
    """`sqlite3 budgets.db ".backup copy.db"`; what is returned restores it."""
    path = Path(store.removeprefix("sqlite:///"))
    with sqlite3.connect(path) as source, sqlite3.connect(to) as target:
        source.backup(target)
    source.close()
    target.close()

    def restore() -> None:
        for left in path.parent.glob(f"{path.name}-*"):
            left.unlink()
        shutil.copy(to, path)

    return restore


def postgres(store: str, to: Path) -> Callable[[], None]:
    """`pg_dump`; what is returned restores it with `psql`."""
    import pgserver

    programs = Path(pgserver.__file__).parent / "pginstall" / "bin"
    server, _, options = store.partition("&options=-csearch_path%3D")
    dump = [programs / "pg_dump", "--dbname", server, "--schema", options, "--file", to]
    subprocess.run(dump, check=True, capture_output=True)

    def restore() -> None:
        drop = ["-c", f"DROP SCHEMA {options} CASCADE"]
        for more in (drop, ["--file", str(to)]):
            command = [programs / "psql", server, "-v", "ON_ERROR_STOP=1", *more]
            subprocess.run(command, check=True, capture_output=True)

    return restore
