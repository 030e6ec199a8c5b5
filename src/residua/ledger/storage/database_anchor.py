"""An anchor in another database than the ledger's: one row for each budget.

Every write has a number, which the row of the ledger itself keeps and the rows that it changed
carry. Writes take turns, so a reader that has read up to one number finds what is new by asking for
larger ones. A server that may lose what it acknowledged is refused, as it is for a store.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    delete,
    insert,
    inspect,
    or_,
    select,
    update,
)

from residua.errors import OutcomeUnknown, StoreUnavailable
from residua.ledger.storage.anchor import (
    Anchor,
    Anchored,
    Check,
    Marks,
    check_begun,
    check_later,
)
from residua.ledger.storage.store import TRIES, Again, CommitUnknown, Place, open_store

_A = Table(
    "residua_anchors",
    MetaData(),
    Column("ledger", Text, primary_key=True),
    Column("budget", Text, primary_key=True),
    Column("seq", Integer, nullable=False),
    Column("head", Text, nullable=False),
    Column("change", BigInteger, nullable=False),
    Index("residua_anchors_by_change", "ledger", "change"),
)
_ITSELF = ""
"""The row that has the incarnation in place of a hash; no budget has that name."""


class DatabaseAnchor(Anchor):
    """Rows in a separate database, as durable as that database is."""

    shared = True

    def __init__(
        self,
        place: Place,
        ledger: str,
        accept_async_standby: bool = False,
        read_only: bool = False,
    ):
        if read_only and place.path is not None and not place.path.exists():
            raise StoreUnavailable(f"the anchor {place} is gone")
        self.store = open_store(place, accept_async_standby, read_only)
        self._made = False
        self.belong(ledger)

    def __str__(self) -> str:
        return str(self.store.place)

    def belong(self, ledger: str) -> None:
        self.ledger, self._mine = ledger, _A.c.ledger == ledger
        self._seen = 0
        """The number of the last write that `changes` has told of."""

    def facts(self) -> dict[str, str]:
        return self.store.facts()

    def read(self) -> Anchored | None:
        if not self._ready():
            return None
        with self.store.reading() as connection:
            rows = connection.execute(select(_A).where(self._mine)).all()
        said = {row.budget: (row.seq, row.head) for row in rows}
        if _ITSELF not in said:
            return None
        _, incarnation = said.pop(_ITSELF)
        return Anchored(self.ledger, incarnation, said)

    def changes(self) -> Marks:
        """The marks since the last call; it costs a query of the other database.

        Raises where that is away or lost the anchor: nothing is spent that could not be anchored.
        """
        if not self._ready():
            raise StoreUnavailable(f"the anchor {self} is gone; nothing was spent")
        with self.store.reading() as connection:
            wanted = or_(_A.c.change > self._seen, _A.c.budget == _ITSELF)
            rows = connection.execute(select(_A).where(self._mine, wanted)).all()
            last = next((row.change for row in rows if row.budget == _ITSELF), None)
            if last is not None and last < self._seen:
                # It was put back itself; whatever it says now is new.
                rows = connection.execute(select(_A).where(self._mine)).all()
        if last is None:
            raise StoreUnavailable(f"the anchor {self} is gone; nothing was spent")
        self._seen = last
        return {row.budget: (row.seq, row.head) for row in rows if row.budget != _ITSELF}

    def _ready(self) -> bool:
        """Whether the table exists by now; a reader does not create it."""
        if not self._made:
            with self.store.reading() as connection:
                self._made = inspect(connection).has_table(_A.name)
        return self._made

    def create(self, said: Anchored) -> None:
        if self.read() is None:
            self._put(said, replace=False)

    def start(self, said: Anchored, check: Check | None = None) -> None:
        self._put(said, replace=True, check=check)

    def _put(self, said: Anchored, replace: bool, check: Check | None = None) -> None:
        def change(connection: Connection) -> None:
            known = connection.execute(select(_A).where(self._mine)).all()
            if known and not replace:
                return
            for row in known:
                if row.budget == _ITSELF:
                    check_later(self, Anchored(self.ledger, row.head), said)
            if check is not None:
                check({row.budget: (row.seq, row.head) for row in known if row.budget != _ITSELF})
            number = 1 + max((row.change for row in known), default=0)
            connection.execute(delete(_A).where(self._mine))
            marks = {_ITSELF: (0, said.incarnation), **said.marks}
            rows = [_row(self.ledger, name, mark, number) for name, mark in marks.items()]
            connection.execute(insert(_A), rows)

        self._change(change)

    def write(self, marks: Marks, check: Check | None = None) -> None:
        def change(connection: Connection) -> None:
            wanted = self._mine & _A.c.budget.in_([_ITSELF, *marks])
            known = {row.budget: row for row in connection.execute(select(_A).where(wanted))}
            if _ITSELF not in known:
                raise StoreUnavailable(f"the anchor {self} is gone")
            check_begun(self, known[_ITSELF].head)
            if check is not None:
                check({name: (row.seq, row.head) for name, row in known.items() if name != _ITSELF})
            number = known[_ITSELF].change + 1
            for name, mark in marks.items():
                row = _row(self.ledger, name, mark, number)
                if name not in known:
                    connection.execute(insert(_A), row)
                elif known[name].seq < mark[0]:
                    own = update(_A).where(self._mine, _A.c.budget == name)
                    connection.execute(own.values(row))
            itself = update(_A).where(self._mine, _A.c.budget == _ITSELF)
            connection.execute(itself.values(change=number))

        self._change(change)

    def _change(self, change: Callable[[Connection], None]) -> None:
        """Carry out an idempotent change, alone; retry until it is known to be done."""
        for left in range(TRIES - 1, -1, -1):
            try:
                with self.store.writing() as connection:
                    self.store.lock_schema(connection)
                    if not self._made:
                        _A.create(connection, checkfirst=True)
                    change(connection)
                    self.store.commit(connection, lambda _: False)
                self._made = True
                return
            except (Again, CommitUnknown) as error:
                if not left:
                    kind = OutcomeUnknown if isinstance(error, CommitUnknown) else StoreUnavailable
                    raise kind(f"the anchor {self} became unavailable: {error}") from error

    def close(self) -> None:
        self.store.close()


def _row(ledger: str, name: str, mark: tuple[int, str], change: int) -> dict[str, object]:
    return {"ledger": ledger, "budget": name, "seq": mark[0], "head": mark[1], "change": change}
