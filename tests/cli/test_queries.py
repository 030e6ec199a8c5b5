"""Queries by flag, by file and in short: all of them the mechanism that the JSON describes."""

import json
from pathlib import Path

import pytest

from cli.running import refusal, run, run_json
from residua import mechanisms as m
from residua.cli import descriptions

LAPLACE = '{"kind": "laplace", "scale": 1.0}'


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("laplace scale=2", m.Laplace(2.0)),
        ("laplace scale=.5 sensitivity=3", m.Laplace(0.5, 3.0)),
        ("discrete-gaussian sigma=2,sensitivity=3", m.DiscreteGaussian(sigma=2.0, sensitivity=3)),
        ("report_noisy_max scale=4,noise=gumbel,monotonic=true",
         m.ReportNoisyMax(4.0, "gumbel", monotonic=True)),
        ("rdp orders=2;4;8, epsilons=[0.1, 0.2, 0.4]", m.Rdp((2, 4, 8), (0.1, 0.2, 0.4))),
        ("rdp orders=2;,epsilons=0.1;,relation=zero-out",
         m.Rdp((2.0,), (0.1,), relation="zero-out")),
        (f"poisson_sampled mechanism={LAPLACE},sampling_rate=0.1",
         m.PoissonSampled(m.Laplace(1.0), 0.1)),
        (f"composed mechanisms=[{LAPLACE}, {LAPLACE}]",
         m.Composed((m.Laplace(1.0), m.Laplace(1.0)))),
        ("subsampled_gaussian sigma=1,sampling_rate=0.01,steps=100",
         m.SelfComposed(m.SubsampledGaussian(1.0, 0.01), 100)),
        ("gaussian sigma=4,steps=3", m.SelfComposed(m.Gaussian(sigma=4.0), 3)),
        (f"self_composed mechanism={LAPLACE},count=2", m.SelfComposed(m.Laplace(1.0), 2)),
        ("zcdp rho=0.1,delta=1e-6", m.Zcdp(0.1, delta=1e-6)),
        ("gdp mu=0.5", m.Gdp(0.5)),
        ('{"kind": "gdp", "mu": 0.5, "steps": 2}', m.SelfComposed(m.Gdp(0.5), 2)),
        ('{"kind": "laplace", "scale": 2, "steps": 3}', m.SelfComposed(m.Laplace(2.0), 3)),
    ],
)  # fmt: skip
def test_short_form_means_the_mechanism(text: str, meant: m.Mechanism) -> None:
    assert descriptions.parse_mechanism(text) == meant


@pytest.mark.parametrize("kind", m.KINDS)
def test_every_kind_has_a_flag(kind: str) -> None:
    """An unknown field is refused by the kind itself, so the flag has reached it."""
    text = refusal("delta", "--" + kind.replace("_", "-"), "zzz=1", "--eps", "1")
    assert f"{kind} takes" in text and "'zzz'" in text


@pytest.mark.parametrize(
    "flags",
    [
        ["--subsampled-gaussian", "sigma=1,sampling_rate=0.1,steps=2"],
        ["--subsampled-gaussian", "sigma=1", "sampling_rate=0.1", "steps=2"],
        ["--subsampled-gaussian=sigma=1", "sampling_rate=0.1", "steps=2"],
        ["subsampled_gaussian sigma=1,sampling_rate=0.1,steps=2"],
        ["--query", '{"kind":"subsampled_gaussian","sigma":1,"sampling_rate":0.1,"steps":2}'],
    ],
)
def test_ways_of_writing_one_query(flags: list[str]) -> None:
    answer = run_json("delta", "--eps", "0.3", *flags)
    pld = 2 * m.SubsampledGaussian(1.0, 0.1).pld()
    assert answer["delta"] == pld.delta(0.3)
    assert answer["direction"] == "remove"
    assert answer["relation"] == "add-remove"


