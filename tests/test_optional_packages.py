"""Tests are collected, and the development environment is set up, without any optional package."""

import ast
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from snippets import ROOT

OPTIONAL = {
    "autodp", "dp_accounting", "jsonschema_rs", "mkdocstrings", "opacus", "opendp", "pandas",
    "playwright", "prv_accountant", "pyspark", "riskcal", "sklearn", "torch", "zensical",
}  # fmt: skip
"""What drives another library or a browser; a test that does is skipped where there is none."""

BRIDGES = "residua.interop"
"""Importing a name from here imports the library that the name is a bridge to."""


def test_no_test_imports_an_optional_package_before_it_runs() -> None:
    """Such an import would be an error of the whole module where the package is missing."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert len(files) > 100
    for path in files:
        found = optional_imports(path.read_text(encoding="utf-8"))
        assert not found, (
            f"{path.relative_to(ROOT)} imports {', '.join(found)} when it is collected; import it"
            ' in the test and mark the test with needs("package"), or use pytest.importorskip'
        )


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import pyspark.sql", ["pyspark.sql"]),
        ("from torch import nn", ["torch"]),
        ("try:\n    import opendp.prelude as dp\nexcept ImportError:\n    dp = None", None),
        ("class Held:\n    from opacus import PrivacyEngine", ["opacus"]),
        ("import residua.interop.opendp", ["residua.interop.opendp"]),
        ("from residua.interop import from_opendp", ["residua.interop"]),
        ("from residua.interop.dp_accounting import plds", ["residua.interop.dp_accounting"]),
        ("def test_it():\n    import torch", []),
        ("if TYPE_CHECKING:\n    import torch", []),
        ("import residua.interop, numpy, torchlight", []),
        ("import pytest\ndp = pytest.importorskip('opendp')", []),
    ],
)
def test_imports_are_found(source: str, found: list[str] | None) -> None:
    assert optional_imports(source) == (["opendp.prelude"] if found is None else found)


def test_the_development_extra_repeats_no_requirement() -> None:
    """One list of requirements: what users install is what is tested."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    assert "residua[all]" in extras["dev"]
    listed = {distribution(line) for line in extras["dev"]} - {"residua"}
    others = {name: lines for name, lines in extras.items() if name != "dev"}
    for extra, lines in {**others, "dependencies": project["dependencies"]}.items():
        assert not listed & {distribution(line) for line in lines}, extra
    brought = {distribution(line) for line in extras["interop"]}
    assert "interop" in extras["all"][0] and {"dp-accounting", "opendp"} <= brought


def test_the_checks_begin_with_the_command_of_the_readme() -> None:
    """`make test` as it is, before the environment in which the rest is installed."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    lines = [line for line in script.splitlines() if not line.lstrip().startswith("#")]
    commands = "\n".join(lines)
    assert re.search(r"\bmake test( 2>&1)?( \||$)", commands, re.MULTILINE)
    for later in ("pip install", "apt-get", "-m venv"):
        assert later in commands and commands.index("make test") < commands.index(later), later


MODULES = {
    "test_some.py": """
        import pytest

        @pytest.mark.needs("no_such_package")
        @pytest.mark.parametrize("text", ["two words", "a::b[0]", "\u03b5"])
        def test_needs(text): ...

        def test_runs(): ...
        """,
    "test_whole.py": """
        import pytest

        pytest.importorskip("no_such_package")

        def test_never(): ...
        """,
}


def test_what_was_skipped_is_written_down_and_may_not_be_skipped_again(tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    for name, text in MODULES.items():
        (tmp_path / name).write_text(textwrap.dedent(text), encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = needs", encoding="utf-8")

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n", "1", *arguments],
            cwd=tmp_path,
            env={**os.environ, "RESIDUA_NO_SKIPS": "", **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    first = run(RESIDUA_TEST_SKIPPED="skipped")
    assert first.returncode == 0 and "1 passed, 4 skipped" in first.stdout, first.stdout
    skipped = (tmp_path / "skipped").read_text(encoding="utf-8").splitlines()
    assert len(skipped) == 4 and "test_whole.py" in skipped
    again = run("@skipped", RESIDUA_NO_SKIPS="1")
    assert again.returncode == 1 and "4 errors" in again.stdout, again.stdout


def optional_imports(source: str) -> list[str]:
    """The optional packages that a module imports when it is imported itself."""
    return [
        name
        for name, whole in import_time(ast.parse(source))
        if name.partition(".")[0] in OPTIONAL
        or name.startswith(f"{BRIDGES}.")
        or (name == BRIDGES and not whole)
    ]


def import_time(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Each module imported, and whether as a whole; what a function does comes later."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                continue
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Import():
                yield from ((name.name, True) for name in child.names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module, False
            case _:
                yield from import_time(child)


def distribution(requirement: str) -> str:
    """The name in a requirement, as package indexes compare it."""
    return re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower().replace("_", "-")
