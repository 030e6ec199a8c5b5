"""What every engine offers, and what engines share.

A store spends, enrolls and exports; each call is atomic. The Parquet store leaves the computing to
a table engine. Joined rows go through the kernel one Arrow batch at a time: a row is a key, what
is left of its budget (`before`, null for the unknown), whether the spend asks for it, and its loss.
What it would have left is `after`, -1 where the loss does not fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from residua.individual.header import Header
from residua.individual.losses import Findings, as_table, inspect_batch, loss_column, uniform
from residua.individual.pricing.cost_model import check_request
from residua.individual.pricing.pricing import Pricing
from residua.individual.spend_request import SpendRequest, SpendResult


class Store(ABC):
    """A state in some engine."""

    header: Header
    where: str
    """The address, as it was given."""

    @abstractmethod
    def spend(self, request: SpendRequest, losses: Any) -> SpendResult:
        """Charge losses and return the active set; durable before it returns.

        A spend with an id that was used before returns the set of that time, marked `replayed`; if
        its losses were others, it is an error. Bad losses are an error, and the state is untouched.
        """

    @abstractmethod
    def enroll(self, subjects: Any) -> None:
        """Add subjects, with their own capacities if the table has them."""

    @abstractmethod
    def everything(self) -> Any:
        """The whole state: keys and what is left, in units."""

    @abstractmethod
    def close(self) -> None:
        """Close files and connections."""


@dataclass(frozen=True, eq=False)
class Opened:
    """Losses that an engine has made uniform, and its findings."""

    header: Header
    column: str | None
    losses: Any
    findings: list[Findings]


class TableEngine(ABC):
    """Reads a table of budgets, writes the next one and the active set."""

    @abstractmethod
    def open_losses(
        self, header: Header, request: SpendRequest, losses: Any, scratch: Path
    ) -> Opened:
        """Make losses uniform and inspect them; temporary files may go to `scratch`."""

    @abstractmethod
    def charge(
        self, opened: Opened, pricing: Pricing, budgets: Path | None, after: Path, active: Path
    ) -> None:
        """Write the budgets after the spend, and who takes part. Duplicate keys are an error."""

    @abstractmethod
    def enroll(self, header: Header, table: Any, budgets: Path | None, after: Path) -> None:
        """Write the budgets with new subjects: a table of keys and `left`."""

    def close(self) -> None:
        """Stop what was started."""
        return None


def open_table(header: Header, request: SpendRequest, losses: Any) -> Opened:
    """Losses that fit in memory, uniform and inspected."""
    table = as_table(losses)
    column = loss_column(header, table.column_names)
    check_request(column, request.mechanism, request.levels)
    header, table = uniform(header, table, column)
    levels = request.levels_for(header, column)
    findings = [inspect_batch(header, batch, levels) for batch in table.to_batches()]
    return Opened(header, column, table, findings)


def priced_schema(header: Header) -> Any:
    """Keys, `before`, `asked`, `after`."""
    kinds = zip(header.keys, header.key_types, strict=True)
    keys = [(name, pa.string() if kind == "string" else pa.int64()) for name, kind in kinds]
    return pa.schema([*keys, ("before", pa.int64()), ("asked", pa.bool_()), ("after", pa.int64())])


def priced_batch(header: Header, pricing: Pricing, batch: Any, schema: Any) -> Any:
    """One batch of joined rows with what each would have left."""
    before = batch.column("before")
    left = before.fill_null(header.units.capacity).to_numpy(zero_copy_only=False)
    loss = None
    if "loss" in batch.schema.names:
        # Those who are not asked have no loss; what they get here is not used.
        loss = batch.column("loss").fill_null(0.0).to_numpy(zero_copy_only=False)
    after = pa.array(pricing.charge(left, loss))
    keys = [batch.column(key).cast(schema.field(key).type) for key in header.keys]
    return pa.RecordBatch.from_arrays([*keys, before, batch.column("asked"), after], schema=schema)


def priced_reader(header: Header, pricing: Pricing, batches: Iterator[Any]) -> Any:
    """The same for a stream of batches, as they are read."""
    schema = priced_schema(header)
    made = (priced_batch(header, pricing, batch, schema) for batch in batches)
    return pa.RecordBatchReader.from_batches(schema, made)
