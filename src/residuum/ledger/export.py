"""A ledger as JSON Lines: every record with its hash, and the tables that they name.

A line `{"hash", "record"}` is a record, `{"table", "content"}` a table (base64), before the first
record that names it. Chains follow one another in the order in which they were made.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, select

from residuum import checks
from residuum.errors import ArgumentError, ArgumentTypeError, BrokenRecord, NotALedger
from residuum.ledger import schema
from residuum.ledger.store import Store
from residuum.records import Record, canonical, digest, from_line, lines

_B, _R, _T = schema.budgets, schema.records, schema.tables
_AT_ONCE = 1000
_UNNAMED = "the export"


@dataclass(frozen=True)
class Exported:
    """What an export holds."""

    chains: dict[str, list[Record]]
    tables: dict[str, bytes]


def chain(connection: Connection, id: int, after: int = -1) -> Iterator[Record]:
    """The stored records of a budget, oldest first, a piece at a time."""
    while True:
        query = select(_R.c.seq, _R.c.text).where(_R.c.budget_id == id, _R.c.seq > after)
        rows = connection.execute(query.order_by(_R.c.seq).limit(_AT_ONCE)).all()
        for row in rows:
            yield Record(row.text)
        if len(rows) < _AT_ONCE:
            return
        after = rows[-1].seq


def table(connection: Connection, hash: str) -> bytes | None:
    """A table by its hash; None where there is none, or another content."""
    content = connection.execute(select(_T.c.content).where(_T.c.hash == hash)).scalar()
    return None if content is None or digest(bytes(content)) != hash else bytes(content)


def exported(connection: Connection) -> Iterator[str]:
    """The lines of an export."""
    written: set[str] = set()
    budgets = connection.execute(select(_B.c.id).order_by(_B.c.id)).scalars().all()
    for id in budgets:
        for record in chain(connection, id):
            for hash in _tables_of(record):
                if hash in written:
                    continue
                written.add(hash)
                content = table(connection, hash)
                if content is not None:
                    text = base64.b64encode(content).decode()
                    yield canonical({"table": hash, "content": text}) + "\n"
            yield from lines([record])


def export(store: Store, to: str | Path | IO[str]) -> int:
    """Write an export to a file or an open stream; the number of lines."""
    if not isinstance(to, str | Path):
        if not hasattr(to, "write"):
            raise ArgumentTypeError(f"to must be a path or a text file, got {checks.shown(to)}")
        return _written(store, to)
    with Path(to).open("w", encoding="ascii") as file:
        return _written(store, file)


def _written(store: Store, file: IO[str]) -> int:
    count = 0
    with store.reading() as connection:
        for line in exported(connection):
            file.write(line)
            count += 1
    return count


def read_export(given: Any) -> Exported:
    """Read an export from a path or from lines; every hash must agree."""
    if not isinstance(given, str | Path):
        if not isinstance(given, Iterable) or isinstance(given, bytes | Mapping):
            raise ArgumentTypeError(
                f"export must be a path or lines of text, got {checks.shown(given)}"
            )
        return _read(given, _UNNAMED)
    try:
        with Path(given).open(encoding="ascii") as file:
            return _read(file, str(given))
    except UnicodeDecodeError:
        raise NotALedger(f"{given} is no export of a ledger: it is not text") from None
    except OSError as error:
        raise ArgumentError(f"export must be a file to read, got {given} ({error})") from None


def _read(given: Iterable[str], name: str) -> Exported:
    chains: dict[str, list[Record]] = {}
    tables: dict[str, bytes] = {}
    for number, line in enumerate(given, 1):
        if not isinstance(line, str):
            raise ArgumentTypeError(
                f"export must be lines of text, got {checks.shown(line)} for line {number}"
            )
        try:
            if line.startswith('{"content"'):
                hash, content = _table_in(line)
                tables[hash] = content
            elif line.strip():
                record = from_line(line)
                chains.setdefault(record.budget, []).append(record)
        except BrokenRecord as error:
            if name != _UNNAMED and not chains and not tables and '"record"' not in line:
                raise NotALedger(f"{name} is no export of a ledger: {error}") from None
            raise BrokenRecord(f"line {number} of {name}: {error}") from None
    return Exported(chains, tables)


def _table_in(line: str) -> tuple[str, bytes]:
    try:
        parsed = json.loads(line)
        hash, content = parsed["table"], base64.b64decode(parsed["content"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BrokenRecord(f"a table that cannot be read: {error}") from None
    if digest(content) != hash:
        raise BrokenRecord(f"a table that does not hash to {hash}")
    return hash, content


def _tables_of(record: Record) -> list[str]:
    """What a record names; nothing where it cannot be read, which is for a verifier to say."""
    try:
        return sorted(str(hash) for hash in record.body.get("tables", {}).values())
    except (ValueError, AttributeError):
        return []
