"""Opening a ledger: the store, its schema, its anchor, and whether it may be written to."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert

from residua import checks
from residua.errors import (
    ArgumentError,
    ArgumentTypeError,
    NotALedger,
    ReadOnlyLedger,
    StoreUnavailable,
)
from residua.ledger.api.ledger import Ledger
from residua.ledger.operations.committer import Committer
from residua.ledger.recovery.anchor_check import compare_with_anchor
from residua.ledger.recovery.export_file import is_database
from residua.ledger.storage import schema
from residua.ledger.storage.anchor import Anchor, FileAnchor, StateAnchor
from residua.ledger.storage.schema import HOME, check_facts, facts_in
from residua.ledger.storage.store import (
    TRIES,
    Again,
    CommitUnknown,
    Lost,
    Place,
    Store,
    open_store,
    place,
)


def open_ledger(
    url: Any,
    *,
    principal: str = "local",
    anchor: Any = None,
    accept_async_standby: bool = False,
    read_only: bool = False,
    create: bool = True,
) -> Ledger:
    """Open the ledger at `sqlite:///file.db`, `postgresql://…` or the path of a file.

    Where it lost what its anchor knows, it opens read-only.

    Args:
        url: the address of the database, or the path of a file.
        principal: in whose name requests are recorded; keys belong to a principal.
        anchor: a path or the address of another database; beside the file by default.
        accept_async_standby: whether a server may have standbys that are not synchronous.
        read_only: whether to open it for reading alone.
        create: whether to make a ledger where there is none.

    Raises:
        NotALedger: there is no ledger, and none is to be made; or the database is something else.
        StoreUnavailable: the database cannot be reached.
        UnsafeStore: the database may lose what it acknowledged.
    """
    where = place(url)
    checks.flag("accept_async_standby", accept_async_standby)
    checks.flag("read_only", read_only)
    checks.flag("create", create)
    store = _store(where, accept_async_standby, read_only, create)
    committer = None
    try:
        facts = ledger_facts(store, create, read_only)
        committer = Committer(store, None, facts["ledger"], facts["incarnation"])
        committer.anchor = _anchor(where, anchor, committer.ledger, accept_async_standby, read_only)
        committer.read_only = read_only
        if read_only:
            committer.closed = ReadOnlyLedger(f"{where} was opened read-only")
        else:
            committer.closed = compare_with_anchor(committer)
        return Ledger(committer, principal)
    except BaseException as error:
        store.close()
        if committer is not None and committer.anchor is not None:
            committer.anchor.close()
        if isinstance(error, Again | CommitUnknown):
            # What opening writes, it writes once more the next time.
            raise StoreUnavailable(
                f"{where} became unavailable while it was opened: {error}"
            ) from error
        raise


def _store(where: Place, accept_async_standby: bool, read_only: bool, create: bool) -> Store:
    if where.path is None:
        return open_store(where, accept_async_standby, read_only)
    from residua.ledger.storage.sqlite import is_foreign

    path = where.path
    if path.is_dir():
        raise NotALedger(f"{path} is a directory")
    if not path.exists():
        if read_only or not create:
            raise NotALedger(f"there is no ledger at {where}; create one with: residua init")
        if not path.parent.is_dir():
            raise StoreUnavailable(f"{path.parent} is not a directory; create it first")
    store = open_store(where, accept_async_standby, read_only)
    if path.exists() and is_foreign(path):
        raise NotALedger(f"{where} is a database but not a ledger")
    return store


def ledger_facts(store: Store, create: bool, read_only: bool = False) -> dict[str, str]:
    """What `meta` says; makes the tables of a new ledger where there is none, if wanted."""
    for _ in range(TRIES):
        try:
            return _found_or_made(store, create, read_only)
        except (Lost, CommitUnknown) as error:
            raise StoreUnavailable(
                f"{store.place} became unavailable while its tables were created ({error}):"
                " open it again"
            ) from error
        except Again:
            continue
    raise StoreUnavailable(
        f"{store.place}: too many processes create tables at once: open it again"
    )


def _found_or_made(store: Store, create: bool, read_only: bool) -> dict[str, str]:
    with store.reading() as connection:
        facts = _check_ledger(store, connection, create and not read_only)
    if not read_only:
        store.settle()
    if facts:
        return facts
    with store.writing() as connection:
        store.lock_schema(connection)
        # Another process may have made it since.
        facts = _check_ledger(store, connection, create)
        if facts:
            return facts
        schema.METADATA.create_all(connection)
        facts = {
            "format": schema.FORMAT,
            "schema": str(schema.VERSION),
            "ledger": uuid.uuid4().hex,
            "incarnation": uuid.uuid4().hex,
        }
        if home := store.identity(connection):
            facts[HOME] = home
        rows = [{"name": name, "value": value} for name, value in facts.items()]
        connection.execute(insert(schema.meta), rows)
        store.commit(connection, lambda other: facts_in(other) == facts)
    return facts


def _check_ledger(store: Store, connection: Connection, create: bool) -> dict[str, str]:
    if store.foreign(connection):
        raise NotALedger(f"{store.place} is a database but not a ledger")
    facts = facts_in(connection)
    if facts:
        check_facts(store.place, facts)
    elif not create:
        raise NotALedger(f"there is no ledger at {store.place}")
    return facts


def _anchor(
    where: Place, given: Any, ledger: str, accept_async_standby: bool, read_only: bool
) -> Anchor:
    if isinstance(given, Anchor):
        return given
    if given is None and where.path is not None:
        return FileAnchor(where.path.with_name(where.path.name + ".anchor"))
    if given is None:
        return StateAnchor(_state_directory(), ledger)
    if isinstance(given, str) and "://" in given:
        from residua.ledger.storage.database_anchor import DatabaseAnchor

        other = place(given)
        if other.path is not None:
            _check_outside(where, other.path)
        return DatabaseAnchor(other, ledger, accept_async_standby, read_only)
    if not isinstance(given, (str, os.PathLike)) or not isinstance(os.fspath(given), str):
        raise ArgumentTypeError(f"anchor must be a path or an address, got {checks.shown(given)}")
    _check_outside(where, Path(given))
    with suppress(OSError):
        if is_database(Path(given)):
            # A recovery would put an anchor in its place.
            raise ArgumentError(f"anchor must be a separate file, got {given}, which is a database")
    return FileAnchor(Path(given))


def _check_outside(where: Place, anchor: Path) -> None:
    """Raise where an anchor is the ledger's own file, or one that belongs to it."""
    if where.path is None:
        return
    own, path = where.path.resolve(), anchor.resolve()
    if path in [own, *(own.with_name(own.name + end) for end in ("-wal", "-shm", "-journal"))]:
        raise ArgumentError(
            f"anchor must be outside the ledger, got {anchor}, which is the ledger itself"
        )


def _state_directory() -> Path:
    home = os.environ.get("XDG_STATE_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path.home() / ".local" / "state"
    return base / "residua"
