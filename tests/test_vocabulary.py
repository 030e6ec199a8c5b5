"""The documentation uses the field's words: none of the old dialect, none of the old names.

`PLACES` says what is read. A Markdown file is read without its code, a Python file by its
docstrings and comments, so `src/residua/**/*.py` can be added there.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from snippets import ROOT

PLACES = (
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
    "deploy/README.md", "docs/**/*.md", "docs/*.py", "src/residua/**/*.py",
)  # fmt: skip
GENERATED = {"docs/api.md", "docs/benchmarks.md", "docs/cli.md", "docs/http.md"}
"""Pages whose words come from the code."""

WORDS = {
    r"anew": "again",
    r"whoever|whosoever": "a person, or the caller",
    r"somebody|someone's own": "someone, a person",
    r"(?:lets?|letting) go": "releases, drops",
    r"(?<!there\s)(?:is|are|was|were) no"
    r"(?! (?:longer|more|better|worse|easier|less|larger|smaller|harder))": "is not a, has no",
    r"held (?:against|to)": "verified against, checked against",
    r"stands?(?! for| in for)": "is, remains",
    r"of (?:its|their|his|her|one's|your) own": "its own, separate",
    r"books": "ledger",
    r"(?:is|are|was|were|be|been|being) told": "gets, sees",
    r"dear(?:er|est)?": "expensive",
    r"come again": "rate limit",
    r"as like as not": "probably",
    r"slips? of the pen": "typo",
    r"phantoms?": "smoothing Gaussian",
    r"loud(?:er)?": "high-loss",
    r"desks?": "session",
    r"offices?": "context",
    r"lately|foresight": "cache",
    r"gatekeepers?": "authenticator",
    r"heritage|bequest": "state",
    r"yardsticks?": "comparison",
    r"in the same breath": "at once",
    r"a hair": "slightly",
    r"a speck": "a little",
    r"worded": "written",
}
"""A word of the dialect, as a pattern, and what to write instead."""

NAMES = {
    "lately": "a cache", "_Desk": "FilterSession", "Gatekeeper": "Authenticator",
    "Standing": "BudgetSnapshot", "Ruling": "BudgetDecision", "heritage": "explicit state",
    "gatekeeper": "authenticator", "residue_at_zero": "single_contact",
    "residue_start": "initial_guess", "central_law": "symmetric_family",
    "high_residue": "large_losses", "demo_room": "demo_path", "heights": "hockey_stick",
    "naturals": "natural", "piecemeal": "per_query", "foresight": "decide off the lock",
    "neighbouring=": "relation=", "residuum": "residua",
}  # fmt: skip
"""An old name in code, and the name that replaced it."""


def prose(path: Path) -> str:
    """The text of a file that people read; code is blanked out, so line numbers stay."""
    source = path.read_text(encoding="utf-8")
    text = markdown(source) if path.suffix == ".md" else python(source)
    return re.sub(r"`[^`\n]*`|\]\([^)\n]*\)|https?://\S+", " ", text)


def markdown(source: str) -> str:
    """Without fenced and indented code and what a benchmark wrote between its marks."""

    def blank(found: re.Match[str]) -> str:
        return "\n" * found[0].count("\n")

    source = re.sub(r"<!-- ([\w ]+): .*?<!-- end of \1 -->", blank, source, flags=re.DOTALL)
    source = re.sub(r"^```.*?^```$", blank, source, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"^ {4}.*$", "", source, flags=re.MULTILINE)


def python(source: str) -> str:
    """Docstrings, also of constants, and comments; everything else is blank."""
    lines = [""] * len(source.splitlines())
    bodies = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        for child in node.body if isinstance(node, bodies) else ():
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                for number, line in enumerate(str(child.value.value).splitlines(), child.lineno):
                    lines[number - 1] += line
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0] - 1] += token.string
    return "\n".join(lines)


def code(source: str) -> Iterator[str]:
    """The code in a Markdown file."""
    yield from re.findall(r"^```\w*\n(.*?)^```", source, re.MULTILINE | re.DOTALL)
    yield from re.findall(r"`([^`\n]+)`", source)


def files() -> list[str]:
    found = {path for place in PLACES for path in ROOT.glob(place)}
    return sorted({path.relative_to(ROOT).as_posix() for path in found} - GENERATED)


def hits(path: Path) -> Iterator[str]:
    """Where a file uses a word of the dialect, and what to write instead."""
    text = prose(path)
    for pattern, instead in WORDS.items():
        spaced = pattern.replace(" ", r"\s+")
        for match in re.finditer(rf"\b(?:{spaced})\b", text, re.IGNORECASE):
            number = text.count("\n", 0, match.start()) + 1
            yield f"{path.name}:{number}: {match[0]!r}; write: {instead}"


@pytest.mark.parametrize("path", files())
def test_no_word_of_the_old_dialect(path: str) -> None:
    assert not list(hits(ROOT / path))


@pytest.mark.parametrize("path", [path for path in files() if path.endswith(".md")])
def test_no_old_name_in_code(path: str) -> None:
    for text in code((ROOT / path).read_text(encoding="utf-8")):
        for name, instead in NAMES.items():
            assert not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text), f"{name}: {instead}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It is computed anew.", 1),
        ("Whoever reads it is told.", 2),
        ("There is no grid, and it is no longer than before.", 0),
        ("This is no filter.", 1),
        ("`anew` and [link](anew.md)", 0),
        ("```\nanew\n```", 0),
        ("It stands\nfor a query, which stands.", 1),
        ("<!-- suite: by hand -->\nanew\n<!-- end of suite -->\nanew", 1),
    ],
)
def test_words_are_found(text: str, found: int, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    assert len(list(hits(tmp_path / "page.md"))) == found


def test_docstrings_and_comments_are_prose(tmp_path: Path) -> None:
    source = '''"""Anew."""\nX = "anew"  # anew\n"""Of the constant: anew, `anew`."""\n'''
    (tmp_path / "module.py").write_text(source, encoding="utf-8")
    assert len(list(hits(tmp_path / "module.py"))) == 3
