"""What the research page and the proofs show is what their commands print."""

import re
from itertools import islice

import pytest
from benchmarks.research import SECTIONS

from snippets import ROOT

SHOWN = re.compile(
    r"^```sh\npython -m benchmarks\.research ([\w-]+)[^\n]*\n```\n\n```text\n(.*?)^```",
    re.MULTILINE | re.DOTALL,
)
PROOFS = (
    "additive-profile", "contour", "natural-guarantee", "renyi-commit", "residues", "unsound",
)  # fmt: skip
PAGES = ("research.md", *(f"proofs/{name}.md" for name in PROOFS))
BLOCKS = [
    (page, *found.groups())
    for page in PAGES
    for found in SHOWN.finditer((ROOT / "docs" / page).read_text(encoding="utf-8"))
]
LINES = {
    "additive-profile": 3,
    "ceilings": 3,
    "menus": 0,
    "natural-guarantee": 16,
    "plans": 3,
    "reachable-points": 3,
}
"""How much of what takes long is run here."""


def test_every_section_is_shown() -> None:
    assert {name for _, name, _ in BLOCKS} == set(SECTIONS)


@pytest.mark.parametrize("name", [name for name in SECTIONS if LINES.get(name) != 0])
def test_numbers_are_those_of_the_command(name: str) -> None:
    printed = list(islice(SECTIONS[name](), LINES.get(name)))
    for page, shown, text in BLOCKS:
        if shown == name:
            assert text.splitlines()[: len(printed)] == printed, page
            assert name in LINES or len(text.splitlines()) == len(printed)
