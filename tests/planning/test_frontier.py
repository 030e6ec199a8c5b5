"""The frontier of what is left: counts that asking one by one would give."""

from typing import Any

import pytest

import residua as rz
from residua.planning.how_many import FAMILIES, frontier


@pytest.mark.parametrize("filter", [rz.GdpResidueFilter(0.5), rz.RenyiFilter(alpha=12.0, rho=0.4)])
def test_counts_are_those_of_asking(filter: rz.Filter) -> None:
    found = frontier(filter, points=4, most=40)
    assert [line.family for line in found.lines] == [family.name for family in FAMILIES]
    for line, family in zip(found.lines, FAMILIES, strict=True):
        noises = [1.0 / v if family.shrinks else v for v in line.values]
        assert noises == sorted(noises) and list(line.counts) == sorted(line.counts)
        assert line.counts[0] >= 1
        for noise, count in list(zip(noises, line.counts, strict=True))[::3]:
            query, asked = family.query(noise), type(filter).from_json(filter.to_json())
            admitted = 0
            while admitted < 40 and asked.request(query).admitted:
                admitted += 1
            assert admitted == count
        # A little less noise and not even one fits.
        assert not filter.check(family.query(0.98 * noises[0])).admitted


def test_spending_takes_some_of_it_away() -> None:
    filter = rz.GdpResidueFilter(0.5)
    before = frontier(filter, points=3)
    for _ in range(5):
        assert filter.request(rz.laplace(scale=10.0)).admitted
    after = frontier(filter, points=3)
    assert filter.history[-1].remaining == filter.remaining, "nothing was spent by looking"
    for line, then in zip(before.lines, after.lines, strict=True):
        if line.parameter == "eps":
            assert then.values[0] < line.values[0]
        else:
            assert then.values[0] > line.values[0]
    again = frontier(filter, points=3, state=filter.initial())
    assert again.lines == before.lines


def test_what_never_fits_has_no_line() -> None:
    found = frontier(rz.BasicFilter(1.0, 0.0), points=3)
    kinds = {line.family: line for line in found.lines}
    assert kinds["Gaussian"].values == () and kinds["Laplace"].counts[0] == 1
    assert "none fits" in found._repr_html_()


def test_rows_for_a_data_frame() -> None:
    found = frontier(rz.BasicFilter(1.0, 1e-6), points=3)
    rows = found.records()
    assert {tuple(row) for row in rows} == {("family", "parameter", "value", "count")}
    counts = [row["count"] for row in rows if row["family"] == "Laplace"]
    assert len(counts) == 3 and counts == sorted(counts)
    assert found._repr_html_().count("<svg") == sum(bool(line.values) for line in found.lines)


def test_progress_is_told_and_ends_where_it_was_said_to() -> None:
    told: list[tuple[str, int, int]] = []
    frontier(rz.GdpFilter(0.5), points=3, progress=lambda *what: told.append(what))
    assert [name for name, done, _ in told if done % 3 == 0][::2] == [f.name for f in FAMILIES]
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert told[-1][1:] == (12, 12)


@pytest.mark.parametrize("bad", [{"points": 1}, {"points": 2.5}, {"most": -1}])
def test_bad_arguments(bad: dict[str, Any]) -> None:
    with pytest.raises((rz.ArgumentError, rz.ArgumentTypeError)):
        frontier(rz.BasicFilter(1.0, 1e-6), **bad)
