"""Where a subject's budget is in memory: keys to places.

One integer key is kept as a sorted array. Strings, and pairs with an epoch, are coded as integers
through dictionaries of the values seen so far, and the codes are kept sorted. An index is a
value: more keys make another one, so that whatever fails on the way leaves the old one whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from residua.errors import TooLargeError
from residua.individual.losses import flat
from residua.individual.pricing.units import Integers

_MOST_EPOCHS = 1 << 24
_MANY = 1 << 14


@dataclass(frozen=True, eq=False)
class SortedKeys:
    """Unique integers in the order in which they came, found by bisection."""

    keys: Integers
    _sorted: Integers
    _places: Integers | None = None
    """Where the sorted keys are; None if they came in order."""

    def places(self, wanted: Integers) -> Integers | None:
        """The place of each, -1 for the unknown; None if these are all the keys, in order."""
        if wanted.size == self.keys.size and np.array_equal(wanted, self.keys):
            return None
        if not self.keys.size:
            return np.full(wanted.size, -1, dtype=np.int64)
        found = self._bisected(wanted)
        found[found == self._sorted.size] = 0
        hit = self._sorted[found] == wanted
        place = found if self._places is None else self._places[found]
        return np.where(hit, place, -1)

    def _bisected(self, wanted: Integers) -> Integers:
        if wanted.size < _MANY:
            return np.asarray(np.searchsorted(self._sorted, wanted))
        # In order, so that neighbours are found in the same corner of memory.
        order = np.argsort(wanted)
        found = np.empty(wanted.size, dtype=np.int64)
        found[order] = np.searchsorted(self._sorted, wanted[order])
        return found

    def extended(self, new: Integers) -> SortedKeys:
        """With keys that are not there yet."""
        whole = np.concatenate([self.keys, new])
        if self._places is None and np.all(whole[1:] > whole[:-1]):
            return SortedKeys(whole, whole)
        places = np.argsort(whole, kind="stable")
        return SortedKeys(whole, whole[places], places)


_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class KeyIndex:
    """Keys of one or two columns."""

    _names: tuple[str, ...]
    _plain: bool
    """Whether keys are one column of integers."""
    _values: tuple[Any, ...]
    _codes: SortedKeys = SortedKeys(_NONE, _NONE)

    @classmethod
    def of(cls, names: tuple[str, ...], types: tuple[str, ...]) -> KeyIndex:
        """Without any keys."""
        arrow = {"int64": pa.int64(), "string": pa.string()}
        return cls(names, types == ("int64",), tuple(pa.array([], arrow[kind]) for kind in types))

    def __len__(self) -> int:
        return int(self._codes.keys.size)

    def places(self, table: Any) -> Integers | None:
        """The place of each row's key, -1 for the unknown; None if they are all keys in order."""
        return self._codes.places(self._coded(table))

    def extended(self, table: Any) -> KeyIndex:
        """With rows whose keys are not there yet."""
        grown = self
        if not self._plain:
            values = tuple(
                _with_fresh(had, table[name])
                for had, name in zip(self._values, self._names, strict=True)
            )
            if len(values) > 1 and len(values[1]) > _MOST_EPOCHS:
                raise TooLargeError(f"epochs must be at most {_MOST_EPOCHS}, got more")
            grown = replace(self, _values=values)
        return replace(grown, _codes=self._codes.extended(grown._coded(table)))

    def key_table(self) -> Any:
        """The keys, in the order of their places."""
        codes = self._codes.keys
        if self._plain:
            return pa.table({self._names[0]: codes})
        first = codes // _MOST_EPOCHS if len(self._names) > 1 else codes
        columns = {self._names[0]: self._values[0].take(pa.array(first))}
        if len(self._names) > 1:
            columns[self._names[1]] = self._values[1].take(pa.array(codes % _MOST_EPOCHS))
        return pa.table(columns)

    def _coded(self, table: Any) -> Integers:
        if self._plain:
            return np.asarray(flat(table[self._names[0]]).to_numpy(zero_copy_only=False))
        parts = [self._indices(i, table[name]) for i, name in enumerate(self._names)]
        if len(parts) == 1:
            return parts[0]
        return np.where((parts[0] < 0) | (parts[1] < 0), -1, parts[0] * _MOST_EPOCHS + parts[1])

    def _indices(self, i: int, column: Any) -> Integers:
        found = pc.index_in(column, value_set=self._values[i])
        filled = flat(pc.fill_null(found, -1))
        return np.asarray(filled.to_numpy(zero_copy_only=False)).astype(np.int64)


def _with_fresh(had: Any, column: Any) -> Any:
    """Values with those of a column that are not among them."""
    values = pc.unique(column)
    fresh = values.filter(pc.invert(pc.is_in(values, value_set=had)))
    return pa.concat_arrays([had, fresh])
