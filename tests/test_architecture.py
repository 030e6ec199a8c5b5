"""docs/architecture.md is true: its tree, its paths, and the order of calls in its two walks."""

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from snippets import FENCE, ROOT

SOURCE = ROOT / "src" / "residua"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SPEND, COMPOSITION = "From `ledger.spend` to the disk", "From a composition to an interval"
MOST_MODULES, MOST_LINES = 20, 500

LAZY = {
    ("pld.pld", "pld.constructors"): "`0 * pld` is the identity, which a constructor makes",
    ("pld.pld", "pld.curve.tradeoff"): "methods; the module also builds PLDs from points",
    ("pld.pld", "pld.discretise.finite"): "the atoms of a PLD come from its discretisation",
    ("pld.pld", "pld.lattice"): "the operators `|` and `&`",
    ("pld.pld", "pld.order.compare"): "the operators `<=` and `<`",
    ("pld.constructors", "pld.discretise.finite"): "a curve given by points is discretised",
    ("mechanisms.mechanism", "mechanisms.codec"): "`from_json`; the codec knows all kinds",
    ("filters.base", "filters.codec"): "`to_json` and `from_json`; the codec reads any filter",
    ("ledger.storage.store", "ledger.storage.postgres"): "its driver may not be installed",
    ("ledger.storage.store", "ledger.storage.sqlite"): "as for PostgreSQL",
}
"""Imports inside functions that close a cycle: (importer, imported), and why they stay."""


# -- the tree -----------------------------------------------------------------------------


def section(title: str) -> str:
    """The text under a heading of the second level."""
    _, found, rest = PAGE.partition(f"\n## {title}\n")
    assert found, f"architecture.md has no section {title!r}"
    return rest.partition("\n## ")[0]


def tree() -> list[str]:
    """The entries of the tree, in order: packages as `pld/curve/`, modules as `errors.py`."""
    (block,) = FENCE.findall(section("Packages"))
    found: list[str] = []
    parents: list[str] = []
    for line in block[1].splitlines():
        name, purpose = line.split(maxsplit=1)
        assert purpose, f"{name} has no description"
        depth = (len(line) - len(line.lstrip())) // 2
        parents[depth:] = [name]
        found.append("".join(parents))
    return found


def packages() -> dict[str, Path]:
    """The sub-packages of residua, by their path with a slash at the end."""
    folders = (file.parent for file in SOURCE.rglob("__init__.py"))
    return {f"{each.relative_to(SOURCE).as_posix()}/": each for each in folders if each != SOURCE}


def test_tree_shows_every_package() -> None:
    """And every module at the top; of others those that are a layer among packages."""
    modules = {path.name for path in SOURCE.glob("*.py")} - {"__init__.py"}
    listed = tree()
    assert len(listed) == len(set(listed))
    below = {entry for entry in listed if "/" in entry and not entry.endswith("/")}
    assert set(listed) - below == set(packages()) | modules
    assert below == {"pld/lattice.py", "pld/amplification.py", "verify/arithmetic.py"}
    assert all((SOURCE / entry).is_file() for entry in below)


def test_tree_is_in_the_order_of_the_layers() -> None:
    """Lowest first, at the top and inside each package that is the container of an order."""
    listed = [entry.removesuffix(".py").rstrip("/").replace("/", ".") for entry in tree()]
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = configuration["tool"]["importlinter"]["contracts"]
    orders = [each for each in contracts if each["type"] == "layers" and "containers" in each]
    assert len(orders) >= 2
    for contract in orders:
        (container,) = contract["containers"]
        prefix = f"{container}.".removeprefix("residua.")
        rank = {
            prefix + name.strip(" ()"): height
            for height, layer in enumerate(reversed(contract["layers"]))
            for name in layer.split("|")
        }
        ranks = [rank[entry] for entry in listed if entry in rank]
        assert ranks == sorted(ranks), contract["name"]
        assert len(ranks) == len(rank), contract["name"]


def test_no_package_has_too_many_modules() -> None:
    for name, folder in {"residua/": SOURCE, **packages()}.items():
        modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(modules) <= MOST_MODULES, f"{name} has {len(modules)} modules: split it"


def test_no_module_is_too_long() -> None:
    for path in SOURCE.rglob("*.py"):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= MOST_LINES, f"{path.relative_to(SOURCE)} has {lines} lines: split it"


def test_paths_in_the_page_exist() -> None:
    prose = FENCE.sub("", PAGE)
    paths = re.findall(r"`([\w./-]+(?:\.py|\.toml|\.md|/))`", prose)
    assert len(paths) >= 30
    for path in paths:
        assert (ROOT / path).exists() or (SOURCE / path).exists(), f"architecture.md names {path}"
    links = re.findall(r"\]\(([^)#]+)", prose)
    assert links
    for link in links:
        assert (ROOT / "docs" / link).exists(), f"architecture.md links to {link}"


