"""PLDs, filters and plans in notebooks: HTML with inline SVG, without any other library.

A privacy profile is `delta` on a logarithmic scale against `eps`; a line is the upper bound of what
it shows. Colours come from the page (`currentColor`), so that light and dark pages both work.
`_repr_html_` of each class calls the function for it here.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from residua.pld.curve import reach
from residua.pld.curve.support_ends import largest_loss_bounds

if TYPE_CHECKING:
    from residua.filters.base import Filter
    from residua.planning.comparison import FilterComparison
    from residua.planning.how_many import Frontier
    from residua.planning.recommend import Recommendation
    from residua.pld.pld import Pld

LEAST_DELTA = 1e-12
"""Where the axis of delta ends."""
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e")


def profiles(plds: Mapping[str, Pld]) -> str:
    """`delta` against `eps`, one line for each labelled PLD."""
    reaches = {label: _largest_eps(pld) for label, pld in plds.items()}
    end = max(reaches.values(), default=1.0)
    lines = {label: _points(pld, reaches[label], end) for label, pld in plds.items()}
    ticks = (1.0, 1e-3, 1e-6, 1e-9, LEAST_DELTA)
    return chart(lines, ("ε", "δ(ε)"), (0.0, end), (LEAST_DELTA, 1.0), ticks)


def _largest_eps(pld: Pld) -> float:
    """Beyond this `eps` a profile has come down to its mass at infinity, or is not shown."""
    if pld.is_infinite or pld.is_identity:
        return 1.0
    far = min(reach(pld, LEAST_DELTA), 1.02 * largest_loss_bounds(pld)[1])
    return min(max(far, 0.01), 50.0)


def _points(pld: Pld, reach: float, end: float) -> list[tuple[float, float]]:
    eps = np.linspace(0.0, reach, 81)
    # Within a tenth in eps is closer than the line is wide; what is deeper is not shown.
    heights = np.atleast_1d(pld.delta_bounds(eps, 0.1).hi).tolist()
    return [*zip(eps.tolist(), heights, strict=True), (end, heights[-1])]


def chart(
    lines: Mapping[str, Sequence[tuple[float, float]]],
    names: tuple[str, str],
    across: tuple[float, float],
    upward: tuple[float, float],
    ticks: Sequence[float],
) -> str:
    """Lines over a linear axis against a logarithmic one, as an SVG element."""
    # Of the picture and of the axes, in pixels.
    width, height = 380, 240
    left, right, bottom, top = 56.0, width - 12.0, height - 40.0, 14.0

    def x_of(x: float) -> float:
        return left + (x - across[0]) / (across[1] - across[0]) * (right - left)

    def y_of(y: float) -> float:
        share = math.log(max(y, upward[0]) / upward[0]) / math.log(upward[1] / upward[0])
        return bottom + min(share, 1.0) * (top - bottom)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" font-family="sans-serif" font-size="11" '
        'fill="currentColor">'
    ]
    for tick in ticks:
        y = y_of(tick)
        parts.append(_line(left, y, right, y, "0.15"))
        parts.append(f'<text x="{left - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for part in range(5):
        value = across[0] + part * (across[1] - across[0]) / 4
        x = x_of(value)
        parts.append(_line(x, bottom, x, bottom + 4, "0.6"))
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{value:.3g}</text>'
        )
    parts.append(_line(left, bottom, right, bottom, "0.6"))
    parts.append(_line(left, bottom, left, top, "0.6"))
    middle, (below, beside) = 0.5 * (left + right), map(html.escape, names)
    parts.append(f'<text x="{middle:.1f}" y="{height - 6}" text-anchor="middle">{below}</text>')
    parts.append(f'<text x="4" y="{top + 4:.1f}">{beside}</text>')
    for place, (label, points) in enumerate(lines.items()):
        colour = COLOURS[place % len(COLOURS)]
        seen = [(x, y) for x, y in points if y > upward[0]]
        path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in seen)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8">'
            f"<title>{html.escape(label)}</title></polyline>"
        )
        y = top + 8 + 14 * place
        parts.append(
            f'<text x="{right - 4:.1f}" y="{y:.1f}" text-anchor="end" fill="{colour}">'
            f"{html.escape(label)}</text>"
        )
    return "".join([*parts, "</svg>"])


def _line(x1: float, y1: float, x2: float, y2: float, opacity: str) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="currentColor" stroke-opacity="{opacity}"/>'
    )


def _row(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _properties(*rows: tuple[str, str]) -> str:
    """Names with their values, as a table."""
    lines = (f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in rows)
    return f"<table>{''.join(lines)}</table>"


def pld_html(pld: Pld) -> str:
    """The privacy profile of a PLD, and that of its reversal where it is another."""
    worst = {"": pld} if pld.is_symmetric else {"forward": pld, "reversed": pld.reverse()}
    return _properties(("PLD", repr(pld))) + profiles(worst)


def filter_html(filter: Filter) -> str:
    """What a filter keeps and what is left, with the curve of the guarantee."""
    left = getattr(filter.remaining, "pld", filter.remaining)
    admitted = sum(decision.admitted for decision in filter.history)
    rows = _properties(
        ("filter", repr(filter)),
        ("left", filter.left_words(filter.state)),
        ("of", filter.left_words(filter.initial())),
        ("balance", filter.balance.text),
        ("decided", f"{len(filter.history)}, {admitted} admitted"),
    )
    curves = {"guarantee": filter.guarantee}
    if hasattr(left, "delta_bounds"):
        curves["left"] = left
    return rows + profiles(curves)


def frontier_html(frontier: Frontier) -> str:
    """How many more of each kind of query fit, against its noise."""
    parts = []
    for line in frontier.lines:
        if not line.values:
            parts.append(f"<p>{html.escape(line.family)}: none fits</p>")
            continue
        points = list(zip(line.values, map(float, line.counts), strict=True))
        digits = max(1, len(str(max(line.counts))))
        names = f"{line.family}: {line.parameter}", "more"
        across = min(line.values), max(line.values)
        ticks = [10.0**k for k in range(digits + 1)]
        parts.append(chart({"": points}, names, across, (0.9, ticks[-1]), ticks))
    return "".join(parts)


def comparison_html(measured: FilterComparison) -> str:
    """The table of a comparison."""
    rows = [_row("th", measured.headings()), *(_row("td", cells) for cells in measured.cells())]
    caption = f"admitted / optimum within ({measured.eps:g}, {measured.delta:g})."
    caption = html.escape(f"{caption} {measured.caption()}".strip())
    return f"<table><caption>{caption}</caption>{''.join(rows)}</table>"


def recommendation_html(found: Recommendation) -> str:
    """The reason, the curve that is promised, and what every filter admits."""
    curve = profiles({"guarantee": found.filter.guarantee})
    return f"<p>{html.escape(found.reason)}</p>{curve}{comparison_html(found.comparison)}"
