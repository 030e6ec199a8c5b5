"""The numpy engine: a state in this process's memory, and Parquet files that pass through it.

Nothing of a state in memory survives the process: it is for simulations, training and tests. On
Parquet files no Java is needed, and the whole state is read at once.

**Columns.** One integer key is kept as a sorted array. Strings, and pairs with an epoch, are coded
as integers through dictionaries of the values seen so far, and the codes are kept sorted. An index
is a value: more keys make another one, so that whatever fails on the way leaves the old one whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from residua.errors import ArgumentError, TooLargeError
from residua.individual.engines.engine import (
    Losses,
    SpendRequest,
    SpendResult,
    Store,
    TableEngine,
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

MOST_EPOCHS = 1 << 24
"""Different epochs: a code has this many places for each subject."""


@dataclass(frozen=True, eq=False)
class SortedKeys:
    """Unique integers in the order in which they came, found by bisection."""

    keys: Integers
    _sorted: Integers
    _places: Integers | None = None
    """Where the sorted keys are; None if they came in order."""

    def places(self, wanted: Integers) -> Integers:
        """The place of each, -1 for the unknown."""
        if wanted.size == self.keys.size and np.array_equal(wanted, self.keys):
            return np.arange(wanted.size)
        if not self.keys.size:
            return np.full(wanted.size, -1, dtype=np.int64)
        # In order, so that neighbours are found in the same corner of memory.
        order, found = np.argsort(wanted), np.empty(wanted.size, dtype=np.int64)
        found[order] = np.searchsorted(self._sorted, wanted[order])
        found[found == self._sorted.size] = 0
        hit = self._sorted[found] == wanted
        place = found if self._places is None else self._places[found]
        return np.where(hit, place, -1)

    def extend(self, new: Integers) -> SortedKeys:
        """With keys that are not there yet."""
        whole = np.concatenate([self.keys, new])
        if self._places is None and np.all(whole[1:] > whole[:-1]):
            return SortedKeys(whole, whole)
        places = np.argsort(whole, kind="stable")
        return SortedKeys(whole, whole[places], places)


@dataclass(frozen=True, eq=False)
class KeyIndex:
    """Keys of one or two columns."""

    _names: tuple[str, ...]
    _plain: bool
    """Whether keys are one column of integers."""
    _values: tuple[Any, ...]
    _codes: SortedKeys = SortedKeys(*np.empty((2, 0), dtype=np.int64))

    @classmethod
    def of(cls, names: tuple[str, ...], types: tuple[str, ...]) -> KeyIndex:
        """Without any keys."""
        arrow = {"int64": pa.int64(), "string": pa.string()}
        return cls(names, types == ("int64",), tuple(pa.array([], arrow[kind]) for kind in types))

    def __len__(self) -> int:
        return int(self._codes.keys.size)

    def places(self, table: Any) -> Integers:
        """The place of each row's key, -1 for the unknown."""
        return self._codes.places(self._encode(table))

    def extend(self, table: Any) -> KeyIndex:
        """With rows whose keys are not there yet."""
        grown = self
        if not self._plain:
            values = tuple(
                _add_new(had, table[name])
                for had, name in zip(self._values, self._names, strict=True)
            )
            if len(values) > 1 and len(values[1]) > MOST_EPOCHS:
                raise TooLargeError(f"epochs must be at most {MOST_EPOCHS}, got more")
            grown = replace(self, _values=values)
        return replace(grown, _codes=self._codes.extend(grown._encode(table)))

    def key_table(self) -> Any:
        """The keys, in the order of their places."""
        codes = self._codes.keys
        if self._plain:
            return pa.table({self._names[0]: codes})
        first = codes // MOST_EPOCHS if len(self._names) > 1 else codes
        columns = {self._names[0]: self._values[0].take(pa.array(first))}
        if len(self._names) > 1:
            columns[self._names[1]] = self._values[1].take(pa.array(codes % MOST_EPOCHS))
        return pa.table(columns)

    def _encode(self, table: Any) -> Integers:
        if self._plain:
            return np.asarray(flat(table[self._names[0]]).to_numpy(zero_copy_only=False))
        parts = [self._indices(i, table[name]) for i, name in enumerate(self._names)]
        if len(parts) == 1:
            return parts[0]
        return np.where((parts[0] < 0) | (parts[1] < 0), -1, parts[0] * MOST_EPOCHS + parts[1])

    def _indices(self, i: int, column: Any) -> Integers:
        found = pc.index_in(column, value_set=self._values[i])
        filled = flat(pc.fill_null(found, -1))
        return np.asarray(filled.to_numpy(zero_copy_only=False)).astype(np.int64)


