"""What people get wrong: names that are nearly right, files of something else, where it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import residua as rz
from cli.running import refusal, run, run_json
from residua.cli.app import EXIT_CODES
from residua.mechanisms import KINDS
from service.running import serving

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy")

LEDGER = 4
TARGET = ("--eps", "1", "--delta", "1e-6")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("RESIDUA_STORE", "RESIDUA_TOKEN"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("bugdet", "list"), "'budget'"),
        (("describe", "gausian sigma=2"), "'gaussian'"),
        (("mechanisms", "Laplce"), "'laplace'"),
        (("describe", "--laplce", "scale=2"), "'--laplace'"),
        (("describe", "--laplace", "scael=2"), "'scale'"),
        (("budget", "create", "b", "--filter", "gdp_residu mu=1"), "'gdp_residue'"),
        (("budget", "create", "b", "--filter", "gdp_residue muu=1"), "'mu'"),
        (("attack", "--kind", "pur"), "'pure'"),
        (("recommend", *TARGET, "--pure-dp", "eps=1", "--filter", "basik"), "'basic'"),
        (("describe", "--laplace", "scale=2", "--relation", "add_remove"), "'add-remove'"),
    ],
)
def test_nearest_names(arguments: tuple[str, ...], meant: str) -> None:
    run("init")
    assert f"id you mean {meant}?" in refusal(*arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ("budget", "create", "b", "--eps", "1e-400"),
        ("budget", "create", "b", "--eps", "1", "--delta", "1e-400"),
        ("budget", "create", "b", "--filter", "pure eps=1e-400"),
        ("spend", "web", "--eps", "1e-400"),
        ("describe", "--pure-dp", "eps=1e-400"),
    ],
)
def test_numbers_that_round_to_zero(arguments: tuple[str, ...]) -> None:
    run("init")
    run("budget", "create", "web", "--eps", "1")
    assert "must be 0 or large enough for a float, got '1e-400'" in refusal(*arguments)


def test_a_delta_of_zero_is_a_pure_budget() -> None:
    run("init")
    run("budget", "create", "web", "--eps", "1", "--delta", "0")
    assert run_json("budget", "show", "web")["filter"]["kind"] == "pure"


def test_a_name_that_is_like_none_is_not_guessed_at() -> None:
    for kind in ("", "x" * 10_000, "zzzzzz"):
        with pytest.raises(rz.ArgumentError) as caught:
            rz.mechanisms.from_json({"kind": kind})
        assert "did you mean" not in str(caught.value)
    for kind in KINDS:
        with pytest.raises(rz.ArgumentError, match=f"did you mean '{kind}'"):
            rz.mechanisms.from_json({"kind": kind.upper()})


def test_a_budget_that_is_not_there() -> None:
    run("init")
    assert "did you mean" not in run("budget", "show", "websit", code=LEDGER)
    run("budget", "create", 'it\'s "web" site', "--filter", "pure eps=1")
    run("budget", "create", "website", "--filter", "pure eps=1")
    for arguments in (
        ("budget", "show", "websit"),
        ("spend", "websit", "--pure-dp", "eps=1"),
        ("spend", "website", "--also", "websit", "--pure-dp", "eps=1"),
        ("history", "websit"),
        ("plan", "--budget", "websit", "--pure-dp", "eps=1"),
    ):
        assert "there is no budget 'websit'; did you mean 'website'?" in run(
            *arguments, code=LEDGER
        )
    assert "site'?" in run("history", 'it\'s "web" sit', code=LEDGER)


def test_a_service_names_only_what_the_caller_sees(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor") as service:
        service.budget("website")
        service.budget("websites-of-others")
        token = service.token("analyst", budgets=["website"])

        def said(name: str, by: str) -> str:
            return run("budget", "show", name, "--store", service.url, "--token", by, code=LEDGER)

        assert "did you mean 'website'?" in said("websit", token)
        assert "did you mean" not in said("websites-of-other", token), "none in scope is like it"
        everything = service.tokens["admin"]
        assert "did you mean 'websites-of-others'?" in said("websites-of-other", everything)
        # The service itself suggests nothing, whoever asks.
        answer = service.http("GET", "/v1/budgets/websit", "admin")
        assert answer.json()["detail"] == "there is no budget 'websit'"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"kind": "gaussian", "sigma": }', "must be valid JSON"),
        ('{"kind": "gaussian", "sigma": -1}', "sigma must be positive"),
        ('[{"kind": "gaussian", "sigma": "abc"}]', "sigma must be a number that is positive"),
        ("gaussian sigma=1", "JSON object"),
        ("", "JSON object"),
    ],
)
def test_a_file_is_named_where_it_is_wrong(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "q.json"
    file.write_text(content)
    text = refusal("describe", "--query", "q.json")
    assert "q.json: " in text and said in text

    assert "q.json: " in refusal("recommend", *TARGET, "--workload", "q.json")
    assert "q.json: " in refusal("plan", "--pure-dp", "eps=1", "--filter", "q.json")


def test_a_filter_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text(json.dumps({"kind": "pure", "eps": 1.0}) + "\n")
    assert '"kind":"pure"' in run("plan", "--pure-dp", "eps=1", "--filter", "f.json")
    assert "none.json" in refusal("plan", "--pure-dp", "eps=1", "--filter", "none.json")


SOMETHING_ELSE = {
    "text": b"hello\nworld\n",
    "json": b'{"a": 1}\n',
    "binary": b"\x00\x01\xff",
    "empty": b"",
    "database": None,
}


@pytest.mark.needs("flint")
@pytest.mark.parametrize("content", SOMETHING_ELSE)
def test_a_file_that_is_no_ledger_is_one_line_and_2(tmp_path: Path, content: str) -> None:
    import sqlite3

    given = SOMETHING_ELSE[content]
    if given is None:
        with sqlite3.connect(tmp_path / "x") as connection:
            connection.execute("CREATE TABLE t (a)")
        connection.close()
    else:
        (tmp_path / "x").write_bytes(given)
    for arguments in (
        ("verify", "x"),
        ("verify", "sqlite:///x"),
        ("budget", "list", "--store", "x"),
        ("spend", "b", "--pure-dp", "eps=1", "--store", "sqlite:///x"),
    ):
        said = refusal(*arguments)
        assert said.count("\n") == 1 and "x" in said.replace("residua", ""), said
    run("init", "fine.db")
    if content not in ("empty", "database"):
        said = refusal("recover", "--export", "x", "--store", "fine.db")
        assert said.count("\n") == 1 and "x is not an export of a ledger" in said
    assert "none" in refusal("recover", "--export", "none", "--store", "fine.db")


@pytest.mark.parametrize("text", ["# Notes\n", "# Überschrift\n\nDie Residuen.\n"])
def test_a_text_that_is_not_a_ledger_is_not_called_something_else(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("README.md").write_text(text, encoding="utf-8")
    said = refusal("verify", "README.md")
    assert "README.md is not a ledger or an export of one: " in said and "not text" not in said


def test_exit_codes_are_in_the_help() -> None:
    shown = " ".join(run("--help").split())
    for code, meaning in EXIT_CODES.items():
        assert f" {code} {meaning}" in shown
