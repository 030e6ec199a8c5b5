"""Times as the ledger writes them: UTC to the millisecond, as text that sorts by time."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from residua.errors import ArgumentError, BrokenRecord
from residua.records import LEAST_WINDOW

FAR = "9999-12-31T23:59:59.999Z"
_WRITTEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)


def text(moment: datetime) -> str:
    """A moment as text."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def moment(written: str) -> datetime:
    """The moment that a text names; checked, as other programs may have written to the store."""
    if not _is_time(written):
        raise _broken(written)
    try:
        return datetime.strptime(written, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    except ValueError:
        raise _broken(written) from None


def is_over(end: Any, now: str) -> bool:
    """Whether a window has an end that is past. A stored value that is not a time is ignored."""
    if end is None:
        return False
    if not _is_time(end):
        raise _broken(end)
    return bool(end <= now)


def _is_time(written: Any) -> bool:
    return isinstance(written, str) and _WRITTEN.fullmatch(written) is not None


def _broken(written: Any) -> BrokenRecord:
    return BrokenRecord(f"a time in the store must be like {FAR}, got {written!r}")


def seconds(written: str) -> float:
    """The moment that a text says, in seconds since 1970."""
    return moment(written).timestamp()


def written(seconds: float) -> str:
    """Seconds since 1970 as text, rounded down to the millisecond."""
    whole = int(1000 * seconds)
    at = time.gmtime(whole // 1000)
    return (
        f"{at.tm_year:04}-{at.tm_mon:02}-{at.tm_mday:02}T{at.tm_hour:02}:{at.tm_min:02}"
        f":{at.tm_sec:02}.{whole % 1000:03}Z"
    )


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
