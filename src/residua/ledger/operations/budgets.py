"""Creating, retiring and refreshing budgets; quotas, partitions and windows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import func, select

from residua.errors import ArgumentError, BudgetExists, LedgerError, RetiredBudget
from residua.filters.additive.basic import PureFilter
from residua.filters.base import Filter
from residua.filters.potential.plan import PlanFilter
from residua.ledger.domain import arguments, clock
from residua.ledger.domain.budget_row import BudgetRow, parse_filter
from residua.ledger.operations.requests import LEDGER, Request, append_group, hashes_of, tables_of
from residua.ledger.operations.spending import Expire, release
from residua.ledger.operations.unit_of_work import UnitOfWork
from residua.ledger.storage import schema
from residua.ledger.storage.rows import HoldRow
from residua.mechanisms.relations import REPLACE_ONE
from residua.pld.constructors import approximate_dp
from residua.pld.pld import Pld
from residua.provable import unprovable_filter
from residua.provable.partitions import unprovable_partition
from residua.version import __version__

_B = schema.budgets


class NewFilter(NamedTuple):
    """A filter with its first state, which is computed before anything is locked."""

    filter: Filter
    description: dict[str, Any]
    state: dict[str, Any]
    tables: dict[str, bytes]
    """The tables that a verifier needs beside the state, by name."""
    unprovable: str | None
    """Why its steps cannot be verified, if so."""


def new_filter(value: Any) -> NewFilter:
    """The filter that is given as an object or as JSON; pure, and perhaps slow."""
    filter = arguments.fresh_filter(value)
    description = filter.to_dict()
    unprovable = unprovable_filter(description)
    if unprovable is not None:
        return NewFilter(filter, description, {}, {}, unprovable)
    first = filter.initial()
    state = json.loads(filter.state_to_json(first))
    return NewFilter(filter, description, state, dict(filter.tables(first)), None)


@dataclass(frozen=True, kw_only=True)
class Create(Request):
    """A new budget, the first of the names; the other one is its parent."""

    creates = True

    new: NewFilter
    relation: str | None = None
    unit: str | None = None
    parent: str | None = None
    partition: str | None = None
    data: str | None = None
    window: float | None = None
    shares_data: bool = False

    def run(self, work: UnitOfWork) -> BudgetRow:
        name = self.names[0]
        if name in work.entries:
            raise BudgetExists(f"budget {name!r} already exists")
        parent = None if self.parent is None else work.entry(self.parent)
        fields = self._fields(parent)
        if self.new.unprovable is not None:
            raise ArgumentError(
                f"filter must be one whose steps can be verified, got {self.new.filter!r}:"
                f" {self.new.unprovable}"
            )
        if parent is None:
            self._check_root(work)
        else:
            self._check_child(work, parent, fields)
        top = work.connection.execute(select(func.coalesce(func.max(_B.c.id), 0))).scalar_one()
        made = max((entry.id for entry in work.entries.values()), default=0)
        fields["tables"] = hashes_of(work, self.new.tables)
        entry = work.create(max(top, made) + 1, name, work.now, fields)
        work.append(entry, "create", self.principal, fields, entry.state_text)
        return entry

    def _fields(self, parent: BudgetRow | None) -> dict[str, Any]:
        """The body of the record; a child inherits from its parent what it does not state."""
        return {
            "filter": self.new.description,
            "library": __version__,
            "relation": self.relation or (parent.relation if parent else "add-remove"),
            "unit": self.unit or (parent.unit if parent else "person"),
            "data": self.data or (parent.data if parent else None),
            "parent": self.parent,
            "partition": self.partition,
            "window": self.window,
            "shares_data": self.shares_data,
            "state": self.new.state,
        }

    def _check_root(self, work: UnitOfWork) -> None:
        if self.partition is not None:
            raise ArgumentError(f"parent must be given for the partition {self.partition!r}")
        if self.data is None or self.shares_data:
            return
        query = select(_B.c.name).where(_B.c.parent.is_(None), _B.c.data == self.data)
        others = set(work.connection.execute(query).scalars())
        others |= {
            e.name for e in work.entries.values() if e.parent is None and e.data == self.data
        }
        if others:
            raise BudgetExists(
                f"data {self.data!r} already has the budget {min(others)!r}, and two caps on the"
                " same data promise less than one; pass shares_data=True if this is intended"
            )

    def _check_child(self, work: UnitOfWork, parent: BudgetRow, fields: Mapping[str, Any]) -> None:
        closed = work.closed_by(parent.name)
        if closed is not None:
            raise RetiredBudget(
                f"budget {closed.name!r} is retired: no budget can be created under it"
            )
        for name in ("relation", "unit", "data"):
            own, above = fields[name], getattr(parent, name)
            if own != above:
                raise ArgumentError(f"{name} must be that of the parent ({above!r}), got {own!r}")
        kind = "quotas" if self.partition is None else "partitions"
        if parent.children and parent.children != kind:
            raise ArgumentError(
                f"parent must have quotas or partitions under it, not both: {parent.name!r} has"
                f" {parent.children}"
            )
        if self.partition is not None:
            self._check_partition(work, parent)

    def _check_partition(self, work: UnitOfWork, parent: BudgetRow) -> None:
        if parent.spent:
            raise ArgumentError(
                f"parent must not have spent anything itself: {parent.name!r} has, so it cannot be"
                " divided into partitions"
            )
        if self.window is not None and self.window != parent.window:
            # Each new window would be the parent's promise once more, and the parent has no other.
            raise ArgumentError(
                f"window of a partition must be that of {parent.name!r} ({parent.window!r}) or"
                f" none, got {self.window!r}"
            )
        siblings = _children(work, parent.name)
        if any(label == self.partition for label, _ in siblings):
            raise BudgetExists(f"{parent.name!r} already has the partition {self.partition!r}")
        others: list[dict[str, Any] | None] = [None]
        if parent.relation == REPLACE_ONE:
            others += [parse_filter(text).to_dict() for _, text in siblings]
        above, below = parent.filter.to_dict(), self.new.description
        for other in others:
            why = unprovable_partition(above, below, parent.relation, other)
            if why is not None:
                raise ArgumentError(
                    f"filter must be one that can be verified to promise no more than that of"
                    f" {parent.name!r}, got {self.new.filter!r}: {why}"
                )
        filter = self.new.filter
        cap, own = parent.filter.guarantee, _promise(filter)
        if filter != parent.filter and not own <= cap:
            raise ArgumentError(f"filter must not exceed that of {parent.name!r}, got {filter!r}")
        if parent.relation == REPLACE_ONE:
            # A unit that is replaced may move: two partitions see it.
            for _, text in siblings:
                if not own + _promise(parse_filter(text)) <= cap:
                    raise ArgumentError(
                        "filter must fit the parent's together with any other partition's, because"
                        f" under replace-one a unit may move from one to another, got"
                        f" {filter!r}"
                    )


def _promise(filter: Filter) -> Pld:
    """The promise of a partition; for a plan it is the stated `(eps, delta)`, and no less."""
    if isinstance(filter, PlanFilter):
        return approximate_dp(filter.eps, filter.delta)
    return filter.guarantee


def _children(work: UnitOfWork, parent: str) -> list[tuple[str | None, str]]:
    query = select(_B.c.name, _B.c.partition, _B.c.filter).where(_B.c.parent == parent)
    stored = {row.name: (row.partition, row.filter) for row in work.connection.execute(query)}
    for entry in work.entries.values():
        if entry.parent == parent:
            stored[entry.name] = (entry.partition, entry.filter_text)
    return list(stored.values())


@dataclass(frozen=True, kw_only=True)
class Retire(Request):
    """Close a budget and release its open holds."""

    releases = True

    reason: str

    def run(self, work: UnitOfWork) -> None:
        (name,) = self.names
        entry = work.entry(name)
        if entry.retired:
            raise RetiredBudget(f"budget {name!r} is already retired")
        _release_all(work, entry, "cancel", self.principal, f"budget {name!r} was retired")
        state = entry.plain_state
        below = work.heads_below(name)
        fields = {"reason": self.reason, "below": below, "before": state, "after": state}
        work.append(entry, "retire", self.principal, fields, entry.state_text)


@dataclass(frozen=True, kw_only=True)
class Refresh(Request):
    """Begin a new window where the old one is over; its open holds expire."""

    releases = True

    demanded: bool = True
    """Whether a caller asked for it; that caller gets an error when it is too early."""

    def run(self, work: UnitOfWork) -> None:
        (name,) = self.names
        entry = work.entry(name)
        if not _is_due(work, entry):
            if self.demanded and entry.window is None:
                raise LedgerError(f"budget {name!r} has no window: what is spent stays spent")
            closed = work.closed_by(name)
            if self.demanded and closed is not None:
                raise RetiredBudget(f"budget {closed.name!r} is retired")
            return
        first = entry.filter.initial()
        text = entry.filter.state_to_json(first)
        _release_all(work, entry, "expire", LEDGER, f"a new window of {name!r} began")
        fields = {
            "generation": entry.generation + 1,
            "tables": tables_of(work, entry, text),
            "state": json.loads(text),
        }
        work.append(entry, "refresh", self.principal, fields, text)


def _is_due(work: UnitOfWork, entry: BudgetRow) -> bool:
    """Whether a budget's window is over, and a new one may begin: nothing above it is retired."""
    return clock.is_over(entry.window_ends, work.now) and work.closed_by(entry.name) is None


