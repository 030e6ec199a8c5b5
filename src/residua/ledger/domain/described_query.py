"""A query to a ledger: a mechanism by its description, under a budget's relation and unit.

The ledger takes mechanisms, as objects or as JSON. A bare PLD is taken if it is symmetric and has a
description; it takes the budget's relation, and so do built-in mechanisms and black boxes that
denote such a PLD (`pure_dp`, `approximate_dp`, `gdp`). Any other black box must declare a relation,
or the caller must say that the budget's holds, which is recorded. A black box may declare a unit;
without one it has the budget's, for parameters are about the budget's neighbours. A decision
depends on the description alone, so a reader of the record decides the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters.base import Filter
from residua.filters.codec import from_dict as filter_from_dict
from residua.filters.potential.renyi_commit import Commit
from residua.filters.query import as_mechanism, describe
from residua.mechanisms.black_boxes import BlackBox
from residua.mechanisms.codec import check_size, from_dict, parsed_json
from residua.mechanisms.mechanism import Mechanism
from residua.pld.pld import Pld
from residua.provable import unprovable, unprovable_commit
from residua.records import Canonical, canonical
from residua.sizes import sized_cache

_SYMMETRIC = ("pure_dp", "approximate_dp", "gdp")
"""Black boxes that denote a symmetric PLD."""

Query = Mechanism | Commit
_Remembered = Pld | Mechanism | str


@dataclass(frozen=True)
class DescribedQuery:
    """A query with its description."""

    query: Query
    text: str

    @cached_property
    def plain(self) -> Any:
        """The description as plain data. Not to be changed."""
        return json.loads(self.text)

    @cached_property
    def written(self) -> Canonical:
        """The description as records write it."""
        return Canonical(canonical(self.plain))

    @cached_property
    def undeclared(self) -> str | None:
        """A part of it that is known by a bound alone and declares no relation; its kind."""
        for part in _leaves(self.query):
            known = not isinstance(part, BlackBox) or part.kind in _SYMMETRIC
            if not known and getattr(part, "relation", None) is None:
                return part.kind
        return None

    def contradicts(self, relation: str, unit: str) -> str | None:
        """Why it cannot be asked under a budget's relation and for its unit; None if it can."""
        for part in _leaves(self.query):
            if not isinstance(part, BlackBox):
                continue
            declared = getattr(part, "relation", None)
            if declared is not None and declared != relation:
                return f"{part.kind} declares {declared}, but the budget's relation is {relation}"
            whose = getattr(part, "unit", None)
            if whose is not None and whose != unit:
                return f"{part.kind} declares the unit {whose!r}, but the budget's is {unit!r}"
        query = self.query.to if isinstance(self.query, Commit) else self.query
        if isinstance(query, Mechanism) and relation not in query.supported:
            known = " and ".join(query.supported) or "none"
            return (
                f"{query.kind} has a pair for {known} only, but the budget's relation is {relation}"
            )
        return None

    def unprovable(self, filter: Filter, relation: str) -> str | None:
        """Why a step with it could not be proven under a filter; None if it can."""
        if isinstance(self.query, Commit):
            return unprovable_commit(self.plain["to"], relation)
        return unprovable(self.plain, filter.to_dict(), relation)

    def __str__(self) -> str:
        return self._shown

    @cached_property
    def _shown(self) -> str:
        return describe(self.query) if isinstance(self.query, Mechanism) else repr(self.query)


def describe_query(given: Any) -> DescribedQuery:
    """The query that a mechanism, a symmetric PLD, a commit, or JSON describes."""
    if isinstance(given, DescribedQuery):
        return given
    if isinstance(given, _Remembered):
        return _remembered(given)
    return _asked(given)


@sized_cache(maxsize=1024, size=lambda found: len(found.text))
def _remembered(given: Pld | Mechanism | str) -> DescribedQuery:
    return _asked(given)


def _asked(given: Any) -> DescribedQuery:
    if isinstance(given, Pld):
        given = _described(given)
    if isinstance(given, Mechanism):
        # What is recorded must be readable again.
        check_size("query", given.to_dict())
        return DescribedQuery(given, given.to_json())
    if isinstance(given, Commit):
        if isinstance(given.to, Pld):
            given = Commit(_described(given.to))
        return DescribedQuery(given, canonical(_commit_to_dict(given)))
    parsed = parsed_json("query", given)
    if not isinstance(parsed, Mapping):
        raise ArgumentTypeError(
            f"query must be a mechanism, a PLD or a JSON object, got {checks.shown(given)}"
        )
    made = _from_dict(parsed)
    return describe_query(made)


def _described(loss: Pld) -> Mechanism:
    if not loss.is_symmetric:
        raise ArgumentError(
            "query must be a mechanism, or a symmetric PLD: this one covers only one"
            f" direction, got {checks.shown(loss)}"
        )
    return as_mechanism(loss)


def from_text(text: str) -> DescribedQuery:
    """The query of a recorded description."""
    return describe_query(text)


def _from_dict(given: Mapping[str, Any]) -> Query:
    if given.get("kind") != "commit":
        return from_dict(given)
    if set(given) != {"kind", "to"}:
        names = checks.shown(sorted(map(str, given)))
        raise ArgumentError(f"commit needs the field to and takes no other, got {names}")
    to = given["to"]
    if isinstance(to, list):
        return Commit([from_dict(each) for each in to])  # type: ignore[arg-type]
    return Commit(filter_from_dict(to))


def _commit_to_dict(commit: Commit) -> dict[str, Any]:
    if isinstance(commit.to, Filter):
        return {"kind": "commit", "to": commit.to.to_dict()}
    return {"kind": "commit", "to": [as_mechanism(commit.to).to_dict()]}


def _leaves(query: Query) -> list[Mechanism]:
    plain = query.to if isinstance(query, Commit) else query
    found: list[Mechanism] = []
    waiting = [plain] if isinstance(plain, Mechanism) else []
    while waiting:
        part = waiting.pop()
        inner = part.parts
        if inner:
            waiting += inner
        else:
            found.append(part)
    return found
