"""Tables of losses as they come in, made uniform: keys of a known type, losses as floats.

Arrow tables and batches, pandas data frames, dictionaries of columns, and paths of Parquet files.
Messages say how many rows are wrong and never show a key or a loss.

**Fingerprint.** A table of losses has one that does not depend on the order of its rows. Each row
is mixed into 64 bits, and two functions of these are added up over the rows modulo `2^64`: whatever
the order, the batches or the engine, the sums are the same. Keys are unique, so a table is a set of
rows. This tells one table from another by accident of the caller, with 128 bits; it is not a
commitment against someone who crafts collisions.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.individual.cost_model import COLUMNS, capacities_in_units
from residua.individual.header import Header
from residua.individual.pricing import BLOCK_ROWS

Words = NDArray[np.uint64]

_RANDOM = np.random.Generator(np.random.PCG64(20)).integers(1, 2**63, size=4100, dtype=np.uint64)
COLUMN_SEEDS, ODD_FACTORS = _RANDOM[:4], _RANDOM[4:] | np.uint64(1)
"""Fixed random constants: one for each column, and one for each byte of a text."""
SECOND_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio in 64 bits, which makes the second sum of the first."""


def fingerprint(columns: list[Any]) -> tuple[int, int]:
    """The sums over the rows of one batch; of several batches they add up modulo `2^64`."""
    sums = [0, 0]
    for start in range(0, len(columns[0]) if columns else 0, BLOCK_ROWS):
        # Texts become many times their size for a moment, so a block at a time.
        words = [_words(column[start : start + BLOCK_ROWS]) for column in columns]
        state = np.zeros(1, dtype=np.uint64)
        for word, seed in zip(words, COLUMN_SEEDS, strict=False):
            state = _mix((word + seed) ^ state)
        second = state * SECOND_FACTOR
        second ^= second >> np.uint64(32)
        for i, rows in enumerate((state, second)):
            sums[i] = (sums[i] + int(np.add.reduce(rows))) % 2**64
    return sums[0], sums[1]


def _mix(x: Words) -> Words:
    """The finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    x = x ^ (x >> np.uint64(30))
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def _words(column: Any) -> Words:
    """A column as 64 bits a row: integers and floats as they are, texts hashed."""
    if isinstance(column, np.ndarray):
        return np.ascontiguousarray(column).view(np.uint64)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if pa.types.is_string(column.type):
        return _texts(column)
    return np.ascontiguousarray(column.to_numpy(zero_copy_only=False)).view(np.uint64)


def _texts(column: Any) -> Words:
    """Multilinear hashing: `Σ (byte + 1) r_i` with odd constants `r_i`, and the length."""
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int32)
    offsets = offsets[column.offset : column.offset + len(column) + 1].astype(np.int64)
    data = column.buffers()[2]
    raw = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, np.uint8)
    raw = raw[offsets[0] : offsets[-1]]
    lengths = np.diff(offsets)
    starts = offsets[:-1] - offsets[0]
    place = np.arange(raw.size, dtype=np.int64) - np.repeat(starts, lengths)
    terms = (raw.astype(np.uint64) + np.uint64(1)) * ODD_FACTORS[place % ODD_FACTORS.size]
    # A factor tells later rounds of the constants apart.
    terms *= (place // ODD_FACTORS.size).astype(np.uint64) * np.uint64(2) + np.uint64(1)
    sums = np.zeros(lengths.size, dtype=np.uint64)
    filled = lengths > 0
    if filled.any():
        sums[filled] = np.add.reduceat(terms, starts[filled])
    return np.asarray(sums + lengths.astype(np.uint64) * ODD_FACTORS[0])


CAPACITY = "capacity"


class Findings(NamedTuple):
    """What inspecting a batch of losses shows."""

    rows: int = 0
    missing: int = 0
    malformed: int = 0
    """Columns of keys with texts that are not valid UTF-8."""
    null: int = 0
    not_finite: int = 0
    negative: int = 0
    first_sum: int = 0
    second_sum: int = 0

    @classmethod
    def total(cls, found: Iterable[Findings]) -> Findings:
        """The findings of a whole table, from those of its batches."""
        return cls(*(sum(each) for each in zip(cls(), *found, strict=True)))

    @property
    def fingerprint(self) -> str:
        """That of the rows, whatever their order."""
        return "".join(f"{part % 2**64:016x}" for part in (self.first_sum, self.second_sum))


def path_of(value: Any) -> str | None:
    """The path that losses are read from, if they are given as one."""
    if not isinstance(value, str | Path):
        return None
    path = Path(value)
    if not path.exists():
        raise ArgumentError(f"losses must be a table or an existing path, got {str(path)!r}")
    return str(path)


def as_table(value: Any, name: str = "losses") -> pa.Table:
    """Anything that holds columns, as an Arrow table."""
    path = path_of(value)
    if path is not None:
        try:
            return pq.read_table(path)
        except (pa.ArrowException, OSError):
            raise ArgumentError(f"{name} must be Parquet files, got {path!r}") from None
    if isinstance(value, pa.Table):
        return value
    if isinstance(value, pa.RecordBatch):
        return pa.Table.from_batches([value])
    if isinstance(value, pa.RecordBatchReader):
        return value.read_all()
    if isinstance(value, dict):
        columns = {str(key): _column(name, key, column) for key, column in value.items()}
        lengths = {key: len(column) for key, column in columns.items()}
        if len({*lengths.values()}) > 1:
            raise ArgumentError(f"{name} must have columns of one length, got {lengths}")
        return pa.table(columns)
    if hasattr(value, "to_arrow"):
        return as_table(value.to_arrow(), name)
    if type(value).__module__.split(".")[0] == "pandas" and hasattr(value, "columns"):
        return as_table({key: value[key] for key in value.columns}, name)
    raise ArgumentTypeError(
        f"{name} must be an Arrow table, a pandas frame or a path, got {checks.shown(type(value))}"
    )


def _column(name: str, key: Any, column: Any) -> Any:
    """Values as an Arrow column; an error would show values, so it says nothing of them."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    with suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array(column)
    raise ArgumentTypeError(f"{name} must have columns of one type, got another kind in {key!r}")


