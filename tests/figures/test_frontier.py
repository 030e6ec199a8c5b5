"""The frontier as a picture."""

import pytest

import residua as rz
from residua.figures.plots import frontier as draw
from residua.planning.frontier import frontier

pytestmark = pytest.mark.needs("matplotlib")


def test_a_panel_for_each_kind_and_a_line_for_each_state() -> None:
    filter = rz.GdpResidueFilter(0.5)
    fresh = frontier(filter, points=3)
    filter.request(rz.laplace(scale=5.0))
    left = frontier(filter, points=3)
    figure = draw({"at the start": fresh, "left": left})
    panels = figure.axes
    assert [axes.get_title() for axes in panels] == [line.family for line in fresh.lines]
    for place, axes in enumerate(panels):
        for drawn, found in zip(axes.lines, (fresh, left), strict=True):
            assert tuple(drawn.get_xdata()) == found.lines[place].values
            assert tuple(drawn.get_ydata()) == found.lines[place].counts
    assert len(draw(fresh).axes) == 4
    with pytest.raises(rz.ArgumentTypeError, match="measured must be a Frontier"):
        draw([fresh])
