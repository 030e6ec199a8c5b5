"""Filters whose state is what is left of one or more amounts, exactly."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters import amounts, wording
from residua.filters.amounts import Left, State
from residua.filters.balance import Detail, make_details
from residua.filters.base import AdditivePart, Filter, check_relation
from residua.filters.costs import split
from residua.filters.decision import Decision, make_decision
from residua.filters.query import Query
from residua.filters.wording import Amounts
from residua.mechanisms.mechanism import Mechanism
from residua.pld.pld import Pld
from residua.work_limit import remembered_property


class Additive(Filter):
    """A filter whose state is what is left of one or more amounts."""

    fixed_costs: ClassVar[bool] = False
    """Whether a query takes the same whatever is left."""

    @property
    @abstractmethod
    def _units(self) -> tuple[str, ...]:
        """The names of the amounts."""

    def _amounts(self) -> tuple[Fraction, ...]:
        """The amounts at the start: by default the fields that the units name."""
        return tuple(amounts.written(getattr(self, unit)) for unit in self._units)

    def _budget(self, numbers: tuple[float, ...]) -> Any:
        """A budget of these amounts, for people."""
        return numbers

    def _amounts_of(self, left: Any) -> tuple[Fraction, ...] | None:
        """The amounts of what another budget leaves; None where it has none of these units."""
        # A filter that keeps no delta has a delta of 0 in what it leaves.
        numbers = getattr(left, "numbers", ())[: len(self._units)]
        return tuple(map(amounts.written, numbers)) if len(numbers) == len(self._units) else None

    def details_in(self, state: State) -> tuple[Detail, ...]:
        whole = tuple(zip(self._units, self._whole, strict=True))
        return make_details(self.kind, self._amounts_left(state), whole)

    def _amounts_in(self, state: State, left: Any) -> Amounts:
        """What is left by unit; `left` is less where another budget allows less."""
        assert isinstance(state, Left)
        if left == self.remaining_in(state):
            return self._amounts_left(state)
        found = self._amounts_of(left)
        return () if found is None else tuple(zip(self._units, found, strict=True))

    @remembered_property
    def _whole(self) -> tuple[Fraction, ...]:
        return self._amounts()

    @abstractmethod
    def _costs(self, left: tuple[Fraction, ...], loss: Pld) -> tuple[Fraction, ...] | str:
        """The cost of a loss when so much is left, or the reason why no amount would do."""

    def initial(self) -> Left:
        return Left(self.fingerprint, self._whole)

    def check_state(self, state: Any) -> Left:
        """Check that a state is one of this filter's, and holds no more than it ever gave."""
        state, whole = super().check_state(state), self._whole
        if (
            not isinstance(state, Left)
            or type(state.left) is not tuple
            or len(state.left) != len(whole)
            or not all(type(left) is Fraction for left in state.left)
        ):
            raise ArgumentTypeError(
                f"{self.kind} state must have {len(whole)} amounts, got {checks.shown(state)}"
            )
        if not all(0 <= left <= most for left, most in zip(state.left, whole, strict=True)):
            raise ArgumentError(f"state must be within the capacity of {self!r}, got {state!r}")
        return state

    @property
    def can_skip(self) -> bool:
        return self.fixed_costs

    def _declared_costs(self, _mechanism: Mechanism) -> tuple[Fraction, ...] | None:
        """The declared cost of a black box, in this filter's amounts."""
        return None

    def _prices(
        self, left: tuple[Fraction, ...], query: Query, relation: str | None
    ) -> tuple[Fraction, ...] | str:
        """The cost of a query when so much is left, or the reason why no finite amount would do."""
        stated, loss = split(query, relation, self._declared_costs)
        if loss.is_identity:
            return stated or (Fraction(0),) * len(left)
        rest = self._costs(left, loss)
        if stated is None or isinstance(rest, str):
            return rest
        return tuple(a + b for a, b in zip(stated, rest, strict=True))

    def additive_parts(self, state: State) -> tuple[AdditivePart, ...]:
        own = self.check_state(state)
        assert isinstance(own, Left)
        return (AdditivePart(self, None, own.left),) if self.fixed_costs else ()

    def additive_cost(
        self, place: int | None, query: Query, relation: str | None = None
    ) -> tuple[Fraction, ...] | None:
        if not self.fixed_costs:
            return None
        costs = self._prices(self._whole, self._check_query(query), check_relation(relation))
        return None if isinstance(costs, str) else tuple(map(amounts.shorten_up, costs))

    def _decide(self, state: Left, query: Query, relation: str | None) -> Decision:
        costs = self._prices(state.left, query, relation)
        if isinstance(costs, str):
            return make_decision(self, state, None, None, query, relation, costs)
        left = []
        for cost, before in zip(costs, state.left, strict=True):
            rest = amounts.subtract(before, cost)
            if rest is None:
                return make_decision(self, state, None, costs, query, relation)
            left.append(rest)
        after = Left(state.of, tuple(left))
        return make_decision(self, state, after, costs, query, relation)

    def skip(
        self, state: State, queries: Sequence[Query], most: int, relation: str | None = None
    ) -> tuple[int, State]:
        """In closed form where costs are fixed and no subtraction on the way is rounded."""
        own = self.check_state(state)
        if not self.fixed_costs or not queries:
            return 0, own
        paid = []
        for query in queries:
            costs = self._prices(own.left, self._check_query(query), check_relation(relation))
            if isinstance(costs, str):
                return 0, own
            paid.append(costs)
        rounds, left = amounts.whole_rounds(own.left, paid, most)
        return rounds, Left(own.of, left)

    def _cost_value(self, costs: tuple[Fraction, ...]) -> Any:
        charged = tuple(map(amounts.charged, costs))
        return charged[0] if len(charged) == 1 else self._budget(charged)

    def remaining_in(self, state: State) -> Any:
        assert isinstance(state, Left)
        return self._budget(tuple(map(amounts.reported, state.left)))

    def spent_in(self, state: State) -> Any:
        assert isinstance(state, Left)
        whole = self._whole
        return self._cost_value(tuple(w - l for w, l in zip(whole, state.left, strict=True)))

    def left_words(self, state: State, left: Any = None) -> str:
        found = self._amounts_left(state) if left is None else self._amounts_in(state, left)
        return wording.left_words(found) or super().left_words(state, left)

    def cost_words(self, decision: Decision) -> str:
        return wording.cost_words(
            self._amounts_left(decision._before), self._amounts_left(decision.state)
        )

    def _need(self, decision: Decision) -> str:
        if decision._why_not:
            return decision._why_not
        return f"needs {wording.need_words(self._amounts_left(decision._before), decision._price)}"

    def _amounts_left(self, state: State) -> Amounts:
        assert isinstance(state, Left)
        return tuple(zip(self._units, state.left, strict=True))


def exact_costs(filter: Additive, query: Query, relation: str | None) -> tuple[Fraction, ...] | str:
    """The cost of a query on the whole budget, by amount and exactly, rounded up where it must be.

    A text where no finite amount would do: why, to be read after the query.
    """
    return filter._prices(filter._whole, query, relation)