def loss_column(header: Header, names: list[str]) -> str | None:
    """Which of the loss columns there is; an error for too many, or for unknown columns."""
    _check_columns("losses", header, COLUMNS, names)
    found = [name for name in names if name in COLUMNS]
    if len(found) > 1:
        raise ArgumentError(f"losses must have one loss column, got {' and '.join(found)}")
    return found[0] if found else None


def _check_columns(what: str, header: Header, others: tuple[str, ...], names: list[str]) -> None:
    """Raise unless all keys are there, and nothing but them and some other columns."""
    for key in header.keys:
        if key not in names:
            raise ArgumentError(f"{what} must have the column {key!r}, got {names}")
    allowed = (*header.keys, *others)
    if not {*names} <= {*allowed} or len({*names}) < len(names):
        raise ArgumentError(f"{what} take the columns {', '.join(allowed)} once each, got {names}")


def key_type(name: str, arrow_type: Any) -> str:
    """`int64` or `string`, from whatever Arrow type the key has."""
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    if pa.types.is_integer(arrow_type):
        return "int64"
    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type):
        return "string"
    if pa.types.is_string_view(arrow_type):
        return "string"
    raise ArgumentTypeError(f"{name} must be integers or strings, got {arrow_type}")


def check_types(header: Header, types: tuple[str, ...]) -> Header:
    """The header with its key types; an error if the state has others."""
    for name, had, got in zip(header.keys, header.key_types, types, strict=True):
        if had is not None and had != got:
            raise ArgumentTypeError(f"{name} must be {had} as in the state, got {got}")
    return header.with_types(types)


def check_loss_type(column: str | None, arrow_type: Any) -> None:
    """Raise unless losses are numbers."""
    if column is None:
        return
    if not (pa.types.is_floating(arrow_type) or pa.types.is_integer(arrow_type)):
        raise ArgumentTypeError(f"{column} must be numbers, got {arrow_type}")


