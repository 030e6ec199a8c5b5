"""The state in this process's memory: nothing survives it. For simulations, training, and tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any

import pyarrow as pa

from residua.errors import TooLargeError
from residua.individual.engines.columns import Columns
from residua.individual.engines.engine import Store
from residua.individual.header import Header
from residua.individual.losses import (
    as_table,
    check_types,
    flat,
    look,
    loss_column,
    newcomers,
    uniform,
)
from residua.individual.pricing.cost_model import check_request
from residua.individual.result import SpendResult
from residua.individual.spend_request import Order


class MemoryStore(Store):
    """Columns, the spends so far, and a lock."""

    def __init__(self, header: Header, where: str = "memory:"):
        self.header, self.where = header, where
        self._lock = Lock()
        self._columns: Columns | None = None
        self._spends: dict[str, tuple[str, Any]] = {}

    def spend(self, order: Order, losses: Any) -> SpendResult:
        table = as_table(losses)
        column = loss_column(self.header, table.column_names)
        check_request(column, order.mechanism, order.levels)
        header, table = uniform(self.header, table, column)
        levels = order.levels_for(header, column)
        found = [look(header, batch, levels) for batch in table.to_batches()]
        looked = order.looked(header, column, found)
        with self._lock:
            if order.spend_id in self._spends:
                digest, active = self._spends[order.spend_id]
                looked.check_same(digest)
                return SpendResult(order.spend_id, True, active)
            columns = self._columns_for(header)
            with _roomy():
                active = columns.spend(table, looked.pricing())
            self._columns, self.header = columns, columns.header
            self._spends[order.spend_id] = (looked.digest, active)
            return SpendResult(order.spend_id, False, active)

    def enroll(self, subjects: Any) -> None:
        header, table = newcomers(self.header, as_table(subjects, "subjects"))
        with self._lock:
            columns = self._columns_for(header)
            with _roomy():
                columns.add(table.select(list(header.keys)), flat(table["left"]))
            self._columns, self.header = columns, columns.header

    def everything(self) -> Any:
        with self._lock:
            return None if self._columns is None else self._columns.table()

    def close(self) -> None:
        return None

    def _columns_for(self, header: Header) -> Columns:
        """Those that there are, or new ones; they count once something is in them."""
        # Another thread may have said meanwhile what keys are.
        types = tuple(kind for kind in header.key_types if kind is not None)
        now = check_types(self.header, types)
        return Columns(now) if self._columns is None else self._columns


@contextmanager
def _roomy() -> Iterator[None]:
    """What Arrow cannot hold in one column of texts as an error of this package."""
    with suppress(pa.ArrowException):
        yield
        return
    raise TooLargeError("keys must be at most 2 GB of text in memory, got more: use duckdb:///FILE")
