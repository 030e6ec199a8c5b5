"""The documentation builds as a site: every page in the contents, every link whole."""

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from snippets import ROOT

CONFIGURATION = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.needs("zensical", "mkdocstrings")
def test_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Strict: a broken link, a missing anchor or an unknown Python name is an error."""
    done = build(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "out" / "site" / "api.html").read_text(encoding="utf-8")
    assert "gdp_residue" in page and "The largest" in page


@pytest.mark.needs("zensical", "mkdocstrings")
@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (
            "[one](nowhere.md) [two](start.md#nowhere)",
            ("page does not exist", "anchor does not exist"),
        ),
        ("::: residua.nowhere", ("Could not collect 'residua.nowhere'",)),
    ],
    ids=["links", "name"],
)
def test_site_with_something_broken_is_not_built(
    tmp_path: Path, text: str, messages: tuple[str, ...]
) -> None:
    done = build(tmp_path, text)
    assert done.returncode != 0
    for message in messages:
        assert message in done.stdout + done.stderr


def test_every_page_is_in_the_contents_once() -> None:
    docs = ROOT / "docs"
    pages = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md")]
    assert sorted(contents(CONFIGURATION["nav"])) == sorted(pages)


def build(place: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    """Build a copy of the site, with text added to its first page."""
    shutil.copytree(ROOT / "docs", place / "docs")
    shutil.copy(ROOT / "zensical.toml", place)
    (place / "src").symlink_to(ROOT / "src")
    with (place / "docs" / "index.md").open("a", encoding="utf-8") as page:
        page.write(f"\n{text}\n")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    return subprocess.run(command, cwd=place, capture_output=True, text=True)


def contents(entries: Any) -> Iterator[str]:
    """The pages of the navigation."""
    if isinstance(entries, str):
        yield entries
        return
    for entry in entries.values() if isinstance(entries, dict) else entries:
        yield from contents(entry)
