"""The tables of a ledger, and the migrations that create them.

`records` is the truth: every other row can be worked out again from it. `budgets` has each chain's
head and what the gate needs at a glance (open holds, the end of a window); there is no state in it,
because the head record holds the state. Migrations are an append-only list of statements: what has
been released is never edited.
"""

from __future__ import annotations

from sqlalchemy import Column, Float, Integer, LargeBinary, MetaData, Table, Text

FORMAT = "residua ledger"

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
)
tables = Table(
    "residua_tables",
    METADATA,
    Column("hash", Text, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE residua_budgets (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, parent TEXT, partition TEXT,
            data TEXT, relation TEXT NOT NULL, unit TEXT NOT NULL, "window" DOUBLE PRECISION,
            window_ends TEXT, created TEXT NOT NULL, filter TEXT NOT NULL,
            head_seq INTEGER NOT NULL, head_hash TEXT NOT NULL, retired INTEGER NOT NULL,
            generation INTEGER NOT NULL, spent INTEGER NOT NULL, children TEXT NOT NULL,
            holds TEXT NOT NULL)""",
        """CREATE TABLE residua_records (
            budget_id INTEGER NOT NULL, seq INTEGER NOT NULL, hash TEXT NOT NULL,
            text TEXT NOT NULL, PRIMARY KEY (budget_id, seq))""",
        """CREATE TABLE residua_keys (
            principal TEXT NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL,
            budget TEXT NOT NULL, seq INTEGER NOT NULL, held TEXT,
            PRIMARY KEY (principal, key))""",
        """CREATE TABLE residua_holds (
            id TEXT PRIMARY KEY, principal TEXT NOT NULL, key TEXT NOT NULL,
            members TEXT NOT NULL, mechanism TEXT NOT NULL, assumed INTEGER NOT NULL,
            made TEXT NOT NULL, expires TEXT NOT NULL, status TEXT NOT NULL, ended_by TEXT)""",
        "CREATE INDEX residua_holds_by_status ON residua_holds (status, made)",
        "CREATE TABLE residua_tables (hash TEXT PRIMARY KEY, content {blob} NOT NULL)",
    ),
    (
        """CREATE TABLE residua_tokens (
            id TEXT PRIMARY KEY, principal TEXT NOT NULL, role TEXT NOT NULL, scope TEXT,
            hash TEXT NOT NULL, created TEXT NOT NULL, expires TEXT, revoked TEXT)""",
    ),
)
"""The statements that each version of the schema adds; version n has the first n entries."""

VERSION = len(MIGRATIONS)
READABLE = 1
"""The oldest version that is read as it is: later additions are not needed for reading."""
META = "CREATE TABLE IF NOT EXISTS residua_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