# -- the walks ----------------------------------------------------------------------------


class Step(NamedTuple):
    file: str
    function: str


def walk(title: str) -> list[Step]:
    """The numbered steps of a section."""
    rows = re.findall(r"^\| (\d+) \| `([\w.]+)` \| `([\w./]+)` \| \S", section(title), re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == list(range(1, len(rows) + 1))
    assert 8 <= len(rows) <= 15
    return [Step(file, function) for _, function, file in rows]


@pytest.mark.needs("sqlalchemy")
@pytest.mark.parametrize("title", [SPEND, COMPOSITION])
def test_functions_of_a_walk_exist(title: str) -> None:
    for step in walk(title):
        name = step.file.removesuffix(".py").replace("/", ".")
        found: Any = importlib.import_module(f"residua.{name}")
        for part in step.function.split("."):
            assert hasattr(found, part), f"architecture.md names {step.function} in {step.file}"
            found = getattr(found, part)
        assert callable(found)


TRACE = """
import json, sys, threading
from pathlib import Path
import residua

root, calls = Path(residua.__file__).parent, []

def record(frame, event, _):
    if event == "call":
        code = frame.f_code
        calls.append((code.co_filename, code.co_qualname))

example, wanted = json.loads(sys.stdin.read())
wanted = {(str(root / file), function): [file, function] for file, function in wanted}
code = compile(example, "example", "exec")
threading.setprofile(record)
sys.setprofile(record)
exec(code, {"__name__": "example"})
sys.setprofile(None)
threading.setprofile(None)
print(json.dumps([wanted[call] for call in calls if call in wanted]))
"""


@pytest.mark.needs("sqlalchemy")
@pytest.mark.parametrize("title", [SPEND, COMPOSITION])
def test_example_calls_the_functions_of_its_walk_in_order(title: str) -> None:
    """In a process of its own: what other tests left in caches would shorten the way."""
    (example,) = (text for language, text in FENCE.findall(section(title)) if language == "python")
    steps = walk(title)
    done = subprocess.run(
        [sys.executable, "-c", TRACE],
        input=json.dumps([example, steps]),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    calls = iter([Step(*call) for call in json.loads(done.stdout.splitlines()[-1])])
    for number, step in enumerate(steps, 1):
        assert step in calls, f"{title}: step {number}, {step.function}, is not called in its place"


# -- import cycles ------------------------------------------------------------------------


@cache
def modules() -> dict[str, Path]:
    """Every module of the package, by its full name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(
    node: ast.AST, lazy: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """The imports below a node, each with whether it is inside a function; not those of types."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, lazy
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            for other in child.orelse:
                yield from imports(other, lazy)
        else:
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports(child, lazy or function)


def imported(statement: ast.Import | ast.ImportFrom, importer: str) -> set[str]:
    """The modules that a statement loads: those named, and the packages around them.

    A package that the importer is in as well does not count: it is being loaded already.
    """
    if isinstance(statement, ast.Import):
        named = {each.name for each in statement.names}
    else:
        assert statement.level == 0, f"{importer}: write imports with full names"
        base = statement.module or ""
        full = {f"{base}.{each.name}" for each in statement.names}
        named = {name if name in modules() else base for name in full}
    found = set()
    for name in named & modules().keys():
        found.add(name)
        while "." in name:
            name = name.rpartition(".")[0]
            if not f"{importer}.".startswith(f"{name}."):
                found.add(name)
    return found - {importer}


@cache
def import_graphs() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """What each module imports when it is loaded, and what its functions import when called."""
    eager: dict[str, set[str]] = {name: set() for name in modules()}
    lazy: dict[str, set[str]] = {name: set() for name in modules()}
    for name, path in modules().items():
        for statement, later in imports(ast.parse(path.read_text(encoding="utf-8"))):
            (lazy if later else eager)[name] |= imported(statement, name)
    return eager, lazy


def reachable(start: str) -> set[str]:
    """Every module that a module imports, directly or not, when loaded or when called."""
    eager, lazy = import_graphs()
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += eager[name] | lazy[name]
    return found


def test_imports_at_module_level_form_no_cycle() -> None:
    eager, _ = import_graphs()
    assert sum(map(len, eager.values())) > 1000
    TopologicalSorter(eager).prepare()  # Raises with the cycle if there is one.


def test_imports_inside_functions_that_close_a_cycle_are_listed() -> None:
    eager, lazy = import_graphs()
    closing = {
        (importer.removeprefix("residua."), name.removeprefix("residua."))
        for importer, names in lazy.items()
        for name in names - eager[importer]
        if importer in reachable(name)
    }
    assert closing == set(LAZY)
