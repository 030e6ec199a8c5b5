"""Plots of a run as SVG, in the look of the other pictures."""

from __future__ import annotations

from pathlib import Path

from benchmarks.harness.section import Plot
from residua.figures import picture

_STYLES = ("-", "--", "-.", ":")
_MARKS = "osD^vP*Xhd<>"


def draw(plot: Plot, path: Path) -> Path:
    """One picture; the same figures give the same file."""
    figure, panels = picture.canvas(8.0, 0.4 * len(plot.x) + 1.2 if plot.bars else 4.6)
    axes = panels[0][0]
    if plot.bars:
        (values,) = plot.series.values()
        names = [str(name) for name in plot.x]
        drawn = axes.barh(names[::-1], [v or 0.0 for v in values][::-1], color="#0072B2")
        axes.bar_label(drawn, fmt="{:.3g}", padding=3)
        axes.set_xlabel(plot.y_label)
        if plot.log_y:
            axes.set_xscale("log")
        axes.margins(x=0.12)
    else:
        for place, (name, values) in enumerate(plot.series.items()):
            known = [(x, y) for x, y in zip(plot.x, values, strict=True) if y]
            if known:
                axes.plot(
                    *zip(*known, strict=True),
                    label=name,
                    marker=_MARKS[place % len(_MARKS)],
                    linestyle=_STYLES[place % len(_STYLES)],
                )
        axes.set(xlabel=plot.x_label, ylabel=plot.y_label)
        if plot.log_x:
            axes.set_xscale("log")
        if plot.log_y:
            axes.set_yscale("log")
        axes.legend(fontsize=8)
    axes.set_title(plot.title, fontsize=11)
    return picture.save(figure, path, {"Title": plot.title})


def inline(path: Path) -> str:
    """A drawing without its XML prologue, for use inside HTML."""
    text = path.read_text(encoding="utf-8")
    return text[text.index("<svg") :]
