"""Check that a ledger would have written these records, before importing them from an export.

Hashes show that an export is whole, not that a ledger wrote it: anyone with the last record can add
others to it. So every field must have the type and range that a ledger writes, since rows are
derived from them: what a column cannot hold, or what stands for something else there, must not get
that far. And every state must follow from the one before it. It moves by what was admitted, to
where the filter decides; it starts again with a window that was due; the open holds are stated as
they follow it; and nothing is asked of a budget that is closed. What concerns several chains is
left to the verifier (`recover.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from residua import checks
from residua.errors import BrokenRecord, ResiduaError, StoreUnavailable
from residua.ledger.domain import clock, rules
from residua.ledger.domain.budget_row import BudgetRow, parse_state
from residua.ledger.domain.described_query import DescribedQuery, from_text
from residua.ledger.domain.rules import BudgetSnapshot
from residua.ledger.domain.set_aside import Held, SetAside, set_aside_in
from residua.ledger.operations.requests import stated_holds, tables_of
from residua.ledger.operations.unit_of_work import UnitOfWork
from residua.mechanisms.relations import RELATIONS
from residua.records import LEAST_WINDOW, Record, canonical, state_after

_ASKED = ("spend", "commit", "hold")


def is_reproduced(
    work: UnitOfWork, entry: BudgetRow, record: Record, held: Mapping[str, DescribedQuery]
) -> bool:
    """Whether this process decides as the next record says; raises if no process could.

    `held` has the queries of the open holds, in the order in which they were made. Where decisions
    rest on rounded numbers, another machine may have decided otherwise, and then it takes a proof.
    """
    body, type = record.body, record.type
    moves = type in ("spend", "commit") and body["admitted"]
    if entry.retired:
        raise wrong(record, f"a {type} follows, and the budget is retired")
    if type == "create":
        return canonical(body["state"]) == _first(entry) and _has_tables(work, entry, record)
    if type == "refresh":
        due = entry.window is not None and clock.is_over(entry.window_ends, body["time"])
        if not due or body["generation"] != entry.generation + 1:
            raise wrong(record, "a new window begins that was not due")
        if entry.holds:
            raise wrong(record, f"a new window begins while {len(entry.holds)} holds are open")
        return canonical(body["state"]) == _first(entry) and _has_tables(work, entry, record)
    if canonical(body["before"]) != entry.state_text:
        raise wrong(record, "the state before is not what the records so far leave")
    if not moves and body["before"] != body["after"]:
        raise wrong(record, f"a {type} moves the committed state")
    if type in ("commit", "cancel", "expire") and body["hold"] not in entry.holds:
        raise wrong(record, f"a {type} of {body['hold']!r}, which is not held")
    if type == "hold" and body["hold"] in entry.holds:
        raise wrong(record, f"a hold {body['hold']!r}, which is held already")
    if type == "table":
        last = entry.declared.get(body["table"])
        if body["version"] != (1 if last is None else last.version + 1):
            raise wrong(record, f"version {body['version']} of the table does not follow")
    if type not in _ASKED:
        return True
    same = not moves or _next_state(entry, body) == canonical(state_after(record))
    return _states_holds(work, entry, record, held) and same and _has_tables(work, entry, record)


def _has_tables(work: UnitOfWork, entry: BudgetRow, record: Record) -> bool:
    """Whether a record names the tables of the state that it leads to."""
    body = record.body
    if body.get("before") == state_after(record):
        if body["tables"] != {}:
            raise wrong(record, "tables are named, and the committed state does not move")
        return True
    return bool(body["tables"] == tables_of(work, entry, canonical(state_after(record))))


def _states_holds(
    work: UnitOfWork, entry: BudgetRow, record: Record, held: Mapping[str, DescribedQuery]
) -> bool:
    """Whether a record states what follows with the open holds as it follows here."""
    body = record.body
    open_: list[DescribedQuery] = [each for id, each in held.items() if id != body.get("hold")]
    if record.type == "hold":
        open_.append(from_text(canonical(body["mechanism"])))
    most = len(open_) if body["admitted"] else 0
    least = int(most > 0 and record.type == "hold")
    stated = len(body["holds"])
    if not least <= stated <= most:
        raise wrong(record, f"holds must have {least} to {most} states of open holds, got {stated}")
    if not body["admitted"]:
        return True
    ends = record.type == "commit" and body["hold"]
    stays: tuple[Any, ...] = entry.held
    if ends in entry.holds:
        at = entry.holds.index(ends)
        stays = stays[:at] + stays[at + 1 :]
    stays = stays[: most - stated]
    needed = _computed(entry, body, open_, stays)
    entry.held = needed or ()
    if needed is None or needed[: most - stated] != stays:
        return False
    text = canonical(body["after"])
    return canonical(body["holds"]) == stated_holds(work, entry, text, needed[most - stated :])


def _computed(
    entry: BudgetRow, body: Any, open_: Sequence[DescribedQuery], stays: tuple[Any, ...]
) -> Held | None:
    """What each open hold needs, in the way that the record says; None where one is refused here.

    `stays` is what was stated before of those that this record does not mention.
    """
    try:
        state = parse_state(entry.filter_text, canonical(body["after"]))
        snapshot = BudgetSnapshot(entry.filter, state, tuple(open_), entry.relation, entry.unit)
        place = _component(body["holds"], stays)
        if place is None:
            return rules.fold(snapshot, state, open_)
        for part in entry.filter.additive_parts(state):
            if part.place == place[0]:
                return set_aside_in(part, open_, entry.relation)
    except ResiduaError:
        pass
    return None


def _component(stated: Sequence[Any], stays: tuple[Any, ...]) -> tuple[int | None] | None:
    """The place of the component in which amounts are set aside; None where states are stated."""
    if stated:
        return (stated[0].get("component"),) if "takes" in stated[0] else None
    return (stays[0].place,) if stays and isinstance(stays[0], SetAside) else None


def _first(entry: BudgetRow) -> str:
    return entry.filter.state_to_json(entry.filter.initial())


def _next_state(entry: BudgetRow, body: Any) -> str | None:
    """The state that follows what was asked; None where it is refused."""
    query = from_text(canonical(body["mechanism"]))
    if query.contradicts(entry.relation, entry.unit) is not None:
        return None
    try:
        decision = rules.decided(entry.filter, entry.state, query.query, entry.relation)
    except ResiduaError:
        return None
    return entry.filter.state_to_json(decision.state) if decision.admitted else None


_UNREADABLE = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError,
    AssertionError,
)  # fmt: skip
"""How reading what no ledger writes fails."""


def check_fields(record: Record) -> None:
    """Raise `BrokenRecord` where a field of a record is not one that a committer writes."""
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


Good = Callable[[Any], bool]
"""Whether a value is one that a ledger writes."""


def _accepted_by(check: Callable[[Any], Any]) -> Good:
    def is_good(value: Any) -> bool:
        try:
            check(value)
        except ResiduaError:
            return False
        return True

    return is_good


def _instance_of(kind: type) -> Good:
    return lambda value: isinstance(value, kind)


_is_label = _accepted_by(lambda value: checks.label("name", value))
_is_object = _instance_of(Mapping)


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**53


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _is_optional_window(value: Any) -> bool:
    return value is None or (type(value) is float and LEAST_WINDOW <= value < math.inf)


def _mapping_of(is_name: Good, is_value: Good) -> Good:
    return lambda value: (
        isinstance(value, Mapping)
        and all(map(is_name, value))
        and all(map(is_value, value.values()))
    )


_NAME = "one line of printable text", _is_label
_OPTIONAL_NAME = f"{_NAME[0]} or null", lambda value: value is None or _is_label(value)
_OBJECT = "an object", _is_object
_BOOL = "true or false", _instance_of(bool)
_TIME = "a time", _accepted_by(clock.moment)
_FIELDS: Mapping[str, tuple[str, Good]] = {
    "budget": _NAME,
    "by": _NAME,
    "time": _TIME,
    "filter": _OBJECT,
    "library": ("a string", _instance_of(str)),
    "relation": ("a known relation", lambda value: isinstance(value, str) and value in RELATIONS),
    "unit": _NAME,
    "data": _OPTIONAL_NAME,
    "parent": _OPTIONAL_NAME,
    "partition": _OPTIONAL_NAME,
    "window": (f"at least {LEAST_WINDOW} (seconds) or null", _is_optional_window),
    "shares_data": _BOOL,
    "tables": ("an object of hashes", _mapping_of(_instance_of(str), _is_hash)),
    "state": _OBJECT,
    "key": _NAME,
    "request": ("a SHA-256 in hexadecimal", _is_hash),
    "mechanism": _OBJECT,
    "assumed": _BOOL,
    "group": ("a list", _instance_of(list)),
    "admitted": _BOOL,
    "reason": ("a string", _instance_of(str)),
    "before": _OBJECT,
    "after": _OBJECT,
    "holds": ("a list of objects", lambda v: isinstance(v, list) and all(map(_is_object, v))),
    "hold": _NAME,
    "expires": _TIME,
    "generation": ("a number of a window", _is_number),
    "table": _NAME,
    "version": ("a number of a declaration", _is_number),
    "declaration": ("an object or null", lambda value: value is None or _is_object(value)),
    "question": ("an object", _is_object),
    "below": (
        "an object of budgets and the numbers of their records",
        _mapping_of(_is_label, _is_number),
    ),
}
"""The type of each field; that of `binding` depends on others."""
