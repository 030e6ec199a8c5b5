"""`residua natural` and `residua attack`."""

import math
import sys
from pathlib import Path

import pytest

from cli.running import refusal, run, run_json
from residua.filters import KINDS

CROSSING = (
    "--approximate-dp", "eps=0.0847,delta=0.478", "--approximate-dp", "eps=1.404,delta=0.0208",
)  # fmt: skip
BUDGET = ("--budget", "approximate_dp eps=1.395,delta=0.509", "--rounds", "2")


def test_natural_cost() -> None:
    answer = run_json("natural", "cost", *BUDGET, *CROSSING)
    assert answer["within_budget"] == "NO"
    assert math.log(answer["witness"]) == pytest.approx(1.395)
    assert answer["promised"] == pytest.approx(0.509)
    assert answer["real"]["lo"] == pytest.approx(0.597, abs=5e-4)
    assert answer["violation"] <= answer["real"]["hi"] - answer["promised"]
    assert answer["strategy"]["ask"] == "approximate_dp(1.404, 0.0208)"
    text = run("natural", "cost", *BUDGET, *CROSSING)
    assert "no, proven" in text and "ask approximate_dp(1.404, 0.0208)" in text


def test_natural_cost_within_the_budget() -> None:
    queries = ("--pure-dp", "eps=0.5", "--pure-dp", "eps=0.3")
    answer = run_json("natural", "cost", "--budget", "pure_dp eps=1", "--rounds", "2", *queries)
    assert answer["within_budget"] in ("YES", "UNDECIDED")
    assert answer["witness"] is None and answer["strategy"] is None


def test_natural_free() -> None:
    pure = ("--pure-dp", "eps=1", "--pure-dp", "eps=1.2")
    assert run_json("natural", "free", "--rounds", "2", *pure)["free"] is True
    broken = run_json("natural", "free", "--rounds", "3", *pure)
    assert broken["free"] is False and broken["verdict"] == "NO"
    assert broken["triple"] == ["pure_dp(1.0)", "pure_dp(1.2)", "2 * pure_dp(1.0)"]
    assert broken["gap"]["gap"] == pytest.approx(0.025, abs=5e-4)
    assert run_json("natural", "free", *pure)["verdict"] == "UNDECIDED"
    assert "totally ordered" in run("natural", "free", "--gaussian", "sigma=2")


def test_natural_guarantee() -> None:
    arguments = ("natural", "guarantee", "--eps", "1", "--delta", "1e-6")
    found = run_json(*arguments)
    assert found["budget"]["rounds"] is None
    assert 1.0 < found["guarantee"]["eps"] < 2.76
    assert found["guarantee"]["delta"] == 1e-5 and found["guarantee"]["method"] == "moments"
    assert "guaranteed eps  2.75" in run(*arguments)
    few = run_json(*arguments, "--rounds", "2")["guarantee"]
    assert 1.0 <= few["eps"] < found["guarantee"]["eps"] and few["method"] == "composition"
    none = run_json(*arguments, "--target-delta", "1e-6")["guarantee"]
    assert none["eps"] == "inf"


def test_natural_attack() -> None:
    arguments = ("natural", "attack", "--eps", "1", "--delta", "1e-6", "--rounds", "3")
    found = run_json(*arguments)
    assert found["budget"] == "approximate_dp(1.0, 1e-06)" and found["rounds"] == 3
    assert found["eps"] == 1.0 and found["delta_promised"] == pytest.approx(1e-6)
    assert found["delta_reached"] > 7.3e-6 and found["ratio"] > 7.3
    assert [block["small_queries"] for block in found["blocks"]][-1] == found["small_query"]["most"]
    assert all(block["last_queries"] for block in found["blocks"])
    text = run(*arguments)
    assert (
        "ratio           7.308 at least" in text and "3: the small ones in 2, and the last" in text
    )


def test_natural_attack_on_another_budget() -> None:
    at = ("--eps", "3", "--rounds", "2")
    found = run_json("natural", "attack", "--budget", "gdp mu=1", *at)
    assert found["budget"] == "gaussian(mu=1.0)" and found["eps"] == 3.0
    assert found["delta_reached"] > found["delta_promised"]
    inside = run_json("natural", "attack", "--budget", "approximate_dp eps=1,delta=1e-6",
                      "--eps", "1.1", "--rounds", "2")  # fmt: skip
    assert inside["eps"] == 1.1


def test_attack_one_filter() -> None:
    arguments = ("--filter", "pure eps=1", "--rounds", "2", "--pure-dp", "eps=0.4")
    answer = run_json("attack", *arguments)
    assert answer["verdict"] == "YES"
    assert answer["filter"] == {"kind": "pure", "eps": 1.0}
    assert "holds" in run("attack", *arguments)


NATURAL = '{"kind": "natural", "budget": {"kind": "approximate_dp", "eps": %s, "delta": %s}, %s}'


