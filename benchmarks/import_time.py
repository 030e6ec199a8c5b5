"""`import residua` in a fresh interpreter, less the time a bare interpreter takes."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from benchmarks.harness.rows import Row, milliseconds_below

FIRST_READ = "import residua as rz; (rz.gaussian(mu=1.0) + rz.laplace(scale=2.0)).delta(1.0)"
LOADED = "import sys, residua; print(' '.join({m.split('.')[0] for m in sys.modules}))"


def wall_ms(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return 1000.0 * (time.perf_counter() - start)


def beyond_bare_ms(code: str, repeats: int) -> float:
    """Median extra milliseconds of running `code`, each run beside a bare one."""
    wall_ms(code)
    return median(wall_ms(code) - wall_ms("pass") for _ in range(repeats))


def scipy_is_deferred() -> bool:
    listing = subprocess.run(
        [sys.executable, "-c", LOADED], check=True, capture_output=True, text=True
    )
    return "scipy" not in listing.stdout.split()


def run(repeats: int) -> list[Row]:
    return [
        Row(
            work="import residua",
            ours_ms=beyond_bare_ms("import residua", 3 * repeats),
            target=milliseconds_below(300.0),
            note="scipy deferred" if scipy_is_deferred() else "scipy loaded, should be deferred",
        ),
        Row(
            work="import residua and a first read",
            ours_ms=beyond_bare_ms(FIRST_READ, repeats),
            note="scipy loaded",
        ),
    ]
