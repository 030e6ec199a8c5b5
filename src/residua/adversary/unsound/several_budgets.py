"""Several budgets kept open at once: an unsound rule, for demonstration.

Each of several rules keeps its own promise. Admitting what *any* of them still admits lets the
analyst look at answers first and then choose the budget: after `L` the value is
`L ⊕ sup_j V_j`, not `sup_j (L ⊕ V_j)`, and `⊕` does not distribute over `sup`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from residua import checks
from residua.adversary.rule import Rule
from residua.errors import ArgumentError, ArgumentTypeError
from residua.pld.pld import Pld

_CLOSED = "closed"


@dataclass(frozen=True)
class SeveralBudgets(Rule):
    """Admits what any of the rules admits; a rule that would have refused is closed."""

    rules: Sequence[Rule]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        if not self.rules:
            raise ArgumentError("rules must hold at least one rule, got []")
        for i, rule in enumerate(self.rules):
            if not isinstance(rule, Rule):
                raise ArgumentTypeError(f"rules[{i}] must be a Rule, got {checks.shown(rule)}")

    @property
    def start(self) -> tuple[Hashable, ...]:
        return tuple(rule.start for rule in self.rules)

    def _allowed(self, state: tuple[Hashable, ...]) -> Iterable[tuple[Pld, Hashable]]:
        found: dict[Pld, list[Hashable]] = {}
        for i, (rule, own) in enumerate(zip(self.rules, state, strict=True)):
            if own == _CLOSED:
                continue
            for loss, after in rule.moves(own)[1:]:
                found.setdefault(loss, [_CLOSED] * len(state))[i] = after
        for loss, afters in found.items():
            yield loss, tuple(afters)
