"""The benchmarks run: every adapter answers, and a rehearsal becomes a report.

Real peers, those of this environment; the figures of a rehearsal are of no account.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks import claims
from benchmarks.__main__ import main
from benchmarks.harness import pages
from benchmarks.harness.parts import gaussian
from benchmarks.harness.section import Section
from benchmarks.peers.participants import (
    AUTODP_RDP,
    GOOGLE_COARSE,
    GOOGLE_RDP,
    MICROSOFT,
    OPENDP,
    PEERS,
    RISKCAL_COARSE,
    US,
    Field,
    Participant,
    open_field,
)
from benchmarks.pld import soundness
from benchmarks.utility import __main__ as utility
from benchmarks.utility.peers import plain

import residua
from snippets import ROOT

DELTA = 1e-6
PARTS = [[gaussian(20.0), 10]]


@pytest.fixture(scope="module")
def field() -> Iterator[Field]:
    with open_field(install=False) as found:
        yield found


def ask(field: Field, who: Participant, operation: str, **arguments: object) -> object:
    answer = field.ask(who, operation, 60.0, **arguments)
    assert answer.given, answer
    return answer.value


@pytest.mark.parametrize(
    "who",
    [
        pytest.param(who, marks=pytest.mark.needs(module), id=who.label)
        for who, module in (
            (US, "residua"),
            (GOOGLE_COARSE, "dp_accounting"),
            (GOOGLE_RDP, "dp_accounting"),
            (MICROSOFT, "prv_accountant"),
            (OPENDP, "opendp"),
            (AUTODP_RDP, "autodp"),
        )
    ],
)
def test_accountants_answer_above_the_truth(field: Field, who: Participant) -> None:
    ends: Any = ask(field, US, "epsilon_ends", parts=PARTS, deltas=[DELTA])
    found: Any = ask(field, who, "epsilons", parts=PARTS, deltas=[DELTA])
    ((low, high),), (eps,) = ends, found
    assert low <= eps <= 1.15 * high


@pytest.mark.needs("riskcal")
def test_riskcal_answers_near_the_truth(field: Field) -> None:
    alphas = [0.1, 0.5]
    ends = ask(field, US, "tradeoff_ends", parts=PARTS, alphas=alphas)
    betas = ask(field, RISKCAL_COARSE, "tradeoff", parts=PARTS, alphas=alphas)
    for beta, (low, high) in zip(betas, ends, strict=True):
        assert low - 1e-3 <= beta <= high + 1e-3


@pytest.mark.needs("dp_accounting")
def test_an_error_of_a_peer_is_an_answer(field: Field) -> None:
    answer = field.ask(GOOGLE_COARSE, "epsilons", parts=[[gaussian(-1.0), 1]], deltas=[DELTA])
    assert "Error" in answer.error
    assert field.ask(GOOGLE_COARSE, "decisions").cannot
    assert field.ask(GOOGLE_COARSE, "epsilons", parts=PARTS, deltas=[DELTA]).given


def test_a_missing_peer_says_so(field: Field) -> None:
    for peer in PEERS:
        if field.home(peer.package).python is None:
            answer = field.ask(Participant("", peer.package), "epsilons")
            assert answer.cannot.startswith("not installed")


def test_nobody_is_looked_for_who_is_not_asked() -> None:
    with open_field(install=True) as field:
        assert not field.homes


SECTIONS = ["build", "many_equal", "streaming", "tradeoff", "bad_inputs", "filter_history"]
SECTIONS += ["admitted"]


@pytest.mark.needs("opendp", "matplotlib")
def test_a_rehearsal_becomes_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, saved = tmp_path / "docs" / "benchmarks.md", tmp_path / "saved.json"
    only = [word for name in SECTIONS for word in ("--only", name)]
    # Who is left out says so in every table; the adapters of others are asked above.
    given = ["--quick", "--peer", "opendp", "--no-install", "--repeats", "1", "--json", *only]
    files = ["--markdown", str(page), "--html", str(tmp_path / "b.html"), "--save", str(saved)]
    main([*given, *files])
    shown = json.loads(capsys.readouterr().out)
    assert shown == json.loads(saved.read_text())
    assert [section["name"] for section in shown["sections"]] == SECTIONS
    text = page.read_text(encoding="utf-8")
    assert "## Where a peer is better" in text and "make bench" in text
    assert (page.parent / "figures" / "bench-filter-history.svg").exists()
    assert "<svg" in (tmp_path / "b.html").read_text(encoding="utf-8")
    for section in shown["sections"]:
        assert json.loads(json.dumps(Section.from_json(section).to_json())) == section
    main(["--load", str(saved)])
    assert "Filter decisions" in capsys.readouterr().out


UTILITY = ["--seed", "3", "--count", "5", "--budget", "1,1e-6", "--filter", "pure"]


def test_utility_is_the_comparison_on_a_suite(capsys: pytest.CaptureFixture[str]) -> None:
    utility.main([*UTILITY, "--no-peers", "--json"])
    (shown,) = json.loads(capsys.readouterr().out)
    found = residua.compare_filters(1.0, 1e-6, "suite", ["pure"], seed=3, count=5)
    assert shown == json.loads(json.dumps({**found.to_dict(), "notes": []}))
    with pytest.raises(SystemExit):
        utility.main(["--budget", "1;2"])
    assert "must be EPS,DELTA, got '1;2'" in capsys.readouterr().err


def test_utility_pools_the_workloads_of_several_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    utility.main([*UTILITY, "--seed", "4", "--no-peers"])
    lines = capsys.readouterr().out
    assert "10 workloads drawn with seeds 3, 4: " in lines
    utility.main([*UTILITY, "--seed", "4", "--no-peers", "--json"])
    (shown,) = json.loads(capsys.readouterr().out)
    parts = [
        residua.compare_filters(1.0, 1e-6, "suite", ["pure"], seed=seed, count=5).to_dict()
        for seed in (3, 4)
    ]
    assert shown["seeds"] == [3, 4]
    assert shown["workloads"] == [one for part in parts for one in part["workloads"]]


def test_utility_withholds_what_is_expected(capsys: pytest.CaptureFixture[str]) -> None:
    utility.main([*UTILITY, "--count", "1", "--no-peers", "--nothing-expected", "--json"])
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["filters"] == ["pure", "auto, nothing expected"]
    auto = residua.AutoFilter(1.0, 1e-6)
    found = residua.compare_filters(1.0, 1e-6, "suite", [auto], seed=3, count=1)
    assert [one["admitted"]["auto, nothing expected"] for one in shown["workloads"]] == [
        row.admitted[0] for row in found.rows
    ]


@pytest.mark.needs("opendp", "dp_accounting")
def test_utility_has_peers_in_the_same_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- suite: written by hand -->\n<!-- end of suite -->\nafter\n")
    utility.main([*UTILITY, "--filter", "approximate_zcdp", "--write", str(page)])
    lines = capsys.readouterr().out.splitlines()
    for name in ("OpenDP, zCDP filter", "OpenDP, pure filter", "dp_accounting, one Rényi order"):
        assert any(line.startswith(name) for line in lines)
    (ours,) = (line.split()[1] for line in lines if line.startswith("pure "))
    (theirs,) = (line.split()[3] for line in lines if line.startswith("OpenDP, pure filter"))
    assert ours == theirs
    text = page.read_text(encoding="utf-8")
    assert text.count("\nOpenDP, pure filter ") == 1 and text.endswith("after\n")


def test_adapters_read_what_the_suite_draws() -> None:
    from residua.planning import draw_suite

    for workload in draw_suite(1.0, 1e-6, seed=3, count=10):
        for query in workload.kinds:
            described = plain(query)
            assert described["kind"] == query.kind and len(described) > 1


def test_the_sweep_is_large_enough() -> None:
    settings = soundness.settings()
    assert len(settings) * len(soundness.DELTAS) >= 500
    assert len({json.dumps(parts) for parts in settings}) == len(settings)


def test_verdicts_of_the_sweep() -> None:
    ends, nan = [1.0, 1.0], math.nan
    for value, said in ((0.5, "clearly below"), (-1.0, "negative"), (math.inf, "infinite")):
        assert soundness.verdict(value, PARTS, DELTA, ends) == said
    for value, said in ((nan, "error"), ("ValueError", "error"), (1.5, "holds")):
        assert soundness.verdict(value, PARTS, DELTA, ends) == said
    assert soundness.verdict(1.0 - 1e-9, PARTS, DELTA, ends) == "below"


def test_readme_has_the_claims() -> None:
    words = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for claim in claims.CLAIMS:
        assert claim.words in words


def test_pages_take_what_was_measured(tmp_path: Path) -> None:
    """Between their marks, and the page of scale has those of both commands."""
    page = tmp_path / "page.md"
    scale = ROOT / "docs" / "scale.md"
    page.write_text(scale.read_text(encoding="utf-8"), encoding="utf-8")
    rows = [("work", "seconds"), ("one \\1", "2")]
    for name in ("growth", "duckdb", "spark", "constants", "simulated"):
        pages.fill(page, name, pages.markdown(rows) + f"\n\n{name} was here")
    text = page.read_text(encoding="utf-8")
    assert text.count("| one \\1 | 2 |") == text.count("was here") == 5
    assert "## A billion subjects on Spark" in text and "3,000,000" not in text
    with pytest.raises(SystemExit, match="must have the marks of 'none' once, got 0"):
        pages.fill(page, "none", "")
