"""The numpy engine: a state in this process's memory, and Parquet files that pass through it.

Nothing of a state in memory survives the process: it is for simulations, training and tests. On
Parquet files no Java is needed, and the whole state is read at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from residua.errors import TooLargeError
from residua.individual.engines.columns import Columns
from residua.individual.engines.engine import Opened, Store, TableEngine, open_table
from residua.individual.header import Header
from residua.individual.losses import (
    as_table,
    check_types,
    flat,
    newcomers,
)
from residua.individual.pricing.pricing import Pricing
from residua.individual.spend_request import SpendRequest, SpendResult


class MemoryStore(Store):
    """Columns, the spends so far, and a lock."""

    def __init__(self, header: Header, where: str = "memory:"):
        self.header, self.where = header, where
        self._lock = Lock()
        self._columns: Columns | None = None
        self._spends: dict[str, tuple[str, Any]] = {}

    def spend(self, request: SpendRequest, losses: Any) -> SpendResult:
        opened = open_table(self.header, request, losses)
        spend = request.inspect(opened.header, opened.column, opened.findings)
        with self._lock:
            if request.spend_id in self._spends:
                digest, active = self._spends[request.spend_id]
                spend.check_same(digest)
                return SpendResult(request.spend_id, True, active)
            columns = self._columns_for(opened.header)
            with _translated_errors():
                active = columns.spend(opened.losses, spend.pricing())
            self._columns, self.header = columns, columns.header
            self._spends[request.spend_id] = (spend.digest, active)
            return SpendResult(request.spend_id, False, active)

    def enroll(self, subjects: Any) -> None:
        header, table = newcomers(self.header, as_table(subjects, "subjects"))
        with self._lock:
            columns = self._columns_for(header)
            with _translated_errors():
                columns.add(table.select(list(header.keys)), flat(table["left"]))
            self._columns, self.header = columns, columns.header

    def everything(self) -> Any:
        with self._lock:
            return None if self._columns is None else self._columns.table()

    def close(self) -> None:
        return None

    def _columns_for(self, header: Header) -> Columns:
        """The columns of the state, or empty ones."""
        # Another thread may have set the types of keys meanwhile.
        types = tuple(kind for kind in header.key_types if kind is not None)
        now = check_types(self.header, types)
        return Columns(now) if self._columns is None else self._columns


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Raise an error of this package where Arrow cannot hold a column of texts."""
    with suppress(pa.ArrowException):
        yield
        return
    raise TooLargeError("keys must be at most 2 GB of text in memory, got more: use duckdb:///FILE")


class NumpyEngine(TableEngine):
    """Reads everything, works in memory, writes everything."""

    def open_losses(
        self, header: Header, request: SpendRequest, losses: Any, scratch: Path
    ) -> Opened:
        return open_table(header, request, losses)

    def charge(
        self, opened: Opened, pricing: Pricing, budgets: Path | None, after: Path, active: Path
    ) -> None:
        columns = _read(opened.header, budgets)
        taking_part = columns.spend(opened.losses, pricing)
        _write(columns.table(), after)
        _write(taking_part, active)

    def enroll(self, header: Header, table: Any, budgets: Path | None, after: Path) -> None:
        columns = _read(header, budgets)
        keys = table.select(list(header.keys))
        columns.add(keys, flat(table["left"]))
        _write(columns.table(), after)


def _read(header: Header, budgets: Path | None) -> Columns:
    if budgets is None:
        return Columns(header)
    table = pq.read_table(budgets, columns=[*header.keys, "left"], page_checksum_verification=True)
    return Columns.read(header, table)


def _write(table: Any, directory: Path) -> None:
    directory.mkdir(parents=True)
    pq.write_table(table, directory / "part-0.parquet", write_page_checksum=True)
