"""The report as one HTML file: nothing is loaded from anywhere."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape

from benchmarks.harness.section import Goal, Section, Table

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto }
caption { text-align: left; font-weight: 600; padding: .3rem 0 }
th, td { border-bottom: 1px solid #8884; padding: .25rem .7rem; text-align: right }
th:first-child, td:first-child { text-align: left }
.missed { color: #b3261e; font-weight: 600 }
svg { max-width: 100%; height: auto; background: #fff }
@media (prefers-color-scheme: dark) { body { background: #161616; color: #e8e8e8 } }
"""


def page(facts: Mapping[str, str], sections: Sequence[Section], pictures: Mapping[str, str]) -> str:
    """All of it; `pictures` are drawings in SVG by the name of their plot."""
    goals = [goal for section in sections for goal in section.goals]
    ahead = [line for section in sections for line in section.better]
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>Benchmarks of residua, {escape(facts['date'])}</title><style>{STYLE}</style>",
        f"<h1>Benchmarks of residua</h1><p>Measured on {escape(facts['date'])} in one run; "
        "times are medians of processor seconds.</p>",
        "<h2>In short</h2>",
        _goals(goals),
        "<h2>Where a peer is better</h2>",
        "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in ahead) + "</ul>"
        if ahead
        else "<p>Nowhere in this run.</p>",
    ]
    for section in sections:
        parts.append(f"<h2>{escape(section.title)}</h2><p>{_words(section.about)}</p>")
        parts += [_table(table) for table in section.tables]
        parts += [pictures[plot.name] for plot in section.plots if plot.name in pictures]
    parts += ["<h2>The machine</h2>", _table(Table(("", ""), tuple(facts.items()))), "</html>"]
    return "\n".join(parts) + "\n"


def _goals(goals: Sequence[Goal]) -> str:
    lines = [
        f"<tr><td>{escape(g.what)}<td>{escape(g.figure)}<td>{escape(g.target)}"
        + ("<td>met" if g.met else "<td class='missed'>missed")
        for g in goals
    ]
    return "<table><tr><th><th>figure<th>target<th>" + "".join(lines) + "</table>"


def _table(table: Table) -> str:
    lines = [f"<caption>{_words(table.caption)}</caption>"] if table.caption else []
    lines.append("<tr>" + "".join(f"<th>{_words(head)}" for head in table.heads))
    lines += ["<tr>" + "".join(f"<td>{_words(cell)}" for cell in row) for row in table.rows]
    return f"<table>{''.join(lines)}</table>"


def _words(text: str) -> str:
    """Text with the code and the links of Markdown: links lead nowhere from here."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", escape(text))
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", text)
