"""Parquet files through memory: no Java, the whole state at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from residua.individual.engines.columns import Columns
from residua.individual.engines.table_engine import Opened, TableEngine
from residua.individual.header import Header
from residua.individual.losses import as_table, flat, look, loss_column, uniform
from residua.individual.pricing.cost_model import check_request
from residua.individual.pricing.pricing import Pricing
from residua.individual.spend_request import Order


class NumpyEngine(TableEngine):
    """Reads everything, works in memory, writes everything."""

    def open_losses(self, header: Header, order: Order, losses: Any, scratch: Path) -> Opened:
        table = as_table(losses)
        column = loss_column(header, table.column_names)
        check_request(column, order.mechanism, order.levels)
        header, table = uniform(header, table, column)
        levels = order.levels_for(header, column)
        found = [look(header, batch, levels) for batch in table.to_batches()]
        return Opened(header, column, table, found)

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
