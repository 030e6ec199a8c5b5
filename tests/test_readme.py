"""The README: its Python runs and prints what it shows, its commands exist."""

import re
from pathlib import Path

import pytest

from snippets import ROOT, blocks, run_console, run_python

README = ROOT / "README.md"


def test_python_prints_what_is_shown() -> None:
    assert run_python(README) >= 1


def test_every_python_block_shows_its_output() -> None:
    for block in blocks(README):
        if block.language == "python":
            assert block.expected, f"README.md: no output after the block at line {block.line}"


@pytest.mark.needs("sqlalchemy", "flint", "fastapi")
def test_commands_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the output that is shown, and the exit codes that the comments name."""
    monkeypatch.delenv("RESIDUA_STORE", raising=False)
    assert run_console(README, tmp_path) >= 5


def test_the_first_screen_has_the_two_commands_of_make() -> None:
    screen = README.read_text(encoding="utf-8").splitlines()[:16]
    for target in ("run", "test"):
        assert any(line.startswith(f"make {target} ") for line in screen)


def test_the_paper_is_cited() -> None:
    authors = ("Regehr", "Hu", "Leeman", "Manurangsi", "Tholoniat", "Lécuyer")
    for path in (README, ROOT / "CITATION.cff", ROOT / "docs" / "theory-to-code.md"):
        text = path.read_text(encoding="utf-8")
        assert "Privacy Filters are Captured by Residues" in text, path.name
        for author in authors:
            assert author in text, f"{path.name} does not name {author}"


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"make ([a-z]+)", README.read_text(encoding="utf-8")))
    assert {"run", "test"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target} does not exist"


def test_links_lead_somewhere() -> None:
    for path in [README, *sorted((ROOT / "docs").rglob("*.md"))]:
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8")):
            if "://" not in link:
                assert (path.parent / link).exists(), f"{path.name} links to {link}"
