"""A fingerprint of a table of losses that does not depend on the order of its rows.

Each row is mixed into 64 bits, and two functions of these are added up over the rows modulo
`2^64`: whatever the order, the batches or the engine, the sums are the same. Keys are unique, so
a table is a set of rows. This tells one table from another by accident of the caller, with 128
bits; it is not a commitment against someone who crafts collisions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_LANES = 2
_DRAWN = np.random.Generator(np.random.PCG64(20)).integers(1, 2**63, size=4100, dtype=np.uint64)
_SEEDS = _DRAWN[:4]
_SECOND = np.uint64(0x9E3779B97F4A7C15)
_POWERS = _DRAWN[4:] | np.uint64(1)
_BLOCK = 1 << 15


def fingerprint(columns: list[Any]) -> tuple[int, ...]:
    """The sums over the rows of one batch; of several batches they add up modulo `2^64`."""
    sums = [0, 0]
    for start in range(0, len(columns[0]) if columns else 0, _BLOCK):
        # Texts become many times their size for a moment, so a block at a time.
        words = [_words(column[start : start + _BLOCK]) for column in columns]
        state = np.zeros(1, dtype=np.uint64)
        for word, seed in zip(words, _SEEDS, strict=False):
            state = _mixed((word + seed) ^ state)
        second = state * _SECOND
        second ^= second >> np.uint64(32)
        for lane, rows in enumerate((state, second)):
            sums[lane] = (sums[lane] + int(np.add.reduce(rows))) % 2**64
    return tuple(sums)


def added(sums: list[tuple[int, ...]]) -> str:
    """The fingerprint of a whole table, from those of its batches."""
    lanes = [sum(part[lane] for part in sums) % 2**64 for lane in range(_LANES)]
    return "".join(f"{lane:016x}" for lane in lanes)


def _mixed(x: Words) -> Words:
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
    terms = (raw.astype(np.uint64) + np.uint64(1)) * _POWERS[place % _POWERS.size]
    # Later rounds of the powers are told apart by a factor.
    terms *= (place // _POWERS.size).astype(np.uint64) * np.uint64(2) + np.uint64(1)
    sums = np.zeros(lengths.size, dtype=np.uint64)
    filled = lengths > 0
    if filled.any():
        sums[filled] = np.add.reduceat(terms, starts[filled])
    return np.asarray(sums + lengths.astype(np.uint64) * _POWERS[0])
