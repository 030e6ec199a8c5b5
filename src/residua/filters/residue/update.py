"""The update filter: any rule, with its residue condition checked at every step.

The state is a budget `B`. A query is admitted if `L ⪯ B` and `U(B, L) ⊕ L ⪯ B` are both proven;
then `B` becomes `U(B, L)`. Whatever the rule, the interaction is dominated by the first budget.
What cannot be decided is refused. A callable has no description: this filter lives in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from residua import checks
from residua.bounds import Verdict
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters.amounts import State
from residua.filters.balance import Detail, make_detail
from residua.filters.base import Filter
from residua.filters.costs import largest_loss, missing_mass
from residua.filters.decision import Decision, make_decision
from residua.filters.query import Query, describe, loss_of
from residua.pld.order import Domination
from residua.pld.order.compare import dominated
from residua.pld.pld import Pld


@dataclass(frozen=True)
class Budget(State):
    """The budget that is left."""

    budget: Pld


@dataclass(frozen=True)
class UpdateFilter(Filter):
    """Admits `L ⪯ B` while `update(B, L) ⊕ L ⪯ B`, and goes on with `update(B, L)`.

    With an asymmetric budget the guarantee is for pairs in the direction of the queries' PLDs
    (a mechanism's first direction), and reversed for the other.
    """

    budget: Pld
    update: Callable[[Pld, Pld], Pld]

    kind: ClassVar[str] = "update"

    def __post_init__(self) -> None:
        if not isinstance(self.budget, Pld):
            raise ArgumentTypeError(f"budget must be a Pld, got {checks.shown(self.budget)}")
        if not callable(self.update):
            raise ArgumentTypeError(f"update must be callable, got {checks.shown(self.update)}")
        super().__post_init__()

    def initial(self) -> Budget:
        return Budget(self.fingerprint, self.budget)

    def check_state(self, state: Any) -> State:
        state = super().check_state(state)
        if not isinstance(state, Budget) or not isinstance(state.budget, Pld):
            raise ArgumentTypeError(f"state must contain a budget, got {checks.shown(state)}")
        return state

    def _decide(self, state: Budget, query: Query, relation: str | None) -> Decision:
        loss, budget = loss_of(query, relation), state.budget
        if loss.is_identity:
            return make_decision(self, state, state, 0.0, query, relation)
        fits = dominated(loss, budget)
        if not fits.proven:
            why = _why("exceeds the budget that is left", "fit the budget that is left", fits)
            return make_decision(self, state, None, None, query, relation, why)
        after = self.update(budget, loss)
        if not isinstance(after, Pld):
            raise ArgumentTypeError(f"update must return a Pld, got {checks.shown(after)}")
        kept = dominated(after + loss, budget)
        if not kept.proven:
            rest = f"{describe(after)}, which this rule leaves,"
            more = f"with {rest} is more than the query allows"
            why = _why(more, f"fit together with {rest}", kept)
            return make_decision(self, state, None, None, query, relation, why)
        return make_decision(self, state, Budget(state.of, after), loss, query, relation)

    def details_in(self, state: State) -> tuple[Detail, ...]:
        """The largest loss, if that of the first budget is finite: budgets only become smaller."""
        assert isinstance(state, Budget)
        whole, left = largest_loss(self.budget), largest_loss(state.budget)
        if whole is None or left is None or missing_mass(self.budget):
            return ()
        return (make_detail(self.kind, "eps", left, whole),)

    def remaining_in(self, state: State) -> Pld:
        assert isinstance(state, Budget)
        return state.budget

    @property
    def guarantee(self) -> Pld:
        return self.budget

    def to_dict(self) -> dict[str, Any]:
        raise ArgumentError("an update filter cannot be stored: its rule is a Python function")


def _why(exceeds: str, fit: str, outcome: Domination) -> str:
    """Why a query is refused, to be read after it; where and by how much, if that is known."""
    if outcome.verdict is Verdict.UNDECIDED:
        return f"is not proven to {fit}, and what is undecided is refused"
    at = outcome.witness
    if at is None or not 0.0 < at.x < math.inf or not at.gap > 0.0:
        return exceeds
    return f"{exceeds}: at eps {math.log(at.x):.6g} it needs {at.gap:.3g} more of delta"
