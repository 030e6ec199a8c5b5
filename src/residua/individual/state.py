"""One budget per subject, as a table that queries spend from.

    state = rz.individual.create("duckdb:///subjects.db", filter=rz.GdpResidueFilter(mu=1.0))
    spent = state.spend(losses, spend_id="q-17")
    if not spent.replayed:
        ...  # compute on spent.active, add the noise, release once

**Who is out of budget is data.** What is left of anyone's budget, and who takes part in a query,
must never be released: answers are computed on the active set, with noise, and only they are.
`docs/individual.md` has the theorem and its conditions.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import pyarrow as pa

from residua import checks
from residua.filters.query import Query
from residua.individual.engines.engine import Store
from residua.individual.losses import flat
from residua.individual.pricing.budgets import IndividualFilter, in_parameter, parameter
from residua.individual.pricing.cost_model import check_request
from residua.individual.pricing.levels import given_levels
from residua.individual.result import SpendResult
from residua.individual.spend_request import Order, checked_id
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
        """Charge each subject its own loss; `active` of the result are those that may take part.

        `losses` is an Arrow table, a pandas frame or the path of a Parquet file, with a column
        `subject` (and `epoch`, if the state has epochs) and one of `nu` (Gaussian), `eps` (pure
        DP) or `sensitivity` (of the one `mechanism`, Gaussian or Laplace noise); or with none of
        these and a `mechanism` that is the same for all. A loss may depend on the public
        transcript and on that subject's own data, and on nothing else.

        The new state is durable when this returns. The same `spend_id` again charges nothing and
        returns the same active set with `replayed` true: the charge permits one release, which may
        have happened already. The same `spend_id` with other losses is an error. `levels` are up to
        1,024 public values that `eps` (or `sensitivity`) is rounded up onto, in place of the
        built-in ones.

        **The active set depends on data and must not be released.** Compute the answer on exactly
        these subjects, with noise that does not depend on them.
        """
        order = Order(
            checked_id(spend_id),
            mechanism,
            None if levels is None else tuple(given_levels(levels).tolist()),
        )
        if mechanism is not None:
            check_request("sensitivity", mechanism, None)
        return self._store.spend(order, losses)

    def enroll(self, subjects: Any) -> None:
        """Add subjects that are not there yet.

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
        """What everything reveals of a subject that is present in so many epochs."""
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
        """Let go of files and connections."""
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
