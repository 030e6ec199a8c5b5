"""Whether what a process holds grows: slopes over time, and a verdict by limits set beforehand.

A slope is the median of the slopes between all pairs of samples (Theil and Sen), so a few outliers
do not move it. Samples of the warm-up, in which caches fill, are left out.
"""

from __future__ import annotations

import itertools
import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HOUR = 3600.0
LIMITS = {"memory_mb": 0.05, "open_files": 0.2, "connections": 0.2, "threads": 0.2, "p50_ms": 0.5}
"""By how much of itself each may grow in an hour. Latency depends on what else the machine does."""


def slope(times: Sequence[float], values: Sequence[float]) -> float:
    """The median slope between pairs of samples, in units a second; 0 of fewer than two."""
    pairs = itertools.combinations(zip(times, values, strict=True), 2)
    slopes = [(b - a) / (t - s) for (s, a), (t, b) in pairs if t > s]
    return statistics.median(slopes) if slopes else 0.0


def trends(samples: Sequence[dict[str, float]], warm_up: float) -> dict[str, Any]:
    """How each quantity moves once the warm-up is over, and whether any grows beyond its limit."""
    warm = [one for one in samples if one["seconds"] >= warm_up]
    times = [one["seconds"] for one in warm]
    found: dict[str, Any] = {}
    for name, limit in LIMITS.items():
        values = [one[name] for one in warm]
        middle = statistics.median(values) if values else 0.0
        hourly = HOUR * slope(times, values)
        growth = hourly / middle if middle else 0.0
        found[name] = {
            "median": middle,
            "least": min(values, default=0.0),
            "most": max(values, default=0.0),
            "an_hour": hourly,
            "share_an_hour": growth,
            "limit": limit,
            "grows": growth > limit,
        }
    records = warm[-1]["records"] - warm[0]["records"] if warm else 0.0
    seconds = times[-1] - times[0] if warm else 0.0
    memory = found["memory_mb"]["an_hour"] * seconds / HOUR
    growing = sorted(name for name, one in found.items() if one["grows"])
    return {
        "warm_up": warm_up,
        "samples": len(warm),
        "records": records,
        "kb_a_record": 1024 * memory / records if records else 0.0,
        "trends": found,
        "verdict": f"grows: {', '.join(growing)}" if growing else "nothing grows",
    }


def held_by(pid: int) -> dict[str, float]:
    """What a process holds: memory in megabytes, also of its children, files, sockets, threads."""
    files = [_target(Path(f"/proc/{pid}/fd/{one}")) for one in os.listdir(f"/proc/{pid}/fd")]
    status = _status(pid)
    return {
        "memory_mb": status["VmRSS"] / 1024,
        "workers_mb": sum(_status(one).get("VmRSS", 0) for one in _children(pid)) / 1024,
        "open_files": len(files),
        "connections": sum(one.startswith("socket:") for one in files),
        "threads": status["Threads"],
    }


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:  # Closed meanwhile.
        return ""


def _status(pid: int) -> dict[str, int]:
    """The numbers of a process's status; nothing of one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    fields = (line.split()[:2] for line in lines if len(line.split()) > 1)
    return {name.rstrip(":"): int(value) for name, value in fields if value.isdigit()}


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found
