"""Black boxes: mechanisms of which only a bound is known.

A bound holds under some neighbouring relation; `relation` declares which. Without it the PLDs are
given for whatever relation is asked for, and it is on the asker to know that the bound holds.
`unit` may declare whose privacy the bound is about, as budgets do (person, event): it is part of
the description, changes no PLD, and a budget of another unit refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass

from residua import checks
from residua.mechanisms import relations
from residua.mechanisms.mechanism import Mechanism, both, pair
from residua.pld.pld import Pld

_DELTAS = (1e-3, 1e-6, 1e-9)


@dataclass(frozen=True)
class BlackBox(Mechanism):
    """Base of descriptions that are bounds; subclasses have the fields `relation` and `unit`."""

    @property
    def supported(self) -> tuple[str, ...]:
        """The declared relation alone, or all of them."""
        declared = getattr(self, "relation", None)
        return relations.RELATIONS if declared is None else (declared,)

    def _check_declared(self) -> None:
        relation, unit = getattr(self, "relation", None), getattr(self, "unit", None)
        if relation is not None:
            relations.relation(relation)
        if unit is not None:
            checks.new_label("unit", unit)


def oriented(relation: str, pld: Pld) -> dict[str, Pld]:
    """A PLD and its reversal, or under replace-one the supremum of both."""
    if pld.is_symmetric:
        return both(relation, pld)
    if relation == relations.REPLACE_ONE:
        return {"replace": pld | pld.reverse()}
    return pair(relation, pld)


def compared_with(mechanism: Mechanism, twin: Pld, name: str) -> tuple[str, ...]:
    """What knowing only the bound costs, beside a mechanism that just meets it."""
    mine = mechanism.pld()
    rows = []
    for delta in _DELTAS:
        bound, known = mine.epsilon(delta), twin.epsilon(delta)
        rows.append(f"eps at delta {delta:g}: {bound:.6g} from the bound, {known:.6g} for {name}")
    return tuple(rows)
