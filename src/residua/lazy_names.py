"""Public names of a package, each loaded from its module when it is first used.

A package declares them in its `__init__.pyi`, which type checkers read too. Standard library only.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def declared_names(file: str) -> dict[str, str]:
    """The module of each name that the stub beside an `__init__.py` imports."""
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = (node for node in stub.body if isinstance(node, ast.ImportFrom))
    return {name.name: str(node.module) for node in imports for name in node.names}


def lazy_names(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, by its name and its `__file__`.

    A name whose library is missing raises `MissingPackage`, which says what to install.
    """
    homes = declared_names(file)
    names = sorted(homes)

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            if homes[name] == package:
                return import_module(f"{package}.{name}")
            value = getattr(import_module(homes[name]), name)
        except ModuleNotFoundError as error:
            from residua.errors import MissingPackage

            raise MissingPackage.behind(error, f"{package}.{name}") from None
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: names, names
