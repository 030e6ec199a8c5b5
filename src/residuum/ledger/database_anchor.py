"""An anchor in another database than the ledger's: one row for each budget."""

from __future__ import annotations

from sqlalchemy import Column, Integer, MetaData, Table, Text, delete, insert, select, text, update

from residuum.ledger.anchor import Anchor, Anchored, Marks
from residuum.ledger.place import Place
from residuum.ledger.store import Store, postgres

_MADE = """CREATE TABLE IF NOT EXISTS residuum_anchors (
    ledger TEXT NOT NULL, budget TEXT NOT NULL, seq INTEGER NOT NULL, head TEXT NOT NULL,
    PRIMARY KEY (ledger, budget))"""

_A = Table(
    "residuum_anchors",
    MetaData(),
    Column("ledger", Text, primary_key=True),
    Column("budget", Text, primary_key=True),
    Column("seq", Integer, nullable=False),
    Column("head", Text, nullable=False),
)
_ITSELF = ""
"""The row that has the incarnation in place of a hash; no budget has that name."""


class DatabaseAnchor(Anchor):
    """Rows in a database of its own, durable as that database is."""

    def __init__(self, place: Place, ledger: str):
        self.ledger = ledger
        self.store = _store(place)
        with self.store.writing() as connection:
            self.store.lock_schema(connection)
            connection.execute(text(_MADE))
            self.store.commit(connection, lambda _: True)

    def __str__(self) -> str:
        return str(self.store.place)

    def read(self) -> Anchored | None:
        with self.store.reading() as connection:
            rows = connection.execute(select(_A).where(_A.c.ledger == self.ledger)).all()
        said = {row.budget: (row.seq, row.head) for row in rows}
        if _ITSELF not in said:
            return None
        _, incarnation = said.pop(_ITSELF)
        return Anchored(self.ledger, incarnation, said)

    def create(self, said: Anchored) -> None:
        if self.read() is None:
            self._put(said, replace=False)

    def start(self, said: Anchored) -> None:
        self._put(said, replace=True)

    def _put(self, said: Anchored, replace: bool) -> None:
        with self.store.writing() as connection:
            self.store.lock_schema(connection)
            mine = _A.c.ledger == self.ledger
            there = connection.execute(select(_A.c.budget).where(mine)).first()
            if there is not None and not replace:
                return
            connection.execute(delete(_A).where(mine))
            marks = {_ITSELF: (0, said.incarnation), **said.marks}
            connection.execute(insert(_A), [_row(self.ledger, n, m) for n, m in marks.items()])
            self.store.commit(connection, lambda _: False)

    def write(self, marks: Marks) -> None:
        with self.store.writing() as connection:
            self.store.lock_schema(connection)
            for name, mark in sorted(marks.items()):
                mine = (_A.c.ledger == self.ledger) & (_A.c.budget == name)
                known = connection.execute(select(_A.c.seq).where(mine)).scalar()
                row = _row(self.ledger, name, mark)
                if known is None:
                    connection.execute(insert(_A), row)
                elif known < mark[0]:
                    connection.execute(update(_A).where(mine).values(row))
            self.store.commit(connection, lambda _: False)

    def close(self) -> None:
        self.store.close()


def _row(ledger: str, name: str, mark: tuple[int, str]) -> dict[str, object]:
    return {"ledger": ledger, "budget": name, "seq": mark[0], "head": mark[1]}


def _store(place: Place) -> Store:
    if place.path is None:
        return postgres(place, accept_async_standby=True)
    from residuum.ledger.sqlite import SqliteStore

    return SqliteStore(place)
