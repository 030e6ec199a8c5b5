"""Refusals of a union: the component that binds, with a note on the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from residua.errors import UnsupportedError
from residua.filters.amounts import State
from residua.filters.balance import percent_words, share_of
from residua.filters.base import Filter
from residua.filters.costs import response_eps
from residua.filters.decision import Decision
from residua.filters.noise import largest_response
from residua.filters.query import Query
from residua.filters.wording import sentence
from residua.pld.constructors import pure_dp
from residua.work_limit import attempt


def need_words(
    answers: Mapping[str, Decision | None], live: Sequence[str], share: float, eps: float
) -> str:
    """The text of `UnionFilter._need`, from each component's refusal and the names of live ones."""
    notes, stopped = [], [name for name in answers if name not in live]
    if stopped:
        notes.append(f"{sentence(stopped)} {'is' if len(stopped) == 1 else 'are'} stopped")
    refused = {name: each for name, each in answers.items() if each is not None}
    if not refused:
        return "; ".join([f"is not supported by {sentence(live)}", *notes])
    needs = {name: each.need for name, each in refused.items()}
    if not any(map(_lacks_budget, needs.values())):
        why = sentence([f"{name} (it {need})" for name, need in needs.items()])
        return "; ".join([f"is refused by {why}", *notes])
    room = {name: _rank(refused[name], need, eps) for name, need in needs.items()}
    name = max(room, key=lambda each: room[each])
    text, binding = f"{needs[name]} under {name}", refused[name]
    others = [each for each in live if each != name]
    if others:
        notes.insert(0, f"{sentence(others)} {'refuses' if len(others) == 1 else 'refuse'} it too")
        text += ", the binding component"
        own = share_of(binding._filter, binding._before)
        if own < share:
            text += f" with {percent_words(own)} left"
    return f"{text} ({'; '.join(notes)})" if notes else text


def _lacks_budget(need: str) -> bool:
    """Whether a component would take such a query if it had more left, from what it says."""
    return need.startswith("needs") or "left" in need


def _rank(decision: Decision, need: str, eps: float) -> tuple[bool, float, bool]:
    """Orders refusals of components; the largest one binds.

    A component that lacks budget comes before one that never takes such a query, then the one with
    the larger `R_e` to three digits, then one that says what the query needs.
    """

    def admits(e: float) -> bool:
        component, before = decision._filter, decision._before
        return admits_or_not(component, before, pure_dp(e), None, decision.work_left)

    largest = response_eps(largest_response(eps, admits)) or 0.0
    return _lacks_budget(need), float(f"{largest:.3g}"), need.startswith("needs")


def admits_or_not(
    component: Filter, part: State, query: Query, relation: str | None, share: int
) -> bool:
    """Whether a component admits a query.

    What it cannot take, or not decide with its share of the limit on work, it does not admit.
    """
    try:
        found = attempt("it", share, lambda: component.admits(part, query, relation))
    except UnsupportedError:
        return False
    return found is True
