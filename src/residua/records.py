"""What a ledger entry is: versioned canonical JSON in a chain of hashes. Standard library only.

Each budget has one chain. A record's hash is the SHA-256 of its canonical text, which holds the
hash of the record before; so a head hash fixes everything under it. The meaning of a record never
changes: a new meaning gets another `v`, and old ones are read forever.

Fields of every record, version 1:

    v        1
    ledger   the ledger's id, made once
    budget   the name of the budget
    seq      0, 1, 2, … under lock, never by clock
    prev     hash of the record before; 64 zeros for the first
    type     see FIELDS
    time     the database's time, UTC, never before that of the record before
    by       the principal that asked

States are objects as filters write them, amounts exact and in quotes. A record that asks for
something (`spend`, `hold`, `commit`, …) has `before` and `after`, the *committed* state of this
budget: equal unless an admitted `spend` or `commit` moved it. `group` lists all budgets that were
asked together, with the number and the `prev` of the record that each got.

    create   filter, library (version that wrote it), relation, unit, data, parent, partition,
             window (seconds, or null), shares_data, tables ({name: SHA-256}), state
    spend    key, request (hash of what was asked), mechanism, relation, assumed, group, admitted,
             binding (the budget that refused, or null), reason, tables, before, after; `holds` has,
             where it was admitted, the states that follow `after` when the open holds are committed
             in the order in which they were made: of each the fields in which it differs from
             `after`, and `tables` where it has others. It has those of the last holds; the states
             of the holds before these are still the ones that were stated last
    hold     as spend, with hold (its id) and expires; never moves the state, and is the last of
             `holds` itself; `question`, where SQL was asked: {"table", "version", "sql"}, the
             version of the table's declaration and the normalised query
    commit   as spend, with hold, which is open no more
    cancel   hold, reason, group, before, after
    expire   the same
    refresh  generation, tables, state: a new window begins
    retire   reason, below, before, after; `below` has, for every budget under this one, the number
             of its last record: nothing is asked of them after that
    recover  the same: a restored ledger lost spends of it; nothing follows
    resume   reason, before, after: a restored ledger goes on with it, and how that is known to be
             all there was
    table    table (its name), version (1, 2, …), declaration (an object; null: the table was
             removed), before, after
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

from residua.errors import BrokenRecord

T = TypeVar("T")

VERSION = 1
"""The version of records that are written, and the latest that is read."""
NOTHING_BEFORE = "0" * 64
LEAST_WINDOW = 1.0
"""The shortest window that a budget may have, in seconds."""
LONGEST_HOLD = 7 * 86400.0
"""The longest time for which budget may be held, in seconds."""

_COMMON = frozenset({"v", "ledger", "budget", "seq", "prev", "type", "time", "by"})
_MOVE = frozenset({"before", "after"})
_ASKED = _MOVE | {
    "key", "request", "mechanism", "relation", "assumed", "group", "admitted", "binding", "reason",
    "tables", "holds",
}  # fmt: skip
_CLOSE = _MOVE | {"reason", "below"}
_RELEASE = _MOVE | {"hold", "reason", "group"}

FIELDS: dict[str, frozenset[str]] = {
    "create": frozenset({
        "filter", "library", "relation", "unit", "data", "parent", "partition", "window",
        "shares_data", "tables", "state",
    }),
    "spend": _ASKED,
    "hold": _ASKED | {"hold", "expires"},
    "commit": _ASKED | {"hold"},
    "cancel": _RELEASE,
    "expire": _RELEASE,
    "refresh": frozenset({"generation", "tables", "state"}),
    "retire": _CLOSE,
    "recover": _CLOSE,
    "resume": _MOVE | {"reason"},
    "table": _MOVE | {"table", "version", "declaration"},
}  # fmt: skip
"""The fields of each type beside the common ones: all of them, and no others but the optional."""
_OPTIONAL = {"hold": frozenset({"question"})}
_ALL_FIELDS = {type: fields | _COMMON for type, fields in FIELDS.items()}

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(data: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, ASCII, numbers as Python writes them; no NaN."""
    return _ENCODER.encode(data)


class Canonical(str):
    """A text that is already canonical JSON, and goes into another text unchanged."""

    __slots__ = ()


def written(value: Any) -> str:
    """`canonical`, but for text that is canonical already, which is returned as it is."""
    return str(value) if isinstance(value, Canonical) else canonical(value)