def normalise(header: Header, table: pa.Table, column: str | None) -> tuple[Header, pa.Table]:
    """The table with the key columns and `loss`, all of the types that engines use."""
    kinds = zip(header.keys, header.key_types, strict=True)
    types = tuple(
        known if known is not None and _empty(table[name]) else key_type(name, table[name].type)
        for name, known in kinds
    )
    header = check_types(header, types)
    columns = {}
    for name, kind in zip(header.keys, types, strict=True):
        columns[name] = _cast(name, table[name], pa.int64() if kind == "int64" else pa.string())
    if column is not None:
        if not _empty(table[column]):
            check_loss_type(column, table[column].type)
        columns["loss"] = _cast(column, table[column], pa.float64())
    return header, pa.table(columns)


def _empty(column: Any) -> bool:
    """Whether a column has no values and so no type, as empty lists have."""
    return len(column) == 0 and pa.types.is_null(column.type)


def _cast(name: str, column: Any, wanted: Any) -> Any:
    if column.type == wanted:
        return column
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return column.cast(wanted)
    # Outside the handler: the other error shows a value, and would be kept as context.
    raise ArgumentTypeError(f"{name} must fit {wanted}, got {column.type} that does not")


def inspect_batch(header: Header, batch: pa.RecordBatch) -> Findings:
    """Count what is wrong with a batch, and take its fingerprint."""
    keys = [batch.column(name) for name in header.keys]
    missing = sum(key.null_count for key in keys)
    malformed = sum(not _is_text(key) for key in keys)
    columns: list[Any] = keys
    null = not_finite = negative = 0
    if "loss" in batch.schema.names:
        loss = batch.column("loss")
        null = loss.null_count
        values = loss.to_numpy(zero_copy_only=False)
        if null == 0:
            # NaN passes neither comparison; rows are counted only where something is wrong.
            if values.size and not (values.min() >= 0.0 and values.max() < np.inf):
                negative = int(np.count_nonzero(values < 0.0))
                not_finite = int(np.count_nonzero(~(np.abs(values) < np.inf)))
            columns = [*keys, values]
    good = missing == 0 and null == 0
    sums = fingerprint(columns) if good else (0, 0)
    return Findings(batch.num_rows, missing, malformed, null, not_finite, negative, *sums)


def _is_text(column: Any) -> bool:
    """Arrow takes any bytes for a text; engines would disagree about them."""
    if pa.types.is_string(column.type):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            return False
    return True


def check_findings(header: Header, column: str | None, found: Findings) -> None:
    """Raise if anything is wrong with losses."""
    keys = " and ".join(header.keys)
    if found.missing:
        raise ArgumentError(f"{keys} must not be null, got {found.missing} nulls")
    if found.malformed:
        raise ArgumentTypeError(f"{keys} must be valid UTF-8, got other bytes")
    if found.null:
        raise ArgumentError(f"{column} must not be null, got {found.null} nulls")
    for count, what in ((found.not_finite, "not finite"), (found.negative, "below zero")):
        if count:
            raise ArgumentError(f"{column} must be non-negative and finite, got {count} {what}")


def check_no_duplicates(header: Header, duplicates: int) -> None:
    """Raise if keys are repeated."""
    if duplicates:
        raise ArgumentError(
            f"{' and '.join(header.keys)} must be unique, got {duplicates} repeated rows"
        )


def _capacities(header: Header, table: pa.Table) -> Any:
    """The column of capacities of a table of subjects, as floats; None if there is none."""
    _check_columns("subjects", header, (CAPACITY,), table.column_names)
    if CAPACITY not in table.column_names:
        return None
    check_loss_type(CAPACITY, table.schema.field(CAPACITY).type)
    column = _cast(CAPACITY, table[CAPACITY], pa.float64())
    values = column.to_numpy()
    bad = column.null_count or int(np.count_nonzero(~((values >= 0.0) & (values < np.inf))))
    if bad:
        raise ArgumentError(f"capacity must be non-negative and finite, got {bad} that are not")
    return values


def newcomers(header: Header, table: pa.Table) -> tuple[Header, pa.Table]:
    """A table of subjects as keys and `left`, in units."""
    given = _capacities(header, table)
    header, keys = normalise(header, table, None)
    found = Findings.total(inspect_batch(header, batch) for batch in keys.to_batches())
    check_findings(header, None, found)
    left = np.full(keys.num_rows, header.units.capacity, dtype=np.int64)
    if given is not None:
        left = capacities_in_units(header.filter, given)
    return header, keys.append_column("left", pa.array(left))


def flat(column: Any) -> Any:
    """A chunked column as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
