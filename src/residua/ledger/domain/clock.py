"""Times as the ledger writes them: UTC to the millisecond, as text that sorts by time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from residua.errors import ArgumentError, BrokenRecord
from residua.records import LEAST_WINDOW

FAR = "9999-12-31T23:59:59.999Z"
_WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)


def text(moment: datetime) -> str:
    """A moment as text, rounded down to the millisecond."""
    shown = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return shown.replace("+00:00", "Z")


def moment(written: str) -> datetime:
    """The moment that a text names; checked, as other programs may have written to the store."""
    try:
        if _WRITTEN.fullmatch(written) is not None:
            return datetime.fromisoformat(written)
    except (TypeError, ValueError):
        pass
    raise BrokenRecord(f"a time in the store must be like {FAR}, got {written!r}")


def is_over(end: str | None, now: str) -> bool:
    """Whether a window has an end that is past. Raises on a stored value that is not a time."""
    return end is not None and moment(end) <= moment(now)


def later(written: str, seconds: float) -> str:
    """The time so many seconds later."""
    try:
        return text(moment(written) + timedelta(seconds=seconds))
    except OverflowError:
        return FAR


def age(written: str, now: str) -> float:
    """Seconds from one to the other."""
    return (moment(now) - moment(written)).total_seconds()


def boundary(start: str, length: float, now: str) -> str:
    """The first end of a window of `length` seconds, counted from `start`, that is after `now`."""
    if not length >= LEAST_WINDOW:
        raise ArgumentError(f"window must be at least {LEAST_WINDOW:g} second, got {length!r}")
    whole = int(max(0.0, age(start, now)) // length) + 1
    end = later(start, whole * length)
    while end <= now:
        whole += 1
        end = later(start, whole * length)
    return end
