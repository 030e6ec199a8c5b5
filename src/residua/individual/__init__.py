"""One budget per subject: a filter for each person, device or (person, week), as a table.

    state = rz.individual.create("duckdb:///subjects.db", filter=rz.GdpResidueFilter(mu=1.0))
    spent = state.spend(losses, spend_id="q-17")  # spent.active, spent.replayed

Engines: numpy in memory, DuckDB on disk, Spark on Parquet; the same spend gives the same bits on
each. Needs `pip install 'residua[individual]'` (and `[spark]` for Spark).
"""

from residua.errors import MissingPackage

try:
    import pyarrow as _pyarrow  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingPackage.behind(error, "residua.individual") from None

from residua.individual.engine import SpendResult
from residua.individual.state import State, create, open

__all__ = ["SpendResult", "State", "create", "open"]