def _release_all(work: UnitOfWork, entry: BudgetRow, type: str, by: str, reason: str) -> None:
    """Release all holds of a budget, in every budget of their groups."""
    for id in entry.holds:
        row = work.holds[id]
        release(work, row, [work.entry(name) for name in row.members], type, by, reason)


def overdue(work: UnitOfWork) -> list[Request]:
    """Requests for what is due: windows that are over, and holds that have expired."""
    sweeps: list[Request] = [
        Refresh(principal=LEDGER, names=(name,), demanded=False)
        for name, entry in sorted(work.entries.items())
        if _is_due(work, entry)
    ]
    open_ = {id for entry in work.entries.values() for id in entry.holds}
    late = sorted(
        (row.expires, id)
        for id, row in work.holds.items()
        if id in open_ and row.expires <= work.now
    )
    return sweeps + [Expire(principal=LEDGER, id=id) for _, id in late]


def sharing_ended_holds(work: UnitOfWork, requests: Sequence[Request]) -> set[str]:
    """Budgets that share a hold with one that these requests release, or that is overdue."""
    whole = {name for request in requests if request.releases for name in request.names}
    whole |= {name for name, entry in work.entries.items() if _is_due(work, entry)}
    found: set[str] = set()
    for name, entry in work.entries.items():
        for id in entry.holds:
            row = work.holds[id]
            if name in whole or row.expires <= work.now:
                found.update(row.members)
    return found


