"""The documentation builds as a site: every page in the contents, every link whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from snippets import ROOT


@pytest.mark.needs("mkdocs", "material", "mkdocstrings")
def test_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Strict: a broken link, a missing anchor or a page outside the contents is an error."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "api.html").read_text(encoding="utf-8")
    assert "gdp_residue" in page and "The largest" in page


@pytest.mark.needs("mkdocs", "material", "mkdocstrings")
def test_every_page_is_in_the_contents() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert {page for page in pages if f": {page}" not in text} == set()
