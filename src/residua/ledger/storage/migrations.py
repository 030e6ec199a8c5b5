"""Migrate a database to the present schema, safely when two processes start at once."""

from __future__ import annotations

import uuid

from sqlalchemy import Connection, delete, insert, inspect, select, text

from residua.errors import NewerLedger, NotALedger, ReadOnlyLedger, StoreUnavailable
from residua.ledger.storage import schema
from residua.ledger.storage.store import TRIES, Again, Lost, Store, Unsure

HOME = "home"
"""The fact that says which database this is, by `Store.identity`, where that is known."""
UNANCHORED = "unanchored"
"""The incarnation of the anchor that a recovery replaces, from its commit until that is done."""
_MEMBERS = frozenset({"format", "schema", "ledger", "incarnation"})


def facts_in(connection: Connection) -> dict[str, str] | None:
    """The facts in `meta`; None where there is no such table or nothing in it."""
    if not inspect(connection).has_table(schema.meta.name):
        return None
    rows = connection.execute(select(schema.meta.c.name, schema.meta.c.value))
    return {row.name: row.value for row in rows} or None


def set_fact(connection: Connection, name: str, value: str | None) -> None:
    """Have `meta` say something else, or no longer say anything of this."""
    connection.execute(delete(schema.meta).where(schema.meta.c.name == name))
    if value is not None:
        connection.execute(insert(schema.meta).values(name=name, value=value))


def check_facts(store: Store, facts: dict[str, str]) -> None:
    """Raise unless this is a ledger of a version that we know."""
    if facts.get("format") != schema.FORMAT or not set(facts) >= _MEMBERS:
        raise NotALedger(f"{store.place} has a table residua_meta, but is not a ledger")
    version = facts["schema"]
    if not version.isdigit():
        raise NotALedger(f"{store.place} has the unknown schema {version!r}")
    if int(version) > schema.VERSION:
        raise NewerLedger(
            f"{store.place} has schema {version}; this residua knows up to {schema.VERSION}:"
            " use a newer one"
        )


def migrate(store: Store, create: bool, read_only: bool = False) -> dict[str, str]:
    """Make the tables that are missing, unless it is only read; what `meta` says then."""
    for _ in range(TRIES):
        try:
            return _migrated(store, create and not read_only, read_only)
        except (Lost, Unsure) as error:
            raise StoreUnavailable(
                f"{store.place} became unavailable while its tables were created ({error}):"
                " open it again"
            ) from error
        except Again:
            continue
    raise StoreUnavailable(
        f"{store.place}: too many processes create tables at once: open it again"
    )


def _migrated(store: Store, create: bool, read_only: bool) -> dict[str, str]:
    with store.reading() as connection:
        facts = _check_ledger(store, connection, create)
    if read_only:
        assert facts is not None
        if int(facts["schema"]) < schema.READABLE:
            raise ReadOnlyLedger(
                f"{store.place} has schema {facts['schema']}, and what is read has at least"
                f" {schema.READABLE}: open it once for writing, which brings it up to date"
            )
        return facts
    store.settle()
    if facts is not None and int(facts["schema"]) == schema.VERSION:
        return facts
    with store.writing() as connection:
        store.lock_schema(connection)
        # Someone else may have been here since.
        facts = _check_ledger(store, connection, create)
        new = facts is None
        if facts is None:
            connection.execute(text(schema.META))
            facts = {
                "format": schema.FORMAT,
                "schema": "0",
                "ledger": uuid.uuid4().hex,
                "incarnation": uuid.uuid4().hex,
            }
            rows = [{"name": name, "value": value} for name, value in facts.items()]
            connection.execute(insert(schema.meta), rows)
        for statements in schema.MIGRATIONS[int(facts["schema"]) :]:
            for statement in statements:
                connection.execute(text(statement.format(blob=store.blob)))
        facts["schema"] = str(schema.VERSION)
        set_fact(connection, "schema", facts["schema"])
        if new and (home := store.identity(connection)):
            facts[HOME] = home
            set_fact(connection, HOME, home)
        store.commit(connection, lambda other: facts_in(other) == facts)
    return facts


def _check_ledger(store: Store, connection: Connection, create: bool) -> dict[str, str] | None:
    if store.foreign(connection):
        raise NotALedger(f"{store.place} is a database but not a ledger")
    facts = facts_in(connection)
    if facts is not None:
        check_facts(store, facts)
    elif not create:
        raise NotALedger(f"there is no ledger at {store.place}")
    return facts
