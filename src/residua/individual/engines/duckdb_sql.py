"""The statements of the DuckDB engine, in one place."""

from __future__ import annotations

import re
from pathlib import Path

from residua.individual.header import Header
from residua.individual.losses import LARGEST_EXACT

_SQL_TYPES = {"int64": "BIGINT", "string": "VARCHAR"}


def names(header: Header, prefix: str = "") -> str:
    """The key columns."""
    return ", ".join(f"{prefix}{key}" for key in header.keys)


def key_columns(header: Header) -> str:
    kinds = zip(header.keys, header.key_types, strict=True)
    return ", ".join(f"{key} {_SQL_TYPES[kind or 'int64']}" for key, kind in kinds)


def catalogue() -> tuple[str, ...]:
    """The tables that every state has."""
    return (
        "CREATE TABLE meta (name VARCHAR NOT NULL, value VARCHAR NOT NULL)",
        "CREATE TABLE spends (spend_id VARCHAR PRIMARY KEY, number BIGINT NOT NULL,"
        " digest VARCHAR NOT NULL)",
    )


def tables(header: Header) -> tuple[str, ...]:
    """The tables that need the types of keys."""
    keys = key_columns(header)
    return (
        f'CREATE TABLE budgets ({keys}, "left" BIGINT)',
        f"CREATE TABLE active (number BIGINT, {keys})",
    )


def parquet(path: Path) -> str:
    """Files to select from; their names are names, not patterns."""
    literal = re.sub(r"([*?\[])", r"[\1]", str(path)) + ("/**/*.parquet" if path.is_dir() else "")
    quoted = literal.replace("'", "''")
    return f"read_parquet('{quoted}')"


def source(header: Header, given: str, column: str | None, whole: bool = False) -> str:
    """Losses with the types that the engine uses.

    Where they are `whole` numbers, those that no float is equal to become NaN, and are refused.
    """
    types = [_SQL_TYPES[kind or "int64"] for kind in header.key_types]
    kinds = zip(header.keys, types, strict=True)
    keys = ", ".join(f"CAST({key} AS {kind}) AS {key}" for key, kind in kinds)
    if column is None:
        return f"SELECT {keys} FROM {given}"
    loss = f"CAST({column} AS DOUBLE)"
    if whole:
        loss = f"CASE WHEN {column} > {LARGEST_EXACT} THEN 'NaN'::DOUBLE ELSE {loss} END"
    return f"SELECT {keys}, {loss} AS loss FROM {given}"


def count_repeated(header: Header, relation: str) -> str:
    """How many rows have a key that another row has."""
    keys = names(header)
    return (
        f"SELECT coalesce(sum(n - 1), 0) FROM (SELECT count(*) AS n FROM {relation}"
        f" GROUP BY {keys} HAVING count(*) > 1)"
    )


def join_budgets(header: Header, losses: str, column: str | None, whole: bool) -> str:
    """Losses beside what is left: of the subjects that are asked, or of all."""
    keys = ", ".join(f"coalesce(l.{key}, b.{key}) AS {key}" for key in header.keys)
    loss = "" if column is None else ", l.loss AS loss"
    kind = "FULL OUTER" if whole else "LEFT"
    on = " AND ".join(f"l.{key} = b.{key}" for key in header.keys)
    return (
        f'SELECT {keys}, b."left" AS before, l.subject IS NOT NULL AS asked{loss}'
        f" FROM ({losses}) l {kind} JOIN budgets b ON {on}"
    )


def decide(header: Header) -> str:
    """From what each row would have left to who takes part."""
    fits = "asked AND after >= 0"
    if header.unknown == "exclude":
        fits += " AND before IS NOT NULL"
    if header.all_or_none:
        alone = f"coalesce(NOT asked OR ({fits}), false)"
        fits = f"asked AND bool_and({alone}) OVER (PARTITION BY subject)"
    return (
        f"CREATE TEMP TABLE decided AS SELECT {names(header)}, before, after,"
        f" coalesce({fits}, false) AS taking_part FROM priced"
    )


def rewrite(header: Header) -> tuple[str, ...]:
    """A new table of budgets in place of the old one."""
    keys = names(header)
    return (
        f"CREATE TABLE next_budgets AS SELECT {keys}, CASE WHEN taking_part THEN after"
        ' ELSE before END AS "left" FROM decided WHERE taking_part OR before IS NOT NULL',
        "DROP TABLE budgets",
        "ALTER TABLE next_budgets RENAME TO budgets",
    )


def update(header: Header) -> tuple[str, ...]:
    """The same in place, for few rows."""
    keys = names(header)
    on = " AND ".join(f"budgets.{key} = d.{key}" for key in header.keys)
    return (
        f'UPDATE budgets SET "left" = d.after FROM decided d WHERE {on} AND d.taking_part'
        " AND d.before IS NOT NULL",
        f"INSERT INTO budgets SELECT {keys}, after FROM decided"
        " WHERE taking_part AND before IS NULL",
    )
