"""Joined rows through the kernel, one Arrow batch at a time.

A row is a key, what is left of its budget (`before`, null for the unknown), whether the spend asks
for it, and its loss. What it would have left is `after`, -1 where the loss does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from residua.individual.header import Header
from residua.individual.pricing.pricing import Pricing


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
