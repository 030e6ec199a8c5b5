"""`python -m benchmarks [--only NAME] [--repeats N] [--quick] [--json] [--markdown FILE] …`."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import alone, machine
from benchmarks.harness.run import Run
from benchmarks.harness.section import Section
from benchmarks.peers.participants import PACKAGES, open_field
from benchmarks.report import html, markdown, pictures, text

BESIDE = {
    "build": "benchmarks.pld.build",
    "many_equal": "benchmarks.pld.many_equal",
    "streaming": "benchmarks.pld.streaming",
    "tradeoff": "benchmarks.pld.tradeoff",
    "accuracy": "benchmarks.pld.accuracy",
    "soundness": "benchmarks.pld.soundness",
    "bad_inputs": "benchmarks.bad_inputs",
    "filter_history": "benchmarks.filters.filter_history",
    "admitted": "benchmarks.filters.admitted",
    "claims": "benchmarks.claims",
}
"""The module of each benchmark that is run beside the peers."""

NAMES = (*BESIDE, *alone.MODULES)


def arguments(given: list[str] | None) -> argparse.Namespace:
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
    parser.add_argument("--quick", action="store_true", help="a rehearsal with few settings")
    parser.add_argument(
        "--no-install", action="store_true", help="only peers that are installed already"
    )
    parser.add_argument(
        "--peer",
        metavar="PACKAGE",
        action="append",
        choices=PACKAGES,
        help=f"ask this peer and no other (may be repeated): {', '.join(PACKAGES)}",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write the report here")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write it as one HTML file")
    parser.add_argument("--save", metavar="FILE", type=Path, help="keep the figures as JSON")
    parser.add_argument(
        "--load", metavar="FILE", type=Path, help="measure nothing: report what was saved"
    )
    chosen = parser.parse_args(given)
    if chosen.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {chosen.repeats}")
    return chosen


def measured(chosen: argparse.Namespace) -> dict[str, Any]:
    """Facts and sections of a run, as JSON has them."""
    found: dict[str, Any] = {"environment": {}, "sections": []}
    with open_field(not chosen.no_install, chosen.peer or PACKAGES) as field:
        run = Run(field, chosen.repeats, chosen.quick)
        names = chosen.only or NAMES
        for place, name in enumerate(names, 1):
            print(f"{place}/{len(names)} {name} ...", end="", file=sys.stderr, flush=True)
            started = time.perf_counter()
            found["sections"].append(_section(name, run).to_json())
            found["environment"] = machine.facts(field, chosen.quick)
            # A run that is stopped keeps what it has.
            if chosen.save:
                saved(found, chosen.save)
            print(f" {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    if warning := machine.busy():
        print(warning, file=sys.stderr)
    return found


def saved(found: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1), encoding="utf-8")


def _section(name: str, run: Run) -> Section:
    if name in alone.MODULES:
        return alone.section(name, run)
    found: Section = importlib.import_module(BESIDE[name]).measure(run)
    return found


def written(chosen: argparse.Namespace, facts: dict[str, str], sections: list[Section]) -> None:
    """The files that were asked for; pictures stand beside the Markdown."""
    page: Path | None = chosen.markdown
    beside = page or chosen.html
    if beside is None:
        return
    folder = beside.parent / "figures"
    drawn = {
        plot.name: pictures.inline(pictures.draw(plot, folder / f"bench-{plot.name}.svg"))
        for section in sections
        for plot in section.plots
    }
    if page is not None:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(markdown.page(facts, sections, "figures"), encoding="utf-8")
    if chosen.html is not None:
        chosen.html.parent.mkdir(parents=True, exist_ok=True)
        chosen.html.write_text(html.page(facts, sections, drawn), encoding="utf-8")
    for path in filter(None, (page, chosen.html)):
        print(f"wrote {path}", file=sys.stderr)


def main(given: list[str] | None = None) -> None:
    chosen = arguments(given)
    found = json.loads(chosen.load.read_text()) if chosen.load else measured(chosen)
    facts, sections = found["environment"], [Section.from_json(s) for s in found["sections"]]
    written(chosen, facts, sections)
    print(json.dumps(found, indent=2) if chosen.json else text.page(facts, sections))


if __name__ == "__main__":
    main()
