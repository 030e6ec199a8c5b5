"""Other libraries: what they describe as our queries, and our accounting behind their interfaces.

    rz.interop.from_dp_event(event)                   dp_accounting's events
    rz.interop.from_google_pld(pld), to_google_pld    its privacy loss distributions, both ways
    rz.interop.PrivacyAccountant()                    its accountant, on our core
    rz.interop.from_opendp(measurement)               OpenDP's measurements
    rz.interop.guard_opendp(ledger, budget, …)        the same, run once a ledger was paid
    rz.interop.opacus.register()                      PrivacyEngine(accountant="residua")

Each library is imported when something for it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from residua.errors import MissingPackage

_HOME = {
    "PrivacyAccountant": "residua.interop.dp_accounting.events",
    "from_dp_event": "residua.interop.dp_accounting.events",
    "from_google_pld": "residua.interop.dp_accounting.plds",
    "to_google_pld": "residua.interop.dp_accounting.plds",
    "from_opendp": "residua.interop.opendp",
    "guard_opendp": "residua.interop.opendp",
}

_PACKAGES = ("dp_accounting", "opacus", "opendp")

__all__ = [
    "PrivacyAccountant",
    "dp_accounting",
    "from_dp_event",
    "from_google_pld",
    "from_opendp",
    "guard_opendp",
    "opacus",
    "opendp",
    "to_google_pld",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return _load(f"residua.interop.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'residua.interop' has no attribute {name!r}")
    value = getattr(_load(_HOME[name]), name)
    globals()[name] = value
    return value


def _load(module: str) -> Any:
    """Import a module of this package; says what to install where its library is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingPackage.behind(error, module) from error


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from residua.interop import dp_accounting, opacus, opendp
    from residua.interop.dp_accounting.events import PrivacyAccountant, from_dp_event
    from residua.interop.dp_accounting.plds import from_google_pld, to_google_pld
    from residua.interop.opendp import from_opendp, guard_opendp
