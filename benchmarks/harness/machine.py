"""Facts about the machine and the packages of a run."""

from __future__ import annotations

import os
import platform
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.peers.participants import PEERS, Field


def facts(field: Field, rehearsal: bool = False) -> dict[str, str]:
    """The date, the machine, and every version that matters."""
    kind = {"run": "a rehearsal with few settings: figures of no account"} if rehearsal else {}
    asked = {peer.package: field.homes.get(peer.package) for peer in PEERS}
    peers = {name: home.version or home.why for name, home in asked.items() if home}
    return {
        "date": date.today().isoformat(),
        **kind,
        "processor": f"{_model()}, {os.cpu_count()} cores",
        "memory": f"{_memory():.0f} GB",
        "system": f"{platform.system()} {platform.machine()}",
        "load": f"{os.getloadavg()[0]:.1f} at the end of the run",
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "mpmath": _version("mpmath"),
        **peers,
    }


def busy() -> str:
    """A warning if other work competes for the processors, else nothing."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load <= cores:
        return ""
    return f"warning: load average {load:.1f} on {cores} cores; short timings are blurred"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def _memory() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
