"""Opening the database of a ledger or of an anchor: each kind is imported when it is needed."""

from __future__ import annotations

from residua.errors import MissingPackage
from residua.ledger.storage.store import Store
from residua.ledger.storage.url import Place


def open_store(place: Place, accept_async_standby: bool, read_only: bool) -> Store:
    """The store at an address. Raises `MissingPackage` where its driver is not installed."""
    if place.path is not None:
        from residua.ledger.storage.sqlite import SqliteStore

        return SqliteStore(place, read_only)
    try:
        from residua.ledger.storage.postgres import PostgresStore
    except ModuleNotFoundError as error:
        raise MissingPackage.behind(error, f"the address {place}") from None
    return PostgresStore(place, accept_async_standby)
