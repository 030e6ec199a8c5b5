"""`residua mechanisms` and `residua describe`."""

import dataclasses
import json
from pathlib import Path

import pytest

import residua as rz
from cli.running import refusal, run, run_json
from residua import mechanisms as m
from residua.cli import descriptions


def test_every_kind_is_listed_with_its_parameters() -> None:
    listed = {entry["kind"]: entry for entry in run_json("mechanisms")["mechanisms"]}
    assert list(listed) == list(m.KINDS)
    text = run("mechanisms")
    for kind, cls in m.KINDS.items():
        entry = listed[kind]
        assert kind in text
        assert [p["name"] for p in entry["parameters"]] == [
            field.name for field in dataclasses.fields(cls)
        ]
        assert entry["pair"] == cls.pair and entry["reference"] == cls.reference
        assert entry["relations"] == list(cls.relations)


@pytest.mark.parametrize("kind", m.KINDS)
def test_one_kind_in_detail(kind: str) -> None:
    text = run("mechanisms", kind.replace("_", "-"))
    cls = m.KINDS[kind]
    assert cls.pair in text and cls.reference in text
    for parameter in descriptions.parameters(cls):
        assert parameter.name in text
    assert f'{{"kind": "{kind}"' in text
    assert f"--{kind.replace('_', '-')} " in text


def test_detail_of_laplace() -> None:
    (entry,) = run_json("mechanisms", "laplace")["mechanisms"]
    assert entry["parameters"] == [
        {"name": "scale", "type": "number", "required": True},
        {"name": "sensitivity", "type": "number", "required": False, "default": 1.0},
    ]
    assert "--laplace scale=NUMBER,[sensitivity=NUMBER]" in run("mechanisms", "laplace")


def test_unknown_kind_is_refused_by_name() -> None:
    assert "kind must be one of gaussian, laplace" in refusal("mechanisms", "laplacian")


def test_describe_laplace() -> None:
    answer = run_json("describe", "--laplace", "scale=2")
    mechanism = m.Laplace(2.0)
    assert answer["mechanism"] == mechanism.to_dict()
    assert answer["relation"] == "add-remove"
    (both,) = answer["directions"]
    assert both["names"] == ["remove", "add"]
    pld = mechanism.pld()
    for row in both["epsilon"]:
        assert row["bounds"]["hi"] == pld.epsilon(row["delta"])
        assert 0 <= row["width"] < 1e-12
    for row in both["delta"]:
        assert row["bounds"]["hi"] == pld.delta(row["eps"])
    assert [row["order"] for row in both["renyi"]] == [2, 4, 8, 32]
    assert both["renyi"][0]["bounds"]["hi"] == pld.renyi(2.0)
    assert both["zcdp"]["bounds"]["hi"] == rz.zcdp_parameter(pld)
    assert both["gdp"]["bounds"]["lo"] <= 0.5617643232110 <= both["gdp"]["bounds"]["hi"]


def test_describe_shows_each_direction_and_all_widths() -> None:
    sampled = m.PoissonSampled(m.Laplace(1.0), 0.1)
    answer = run_json("describe", sampled.to_json(), "--delta", "1e-4", "--eps", "0.05")
    remove, add = answer["directions"]
    assert (remove["names"], add["names"]) == (["remove"], ["add"])
    for name, one in (("remove", remove), ("add", add)):
        (row,) = one["epsilon"]
        assert row["bounds"]["hi"] == sampled.pld(name).epsilon(1e-4)
        low = sampled.pld(name, side="below").epsilon_bounds(1e-4).lo
        assert row["bounds"]["lo"] == low < row["bounds"]["hi"]
        assert row["width"] >= row["bounds"]["hi"] - low
        assert [row["eps"] for row in one["delta"]] == [0.05]


def test_describe_prints_what_the_json_has() -> None:
    text = run("describe", "--subsampled-gaussian", "sigma=1,sampling_rate=0.1,steps=10")
    for said in ("remove: 10 *", "add: 10 *", "eps at delta 1e-06", "Rényi, order 32", "width"):
        assert said in text


def test_describe_composes_and_takes_a_relation() -> None:
    answer = run_json(
        "describe", "--laplace", "scale=2", "--gaussian", "sigma=3", "--relation", "replace-one"
    )
    assert answer["mechanism"]["kind"] == "composed"
    assert [one["names"] for one in answer["directions"]] == [["replace"]]


def test_describe_draws(tmp_path: Path) -> None:
    answer = run_json("describe", "--pure-dp", "eps=1", "--out", str(tmp_path / "deep"))
    assert Path(answer["picture"]) == tmp_path / "deep" / "pure_dp.png"
    assert Path(answer["picture"]).read_bytes().startswith(b"\x89PNG")
    file = tmp_path / "file"
    file.touch()
    assert "out must be a writable directory" in refusal(
        "describe", "--pure-dp", "eps=1", "--out", str(file)
    )


@pytest.mark.parametrize("query", ["pure_dp eps=0", "laplace scale=1e-9", "gaussian sigma=1e-200"])
def test_describe_at_the_ends(query: str) -> None:
    """No loss at all, and practically no privacy: clear answers, and JSON that parses."""
    answer = run_json("describe", query)
    assert json.dumps(answer)
    assert run("describe", query)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "QUERY"),
        (("--laplace", "scale=0"), "scale must be positive and finite, got 0"),
        (("--laplace", "scale=nan"), "scale must be positive and finite, got nan"),
        (("--laplac", "scale=1"), "did you mean '--laplace'?"),
        (("--laplace", "scale=1", "--relation", "swap"), "relation must be one of"),
        (("--laplace", "scale=1", "--delta", "2"), "delta must be in [0, 1], got 2"),
        (("--laplace", "scale=1", "--eps", "inf"), "eps must be a finite number, got inf"),
        (("--query", "{broken"), "query must be valid JSON"),
    ],
)
def test_describe_refuses_by_name(arguments: tuple[str, ...], said: str) -> None:
    assert said in refusal("describe", *arguments)
