"""Where the budgets are: a file, a database or a service, all with the same verbs.

`--store` takes the path of a file, `sqlite:///…`, `postgresql://…`, or the address of a service
(`http://…`), for which `--token` opens the door. Without it, `RESIDUUM_STORE` and
`RESIDUUM_TOKEN` in the environment count, then the file `budgets.db` in this directory.
"""

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from residuum.errors import ArgumentError, MissingPackage

if TYPE_CHECKING:
    from residuum.ledger.ledger import Ledger

__all__ = ["DEFAULT", "Store", "TokenText", "books", "ledger_at"]

DEFAULT = "sqlite:///budgets.db"

Store = Annotated[
    str,
    typer.Option(
        envvar="RESIDUUM_STORE",
        metavar="URL",
        show_envvar=False,
        help="A file, sqlite:///..., postgresql://..., or a service, http://...; "
        "or RESIDUUM_STORE.",
    ),
]
TokenText = Annotated[
    str | None,
    typer.Option(
        envvar="RESIDUUM_TOKEN",
        metavar="TOKEN",
        show_envvar=False,
        help="For a service. Better in RESIDUUM_TOKEN, where other users do not see it.",
    ),
]


def is_service(store: str) -> bool:
    """Whether a store is behind a service."""
    return store.startswith(("http://", "https://"))


@contextmanager
def books(store: str, token: str | None = None, *, read_only: bool = False) -> Iterator[Any]:
    """The budgets at a store: a ledger, or a client with the same verbs."""
    if is_service(store):
        need("sqlalchemy")
        from residuum.service.client import Client

        with Client(store, token) as client:
            yield client
        return
    with ledger_at(store, create=False, read_only=read_only) as ledger:
        yield ledger


@contextmanager
def ledger_at(store: str, *, create: bool, read_only: bool = False) -> Iterator["Ledger"]:
    """The ledger at a file or database."""
    if is_service(store):
        raise ArgumentError(f"store must be a file or a database here, got the service {store}")
    need("sqlalchemy")
    from residuum.ledger.opening import open_ledger

    ledger = open_ledger(store, principal=_who(), create=create, read_only=read_only)
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
