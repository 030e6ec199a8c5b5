"""Views of a budget and of the whole ledger: what is left, and which budget promises what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from residua import work_limit
from residua.errors import ArgumentError
from residua.filters.amounts import State
from residua.filters.balance import Balance
from residua.filters.base import Filter
from residua.filters.query import Query
from residua.ledger.domain import clock, rules
from residua.ledger.domain.balances import available
from residua.ledger.domain.budget_row import parse_filter
from residua.ledger.domain.receipts import Hold
from residua.mechanisms.relations import REPLACE_ONE
from residua.pld.constructors import identity
from residua.pld.lattice import supremum
from residua.pld.pld import Pld

if TYPE_CHECKING:
    # Clients show budgets without a database.
    from residua.ledger.operations.unit_of_work import UnitOfWork


@dataclass(frozen=True)
class Promise:
    """A guarantee: a PLD, and in words its subject and condition."""

    pld: Pld
    text: str

    def __str__(self) -> str:
        return self.text


_DIFFERENT_PARTS = 16_000_000
"""Operations that the supremum of different promises counts beside its own: calls of the
interpreter, which take longer than arithmetic."""
Parts = tuple["Pld | Parts", ...]
"""The promises of partitions; of one that is divided, those of its partitions."""


@dataclass(frozen=True)
class Budget:
    """The state of a budget when it was read."""

    name: str
    filter: Filter
    relation: str
    unit: str
    data: str | None
    parent: str | None
    partition: str | None
    window: float | None
    generation: int
    seq: int
    head: str
    retired: bool
    state: State
    holds: tuple[str, ...]
    _line: tuple[rules.BudgetSnapshot, ...] = field(default=(), repr=False, compare=False)
    """Snapshots of it and of the ancestors that it charges; only `view` sets this and the rest."""
    _closed: bool = field(default=False, repr=False, compare=False)
    _root: tuple[str, Pld, int] | None = field(default=None, repr=False, compare=False)
    """The name, guarantee and windows of what caps it."""
    _parts: Parts = field(default=(), repr=False, compare=False)
    """The guarantees of its partitions; of those that are alike, two."""
    _last: Callable[[], Query | None] | None = field(default=None, repr=False, compare=False)
    """Reads the query that it admitted last."""

    def detached(self) -> Budget:
        """The same without the store, for another process: what must be read is read now."""
        last = None if self._last is None or self._closed else self._last()
        return replace(self, _last=None if last is None else partial(_same, last))

    @cached_property
    def remaining(self) -> Any:
        """What is left, rounded down, as far as holds and ancestors allow; None if retired."""
        return None if self._closed else rules.remaining(self._line)

    @cached_property
    def spent(self) -> Any:
        """What was spent, rounded up; None for filters that have no such amount."""
        try:
            return self.filter.spent_in(self.state)
        except ArgumentError:
            return None

    @property
    def capacity(self) -> Any:
        """The whole budget."""
        return self.filter.capacity

    @property
    def remaining_words(self) -> str:
        """What is left in the filter's own units, in words; empty if retired."""
        if self.remaining is None:
            return ""
        return self.filter.left_words(rules.state_held(self._line[0]), self.remaining)

    @property
    def capacity_words(self) -> str:
        """The whole budget, in words."""
        return self.filter.left_words(self.filter.initial())

    @cached_property
    def balance(self) -> Balance | None:
        """What is left, in the form common to all filters, as far as holds and ancestors allow.

        None if retired. The last query is read from the ledger when this is first asked for.
        """
        if self._closed:
            return None
        last = None if self._last is None else self._last()
        return available(self._line, self.guarantee.pld, last)

    @cached_property
    def guarantee(self) -> Promise:
        """The promise. Only the cap on a data set is a guarantee; quotas are allocation."""
        assert self._root is not None
        root, cap, windows = self._root
        subject = f"one {self.unit} under {self.relation}"
        if cap.is_infinite and not self._parts:
            return Promise(cap, f"{subject}: nothing, for {root!r} promises no delta below 1")
        if self._parts:
            return self._divided(subject)
        if self.partition is not None:
            text = f"{subject} whose data lies in the partition {self.partition!r}: {cap!r}"
        elif root != self.name:
            text = (
                f"allocation only: analysts can pool what they learn, so what is guaranteed is"
                f" the cap {root!r}; {subject}: {cap!r}"
            )
        else:
            text = f"{subject}: {cap!r}"
        if windows == 1:
            return Promise(cap, text)
        text += (
            f" for each window; {windows} windows so far, {windows} times that for a {self.unit} in"
            " all of them"
        )
        return Promise(windows * cap, text)

    def _divided(self, subject: str) -> Promise:
        if len(set(self._parts)) > 1 or any(isinstance(one, tuple) for one in self._parts):
            work_limit.work(_DIFFERENT_PARTS)
        pld = _whole(self._parts, self.relation)
        if self.relation == REPLACE_ONE and len(self._parts) > 1:
            text = f"two partitions composed, since a {self.unit} may move between them"
        else:
            text = (
                f"the supremum of its partitions, if all data of a {self.unit} lies in one"
                " partition by a fixed key that does not depend on data"
            )
        return Promise(pld, f"{subject}: {pld!r}, {text}")


def _same(query: Query) -> Query:
    return query


