"""A ledger as JSON Lines: every record with its hash, and the tables that they name.

A line `{"hash", "record"}` is a record, `{"table", "content"}` a table (base64), before the first
record that names it. Chains follow one another in the order in which they were made.

Records are never rewritten, so the number of the last record of each budget, read in one
transaction, fixes a snapshot of the ledger. The records up to there are then read a page at a time,
each in a short transaction, so that no spend waits for a reader.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, LargeBinary, cast, func, literal, select

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError, BrokenRecord, NotALedger
from residua.ledger.recovery.export_file import write_lines
from residua.ledger.storage import schema
from residua.ledger.storage.store import Store, opened_to_read
from residua.records import Record, canonical, digest, from_line

_B, _R, _T = schema.budgets, schema.records, schema.tables
_AT_ONCE = 1000
"""Records that one transaction reads."""
_UNNAMED = "the export"
_HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Exported:
    """The contents of an export."""

    chains: dict[str, list[Record]]
    tables: dict[str, bytes]


Reading = Callable[[], AbstractContextManager[Connection]]
"""Begins a transaction that reads: `Store.reading`, or one that is under way."""


class Stored(NamedTuple):
    """A budget in a snapshot."""

    id: int
    name: str
    last: int
    """The number of its last record; -1 where there is none."""


def snapshot(connection: Connection) -> list[Stored]:
    """All budgets with their last records, in the order in which they were made."""
    last = select(func.max(_R.c.seq)).where(_R.c.budget_id == _B.c.id).scalar_subquery()
    columns = _B.c.id, *_stored(connection, _B.c.name), func.coalesce(last, -1)
    rows = connection.execute(select(*columns).order_by(_B.c.id))
    return [Stored(id, _decoded(bytes(name)), last) for id, name, _, last in rows]


def chain(
    reading: Reading, id: int, last: int | None = None, after: int = -1, most: int = _AT_ONCE
) -> Iterator[Record | bytes]:
    """The stored records of a budget up to the last, oldest first, a page at a time.

    A record that is not valid text comes as the stored bytes: nothing ends the reading.
    """
    at_once = min(most, _AT_ONCE)
    while True:
        query = select(_R.c.seq).where(_R.c.budget_id == id, _R.c.seq > after)
        if last is not None:
            query = query.where(_R.c.seq <= last)
        with reading() as connection:
            page = query.add_columns(*_stored(connection, _R.c.text))
            rows = connection.execute(page.order_by(_R.c.seq).limit(at_once)).all()
        for _, stored, kind in rows:
            raw = bytes(stored)
            yield Record(raw.decode("ascii")) if kind == "text" and raw.isascii() else raw
        if len(rows) < at_once:
            return
        after = rows[-1].seq


def history(reading: Reading, stored: Stored, after: int, limit: int | None) -> tuple[Record, ...]:
    """The records of a budget after a number, at most so many."""
    most = _AT_ONCE if limit is None else limit
    found: list[Record] = []
    for record in islice(chain(reading, stored.id, stored.last, after, most), limit):
        if isinstance(record, bytes):
            seq = after + 1 + len(found)
            raise BrokenRecord(f"record {stored.name!r} {seq} is not text: verify the ledger")
        found.append(record)
    return tuple(found)


def _stored(connection: Connection, column: ColumnElement[str]) -> tuple[Any, Any]:
    """The bytes of a text as they are stored, and what kind of value they are.

    A driver reads texts as UTF-8, and gives up on all rows where a damaged one is not.
    """
    if connection.dialect.name == "sqlite":
        return cast(column, LargeBinary), func.typeof(column)
    return func.textsend(column, type_=LargeBinary), literal("text")


def _decoded(raw: bytes) -> str:
    """A text for bytes, another one for others, whether or not they are UTF-8."""
    return raw.decode(errors="surrogateescape")


def table(connection: Connection, hash: str) -> bytes | None:
    """The content stored as the table of a hash, even if it does not hash to that; else None."""
    if not _HASH.fullmatch(hash):
        return None
    content: Any = _T.c.content
    if connection.dialect.name == "sqlite":
        content = cast(content, LargeBinary)  # whatever kind of value it has become
    found = connection.execute(select(content).where(_T.c.hash == hash)).scalar()
    return None if found is None else bytes(found)


def table_in(reading: Reading, hash: str) -> bytes | None:
    """The same, in a separate transaction."""
    with reading() as connection:
        return table(connection, hash)


def exported(reading: Reading) -> Iterator[str]:
    """The lines of an export. What is damaged is written as it is, for its readers to tell."""
    written: set[str] = set()
    with reading() as connection:
        budgets = snapshot(connection)
    for id, _, last in budgets:
        for found in chain(reading, id, last):
            raw = found if isinstance(found, bytes) else found.text.encode()
            record = Record(_decoded(raw))
            for hash in _tables_of(record):
                if hash in written:
                    continue
                written.add(hash)
                content = table_in(reading, hash)
                if content is not None:
                    text = base64.b64encode(content).decode()
                    yield canonical({"table": hash, "content": text}) + "\n"
            yield canonical({"hash": digest(raw), "record": record.text}) + "\n"


def export(store: Store, to: str | Path | IO[str]) -> int:
    """Write an export to a file or an open stream; the number of lines."""
    return write_lines(to, exported(store.reading))


def export_from(address: str, to: str | Path) -> int:
    """The same in a process that has nothing open, to a file."""
    with opened_to_read(address) as store:
        return export(store, to)


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
        raise NotALedger(
            f"{given} is not an export of a ledger: exports are ASCII text, and this file has other"
            " characters"
        ) from None
    except OSError as error:
        raise ArgumentError(f"export must be a readable file, got {given} ({error})") from None


def _read(given: Iterable[str], name: str) -> Exported:
    chains: dict[str, list[Record]] = {}
    tables: dict[str, bytes] = {}
    for number, line in enumerate(given, 1):
        if not isinstance(line, str):
            raise ArgumentTypeError(
                f"line {number} of the export must be text, got {checks.shown(line)}"
            )
        try:
            if line.startswith('{"content"'):
                hash, content = _table_of_line(line)
                tables[hash] = content
            elif line.strip():
                record = from_line(line)
                chains.setdefault(record.budget, []).append(record)
        except BrokenRecord as error:
            if name != _UNNAMED and not chains and not tables and '"record"' not in line:
                raise NotALedger(f"{name} is not an export of a ledger: {error}") from None
            raise BrokenRecord(f"line {number} of {name}: {error}") from None
    return Exported(chains, tables)


def _table_of_line(line: str) -> tuple[str, bytes]:
    try:
        parsed = json.loads(line)
        hash, content = parsed["table"], base64.b64decode(parsed["content"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BrokenRecord(f"a table that cannot be read: {error}") from None
    if digest(content) != hash:
        raise BrokenRecord(f"a table that does not hash to {hash}")
    return hash, content


def _tables_of(record: Record) -> list[str]:
    """The tables that a record names, for open holds too; none where it cannot be read.

    That is for a verifier to say.
    """
    try:
        named = [record.body.get("tables", {})]
        named += [each.get("tables", {}) for each in record.body.get("holds", ())]
        return sorted({str(hash) for tables in named for hash in tables.values()})
    except (ValueError, AttributeError, RecursionError, TypeError):
        return []
