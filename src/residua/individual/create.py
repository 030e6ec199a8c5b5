"""Where a state lives: addresses, and the engine that goes with each.

`memory:` is this process; `duckdb:///file.db` (or `duckdb:file.db`) is DuckDB; `parquet:DIR` is a
directory of Parquet files, with `engine="spark"` (the default there) or `engine="numpy"`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError, MissingPackage
from residua.individual.engines.engine import Store
from residua.individual.engines.memory import MemoryStore
from residua.individual.header import Header, header
from residua.individual.state import State

_ENGINES = {"memory": ("numpy",), "duckdb": ("duckdb",), "parquet": ("spark", "numpy")}


def create(
    address: str,
    *,
    filter: Any,
    unknown: str = "start",
    epochs: bool = False,
    unit: str | None = None,
    engine: str | None = None,
    relation: str = "add-remove",
    spark: Any = None,
) -> State:
    """Create a state, or open the one that is there if it is of the same filter and unit.

    `unknown` says what happens to subjects that are not in the state: `start` gives them the
    filter's capacity, `exclude` leaves them out. With `epochs=True` keys are pairs (subject,
    epoch), each with a budget of its own: under the unit `subject-epoch` (the default then) each
    is charged on its own; under the unit `subject` a subject takes part with all the epochs it
    has in a query or with none.
    """
    asked = header(filter, unknown, epochs, unit, relation)
    return State(_store(address, engine, asked, spark))


def open(address: str, *, engine: str | None = None, spark: Any = None) -> State:
    """Open a state that is there, with the filter and unit that it was created with."""
    return State(_store(address, engine, None, spark))


def _store(address: Any, engine: Any, asked: Header | None, spark: Any) -> Store:
    kind, place = _parsed(address)
    engines = _ENGINES[kind]
    chosen = engines[0] if engine is None else checks.one_of("engine", engine, engines)
    if spark is not None and chosen != "spark":
        raise ArgumentError(f"spark goes with engine='spark', got engine={chosen!r}")
    if kind == "memory":
        if asked is None:
            raise ArgumentError("address must be on disk to be opened, got 'memory:'")
        return MemoryStore(asked, address)
    if kind == "duckdb":
        try:
            from residua.individual.engines.duckdb import DuckStore
        except ModuleNotFoundError as error:
            raise MissingPackage.behind(error, f"the address {address!r}") from None

        return DuckStore(place, address, asked)
    from residua.individual.engines.parquet import ParquetStore

    if chosen == "spark":
        from residua.individual.engines.spark import SparkEngine

        return ParquetStore(place, address, asked, SparkEngine(spark))
    from residua.individual.engines.numpy_engine import NumpyEngine

    return ParquetStore(place, address, asked, NumpyEngine())


def _parsed(address: Any) -> tuple[str, Path]:
    if not isinstance(address, str):
        raise ArgumentTypeError(f"address must be a string, got {checks.shown(address)}")
    kind, colon, rest = address.partition(":")
    wanted = "'memory:', 'duckdb:///FILE' or 'parquet:DIR'"
    if not colon or kind not in _ENGINES or (kind == "memory") != (rest == ""):
        raise ArgumentError(f"address must be {wanted}, got {address!r}")
    # As in SQLAlchemy: three slashes are a relative path, four an absolute one.
    if kind == "duckdb" and rest.startswith("///"):
        rest = rest[3:]
    checks.require(bool(rest) or kind == "memory", "address", wanted, address)
    return kind, Path(rest)
