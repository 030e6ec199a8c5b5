"""One spend as an engine gets it, what makes a retry the same, and what it returns."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters.query import Query, as_mechanism
from residua.individual.header import Header
from residua.individual.losses import Findings, check_findings, combine_fingerprints
from residua.individual.pricing.cost_model import levels_of, quote
from residua.individual.pricing.pricing import Levels, Pricing
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


LONGEST_ID = 512
"""The most characters of a spend id."""


@dataclass(frozen=True)
class SpendRequest:
    """A spend before its losses were inspected."""

    spend_id: str
    mechanism: Query | None
    levels: tuple[float, ...] | None

    def levels_for(self, header: Header, column: str | None) -> Levels | None:
        """What the losses are rounded up onto, where they are."""
        if column not in ("eps", "sensitivity"):
            return None
        return levels_of(header.filter, self.mechanism, self.levels)

    def inspect(self, header: Header, column: str | None, found: list[Findings]) -> InspectedSpend:
        """The spend once its losses were inspected; an error if anything is wrong with them."""
        check_findings(header, column, found)
        levels = self.levels_for(header, column)
        used = None
        if levels is not None:
            used = np.zeros(levels.values.size + 1, dtype=np.bool_)
            for one in found:
                used[list(one.used)] = True
        terms = {
            "column": column,
            "mechanism": _description(self.mechanism),
            "levels": self.levels,
            "rows": sum(one.rows for one in found),
            "losses": combine_fingerprints([one.sums for one in found]),
        }
        text = json.dumps(terms, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return InspectedSpend(self, header, column, used, digest)


@dataclass(frozen=True, eq=False)
class InspectedSpend:
    """A spend whose losses are good, with the hash that says whether a retry is the same."""

    request: SpendRequest
    header: Header
    column: str | None
    used: Any
    digest: str

    def pricing(self) -> Pricing:
        request = self.request
        return quote(self.header.filter, self.column, request.mechanism, request.levels, self.used)

    def check_same(self, digest: str) -> None:
        """Raise unless an earlier spend with this id had the same losses."""
        if digest != self.digest:
            raise ArgumentError(
                f"spend_id {self.request.spend_id!r} was used for another table of losses, or"
                " another mechanism: a new spend needs a new id"
            )


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
    if not isinstance(value, str):
        raise ArgumentTypeError(f"spend_id must be a string, got {checks.shown(value)}")
    good = 0 < len(value) <= LONGEST_ID and value.isprintable()
    checks.require(good, "spend_id", f"1 to {LONGEST_ID} printable characters", value)
    return value
