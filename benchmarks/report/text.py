"""The report for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.harness.rows import aligned
from benchmarks.harness.section import Section


def page(facts: Mapping[str, str], sections: Sequence[Section]) -> str:
    parts = ["\n".join(f"{name:<16}{value}" for name, value in facts.items())]
    for section in sections:
        parts.append(f"== {section.title}")
        for table in section.tables:
            if table.caption:
                parts.append(table.caption)
            parts.append(aligned([table.heads, *table.rows]))
    goals = [goal for section in sections for goal in section.goals]
    if goals:
        lines = [(g.what, g.figure, g.target, "PASS" if g.met else "FAIL") for g in goals]
        parts.append(aligned([("target", "figure", "wanted", ""), *lines]))
    better = [line for section in sections for line in section.better]
    if better:
        parts.append("\n".join(["Where a peer is better:", *(f"- {line}" for line in better)]))
    return "\n\n".join(parts)
