"""The structure of one chain: the checks of its records that need no mathematics.

Every text is a record in canonical form, hashes link, numbers count up, time does not run
backwards; each `before` is the committed state that the records so far leave; refusals, holds,
cancels and expiries move nothing; nothing follows a retirement; windows count up, and none
begins before the last one is over or while something is held; a bound without a declared relation
is recorded with `assumed: true`. Names, times and flags are what a ledger accepts as such.

Windows of `w` seconds are counted from the creation of a budget, so they end at `start + k w`, to
the millisecond below, which is what a record's time can say. A new one may begin late, never early.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from residua.errors import BrokenRecord
from residua.records import (
    LEAST_WINDOW,
    Record,
    canonical,
    follows,
    read,
    state_after,
)
from residua.verify.chains.chain import REQUEST_TYPES, Chain, members_of
from residua.verify.descriptions.fields import RELATIONS, is_label, undeclared


def load(name: str, items: Iterable[Record | str | bytes]) -> Chain:
    """Read a chain and check its links. Bytes are what a store has in place of a text."""
    chain = Chain(name)
    before: Record | None = None
    for place, item in enumerate(items):
        try:
            if isinstance(item, bytes):
                raise BrokenRecord(f"record is not text: {_odd(item)}")
            record = read(item.text if isinstance(item, Record) else item)
        except BrokenRecord as error:
            chain.add_problem(place, f"{error}")
            chain.whole, before = False, None
            continue
        if record.budget != name:
            chain.add_problem(place, f"the record belongs to the budget {record.budget!r}")
        broken = follows(before, record) if before is not None or place == 0 else None
        if broken is not None:
            if before is not None and record.prev != before.hash and record.seq == before.seq + 1:
                broken = f"record {before.seq} or {record.seq} was changed: {broken}"
            chain.add_problem(record.seq, broken)
            chain.whole = False
        _check_fields(record.body, _EVERY, partial(chain.add_problem, record.seq))
        chain.records.append(record)
        before = record
    if not chain.records:
        chain.add_problem(None, "the chain has no records")
    return chain


def _odd(stored: bytes) -> str:
    """The difference between stored bytes and the text of a record."""
    at = next((place for place, byte in enumerate(stored) if byte > 0x7F), None)
    return "it is stored as bytes" if at is None else f"byte {at} of it is {stored[at]:#x}"


def check_states(chain: Chain) -> None:
    """States, holds, retirement and windows along one chain."""
    state: Any = None
    held: dict[str, Record] = {}
    retired, generation, began = False, 0, chain.first.get("time")
    following = 0
    for record in chain.records:
        body, kind = record.body, record.type
        if record.seq != following:
            # A record is missing, which was reported; the state after it is unknown.
            state = None
        following = record.seq + 1
        report = partial(chain.add_problem, record.seq)
        if "before" in body and state is not None and body["before"] != state:
            report("the state before is not what the records so far leave")
        if kind in REQUEST_TYPES:
            _check_request(body, kind, report)
        elif body.get("before") != body.get("after"):
            report(f"a {kind} moves the committed state")
        if retired:
            report(f"the budget was retired before this {kind}")
        if "reason" in body and not _is_reason(body["reason"], kind):
            report(f"reason must be a string, got {body['reason']!r:.60}")
        id = canonical(body.get("hold"))
        if kind == "hold" and not (
            is_time(body["expires"]) and is_time(body["time"]) and body["expires"] >= body["time"]
        ):
            report(f"a hold ends at {body['expires']!r:.60}")
        if kind == "hold" and body["admitted"]:
            if id in held:
                report(f"the hold {body['hold']!r} is made twice")
            held[id] = record
        if kind in ("commit", "cancel", "expire"):
            made = held.get(id)
            if made is None:
                report(f"a {kind} of the hold {body['hold']!r}, which is not open")
            elif kind == "commit" and made.body["mechanism"] != body["mechanism"]:
                report("the commit has a different mechanism from its hold")
            elif kind == "commit" and made.body["assumed"] != body["assumed"]:
                report("the commit does not assume the relation as its hold does")
            elif kind == "commit" and body["admitted"] and _late(made, body["time"]):
                report(f"a commit of the hold {body['hold']!r}, whose time was over")
            if body.get("admitted", True):
                held.pop(id, None)
        if held and kind in ("refresh", "retire", "recover"):
            report(f"a {kind} while {len(held)} reservations are open")
        if kind == "refresh":
            generation += 1
            window = chain.first.get("window")
            if window is None:
                report("a new window of a budget that has none")
            elif not no_window(window):
                soon = why_early(chain.first["time"], window, began, body["time"])
                if soon is not None:
                    report(soon)
            if type(body["generation"]) is not int or body["generation"] != generation:
                report(f"generation must be {generation}, got {body['generation']}")
        if kind == "create":
            _check_fields(body, _CREATED, report)
        if kind in ("create", "refresh"):
            began = body["time"]
        if kind in ("retire", "recover"):
            retired = True
        state = state_after(record)


def _check_fields(body: Mapping[str, Any], rules: Rules, report: Callable[[str], None]) -> None:
    """Check those of these fields that a record has."""
    for names, good, what in rules:
        for name in names:
            if name in body and not good(body[name]):
                report(f"{name} must be {what}, got {body[name]!r:.60}")


def _is_reason(value: Any, kind: str) -> bool:
    """Whether this is a text; a retirement or cancellation needs a non-empty one."""
    if not isinstance(value, str):
        return False
    return kind not in ("retire", "cancel") or 0 < len(value.strip()) <= len(value) <= 2000


def _late(hold: Record, time: str) -> bool:
    """Whether a hold's time was over; times are written so that they sort as texts."""
    expires = hold.body["expires"]
    return not isinstance(expires, str) or time >= expires


