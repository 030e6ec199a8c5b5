"""Named points of the committer at which a test may kill the process.

`RESIDUA_FAULT="name:count"` in the environment ends the process, as SIGKILL does, when it passes
the point of that name for the count-th time. Otherwise a point does nothing.
"""

from __future__ import annotations

import os
import signal
from itertools import count

POINTS = (
    "begun",
    "locked",
    "decided",
    "written",
    "committing",
    "committed",
    "anchoring",
    "anchored",
    "answered",
)
"""The stages of a write, in order: each is passed once for a transaction."""


def _configured_fault() -> tuple[str, int] | None:
    name, _, times = os.environ.get("RESIDUA_FAULT", "").partition(":")
    return (name, int(times or "1")) if name else None


_FAULT = _configured_fault()
_PASSES = count(1)


def point(name: str) -> None:
    """Pass a point; perhaps never to return."""
    if _FAULT is None or _FAULT[0] != name:
        return
    if next(_PASSES) == _FAULT[1]:
        os.kill(os.getpid(), signal.SIGKILL)
