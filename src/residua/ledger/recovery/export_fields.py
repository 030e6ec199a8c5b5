"""Check that the fields of an exported record have the types and ranges that a ledger writes.

Rows are derived from these fields, so what a column cannot hold, or what stands for something else
there, must not get that far.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from residua import checks
from residua.errors import BrokenRecord, ResiduaError, StoreUnavailable
from residua.ledger.domain import clock
from residua.mechanisms.relations import RELATIONS
from residua.records import LEAST_WINDOW, Record

_UNREADABLE = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError,
    AssertionError,
)  # fmt: skip
"""How reading what no ledger writes fails."""
_HASH = re.compile("[0-9a-f]{64}")
_MOST = 2**53
"""Numbers of records and windows are below that."""


def check_fields(record: Record) -> None:
    """Raise `BrokenRecord` where a field of a record is not one that a gate writes."""
    body = record.body
    for name, value in body.items():
        wanted, is_good = _FIELDS.get(name, ("", None))
        if is_good is not None and not is_good(value):
            raise wrong(record, f"{name} must be {wanted}, got {checks.shown(value)}")
    if "group" in body:
        _check_group(record)
    if "admitted" in body:
        named = {member["budget"] for member in body["group"]}
        if (body["binding"] is None) != body["admitted"] or (
            body["binding"] is not None and body["binding"] not in named
        ):
            expected = "null" if body["admitted"] else "a budget of the group"
            raise wrong(record, f"binding must be {expected}, got {checks.shown(body['binding'])}")
    if "expires" in body and body["expires"] < body["time"]:
        raise wrong(record, f"expires must not be before {body['time']}, got {body['expires']}")


def wrong(record: Record, what: str) -> BrokenRecord:
    """The error for a record that cannot be taken over."""
    return BrokenRecord(f"the export of {record.budget!r} at number {record.seq}: {what}")


@contextmanager
def naming(record: Record) -> Iterator[None]:
    """Turn errors of reading a record into one that names it."""
    try:
        yield
    except StoreUnavailable:
        raise
    except BrokenRecord as error:
        named = f"the export of {record.budget!r}" in str(error)
        raise error if named else wrong(record, str(error)) from error
    except (ResiduaError, *_UNREADABLE) as error:
        raise wrong(record, f"it cannot be read: {str(error) or repr(error)}") from error


def _check_group(record: Record) -> None:
    seen: set[str] = set()
    for member in record.body["group"]:
        if not (
            isinstance(member, Mapping)
            and set(member) == {"budget", "seq", "prev"}
            and _is_label(member["budget"])
            and _is_number(member["seq"])
            and _is_hash(member["prev"])
        ):
            raise wrong(
                record,
                "group must list budgets with the number and the prev of their records, got"
                f" {checks.shown(member)}",
            )
        if member["budget"] in seen:
            raise wrong(record, f"group must name {member['budget']!r} once")
        seen.add(member["budget"])
    own = {"budget": record.budget, "seq": record.seq, "prev": record.prev}
    if own not in record.body["group"]:
        raise wrong(record, "group must have the record itself")


def _is_label(value: Any) -> bool:
    try:
        checks.label("name", value)
    except ResiduaError:
        return False
    return True


def _is_time(value: Any) -> bool:
    try:
        clock.moment(value)
    except BrokenRecord:
        return False
    return True


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MOST


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def _is_window(value: Any) -> bool:
    return value is None or (type(value) is float and LEAST_WINDOW <= value < math.inf)


def _is_bool(value: Any) -> bool:
    return type(value) is bool


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_states(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_object, value))


def _is_tables(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_hash, value.values()))


def _is_below(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and all(map(_is_label, value))
        and all(map(_is_number, value.values()))
    )


def _is_relation(value: Any) -> bool:
    return isinstance(value, str) and value in RELATIONS


def _or_none(is_good: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or is_good(value)


_NAME = "one line of printable text"
_OBJECT = "an object"
_BOOL = "true or false"
_FIELDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "budget": (_NAME, _is_label),
    "by": (_NAME, _is_label),
    "time": ("a time", _is_time),
    "filter": (_OBJECT, _is_object),
    "library": ("a text", _is_text),
    "relation": ("a known relation", _is_relation),
    "unit": (_NAME, _is_label),
    "data": (f"{_NAME} or null", _or_none(_is_label)),
    "parent": (f"{_NAME} or null", _or_none(_is_label)),
    "partition": (f"{_NAME} or null", _or_none(_is_label)),
    "window": (f"at least {LEAST_WINDOW} (seconds) or null", _is_window),
    "shares_data": (_BOOL, _is_bool),
    "tables": ("an object of hashes", _is_tables),
    "state": (_OBJECT, _is_object),
    "key": (_NAME, _is_label),
    "request": ("a SHA-256 in hexadecimal", _is_hash),
    "mechanism": (_OBJECT, _is_object),
    "assumed": (_BOOL, _is_bool),
    "group": ("a list", _is_list),
    "admitted": (_BOOL, _is_bool),
    "reason": ("a text", _is_text),
    "before": (_OBJECT, _is_object),
    "after": (_OBJECT, _is_object),
    "holds": ("a list of objects", _is_states),
    "hold": (_NAME, _is_label),
    "expires": ("a time", _is_time),
    "generation": ("a number of a window", _is_number),
    "below": ("an object of budgets and the numbers of their records", _is_below),
}
"""The type of each field; that of `binding` depends on others."""
