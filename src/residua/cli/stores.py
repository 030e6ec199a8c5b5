"""Where the budgets are: a file, a database or a service, all with the same verbs.

`--store` takes the path of a file, `sqlite:///…`, `postgresql://…`, or the address of a service
(`http://…`), for which `--token` opens the door. Without it, `RESIDUA_STORE` and
`RESIDUA_TOKEN` in the environment count, then the file `budgets.db` in this directory. What
`RESIDUA_ANCHOR` and `RESIDUA_ACCEPT_ASYNC_STANDBY` say to a service holds here too, so that both
go by the same anchor.
"""

import ast
import getpass
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from residua.errors import (
    AccessDenied,
    ArgumentError,
    MissingPackage,
    ResiduaError,
    UnknownBudget,
)

if TYPE_CHECKING:
    from residua.ledger.api.ledger import Ledger

__all__ = ["DEFAULT", "AnchorText", "Store", "TokenText", "books", "ledger_at", "warn"]

DEFAULT = "sqlite:///budgets.db"
_SETTINGS = ("RESIDUA_ANCHOR", "RESIDUA_ACCEPT_ASYNC_STANDBY")
_UNKNOWN = re.compile(r"budget ('.*'|\".*\")$")
"""How the name ends an error about a budget that is not there, or not to be seen."""

Store = Annotated[
    str,
    typer.Option(
        envvar="RESIDUA_STORE",
        metavar="URL",
        show_envvar=False,
        help="A file, sqlite:///..., postgresql://..., or a service, http://...; or RESIDUA_STORE.",
    ),
]
TokenText = Annotated[
    str | None,
    typer.Option(
        envvar="RESIDUA_TOKEN",
        metavar="TOKEN",
        show_envvar=False,
        help="For a service. Better in RESIDUA_TOKEN, where other users do not see it.",
    ),
]
AnchorText = Annotated[
    str | None,
    typer.Option(
        "--anchor",
        envvar="RESIDUA_ANCHOR",
        metavar="PATH|URL",
        show_envvar=False,
        help="The anchor, if it is not the default one; or RESIDUA_ANCHOR.",
    ),
]


def is_service(store: str) -> bool:
    """Whether a store is behind a service."""
    return store.startswith(("http://", "https://"))


@contextmanager
def books(store: str, token: str | None = None, *, read_only: bool = False) -> Iterator[Any]:
    """The budgets at a store: a ledger, or a client with the same verbs."""
    with _opened(store, token, read_only) as found:
        try:
            yield found
        except (UnknownBudget, AccessDenied) as error:
            said = _of_token(str(error), token)
            raise type(error)(f"{said}{_nearest(said, found)}") from None
        except ArgumentError as error:
            raise _with_flag(error) from None


@contextmanager
def _opened(store: str, token: str | None, read_only: bool) -> Iterator[Any]:
    if is_service(store):
        need("sqlalchemy")
        from residua.service.client import Client

        with Client(store, token) as client:
            yield client
        return
    with ledger_at(store, create=False, read_only=read_only) as ledger:
        if read_only:
            warn(ledger.why_closed())
        yield ledger


def warn(read_only: str | None) -> None:
    """Tell who reads that the numbers may be old: nothing can be spent from this ledger."""
    if read_only is not None:
        print(f"warning: read-only: {read_only}", file=sys.stderr)


def _with_flag(error: ArgumentError) -> ArgumentError:
    """An error about a relation that is not declared, by the name of the flag."""
    begins = "assume_budget_relation must be true, or a relation declared: "
    if not str(error).startswith(begins):
        return error
    why = str(error).removeprefix(begins).removesuffix(", got False")
    return ArgumentError(
        f"{why}: declare a relation (relation=add-remove) or give --assume-budget-relation"
    )


def _of_token(said: str, token: str | None) -> str:
    """What a service says of a token, by the names that it has on the command line."""
    if "Authorization" in said:
        if token is None:
            return "the service asks for a token: give --token, or set RESIDUA_TOKEN"
        return "the token (--token or RESIDUA_TOKEN) must be as rz_ID_SECRET, got something else"
    if said.startswith("the token "):
        return said.replace("the token", "the token (--token or RESIDUA_TOKEN)", 1)
    return said


def _nearest(said: str, books: Any) -> str:
    """Which budget may have been meant by one that is not there: of those that a caller sees."""
    named = _UNKNOWN.search(said)
    if named is None:
        return ""
    from residua import checks

    try:
        return checks.near(ast.literal_eval(named[1]), _names(books))
    except (ResiduaError, SyntaxError, ValueError):
        return ""


def _names(books: Any) -> list[str]:
    if not hasattr(books, "store"):
        return [one.name for one in books.budgets()]
    from sqlalchemy import select

    from residua.ledger.storage.schema import budgets

    with books.store.reading() as connection:
        return list(connection.execute(select(budgets.c.name)).scalars())


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
    ledger = open_ledger(store, principal=_who(), create=create, read_only=read_only, **chosen)
    try:
        yield ledger
    finally:
        ledger.close()


def need(*packages: str) -> None:
    """Say what to install where a package is missing."""
    for name in packages:
        if find_spec(name) is None:
            raise MissingPackage("this command", name)


def _who() -> str:
    """Whom the ledger records: the user of this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "local"