def _add_new(had: Any, column: Any) -> Any:
    """Values with those of a column that are not among them."""
    values = pc.unique(column)
    fresh = values.filter(pc.invert(pc.is_in(values, value_set=had)))
    return pa.concat_arrays([had, fresh])


_Held = tuple[KeyIndex, Integers]


class Columns:
    """Keys and what is left: eight bytes of budget a subject.

    Both are replaced together, atomically, after everything that may fail or be interrupted.
    """

    def __init__(self, header: Header):
        types = tuple(kind for kind in header.key_types if kind is not None)
        self.header = header
        self._held: _Held = (KeyIndex.of(header.keys, types), np.empty(0, dtype=np.int64))

    @classmethod
    def read(cls, header: Header, table: Any) -> Columns:
        """From a table of keys and `left`."""
        made = cls(header)
        left = np.array(flat(table["left"]).to_numpy(zero_copy_only=False))
        made._held = (made._held[0].extend(table), left)
        return made

    def table(self) -> Any:
        """Keys and `left`, in the order in which subjects came; later spends do not show in it."""
        index, left = self._held
        return index.key_table().append_column("left", pa.array(left.copy()))

    @property
    def nbytes(self) -> int:
        """Bytes of budget state."""
        return self._held[1].nbytes

    def add(self, keys: Any, left: Any) -> None:
        """Add subjects with what each has."""
        index, had = self._held
        places = index.places(keys)
        if np.any(places >= 0):
            raise ArgumentError("subjects must be new, got some that are there already")
        check_no_duplicates(self.header, _count_repeated(keys))
        more = np.asarray(left, dtype=np.int64)
        self._held = (index.extend(keys), np.concatenate([had, more]))

    def spend(self, losses: Any, pricing: Pricing) -> Any:
        """Charge the losses; the keys of those that take part, in the order of the losses."""
        loss = None
        if "loss" in losses.column_names:
            loss = flat(losses["loss"]).to_numpy(zero_copy_only=False)
        keys = losses.select(list(self.header.keys))
        index, had = self._held
        places = index.places(keys)
        known = places >= 0
        fresh = int(known.size - np.count_nonzero(known))
        self._check_unique(keys, places, known, fresh)
        starts = self.header.unknown == "start"
        left = np.full(places.size, self.header.units.capacity, dtype=np.int64)
        if had.size:
            left = np.where(known, had[places], left)
        after = pricing.charge(left, loss)
        active = after >= 0
        if fresh and not starts:
            active &= known
        if self.header.all_or_none:
            active = all_or_none(keys, active)
        moved, new = active & known, active & ~known
        taking_part = keys.filter(pa.array(active))
        changed, values = places[moved], after[moved]
        if fresh and new.any():
            whole = np.concatenate([had, after[new]])
            whole[changed] = values
            self._held = (index.extend(keys.filter(pa.array(new))), whole)
        else:
            had[changed] = values
        return taking_part

    def _check_unique(self, keys: Any, places: Integers, known: Any, fresh: int) -> None:
        seen = np.zeros(self._held[1].size, dtype=np.bool_)
        seen[places[known]] = True
        repeated = known.size - fresh - int(np.count_nonzero(seen))
        if fresh:
            repeated += _count_repeated(keys.filter(pa.array(~known)))
        check_no_duplicates(self.header, repeated)


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
        spend = request.inspect(opened.header, opened.column, opened.findings)
        with self._lock:
            if request.spend_id in self._spends:
                digest, active = self._spends[request.spend_id]
                spend.check_same(digest)
                return SpendResult(request.spend_id, True, active)
            columns = self._columns_for(opened.header)
            with _translated_errors():
                active = columns.spend(opened.losses, spend.pricing())
            self._columns, self.header = columns, columns.header
            self._spends[request.spend_id] = (spend.digest, active)
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
    ) -> Losses:
        return open_table(header, request, losses)

    def charge(
        self,
        opened: Losses,
        pricing: Pricing,
        budgets: Path | None,
        after: Path,
        active: Path,
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
