"""Opening a ledger: the store, its schema, its anchor, and whether it may be written to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from residua import checks
from residua.errors import (
    ArgumentError,
    ArgumentTypeError,
    BrokenRecord,
    LedgerError,
    NotALedger,
    ReadOnlyLedger,
    StoreUnavailable,
)
from residua.ledger.api.ledger import Ledger
from residua.ledger.operations.committer import Gate
from residua.ledger.recovery.anchor_check import heads_in, may_have_lost
from residua.ledger.storage.anchor import Anchor, Anchored, FileAnchor, StateAnchor
from residua.ledger.storage.migrations import HOME, UNANCHORED, facts_in, migrate, set_fact
from residua.ledger.storage.open_store import open_store
from residua.ledger.storage.store import Again, Place, Store, Unsure, place

_SQLITE = b"SQLite format 3\0"
"""How a file of SQLite begins."""


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
    gate = None
    try:
        facts = migrate(store, create, read_only)
        gate = Gate(store, None, facts["ledger"], facts["incarnation"])
        gate.anchor = _anchor(where, anchor, gate.ledger, accept_async_standby, read_only)
        gate.read_only = read_only
        if read_only:
            gate.closed = ReadOnlyLedger(f"{where} was opened read-only")
        else:
            gate.closed = hold_against_anchor(gate)
        return Ledger(gate, principal)
    except BaseException as error:
        store.close()
        if gate is not None and gate.anchor is not None:
            gate.anchor.close()
        if isinstance(error, Again | Unsure):
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
    if _is_database(Path(given)):
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


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def _state_directory() -> Path:
    home = os.environ.get("XDG_STATE_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path.home() / ".local" / "state"
    return base / "residua"


def hold_against_anchor(gate: Gate) -> LedgerError | None:
    """Compare the store with its anchor; why nothing may be written, if so.

    What the anchor says is read first, so that a store that others write to is never behind it.
    """
    anchor = gate.anchor
    assert anchor is not None
    try:
        said = anchor.read()
        with gate.store.reading() as connection:
            heads = heads_in(connection)
            if said is None and heads:
                # Perhaps another process has just made both.
                said = anchor.read()
            why = may_have_lost(gate, said, heads, connection)
            facts, here = facts_in(connection) or {}, gate.store.identity(connection)
        if why is not None:
            return ReadOnlyLedger(why)
        if said is None:
            anchor.create(Anchored(gate.ledger, gate.incarnation))
        elif isinstance(anchor, FileAnchor):
            anchor.compact()
        anchor.incarnation = gate.incarnation
        known = dict(said.marks) if said is not None else {}
        ahead = {n: head for n, head in heads.items() if n not in known or known[n][0] < head[0]}
        if ahead:
            # Perhaps of a process that died before it was durable.
            with gate.store.writing() as connection:
                gate.store.make_durable(connection)
            anchor.write(ahead, lambda said: gate.check_one_chain(ahead, known, said))
        # The anchor's contents may not be synced: its writer may have died before that.
        gate.anchored, gate.others = ahead, {**gate.others, **known}
        if facts.get(HOME) != (here or None) or UNANCHORED in facts:
            _settle(gate.store, here or None)
    except BrokenRecord as error:
        return ReadOnlyLedger(f"{error}; recover the ledger (residua recover)")
    except ReadOnlyLedger as error:
        return error
    except OSError as error:
        return StoreUnavailable(f"the anchor {anchor} cannot be written: {error}")
    return None


def _settle(store: Store, home: str | None) -> None:
    """Remember which database it is that nothing was found missing in, and that it is anchored."""
    with store.writing() as connection:
        store.lock_schema(connection)
        set_fact(connection, HOME, home)
        set_fact(connection, UNANCHORED, None)
        store.commit(connection, lambda _: False)
