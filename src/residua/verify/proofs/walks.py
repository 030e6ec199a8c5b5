"""The bookkeeping of menu and auto: what a state holds beside its potential, checked strictly.

The potential alone keeps `(eps, delta)` (`potentials.py`). A ledger writes only certain fields
beside it, and what it would not write is refuted:

    left    the level in parts: -1 before the first query, then never more than before, nor more
            than the plan or the menu has
    first   the first query, for good; none on a menu with given prices
    plan    made by the first query, kept, or left for good
    seen    the latest kinds of query, with how often each was asked

How many levels the menu has is in the table of the potential. It is the only number here that is
taken from the records: it may not change, but it is not worked out again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

from residua.records import canonical
from residua.verify.descriptions.fields import RELATIONS
from residua.verify.descriptions.mechanisms import loss_of
from residua.verify.descriptions.states import State, Unreadable
from residua.verify.losses.factors import Loss
from residua.verify.proofs.verdict import Proof, refuted, undecided

PARTS = 1 << 12
"""A level has so many parts."""
_REMEMBERED = 16
"""So many kinds of query are counted."""
_CLOSE = Fraction(1, 10**9)


def check_shape(config: Mapping[str, Any], state: State, whole: int | None) -> None:
    """Raise `Unreadable` where a state is not one of the filter; `whole` is the top of its menu."""
    left, first, plan = state["left"], state["first"], state["plan"]
    if type(left) is not int or left < -1:
        raise Unreadable(f"left must be a count or -1, got {left!r:.60}")
    if first is not None:
        named(first)
    if plan is not None:
        _check_plan(plan)
    seen = counts("seen", state["seen"])
    if len(seen) > _REMEMBERED or not all(n for _, n in seen):
        raise Unreadable(f"seen must have up to {_REMEMBERED} queries that were asked")
    priced = config["kind"] == "menu" and config.get("prices") is not None
    if priced and not (first is plan is None and left >= 0):
        raise Unreadable("a menu with prices has a level, and neither a first query nor a plan")
    if left == -1 and not (first is plan is None and state["seen"] == state["held"] == []):
        raise Unreadable("something was asked, and yet there is no level")
    if left >= 0 and first is None and not priced:
        raise Unreadable("there is a level before the first query")
    if left >= 0 and whole is not None:
        top = whole if plan is None else (len(plan["exits"]) - 1) * PARTS
        if left > top or (plan is not None and max(plan["exits"]) * PARTS > whole):
            raise Unreadable(f"left or an exit is above the highest level, got {left}")


def _check_plan(plan: Any) -> None:
    if not isinstance(plan, Mapping) or set(plan) != {"query", "copies", "exits"}:
        raise Unreadable(f"plan must have query, copies and exits, got {plan!r:.60}")
    exits = plan["exits"] if isinstance(plan["exits"], list) else []
    whole = all(type(n) is int and n >= 0 for n in exits)
    if not (exits and whole and type(plan["copies"]) is int and plan["copies"] > 0):
        raise Unreadable(f"copies and exits of a plan must be counts, got {plan!r:.60}")
    named(plan["query"])


def check_walk(before: State, after: State, loss: Loss, used: bool) -> Proof | None:
    """Why a ledger would not go from one state to the next for a query; None where it might.

    `used`: by a copy that was paid for before.
    """
    if not _counts_on(before["seen"], after["seen"]):
        return refuted("`seen` does not count the query")
    asked = after["seen"][0][0]
    if not _alike(loss_of(*named(asked)), loss):
        return undecided("cannot match the query to the first entry of `seen`")
    begins = before["left"] == -1
    if after["first"] != (asked if begins else before["first"]):
        return refuted("`first` is not the first query")
    if used and (after["left"] != before["left"] or after["plan"] != before["plan"]):
        return refuted("using a held copy moves the level")
    plan = after["plan"]
    if begins:
        level = plan is None or after["left"] == (len(plan["exits"]) - 1) * PARTS
        if not level or (plan is not None and plan["query"] != asked):
            return refuted("the plan is not one for the first query, from its highest level on")
        return None
    if plan is not None and plan != before["plan"]:
        return refuted("the plan changes")
    if plan == before["plan"] and after["left"] > before["left"]:
        return refuted("the level rises")
    return None


def _counts_on(before: list[Any], after: list[Any]) -> bool:
    """Whether one query was counted: first now, with one more than before."""
    if not after:
        return False
    asked = canonical(after[0][0])
    often = next((n for query, n in before if canonical(query) == asked), 0)
    others = [pair for pair in before if canonical(pair[0]) != asked]
    return canonical(after) == canonical([[after[0][0], often + 1], *others][:_REMEMBERED])


def _alike(one: Any, two: Any) -> bool:
    """Whether losses are the same but for the rounding of parameters and how they were written."""
    if isinstance(one, Fraction | float) and isinstance(two, Fraction | float):
        return abs(Fraction(one) - Fraction(two)) <= _CLOSE * abs(Fraction(two))
    if type(one) is not type(two):
        return False
    if isinstance(one, tuple):
        return len(one) == len(two) and all(map(_alike, one, two))
    if is_dataclass(one):
        names = [f.name for f in fields(one) if not f.name.startswith("written")]
        return all(_alike(getattr(one, n), getattr(two, n)) for n in names)
    return bool(one == two)


def counts(name: str, given: Any) -> list[tuple[tuple[Any, str | None], int]]:
    """Queries with counts."""
    if not isinstance(given, list):
        raise Unreadable(f"{name} must be a list, got {given!r:.60}")
    found = []
    for pair in given:
        if not isinstance(pair, list) or len(pair) != 2 or type(pair[1]) is not int or pair[1] < 0:
            raise Unreadable(f"{name} must be made of queries and counts, got {pair!r:.60}")
        found.append((named(pair[0]), pair[1]))
    return found


def named(asked: Any) -> tuple[Any, str | None]:
    """A query in a state: a description, with a relation unless that is add-remove."""
    relation = None
    if isinstance(asked, Mapping) and set(asked) == {"mechanism", "relation"}:
        asked, relation = asked["mechanism"], asked["relation"]
        if relation not in RELATIONS:
            raise Unreadable(f"a query must name a relation, got {relation!r:.60}")
    loss_of(asked, relation)
    return asked, relation
