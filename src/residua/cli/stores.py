"""Where the budgets are: a file, a database or a service, all with the same commands.

`--store` takes the path of a file, `sqlite:///…`, `postgresql://…`, or the address of a service
(`http://…`), which asks for `--token`. Without them, `RESIDUA_STORE` and `RESIDUA_TOKEN` in the
environment are used, then the file `budgets.db` in this directory. `RESIDUA_ANCHOR` and
`RESIDUA_ACCEPT_ASYNC_STANDBY` mean what they mean to a service, so that both use the same anchor.
"""

import ast
import getpass
import os
import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from residua.errors import (
    AccessDenied,
    ArgumentError,
    MissingPackage,
    ResiduaError,
    UnknownBudget,
)

if TYPE_CHECKING:
    from residua.ledger.api.ledger import Ledger


DEFAULT = "sqlite:///budgets.db"
_SETTINGS = ("RESIDUA_ANCHOR", "RESIDUA_ACCEPT_ASYNC_STANDBY")
_UNKNOWN = re.compile(r"budget ('.*'|\".*\")$")
"""The name at the end of an error about an unknown or hidden budget."""
_HASH = re.compile("[0-9a-f]{64}")
_MARK = re.compile(rf"(.*)=(?:([0-9]+):)?({_HASH.pattern})", re.DOTALL)


def is_service(store: str) -> bool:
    """Whether a store is behind a service."""
    return store.startswith(("http://", "https://"))


def is_local(ledger: Any) -> bool:
    """Whether a store that was opened is a ledger, rather than a client with the same methods."""
    return hasattr(ledger, "store")


def open_store(store: str = DEFAULT, token: str | None = None) -> AbstractContextManager[Any]:
    """Open a store: a ledger, or a client with the same methods."""
    return _open(store, token, read_only=False)


def read_store(store: str = DEFAULT, token: str | None = None) -> AbstractContextManager[Any]:
    """The same to read from."""
    return _open(store, token, read_only=True)


def ledger(store: str = DEFAULT) -> AbstractContextManager["Ledger"]:
    """A ledger that is not behind a service."""
    return ledger_at(store, create=False)


def ledger_and_anchor(
    store: str = DEFAULT, anchor: str | None = None
) -> AbstractContextManager["Ledger"]:
    """The same, with its anchor."""
    return ledger_at(store, create=False, anchor=anchor)


@contextmanager
def _open(store: str, token: str | None, read_only: bool) -> Iterator[Any]:
    opened: Any
    if is_service(store):
        need("sqlalchemy")
        from residua.service.client import Client

        opened = Client(store, token)
    else:
        opened = ledger_at(store, create=False, read_only=read_only)
    with opened as found:
        if read_only and is_local(found):
            warn(found.why_closed())
        try:
            yield found
        except (UnknownBudget, AccessDenied) as error:
            message = _with_token_options(str(error), token)
            raise type(error)(f"{message}{_suggestion(message, found)}") from None
        except ArgumentError as error:
            raise _with_flag(error) from None


def warn(read_only: str | None) -> None:
    """Warn that the numbers may be old: nothing can be spent from this ledger."""
    if read_only is not None:
        print(f"warning: read-only: {read_only}", file=sys.stderr)


def _with_flag(error: ArgumentError) -> ArgumentError:
    """An error about an undeclared relation, with the name of the flag."""
    begins = "assume_budget_relation must be true or a relation declared: "
    if not str(error).startswith(begins):
        return error
    why = str(error).removeprefix(begins).removesuffix(", got False")
    return ArgumentError(
        f"{why}: declare a relation (relation=add-remove) or give --assume-budget-relation"
    )


def _with_token_options(message: str, token: str | None) -> str:
    """A service's error about a token, with the names of the options."""
    if "Authorization" in message:
        if token is None:
            return "the service needs a token: give --token or set RESIDUA_TOKEN"
        return (
            "the token (--token or RESIDUA_TOKEN) must look like rz_ID_SECRET, got something else"
        )
    if message.startswith("the token "):
        return message.replace("the token", "the token (--token or RESIDUA_TOKEN)", 1)
    return message


def _suggestion(message: str, ledger: Any) -> str:
    """The name of a budget that may have been meant, of those that the caller may see."""
    named = _UNKNOWN.search(message)
    if named is None:
        return ""
    from residua import checks

    try:
        known = [one.name for one in ledger.budgets()]
        return checks.suggestion(ast.literal_eval(named[1]), known)
    except (ResiduaError, SyntaxError, ValueError):
        return ""


@contextmanager
def ledger_at(
    store: str, *, create: bool, read_only: bool = False, anchor: str | None = None
) -> Iterator["Ledger"]:
    """The ledger at a file or database, with the anchor that is given or that the settings name."""
    if is_service(store):
        raise ArgumentError(
            f"store must be a file or a database here, got the service {store}; say where its"
            " ledger is: --store sqlite:///budgets.db, or the one it was started with"
        )
    need("sqlalchemy")
    from residua.ledger.api.opening import open_ledger
    from residua.service.settings import from_environment

    settings = {name: os.environ[name] for name in _SETTINGS if os.environ.get(name)}
    chosen = {**from_environment(settings), **({"anchor": anchor} if anchor else {})}
    with open_ledger(
        store, principal=_user(), create=create, read_only=read_only, **chosen
    ) as opened:
        yield opened


def need(*packages: str) -> None:
    """Raise `MissingPackage`, which says what to install, if a package is missing."""
    for name in packages:
        if find_spec(name) is None:
            raise MissingPackage("this command", name)


def _user() -> str:
    """The principal that the ledger records: the user of this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "local"


def expected_heads(given: list[str] | None) -> Any:
    """The value of `--expect-head`: a single hash, or budgets with their heads."""
    if given is not None and len(given) == 1 and _HASH.fullmatch(given[0]):
        return given[0]
    return heads_by_budget("--expect-head", given)


def heads_by_budget(option: str, given: list[str] | None) -> dict[str, Any] | None:
    """The heads of budgets, each with its number if that was given."""
    if not given:
        return None
    marks: dict[str, Any] = {}
    for text in given:
        found = _MARK.fullmatch(text)
        if found is None:
            raise ArgumentError(
                f"{option} must be BUDGET=[SEQ:]HASH with a whole hash as on a receipt"
                f" (64 hexadecimal digits), got {text!r}"
            )
        name, seq, hash = found.groups()
        marks[name] = hash if seq is None else (int(seq), hash)
    return marks