def test_a_trivial_guarantee_is_no_merit() -> None:
    filter = NATURAL % (1.0, 0.3, '"rounds": 8')
    arguments = ("attack", "--filter", filter, "--rounds", "2", "--pure-dp", "eps=0.4")
    text = run(*arguments)
    assert "holds, but it is trivial (delta = 1)" in text and "nothing is promised" in text
    assert "these queries do not exceed it" in text
    answer = run_json(*arguments)
    assert answer["guarantee_is_trivial"] is True and answer["verdict"] == "YES"


@pytest.mark.parametrize(
    ("limit", "rounds", "said"),
    [
        ('"rounds": 2', 2, "at least 5.12e-6 at eps = 1, 5.12 times the budget's delta"),
        ('"rounds": null', 10, "10.4 times the budget's delta, in 10 rounds"),
        ('"rounds": 100', 20, "11.6 times the budget's delta, in 20 rounds"),
    ],
)
def test_any_queries_against_a_natural_filter(limit: str, rounds: int, said: str) -> None:
    arguments = ("attack", "--filter", NATURAL % (1.0, 1e-6, limit), "--pure-dp", "eps=0.4")
    reached = run_json(*arguments, "--rounds", "1")["any_queries"]
    assert reached["rounds"] == rounds and reached["eps"] == 1.0
    assert reached["delta_reached"] > 5.1e-6 > 5 * reached["delta_promised"]
    assert said in run(*arguments, "--rounds", "1")


@pytest.mark.parametrize(
    "filter",
    [
        "pure eps=1",
        NATURAL % (1.0, 1e-6, '"rounds": 1'),
        NATURAL % (1.0, 0.0, '"rounds": 3'),
        NATURAL % (1e-17, 1e-30, '"rounds": 5'),
        NATURAL % (1.0, 1e-6, '"catalogue": "pure_delta"'),
    ],
)
def test_other_filters_are_attacked_with_the_given_queries_only(filter: str) -> None:
    arguments = (
        "attack",
        "--filter",
        filter,
        "--rounds",
        "1",
        "--approximate-dp",
        "eps=0,delta=0.1",
    )
    assert run_json(*arguments)["any_queries"] is None
    assert "any queries" not in run(*arguments)


def test_what_any_queries_do_not_reach_is_said() -> None:
    filter = NATURAL % (1.0, 0.999, '"rounds": 3')
    text = run("attack", "--filter", filter, "--rounds", "1", "--pure-dp", "eps=0.4")
    assert "which does not exceed the budget, in 3 rounds" in text


def test_a_budget_that_is_not_promised_is_marked() -> None:
    queries = (
        '[{"kind": "approximate_dp", "eps": 0.0847, "delta": 0.478},'
        ' {"kind": "approximate_dp", "eps": 1.404, "delta": 0.0208}]'
    )
    filter = NATURAL % (1.395, 0.509, f'"rounds": 2, "catalogue": {queries}')
    text = run("attack", "--filter", filter, "--rounds", "2", *CROSSING)
    assert "the guarantee  holds\n" in text
    assert "is not what is promised, and is exceeded by 0.08800 at eps = 1.395" in text
    assert "the budget" not in run("attack", "--filter", "pure eps=1", "--pure-dp", "eps=0.4")


def test_attack_one_kind() -> None:
    answer = run_json("attack", "--kind", "basic")
    assert {row["filter"] for row in answer["filters"]} == {"basic"}
    assert all(row["verdict"] != "NO" for row in answer["filters"])
    assert answer["unsound_rules"] == []
    assert "holds" in run("attack", "--kind", "pure")


def test_attack_says_which_guarantee_each_line_is_about() -> None:
    """The natural filter keeps its own guarantee, and the natural rule does not keep its budget."""
    text = run("attack")
    filters, rules = text.split("unsound rules: ")
    assert filters.startswith("filters: the worst case against the filter's own guarantee")
    assert rules.startswith("the worst case against the rule's budget, which they do not keep")
    natural = [line for line in filters.splitlines() if line.split()[:1] == ["natural"]]
    assert natural and all("holds" in line and "(its budget need not)" in line for line in natural)
    assert "budget exceeded by" in rules and "natural, pure queries" in rules
    (strongest,) = [line for line in rules.splitlines() if "natural, any queries" in line]
    assert strongest.split()[-3:] == ["9.44e-6", "1", "yes"]
    for kind in ("natural", "pure"):
        rows = run_json("attack", "--kind", kind)["filters"]
        assert {row["about"] for row in rows} == {"the filter's own guarantee"}


