"""The pages of promises and of holds name tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_every_promise_names_a_test_that_exists() -> None:
    pages = (ROOT / "docs" / "guarantee.md", ROOT / "docs" / "proofs" / "holds.md")
    work = "".join(each.read_text(encoding="utf-8") for each in pages)
    named = set(re.findall(r"`(test_\w+)`", work))
    files = set(re.findall(r"`(tests/[\w/]+\.py)`", work))
    assert len(named) > 20 and files
    source = "".join(
        p.read_text(encoding="utf-8")
        for folder in ("ledger", "faults", "filters", "simulation")
        for p in (ROOT / "tests" / folder).rglob("*.py")
    )
    for name in sorted(named):
        assert f"def {name}(" in source, f"the documentation names {name}"
    for path in sorted(files):
        assert (ROOT / path).exists(), f"the documentation names {path}"
