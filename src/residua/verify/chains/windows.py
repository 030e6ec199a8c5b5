"""Times in the records, and when a window ends by them.

Windows of `w` seconds are counted from the creation of a budget, so they end at `start + k w`, to
the millisecond below, which is what a record's time can say. A new one may begin late, never early.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from residua.records import LEAST_WINDOW

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_FAR = "9999-12-31T23:59:59.999Z"


def no_window(window: Any) -> bool:
    """Whether this is not a number of seconds that a window may have."""
    return type(window) is not float or not LEAST_WINDOW <= window < math.inf


def is_time(written: Any) -> bool:
    """Whether this is a time as records write it, to the millisecond."""
    try:
        return _TIME.fullmatch(written) is not None and _moment(written) is not None
    except (TypeError, ValueError):
        return False


def later(written: str, seconds: float) -> str:
    """The time so many seconds later, as records write it."""
    try:
        moment = _moment(written) + timedelta(seconds=seconds)
    except OverflowError:
        return _FAR
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def early(start: Any, window: Any, last: Any, now: Any) -> str | None:
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


def _moment(written: str) -> datetime:
    return datetime.strptime(written, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def _end(begun: datetime, window: float, count: int) -> datetime | None:
    """The end of so many windows; None if no record's time reaches it."""
    try:
        end = begun + timedelta(seconds=count * window)
    except OverflowError:
        return None
    return end.replace(microsecond=end.microsecond // 1000 * 1000)
