"""The address of a ledger: `sqlite:///relative.db`, `sqlite:////absolute.db`, `postgresql://…`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError as BadUrl

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError


@dataclass(frozen=True)
class Place:
    """A database: of SQLite by its file, of PostgreSQL by its address."""

    url: URL
    path: Path | None = None

    def __str__(self) -> str:
        return self.url.render_as_string(hide_password=True)


def place(url: Any) -> Place:
    """Read a ledger's address."""
    if isinstance(url, Path):
        return _sqlite(url)
    if not isinstance(url, str):
        raise ArgumentTypeError(f"url must be a text or a path, got {checks.shown(url)}")
    if "://" not in url:
        checks.require(bool(url.strip()), "url", "an address or the path of a file", url)
        return _sqlite(Path(url))
    try:
        made = make_url(url)
    except (BadUrl, ValueError):
        raise ArgumentError(f"url must be an address, got {checks.shown(url)}") from None
    dialect = made.get_backend_name()
    if dialect == "sqlite":
        file = made.database
        if not file or file == ":memory:" or file.startswith("file:"):
            raise ArgumentError(
                f"url must name a file, since a ledger must outlive its process, got {url!r}"
            )
        return _sqlite(Path(file))
    if dialect in ("postgresql", "postgres"):
        return Place(made.set(drivername="postgresql+psycopg"))
    raise ArgumentError(f"url must begin with sqlite or postgresql, got {str(made)!r}")


def _sqlite(file: Path) -> Place:
    path = file.absolute()
    return Place(URL.create("sqlite", database=str(path)), path)
