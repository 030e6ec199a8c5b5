"""A privacy budget that survives an adaptive analyst.

    import residua as rz

    spent = rz.gaussian(sigma=4.0) + 3 * rz.laplace(scale=10.0)
    spent.delta(1.0), spent.delta_bounds(1.0)

Plain calls return the safe side; `*_bounds` return a proven interval.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

from residua.version import __version__ as __version__


def _read_stub() -> dict[str, str]:
    """The module of each public name, as `__init__.pyi` declares it for type checkers too."""
    stub = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    return {
        name.name: str(node.module)
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }


_DECLARED = _read_stub()
_PACKAGES = {name for name, module in _DECLARED.items() if module == "residua"}
_HOME = {name: _DECLARED[name] for name in _DECLARED if name not in {*_PACKAGES, "__version__"}}

__all__ = sorted(_DECLARED)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"residua.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'residua' has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOME[name]), name)
    except ModuleNotFoundError as error:
        from residua.errors import MissingPackage

        raise MissingPackage.behind(error, f"residua.{name}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