def test_query_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "day.json"
    file.write_text(f" [{LAPLACE}, {LAPLACE}]\n", encoding="utf-8")
    answer = run_json("epsilon", "--query", str(file), "--delta", "1e-6")
    assert answer["mechanism"]["kind"] == "composed"
    for text in ("--eps 1", "", "{"):
        file.write_text(text, encoding="utf-8")
        expected = "valid JSON" if text == "{" else "a JSON object"
        said = refusal("epsilon", "--query", str(file), "--delta", "1")
        assert f"query must be {expected}" in said
    file.write_bytes(b"\xff{}")
    assert "query must be JSON or a readable file" in refusal("epsilon", "--query", str(file))


def test_flags_and_json_keep_their_order() -> None:
    """`compare` takes its two sides in the order given, however they are written."""
    assert run_json("order", "--pure-dp", "eps=0.1", LAPLACE)["verdict"] == "LESS"
    assert run_json("order", LAPLACE, "--pure-dp", "eps=0.1")["verdict"] == "GREATER"
    assert run_json("order", "--json", "--", "pure_dp eps=0.1", LAPLACE)["verdict"] == "LESS"


def test_the_worse_direction_is_reported() -> None:
    mechanism = m.SubsampledGaussian(1.0, 0.1)
    add = mechanism.pld("add").epsilon_bounds(1e-6)
    answer = run_json("epsilon", "subsampled_gaussian sigma=1,sampling_rate=0.1", "--delta", "1e-6")
    assert answer["direction"] == "remove"
    assert answer["epsilon"] > add.hi
    atoms = {"kind": "from_atoms", "losses": [1.0, -2.0], "masses": [0.95, 0.05]}
    assert run_json("delta", json.dumps(atoms), "--eps", "1.5")["direction"] == "add"
    assert "direction add (the worse one)" in run("delta", json.dumps(atoms), "--eps", "1.5")
    assert run_json("delta", LAPLACE, "--eps", "1")["direction"] is None


def test_discretisation_is_in_the_width() -> None:
    sampled = m.PoissonSampled(m.Laplace(1.0), 0.1)
    answer = run_json("delta", sampled.to_json(), "--eps", "0.1")["delta_bounds"]
    assert answer["hi"] == sampled.pld().delta_bounds(0.1).hi
    assert answer["lo"] == sampled.pld(side="below").delta_bounds(0.1).lo < answer["hi"]


def test_relation_is_the_first_in_common() -> None:
    answer = run_json("delta", LAPLACE, "randomized_response eps=1", "--eps", "0.5")
    assert answer["relation"] == "replace-one"
    chosen = run_json(
        "delta", "subsampled_gaussian sigma=1,sampling_rate=1", "--relation", "replace-one",
        "--eps", "1",
    )  # fmt: skip
    assert chosen["delta"] == m.Gaussian(sigma=1.0, sensitivity=2.0).pld().delta(1.0)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ("poisson_sampled mechanism=" + LAPLACE + ",sampling_rate=0.1", LAPLACE, "LESS"),
        (LAPLACE, "poisson_sampled mechanism=" + LAPLACE + ",sampling_rate=0.1", "GREATER"),
        ("poisson_sampled mechanism=" + LAPLACE + ",sampling_rate=0.1",
         "poisson_sampled mechanism=" + LAPLACE + ",sampling_rate=0.1", "EQUAL"),
        # Below, nothing is known of the second: no order with it can be proven.
        ("pure_dp eps=0.1", "report_noisy_max scale=4", "UNDECIDED"),
        ("from_tradeoff alphas=0;0.5;1,betas=1;0.3;0", "approximate_dp eps=0.4,delta=0.01",
         "INCOMPARABLE"),
    ],
)  # fmt: skip
def test_order_is_proven_of_the_mechanisms(first: str, second: str, verdict: str) -> None:
    assert run_json("order", first, second)["verdict"] == verdict
