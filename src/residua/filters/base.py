"""The base of all filters: a frozen configuration, a pure decision, and a session.

A filter is a value. `initial()` gives its first state and `decide(state, query)` says, without
side effects, whether the query is admitted and which state follows; dry runs, ledgers, exact
worst cases and verifiers share that function. A session keeps the current state: `spend` (`request`
is the same) decides and moves on, `check` only decides. Threads may share a session.

A refusal spends nothing and does not end the filter: a refusal is like an analyst who passes
(`Id`), and it depends on public history alone. An interactive mechanism is charged whole when it
starts. That is enough, however the analyst interleaves several of them: every valid filter for
non-interactive mechanisms is one for interactive mechanisms that run concurrently, where privacy is
measured by `(eps, delta)`-DP, `f`-DP or Rényi DP of a fixed order (Haney et al. 2023).
"""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar, NamedTuple

from residua import checks
from residua.bounds import LARGEST_EPS
from residua.errors import ArgumentError, ArgumentTypeError, TooExpensive
from residua.filters.amounts import State
from residua.filters.balance import Balance, Detail, balance_of, percent_words, smallest_share
from residua.filters.balance import left_words as balance_left_words
from residua.filters.decision import Decision, too_expensive
from residua.filters.noise import least_noise_within
from residua.filters.query import Query, as_query, describe, relation_of
from residua.mechanisms import relations
from residua.mechanisms.mechanism import Mechanism
from residua.pld.pld import Pld
from residua.work_limit import OPERATIONS, limited

DecreasingCost = Callable[[Fraction], tuple[Fraction, Fraction] | None]


class AdditivePart(NamedTuple):
    """A filter that adds up fixed costs: a filter by itself, or a live component of a union."""

    filter: Filter
    """The filter that states the costs (`additive_cost`)."""
    place: int | None
    """The place of the component in the union; None for a filter by itself."""
    left: tuple[Fraction, ...]


class _Session:
    """The mutable part of a filter: its current state and the decisions so far."""

    __slots__ = ("history", "id", "last", "lock", "relation", "state")

    def __init__(self, state: State | None = None):
        self.lock = Lock()
        self.id = secrets.token_hex(8)
        self.state = state
        self.relation: str | None = None
        self.last: Query | None = None
        self.history: list[Decision] = []


