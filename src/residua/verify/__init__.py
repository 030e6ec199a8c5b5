"""The second opinion: re-checks a ledger's records and re-proves every step in ball arithmetic.

The verifier shares no numerics with the rest of the package: it reads records, derives every loss
from the recorded description with its own formulas, and proves in Arb (python-flint). It needs the
standard library and python-flint only, and reads reports and their signatures without the latter.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from residua.errors import MissingPackage
from residua.verify.report import Problem, Report, Step

__all__ = ["Problem", "Report", "Step", "verify_export", "verify_records"]


def __getattr__(name: str) -> Any:
    if name not in ("verify_export", "verify_records"):
        raise AttributeError(f"module 'residua.verify' has no attribute {name!r}")
    try:
        return getattr(import_module("residua.verify.verification"), name)
    except ModuleNotFoundError as error:
        raise MissingPackage.behind(error, f"residua.verify.{name}") from None


if TYPE_CHECKING:
    from residua.verify.verification import verify_export, verify_records
