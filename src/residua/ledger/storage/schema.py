"""The tables of a ledger, and what `meta` says of it.

`records` is the truth: every other row can be worked out again from it. `budgets` has each chain's
head and what the committer needs at a glance (open holds, the end of a window); there is no state
in it, because the head record holds the state.
"""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Connection,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    delete,
    insert,
    inspect,
    select,
)

from residua.errors import NewerLedger, NotALedger

FORMAT = "residua ledger"
VERSION = 3
"""The version of these tables."""

METADATA = MetaData()

meta = Table(
    "residua_meta",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
budgets = Table(
    "residua_budgets",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False, unique=True),
    Column("parent", Text),
    Column("partition", Text),
    Column("data", Text),
    Column("relation", Text, nullable=False),
    Column("unit", Text, nullable=False),
    Column("window", Float),
    Column("window_ends", Text),
    Column("created", Text, nullable=False),
    Column("filter", Text, nullable=False),
    Column("head_seq", Integer, nullable=False),
    Column("head_hash", Text, nullable=False),
    Column("retired", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("spent", Integer, nullable=False),
    Column("children", Text, nullable=False),
    Column("holds", Text, nullable=False),
    Column("declared", Text, nullable=False),
)
records = Table(
    "residua_records",
    METADATA,
    Column("budget_id", Integer, primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("hash", Text, nullable=False),
    Column("text", Text, nullable=False),
)
keys = Table(
    "residua_keys",
    METADATA,
    Column("principal", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("request", Text, nullable=False),
    Column("budget", Text, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("held", Text),
)
holds = Table(
    "residua_holds",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("members", Text, nullable=False),
    Column("mechanism", Text, nullable=False),
    Column("assumed", Integer, nullable=False),
    Column("made", Text, nullable=False),
    Column("expires", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("ended_by", Text),
    Index("residua_holds_by_status", "status", "made"),
)
tables = Table(
    "residua_tables",
    METADATA,
    Column("hash", Text, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
answers = Table(
    "residua_answers",
    METADATA,
    Column("principal", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("question", Text, nullable=False),
    Column("released", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Index("residua_answers_by_question", "question", "principal"),
)
"""Answers that were released, by the key of their receipt, for a question that is repeated."""

tokens = Table(
    "residua_tokens",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("scope", Text),
    Column("hash", Text, nullable=False),
    Column("created", Text, nullable=False),
    Column("expires", Text),
    Column("revoked", Text),
)
"""The access tokens of a service."""

HOME = "home"
"""The fact that says which database this is, by `Store.identity`, where that is known."""
UNANCHORED = "unanchored"
"""The incarnation of the anchor that a recovery replaces, from its commit until that is done."""
_MEMBERS = frozenset({"format", "schema", "ledger", "incarnation"})


def facts_in(connection: Connection) -> dict[str, str]:
    """The facts in `meta`; none where there is no such table."""
    if not inspect(connection).has_table(meta.name):
        return {}
    rows = connection.execute(select(meta.c.name, meta.c.value))
    return {row.name: row.value for row in rows}


def set_fact(connection: Connection, name: str, value: str | None) -> None:
    """Have `meta` say something else, or no longer say anything of this."""
    connection.execute(delete(meta).where(meta.c.name == name))
    if value is not None:
        connection.execute(insert(meta).values(name=name, value=value))


def check_facts(place: object, facts: dict[str, str]) -> None:
    """Raise unless this is a ledger of a version that we know."""
    if facts.get("format") != FORMAT or not set(facts) >= _MEMBERS:
        raise NotALedger(f"{place} has a table residua_meta, but is not a ledger")
    version = facts["schema"]
    if not version.isdigit():
        raise NotALedger(f"{place} has the unknown schema {version!r}")
    if int(version) > VERSION:
        raise NewerLedger(
            f"{place} has schema {version}; this residua knows up to {VERSION}: use a newer one"
        )
    if int(version) < VERSION:
        raise NotALedger(f"{place} has schema {version}, which no released residua wrote")