def write_off(work: UnitOfWork, name: str, why: str, by: str) -> None:
    """Retire a budget that lost spends, as fully spent; it need not be known but by its name.

    Its holds expire in every budget where they are still open: some of their records may be lost.
    """
    if name not in work.entries:
        # A chain for a budget of which only the name is known.
        Create(principal=by, names=(name,), new=new_filter(PureFilter(0.0))).run(work)
    entry = work.entries[name]
    others = (id for id, row in work.holds.items() if name in row.members)
    for id in dict.fromkeys((*entry.holds, *sorted(others))):
        _expire_open(work, work.holds[id], f"budget {name!r} is retired")
    state = entry.plain_state
    below = work.heads_below(name)
    fields = {
        "reason": f"fully spent: {why}", "below": below, "before": state, "after": state,
    }  # fmt: skip
    work.append(entry, "recover", by, fields, entry.state_text)


def _expire_open(work: UnitOfWork, row: HoldRow, reason: str) -> None:
    """Let a hold go from the budgets where it is open; it may be over in others."""
    known = (work.entries.get(name) for name in row.members)
    entries = [entry for entry in known if entry is not None and row.id in entry.holds]
    if not entries:
        return
    append_group(work, "expire", LEDGER, entries, {"hold": row.id, "reason": reason}, {})
    if row.status == "open":
        work.close_hold(row, "expired", None)
