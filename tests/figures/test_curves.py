"""The pictures: what they draw, and what they say when they cannot."""

import math

import numpy as np
import pytest

import residua as rz
from residua.figures import plots

PLDS = {
    "Gaussian": rz.gaussian(mu=1.0),
    "randomized response": rz.pure_dp(1.0),
    "with mass at infinity": rz.approximate_dp(0.5, 1e-3),
}


def drawn(axes: object, label: str) -> tuple[np.ndarray, np.ndarray]:
    (line,) = [line for line in axes.get_lines() if line.get_label() == label]  # type: ignore[attr-defined]
    return np.asarray(line.get_xdata()), np.asarray(line.get_ydata())


def test_hockey_stick_line_is_the_upper_bound() -> None:
    eps = np.linspace(0.0, 2.0, 9)
    axes, _ = plots.curves(PLDS, eps).axes
    for label, pld in PLDS.items():
        x, y = drawn(axes, label)
        assert np.array_equal(x, eps)
        delta = pld.delta(eps)
        shown = delta > plots.LEAST_DELTA  # type: ignore[attr-defined]
        assert shown.any()
        assert np.array_equal(y[shown], delta[shown])
        assert np.all(np.isnan(y[~shown]))


def test_tradeoff_line_is_the_lower_bound() -> None:
    alpha = np.linspace(0.0, 1.0, 201)
    _, axes = plots.curves(PLDS).axes
    for label, pld in PLDS.items():
        assert np.array_equal(drawn(axes, label)[1], pld.tradeoff(alpha))


def test_every_line_has_its_band() -> None:
    left, right = plots.curves(PLDS).axes
    assert len(left.collections) == len(right.collections) == len(PLDS)


def test_band_reaches_to_the_lower_pld() -> None:
    eps = np.linspace(0.0, 1.0, 5)
    below = {"Gaussian": rz.gaussian(mu=0.5)}
    left, right = plots.curves({"Gaussian": rz.gaussian(mu=1.0)}, eps, below).axes
    (band,) = left.collections
    assert np.isclose(band.get_paths()[0].vertices[:, 1].min(), rz.gaussian(mu=0.5).delta(1.0))
    (band,) = right.collections
    middle = band.get_paths()[0].vertices
    highest = middle[np.isclose(middle[:, 0], 0.5), 1].max()
    assert np.isclose(highest, rz.gaussian(mu=0.5).tradeoff(0.5))


def test_figures_can_be_saved(tmp_path: object) -> None:
    path = tmp_path / "curves.svg"
    plots.curves(PLDS).savefig(path)
    assert path.stat().st_size > 0


def test_zero_delta_stays_on_the_axis() -> None:
    axes, _ = plots.curves({"none": rz.identity()}).axes
    assert math.isfinite(axes.get_ylim()[1])


@pytest.mark.parametrize("plds", [{}, [], None])
def test_nothing_to_draw_is_an_error(plds: object) -> None:
    with pytest.raises(rz.ArgumentError, match="plds must map at least one label"):
        plots.curves(plds)
