"""`residua plan`, `recommend`, `compare` and `order`."""

import io
import json
import time
from pathlib import Path

import pytest
from rich.console import Console

import residua as rz
from cli.running import refusal, run, run_json
from residua import mechanisms as m
from residua.cli.output import progress

BASIC = '{"kind": "basic", "eps": 1.0, "delta": 1e-6}'


def test_plan_says_what_planning_says() -> None:
    answer = run_json("plan", "--filter", BASIC, "--laplace", "scale=20", "-n", "50")
    filter = rz.BasicFilter(1.0, 1e-6)
    assert answer["filter"] == filter.to_dict()
    assert answer["how_many"] == answer["rounds"] == rz.how_many(filter, m.Laplace(20.0)) == 20
    assert answer["least_noise"] == [m.Laplace(50.0).to_dict()]
    assert not answer["counting_ended"]
    text = run("plan", "--filter", BASIC, "--laplace", "scale=20", "-n", "50")
    for said in ("how many more fit", "20", "least noise for 50 more", '"scale":50.0'):
        assert said in text


def test_plan_repeats_a_list() -> None:
    arguments = ("plan", "--filter", "pure eps=1.1", "--pure-dp", "eps=0.3", "--pure-dp", "eps=0.1")
    answer = run_json(*arguments)
    assert (answer["how_many"], answer["rounds"]) == (5, 2)
    assert len(answer["least_noise"]) == 2
    assert "5 (2 whole rounds of 2)" in run(*arguments)


def test_plan_takes_a_state() -> None:
    filter = rz.PureFilter(eps=1.0)
    filter.request(rz.pure_dp(0.75))
    state = filter.state_to_json(filter.state)
    answer = run_json("plan", "--filter", "pure eps=1", "--state", state, "--pure-dp", "eps=0.1")
    assert answer["how_many"] == 2
    assert answer["left"] == "eps 0.25"


def test_plan_where_nothing_fits_or_everything() -> None:
    text = run("plan", "--filter", "pure eps=1", "--gaussian", "sigma=1")
    assert "none: no amount of noise is enough" in text
    answer = run_json("plan", "--filter", "pure eps=1", "--gaussian", "sigma=1")
    assert answer["how_many"] == 0 and answer["least_noise"] is None
    text = run("plan", "--filter", "pure eps=1", "--pure-dp", "eps=0", "--most", "9")
    assert "at least 9" in text


def test_plan_draws_what_is_left(tmp_path: Path) -> None:
    filter = rz.GdpResidueFilter(0.5)
    filter.request(rz.laplace(scale=5.0))
    given = ("plan", "--filter", "gdp_residue mu=0.5", "--laplace", "scale=20")
    answer = run_json(*given, "--state", filter.state_to_json(filter.state), "--out", str(tmp_path))
    assert answer["picture"] == str(tmp_path / "frontier.png")
    assert Path(answer["picture"]).read_bytes().startswith(b"\x89PNG")


def test_recommend_says_what_planning_says() -> None:
    given = ("--eps", "1", "--delta", "1e-6", "--filter", "basic", "--filter", "plan")
    answer = run_json("recommend", *given, "--laplace", "scale=10", "-n", "30")
    found = rz.recommend(1.0, 1e-6, m.Laplace(10.0), n=30, filters=["basic", "plan"])
    assert answer == json.loads(json.dumps(found.to_dict()))
    text = run("recommend", *given, "--laplace", "scale=10", "-n", "30")
    assert found.reason in text and "Laplace(scale=" in text and "non-adaptive optimum" in text
    text = run("recommend", *given, "--pure-dp", "eps=0.25")
    assert '{"delta":1e-06,"eps":1.0,"kind":"basic"}' in text
    for wrong in (given, (*given, "--pure-dp", "eps=0.1", "--workload", "suite")):
        assert "give queries or --workload" in refusal("recommend", *wrong)
    assert "give --eps and --delta together" in refusal("recommend", "--pure-dp", "eps=0.1")


def test_a_budget_means_the_automatic_filter() -> None:
    answer = run_json("plan", "--eps", "1", "--delta", "1e-6", "--pure-dp", "eps=0.1")
    assert answer["filter"] == rz.AutoFilter(1.0, 1e-6).to_dict()
    assert answer["how_many"] == rz.how_many(rz.AutoFilter(1.0, 1e-6), rz.pure_dp(0.1))