def _whole(given: Parts, relation: str) -> Pld:
    """The guarantee of partitions: their supremum, or that of any two where a unit may move."""
    parts = [_whole(one, relation) if isinstance(one, tuple) else one for one in given]
    pairs: list[Pld] = []
    if relation == REPLACE_ONE:
        pairs = [a + b for i, a in enumerate(parts) for b in parts[i + 1 :]]
    return supremum(list(dict.fromkeys([*pairs, *parts])))


_SHOWN = (
    "name", "filter", "relation", "unit", "data", "parent", "partition", "window", "generation",
    "retired", "state", "holds",
)  # fmt: skip
"""What a view has under the same name as the row of a budget."""


def view(work: UnitOfWork, name: str) -> Budget:
    """The state of a budget in a unit of work."""
    entry = work.entry(name)
    line = work.line(name)
    root = work.cap(name)
    closed = work.closed_by(name) is not None
    return Budget(
        **{column: getattr(entry, column) for column in _SHOWN},
        seq=entry.head_seq,
        head=entry.head_hash,
        _line=tuple(work.snapshot(each) for each in line),
        _closed=closed,
        _root=(root.name, root.filter.guarantee, root.generation + 1),
        _parts=_partitions(work, name, entry.children, entry.relation, closed),
        _last=work.last_query(name, entry.head_seq),
    )


def _partitions(work: UnitOfWork, name: str, children: str, relation: str, closed: bool) -> Parts:
    """The promise of each partition so far; for one that is divided, those of its partitions."""
    if children != "partitions":
        return ()
    counts: dict[Pld | Parts, int] = {}
    for row in work.partitions(name):
        ended = closed or bool(row.retired)
        made: Pld | Parts = _partitions(work, row.name, row.children, relation, ended)
        if not made:
            # A window that is over counts as begun, as it does where the partition is shown.
            over = clock.is_over(row.window_ends, work.now)
            windows = row.generation + (2 if over and not ended else 1)
            made = windows * parse_filter(row.filter).guarantee
        counts[made] = counts.get(made, 0) + 1
    # Two that are alike are enough to see what any two come to.
    return tuple(part for part, n in counts.items() for _ in range(min(n, 2)))


ANCHOR_STANDBYS = "anchor's standbys"
PROMISES = (
    "a spend or commit is durable before the caller learns that the query may run",
    "nothing that was committed is ever given back",
    "a repeated key returns the same receipt and permits no second run",
    "a request that names several budgets charges all of them or none",
)


@dataclass(frozen=True)
class Status:
    """Budgets, open holds, what is promised of each data set, and how the store is set up."""

    ledger: str
    incarnation: str
    store: Mapping[str, str]
    anchor: str
    read_only: str | None
    budgets: tuple[Budget, ...]
    holds: tuple[Hold, ...]
    data: Mapping[str, tuple[Promise, ...]]
    """By data label: what all caps on that data come to, one for each relation and unit."""
    promises: tuple[str, ...]


def promises(facts: Mapping[str, str], read_only: str | None) -> tuple[str, ...]:
    """The promises that hold in this set-up, and those that do not."""
    found = list(PROMISES)
    if "accepted" in facts.get("standbys", ""):
        found[0] += ", on the primary: a failover to an asynchronous standby may lose it"
    if "accepted" in facts.get(ANCHOR_STANDBYS, ""):
        found[1] += (
            ", unless a backup is restored after a failover of the anchor's database to an"
            " asynchronous standby, which may have lost what would tell"
        )
    if read_only is not None:
        found.append(f"nothing can be spent: {read_only}")
    return tuple(found)


def by_data(budgets: Sequence[Budget]) -> dict[str, tuple[Promise, ...]]:
    """The sum of the caps on each data set, for each relation and unit that they are about.

    Caps that are about the same neighbours compose. Others do not: a bound for one event or one
    replacement says nothing of a person who is added, and no conversion is made up.
    """
    roots: dict[str, dict[tuple[str, str], list[Budget]]] = {}
    for budget in budgets:
        if budget.data is not None and budget.parent is None:
            alike = roots.setdefault(budget.data, {})
            alike.setdefault((budget.relation, budget.unit), []).append(budget)
    return {data: tuple(_promises(groups)) for data, groups in roots.items()}


def _promises(groups: Mapping[tuple[str, str], Sequence[Budget]]) -> Iterator[Promise]:
    for (relation, unit), caps in groups.items():
        made = _together(relation, unit, caps)
        others = [f"one {u} under {r}" for r, u in groups if (r, u) != (relation, unit)]
        if others:
            about = " and of ".join(others)
            note = f"{made.text}; what is promised of {about} is about other neighbours"
            made = Promise(made.pld, f"{note}, and does not add up with this")
        yield made


def _together(relation: str, unit: str, caps: Sequence[Budget]) -> Promise:
    """The sum of caps that are about the same neighbours."""
    if len(caps) == 1:
        return caps[0].guarantee
    total = identity()
    for cap in caps:
        total += cap.guarantee.pld
    names = " and ".join(repr(cap.name) for cap in caps)
    subject = f"one {unit} under {relation}"
    if total.is_infinite:
        return Promise(total, f"{subject}: nothing, for {names} compose to no delta below 1")
    return Promise(
        total, f"{subject}: {total!r}, for {names} are caps on the same data, and add up"
    )
