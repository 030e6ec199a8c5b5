"""What every engine offers, what it is asked, and what engines share.

A store spends, enrolls and exports; each call is atomic. The Parquet store leaves the computing to
a table engine. Joined rows go through the kernel one Arrow batch at a time: a row is a key, what
is left of its budget (`before`, null for the unknown), whether the spend asks for it, and its loss.
What it would have left is `after`, -1 where the loss does not fit.

A spend comes as a `SpendRequest`; once its losses are open, a hash of both says whether a retry is
the same.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from residua import checks
from residua.errors import ArgumentError
from residua.filters.query import Query, as_mechanism
from residua.individual.cost_model import check_request, pricing_for
from residua.individual.header import Header
from residua.individual.losses import (
    Findings,
    as_table,
    check_findings,
    inspect_batch,
    loss_column,
    normalise,
)
from residua.individual.pricing import Pricing
from residua.pld.families.atoms import Atoms
from residua.pld.families.factors import Factor
from residua.pld.pld import Pld


@dataclass(frozen=True, eq=False)
class SpendResult:
    """One charge, and whether this call made it.

    A charge permits one release. Of all calls with one `spend_id`, at most one returns with
    `replayed` false, and only that call may release a new answer: see "Retry with the same id" in
    `docs/howto-individual.md`.

    Columns, `num_rows` and Arrow's stream protocol (`pyarrow.table(result)`) are those of `active`.
    **The active set depends on data and must not be released**; a `repr` does not show it.
    """

    spend_id: str
    replayed: bool
    """Whether an earlier call with this `spend_id` made the charge; this one charged nothing."""
    active: pa.Table = field(repr=False)
    """The keys of those that may take part, the same table on every replay."""

    @property
    def num_rows(self) -> int:
        """How many rows the active set has."""
        return int(self.active.num_rows)

    def __getitem__(self, column: str) -> Any:
        return self.active[column]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.active.__arrow_c_stream__(requested_schema)


@dataclass(frozen=True)
class SpendRequest:
    """A spend before its losses were inspected."""

    spend_id: str
    mechanism: Query | None
    levels: tuple[float, ...] | None

    def check_same(self, earlier: str, digest: str) -> None:
        """Raise unless an earlier spend with this id had the same losses, by their hashes."""
        if earlier != digest:
            raise ArgumentError(
                f"spend_id {self.spend_id!r} was used for another table of losses, or"
                " another mechanism: a new spend needs a new id"
            )


@dataclass(frozen=True, eq=False)
class OpenedSpend:
    """A spend whose losses an engine has made uniform, and its findings."""

    request: SpendRequest
    header: Header
    column: str | None
    losses: Any
    findings: Findings

    def inspect(self) -> str:
        """The hash that says whether a retry is the same; an error if any losses are wrong."""
        check_findings(self.header, self.column, self.findings)
        terms = {
            "column": self.column,
            "mechanism": _description(self.request.mechanism),
            "levels": self.request.levels,
            "rows": self.findings.rows,
            "losses": self.findings.fingerprint,
        }
        return hashlib.sha256(json.dumps(terms, sort_keys=True).encode()).hexdigest()

    def pricing(self) -> Pricing:
        """How the losses are charged."""
        request = self.request
        return pricing_for(self.header.filter, self.column, request.mechanism, request.levels)


def _description(query: Query | None) -> Any:
    """Everything that a query is: a `repr` may leave out atoms, and parts of a composition."""
    if query is None:
        return None
    try:
        return as_mechanism(query).to_dict()
    except ArgumentError:
        pass
    assert isinstance(query, Pld)
    parts = [repr(part) for part in query.gaussian.parts] if query.gaussian else []
    return sorted([*parts, *(f"{n} * {_factor_text(one)}" for one, n in query.terms.items())])


def _factor_text(factor: Factor) -> str:
    if not isinstance(factor, Atoms):
        return repr(factor)
    exact = factor.exact
    p = [str(Fraction(one, exact.p_den)) for one in exact.p]
    q = [str(Fraction(one, exact.q_den)) for one in exact.q]
    return f"atoms {p} {q}"


def check_id(value: Any) -> str:
    """Check a spend id: a text of ordinary length."""
    text: str = checks.instance("spend_id", value, str, "a string")
    good = 0 < len(text) <= 512 and text.isprintable()
    checks.require(good, "spend_id", "1 to 512 printable characters", value)
    return text


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


class TableEngine(ABC):
    """Reads a table of budgets, writes the next one and the active set."""

    @abstractmethod
    def open_losses(
        self, header: Header, request: SpendRequest, losses: Any, scratch: Path
    ) -> OpenedSpend:
        """Make losses uniform and inspect them; temporary files may go to `scratch`."""

    @abstractmethod
    def charge(
        self, opened: OpenedSpend, pricing: Pricing, budgets: Path | None, after: Path, active: Path
    ) -> None:
        """Write the budgets after the spend, and who takes part. Duplicate keys are an error."""

    @abstractmethod
    def enroll(self, header: Header, table: Any, budgets: Path | None, after: Path) -> None:
        """Write the budgets with new subjects: a table of keys and `left`."""

    def close(self) -> None:
        """Stop what was started."""
        return None


def open_table(header: Header, request: SpendRequest, losses: Any) -> OpenedSpend:
    """Losses that fit in memory, uniform and inspected."""
    table = as_table(losses)
    column = loss_column(header, table.column_names)
    check_request(column, request.mechanism, request.levels)
    header, table = normalise(header, table, column)
    found = Findings.total(inspect_batch(header, batch) for batch in table.to_batches())
    return OpenedSpend(request, header, column, table, found)


def key_schema(header: Header) -> Any:
    """The key columns."""
    kinds = zip(header.keys, header.key_types, strict=True)
    return pa.schema(
        [(key, pa.string() if kind == "string" else pa.int64()) for key, kind in kinds]
    )


def priced_schema(header: Header) -> Any:
    """Keys, `before`, `asked`, `after`."""
    more = [("before", pa.int64()), ("asked", pa.bool_()), ("after", pa.int64())]
    return pa.schema([*key_schema(header), *more])


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