def test_a_union_is_json_or_its_components_with_bars() -> None:
    union = rz.UnionFilter((rz.PureFilter(1.0), rz.GdpResidueFilter(0.2)))
    parts = '[{"kind":"pure","eps":1},{"kind":"gdp_residue","mu":0.2}]'
    for text in (union.to_json(), "pure eps=1 | gdp_residue mu=0.2", f"union filters={parts}"):
        answer = run_json("plan", "--filter", text, "--pure-dp", "eps=0.1")
        assert answer["filter"] == union.to_dict()
        assert answer["how_many"] == rz.how_many(union, rz.pure_dp(0.1)) == 10
    state = union.decide(union.initial(), rz.gaussian(sigma=40.0)).state
    left = ("--state", union.state_to_json(state))
    answer = run_json("plan", "--filter", union.to_json(), *left, "--pure-dp", "eps=0.05")
    assert answer["how_many"] == rz.how_many(union, rz.pure_dp(0.05), state=state)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("plan", "--laplace", "scale=2"), "give --filter, --budget, or --eps"),
        (("plan", "--delta", "1e-6", "--laplace", "scale=2"), "got no --eps"),
        (("plan", "--filter", BASIC), "QUERY"),
        (("plan", "--filter", BASIC, "--eps", "1", "--laplace", "scale=2"), "got both"),
        (("plan", "--filter", "bassic eps=1", "--laplace", "scale=2"), "got 'bassic'"),
        (("plan", "--filter", "{", "--laplace", "scale=2"), "filter must be valid JSON"),
        (("plan", "--filter", "pure eps=1", "--state", "{}", "--laplace", "scale=2"), "kind"),
        (("plan", "--filter", "pure eps=1", "-n", "-1", "--laplace", "scale=2"), "n must be"),
        (
            ("plan", "--filter", "gdp mu=1 | zcdp rho=1", "--laplace", "scale=2"),
            "eps must be given",
        ),
        (("plan", "--filter", "pure eps=1 |", "--laplace", "scale=2"), "on both sides of each |"),
        (("compare",), "got no --eps"),
        (("compare", "--eps", "1"), "got no --delta"),
        (("compare", "--laplace", "scale=2"), "got no --eps"),
        (("compare", "--eps", "1", "--delta", "1e-6", "--workload", "none"), "a file or 'suite'"),
        (
            ("compare", "--eps", "1", "--delta", "1e-6", "--workload", "x", "--laplace", "scale=2"),
            "got both",
        ),
        (
            ("compare", "--eps", "1", "--delta", "1e-6", "--laplace", "scale=2", "--filter", "x"),
            "filters must be among pure, basic",
        ),
        (
            ("compare", "--eps", "1", "--delta", "1e-6", "--count", "0"),
            "count must be a positive integer, got 0",
        ),
        (
            ("compare", "--eps", "1", "--delta", "1e-6", "--family", "gausian"),
            "did you mean 'gaussian'?",
        ),
        (
            ("compare", "--eps", "1", "--delta", "1e-6", "--laplace", "scale=2", "--seed", "3"),
            "seed applies only to workload='suite', got 3",
        ),
        (("order", "--laplace", "scale=2"), "SECOND"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments: tuple[str, ...], said: str) -> None:
    text = refusal(*arguments)
    assert said in text
    assert "Traceback" not in text


def test_compare_says_what_compare_filters_says(tmp_path: Path) -> None:
    path = tmp_path / "week.json"
    path.write_text('{"queries": [{"kind": "laplace", "scale": 20.0}], "repeat": true}')
    budget = ("--eps", "1", "--delta", "1e-6")
    chosen = ("--filter", "basic", "--filter", "renyi", "--filter", "pure eps=0.5")
    answer = run_json("compare", *budget, *chosen, "--workload", str(path), "--out", str(tmp_path))
    picture = Path(answer.pop("picture"))
    assert picture.read_bytes().startswith(b"\x89PNG")
    found = rz.compare_filters(1.0, 1e-6, path, ["basic", "renyi", rz.PureFilter(0.5)])
    assert answer == json.loads(json.dumps(found.to_dict()))
    assert found.table() in run("compare", *budget, *chosen, "--workload", str(path))
    by_flag = run_json("compare", *budget, *chosen, "--laplace", "scale=20")
    assert by_flag["workloads"][0]["admitted"] == answer["workloads"][0]["admitted"]


def test_compare_draws_a_suite() -> None:
    budget = ("--eps", "1", "--delta", "1e-6", "--filter", "pure", "--filter", "gdp_residue")
    drawn = ("--seed", "5", "--count", "3", "--family", "laplace")
    answer = run_json("compare", *budget, *drawn)
    filters = ["pure", "gdp_residue"]
    found = rz.compare_filters(1.0, 1e-6, "suite", filters, seed=5, count=3, family="laplace")
    assert answer.pop("picture") is None
    assert answer == json.loads(json.dumps(found.to_dict()))
    assert len(answer["workloads"]) == 3 and answer["seed"] == 5
    assert [one["filter"] for one in answer["summaries"]] == filters
    assert found.table() in run("compare", *budget, *drawn)
    shaped = run_json("compare", *budget, "--count", "2", "--shape", "large then small")
    assert all(", large then small, " in one["workload"] for one in shaped["workloads"])


# -- progress -------------------------------------------------------------------------------


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=80)


def test_a_bar_appears_after_a_while() -> None:
    console = terminal()
    with progress("comparing", console, delay=0.0) as report:
        report("Laplace 10: renyi", 3, 4)
        deadline = time.monotonic() + 10.0
        while "Laplace 10: renyi" not in console.file.getvalue():  # type: ignore[attr-defined]
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_no_bar_for_what_is_quick_or_not_watched() -> None:
    console = terminal()
    with progress("comparing", console, delay=60.0) as report:
        report("Laplace 10: renyi", 3, 4)
    piped = Console(file=io.StringIO(), force_terminal=False)
    with progress("comparing", piped, delay=0.0) as report:
        report("Laplace 10: renyi", 3, 4)
        time.sleep(0.05)
    assert "renyi" not in console.file.getvalue()  # type: ignore[attr-defined]
    assert piped.file.getvalue() == ""  # type: ignore[attr-defined]


def test_lines_where_there_is_no_terminal() -> None:
    piped = Console(file=io.StringIO(), force_terminal=False)
    with progress("comparing", piped, plain=True) as report:
        report("Laplace 10: renyi", 2, 4)
        report("", 3, 4)
    assert piped.file.getvalue().splitlines() == [  # type: ignore[attr-defined]
        "Laplace 10: renyi (3 of 4)", "comparing (4 of 4)",
    ]  # fmt: skip
