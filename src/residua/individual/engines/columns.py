"""The state as columns in memory, and one spend on it. No input or output, no locks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from residua.errors import ArgumentError
from residua.individual.engines.key_index import KeyIndex
from residua.individual.header import Header
from residua.individual.losses import complain_of_duplicates, flat
from residua.individual.pricing.pricing import Pricing
from residua.individual.pricing.units import Integers

_Held = tuple[KeyIndex, Integers]


class Columns:
    """Keys and what is left: eight bytes of budget a subject.

    Both are replaced together, at one stroke, after everything that may fail or be interrupted.
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
        made._held = (made._held[0].extended(table), left)
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
        known = keys.num_rows if places is None else int(np.count_nonzero(places >= 0))
        if known:
            raise ArgumentError("subjects must be new, got some that are there already")
        complain_of_duplicates(self.header, _repeated(keys))
        more = np.asarray(left, dtype=np.int64)
        self._held = (index.extended(keys), np.concatenate([had, more]))

    def spend(self, losses: Any, pricing: Pricing) -> Any:
        """Charge the losses; the keys of those that take part, in the order of the losses."""
        loss = None
        if "loss" in losses.column_names:
            loss = flat(losses["loss"]).to_numpy(zero_copy_only=False)
        keys = losses.select(list(self.header.keys))
        index, had = self._held
        places = index.places(keys)
        if places is None:
            return self._aligned(keys, loss, pricing)
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
            active = together(keys, active)
        moved, new = active & known, active & ~known
        taking_part = keys.filter(pa.array(active))
        changed, values = places[moved], after[moved]
        if fresh and new.any():
            whole = np.concatenate([had, after[new]])
            whole[changed] = values
            self._held = (index.extended(keys.filter(pa.array(new))), whole)
        else:
            had[changed] = values
        return taking_part

    def _aligned(self, keys: Any, loss: Any, pricing: Pricing) -> Any:
        """The losses name every subject, in the order of the state."""
        index, had = self._held
        after = pricing.charge(had, loss)
        active = after >= 0
        if self.header.all_or_none:
            active = together(keys, active)
        if active.all():
            # Our own keys: the caller may write over the memory that theirs came in.
            taking_part = index.key_table()
            self._held = (index, after)
            return taking_part
        taking_part = keys.filter(pa.array(active))
        np.copyto(had, after, where=active)
        return taking_part

    def _check_unique(self, keys: Any, places: Integers, known: Any, fresh: int) -> None:
        seen = np.zeros(self._held[1].size, dtype=np.bool_)
        seen[places[known]] = True
        repeated = known.size - fresh - int(np.count_nonzero(seen))
        if fresh:
            repeated += _repeated(keys.filter(pa.array(~known)))
        complain_of_duplicates(self.header, repeated)


def _repeated(keys: Any) -> int:
    """How many rows have a key that an earlier row has."""
    if not keys.num_rows:
        return 0
    unique = keys.group_by(keys.column_names, use_threads=False).aggregate([])
    return int(keys.num_rows - unique.num_rows)


def together(keys: Any, active: Any) -> Any:
    """All rows of a subject or none."""
    if active.all():
        return active
    subject = keys["subject"]
    out = pc.unique(subject.filter(pa.array(~active)))
    return active & ~flat(pc.is_in(subject, value_set=out)).to_numpy(zero_copy_only=False)
