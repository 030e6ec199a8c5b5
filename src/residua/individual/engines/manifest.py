"""Which files a version of a state consists of, so that a missing one is noticed.

Subjects whose file is gone would count as unknown and start anew with a whole budget, so a folder
is read only if it holds exactly the files that were written, with their sizes. What is inside is
covered by the checksums of Parquet's pages.
"""

from __future__ import annotations

from pathlib import Path

from residua.errors import StateUnavailable

Files = dict[str, int]


def listed(folder: Path) -> Files:
    """The Parquet files of a folder with their sizes."""
    return {path.name: path.stat().st_size for path in sorted(folder.glob("*.parquet"))}


def check(folder: Path, files: Files, where: str) -> None:
    """Raise unless a folder holds these files and no others."""
    found = listed(folder) if folder.is_dir() else {}
    for name in sorted({*files, *found}):
        if found.get(name) != files.get(name):
            what = "is missing" if name not in found else "is not the one that was written"
            raise StateUnavailable(
                f"{where} is damaged: {folder.parent.name}/{folder.name}/{name} {what}; restore it"
                " from a backup, nothing was spent"
            )
