"""Neighbouring relations, and the directions in which each is crossed.

* `add-remove`: one record more or less. `remove` is the pair (with, without), `add` its opposite.
* `zero-out`: one record's contribution is blanked; the same directions.
* `replace-one`: one record is exchanged for another. Every pair occurs in both orders, so there
  is a single direction, `replace`, and a PLD for it must dominate both orders.
"""

from __future__ import annotations

from typing import Any

from residua import checks

ADD_REMOVE = "add-remove"
REPLACE_ONE = "replace-one"
ZERO_OUT = "zero-out"
RELATIONS = (ADD_REMOVE, REPLACE_ONE, ZERO_OUT)


def relation(value: Any) -> str:
    """Check the name of a neighbouring relation."""
    return checks.one_of("relation", value, RELATIONS)


def directions(name: str) -> tuple[str, ...]:
    """The directions of a relation."""
    return ("replace",) if name == REPLACE_ONE else ("remove", "add")
