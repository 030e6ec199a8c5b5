"""Compare a store with its anchor to find lost records."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from sqlalchemy import Connection, select

from residua.errors import BrokenRecord, LedgerError, ReadOnlyLedger, StoreUnavailable
from residua.ledger.domain.budget_row import BudgetRow
from residua.ledger.operations.committer import Committer
from residua.ledger.storage import schema
from residua.ledger.storage.anchor import Anchored, FileAnchor, Marks, behind
from residua.ledger.storage.rows import hash_at
from residua.ledger.storage.schema import HOME, UNANCHORED, facts_in, set_fact
from residua.ledger.storage.store import Store

_B = schema.budgets


def why_closed(committer: Committer) -> str | None:
    """Why opening a ledger for writing would give a read-only one, or None.

    What the anchor says is read first, so that a store that others write to is never behind it.
    """
    if committer.anchor is None:
        return None
    try:
        said = committer.anchor.read()
        with committer.store.reading() as connection:
            return may_have_lost(committer, said, heads_in(connection), connection)
    except OSError as error:
        return f"the anchor {committer.anchor} cannot be read: {error}"
    except LedgerError as error:
        return str(error)


def compare_with_anchor(committer: Committer) -> LedgerError | None:
    """Compare the store with its anchor; why nothing may be written, if so.

    What the anchor says is read first, so that a store that others write to is never behind it.
    """
    anchor = committer.anchor
    assert anchor is not None
    try:
        said = anchor.read()
        with committer.store.reading() as connection:
            heads = heads_in(connection)
            if said is None and heads:
                # Perhaps another process has just made both.
                said = anchor.read()
            why = may_have_lost(committer, said, heads, connection)
            facts, here = facts_in(connection), committer.store.identity(connection)
        if why is not None:
            return ReadOnlyLedger(why)
        if said is None:
            anchor.create(Anchored(committer.ledger, committer.incarnation))
        elif isinstance(anchor, FileAnchor):
            anchor.compact()
        anchor.incarnation = committer.incarnation
        known = dict(said.marks) if said is not None else {}
        ahead = {n: head for n, head in heads.items() if n not in known or known[n][0] < head[0]}
        if ahead:
            # Perhaps of a process that died before it was durable.
            with committer.store.writing() as connection:
                committer.store.make_durable(connection)
            anchor.write(ahead, lambda said: committer.check_one_chain(ahead, known, said))
        # The anchor's contents may not be synced: its writer may have died before that.
        committer.anchored, committer.others = ahead, {**committer.others, **known}
        if facts.get(HOME) != (here or None) or UNANCHORED in facts:
            _settle(committer.store, here or None)
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


def must_be_open(read_only: str | None) -> None:
    """Raise where nothing would be admitted now, whatever the filters say."""
    if read_only is not None:
        raise ReadOnlyLedger(f"nothing would be admitted now: {read_only}")


def may_have_lost(
    committer: Committer, said: Anchored | None, heads: Marks, connection: Connection
) -> str | None:
    """Why nothing may be written to a store that its anchor says this of, if so."""
    lost = _lost(committer, said, heads, connection)
    home = facts_in(connection).get(HOME)
    if not lost and home not in (None, committer.store.identity(connection)):
        lost = _moved(committer, said, heads)
    if not lost:
        return None
    name, why = next(iter(lost.items()))
    budget = f"budget {name!r}: " if name else ""
    more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
    return (
        f"{committer.store.place} may have lost spends: {budget}{why}{more};"
        " recover the ledger (residua recover)"
    )


def heads_in(connection: Connection) -> dict[str, tuple[int, str]]:
    """The head of every chain."""
    rows = connection.execute(select(_B.c.name, _B.c.head_seq, _B.c.head_hash).order_by(_B.c.id))
    found = {}
    for name, seq, head in rows:
        # SQLite keeps whatever it is given.
        if not (isinstance(name, str) and isinstance(seq, int) and isinstance(head, str)):
            raise BrokenRecord(f"budget {name!r} has an invalid head: {seq!r}, {head!r}")
        found[name] = (seq, head)
    return found


def _lost(
    committer: Committer, said: Anchored | None, heads: Marks, connection: Connection
) -> dict[str, str]:
    """The budgets of which something may be lost, and why; under `""`, of all."""
    if said is None:
        # The file of a user for PostgreSQL may be that of a machine which is new here.
        shared = committer.anchor is not None and committer.anchor.shared
        lost_anchor = heads and (shared or committer.store.place.path is not None)
        return {"": f"the anchor {committer.anchor} is gone"} if lost_anchor else {}
    if said.ledger != committer.ledger:
        return {"": f"the anchor {committer.anchor} belongs to another ledger, {said.ledger}"}
    if said.incarnation != committer.incarnation:
        return {"": f"the anchor {committer.anchor} belongs to another incarnation"}
    return behind(said.marks, heads, partial(hash_at, connection))


def _moved(committer: Committer, said: Anchored | None, heads: Marks) -> dict[str, str]:
    """Why spends may be lost in a database that is another than the one which wrote last.

    A shared anchor would know. The file of one machine does if it knows every head:
    one that does not is not the only one.
    """
    assert committer.anchor is not None
    if not heads or (said is not None and (committer.anchor.shared or said.marks == heads)):
        return {}
    knows = (
        "there is no anchor"
        if said is None
        else f"the anchor {committer.anchor} knows only some of the budgets"
    )
    return {"": f"the database was restored, moved or copied, or a standby took over, and {knows}"}


def check_marked(
    store: Store, entries: Mapping[str, BudgetRow], said: Anchored | None, marks: Marks
) -> None:
    """Raise if the anchor was marked since with records that are not in the store."""
    known = {} if said is None else said.marks
    for name, mark in marks.items():
        entry = entries.get(name)
        if mark == known.get(name) or (entry is not None and entry.retired):
            continue
        with store.reading() as connection:
            there = hash_at(connection, name, mark[0])
        if there != mark[1]:
            raise ReadOnlyLedger(
                f"record {mark[0]} of budget {name!r} was acknowledged during the recovery, but is"
                " missing in the recovered ledger: recover it again"
            )
