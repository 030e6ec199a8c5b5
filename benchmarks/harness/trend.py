"""Whether what a process holds grows: slopes over time, and a verdict by limits set beforehand.

A slope is the median of the slopes between all pairs of values (Theil and Sen), so a few outliers
do not move it, with a 95 % confidence interval from Kendall's statistic (Sen 1968). The values are
medians of rounds, each of one sample beside every kind of other work: what differs between kinds is
no trend, and neighbouring samples are not independent. Samples of the warm-up, in which caches
fill, are left out. What may grow beyond its limit by the upper end of the interval is undecided.
"""

from __future__ import annotations

import itertools
import math
import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HOUR = 3600.0
LIMITS = {"memory_mb": 0.05, "open_files": 0.2, "connections": 0.2, "threads": 0.2, "p50_ms": 0.5}
"""By how much of itself each may grow in an hour. Latency depends on what else the machine does."""


NORMAL = 1.96
"""The quantile of the normal distribution that leaves 95 % in the middle."""


def slope(times: Sequence[float], values: Sequence[float]) -> tuple[float, float, float]:
    """The median slope between pairs of values, in units a second, and the ends of its interval."""
    pairs = itertools.combinations(zip(times, values, strict=True), 2)
    slopes = sorted((b - a) / (t - s) for (s, a), (t, b) in pairs if t > s)
    if not slopes:
        return 0.0, -math.inf, math.inf
    n = len(values)
    half = NORMAL * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    first = math.floor((len(slopes) - half) / 2)
    ends = (-math.inf, math.inf) if first < 0 else (slopes[first], slopes[-1 - first])
    return statistics.median(slopes), *ends


def in_rounds(samples: Sequence[dict[str, float]], length: int) -> list[dict[str, float]]:
    """The medians of each `length` samples that follow one another; the rest is left out."""
    starts = range(0, len(samples) - length + 1, length)
    rounds = [samples[start : start + length] for start in starts]
    return [
        {name: statistics.median(one[name] for one in some) for name in some[0]} for some in rounds
    ]


def trends(samples: Sequence[dict[str, float]], warm_up: float, length: int = 1) -> dict[str, Any]:
    """How each quantity moves once the warm-up is over, and whether any grows beyond its limit.

    `length` is the number of samples of a round.
    """
    warm = [one for one in samples if one["seconds"] >= warm_up]
    rounds = in_rounds(warm, length)
    times = [one["seconds"] for one in rounds]
    found: dict[str, Any] = {}
    for name, limit in LIMITS.items():
        values = [one[name] for one in rounds]
        middle = statistics.median(values) if values else 0.0
        hourly, *ends = (HOUR * each for each in slope(times, values))
        growth, _, most = (each / middle if middle else 0.0 for each in (hourly, *ends))
        found[name] = {
            "median": middle,
            "least": min((one[name] for one in warm), default=0.0),
            "most": max((one[name] for one in warm), default=0.0),
            "an_hour": hourly,
            "an_hour_interval": ends,
            "share_an_hour": growth,
            "limit": limit,
            "verdict": "grows" if growth > limit else "no" if most <= limit else "undecided",
        }
    records = warm[-1]["records"] - warm[0]["records"] if warm else 0.0
    seconds = warm[-1]["seconds"] - warm[0]["seconds"] if warm else 0.0
    memory = found["memory_mb"]["an_hour"] * seconds / HOUR
    said = []
    for answer in ("grows", "undecided"):
        if names := sorted(name for name, one in found.items() if one["verdict"] == answer):
            said.append(f"{answer}: {', '.join(names)}")
    return {
        "warm_up": warm_up,
        "samples": len(warm),
        "rounds": len(rounds),
        "records": records,
        "kb_a_record": 1024 * memory / records if records else 0.0,
        "trends": found,
        "verdict": "; ".join(said) or "nothing grows",
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
