"""Spark on a directory of Parquet files: one join and one pass of Arrow batches a spend.

Losses are joined with budgets on the keys, batches pass through the kernel (`pricing.py`, the
same as everywhere; no row is ever a Python object), and the next version is written as Parquet.
The pricing is broadcast once. Python and this package must be installed on the workers.
"""

from __future__ import annotations

import json
import os
import re
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from residua.errors import (
    ArgumentError,
    ArgumentTypeError,
    MissingPackage,
    ResiduaError,
    StateUnavailable,
)
from residua.individual.cost_model import check_request
from residua.individual.engine import (
    OpenedSpend,
    SpendRequest,
    TableEngine,
    priced_batch,
    priced_schema,
)
from residua.individual.header import Header
from residua.individual.losses import (
    Findings,
    as_table,
    check_no_duplicates,
    check_types,
    inspect_batch,
    loss_column,
    normalise,
    path_of,
)
from residua.individual.pricing import Pricing
from residua.sizes import LARGEST_COUNT

_INTEGERS = ("bigint", "int", "smallint", "tinyint")
_NUMBERS = (*_INTEGERS, "double", "float")
_NAME = re.compile(r"(?<=\[)[A-Z][A-Z_.]+(?=\])")
"""The name of an error condition, as Spark writes it."""


@contextmanager
def _translated_errors(kind: type[ResiduaError], what: str) -> Iterator[None]:
    """Raise failures of Spark by their names alone: its messages may show values."""
    try:
        yield
        return
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("pyspark", "py4j"):
            raise
        name = _NAME.search(str(error))
        failed = kind(f"{what}: {name[0] if name else type(error).__name__}, see Spark's log")
    raise failed


