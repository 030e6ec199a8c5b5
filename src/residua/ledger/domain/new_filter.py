"""The first state of a new budget's filter, computed before anything is locked.

The first state of a price list or a plan takes seconds; other filters have it at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from residua.filters.base import Filter
from residua.ledger.domain import arguments
from residua.ledger.domain.closed_forms import FILTERS
from residua.provable import unprovable_filter

_QUICK = FILTERS | {"renyi_curve", "renyi_commit", "auto"}


class NewFilter(NamedTuple):
    """A filter with its first state."""

    filter: Filter
    description: dict[str, Any]
    state: dict[str, Any]
    tables: dict[str, bytes]
    """The tables that a verifier needs beside the state, by name."""
    unprovable: str | None
    """Why its steps cannot be verified, if so."""


def new_filter(value: Any) -> NewFilter:
    """The filter that is given as an object or as JSON; pure, and perhaps slow."""
    filter = arguments.fresh_filter(value)
    description = filter.to_dict()
    unprovable = unprovable_filter(description)
    if unprovable is not None:
        return NewFilter(filter, description, {}, {}, unprovable)
    first = filter.initial()
    state = json.loads(filter.state_to_json(first))
    return NewFilter(filter, description, state, dict(filter.tables(first)), None)


def is_quick(value: Any) -> bool:
    """Whether that takes no time, known by the kind alone."""
    kind = value.get("kind") if isinstance(value, Mapping) else getattr(value, "kind", None)
    return kind in _QUICK