def _check_request(body: Mapping[str, Any], kind: str, report: Callable[[str], None]) -> None:
    bound = None if body["assumed"] is True else undeclared(body["mechanism"])
    if bound is not None:
        report(f"{bound} is known by a bound alone: no relation is declared, and none was assumed")
    named = {name for name, _ in members_of(body["group"])}
    if body["binding"] is not None and body["binding"] not in sorted(named):
        report(f"binding must be a budget of the group, got {body['binding']!r:.60}")
    if body["admitted"] and body["binding"] is not None:
        report("admitted, and yet a budget refused")
    if not body["admitted"] and body["binding"] is None:
        report("refused, and yet no budget did")
    if body["before"] == body["after"] and body["tables"] != {}:
        report("tables are named, and the committed state does not move")
    if body["before"] != body["after"] and (not body["admitted"] or kind == "hold"):
        report(f"a {'refusal' if not body['admitted'] else 'hold'} moves the committed state")


# -- times and windows ----------------------------------------------------------------------------


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)


def no_window(window: Any) -> bool:
    """Whether this is not a number of seconds that a window may have."""
    return type(window) is not float or not LEAST_WINDOW <= window < math.inf


def is_time(text: Any) -> bool:
    """Whether this is a time as records write it, to the millisecond."""
    try:
        return _TIME.fullmatch(text) is not None and _moment(text) is not None
    except (TypeError, ValueError):
        return False


def later(text: str, seconds: float) -> str:
    """The time so many seconds later, as records write it."""
    try:
        moment = _moment(text) + timedelta(seconds=seconds)
    except OverflowError:
        return "9999-12-31T23:59:59.999Z"
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def why_early(start: Any, window: Any, last: Any, now: Any) -> str | None:
    """None if the window in which `last` lies is over at `now`, else what is wrong."""
    if no_window(window):
        return f"a window of {window!r} seconds"
    try:
        begun, before, after = (_moment(each) for each in (start, last, now))
    except (TypeError, ValueError):
        return "a time that cannot be read where a window begins"
    count = int((before - begun).total_seconds() // window)
    end = _end(begun, window, max(count, 0))
    while end is not None and end <= before:
        count += 1
        end = _end(begun, window, count)
    if end is None or after < end:
        return f"a new window begins at {now}, before the last one is over"
    return None


def _moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def _end(begun: datetime, window: float, count: int) -> datetime | None:
    """The end of so many windows; None if no record's time reaches it."""
    try:
        end = begun + timedelta(seconds=count * window)
    except OverflowError:
        return None
    return end.replace(microsecond=end.microsecond // 1000 * 1000)


# -- fields ---------------------------------------------------------------------------------------


def _is_name(value: Any) -> bool:
    """Whether this is a name after NFC normalisation."""
    return isinstance(value, str) and is_label(unicodedata.normalize("NFC", value))


_LINE = "one line of printable text"
Rules = tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...]
"""Names of fields, the check of their values, and what these must be."""
_EVERY: Rules = (
    (("time",), is_time, "YYYY-MM-DDThh:mm:ss.mmmZ"),
    (("by", "key"), _is_name, _LINE),
    (("request", "hold"), lambda value: type(value) is str, "a text"),
    (("admitted", "assumed"), lambda value: type(value) is bool, "true or false"),
)
"""Fields of records of any type."""
_CREATED: Rules = (
    (("budget", "unit"), is_label, _LINE),
    (("data", "parent", "partition"), lambda value: value is None or is_label(value), _LINE),
    (("relation",), lambda value: value in RELATIONS, "a known relation"),
    (("window",), lambda v: v is None or not no_window(v), f"null or at least {LEAST_WINDOW:g} s"),
    (("library",), lambda value: type(value) is str, "a text"),
    (("shares_data",), lambda value: type(value) is bool, "true or false"),
)
"""Fields of the record that creates a budget."""
