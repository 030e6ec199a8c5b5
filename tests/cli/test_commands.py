"""Every command: what it prints, for people and as JSON, and how it refuses bad input."""

import math
import re
import shlex
from pathlib import Path

import pytest
import typer

import residua as rz
from cli.running import refusal, run, run_json
from residua.cli.app import COMMANDS, app

GAUSSIAN = '{"kind": "gaussian", "sigma": 4.0}'
LAPLACE = '{"kind": "laplace", "scale": 2.0, "sensitivity": 1.0}'
PURE = '{"kind": "pure_dp", "eps": 0.1}'
APPROXIMATE = '{"kind": "approximate_dp", "eps": 0.1, "delta": 1e-7}'


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = typer.main.get_command(app).get_command(None, name)  # type: ignore[attr-defined]
    examples = re.findall(r"^ *residua (.+)$", command.help.partition("Example:")[2], re.MULTILINE)
    assert examples, f"residua {name} --help shows no example"
    if name in NEVER_END:
        return
    hold, head = _ledger(tmp_path, monkeypatch) if name in WITH_A_LEDGER else ("", "")
    if name in ABOUT_TABLES:
        _table(tmp_path)
    for example in examples:
        run(*shlex.split(re.sub(r"\bID\b", hold, example).replace("3f0a…", head)))


NEVER_END = ("serve",)
"""Run in tests of their own."""
WITH_A_LEDGER = ("budget", "check", "spend", "reserve", "commit", "cancel", "history", "export",
                 "status", "recover", "token", "verify", "plan", "table", "query")  # fmt: skip
ABOUT_TABLES = ("table", "query")


def _table(folder: Path) -> None:
    """The table that the examples ask about."""
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("opendp")
    path = folder / "staff.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 1 AS person_id, 'eng' AS dept) TO '{path}'")
    with rz.open_ledger(folder / "budgets.db") as ledger:
        ledger.create_budget("survey", rz.PureFilter(1.0))
        ledger.add_table(
            "staff", source=path, unit_column="person_id", budget="survey", max_rows=1,
            keys={"dept": ["eng", "ops"]},
        )  # fmt: skip


