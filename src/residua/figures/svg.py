"""Privacy profiles as inline pictures, for notebooks: SVG text, no library.

`delta` on a logarithmic scale against `eps`; a line is the upper bound of what it shows. Colours
come from the page (`currentColor`), so that light and dark pages both work.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from residua.pld.curve.reads import reach
from residua.pld.support.support_ends import largest_loss_bounds

if TYPE_CHECKING:
    from residua.pld.pld import Pld

WIDTH, HEIGHT = 380, 240
"""Of a picture, in pixels."""
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 14, 40
"""Margins around the axes, in pixels, as the width and height are."""
LEAST_DELTA = 1e-12
"""Where the axis of delta ends."""
LARGEST_EPS_SHOWN = 50.0
"""Where the axis of eps ends at the latest."""
POINTS = 81
"""Points of a curve."""
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e")
DELTA_TICKS = (1.0, 1e-3, 1e-6, 1e-9, LEAST_DELTA)


def profiles(plds: Mapping[str, Pld]) -> str:
    """`delta` against `eps`, one line for each labelled PLD."""
    reaches = {label: _largest_eps(pld) for label, pld in plds.items()}
    end = max(reaches.values(), default=1.0)
    lines = {label: _points(pld, reaches[label], end) for label, pld in plds.items()}
    return chart(lines, ("ε", "δ(ε)"), (0.0, end), (LEAST_DELTA, 1.0), DELTA_TICKS)


def _largest_eps(pld: Pld) -> float:
    """Beyond this `eps` a profile has come down to its mass at infinity, or is not shown."""
    if pld.is_infinite or pld.is_identity:
        return 1.0
    far = min(reach(pld, LEAST_DELTA), 1.02 * largest_loss_bounds(pld)[1])
    return min(max(far, 0.01), LARGEST_EPS_SHOWN)


def _points(pld: Pld, reach: float, end: float) -> list[tuple[float, float]]:
    eps = np.linspace(0.0, reach, POINTS)
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

    def x_of(x: float) -> float:
        share = (x - across[0]) / (across[1] - across[0])
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y_of(y: float) -> float:
        low, high = math.log(upward[0]), math.log(upward[1])
        share = (math.log(min(max(y, upward[0]), upward[1])) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    left, right = x_of(across[0]), x_of(across[1])
    bottom, top = y_of(upward[0]), y_of(upward[1])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" font-family="sans-serif" font-size="11" '
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
    parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - 6}" text-anchor="middle">{below}</text>')
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


def table(rows: Sequence[tuple[str, str]]) -> str:
    """Names with their values."""
    lines = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
        for name, value in rows
    )
    return f"<table>{lines}</table>"


__all__ = ["chart", "profiles", "table"]
