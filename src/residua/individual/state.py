"""One budget per subject, as a table that queries spend from.

    state = rz.individual.create("duckdb:///subjects.db", filter=rz.GdpResidueFilter(mu=1.0))
    spent = state.spend(losses, spend_id="q-17")
    if not spent.replayed:
        ...  # compute on spent.active, add the noise, release once

**Who is out of budget is data.** What is left of anyone's budget, and who takes part in a query,
must never be released: answers are computed on the active set, with noise, and only they are.
`docs/proofs/individual.md` has the theorem and its conditions.

**Addresses.** `memory:` is this process; `duckdb:///file.db` (or `duckdb:file.db`) is DuckDB;
`parquet:DIR` is a directory of Parquet files, with `engine="spark"` (the default there) or
`engine="numpy"`.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from residua import checks
from residua.errors import ArgumentError, MissingPackage
from residua.filters.query import Query
from residua.individual.cost_model import (
    IndividualFilter,
    check_request,
    in_parameter,
    parameter,
)
from residua.individual.engine import SpendRequest, SpendResult, Store, check_id
from residua.individual.header import Header, make_header
from residua.individual.losses import flat
from residua.individual.memory import MemoryStore
from residua.individual.pricing import given_levels
from residua.pld.pld import Pld


class State:
    """Budgets of subjects in one store. Made by `individual.create` or `individual.open`."""

    def __init__(self, store: Store):
        self._store = store

    def spend(
        self,
        losses: Any,
        *,
        spend_id: str,
        mechanism: Query | None = None,
        levels: Any = None,
    ) -> SpendResult:
        """Charge each subject its own loss; the new state is durable when this returns.

        **The active set depends on data and must not be released.** Compute the answer on exactly
        these subjects, with noise that does not depend on them.

        Args:
            losses: an Arrow table, a pandas frame or the path of a Parquet file, with a column
                `subject` (and `epoch`, if the state has epochs) and one of `nu` (Gaussian), `eps`
                (pure DP) or `sensitivity` (of the one `mechanism`, Gaussian or Laplace noise); or
                with none of these and a `mechanism` that is the same for all. A loss may depend
                on the public transcript and on that subject's own data, and on nothing else.
            spend_id: names the spend. The same id again charges nothing and returns the same
                active set with `replayed` true: the charge permits one release, which may have
                happened already.
            mechanism: what a column `sensitivity` scales, or what all subjects are charged for.
            levels: up to 1,024 public values that `eps` (or `sensitivity`) is rounded up onto, in
                place of the built-in ones.

        Returns:
            The subjects that may take part, as `active`.

        Raises:
            ArgumentError: the losses are not good, or the same `spend_id` came with others.
            StateUnavailable: the store cannot be used now; nothing was spent.
        """
        request = SpendRequest(
            check_id(spend_id),
            mechanism,
            None if levels is None else tuple(given_levels(levels).tolist()),
        )
        if mechanism is not None:
            check_request("sensitivity", mechanism, None)
        return self._store.spend(request, losses)

    def enroll(self, subjects: Any) -> None:
        """Add new subjects.

        A table with `subject` (and `epoch`), and `capacity` where it differs from the filter's:
        in the filter's own parameter, `mu`, `eps` or `rho`, and at most that of the filter.
        """
        self._store.enroll(subjects)

    @property
    def filter(self) -> IndividualFilter:
        """The filter that is kept for each subject."""
        return self._store.header.filter

    @property
    def unit(self) -> str:
        """What is protected: `subject` or `subject-epoch`."""
        return self._store.header.unit

    @property
    def guarantee(self) -> Pld:
        """What everything together reveals of one unit at most, whatever is asked.

        With epochs under the unit `subject`, of one of its epochs: see `guarantee_over`.
        """
        return self.filter.guarantee

    def guarantee_over(self, epochs: int) -> Pld:
        """What everything reveals of a subject that is present in this many epochs."""
        return checks.count("epochs", epochs) * self.guarantee

    def export_sensitive_state_never_release(self) -> pa.Table:
        """Everybody's remaining budget: as private as the data itself.

        What is left depends on what each subject's data looked like, so this table, counts of it
        and who is missing from it must not be released, logged or shown to an analyst. It is for
        backups and audits inside the same trust boundary. `left` is in units of
        `10^-unit_digits` (exact); `remaining` is the filter's own parameter, rounded down.
        """
        header = self._store.header
        table = self._store.everything()
        if table is None:
            return pa.table({})
        left = flat(table["left"]).to_numpy(zero_copy_only=False)
        remaining = pa.array(in_parameter(header.filter, left))
        digits = {"unit_digits": str(header.units.digits), "parameter": parameter(header.filter)}
        return table.append_column("remaining", remaining).replace_schema_metadata(digits)

    def close(self) -> None:
        """Close files and connections."""
        self._store.close()

    def __enter__(self) -> State:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        header = self._store.header
        epochs = f", epochs=True, unit={header.unit!r}" if header.epochs else ""
        return (
            f"individual.create({self._store.where!r}, filter={header.filter!r},"
            f" unknown={header.unknown!r}{epochs})"
        )


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
    """Create a state, or open an existing one of the same filter and unit.

    Args:
        address: `memory:`, `duckdb:///FILE` or `parquet:DIR`.
        filter: the filter that each subject gets.
        unknown: what happens to subjects that are not in the state: `start` gives them the
            filter's capacity, `exclude` leaves them out.
        epochs: whether keys are pairs (subject, epoch), each with its own budget.
        unit: with epochs, `subject-epoch` (the default) charges each pair on its own; under
            `subject` a subject takes part with all the epochs it has in a query or with none.
        engine: `spark` (the default) or `numpy`, for Parquet.
        relation: `add-remove`, the only relation that is supported.
        spark: the Spark session to use.

    Raises:
        ArgumentError: the address is not one, or another state is there.
    """
    requested = make_header(filter, unknown, epochs, unit, relation)
    return State(_store(address, engine, requested, spark))


def open(address: str, *, engine: str | None = None, spark: Any = None) -> State:
    """Open an existing state, with the filter and unit that it was created with."""
    return State(_store(address, engine, None, spark))


def _store(address: Any, engine: Any, requested: Header | None, spark: Any) -> Store:
    kind, place = _parse(address)
    engines = _ENGINES[kind]
    chosen = engines[0] if engine is None else checks.one_of("engine", engine, engines)
    if spark is not None and chosen != "spark":
        raise ArgumentError(f"spark must come with engine='spark', got engine={chosen!r}")
    if kind == "memory":
        if requested is None:
            raise ArgumentError(
                "address must be on disk, got 'memory:' (a state in memory cannot be opened again)"
            )
        return MemoryStore(requested, address)
    if kind == "duckdb":
        try:
            from residua.individual.duckdb import DuckStore
        except ModuleNotFoundError as error:
            raise MissingPackage.behind(error, f"the address {address!r}") from None

        return DuckStore(place, address, requested)
    from residua.individual.parquet import ParquetStore

    if chosen == "spark":
        from residua.individual.spark import SparkEngine

        return ParquetStore(place, address, requested, SparkEngine(spark))
    from residua.individual.memory import NumpyEngine

    return ParquetStore(place, address, requested, NumpyEngine())


def _parse(address: Any) -> tuple[str, Path]:
    checks.instance("address", address, str, "a string")
    kind, colon, rest = address.partition(":")
    wanted = "'memory:', 'duckdb:///FILE' or 'parquet:DIR'"
    if not colon or kind not in _ENGINES or (kind == "memory") != (rest == ""):
        raise ArgumentError(f"address must be {wanted}, got {address!r}")
    # As in SQLAlchemy: three slashes are a relative path, four an absolute one.
    if kind == "duckdb" and rest.startswith("///"):
        rest = rest[3:]
    checks.require(bool(rest) or kind == "memory", "address", wanted, address)
    return kind, Path(rest)
