"""The map from the paper to the code: every statement, public names, tests that exist."""

import math
import re
from collections import defaultdict
from fractions import Fraction
from types import ModuleType
from typing import Any

import pytest

import residua
from snippets import ROOT

COUNTS = {
    "Definition": 16,
    "Proposition": 17,
    "Lemma": 16,
    "Theorem": 18,
    "Corollary": 6,
    "Algorithm": 4,
    "Figure": 3,
}
"""How many of each the paper has; remarks and observations are counted as theorems."""
WITH_THEOREMS = {"Remark": {2, 3, 4, 10}, "Observation": {13, 17}}


def rows() -> list[tuple[str, str, str]]:
    text = (ROOT / "docs" / "theory-to-code.md").read_text(encoding="utf-8")
    table = text.partition("## Statement by statement")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    assert all(len(row) == 4 and row[1] for row in cells)
    return [(statement, code, tests) for statement, _, code, tests in cells]


ROWS = rows()
PAGE = (ROOT / "docs" / "theory-to-code.md").read_text(encoding="utf-8")
API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
NAMES = set(re.findall(r"`((?:rz|residua)\.[\w.]+)(?:\(.*?\))?`", PAGE))
"""Every dotted name on the page."""


def test_every_statement_of_the_paper_is_there_once() -> None:
    numbers = defaultdict(list)
    for statement, _, _ in ROWS:
        kind, number = statement.split()
        if kind in WITH_THEOREMS:
            assert int(number) in WITH_THEOREMS[kind]
        numbers["Theorem" if kind in WITH_THEOREMS else kind].append(int(number))
    assert {kind: sorted(found) for kind, found in numbers.items()} == {
        kind: list(range(1, count + 1)) for kind, count in COUNTS.items()
    }


@pytest.mark.parametrize(("statement", "code"), [row[:2] for row in ROWS])
def test_every_statement_names_code(statement: str, code: str) -> None:
    assert re.findall(r"`(rz\.[\w.]+)`", code) or code.startswith("(for "), statement


@pytest.mark.parametrize("name", sorted(NAMES))
def test_what_it_names_is_public_and_on_the_api_page(name: str) -> None:
    """Each step is in the `__all__` of the module before it; the page has the class or function."""
    assert name.startswith("rz."), "a path of modules is not a public name"
    value: Any = residua
    documented = ""
    for part in name.split(".")[1:]:
        if isinstance(value, ModuleType):
            assert part in value.__all__, f"{part} of {value.__name__}"
        value = getattr(value, part)
        if not documented and not isinstance(value, ModuleType):
            documented = f"{value.__module__}.{value.__qualname__}"
    listed = re.findall(r"^::: ([\w.]+)$", API, re.MULTILINE)
    assert not documented or documented in listed, "run: make docs"


@pytest.mark.parametrize(("statement", "tests"), [(row[0], row[2]) for row in ROWS])
def test_the_tests_it_names_exist(statement: str, tests: str) -> None:
    named = re.findall(r"`([\w/.]+)::(\w+)`", tests)
    assert named, statement
    for path, name in named:
        source = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"^def {name}\(", source, re.MULTILINE), f"{path}::{name}"


SLIPS = (
    "`(-eps_i, -eps_{i-1}]`",
    "`i = n`",
    "`3 - i`; the text prints `2 - i`",
    "`x - x_2` should\n  be `x_2 - x`",
    "third panel of Figure 1 are not printed",
)


@pytest.mark.parametrize("slip", SLIPS)
def test_slips_of_the_paper_are_listed(slip: str) -> None:
    assert slip in PAGE.partition("## Where a careful reader may stumble")[2]


def test_the_slips_are_slips() -> None:
    """What is printed is wrong, and what is said to be meant is right."""
    # The lemma on a concave curve: weights of a point between two others.
    x, x_1, x_2 = Fraction(1), Fraction(2), Fraction(5)
    printed = (x_2 - x_1) / (x - x_2), (x_1 - x) / (x - x_2)
    meant = (x_2 - x_1) / (x_2 - x), (x_1 - x) / (x_2 - x)
    assert sum(printed) == -1
    assert sum(meant) == 1 and meant[0] * x + meant[1] * x_2 == x_1
    # Gap amplification: a loss near eps_j moves the threshold eps_1 + eps_2 + u to eps_i + u.
    eps, u = {1: 0.3, 2: 0.7}, 0.25
    for i in (1, 2):
        assert eps[1] + eps[2] + u - eps[3 - i] == pytest.approx(eps[i] + u)
    assert 2 - 2 not in eps, "the printed index is not there for i = 2"
    assert eps[1] + eps[2] + u - eps[2 - 1] != pytest.approx(eps[1] + u), "nor right for i = 1"
    # The last size of the pessimistic estimate: the curve of RR_infinity is 1 everywhere.
    told = residua.adversary.generalised_response([Fraction(1)], [math.inf], "above")
    assert all(told.hockey_stick(x) == 1.0 for x in (1.0, 5.0, 1e6))
    # The profile: a loss of -0.2 is not of the size [1, 2), though it lies in (-2, 2].
    loss = residua.from_pair([0.45, 0.55], [0.55, 0.45])
    assert max(abs(math.log(0.55 / 0.45)), 0.0) < 1.0
    assert residua.adversary.tail_mass(loss, 1.0).hi == 0.0