class SparkEngine(TableEngine):
    """Works in a Spark session: the one given, the active one, or a new local one."""

    def __init__(self, session: Any = None):
        if find_spec("pyspark") is None:
            raise MissingPackage("engine='spark'", "pyspark")
        self._own = False
        self._session = session

    @property
    def session(self) -> Any:
        if self._session is None:
            from pyspark.sql import SparkSession

            self._session = SparkSession.getActiveSession()
            if self._session is None:
                builder = SparkSession.builder.appName("residua")
                if "PYSPARK_GATEWAY_PORT" not in os.environ:
                    # Not under spark-submit, which says itself where to run, and what.
                    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
                    builder = builder.master("local[*]")
                    self._own = True
                self._session = builder.getOrCreate()
        elif self._session.sparkContext._jsc is None:
            raise StateUnavailable("the Spark session was stopped; nothing was spent")
        return self._session

    def close(self) -> None:
        if self._own and self._session is not None:
            self._session.stop()
        self._session, self._own = None, False

    @_translated_errors(ArgumentError, "losses cannot be read by Spark")
    def open_losses(
        self, header: Header, request: SpendRequest, losses: Any, scratch: Path
    ) -> OpenedSpend:
        frame = self._frame(header, losses, scratch)
        kinds = dict(frame.dtypes)
        column = loss_column(header, list(frame.columns))
        check_request(column, request.mechanism, request.levels)
        header = check_types(header, tuple(_key_type(key, kinds[key]) for key in header.keys))
        if column is not None and kinds[column] not in _NUMBERS:
            raise ArgumentTypeError(f"{column} must be numbers, got {kinds[column]}")
        casts = [
            frame[key].cast("bigint" if kind == "int64" else "string").alias(key)
            for key, kind in zip(header.keys, header.key_types, strict=True)
        ]
        if column is not None:
            casts.append(_as_double(frame[column], kinds[column]).alias("loss"))
        frame = frame.select(*casts)

        def inspect(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                text = json.dumps(inspect_batch(header, batch))
                yield pa.RecordBatch.from_pydict({"found": [text]})

        rows = frame.mapInArrow(inspect, "found string").collect()
        found = Findings.total(Findings(*json.loads(row.found)) for row in rows)
        return OpenedSpend(request, header, column, frame, found)

    @_translated_errors(StateUnavailable, "Spark could not charge, nothing was spent")
    def charge(
        self, opened: OpenedSpend, pricing: Pricing, budgets: Path | None, after: Path, active: Path
    ) -> None:
        from pyspark.sql import functions as sf
        from pyspark.sql.window import Window

        header, losses = opened.header, opened.losses
        keys = list(header.keys)
        counted = losses.groupBy(*keys).agg(sf.count("*").alias("n")).where("n > 1")
        repeated = counted.agg(sf.sum(sf.col("n") - 1)).collect()[0][0]
        check_no_duplicates(header, int(repeated or 0))
        asked = losses.withColumn("asked", sf.lit(True))
        if budgets is None:
            rows = asked.withColumn("before", sf.lit(None).cast("bigint"))
        else:
            left = self._budgets(header, budgets).withColumnRenamed("left", "before")
            rows = left.join(asked, keys, "full_outer")
            rows = rows.withColumn("asked", sf.coalesce(sf.col("asked"), sf.lit(False)))
        priced = self._price(header, pricing, rows)
        fits = sf.col("asked") & (sf.col("after") >= 0)
        if header.unknown == "exclude":
            fits &= sf.col("before").isNotNull()
        if header.all_or_none:
            alone = sf.when(sf.col("asked") & ~fits, 0).otherwise(1)
            fits = sf.col("asked") & (sf.min(alone).over(Window.partitionBy("subject")) == 1)
        decided = priced.withColumn("taking_part", fits)
        new = sf.when(sf.col("taking_part"), sf.col("after")).otherwise(sf.col("before"))
        kept = decided.where("taking_part OR before IS NOT NULL")
        kept = kept.select(*keys, new.alias("left"), "taking_part")
        _write(kept, after)
        # Read back what was written, so that the join is done once.
        written = self._read(header, after, "taking_part boolean")
        _write(written.where("taking_part").select(*keys), active)

    @_translated_errors(StateUnavailable, "Spark could not enroll, nothing was written")
    def enroll(self, header: Header, table: Any, budgets: Path | None, after: Path) -> None:
        keys = list(header.keys)
        aside = after.with_name("aside-" + uuid.uuid4().hex)
        aside.mkdir(parents=True)
        pq.write_table(table, aside / "part-0.parquet")
        new = self.session.read.parquet(_url(aside))
        check_no_duplicates(header, new.count() - new.select(*keys).distinct().count())
        if budgets is not None:
            old = self._budgets(header, budgets)
            if not new.join(old, keys, "left_semi").isEmpty():
                raise ArgumentError("subjects must be new, got some that already have a budget")
            new = old.unionByName(new)
        _write(new, after)

    def _price(self, header: Header, pricing: Pricing, rows: Any) -> Any:
        shared = self.session.sparkContext.broadcast(pricing)
        schema = priced_schema(header)

        def charged(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                yield priced_batch(header, shared.value, batch, schema)

        columns = [*_key_columns(header), "before bigint", "asked boolean", "after bigint"]
        return rows.mapInArrow(charged, ", ".join(columns))

    def _budgets(self, header: Header, path: Path) -> Any:
        return self._read(header, path, "left bigint").select(*header.keys, "left")

    def _read(self, header: Header, path: Path, *columns: str) -> Any:
        """What was written by an engine: the schema is known, so no job has to find it out."""
        checked = self.session.read.option("parquet.page.verify-checksum.enabled", "true")
        return checked.schema(", ".join([*_key_columns(header), *columns])).parquet(_url(path))

    def _frame(self, header: Header, losses: Any, scratch: Path) -> Any:
        """Losses as a Spark frame; tables in memory go through a file."""
        if type(losses).__module__.split(".")[0] == "pyspark":
            return losses
        path = path_of(losses)
        if path is None:
            table = as_table(losses)
            column = loss_column(header, table.column_names)
            _, table = normalise(header, table, column)
            if column is not None:
                table = table.rename_columns([*header.keys, column])
            folder = scratch / uuid.uuid4().hex
            folder.mkdir(parents=True)
            pq.write_table(table, folder / "part-0.parquet")
            path = str(folder)
        from pyspark.errors import PySparkException

        try:
            return self.session.read.parquet(_url(Path(path)))
        except PySparkException:
            raise ArgumentError(f"losses must be Parquet files, got {path!r}") from None


def _key_columns(header: Header) -> list[str]:
    types = ["bigint" if kind == "int64" else "string" for kind in header.key_types]
    return [f"{key} {kind}" for key, kind in zip(header.keys, types, strict=True)]


def _write(frame: Any, path: Path) -> None:
    """As Parquet, by the committer under which a task that failed leaves nothing behind."""
    version = "mapreduce.fileoutputcommitter.algorithm.version"
    frame.write.option(version, "1").parquet(_url(path))


def _as_double(column: Any, kind: str) -> Any:
    """Losses as floats; whole numbers that no float is equal to become NaN, and are refused."""
    from pyspark.sql import functions as sf

    double = column.cast("double")
    if kind != "bigint":
        return double
    return sf.when(column > LARGEST_COUNT, sf.lit(float("nan"))).otherwise(double)


def _key_type(name: str, kind: str) -> str:
    if kind in _INTEGERS:
        return "int64"
    if kind == "string":
        return "string"
    raise ArgumentTypeError(f"{name} must be integers or strings, got {kind}")


def _url(path: Path) -> str:
    return path.absolute().as_uri()
