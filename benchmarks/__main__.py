"""`python -m benchmarks [--only NAME] [--repeats N] [--json]`."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from importlib.metadata import version

from benchmarks.rows import answers, speeds

NAMES = (
    "streaming_gaussians",
    "streaming_mixed",
    "many_equal",
    "build_subsampled",
    "streaming_subsampled",
    "many_subsampled",
    "compare_finite",
    "supremum_finite",
    "filter_history",
    "gdp_residue",
    "individual",
    "import_time",
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only",
        metavar="NAME",
        action="append",
        choices=NAMES,
        help=f"run this benchmark alone (may be repeated): {', '.join(NAMES)}",
    )
    parser.add_argument(
        "--repeats", type=int, default=5, help="measurements behind each median (default: 5)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    chosen = parser.parse_args()
    if chosen.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {chosen.repeats}")
    return chosen


def environment() -> dict[str, str]:
    packages = ("residuum", "dp-accounting", "opendp", "numpy", "scipy")
    return {"python": platform.python_version(), "machine": platform.machine()} | {
        package: version(package) for package in packages
    }


def busy() -> str:
    """A warning if other work competes for the processors, else nothing."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load <= cores:
        return ""
    return f"warning: load average {load:.1f} on {cores} cores; short timings are blurred"


def main() -> None:
    chosen = arguments()
    rows = []
    for name in chosen.only or NAMES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows += importlib.import_module(f"benchmarks.{name}").run(chosen.repeats)
    if warning := busy():
        print(warning, file=sys.stderr)
    about = environment()
    if chosen.json:
        report = {"environment": about, "rows": [row.to_json() for row in rows]}
        print(json.dumps(report, indent=2))
        return
    print("  ".join(f"{name} {value}" for name, value in about.items()))
    print()
    print(speeds(rows))
    if compared := answers(rows):
        print()
        print(compared)


if __name__ == "__main__":
    main()
