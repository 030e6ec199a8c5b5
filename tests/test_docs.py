"""The documentation is true: snippets run, the CLI reference is current, versions agree."""

import ast
import importlib.util
import re
import tomllib
from importlib.metadata import version
from types import ModuleType

import pytest

import residua
from residua.mechanisms import KINDS
from snippets import ROOT, run_console, run_python

DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
NEEDS = {
    "answers.md": ("duckdb", "sqlglot", "opendp", "pyarrow", "sqlalchemy", "flint"),
    "architecture.md": ("sqlalchemy",),
    "start.md": ("sqlalchemy", "flint"),
    "howto-audit.md": ("sqlalchemy", "flint", "cryptography"),
    "howto-database.md": ("fastapi", "uvicorn", "sqlalchemy", "opendp"),
    "howto-dp-sgd.md": ("opacus",),
    "howto-individual.md": ("duckdb", "pyarrow", "opendp"),
    "interop.md": ("dp_accounting", "opendp"),
    "migration.md": ("dp_accounting",),
}
"""Pages whose snippets drive other libraries."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.needs(*NEEDS[p]) if p in NEEDS else ()) for p in PAGES],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_python_prints_what_is_shown(page: str) -> None:
    run_python(DOCS / page)


@pytest.mark.parametrize("page", PAGES)
def test_commands_print_what_is_shown(page: str) -> None:
    run_console(DOCS / page)


NOISE = {"laplace", "total", "mean"}
"""What guarded functions in the documentation draw noise with: numpy, OpenDP, diffprivlib."""


def test_guarded_functions_add_noise() -> None:
    """What a reader copies is paid for, and must not release what it was computed from."""
    guarded = []
    for path in (ROOT / "README.md", ROOT / "deploy" / "README.md", *sorted(DOCS.rglob("*.md"))):
        for code in re.findall(r"```py(?:thon)?\n(.*?)```", path.read_text(encoding="utf-8"), re.S):
            for node in ast.walk(ast.parse(code)):
                if not isinstance(node, ast.FunctionDef):
                    continue
                if any(".guard(" in ast.unparse(each) for each in node.decorator_list):
                    guarded.append((path.name, node))
    assert len(guarded) >= 4
    for page, node in guarded:
        (returned,) = (each for each in ast.walk(node) if isinstance(each, ast.Return))
        calls = [each.func for each in ast.walk(returned) if isinstance(each, ast.Call)]
        names = {ast.unparse(call).rpartition(".")[2] for call in calls}
        assert names & NOISE, f"{page}: {node.name} releases its result without noise"


def test_tutorial_runs_code() -> None:
    assert run_python(DOCS / "tutorial.md") >= 5
    assert run_console(DOCS / "tutorial.md") >= 1


def test_filters_have_sessions_and_spend() -> None:
    base = ROOT / "src" / "residua" / "filters" / "base.py"
    texts = {page: (DOCS / page).read_text(encoding="utf-8") for page in PAGES}
    tree = ast.parse(base.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, documented)]
    texts[base.name] = "\n".join(ast.get_docstring(node) or "" for node in nodes)
    for name, text in texts.items():
        assert not re.search(r"\bdesks?\b", text), name
    for name in ("architecture.md", "filters.md"):
        assert "filter.request" not in texts[name]


@pytest.mark.parametrize("page", ["service.md", "ledger.md", "filters.md"])
def test_pages_say_whose_costs_add_up(page: str) -> None:
    text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
    assert re.search(r"automatic, menu and plan filters", text)


def test_cli_reference_is_current() -> None:
    generated = _script("cli_reference").reference()
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == generated, "run: make docs"


@pytest.mark.needs("fastapi", "sqlalchemy", "prometheus_client")
def test_http_reference_is_current() -> None:
    generated = _script("http_reference").reference()
    assert (DOCS / "http.md").read_text(encoding="utf-8") == generated, "run: make docs"


def test_every_setting_of_the_service_is_documented() -> None:
    from residua.service.settings import FIELDS, Settings

    page = (DOCS / "service.md").read_text(encoding="utf-8").partition("## Settings")[2]
    rows = re.findall(r"^\| (`.+?) \| (.+?) \|", page, re.MULTILINE)
    said = {}
    for names, defaults in rows:
        listed = re.findall(r"`(\w+)`", names)
        values = [value.strip(" `") for value in defaults.split(",")]
        said.update(zip(listed, values if len(values) == len(listed) else values * 2, strict=False))
    assert set(said) == set(FIELDS)
    for name, value in said.items():
        default = getattr(Settings(), name)
        if default is not None:
            shown = str(default).lower() if isinstance(default, bool) else f"{default}"
            assert value in (shown, shown.removesuffix(".0")), name


def test_api_reference_is_current() -> None:
    generated = _script("api_reference").reference()
    assert (DOCS / "api.md").read_text(encoding="utf-8") == generated, "run: make docs"


def test_mechanisms_are_all_listed_as_they_are() -> None:
    page = (DOCS / "mechanisms.md").read_text(encoding="utf-8")
    assert _script("mechanism_table").updated(page) == page, "run: make docs"
    headings = re.findall(r"^### `(\w+)`$", page, re.MULTILINE)
    assert sorted(headings) == sorted(KINDS), "docs/mechanisms.md has a section for each kind"


TITLE = "admitted / non-adaptive optimum within "


def test_filter_tables_come_from_the_report_seed() -> None:
    """A run takes minutes; what is checked here is that every table is one of its tables."""
    from residua.planning.candidates import kinds
    from residua.planning.suite import DEVELOPMENT_SEED, FAMILIES, REPORT_SEED, SHAPES

    page = (DOCS / "choosing-a-filter.md").read_text(encoding="utf-8")
    text = " ".join(page.split())
    assert f"the development seed, {DEVELOPMENT_SEED}." in text
    assert f"the report seed, {REPORT_SEED}," in text
    for name in (*FAMILIES, *SHAPES):
        assert f"`{name}`" in page
    command, tables = re.findall(
        r"<!-- suite: ([^\n]*) -->\n(.*?)<!-- end of suite -->", page, re.S
    )[0]
    assert f"--seed {REPORT_SEED} " in command
    shown = re.findall(r"```text\n(.*?)```", tables, re.S)
    titles = [table.splitlines()[0].removeprefix(TITLE) for table in shown]
    assert titles == ["(1, 1e-06)", "(3, 1e-06)", "(8, 1e-05)"]
    for table in shown:
        rule = next(line for line in table.splitlines() if line.startswith("---"))
        body = table.partition(rule)[2].split("\n\n")[0].strip()
        rows = [re.split(r" {2,}", line) for line in body.splitlines()]
        names = [row[0] for row in rows]
        assert names[: len(kinds())] == list(kinds()) if table is shown[0] else "auto" in names
        for row in rows:
            mean, interval, tenth, least = row[1:5]
            low, high = map(float, interval.split("-"))
            assert 0.0 <= float(least) <= float(tenth) <= 1.0
            assert max(low, float(least)) <= float(mean) <= high


def test_changelog_names_the_version_of_the_code() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", changelog, re.MULTILINE)
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert released[0] == pyproject["project"]["version"] == version("residua")
    assert residua.__version__ == released[0]


def test_citation_names_the_version_of_the_code() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (\S+)$", citation, re.MULTILINE) == [residua.__version__]


def test_changelog_of_the_first_release_is_one_readable_section() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", changelog, re.MULTILINE) == ["[0.1.0] - unreleased"]
    assert len(changelog.splitlines()) <= 150


def test_public_names_in_the_documentation_exist() -> None:
    pages = [ROOT / "README.md", *(DOCS / page for page in PAGES)]
    used = {name for page in pages for name in re.findall(r"\brz\.(\w+)", page.read_text("utf-8"))}
    assert used
    for name in sorted(used):
        assert hasattr(residua, name), f"the documentation uses rz.{name}"


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