def test_the_natural_rule_must_be_caught_by_any_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("residua.adversary.attack.survivors", lambda kinds: ())
    monkeypatch.setattr("residua.adversary.unsound.UNSOUND", ())
    (row,) = run_json("attack")["unsound_rules"]
    assert row["rule"] == "natural, any queries" and row["verdict"] == "NO"
    assert math.log(row["x"]) == pytest.approx(1.0) and row["rounds"] == 10
    assert 9.4e-6 < row["gap"] <= row["delta_reached"] - row["delta_promised"]
    where = "residua.cli.analysis.adversary."
    monkeypatch.setattr(where + "ANY_DELTA", 0.999)
    monkeypatch.setattr(where + "SOME_ROUNDS", 3)
    assert run("attack", code=1).split()[-2:] == ["0.0", "NO"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("attack", "--pure-dp", "eps=1"), "queries must come with --filter"),
        (("attack", "--filter", "pure eps=1"), "--filter must come with queries"),
        (("attack", "--kind", "magic"), "kind must be one of"),
        (("attack", "--filter", "pure eps=1", "--rounds", "0", "--pure-dp", "eps=1"), "rounds"),
        (("natural", "cost", "--rounds", "2", "--pure-dp", "eps=1"), "--budget"),
        (("natural", "cost", *BUDGET[:2], "--rounds", "0", *CROSSING), "rounds must be 1 or more"),
        (("natural", "cost", *BUDGET[:2], "--rounds", "two", *CROSSING), "--rounds"),
        (("natural", "free", "--rounds", "2"), "QUERY"),
        (("natural", "free", "--rounds", "-1", "--pure-dp", "eps=1", *CROSSING), "rounds"),
        (("natural", "guarantee", "--eps", "nan", "--delta", "1e-6", "--rounds", "2"), "eps"),
        (("natural", "attack", "--eps", "1", "--rounds", "2"), "--eps and --delta must be given"),
        (("natural", "attack", "--budget", "gdp mu=1", "--rounds", "2"), "eps must be given"),
        (
            ("natural", "attack", "--budget", "gdp mu=1", "--delta", "1e-6", "--rounds", "2"),
            "--delta must come without --budget",
        ),
        (("natural", "attack", "--eps", "1", "--delta", "1e-6", "--rounds", "1"), "rounds must be"),
        (
            ("natural", "free", "--rounds", "40", *(x for e in range(1, 9)
             for x in ("--pure-dp", f"eps={e}"))),
            "compositions of fewer than 40 queries",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_name(arguments: tuple[str, ...], said: str) -> None:
    text = refusal(*arguments)
    assert said in text and "Traceback" not in text


def test_kinds_of_the_suite_are_the_kinds() -> None:
    text = refusal("attack", "--kind", "magic")
    assert all(kind in text for kind in KINDS)


@pytest.mark.needs("matplotlib")
def test_adversaries_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "tree.svg"
    answer = run_json("natural", "cost", *BUDGET, *CROSSING, "--draw", str(path))
    assert answer["picture"] == str(path) and path.stat().st_size > 0
    text = run("natural", "cost", *BUDGET, *CROSSING, "--draw", str(tmp_path / "tree.png"))
    assert "the adversary, drawn:" in text
    arguments = ("--filter", "pure eps=1", "--rounds", "2", "--pure-dp", "eps=0.4")
    text = run("attack", *arguments, "--draw", str(tmp_path / "none.svg"))
    assert "no picture: no adversary was found" in text
    assert not (tmp_path / "none.svg").exists()


@pytest.mark.needs("matplotlib")
def test_figures(tmp_path: Path) -> None:
    answer = run_json("figures", "--out", str(tmp_path), "--only", "strategy")
    (figure,) = answer["figures"]
    assert figure["name"] == "strategy" and figure["numbers"]["rounds"] == 5
    assert sorted(tmp_path.iterdir()) == [tmp_path / "strategy.png", tmp_path / "strategy.svg"]
    text = run("figures", "--out", str(tmp_path), "--only", "gdp-residue", "--format", "svg")
    assert "gdp-residue.svg" in text and "a gain of 0.1471" in text
    assert not (tmp_path / "gdp-residue.png").exists()


def test_figures_names_what_is_wrong(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.touch()
    for arguments, said in (
        (("--out", str(tmp_path), "--only", "magic"), "only must be one of gdp-residue,"),
        (("--out", str(tmp_path), "--format", "gif"), "format must be one of svg, png, got 'gif'"),
        (("--out", str(taken)), "out must be a directory"),
        (("--only", "strategy"), "--out"),
    ):
        assert said in refusal("figures", *arguments)
    assert "--draw must come with --filter" in refusal("attack", "--draw", "x.svg")
    wrong = refusal("natural", "cost", *BUDGET, *CROSSING, "--draw", str(tmp_path / "tree.xyz"))
    assert "path must be a file that can be written" in wrong


def test_without_matplotlib_the_numbers_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    text = run("natural", "cost", *BUDGET, *CROSSING, "--draw", str(tmp_path / "tree.svg"))
    assert "delta real" in text and "no picture: residua.figures needs matplotlib" in text
    text = run("figures", "--out", str(tmp_path), "--only", "strategy", code=1)
    assert "1.35 times what is promised" in text and "pip install 'residua[figures]'" in text
    assert not list(tmp_path.iterdir())
