"""Budgets on the command line: the same commands for a file, a database and a service."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import residua as rz
from cli.running import refusal, run, run_json
from residua.records import from_line
from service.conftest import postgres, postgres_server  # noqa: F401  (fixtures)
from service.running import serving

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy")

REFUSED, LEDGER, REPLAYED = 3, 4, 6


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("RESIDUA_STORE", "RESIDUA_TOKEN"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(
    params=[
        "file",
        "path",
        "service",
        pytest.param("database", marks=pytest.mark.needs("pgserver", "psycopg")),
    ]
)
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """A ledger without budgets, reached in each way."""
    if request.param == "service":
        with serving(f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor") as service:
            monkeypatch.setenv("RESIDUA_TOKEN", service.tokens["admin"])
            yield service.url
    else:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        places = {"file": "sqlite:///b.db", "path": str(tmp_path / "b.db")}
        where = places.get(request.param) or request.getfixturevalue("postgres")
        run("init", where)
        yield where


def test_eps_is_enough_for_a_budget_and_for_a_query(store: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("RESIDUA_STORE", store)
    assert run_json("budget", "create", "web", "--eps", "1")["filter"] == {"kind": "pure", "eps": 1}
    made = run_json("budget", "create", "all", "--eps", "1", "--delta", "1e-6")["filter"]
    assert made["kind"] == "auto" and made["delta"] == 1e-6
    assert run_json("spend", "web", "--eps", "0.3")["admitted"]
    assert run_json("check", "web", "--eps=0.7")["admitted"]
    assert "needs eps 0.8" in run("spend", "web", "--eps", "0.8", code=REFUSED)
    assert "got no --eps" in refusal("budget", "create", "more", "--delta", "1e-6")
    for given in ("nan", "-1", "much"):
        assert f"got {given}" in refusal("spend", "web", f"--eps={given}").replace("'", "")
    assert "--eps must be followed by a number" in refusal("spend", "web", "--eps")
    assert "--eps must be followed by a number" in refusal("spend", "web", "--eps", "--key=k")
    budgets = run_json("budget", "list")["budgets"]
    assert {each["name"]: each["seq"] for each in budgets} == {"web": 2, "all": 0}


def test_eps_and_delta_are_a_query_in_either_order(store: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("RESIDUA_STORE", store)
    run("budget", "create", "all", "--filter", "basic eps=1,delta=1e-6")
    for given in (("--eps", "0.1", "--delta", "1e-8"), ("--delta=1e-8", "--key", "b", "--eps=0.1")):
        assert run_json("spend", "all", *given)["admitted"]
    items = run_json("history", "all")["items"][1:]
    meant = {"kind": "approximate_dp", "eps": 0.1, "delta": 1e-8}
    assert [each["mechanism"] for each in items] == [meant, meant]
    run_json("spend", "all", "--eps", "0.1", "--eps", "0.2", "--delta", "1e-8")
    composed = run_json("history", "all")["items"][-1]["mechanism"]["mechanisms"]
    assert [each["kind"] for each in composed] == ["pure_dp", "approximate_dp"]
    assert "--delta must come with --eps" in refusal("spend", "all", "--delta", "1e-8")
    assert "--delta must be followed" in refusal("spend", "all", "--eps", "1", "--delta")


@pytest.mark.parametrize("query", [(), ("--eps", "0.3"), ('{"kind": "pure_dp", "eps": 0.3}',)])
def test_a_missing_budget_is_named(query: tuple[str, ...]) -> None:
    said = refusal("spend", *query)
    assert "BUDGET is missing" in said and "residua spend web --eps 0.3" in said


def test_no_query_becomes_the_value_of_another_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESIDUA_STORE", str(tmp_path / "budgets.db"))
    run("init")
    run("budget", "create", "web", "--eps", "1")
    spend = ("spend", "web", "--eps", "0.9", "--laplace", "scale=100")
    assert "--key" in run(*spend, "--key", code=2)
    assert "--key must be followed by its value" in refusal(
        "spend", "web", "--key", "--eps=0.9", "--laplace", "scale=100"
    )
    assert run_json(*spend, "--key=--eps=0.9")["key"] == "--eps=0.9"
    (budget,) = run_json("budget", "list")["budgets"]
    assert budget["seq"] == 1 and "9 % left" in budget["balance"]["text"]


def test_a_union_says_what_it_stops(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESIDUA_STORE", store)
    made = run_json("budget", "create", "web", "--filter", "pure eps=1 | gdp_residue mu=0.2")
    assert [each["kind"] for each in made["filter"]["filters"]] == ["pure", "gdp_residue"]
    checked = run("check", "web", "--gaussian", "sigma=40")
    assert "would be admitted: " in checked and "and stops pure" in checked
    spent = run_json("spend", "web", "--gaussian", "sigma=40")
    assert spent["admitted"] and "and stops pure" in spent["reason"]
    refused = run("spend", "web", "--pure-dp", "eps=0.5", code=REFUSED)
    assert "(mu 0.623893) under gdp_residue (pure is stopped); 98 % left (gdp_residue" in refused
    assert " left; largest query eps " in run("budget", "show", "web")


def test_from_creation_to_refusal(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESIDUA_STORE", store)
    made = run_json("budget", "create", "web", "--filter", "gdp_residue mu=1", "--unit", "home")
    assert made["filter"] == {"kind": "gdp_residue", "mu": 1.0} and made["unit"] == "home"
    checked = run_json("check", "web", "--laplace", "scale=4")
    assert run("check", "web", "--laplace", "scale=4").startswith("would be admitted: ")
    spent = run_json("spend", "web", "--laplace", "scale=4", "--key", "a")
    assert checked["reason"] == f"would be {spent['reason']}"
    assert checked["admitted"] and spent["admitted"] and spent["key"] == "a"
    again = ("spend", "--laplace", "scale=4", "--key", "a", "web")
    assert json.loads(run(*again, "--json", code=REPLAYED)) == {**spent, "replayed": True}
    assert run_json(*again, "--replay-ok") == {**spent, "replayed": True}
    for replayed in (run(*again, code=REPLAYED), run(*again, "--replay-ok")):
        assert "replayed" in replayed and "this key was already used" in replayed
    run("spend", "web", "--laplace", "scale=0.5", "--key", "no", code=REFUSED)
    refused = run("spend", "web", "--laplace", "scale=0.5", "--json", "--key", "no", code=REFUSED)
    assert json.loads(refused)["admitted"] is False
    said = run("check", "web", "--laplace", "scale=0.5", code=REFUSED)
    assert said.startswith("would be refused: ") and "would fit" in said and "left" in said
    shown = run_json("budget", "show", "web")
    assert shown["seq"] == 2 and shown["remaining"] == spent["remaining"]
    assert [one["name"] for one in run_json("budget", "list")["budgets"]] == ["web"]
    items = run_json("history", "web")["items"]
    assert [one["seq"] for one in items] == [0, 1, 2]
    assert [one["seq"] for one in run_json("history", "web", "--refused")["items"]] == [2]
    assert [one["seq"] for one in run_json("history", "web", "--after", "1")["items"]] == [2]
    for human in (("budget", "list"), ("budget", "show", "web"), ("status",)):
        assert "web" in run(*human)
    planned = run_json("plan", "--budget", "web", "--laplace", "scale=4")
    with_state = ("plan", "--filter", "gdp_residue mu=1", "--state", json.dumps(shown["state"]))
    assert planned["how_many"] == run_json(*with_state, "--laplace", "scale=4")["how_many"] > 0
    assert "left now" in run("check", "web", "--laplace", "scale=4")
    assert "left after this" in run(*again, code=REPLAYED)
    report = run_json("verify", store)
    assert (report["ok"], report["refuted"]) == (True, 0)
    assert "would fit" in run("history", "web")
    assert run_json("budget", "retire", "web", "--reason", "over")["retired"]
    assert "retired" in run("spend", "web", "--laplace", "scale=9", code=LEDGER)


def test_reservations(store: str) -> None:
    at = ("--store", store)
    run("budget", "create", "web", "--filter", '{"kind": "pure", "eps": 1.0}', *at)
    hold = run_json("reserve", "web", "--pure-dp", "eps=0.6", *at)
    run("spend", "web", "--pure-dp", "eps=0.5", *at, code=REFUSED)
    assert run_json("commit", hold["id"], *at)["admitted"]
    again = ("commit", hold["id"], *at)
    assert "this reservation was already committed" in run(*again, code=REPLAYED)
    assert run_json(*again, "--replay-ok")["replayed"]
    other = run_json("reserve", "web", "--pure-dp", "eps=0.4", *at)
    assert other["id"] in json.dumps(run_json("status", *at))
    assert run_json("cancel", other["id"], "--reason", "no", *at)["cancelled"] == other["id"]
    assert "is not open" in run("commit", other["id"], *at, code=LEDGER)
    keyed = ("reserve", "web", "--pure-dp", "eps=0.1", "--key", "k", *at)
    third = run_json(*keyed)
    assert not third["replayed"]
    assert json.loads(run(*keyed, "--json", code=REPLAYED))["id"] == third["id"]
    assert run_json(*keyed, "--replay-ok") == {**third, "replayed": True}
    assert "this is the reservation that it made" in run(*keyed, code=REPLAYED)


def test_several_budgets_and_queries(store: str, tmp_path: Path) -> None:
    at = ("--store", store)
    run("budget", "create", "a", "--filter", "pure eps=1", *at)
    run("budget", "create", "b", "--filter", "pure eps=0.5", *at)
    (tmp_path / "day.json").write_text('[{"kind": "pure_dp", "eps": 0.2, "steps": 2}]')
    both = ("spend", "a", "--query", "day.json", "--pure-dp", "eps=0.1", "--also", "b", *at)
    assert set(run_json(*both)["budgets"]) == {"a", "b"}
    assert "b" in run(*both, code=REFUSED)
    assert run("check", *both[1:], code=REFUSED).startswith("budget 'b': would be refused: ")
    left = run_json("budget", "show", "a", *at)["remaining"]
    assert left == {"kind": "pure_dp", "eps": 0.5, "text": "eps 0.5"}


def test_costs_records_and_hashes_of_several_budgets_are_labelled(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESIDUA_STORE", store)
    run("budget", "create", "web", "--filter", "gdp_residue mu=1")
    run("budget", "create", "app", "--filter", "pure eps=1")
    run("spend", "web", "--laplace", "scale=10")
    ask = ("web", "--also", "app", "--laplace", "scale=10")
    assert run("check", *ask).startswith("budget 'app': would be admitted: ")
    assert run("reserve", *ask).startswith("budget 'app': admitted: ")
    key = ("--key", "k", "--replay-ok")
    said, shown = run("spend", *ask, *key), run_json("spend", *ask, *key)
    first, *rows = said.splitlines()
    assert first == "budget 'app': admitted: Laplace(scale=10.0) costs eps 0.1"
    for name, link in shown["budgets"].items():
        for field, label in (("seq", "record"), ("head", "hash")):
            assert any(re.fullmatch(rf"{label} of {name} +{link[field]}", row) for row in rows)
    assert not any(re.match("(record|hash) +[0-9]", row) for row in rows)


def test_an_undeclared_relation_names_the_flag(store: str) -> None:
    run("budget", "create", "web", "--filter", "zcdp rho=1", "--store", store)
    for command in ("check", "spend", "reserve"):
        ask = (command, "web", "--zcdp", "rho=0.001", "--store", store)
        said = refusal(*ask)
        assert "give --assume-budget-relation" in said and "assume_budget_relation" not in said
        run(*ask, "--assume-budget-relation")


def test_another_relation_is_a_refusal(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESIDUA_STORE", store)
    run("budget", "create", "web", "--filter", "gdp_residue mu=1")
    for command in ("check", "spend", "reserve"):
        ask = (command, "web", "--pure-dp", "eps=0.01,relation=replace-one")
        said = run(*ask, code=REFUSED)
        assert "declares replace-one, but the budget's relation is add-remove" in said
        shown = json.loads(run(*ask, "--json", code=REFUSED))
        assert shown["admitted"] is False and shown["largest"] is None
    assert len(run_json("history", "web", "--refused")["items"]) == 4


def test_export(store: str, tmp_path: Path) -> None:
    at = ("--store", store)
    run("budget", "create", "web", "--filter", "pure eps=1", *at)
    run("spend", "web", "--pure-dp", "eps=0.5", *at)
    said = run_json("export", "--out", "ledger.jsonl", *at)
    lines = (tmp_path / "ledger.jsonl").read_text().splitlines()
    assert said["lines"] == len(lines) and run("export", *at).splitlines() == lines
    assert [from_line(line).seq for line in lines if '"record"' in line] == [0, 1]


def test_the_automatic_filter(store: str) -> None:
    made = run_json("budget", "create", "s", "--eps", "1", "--delta", "1e-6", "--store", store)
    assert made["filter"]["kind"] == "auto"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("spend", "none", "--pure-dp", "eps=1"), LEDGER, "none"),
        (("spend", "web"), 2, "QUERY"),
        (("spend", "web", "--laplace", "scale=-1"), 2, "scale must be positive"),
        (("budget", "create", "web"), 2, "--filter, or --eps with or without --delta"),
        (("budget", "create", "web", "--filter", "pure"), 2, "pure needs the field 'eps'"),
        (
            ("budget", "create", "web", "--filter", "gdp_residue"),
            2,
            "gdp_residue needs the field 'mu'\n",
        ),
        (
            ("budget", "create", "web", "--filter", "basic eps=1"),
            2,
            "needs the field 'delta', got only",
        ),
        (("budget", "create", "web", "--filter", "pure eps=1 |"), 2, "on both sides of each |"),
        (
            ("budget", "create", "web", "--filter", "pure eps=1", "--window", "0"),
            2,
            "window must be at least 1 second",
        ),
        (("verify", "."), 2, "got the directory '.'"),
        (("verify", ""), 2, "LEDGER must not be empty"),
        (("budget", "create", "web", "--filter", "pure eps=1", "--eps", "1"), 2, "got both"),
        (("budget", "show", "none"), LEDGER, "none"),
        (("commit", "none"), LEDGER, "none"),
        (("spend", "web", "--pure-dp", "eps=1", "--store", "other.db"), 2, "no ledger at"),
        (("spend", "web", "--pure-dp", "eps=1", "--store", "."), 2, "is a directory"),
        (("history", "web", "--limit", "0"), 2, "--limit"),
        (("plan", "--budget", "none", "--pure-dp", "eps=1"), LEDGER, "none"),
        (("plan", "--budget", "web", "--eps", "1", "--pure-dp", "eps=1"), 2, "--budget replaces"),
        (("plan", "--pure-dp", "eps=1"), 2, "--filter, --budget, or"),
        (("token", "create", "--role", "king"), 2, "role must be one of"),
        (("token", "revoke", "none"), 2, "token must be the id"),
        (("token", "list", "--store", "http://127.0.0.1:1"), 2, "a file or a database here"),
        (("serve", "--store", "http://127.0.0.1:1"), 2, "url must begin with"),
        (
            ("serve", "--host", "0.0.0.0"),
            2,
            "create a token with: residua token create --role admin",
        ),
        (("serve", "--host", "0.0.0.0", "--dev"), 2, "dev must stay on a loopback address"),
        (("serve", "--config", "none.toml"), 2, "config must be a readable file"),
        (("serve", "--port", "99999"), 2, "port must be between"),
        (("serve", "--store", "/no/such/b.db"), LEDGER, "create it first"),
    ],
)
def test_errors_name_what_is_wrong(arguments: tuple[str, ...], code: int, said: str) -> None:
    run("init")
    text = run(*arguments, code=code)
    assert said in text and "Traceback" not in text


def test_an_unreachable_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("residua.service.client.calls.FIRST_WAIT", 0.001)
    text = run("spend", "web", "--pure-dp", "eps=1", "--store", "http://127.0.0.1:9", code=LEDGER)
    assert "nothing was spent" in text


@pytest.mark.parametrize(
    "command", [("verify",), ("budget", "list", "--store"), ("status", "--store")]
)
def test_a_reader_of_an_unreachable_service_does_not_hear_of_spending(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("residua.service.client.calls.FIRST_WAIT", 0.001)
    text = run(*command, "http://127.0.0.1:9", code=LEDGER)
    assert "cannot be reached" in text and "spent" not in text


def test_tokens(tmp_path: Path) -> None:
    at = ("--store", "sqlite:///new.db")
    made = run_json("token", "create", *at, "--role", "analyst", "--budget", "web", "--days", "9")
    assert made["token"].startswith(f"rz_{made['id']}_") and made["budgets"] == ["web"]
    assert "rz_" in run("token", "create", *at, "--role", "admin")
    secret = made["token"].split("_", 2)[2]
    listed = run("token", "list", *at)
    assert made["id"] in listed and secret not in listed
    assert run_json("token", "revoke", made["id"], *at)["state"] == "revoked"
    states = {one["id"]: one["state"] for one in run_json("token", "list", *at)["tokens"]}
    assert states[made["id"]] == "revoked" and "valid" in states.values()
    other = run_json("token", "create", *at, "--role", "engine")
    assert run_json("token", "revoke", other["token"], *at)["id"] == other["id"]


def test_a_wrong_token_is_an_error(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor") as service:
        at = ("--store", service.url)
        said = run("budget", "list", *at, code=LEDGER)
        assert "needs a token: give --token or set RESIDUA_TOKEN" in said
        altered = service.tokens["admin"][:-2] + "xx"
        for wrong in ("rz_x", "Bearer x", altered):
            text = run("budget", "list", *at, "--token", wrong, code=LEDGER)
            assert "the token (--token or RESIDUA_TOKEN)" in text
            said += text
        assert "Authorization" not in said and altered not in said
        analyst = ("--token", service.tokens["analyst"])
        text = run("spend", "web", "--pure-dp", "eps=1", *at, *analyst, code=LEDGER)
        assert "got analyst" in text


def test_the_ledger_records_who_it_was(tmp_path: Path) -> None:
    import getpass

    run("init")
    run("budget", "create", "web", "--filter", "pure eps=1")
    with rz.open_ledger(tmp_path / "budgets.db") as ledger:
        assert ledger.history("web")[0].body["by"] == getpass.getuser()


def test_init_makes_the_ledger_that_the_other_commands_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RESIDUA_STORE", f"sqlite:///{tmp_path}/other.db")
    made = run_json("init")
    assert made["created"] and made["store"].endswith("/other.db")
    run("budget", "create", "web", "--filter", "pure eps=1")
    with rz.open_ledger(tmp_path / "other.db") as ledger:
        assert [one.name for one in ledger.budgets()] == ["web"]


def test_init_twice_is_the_same_ledger() -> None:
    first = run_json("init")
    assert first["created"] and not first["budgets"]
    run("budget", "create", "web", "--filter", "pure eps=1")
    assert run_json("init") == {**first, "created": False, "budgets": 1}
    assert "the ledger already exists" in run("init") and "1 budget with 1 record" in run("init")
    assert "service" in refusal("init", "http://127.0.0.1:1")
