"""What a spend returns: who takes part, and whether the charge is an earlier one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, eq=False)
class SpendResult:
    """One charge, and whether this call made it.

    A charge permits one release. Of all calls with one `spend_id`, at most one returns with
    `replayed` false, and only that call may release a new answer: see "Retry with the same id" in
    `docs/howto-individual.md`.

    Columns, `num_rows` and Arrow's stream protocol (`pyarrow.table(result)`) are those of `active`.
    **The active set depends on data and must not be released**; a `repr` does not show it.
    """

    spend_id: str
    replayed: bool
    """Whether an earlier call with this `spend_id` made the charge; this one charged nothing."""
    active: pa.Table = field(repr=False)
    """The keys of those that may take part, the same table on every replay."""

    @property
    def num_rows(self) -> int:
        """How many rows the active set has."""
        return int(self.active.num_rows)

    def __getitem__(self, column: str) -> Any:
        return self.active[column]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.active.__arrow_c_stream__(requested_schema)
