"""The figures that README claims, each measured by the command it names."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.run import Run
from benchmarks.harness.section import Goal, Section, table

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Claim:
    """Words of README, the module that measures them, and the least that bears them out."""

    words: str
    module: str
    arguments: tuple[str, ...]
    rehearsal: tuple[str, ...]
    pattern: str
    least: float
    unit: str


CLAIMS = (
    Claim(
        "ten times as many queries, each of which still counts 95 % of the data",
        "examples.attribution",
        (),
        ("--devices", "300", "--queries", "60"),
        r"one per device and week: .*\((?P<figure>[\d.]+) x\)",
        10.0,
        "times as many",
    ),
    Claim(
        "individual accounting in training: a point of accuracy at the same noise",
        "examples.training",
        (),
        ("--runs", "1", "--steps", "4"),
        r"worst-case filter: (?P<before>[\d.]+) %(?s:.*)individual filter: (?P<figure>[\d.]+) %",
        1.0,
        "points",
    ),
    Claim(
        "up to a hundred million",
        "benchmarks.individual_scale",
        ("--only", "growth"),
        ("--only", "growth", "--most", "100000"),
        r"(?s:.*\n).*?(?P<figure>\d+(?:,\d{3})+) ",
        1e8,
        "budgets in memory",
    ),
)


def measured(claim: Claim, quick: bool) -> float | str:
    """The figure; or what the command printed instead of one."""
    with tempfile.TemporaryDirectory() as folder:
        out = ["--out", f"{folder}/figure.png"] if claim.module.startswith("examples") else []
        given = claim.rehearsal if quick else claim.arguments
        command = [sys.executable, "-m", claim.module, *given, *out]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    found = re.search(claim.pattern, done.stdout)
    if done.returncode or not found:
        return (done.stderr.strip().splitlines() or ["no figure"])[-1][:160]
    before = found.groupdict().get("before") or "0"
    return round(float(found["figure"].replace(",", "")) - float(before), 6)


def measure(run: Run) -> Section:
    rows, goals = [], []
    for claim in CLAIMS:
        figure = measured(claim, run.quick)
        said = figure if isinstance(figure, str) else f"{figure:,g} {claim.unit}"
        met = isinstance(figure, float) and figure >= claim.least
        command = f"python -m {' '.join((claim.module, *claim.arguments))}"
        rows.append([f"“{claim.words}”", said, f"`{command}`"])
        goals.append(Goal(f"README: “{claim.words}”", said, f"at least {claim.least:,g}", met))
    return Section(
        "claims",
        "What README claims",
        "The figures in the text of README. What its examples print is compared by the tests.",
        (table(["claim", "measured", "command"], rows),),
        tuple(goals),
    )
