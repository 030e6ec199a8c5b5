"""No package uses a private name of another one.

A private name starts with one underscore. A use is an attribute `value._name`, an import of
`_name`, or an argument `f(_name=...)`. The names of a package are those that its modules define:
class members, attributes set on `self`, and functions and classes of modules. The sub-packages of
`ledger` count as packages; those of the others do not.

The source says nothing about types, so a name that two packages define is not caught, with one
exception: a method that implements one of a base class in another package (`Filter._decide`) does
not make its name one of the package, except on `self`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import pytest

import residua

ROOT = Path(residua.__file__).parent
DIVIDED = ("ledger",)
"""Packages whose sub-packages are checked against each other as well."""

NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}
"""Public by the documentation of `collections.namedtuple`."""

EXCEPTIONS = {
    # dp_accounting has no public access to the masses of a PLD.
    "residua.interop.dp_accounting.plds": {
        "_discretization",
        "_infinity_mass",
        "_loss_probs",
        "_lower_loss",
        "_pessimistic_estimate",
        "_pmf_add",
        "_pmf_remove",
        "_probs",
    },
    # The documented name for leaving a process at once.
    "residua.worker_process": {"_exit"},
    # PySpark has no public access to the Hadoop configuration of its session.
    "residua.individual.engines.spark": {"_jsc"},
}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_self(value: ast.expr) -> bool:
    """Whether an expression is `self`, `cls` or `super()`."""
    if isinstance(value, ast.Call) and not value.args:
        return isinstance(value.func, ast.Name) and value.func.id == "super"
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


@dataclass(frozen=True)
class Class:
    """A class with its bases, each a module and a name, and its private members."""

    bases: tuple[tuple[str, str], ...]
    members: frozenset[str]


@dataclass
class Module:
    """What one file defines and uses."""

    name: str
    tree: ast.Module
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for each in node.names:
                    self.imports[each.asname or each.name] = node.module, each.name

    @property
    def package(self) -> str:
        """The package whose private names the module may use."""
        parts = self.name.split(".")[1:]
        return ".".join(parts[:2] if parts[:1] and parts[0] in DIVIDED else parts[:1])

    @cached_property
    def classes(self) -> dict[str, Class]:
        return {
            node.name: Class(
                tuple(
                    self.imports.get(base.id, (self.name, base.id))
                    for base in node.bases
                    if isinstance(base, ast.Name)
                ),
                frozenset(filter(is_private, members(node))),
            )
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ClassDef)
        }

    @property
    def functions(self) -> set[str]:
        """Private functions and classes of the module."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return {n.name for n in self.tree.body if isinstance(n, kinds) and is_private(n.name)}

    def uses(self) -> Iterator[tuple[int, str, bool]]:
        """Lines and private names, and whether the name is one of `self`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr):
                yield node.lineno, node.attr, is_self(node.value)
            elif isinstance(node, ast.keyword) and node.arg and is_private(node.arg):
                yield node.value.lineno, node.arg, False
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("residua"):
                for each in node.names:
                    if is_private(each.name):
                        yield node.lineno, each.name, False


def members(node: ast.ClassDef) -> Iterator[str]:
    """The names that a class defines: in its body, in its slots, and on `self`."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield each.name
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id
        elif isinstance(each, ast.Assign):
            targets = [target.id for target in each.targets if isinstance(target, ast.Name)]
            yield from targets
            if "__slots__" in targets:
                yield from ast.literal_eval(each.value)
    for inner in ast.walk(node):
        is_stored = isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store)
        if is_stored and is_self(inner.value):  # type: ignore[attr-defined]
            yield inner.attr  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Program:
    """Modules by name."""

    modules: dict[str, Module]

    def inherited(self, bases: tuple[tuple[str, str], ...], package: str) -> set[str]:
        """The private members that bases in other packages have."""
        found: set[str] = set()
        for home, name in bases:
            module = self.modules.get(home)
            base = module.classes.get(name) if module else None
            if module is None or base is None:
                continue
            if module.package != package:
                found |= base.members
            found |= self.inherited(base.bases, package)
        return found

    def violations(self) -> Iterator[str]:
        own: dict[str, set[str]] = {}
        on_self: dict[str, set[str]] = {}
        for module in self.modules.values():
            names = own.setdefault(module.package, set())
            names |= module.functions
            for each in module.classes.values():
                names |= each.members - self.inherited(each.bases, module.package)
                on_self.setdefault(module.package, set()).update(each.members)
        for module in self.modules.values():
            allowed = NAMED_TUPLES | EXCEPTIONS.get(module.name, set()) | own[module.package]
            for line, name, on_itself in module.uses():
                if name in allowed or (on_itself and name in on_self.get(module.package, ())):
                    continue
                yield f"{module.name}, line {line}: {name}"


def program(sources: dict[str, str]) -> Program:
    return Program({name: Module(name, ast.parse(text)) for name, text in sources.items()})


@lru_cache(maxsize=1)
def whole_package() -> Program:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(("residua", *parts)).removesuffix(".__init__")] = path.read_text("utf-8")
    return program(found)


def test_no_package_uses_a_private_name_of_another() -> None:
    assert list(whole_package().violations()) == []


def test_every_exception_is_used() -> None:
    modules = whole_package().modules
    for name, excepted in EXCEPTIONS.items():
        assert excepted <= {used for _, used, _ in modules[name].uses()}, name


BASE = """
class Base:
    _kept: int
    def _decide(self): return self._kept
def _helper(): pass
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(base): return base._kept", ["_kept"]),
        ("from residua.filters.base import _helper", ["_helper"]),
        ("def f(make): return make(_kept=1)", ["_kept"]),
        # A subclass may implement a private method, and call it on itself alone.
        (
            "from residua.filters.base import Base\n"
            "class Other(Base):\n"
            "    def _decide(self): return self._decide()",
            [],
        ),
        (
            "from residua.filters.base import Base\n"
            "class Other(Base):\n"
            "    def _decide(self, base): return base._decide()",
            ["_decide"],
        ),
        (
            "from residua.filters.base import Base\n"
            "class Other(Base):\n"
            "    def f(self): return self._kept",
            ["_kept"],
        ),
        ("class Own:\n    __slots__ = ('_own',)\ndef f(own): return own._own", []),
        ("def f(row): return row._replace(a=1)", []),
    ],
)
def test_what_counts_as_a_use(text: str, expected: list[str]) -> None:
    found = program({"residua.filters.base": BASE, "residua.adversary.other": text}).violations()
    assert [each.rsplit(" ", 1)[1] for each in found] == expected
