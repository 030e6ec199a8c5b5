"""Queries to a filter: PLDs, or mechanisms that know their PLDs.

One direction is enough. A mechanism's loss in the direction `add` is that of `(Q, P)` where
`remove` is that of `(P, Q)`: a PLD that dominates one dominates, reversed, the other. Our budgets
are symmetric and are checked on all of `x > 0`, so a check of either direction covers both.
Quantities that are *not* symmetric (Rényi divergences, largest losses) are computed from both ends
where they are used.
"""

from __future__ import annotations

from typing import Any

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.relations import ADD_REMOVE
from residua.pld.pld import Pld
from residua.work_limit import remembered

Query = Pld | Mechanism


def as_query(value: Any, name: str = "query") -> Query:
    """Check that an argument is a query."""
    if not isinstance(value, Query):
        raise ArgumentTypeError(f"{name} must be a Pld or a mechanism, got {checks.shown(value)}")
    return value


def as_list(value: Any, name: str) -> tuple[Query, ...]:
    """Check that an argument is a list of queries; it may be empty."""
    return tuple(as_query(one, name) for one in checks.items(name, value, "a list of queries"))


def loss_of(query: Query, relation: str | None = None) -> Pld:
    """The PLD of a query in one direction; a mechanism's under the given relation."""
    return query if isinstance(query, Pld) else _loss(query, relation)


@remembered(maxsize=4096)
def _loss(mechanism: Mechanism, relation: str | None) -> Pld:
    return mechanism.pld(relation=relation_of(mechanism, relation))


def relation_of(mechanism: Mechanism, relation: str | None) -> str:
    """The relation that is meant: add-remove unless another is named.

    One budget keeps one relation, so a mechanism that has no pair for add-remove must be asked for
    under a relation that is named.
    """
    if relation is None and ADD_REMOVE not in mechanism.supported:
        raise ArgumentError(
            f"relation must be named for {mechanism.kind}, which has a pair for"
            f" {' and '.join(mechanism.supported) or 'none'} only, got None"
        )
    return mechanism.relation_or_first(ADD_REMOVE if relation is None else relation)


def described(query: Query) -> str:
    """A query in a few words, ready to be pasted back."""
    text = repr(query)
    return text if len(text) <= 200 else text[:199] + "…"
