"""What notebooks show: one well-formed piece of HTML with the curve in it."""

import xml.etree.ElementTree as ElementTree

import pytest

import residua as rz

PLDS = [
    rz.identity(),
    rz.gaussian(mu=1.0),
    rz.approximate_dp(0.0, 1.0),
    rz.approximate_dp(0.5, 1e-4),
    10 * rz.subsampled_gaussian(1.0, 0.01),
]
FILTERS = [
    rz.BasicFilter(1.0, 1e-6),
    rz.GdpResidueFilter(1.0),
    rz.RenyiFilter(alpha=8.0, rho=0.5),
    rz.PlanFilter(1.0, 1e-6, [rz.laplace(20.0)] * 3),
]


@pytest.mark.parametrize("pld", PLDS, ids=repr)
def test_a_pld_with_its_curve(pld: rz.Pld) -> None:
    page = _parsed(pld)
    lines = page.findall(".//polyline")
    assert len(lines) == (1 if pld.is_symmetric else 2)
    assert repr(pld) in "".join(page.itertext())


@pytest.mark.parametrize("filter", FILTERS, ids=lambda filter: filter.kind)
def test_a_filter_with_what_is_left(filter: rz.Filter) -> None:
    asked = type(filter).from_json(filter.to_json())
    asked.request(rz.laplace(20.0))
    page = _parsed(asked)
    text = "".join(page.itertext())
    assert asked.left_words(asked.state) in text and "1, 1 admitted" in text
    assert len(page.findall(".//polyline")) == 2


def test_the_line_is_the_upper_bound_where_it_should_be() -> None:
    """Read off the picture: the height of the line at each point is delta there."""
    pld = rz.gaussian(mu=1.0)
    (line,) = _parsed(pld).findall(".//polyline")
    points = [tuple(map(float, pair.split(","))) for pair in line.get("points", "").split()]
    across = pld._evaluator.reach(1e-12)
    for x, y in points[::8]:
        eps = (x - 56) / (380 - 56 - 12) * across
        height = 10 ** (-12 * (1 - (240 - 40 - y) / (240 - 40 - 14)))
        assert height == pytest.approx(pld.delta(eps), rel=0.1)


def _parsed(value: object) -> ElementTree.Element:
    text = value._repr_html_()  # type: ignore[attr-defined]
    return ElementTree.fromstring(
        f"<body>{text}</body>".replace(' xmlns="http://www.w3.org/2000/svg"', "")
    )
