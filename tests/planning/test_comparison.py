"""Comparisons: every filter's share of the optimum."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mpmath import mp

import residua as rz
from residua import mechanisms as m
from residua.planning.candidates import Setting, candidates, gaussian_budget, kinds
from residua.planning.workload import Run

EPS, DELTA = 1.0, 1e-6
QUICK = {
    "pure 0.1": m.PureDp(0.1),
    "pure 0.5": m.PureDp(0.5),
    "Laplace 10": m.Laplace(10.0),
    "Gaussian 20": m.Gaussian(sigma=20.0),
}
SLOW = ("approximate_gdp_residue", "plan", "menu", "auto")
"""Kinds that take seconds to be set up or to refuse; they are measured on Gaussian noise alone."""
KINDS = [kind for kind in kinds() if kind not in SLOW]


def workload_of(name: str) -> rz.Workload:
    return rz.Workload(name, (Run(QUICK[name]),), repeat=True)


@pytest.fixture(scope="module")
def measured() -> rz.FilterComparison:
    return rz.compare_filters(EPS, DELTA, [workload_of(name) for name in QUICK], KINDS)


def test_no_filter_admits_more_than_the_optimum(measured: rz.FilterComparison) -> None:
    every = rz.compare_filters(EPS, DELTA, workload_of("Gaussian 20"))
    assert every.filters == kinds()
    for row in (*measured.rows, *every.rows):
        assert row.optimum > 0
        for count in row.admitted:
            assert 0 <= count <= row.optimum


def test_counts_are_those_of_requesting(measured: rz.FilterComparison) -> None:
    for name in QUICK:
        workload = workload_of(name)
        (query, _), *_ = workload.queries
        for candidate in candidates(KINDS):
            filter = candidate.build(Setting(EPS, DELTA, workload))
            count = 0
            while filter.request(query).admitted:
                count += 1
            assert measured.admitted(name, candidate.name) == count


def test_what_is_known_of_basic_composition(measured: rz.FilterComparison) -> None:
    assert measured.admitted("pure 0.1", "basic") == 10
    assert measured.ratio("pure 0.5", "basic") == 1.0
    assert measured.ratio("Gaussian 20", "basic") == 0.0


def test_renyi_converts_to_the_budget() -> None:
    """Canonne, Kamath and Steinke 2020, in fifty digits: the filter's own PLD is rounded up."""
    (candidate,) = candidates(["renyi"])
    filter = candidate.build(Setting(EPS, DELTA, workload_of("pure 0.1")))
    assert isinstance(filter, rz.RenyiFilter)
    with mp.workdps(50):
        alpha, rho = mp.mpf(repr(filter.alpha)), mp.mpf(repr(filter.rho))
        delta = mp.exp((alpha - 1) * (rho - EPS)) * (1 - 1 / alpha) ** (alpha - 1) / alpha
        assert mp.mpf("1e-6") * (1 - mp.mpf("1e-12")) < delta <= mp.mpf("1e-6")


@pytest.mark.parametrize("kind", [kind for kind in kinds() if kind != "renyi"])
def test_every_filter_promises_the_budget(kind: str) -> None:
    """`guarantee` at `eps` is proven to be at most delta, in both directions."""
    (candidate,) = candidates([kind])
    promise = candidate.build(Setting(EPS, DELTA, workload_of("pure 0.1"))).guarantee
    for one in (promise, promise.reverse()):
        assert float(one.delta(EPS)) <= DELTA


@pytest.mark.parametrize(("eps", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-5), (1.0, 0.5)])
def test_gaussian_budget_is_the_largest(eps: float, delta: float) -> None:
    mu = gaussian_budget(eps, delta)
    assert rz.gaussian(mu=mu).delta(eps) <= delta
    assert rz.gaussian(mu=mu * (1 + 1e-10)).delta_bounds(eps).lo > delta


def test_workloads_of_every_form(tmp_path: Path) -> None:
    one = rz.pure_dp(0.25)

    def count(workload: object) -> tuple[int, int]:
        (row,) = rz.compare_filters(EPS, DELTA, workload, ["basic"]).rows
        return row.optimum, row.admitted[0]

    assert count(one) == (4, 4)
    assert count([one, one]) == (2, 2)
    assert count([one, rz.gaussian(sigma=50.0), one]) == (3, 1)
    assert count(rz.Workload("several", ((one, 3),))) == (3, 3)
    path = tmp_path / "some.json"
    path.write_text('{"queries": [{"kind": "pure_dp", "eps": 0.5}], "repeat": true}')
    assert count(path) == count(str(path)) == (2, 2)


def test_refusal_ends_the_count() -> None:
    workload = [rz.pure_dp(0.5), rz.gaussian(sigma=50.0), rz.pure_dp(0.5)]
    assert rz.compare_filters(EPS, DELTA, workload, "basic").rows[0].admitted == (1,)


