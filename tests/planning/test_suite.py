"""The suite: workloads drawn at random by seed, and the statistics over them."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter

import pytest

import residua as rz
from residua import mechanisms as m
from residua.planning import draw_suite, draw_workload
from residua.planning.comparison import Row, bootstrap_interval
from residua.planning.suite import (
    COUNT,
    DEVELOPMENT_SEED,
    FAMILIES,
    REPORT_SEED,
    SHAPES,
    DrawnWorkload,
    suite_draws,
)
from residua.planning.workload import exceeds, optimum

EPS, DELTA = 1.0, 1e-6
BUDGETS = [(1.0, 1e-6), (3.0, 1e-6), (8.0, 1e-5)]
STAGED = ("drifting", "small then large", "large then small")


@pytest.fixture(scope="module")
def drawn() -> tuple[DrawnWorkload, ...]:
    return draw_suite(EPS, DELTA, seed=17)


# -- draws ----------------------------------------------------------------------------------


def test_seed_determines_the_suite(drawn: tuple[DrawnWorkload, ...]) -> None:
    assert draw_suite(EPS, DELTA, seed=17)[:5] == drawn[:5]
    assert draw_suite(EPS, DELTA, seed=17, count=5) == drawn[:5]
    assert draw_suite(EPS, DELTA, seed=18, count=5) != drawn[:5]
    assert DEVELOPMENT_SEED != REPORT_SEED


def test_draws_agree_across_processes(drawn: tuple[DrawnWorkload, ...]) -> None:
    code = (
        "import json; from residua.planning import draw_suite;"
        f"drawn = draw_suite({EPS}, {DELTA}, seed=17, count=7);"
        "print(json.dumps([one.to_dict() for one in drawn]))"
    )
    # Another hash seed, which sets and dictionaries of text depend on.
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "99", "PYTHONPATH": ":".join(sys.path)},
    )
    assert json.loads(done.stdout) == [one.to_dict() for one in drawn[:7]]


def test_one_workload_of_a_suite_can_be_drawn_alone(drawn: tuple[DrawnWorkload, ...]) -> None:
    for one, draw in zip(drawn, suite_draws(17, COUNT), strict=True):
        assert (one.seed, one.family, one.shape) == (draw.seed, draw.family, draw.shape)
        assert bool(one.expected) == draw.expect
    free = draw_workload(EPS, DELTA, 4)
    given = {"family": free.family, "shape": free.shape, "expect": bool(free.expected)}
    assert draw_workload(EPS, DELTA, 4, **given) == free


@pytest.mark.parametrize("seed", [0, 1, 2, 20_261_118])
def test_suite_is_balanced(seed: int) -> None:
    every = suite_draws(seed, COUNT)
    assert Counter((one.family, one.shape, one.expect) for one in every) == Counter(
        (family, shape, expect)
        for family in FAMILIES
        for shape in SHAPES
        for expect in (True, False)
    )
    assert len({one.seed for one in every}) == COUNT
    for count in (6, 13, 30):
        for field, names in (("family", FAMILIES), ("shape", SHAPES)):
            found = Counter(getattr(one, field) for one in every[:count])
            assert set(found) == set(names)
            assert max(found.values()) - min(found.values()) <= 1
    assert {one.family for one in suite_draws(seed, 12, "pure")} == {"pure"}
    assert {one.shape for one in suite_draws(seed, 12, None, "bursts")} == {"bursts"}


def fits(query: m.Mechanism, count: int, eps: float, delta: float) -> bool:
    return not exceeds(count * query.pld(), eps, delta)


@pytest.mark.parametrize(("eps", "delta"), BUDGETS)
@pytest.mark.parametrize("seed", [3, 4])
def test_between_three_and_a_thousand_fit(eps: float, delta: float, seed: int) -> None:
    """Up to the rounding of the noise to three digits, and of steps to a hundredth."""
    for one in draw_suite(eps, delta, seed=seed, count=20):
        for query in one.kinds:
            assert fits(query, 3, eps, delta)
            assert not fits(query, 1030, eps, delta)
        assert 1 <= optimum(eps, delta, one) <= 1030


def test_noise_is_the_least_of_three_digits() -> None:
    for seed in range(4):
        (pure,) = draw_workload(EPS, DELTA, seed, family="pure", shape="constant").kinds
        (noise,) = draw_workload(EPS, DELTA, seed, family="laplace", shape="constant").kinds
        n = optimum(EPS, DELTA, rz.Workload("pure", (pure,), repeat=True))
        assert float(f"{pure.eps:.3g}") == pure.eps
        assert not fits(m.PureDp(pure.eps * 1.011), n + 1, EPS, DELTA)
        n = optimum(EPS, DELTA, rz.Workload("laplace", (noise,), repeat=True))
        assert float(f"{noise.scale:.3g}") == noise.scale
        assert not fits(m.Laplace(noise.scale / 1.011), n + 1, EPS, DELTA)


def test_targets_are_spread_over_the_range() -> None:
    counts = [
        optimum(EPS, DELTA, draw_workload(EPS, DELTA, seed, family="gaussian", shape="constant"))
        for seed in range(60)
    ]
    middle = math.sqrt(3 * 1000)
    assert min(counts) < 10 and max(counts) > 500
    assert 20 <= sum(count < middle for count in counts) <= 40


def test_subsampled_queries_share_a_rate_and_half_of_the_time_the_noise() -> None:
    same = 0
    for seed in range(24):
        one = draw_workload(EPS, DELTA, seed, family="subsampled", shape="alternating")
        bases = [q.mechanism if isinstance(q, m.SelfComposed) else q for q in one.kinds]
        assert all(isinstance(base, m.SubsampledGaussian) for base in bases)
        (rate,) = {base.sampling_rate for base in bases}
        assert 0.00199 <= rate <= 0.05
        noises = {base.sigma for base in bases}
        assert max(noises) / min(noises) <= 1.5**2 * 1.01
        assert min(noises) >= 0.8 / 1.5 and max(noises) <= 3.0 * 1.5 * 1.01
        same += len(noises) == 1
    assert 6 <= same <= 18


def test_families_and_shapes_are_what_they_say(drawn: tuple[DrawnWorkload, ...]) -> None:
    kinds = {"pure": m.PureDp, "laplace": m.Laplace, "gaussian": m.Gaussian}
    mixed = set()
    for one in drawn:
        if one.family in kinds:
            assert all(isinstance(query, kinds[one.family]) for query in one.kinds)
        elif one.family == "mixed":
            mixed |= {type(query) for query in one.kinds}
        assert one.name.startswith(f"{one.family}, {one.shape}, ")
        assert one.repeat == (one.shape not in STAGED)
        assert len(one.kinds) == 1 if one.shape == "constant" else 2 <= len(one.kinds) <= 4
        if one.expected:
            assert {run.query for run in one.expected} == {run.query for run in one.queries}
        assert rz.Workload.from_json(one.to_dict()).queries == one.queries
    assert {m.PureDp, m.Laplace, m.Gaussian} <= mixed


@pytest.mark.parametrize("seed", range(6))
def test_stages_go_from_small_to_large_and_back(seed: int) -> None:
    for shape, order in (("small then large", 1), ("large then small", -1)):
        one = draw_workload(EPS, DELTA, seed, family="pure", shape=shape)
        sizes = [run.query.eps for run in one.queries]
        assert sizes == sorted(sizes, reverse=order < 0)
        assert optimum(EPS, DELTA, one) >= sum(run.times for run in one.queries[:-1])


@pytest.mark.parametrize("seed", range(6))
def test_drifting_sizes_give_way_gradually(seed: int) -> None:
    one = draw_workload(EPS, DELTA, seed, family="gaussian", shape="drifting")
    steps = draw_workload(EPS, DELTA, seed, family="gaussian", shape="small then large")
    asked: Counter[rz.planning.Workload] = Counter()
    for run in one.queries[:-1]:
        asked[run.query] += run.times
    # The same sizes for the same shares of the budget; the last one for half before it stays.
    for run in steps.queries[:-1]:
        if run.query != one.queries[-1].query:
            assert asked[run.query] == run.times
    first = one.queries[0].query
    lengths = [run.times for run in one.queries if run.query == first]
    assert lengths[1:] == sorted(lengths[1:], reverse=True) or max(lengths) <= 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"family": "cauchy"}, "family must be one of pure, laplace, .*, got 'cauchy'"),
        ({"family": 3}, "family must be one of .*, got 3"),
        ({"shape": "burst"}, "shape must be one of .*, got 'burst'; did you mean 'bursts'"),
        ({"seed": 1.5}, "seed must be a non-negative integer, got 1.5"),
        ({"seed": "1"}, "seed must be a non-negative integer, got '1'"),
        ({"seed": True}, "seed must be a non-negative integer, got True"),
        ({"seed": -1}, "seed must be a non-negative integer, got -1"),
        ({"count": 0}, "count must be a positive integer, got 0"),
        ({"count": -3}, "count must be a non-negative integer, got -3"),
        ({"count": 2.0}, "count must be a non-negative integer, got 2.0"),
        ({"eps": math.nan}, "eps must be positive and at most 600, got nan"),
        ({"eps": 0.0}, "eps must be positive and at most 600, got 0.0"),
        ({"delta": 1.0}, r"delta must be in \(0, 1\), got 1.0"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], said: str) -> None:
    given = {"eps": EPS, "delta": DELTA, "count": 2, "seed": 1} | arguments
    with pytest.raises(rz.ResiduaError, match=said):
        draw_suite(**given)
    with pytest.raises(rz.ResiduaError, match=said):
        rz.compare_filters(workload="suite", filters=["pure"], **given)
    if "count" not in arguments:
        del given["count"]
        with pytest.raises(rz.ResiduaError, match=said):
            draw_workload(**given)


def test_budget_without_room_is_named() -> None:
    with pytest.raises(rz.ArgumentError, match=r"eps must leave room for 3 queries .*, got 1e-09"):
        draw_workload(1e-9, 1e-15, 1, family="subsampled", shape="constant")


# -- statistics -----------------------------------------------------------------------------


def example() -> rz.SuiteComparison:
    """Twenty workloads with an optimum of 100, two with less than ten, one of which nothing fits.

    "good" admits 81, 82, ..., 100 of 100; "bad" nothing.
    """
    rows = [Row(f"w{n}", 100, (n, 0), "pure" if n <= 90 else "mixed") for n in range(81, 101)]
    rows += [Row("few", 4, (1, 0), "pure"), Row("some", 9, (9, 0), "gaussian")]
    rows += [Row("none", 0, (0, 0), "gaussian")]
    return rz.SuiteComparison(EPS, DELTA, ("good", "bad"), tuple(reversed(rows)), 5)


def test_statistics_by_hand() -> None:
    good, bad = example().summaries
    assert (good.filter, good.workloads, good.small_workloads) == ("good", 20, 2)
    assert good.mean == pytest.approx(0.905, abs=1e-12)
    assert (good.tenth_percentile, good.minimum) == (0.82, 0.81)
    assert good.families == pytest.approx({"pure": 0.855, "mixed": 0.955})
    assert good.small_mean == 0.625
    assert (bad.mean, bad.interval, bad.minimum, bad.small_mean) == (0.0, (0.0, 0.0), 0.0, 0.0)
    assert example().summary("good") == good
    # The mean of 20 uniform ratios: the normal interval is near, and the bootstrap repeats.
    assert good.interval is not None
    spread = 1.96 * math.sqrt(sum((n - 90.5) ** 2 for n in range(81, 101)) / 20 / 20) / 100
    assert good.interval == pytest.approx((0.905 - spread, 0.905 + spread), abs=2e-3)
    assert example().summaries == (good, bad)


def test_statistics_of_few_workloads() -> None:
    one = rz.SuiteComparison(EPS, DELTA, ("f",), (Row("w", 10, (5,), "pure"),), 1).summary("f")
    assert (one.mean, one.interval, one.tenth_percentile, one.minimum) == (0.5, None, 0.5, 0.5)
    assert one.small_mean is None
    none = rz.SuiteComparison(EPS, DELTA, ("f",), (Row("w", 9, (3,), "pure"),), 1).summary("f")
    assert (none.mean, none.interval, none.tenth_percentile, none.minimum) == (None,) * 4
    assert none.families == {} and none.small_mean == pytest.approx(1 / 3)
    assert bootstrap_interval([1.0, 1.0]) == (1.0, 1.0)


def test_shown() -> None:
    found = example()
    head, *_, caption = found.table().splitlines()[1:]
    assert head.split() == ["filter", "mean", "of", "the", "mean", "perc.", "min", "<", "10",
                            "pure", "mixed"]  # fmt: skip
    assert caption.startswith("23 workloads drawn with seed 5: 20 with an optimum of at least 10")
    (line,) = (line for line in found.table().splitlines() if line.startswith("good"))
    assert line.split()[1] == "0.905" and line.split()[3:] == [
        "0.82",
        "0.81",
        "0.62",
        "0.85",
        "0.95",
    ]
    data = json.loads(json.dumps(found.to_dict()))
    assert data["seed"] == 5 and len(data["workloads"]) == 23
    assert data["summaries"][0]["tenth_percentile"] == 0.82
    assert data["summaries"][0]["interval"] == list(found.summary("good").interval or ())
    records = found.records()
    assert len(records) == 2 * 23
    assert records[-1] == {
        "workload": "w81", "family": "pure", "filter": "bad", "admitted": 0, "optimum": 100,
        "ratio": 0.0,
    }  # fmt: skip
    page = found._repr_html_()
    assert page.count("<tr>") == 3 and "seed 5" in page and "optimum\n&lt; 10" in page


def test_comparison_on_a_suite_is_that_on_its_workloads() -> None:
    calls: list[tuple[str, int, int]] = []
    kinds = ["pure", "gdp_residue"]
    found = rz.compare_filters(
        EPS, DELTA, "suite", kinds, seed=2, count=6, progress=lambda *now: calls.append(now)
    )
    assert isinstance(found, rz.SuiteComparison)
    workloads = draw_suite(EPS, DELTA, seed=2, count=6)
    plain = rz.compare_filters(EPS, DELTA, list(workloads), kinds)
    assert found.rows == plain.rows
    assert [row.family for row in found.rows] == [one.family for one in workloads]
    for row, one in zip(found.rows, workloads, strict=True):
        bounded = all(isinstance(q, m.PureDp | m.Laplace) for q in one.kinds)
        assert bounded or row.admitted[0] < row.optimum
    # A drawing and an optimum share a step: a step for each filter comes on top.
    assert calls[-1] == ("", 18, 18)
    assert len(calls) == 6 * 4 + 1 and calls[0][0].startswith("drawing: ")
    assert [now for _, now, _ in calls] == sorted(now for _, now, _ in calls)


def test_automatic_filter_is_told_what_is_expected() -> None:
    from residua.planning.candidates import Setting, candidates

    (auto,) = candidates(["auto"])
    for expect in (True, False):
        one = draw_workload(EPS, DELTA, 8, family="gaussian", shape="bursts", expect=expect)
        filter = auto.build(Setting(EPS, DELTA, one))
        assert isinstance(filter, rz.AutoFilter)
        assert filter.expect == (one.kinds if expect else None)


@pytest.mark.parametrize("name", ["seed", "count", "family", "shape"])
def test_a_single_workload_takes_no_seed(name: str) -> None:
    with pytest.raises(rz.ArgumentError, match=f"{name} applies only to workload='suite', got 3"):
        rz.compare_filters(EPS, DELTA, rz.pure_dp(0.1), ["pure"], **{name: 3})