def digest(text: str | bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


class _Field(Generic[T]):
    """A field of a record as an attribute; None where records of that type do not have it."""

    def __init__(self, name: str):
        self._name = name

    def __get__(self, made: Record, owner: object = None) -> T:
        return cast(T, made._values.get(self._name))


@dataclass(frozen=True)
class Record:
    """One entry, by its canonical text. Made by `record` or `read`, which check it."""

    text: str

    @cached_property
    def hash(self) -> str:
        """What the next record calls `prev`."""
        return digest(self.text)

    @cached_property
    def body(self) -> Mapping[str, Any]:
        """All fields, parsed. Not to be changed."""
        body: dict[str, Any] = json.loads(self.text)
        return body

    @cached_property
    def _values(self) -> Mapping[str, Any]:
        """The fields that are texts, numbers, true, false or null, and perhaps others."""
        return self.body

    budget = _Field[str]("budget")
    seq = _Field[int]("seq")
    prev = _Field[str]("prev")
    type = _Field[str]("type")
    time = _Field[str]("time")
    key = _Field[str | None]("key")
    """The caller's key, where something was asked under one."""
    hold = _Field[str | None]("hold")
    """The reservation that it begins, commits or ends."""
    admitted = _Field[bool | None]("admitted")
    """The decision; None where nothing was asked."""
    binding = _Field[str | None]("binding")
    """The budget that refused, where one did."""
    reason = _Field[str | None]("reason")

    @property
    def mechanism(self) -> Mapping[str, Any] | None:
        """The full description of what was asked."""
        return self.body.get("mechanism")

    @property
    def moves(self) -> bool:
        """Whether it changes the committed state."""
        return "before" in self.body and self.body["before"] != self.body["after"]


def record(type: str, common: Mapping[str, Any], fields: Mapping[str, Any]) -> Record:
    """A record of the present version; its fields must be exactly those of its type.

    A field that is `Canonical` is taken as it is.
    """
    given = {**common, **fields, "type": type, "v": VERSION}
    _check(given, "a new record")
    made = Record(
        "{" + ",".join(f'"{name}":{written(given[name])}' for name in sorted(given)) + "}"
    )
    # The values that are at hand; `body` parses the rest from the text.
    object.__setattr__(made, "_values", given)
    object.__setattr__(made, "hash", digest(made.text))
    return made


def read(text: str) -> Record:
    """Parse a record from its stored text, of any version.

    Text that is not canonical is not a record: two texts could otherwise mean the same.
    """
    try:
        body = json.loads(
            text, object_pairs_hook=_reject_duplicates, parse_constant=_reject_constant
        )
    except (ValueError, RecursionError) as error:
        raise BrokenRecord(f"record is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise BrokenRecord(f"record must be a JSON object, got {type(body).__name__}")
    version = body.get("v")
    if type(version) is int and version > VERSION:
        raise BrokenRecord(
            f"record has version {version}; this residua reads up to {VERSION}: use a newer one"
        )
    _check(body, f"record {body.get('budget')!r} {body.get('seq')!r}")
    try:
        rewritten = canonical(body) != text
    except (ValueError, RecursionError) as error:  # such as 1e400, which is read as infinite
        raise BrokenRecord(
            f"record {body['budget']!r} {body['seq']} has no canonical form: {error}"
        ) from None
    if rewritten:
        raise BrokenRecord(
            f"record {body['budget']!r} {body['seq']} is not in canonical form: it was rewritten"
        )
    made = Record(text)
    made.__dict__["body"] = body
    return made


def follows(before: Record | None, after: Record) -> str | None:
    """None where `after` is the next record of the chain, else what is wrong."""
    seq = 0 if before is None else before.seq + 1
    prev = NOTHING_BEFORE if before is None else before.hash
    if after.seq != seq:
        return f"record number must be {seq}, got {after.seq}"
    if after.prev != prev:
        return f"prev is {after.prev[:12]}… and the record before hashes to {prev[:12]}…"
    if (before is None) != (after.type == "create"):
        return f"a chain begins with create and has only one, got {after.type} at {after.seq}"
    if before is not None:
        for name in ("ledger", "budget"):
            if after.body[name] != before.body[name]:
                return f"{name} is {after.body[name]!r}, before it was {before.body[name]!r}"
        if after.body["time"] < before.body["time"]:
            return f"time runs backwards, from {before.body['time']} to {after.body['time']}"
    return None


def state_after(record: Record) -> Mapping[str, Any]:
    """The committed state once a record is written."""
    state: Mapping[str, Any] = record.body.get("after", record.body.get("state"))
    return state


def lines(records: Iterable[Record]) -> Iterator[str]:
    """JSON Lines for export: the record's text and its hash, one a line."""
    for each in records:
        yield canonical({"hash": each.hash, "record": each.text}) + "\n"


def from_line(line: str) -> Record:
    """A record from a line of an export; its hash must agree."""
    try:
        parsed = json.loads(
            line, object_pairs_hook=_reject_duplicates, parse_constant=_reject_constant
        )
    except (ValueError, RecursionError) as error:
        raise BrokenRecord(f"line is not JSON: {error}") from None
    if not isinstance(parsed, dict) or set(parsed) != {"hash", "record"}:
        raise BrokenRecord("line must be an object of hash and record")
    if not isinstance(parsed["record"], str) or not isinstance(parsed["hash"], str):
        raise BrokenRecord("hash and record must be strings")
    found = read(parsed["record"])
    if found.hash != parsed["hash"]:
        raise BrokenRecord(
            f"record {found.budget!r} {found.seq} hashes to {found.hash[:12]}…,"
            f" its line says {parsed['hash'][:12]}…"
        )
    return found


def _check(body: Mapping[str, Any], what: str) -> None:
    kind = body.get("type")
    wanted = _ALL_FIELDS.get(kind) if isinstance(kind, str) else None
    if wanted is None:
        raise BrokenRecord(f"{what}: type must be one of {', '.join(FIELDS)}, got {kind!r}")
    if body.keys() != wanted and body.keys() - _OPTIONAL.get(str(kind), frozenset()) != wanted:
        missing, extra = sorted(wanted - set(body)), sorted(set(body) - wanted)
        raise BrokenRecord(
            f"{what}: a {kind} has the wrong fields: missing {missing}, unknown {extra}"
        )
    for name, wanted_type in (("v", int), ("seq", int), ("budget", str), ("ledger", str),
                              ("prev", str), ("time", str), ("by", str)):  # fmt: skip
        if type(body[name]) is not wanted_type:
            raise BrokenRecord(f"{what}: {name} must be {wanted_type.__name__}, got {body[name]!r}")
    if body["v"] != VERSION or body["seq"] < 0:
        raise BrokenRecord(f"{what}: v must be {VERSION} and seq at least 0, got {body['v']!r}")


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("duplicate field")
    return out


def _reject_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number of JSON")
