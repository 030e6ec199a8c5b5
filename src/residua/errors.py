"""Every exception of residua, all below `ResiduaError`; what a ledger raises is a `LedgerError`.

A refusal is a value, never an exception; an exception is a malfunction or a
wrong call. Messages say what was expected, the argument's name and its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar


class ResiduaError(Exception):
    """The root of every error raised by this package."""


class ArgumentError(ResiduaError, ValueError):
    """An argument's value is not allowed; the message names it and shows it."""


class UnsupportedError(ArgumentError):
    """Something of another library has no proven loss here; `culprit` is that thing."""

    def __init__(self, message: str, culprit: object = None):
        super().__init__(message)
        self.culprit = culprit


class ArgumentTypeError(ResiduaError, TypeError):
    """An argument has the wrong type; the message names it and shows it."""


class MissingPackage(ResiduaError, ModuleNotFoundError):
    """Something needs a package that an extra brings; the message says which to install."""

    EXTRAS: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "cryptography": "sign",
            "dp_accounting": "interop",
            "duckdb": "individual",
            "fastapi": "service",
            "flint": "verify",
            "httpx": "client",
            "jinja2": "service",
            "matplotlib": "figures",
            "opacus": "opacus",
            "opendp": "interop",
            "pandas": "spark",
            "prometheus_client": "service",
            "psycopg": "postgres",
            "pyarrow": "individual",
            "pydantic": "service",
            "pyspark": "spark",
            "sqlalchemy": "service",
            "sqlglot": "data",
            "torch": "opacus",
            "uvicorn": "service",
        }
    )

    def __init__(self, what: str, package: str):
        extra = self.EXTRAS[package]
        super().__init__(
            f"{what} needs {package} (not installed); install with: pip install 'residua[{extra}]'"
        )
        self.name = package

    @classmethod
    def behind(cls, error: ModuleNotFoundError, what: str) -> ModuleNotFoundError:
        """What to raise in place of a failed import: the error itself if no extra explains it."""
        package = (error.name or "").partition(".")[0]
        if isinstance(error, cls) or package not in cls.EXTRAS:
            return error
        return cls(what, package)


class BudgetError(ResiduaError):
    """A step would run that no filter admitted; it was stopped."""


class TooLargeError(ResiduaError):
    """An exact computation would take too many states or atoms; the message says how many."""


class TooExpensive(ResiduaError):
    """What was asked takes more than the limit on work or memory; the message says which.

    A filter that decides refuses instead.
    """

    def __init__(self, message: str, budget: object = None):
        super().__init__(message)
        self.budget = budget
        """Whose limit was reached; for the code that set it."""

    def __reduce__(self) -> tuple[type[TooExpensive], tuple[str]]:
        return TooExpensive, (str(self),)


class AccessDenied(ResiduaError):
    """The service asks for a token, or the token does not permit what was asked."""


class ServiceError(ResiduaError):
    """The service failed, or something that is not the service answered."""


class StateUnavailable(ResiduaError):
    """Budgets of subjects cannot be reached now; nothing was spent."""


class LedgerError(ResiduaError):
    """The ledger cannot do what was requested."""


class UnknownBudget(LedgerError, LookupError):
    """No budget has that name."""


class UnknownTable(LedgerError, LookupError):
    """No table has that name, or it was removed."""


class BudgetExists(LedgerError):
    """A budget of that name, or another root budget on the same data, exists already."""


class RetiredBudget(LedgerError):
    """The budget is closed: nothing can be spent from it any more."""


class UnknownHold(LedgerError, LookupError):
    """No open reservation has that id: it was committed, cancelled, expired, or never made."""


class KeyReused(LedgerError):
    """The same key came with another request; nothing was decided."""


class AlreadySpent(LedgerError):
    """The receipt is a replay: the one run that it permits has been permitted before."""


class Refused(LedgerError):
    """A guard's budget refused, so nothing ran. `answer` is the ledger's answer."""

    def __init__(self, message: str, answer: object = None):
        super().__init__(message)
        self.answer = answer


class MechanismFailed(LedgerError):
    """A guarded mechanism failed after it was paid for. What happened may depend on the data."""


class Contended(LedgerError):
    """The budgets changed each time a slow query was decided; nothing was spent. Ask again."""


class OutcomeUnknown(LedgerError):
    """The commit's outcome is unknown. Repeat with the same key; until then it counts as spent."""


class StoreUnavailable(LedgerError):
    """The database cannot be reached, is read-only or is full; nothing was spent."""


class UnsafeStore(LedgerError):
    """The database is set up so that it may lose what it acknowledged."""


class ReadOnlyLedger(LedgerError):
    """The store is behind its anchor, or has lost it: spends may be missing."""


class NotALedger(LedgerError):
    """The file or database is something else."""


class NewerLedger(LedgerError):
    """A newer version of residua wrote the ledger."""


class BrokenRecord(LedgerError):
    """A record is not one, or was tampered with."""