def _ledger(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A ledger where commands look for one, and its export; the id of a hold, and a head."""
    monkeypatch.delenv("RESIDUA_STORE", raising=False)
    with rz.open_ledger(folder / "budgets.db") as ledger:
        ledger.create_budget("web", rz.GdpResidueFilter(mu=1.0))
        hold = ledger.reserve("web", rz.laplace(scale=9.0))
        ledger.export(folder / "export.jsonl")
        return hold.id, hold.head


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    section = page.partition(f"## `residua {name}`\n")[2].partition("\n## ")[0]
    assert "Example:" in section, f"docs/cli.md has no section with an example for {name}"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_whole(name: str) -> None:
    text = run(name, "--help")
    assert "Example:" in text
    assert "--json" in text


def _leaves() -> list[tuple[str, ...]]:
    """Every command with what leads to it: `budget create`, `check`, …"""
    root, found = typer.main.get_command(app), []
    for name in COMMANDS:
        command = root.get_command(None, name)  # type: ignore[attr-defined]
        inner = getattr(command, "commands", {})
        found += [(name, each) for each in inner] or [(name,)]
    return found


@pytest.mark.parametrize("leaf", _leaves(), ids=" ".join)
def test_every_command_answers_in_json_and_shows_how(leaf: tuple[str, ...]) -> None:
    text = run(*leaf, "--help")
    assert re.search(r"^ +--json  ", text, re.MULTILINE), "an option of its own"
    assert re.search(rf"Example:\n +residua {' '.join(leaf)}", text)


def test_help_lists_every_command() -> None:
    text = run("--help")
    for name in COMMANDS:
        assert re.search(rf"^ +{name}  ", text, re.MULTILINE)
    assert "..." not in text.partition("Commands:")[2], "a summary is too long to be listed"


@pytest.mark.needs("sqlalchemy")
def test_help_names_the_choices_of_the_tables() -> None:
    """Help is shown without the core, so it repeats these names; here they are compared."""
    from residua.figures.gallery import GALLERY
    from residua.planning.suite import FAMILIES, SHAPES
    from residua.service.auth import ROLES

    for command, choices in {
        ("compare",): (*FAMILIES, *SHAPES, *rz.mechanisms.RELATIONS),
        ("budget", "create"): rz.mechanisms.RELATIONS,
        ("token", "create"): ROLES,
        ("figures",): tuple(GALLERY),
    }.items():
        text = " ".join(run(*command, "--help").split())
        assert [name for name in choices if name not in text] == [], command


def test_delta() -> None:
    answer = run_json("delta", GAUSSIAN, LAPLACE, "--eps", "0.5")
    bounds = (rz.gaussian(sigma=4.0) + rz.laplace(scale=2.0)).delta_bounds(0.5)
    assert answer["delta_bounds"] == {"lo": bounds.lo, "hi": bounds.hi}
    assert answer["delta"] == bounds.hi
    assert answer["eps"] == 0.5


@pytest.mark.parametrize(
    ("query", "pld"),
    [
        (GAUSSIAN, "rz.gaussian(sigma=4.0)"),
        ('{"kind": "gaussian", "sigma": 4, "sensitivity": 2}', "rz.gaussian(mu=0.5)"),
        ('{"kind": "gdp", "mu": 1.0}', "rz.gaussian(mu=1.0)"),
        (LAPLACE, "rz.laplace(scale=2.0)"),
        (PURE, "rz.pure_dp(0.1)"),
        (APPROXIMATE, "rz.approximate_dp(0.1, 1e-7)"),
        ('{"kind": "pure_dp", "eps": 0.1, "steps": 3}', "3 * rz.pure_dp(0.1)"),
    ],
)
def test_query_means_the_constructor(query: str, pld: str) -> None:
    bounds = eval(pld).delta_bounds(0.05)
    answer = run_json("delta", query, "--eps", "0.05")
    assert answer["delta_bounds"] == {"lo": bounds.lo, "hi": bounds.hi}


def test_pld_pastes_back() -> None:
    answer = run_json("delta", GAUSSIAN, LAPLACE, PURE, APPROXIMATE, "--eps", "1")
    names = {name: getattr(rz, name) for name in rz.__all__}  # type: ignore[attr-defined]
    total = eval(answer["pld"], names)
    assert total.delta_bounds(1.0).hi == answer["delta"]


def test_epsilon() -> None:
    answer = run_json("epsilon", GAUSSIAN, "--delta", "1e-6")
    bounds = rz.gaussian(sigma=4.0).epsilon_bounds(1e-6)
    assert answer["epsilon_bounds"] == {"lo": bounds.lo, "hi": bounds.hi}
    assert answer["epsilon"] == bounds.hi


def test_infinite_epsilon_is_valid_json() -> None:
    answer = run_json("epsilon", APPROXIMATE, "--delta", "1e-8")
    assert answer["epsilon"] == "inf"
    assert math.isinf(float(answer["epsilon_bounds"]["lo"]))


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (PURE, PURE, "EQUAL"),
        (PURE, APPROXIMATE, "LESS"),
        (LAPLACE, PURE, "GREATER"),
        (GAUSSIAN, APPROXIMATE, "INCOMPARABLE"),
    ],
)
def test_order(first: str, second: str, verdict: str) -> None:
    answer = run_json("order", first, second)
    assert answer["verdict"] == verdict
    for key, absent in (
        ("not_below", {"LESS", "EQUAL"}),
        ("not_above", {"GREATER", "EQUAL"}),
    ):
        assert (answer[key] is None) == (verdict in absent)
        if answer[key] is not None:
            assert answer[key]["gap"] > 0
    assert verdict in run("order", first, second)


def test_tables_show_the_interval() -> None:
    assert "lo" in run("delta", GAUSSIAN, "--eps", "1")
    assert "hi" in run("epsilon", GAUSSIAN, "--delta", "1e-6")


def test_demo(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "down"
    out.mkdir(parents=True)
    (out / "demo.db").write_text("somebody's")
    answer = run_json("demo", "--out", str(out))
    assert answer["ledger"] == str(out / "demo-2.db")
    assert (out / "demo.db").read_text() == "somebody's"
    assert [Path(p).read_bytes()[:4] for p in answer["pictures"]] == [b"\x89PNG"]
    admitted = {each["name"]: each["admitted"] for each in answer["filters"]}
    assert admitted["basic"] < admitted["zCDP"] < admitted["GDP residue"]
    assert all("would fit" in each["refusal"] for each in answer["filters"][1:])
    natural = answer["natural"]
    assert natural["reached_delta_bounds"]["lo"] > natural["promised_delta"] + 0.08
    with rz.open_ledger(answer["ledger"]) as ledger:
        scales = {r.mechanism["scale"] for r in ledger.history("basic") if r.mechanism}
        assert len(scales) > 1  # how much is spent depends on the answers
        for name, count in admitted.items():
            assert sum(r.admitted is True for r in ledger.history(name)) == count
    # Of every budget its start and each admitted step.
    assert answer["verified"] == {
        "ok": True, "proven": sum(admitted.values()) + len(admitted), "undecided": 0,
    }  # fmt: skip


def test_bench() -> None:
    rates = {one["what"]: one for one in run_json("bench", "--seconds", "0.02")["rates"]}
    assert any("16 callers" in what for what in rates)
    assert all(one["count"] >= 1 and one["a_second"] > 0 for one in rates.values())
    for wrong in ("0", "nan", "1e9"):
        assert "seconds must be between" in refusal("bench", "--seconds", wrong)


def test_demo_refuses_a_file_for_a_directory(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert "out must be a directory" in refusal("demo", "--out", str(file))


def test_version() -> None:
    answer = run_json("version")
    assert set(answer) == {"residua", "python", "numpy", "scipy"}
    assert f"residua {answer['residua']}" in run("version")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ('{"kind": "gausian", "sigma": 1}', "'gausian'"),
        ('{"sigma": 1}', "kind is missing"),
        ('{"kind": ["gaussian"], "sigma": 1}', "['gaussian']"),
        ('{"kind": "laplace", "scael": 2.0}', "unknown field 'scael'"),
        ('{"kind": "laplace"}', "laplace needs the field 'scale'"),
        ('{"kind": "gaussian", "sigma": 1, "mu": 1}', "unknown field 'mu'"),
        ('{"kind": "gaussian", "mu": 1}', "unknown field 'mu'"),
        ('{"kind": "gdp", "mu": 1, "sensitivity": 1}', "unknown field 'sensitivity'"),
        (
            '{"kind": "gaussian", "sigma": "1"}',
            "sigma must be a number that is positive and finite, got '1'",
        ),
        (
            '{"kind": "gaussian", "sigma": true}',
            "sigma must be a number that is positive and finite, got True",
        ),
        (
            '{"kind": "gaussian", "sigma": null}',
            "sigma must be a number that is positive and finite, got None",
        ),
        (
            '{"kind": "gaussian", "sigma": NaN}',
            "query must be valid JSON with finite numbers, got NaN",
        ),
        (
            '{"kind": "gaussian", "sigma": -Infinity}',
            "valid JSON with finite numbers, got -Infinity",
        ),
        ('{"kind": "gaussian", "sigma": 1e999}', "sigma"),
        ('{"kind": "gaussian", "sigma": -1}', "sigma"),
        (
            '{"kind": "gaussian", "sigma": 1' + 400 * "0" + "}",
            "query must be made of numbers of ordinary size",
        ),
        ('{"kind": "gaussian", "sigma": 1' + 5000 * "0" + "}", "query must be"),
        (
            '{"kind": "gaussian", "sigma": 1, "sigma": 2}',
            "query must be without duplicate fields, got 'sigma'",
        ),
        ('{"kind": "pure_dp", "eps": -0.1}', "eps"),
        ('{"kind": "approximate_dp", "eps": 0.1, "delta": 2}', "delta"),
        ('{"kind": "pure_dp", "eps": 1, "steps": -1}', "steps must be"),
        ('{"kind": "pure_dp", "eps": 1, "steps": 1.5}', "got 1.5"),
        ('{"kind": "pure_dp", "eps": 1, "steps": true}', "got True"),
        ('{"kind": "pure_dp", "eps": 1', "query must be valid JSON"),
        ('{"kind": "pure_dp", "eps": 1, "count": 2, "steps": 2}', "unknown field 'count'"),
        ('{"kind": "pure_dp", "eps": 1, "version": 2}', "version must be 1"),
        ("gaussian", "gaussian needs the field 'sigma'"),
        ("laplace 2", "laplace takes name=value, separated by commas, got 2"),
        ("laplace scale=2,scale=3", "laplace takes each field once, got scale twice"),
        ("laplace scale=nan", "scale must be positive and finite, got nan"),
        ("laplace scale=-1", "scale must be positive and finite, got -1"),
        ("laplace scale=two", "scale must be a number that is positive and finite, got 'two'"),
        ("laplace scale=[1", "scale must be valid JSON, got '[1'"),
        ("rdp orders=2,epsilons=1", "orders must be a list of numbers, got 2"),
        ("poisson_sampled mechanism=laplace,sampling_rate=1", "mechanism must be a mechanism"),
        ("4 laplace", "query must be a JSON object, or a kind with name=value, got 4 laplace"),
        ("[1, 2]", "queries must be JSON objects, got 1"),
        ("", "query must be a JSON object"),
        (100_000 * "[", "query must be"),
    ],
)
def test_bad_query_is_refused_by_name(query: str, said: str) -> None:
    text = refusal("delta", query, "--eps", "1")
    assert said in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("delta", PURE, "--eps", "nan"), "eps"),
        (("delta", PURE, "--eps", "small"), "--eps"),
        (("delta", PURE), "--eps"),
        (("delta", "--eps", "1"), "QUERY"),
        (("epsilon", PURE, "--delta", "1.5"), "delta"),
        (("epsilon", PURE, "--delta", "-1"), "delta"),
        (("order", PURE), "SECOND"),
        (("spendd", PURE), "spendd"),
        (("delta", "--laplce", "scale=2", "--eps", "1"), "did you mean '--laplace'?"),
        (("delta", "--zzz", "--eps", "1"), "neither an option of this command nor a kind"),
        (("delta", "--laplace", "--eps", "1"), "laplace needs the field 'scale'"),
        (("delta", "--query"), "--query must be followed by"),
        (("delta", "--query", "no/such.json", "--eps", "1"), "got no/such.json"),
        (("delta", PURE, "--eps", "1", "--relation", "next-door"), "got 'next-door'"),
        (
            ("delta", "--randomized-response", "eps=1", "--eps", "1", "--relation", "add-remove"),
            "has a pair for (replace-one, zero-out)",
        ),
        (
            ("order", PURE, "randomized_response eps=1", "--relation", "add-remove"),
            "randomized_response",
        ),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments: tuple[str, ...], said: str) -> None:
    text = refusal(*arguments)
    assert said in text
    assert "Traceback" not in text


def test_order_composes_a_list() -> None:
    """A day against a budget: either side may be several queries."""
    both = '[{"kind": "pure_dp", "eps": 0.1}, {"kind": "pure_dp", "eps": 0.1}]'
    budget = '{"kind": "pure_dp", "eps": 0.2}'
    assert run_json("order", both, budget)["verdict"] == "LESS"
    for wrong in ("[]", "[1]", "[{]"):
        assert "quer" in refusal("order", wrong, budget)


def test_version_option() -> None:
    assert run("--version").strip() == f"residua {rz.__version__}"
