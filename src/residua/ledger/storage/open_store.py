"""Open the database of a ledger or of an anchor; import its driver only then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from residua.errors import MissingPackage
from residua.ledger.storage.store import Place, Store, place


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


def address_of(store: Store) -> str:
    """The whole address of a store, with its password: for another process, never to be shown."""
    return store.place.url.render_as_string(hide_password=False)


@contextmanager
def opened_to_read(address: str) -> Iterator[Store]:
    """The store at an address, to read records from."""
    store = open_store(place(address), accept_async_standby=True, read_only=True)
    try:
        yield store
    finally:
        store.close()
