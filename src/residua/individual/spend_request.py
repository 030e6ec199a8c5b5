"""One spend as an engine gets it: what is asked, its id, and what makes a retry the same."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters.describe import as_mechanism
from residua.filters.query import Query
from residua.individual.digest import added
from residua.individual.header import Header
from residua.individual.losses import Findings, complain
from residua.individual.pricing.cost_model import levels_of, quote
from residua.individual.pricing.levels import Levels
from residua.individual.pricing.pricing import Pricing
from residua.pld.families.atoms import Atoms
from residua.pld.families.factors import Factor
from residua.pld.pld import Pld

_LONGEST_ID = 512


@dataclass(frozen=True)
class Order:
    """A spend before its losses have been looked at."""

    spend_id: str
    mechanism: Query | None
    levels: tuple[float, ...] | None

    def levels_for(self, header: Header, column: str | None) -> Levels | None:
        """What the losses are rounded up onto, where they are."""
        if column not in ("eps", "sensitivity"):
            return None
        return levels_of(header.filter, self.mechanism, self.levels)

    def looked(self, header: Header, column: str | None, found: list[Findings]) -> Looked:
        """The spend after its losses have been looked at; an error if they are not good."""
        complain(header, column, found)
        levels = self.levels_for(header, column)
        used = None
        if levels is not None:
            used = np.zeros(levels.values.size + 1, dtype=np.bool_)
            for one in found:
                used[list(one.used)] = True
        terms = {
            "column": column,
            "mechanism": _described(self.mechanism),
            "levels": self.levels,
            "rows": sum(one.rows for one in found),
            "losses": added([one.sums for one in found]),
        }
        text = json.dumps(terms, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return Looked(self, header, column, used, digest)


@dataclass(frozen=True, eq=False)
class Looked:
    """A spend whose losses are good, with the hash that says whether a retry is the same."""

    order: Order
    header: Header
    column: str | None
    used: Any
    digest: str

    def pricing(self) -> Pricing:
        order = self.order
        return quote(self.header.filter, self.column, order.mechanism, order.levels, self.used)

    def check_same(self, digest: str) -> None:
        """Raise unless an earlier spend with this id had the same losses."""
        if digest != self.digest:
            raise ArgumentError(
                f"spend_id {self.order.spend_id!r} was used for another table of losses, or another"
                " mechanism: a new spend needs a new id"
            )


def _described(query: Query | None) -> Any:
    """Everything that a query is: a `repr` may leave out atoms, and parts of a composition."""
    if query is None:
        return None
    try:
        return as_mechanism(query).to_dict()
    except ArgumentError:
        pass
    assert isinstance(query, Pld)
    parts = [repr(part) for part in query.gaussian.parts] if query.gaussian else []
    return sorted([*parts, *(f"{n} * {_written_out(one)}" for one, n in query.terms.items())])


def _written_out(factor: Factor) -> str:
    if not isinstance(factor, Atoms):
        return repr(factor)
    exact = factor.exact
    p = [str(Fraction(one, exact.p_den)) for one in exact.p]
    q = [str(Fraction(one, exact.q_den)) for one in exact.q]
    return f"atoms {p} {q}"


def checked_id(value: Any) -> str:
    """Check a spend id: a text of ordinary length."""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"spend_id must be a string, got {checks.shown(value)}")
    good = 0 < len(value) <= _LONGEST_ID and value.isprintable()
    checks.require(good, "spend_id", f"1 to {_LONGEST_ID} printable characters", value)
    return value
