"""The README: its Python runs and prints what it shows, its commands exist."""

import re
import shlex
from pathlib import Path

import pytest

from snippets import ROOT, blocks, run_python

README = ROOT / "README.md"


def test_python_prints_what_is_shown() -> None:
    assert run_python(README) >= 1


def test_every_python_block_shows_its_output() -> None:
    for block in blocks(README):
        if block.language == "python":
            assert block.expected, f"README.md: no output after the block at line {block.line}"


@pytest.mark.needs("sqlalchemy", "flint", "fastapi")
def test_commands_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As shown, with the exit codes that the comments say; only the service is not begun."""
    from cli.running import run

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RESIDUA_STORE", raising=False)
    shell = [block.text for block in blocks(README) if block.language == "sh"]
    lines = [line for text in shell for line in text.splitlines() if line.startswith("residua ")]
    assert len(lines) >= 5
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        if words[0] != "serve":
            said = re.search(r"exit code (\d)", line)
            run(*words, code=int(said[1]) if said else 0)


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"make ([a-z]+)", README.read_text(encoding="utf-8")))
    assert {"run", "test"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target} does not exist"


def test_links_lead_somewhere() -> None:
    for path in [README, *sorted((ROOT / "docs").glob("*.md"))]:
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8")):
            if "://" not in link:
                assert (path.parent / link).exists(), f"{path.name} links to {link}"
