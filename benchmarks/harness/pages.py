"""Figures in documentation: what a command measured goes between two marks of a page.

    <!-- duckdb: written by python -m benchmarks.individual_scale --only duckdb --write FILE -->
    ...
    <!-- end of duckdb -->

so that a page never mixes figures of different runs within a table, and every one has its command.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

Table = Sequence[tuple[str, ...]]


def markdown(rows: Table) -> str:
    """A table, its first row the head."""
    head, *body = rows
    lines = [head, ("---",) * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def moment() -> str:
    """When, and how busy the machine was."""
    today = datetime.now(UTC).date()
    return f"({today}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores at the end.)"


def fill(page: Path, name: str, text: str) -> None:
    """Put text between the marks of a name; an error if the page has none."""
    marks = re.compile(f"(<!-- {name}: [^\\n]*-->\\n).*?(<!-- end of {name} -->)", re.DOTALL)
    old = page.read_text(encoding="utf-8")
    new, count = marks.subn(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", old)
    if count != 1:
        raise SystemExit(f"{page} must have the marks of {name!r} once, got {count}")
    page.write_text(new, encoding="utf-8")
    print(f"{page}: {name} written")