def test_filters_of_every_form() -> None:
    tight = rz.PureFilter(eps=0.5)
    mine = rz.compare_filters(EPS, DELTA, rz.pure_dp(0.1), {"mine": tight, "theirs": "basic"})
    assert mine.filters == ("mine", "theirs")
    assert mine.rows[0].admitted == (5, 10)
    assert rz.compare_filters(EPS, DELTA, rz.pure_dp(0.1), tight).filters == (repr(tight),)
    assert not tight.history


def test_shown(measured: rz.FilterComparison) -> None:
    lines = measured.table().splitlines()
    for row, line in zip(measured.rows, lines[-len(QUICK) :], strict=True):
        assert line.startswith(row.workload)
        assert line.removeprefix(row.workload).split()[0] == str(row.optimum)
        assert len(line.removeprefix(row.workload).split()) == 1 + len(measured.filters)
    heads = " ".join(lines[: -len(QUICK) - 1])
    for word in ("workload", "optimum", "basic", "approximate", "zcdp", "renyi"):
        assert word in heads
    assert "_" not in heads
    data = json.loads(json.dumps(measured.to_dict()))
    assert data["workloads"][0]["admitted"]["basic"] == 10
    assert data["workloads"][1]["ratio"]["basic"] == 1.0
    page = measured._repr_html_()
    assert page.count("<tr>") == 1 + len(QUICK) and "Gaussian 20" in page


@pytest.mark.needs("pandas")
def test_results_are_data_frames(measured: rz.FilterComparison) -> None:
    import pandas

    frame = pandas.DataFrame(measured.records())
    assert len(frame) == len(measured.rows) * len(measured.filters)
    best = frame.pivot(index="workload", columns="filter", values="admitted")
    for row in measured.rows:
        assert tuple(best.loc[row.workload, list(measured.filters)]) == row.admitted
    found = rz.planning.frontier(rz.GdpFilter(0.5), points=3)
    counts = pandas.DataFrame(found.records()).groupby("family")["count"].max()
    assert dict(counts) == {line.family: max(line.counts) for line in found.lines}


def test_one_workload_is_a_column() -> None:
    text = rz.compare_filters(EPS, DELTA, rz.pure_dp(0.1), ["basic", "renyi"]).table()
    assert [line.split()[-2:] for line in text.splitlines()[2:4]] == [["10", "1.00"]] * 2
    nothing = rz.compare_filters(EPS, DELTA, rz.pure_dp(3.0), ["basic"])
    assert nothing.rows[0].ratios() == (None,)
    assert nothing.table().splitlines()[-1].split() == ["basic", "0", "-"]


def test_progress_is_reported() -> None:
    calls: list[tuple[str, int, int]] = []
    rz.compare_filters(
        EPS, DELTA, rz.pure_dp(0.1), ["basic"], progress=lambda *now: calls.append(now)
    )
    assert calls == [
        ("workload: optimum", 0, 2),
        ("workload: basic", 1, 2),
        ("", 2, 2),
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((0.0, DELTA, "suite"), "eps must be positive"),
        ((EPS, 0.0, "suite"), "delta must be in"),
        ((EPS, float("nan"), "suite"), "delta must be"),
        ((EPS, DELTA, "no such workload"), "workload must be a file"),
        ((EPS, DELTA, []), "workload must be a workload"),
        ((EPS, DELTA, 3), "workload must be a workload"),
        ((EPS, DELTA, [workload_of("pure 0.1")] * 2), "different names, got 'pure 0.1'"),
        ((EPS, DELTA, rz.pure_dp(0.1), ["natural"]), "filters must be among pure, basic"),
        ((EPS, DELTA, rz.pure_dp(0.1), ["basic", "basic"]), "filters must be different"),
        ((EPS, DELTA, rz.pure_dp(0.1), 7), "filters must be a list"),
        ((EPS, DELTA, rz.pure_dp(0.1), [7]), "a filter or a kind must be given"),
    ],
)
def test_bad_arguments_are_named(arguments: tuple[object, ...], said: str) -> None:
    with pytest.raises(rz.ResiduaError, match=said):
        rz.compare_filters(*arguments)


def test_asking_what_was_not_measured(measured: rz.FilterComparison) -> None:
    with pytest.raises(rz.ArgumentError, match="filter must be one of pure, basic"):
        measured.ratio("pure 0.1", "natural")
    with pytest.raises(rz.ArgumentError, match=r"workload must be one of pure 0\.1"):
        measured.admitted("pure 7", "basic")


def test_a_filter_of_a_larger_budget_is_refused() -> None:
    with pytest.raises(rz.ArgumentError, match="filters must keep within"):
        rz.compare_filters(EPS, DELTA, rz.pure_dp(0.1), {"mine": rz.PureFilter(2 * EPS)})


def test_plans_are_made_under_the_relation_that_is_asked_for() -> None:
    sampled = m.SubsampledGaussian(2.0, 0.2)
    replaced = m.SampledWithoutReplacement(m.Laplace(2.0), 1000, 300)
    for query in (sampled, replaced):
        found = rz.compare_filters(1.0, 1e-3, query, ["plan"], relation="replace-one")
        assert found.rows[0].optimum > 1
        assert found.ratio("workload", "plan") == 1.0
