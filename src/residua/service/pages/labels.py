"""Queries and filters in the library's words, from the JSON that records keep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from residua.errors import ResiduaError
from residua.filters.codec import from_dict as filter_from_dict
from residua.filters.query import described
from residua.mechanisms.codec import from_dict


def filter_told(filter: Mapping[str, Any]) -> str:
    """A filter as one would write it in Python; its JSON where that is all there is."""
    try:
        return repr(filter_from_dict(filter))
    except ResiduaError:
        return json.dumps(filter, sort_keys=True)[:400]


def told(mechanism: Mapping[str, Any] | str | None) -> str:
    """A query as one would write it in Python; its JSON where that is all there is."""
    if mechanism is None:
        return ""
    if isinstance(mechanism, str):
        mechanism = json.loads(mechanism)
        assert isinstance(mechanism, Mapping)
    try:
        return described(from_dict(mechanism))
    except ResiduaError:
        return json.dumps(mechanism, sort_keys=True)[:400]