class Filter(ABC):
    """Base of all filters. Subclasses are frozen dataclasses, one a file.

    A subclass checks its fields in `__post_init__` and stores them with `checks.set_fields`,
    implements the abstract methods, and makes its decisions with `make_decision`. Methods with a
    leading underscore are for subclasses to implement; only this package calls them.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    nested_filters: ClassVar[frozenset[str]] = frozenset()
    """Fields that hold a list of filters."""
    repeated_queries: ClassVar[frozenset[str]] = frozenset()
    """Fields that hold a list of queries, written with how often each is repeated."""
    remaining_is_a_query: ClassVar[bool] = False
    """Whether `remaining_in` is the largest query that fits now, and not an amount."""

    # -- the pure part ------------------------------------------------------------------

    @abstractmethod
    def initial(self) -> State:
        """The state before the first query."""

    @abstractmethod
    def _decide(self, state: Any, query: Query, relation: str | None) -> Decision:
        """`decide`, with the arguments checked."""

    def decide(self, state: State, query: Query, *, relation: str | None = None) -> Decision:
        """Whether `query` is admitted in `state`, and the state that follows. Pure.

        A query that takes more work than the limit (`residua.work_limit`) is refused.
        """
        return self._decide_within(state, self._check_query(query), check_relation(relation))

    def _decide_within(
        self,
        state: Any,
        query: Query,
        relation: str | None,
        limit: int = OPERATIONS,
        *,
        is_checked: bool = False,
    ) -> Decision:
        """`_decide`, but a query that takes more than `limit` operations is refused.

        The state is checked, unless it is that of a component whose union has checked it.
        """
        try:
            with limited("it", limit) as budget:
                now = state if is_checked else self.check_state(state)
                decision = self._decide(now, query, relation)
        except TooExpensive as error:
            if error.budget is not budget:
                raise
            return too_expensive(self, state, query, relation, str(error))
        decision._set_work_left(limit - budget.operations)
        return decision

    def admits(self, state: Any, query: Query, relation: str | None = None) -> bool:
        """Whether `decide` admits a query; faster where the state that follows is not needed."""
        return self._decide(state, query, relation).admitted

    def deciding_filter(
        self, state: State, query: Any = None, relation: str | None = None
    ) -> Filter:
        """The filter that decides in a state: this one, or the one it has chosen.

        `query` is the query to decide, for a filter that chooses by its first query.
        """
        return self

    def _check_query(self, query: Any) -> Any:
        """Check that a value is a query of this filter, and convert it if needed."""
        return as_query(query)

    def skip(
        self, state: State, queries: Sequence[Query], most: int, relation: str | None = None
    ) -> tuple[int, State]:
        """Count whole rounds of `queries` that are certainly admitted, and the state after them.

        The state is the one that requesting them one by one would give. The count is at most
        `most`, and 0 for a filter that must decide each query, as this one.
        """
        return 0, self.check_state(state)

    @property
    def can_skip(self) -> bool:
        """Whether `skip` counts rounds without deciding each query; if not, it returns 0."""
        return False

    def additive_parts(self, state: State) -> tuple[AdditivePart, ...]:
        """Parts of the filter that admit by sums of fixed costs; most filters have none.

        The filter admits queries, in any order, whose costs add up to what one part has left.
        """
        return ()

    def additive_cost(
        self, place: int | None, query: Query, relation: str | None = None
    ) -> tuple[Fraction, ...] | None:
        """The cost of a query to the additive part at a place, rounded up; None if it has none."""
        return None

    def decreasing_cost(self, query: Query, relation: str | None = None) -> DecreasingCost | None:
        """The cost of a query as a function of the single amount that is left.

        The function maps an amount to bounds of the exact cost, which does not increase with the
        amount; the upper bound is charged. It gives None where the query is refused. The result is
        None for filters whose cost is not such a function.
        """
        return None

    @abstractmethod
    def remaining_in(self, state: State) -> Any:
        """What is left in a state, rounded down: asking for that much always passes."""

    def balance_in(
        self, state: State, last: Query | None = None, *, relation: str | None = None
    ) -> Balance:
        """What is left in a state, in the form common to all filters. Pure.

        Args:
            state: a state of this filter.
            last: the query that was admitted last; without it, copies of it are not counted.
            relation: the neighbouring relation of `last` and of the largest query.
        """
        query = None if last is None else as_query(last, "last")
        return balance_of(self, self.check_state(state), query, check_relation(relation))

    def details_in(self, state: State) -> tuple[Detail, ...]:
        """What is left by unit, in units in which what is spent and what is left add up.

        Empty for a filter without such a unit.
        """
        return ()

    def share_in(self, state: State) -> float | None:
        """The share of the capacity that is left, from the units; None for a filter without."""
        return smallest_share(self.details_in(state))

    @property
    def most_eps(self) -> float:
        """The largest `eps` that is tried in the search for the largest `eps`-DP query."""
        return LARGEST_EPS

    @property
    @abstractmethod
    def guarantee(self) -> Pld:
        """A PLD that is proven to dominate the whole interaction, whatever the queries."""

    @property
    def capacity(self) -> Any:
        """The whole budget."""
        return self.remaining_in(self.initial())

    def check_state(self, state: Any) -> State:
        """Check that a state is one of this filter's."""
        if not isinstance(state, State):
            raise ArgumentTypeError(f"state must be a state of a filter, got {checks.shown(state)}")
        if state.of != self.fingerprint:
            raise ArgumentError(f"state must be a state of {self!r}, got one of another filter")
        return state

    @cached_property
    def fingerprint(self) -> str:
        """A name of the configuration; the same in every process if it has a description."""
        try:
            description = self.to_json()
        except ArgumentError:
            return f"{self.kind}-in-memory-{self._session.id}"
        return hashlib.sha256(description.encode()).hexdigest()[:16]

    # -- the session --------------------------------------------------------------------

    def __post_init__(self) -> None:
        object.__setattr__(self, "_session", _Session())

    _session: _Session

    @property
    def state(self) -> State:
        """The current state."""
        with self._session.lock:
            return self._state

    @property
    def _state(self) -> State:
        if self._session.state is None:
            self._session.state = self.initial()
        return self._session.state

    def spend(self, query: Query, *, relation: str | None = None) -> Decision:
        """Decide, and spend if admitted. `request` is the same.

        Mechanisms are taken under add-remove unless a relation is named; a session keeps to the
        relation of the first mechanism that it admitted.
        """
        query, relation = self._check_query(query), check_relation(relation)
        effective = self._effective_relation(query, relation)
        with self._session.lock:
            earlier = self._session.relation
            if effective and earlier and effective != earlier:
                raise ArgumentError(
                    f"relation must be {earlier}, under which earlier queries were admitted,"
                    f" got {effective!r}"
                )
            decision = self._decide_within(self._state, query, relation)
            # Spent before it is shown anywhere, whatever interrupts.
            self._session.state = decision.state
            self._session.relation = earlier or (effective if decision.admitted else None)
            if not decision.admitted:
                decision._set_previous_query(self._session.last)
            elif isinstance(query, Query):
                self._session.last = query
            self._session.history.append(decision)
        return decision

    def request(self, query: Query, *, relation: str | None = None) -> Decision:
        """The same as `spend`, which it calls: subclasses override `spend` alone."""
        return self.spend(query, relation=relation)

    def _effective_relation(self, query: Any, relation: str | None) -> str | None:
        """The relation under which a query is decided; None for a PLD, which has none."""
        return relation_of(query, relation) if isinstance(query, Mechanism) else None

    def check(self, query: Query, *, relation: str | None = None) -> Decision:
        """Decide only: nothing is spent, and the reason says what would be."""
        with self._session.lock:
            state, last = self._state, self._session.last
        decision = self._decide_within(state, self._check_query(query), check_relation(relation))
        decision = dataclasses.replace(decision, is_check=True)
        decision._set_previous_query(last)
        return decision

    @property
    def remaining(self) -> Any:
        """What is left now, rounded down."""
        return self.remaining_in(self.state)

    @property
    def balance(self) -> Balance:
        """What is left now, in the form common to all filters."""
        with self._session.lock:
            state, last, relation = self._state, self._session.last, self._session.relation
        return balance_of(self, state, last, relation)

    @property
    def spent(self) -> Any:
        """What was spent so far, rounded up."""
        return self.spent_in(self.state)

    def spent_in(self, state: State) -> Any:
        """What was spent in a state, rounded up."""
        raise ArgumentError(f"{self.kind} has no amount that is spent; use remaining")

    @property
    def history(self) -> tuple[Decision, ...]:
        """Every decision of the session so far, refusals included."""
        with self._session.lock:
            return tuple(self._session.history)

    def resume(self, state: State) -> None:
        """Put the session into a state that was stored; its history starts again."""
        state = self.check_state(state)
        with self._session.lock:
            self._session.state, self._session.last = state, None
            self._session.history.clear()

    def _adopt(self, state: State) -> State:
        """The same state as one of this copy, whose fingerprint differs without a description."""
        return dataclasses.replace(state, of=self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        with self._session.lock:
            session = self._session.state, self._session.relation, self._session.last
        return _restore, (type(self), fields, *session)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from residua.figures.notebook import filter_html

        return filter_html(self)

    # -- descriptions -------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The configuration as plain data."""
        from residua.filters.codec import to_dict

        return to_dict(self)

    def to_json(self) -> str:
        """The configuration as canonical JSON: `{"kind":"gdp_residue","mu":1.0}`."""
        from residua.filters.codec import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: Any) -> Filter:
        """Read a configuration (text or parsed); for a subclass, one of that kind."""
        from residua.filters.codec import from_json

        filter = from_json(text)
        if not isinstance(filter, cls):
            raise ArgumentError(f"kind must be {cls.kind!r}, got {filter.kind!r}")
        return filter

    def state_to_json(self, state: State) -> str:
        """A state as canonical JSON; amounts are exact, in quotes."""
        from residua.filters.codec import state_to_json

        return state_to_json(self, self.check_state(state))

    def state_from_json(self, text: Any) -> State:
        """Read a state of this filter."""
        from residua.filters.codec import state_from_json

        return state_from_json(self, text)

    def tables(self, state: State) -> dict[str, bytes]:
        """The tables of a state that a verifier needs beside its JSON, by name."""
        return {}

    # -- for subclasses -----------------------------------------------------------------

    def state_from_fields(self, fields: Mapping[str, Any]) -> State:
        """A state from parsed JSON that has the fields of the first state."""
        from residua.filters.codec import state_like

        return state_like(self.initial(), fields)

    def stops_of(self, decision: Decision) -> tuple[str, ...]:
        """The components that a query stops for good; a filter that is not a union has none."""
        return ()

    def _cost_value(self, price: Any) -> Any:
        """A cost for people, rounded up."""
        return price

    def _largest(
        self, before: State, query: Query, relation: str | None, within: int
    ) -> Query | TooExpensive | None:
        """The query of this kind with the least noise that fits, as found in so much work."""
        return least_noise_within(query, lambda other: self.admits(before, other, relation), within)

    def _reason(
        self, decision: Decision, left: str | None = None, advice: str | None = None
    ) -> str:
        query = describe(decision.query)
        if decision.admitted:
            left = self.share_left_words(
                decision.state, "would be left" if decision.is_check else "left"
            )
            return f"{decision.outcome}: {query} costs {decision.cost_words}; {left}"
        need = decision.need
        if left is None:
            left = self.share_left_words(decision._before)
        if advice is None:
            advice = decision.advice
        return f"{decision.outcome}: {query} {need}; {left}; {advice}"

    def _need(self, decision: Decision) -> str:
        """Why a query was refused: words that follow its description in the reason."""
        return decision._why_not

    def left_words(self, state: State, left: Any = None) -> str:
        """What is left in a state, in words; `left` where holds or another budget allow less."""
        return _words(self.remaining_in(state) if left is None else left)

    def share_left_words(self, state: State, left: str = "left") -> str:
        """The share that is left in a state and how much that is: `81 % left (mu² 0.81)`.

        Without units, the share alone; without a share, what is left in words.
        """
        share, details = self.share_in(state), self.details_in(state)
        if share is None:
            return f"{self.left_words(state)} {left}"
        if not details:
            return f"{percent_words(share)} {left}"
        return balance_left_words(share, details, left)

    def cost_words(self, decision: Decision) -> str:
        """The cost of an admitted query, in words."""
        return _words(decision.cost)


def is_unspent(filter: Filter) -> bool:
    """Whether the filter's session is in its first state, as it is before any request."""
    return filter._session.state is None or filter.state == filter.initial()


def unspent_copy(filter: Filter) -> Filter:
    """The same filter with a separate session, which has spent nothing."""
    copy: Filter = object.__new__(type(filter))
    copy.__dict__.update(filter.__dict__)
    object.__setattr__(copy, "_session", _Session())
    return copy


def _restore(
    cls: type[Filter],
    fields: dict[str, Any],
    state: State | None,
    relation: str | None = None,
    last: Query | None = None,
) -> Filter:
    filter = cls(**fields)
    filter._session.relation = relation
    if state is not None:
        filter.resume(filter._adopt(state))
    filter._session.last = last
    return filter


def _words(value: Any) -> str:
    return describe(value) if isinstance(value, Pld) else str(value)


def check_relation(name: str | None) -> str | None:
    """Check the name of a relation; None stays None."""
    return None if name is None else relations.relation(name)
