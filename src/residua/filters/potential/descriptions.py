"""Losses of a state by the mechanisms they came from, so that they can be written down.

A loss that is made of Gaussians, Laplaces and the like describes itself (`describe.py`). Others
(discretised, or rounded to long rationals) are named by the mechanism that was asked for, and read
back by working its loss out again, which gives the same one. In JSON a name is the mechanism,
`{"kind": …}`, or `{"mechanism": {…}, "relation": "replace-one"}` under another relation than
add-remove.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters.describe import as_mechanism
from residua.filters.query import Query, loss_of, relation_of
from residua.mechanisms import relations
from residua.mechanisms.codec import from_dict
from residua.mechanisms.mechanism import Mechanism
from residua.pld.pld import Pld

Names = tuple[tuple[Pld, Mechanism, str], ...]
"""Losses that do not describe themselves, with mechanism and relation."""

_FIELDS = {"mechanism", "relation"}


def name_of(loss: Pld, query: Query, relation: str | None) -> Names:
    """The name of a loss that was asked for as `query`; nothing where it needs none or has none."""
    if not isinstance(query, Mechanism) or _is_described(loss):
        return ()
    return ((loss, query, relation_of(query, relation)),)


def _is_described(loss: Pld) -> bool:
    try:
        as_mechanism(loss)
    except ArgumentError:
        return False
    return True


def kept(names: Names, losses: Iterable[Pld]) -> Names:
    """The names of these losses, in their order; the first where one has several."""
    if not names:
        return ()
    known = {loss: (loss, mechanism, relation) for loss, mechanism, relation in names[::-1]}
    return tuple(known[loss] for loss in dict.fromkeys(losses) if loss in known)


def to_dict(names: Names, loss: Pld) -> dict[str, Any]:
    """A loss as plain data, by its description or its name."""
    for named, mechanism, relation in names:
        if named == loss:
            plain = mechanism.to_dict()
            if relation == relations.ADD_REMOVE:
                return plain
            return {"mechanism": plain, "relation": relation}
    return as_mechanism(loss).to_dict()


def from_plain(given: Any) -> tuple[Pld, Names]:
    """The loss that `to_dict` wrote, and its name."""
    relation = None
    if isinstance(given, dict) and set(given) == _FIELDS:
        relation = relations.relation(given["relation"])
        given = given["mechanism"]
    mechanism = from_dict(given)
    loss = loss_of(mechanism, relation)
    return loss, name_of(loss, mechanism, relation)


def counts_to_json(names: Names, counts: Iterable[tuple[Pld, int]]) -> list[Any]:
    """Losses with their counts, as plain data."""
    return [[to_dict(names, loss), n] for loss, n in counts]


def counts_from_json(name: str, given: Any) -> tuple[tuple[tuple[Pld, int], ...], Names]:
    """What `counts_to_json` wrote, and the names in it."""
    if not isinstance(given, list):
        raise ArgumentTypeError(f"{name} must be a list, got {checks.shown(given)}")
    made: list[tuple[Pld, int]] = []
    names: Names = ()
    for pair in given:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ArgumentTypeError(f"{name} must hold pairs, got {checks.shown(pair)}")
        loss, more = from_plain(pair[0])
        made.append((loss, checks.count(name, pair[1])))
        names += more
    return tuple(made), names
