"""The numpy engine: a state in this process's memory, and Parquet files that pass through it.

Nothing of a state in memory survives the process: it is for simulations, training and tests. On
Parquet files no Java is needed, and the whole state is read at once.

Keys are an Arrow table and what is left an array beside it; keys are looked up by hashing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from residua.errors import ArgumentError, TooLargeError
from residua.individual.engine import (
    OpenedSpend,
    SpendRequest,
    SpendResult,
    Store,
    TableEngine,
    key_schema,
    open_table,
)
from residua.individual.header import Header
from residua.individual.losses import (
    as_table,
    check_no_duplicates,
    check_types,
    flat,
    newcomers,
)
from residua.individual.pricing import Integers, Pricing


def places(held: pa.Table, wanted: pa.Table) -> Integers:
    """Where each wanted key is among those held, -1 for the unknown."""
    if wanted.equals(held):
        return np.arange(wanted.num_rows)
    found = pc.index_in(_one_column(wanted), value_set=_one_column(held))
    return np.asarray(flat(pc.fill_null(found, -1)).to_numpy(zero_copy_only=False))


def _one_column(keys: pa.Table) -> Any:
    """Keys as one column; of two columns, texts that start with the length of the first one."""
    if keys.num_columns == 1:
        return keys.column(0)
    first, second = (column.cast(pa.string()) for column in keys.columns)
    return pc.binary_join_element_wise(pc.utf8_length(first).cast(pa.string()), first, second, ":")


class Columns:
    """Keys and what is left: eight bytes of budget a subject.

    Both are replaced together, atomically, after everything that may fail or be interrupted.
    """

    def __init__(self, header: Header):
        self.header = header
        self._held: tuple[pa.Table, Integers] = (
            key_schema(header).empty_table(),
            np.empty(0, dtype=np.int64),
        )

    @classmethod
    def read(cls, header: Header, table: Any) -> Columns:
        """From a table of keys and `left`."""
        made = cls(header)
        left = np.array(flat(table["left"]).to_numpy(zero_copy_only=False))
        made._held = (table.select(list(header.keys)), left)
        return made

    def table(self) -> Any:
        """Keys and `left`, in the order in which subjects came."""
        keys, left = self._held
        return keys.append_column("left", pa.array(left))

    def add(self, keys: Any, left: Any) -> None:
        """Add subjects with what each has."""
        held, had = self._held
        if np.any(places(held, keys) >= 0):
            raise ArgumentError("subjects must be new, got some that already have a budget")
        check_no_duplicates(self.header, _count_repeated(keys))
        self._held = (_joined(held, keys), np.concatenate([had, np.asarray(left, dtype=np.int64)]))

    def spend(self, losses: Any, pricing: Pricing) -> Any:
        """Charge the losses; the keys of those that take part, in the order of the losses."""
        loss = None
        if "loss" in losses.column_names:
            loss = flat(losses["loss"]).to_numpy(zero_copy_only=False)
        keys = losses.select(list(self.header.keys))
        held, had = self._held
        place = places(held, keys)
        known = place >= 0
        self._check_unique(keys, place[known], known)
        left = np.full(place.size, self.header.units.capacity, dtype=np.int64)
        left[known] = had[place[known]]
        after = pricing.charge(left, loss)
        active = after >= 0
        if self.header.unknown == "exclude":
            active &= known
        if self.header.all_or_none:
            active = all_or_none(keys, active)
        new, moved = active & ~known, active & known
        whole = np.concatenate([had, after[new]])
        whole[place[moved]] = after[moved]
        self._held = (_joined(held, keys.filter(pa.array(new))), whole)
        return keys.filter(pa.array(active))

    def _check_unique(self, keys: Any, found: Integers, known: Any) -> None:
        seen = np.zeros(self._held[1].size, dtype=np.bool_)
        seen[found] = True
        repeated = found.size - int(np.count_nonzero(seen))
        if not known.all():
            repeated += _count_repeated(keys.filter(pa.array(~known)))
        check_no_duplicates(self.header, repeated)


def _joined(held: pa.Table, new: pa.Table) -> pa.Table:
    return pa.concat_tables([held, new]).combine_chunks() if new.num_rows else held


def _count_repeated(keys: Any) -> int:
    """How many rows have a key that an earlier row has."""
    if not keys.num_rows:
        return 0
    unique = keys.group_by(keys.column_names, use_threads=False).aggregate([])
    return int(keys.num_rows - unique.num_rows)


def all_or_none(keys: Any, active: Any) -> Any:
    """All rows of a subject or none."""
    if active.all():
        return active
    subject = keys["subject"]
    out = pc.unique(subject.filter(pa.array(~active)))
    return active & ~flat(pc.is_in(subject, value_set=out)).to_numpy(zero_copy_only=False)


class MemoryStore(Store):
    """Columns, the spends so far, and a lock."""

    def __init__(self, header: Header, where: str = "memory:"):
        self.header, self.where = header, where
        self._lock = Lock()
        self._columns: Columns | None = None
        self._spends: dict[str, tuple[str, Any]] = {}

    def spend(self, request: SpendRequest, losses: Any) -> SpendResult:
        opened = open_table(self.header, request, losses)
        digest = opened.inspect()
        with self._lock:
            if request.spend_id in self._spends:
                earlier, active = self._spends[request.spend_id]
                request.check_same(earlier, digest)
                return SpendResult(request.spend_id, True, active)
            columns = self._columns_for(opened.header)
            with _translated_errors():
                active = columns.spend(opened.losses, opened.pricing())
            self._columns, self.header = columns, columns.header
            self._spends[request.spend_id] = (digest, active)
            return SpendResult(request.spend_id, False, active)

    def enroll(self, subjects: Any) -> None:
        header, table = newcomers(self.header, as_table(subjects, "subjects"))
        with self._lock:
            columns = self._columns_for(header)
            with _translated_errors():
                columns.add(table.select(list(header.keys)), flat(table["left"]))
            self._columns, self.header = columns, columns.header

    def everything(self) -> Any:
        with self._lock:
            return None if self._columns is None else self._columns.table()

    def close(self) -> None:
        return None

    def _columns_for(self, header: Header) -> Columns:
        """The columns of the state, or empty ones."""
        # Another thread may have set the types of keys meanwhile.
        types = tuple(kind for kind in header.key_types if kind is not None)
        now = check_types(self.header, types)
        return Columns(now) if self._columns is None else self._columns


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Raise an error of this package where Arrow cannot hold a column of texts."""
    with suppress(pa.ArrowException):
        yield
        return
    raise TooLargeError("keys must be at most 2 GB of text in memory, got more: use duckdb:///FILE")


class NumpyEngine(TableEngine):
    """Reads everything, works in memory, writes everything."""

    def open_losses(
        self, header: Header, request: SpendRequest, losses: Any, _scratch: Path
    ) -> OpenedSpend:
        return open_table(header, request, losses)

    def charge(
        self, opened: OpenedSpend, pricing: Pricing, budgets: Path | None, after: Path, active: Path
    ) -> None:
        columns = _read(opened.header, budgets)
        taking_part = columns.spend(opened.losses, pricing)
        _write(columns.table(), after)
        _write(taking_part, active)

    def enroll(self, header: Header, table: Any, budgets: Path | None, after: Path) -> None:
        columns = _read(header, budgets)
        keys = table.select(list(header.keys))
        columns.add(keys, flat(table["left"]))
        _write(columns.table(), after)


def _read(header: Header, budgets: Path | None) -> Columns:
    if budgets is None:
        return Columns(header)
    table = pq.read_table(budgets, columns=[*header.keys, "left"], page_checksum_verification=True)
    return Columns.read(header, table)


def _write(table: Any, directory: Path) -> None:
    directory.mkdir(parents=True)
    pq.write_table(table, directory / "part-0.parquet", write_page_checksum=True)
