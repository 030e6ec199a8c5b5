"""A union's refusals: the binding component's reason, with a note on the other components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from residua.errors import UnsupportedError
from residua.filters.balance import percent_words, share_of
from residua.filters.base import Filter
from residua.filters.costs import response_eps
from residua.filters.decision import Decision
from residua.filters.noise import largest_response
from residua.filters.query import Query
from residua.filters.state import State
from residua.filters.wording import listed
from residua.pld.constructors import pure_dp
from residua.work_limit import attempt


def need_words(
    answers: Mapping[str, Decision | None], live: Sequence[str], share: float, eps: float
) -> str:
    """The binding component's reason, and which others refuse the query or are stopped.

    Args:
        answers: the refusal of each component by its name; None where it gave none.
        live: the names of the live components.
        share: the share of the budget that is left.
        eps: the `eps` of the union.
    """
    notes, stopped = [], [name for name in answers if name not in live]
    if stopped:
        notes.append(f"{listed(stopped)} {'is' if len(stopped) == 1 else 'are'} stopped")
    refused = {name: each for name, each in answers.items() if each is not None}
    if not refused:
        return "; ".join([f"is not supported by {listed(live)}", *notes])
    needs = {name: each.need for name, each in refused.items()}
    if not any(map(_lacks_budget, needs.values())):
        why = listed([f"{name} (it {need})" for name, need in needs.items()])
        return "; ".join([f"is refused by {why}", *notes])
    room = {name: _room(refused[name], need, eps) for name, need in needs.items()}
    name = max(room, key=lambda each: room[each])
    text, binding = f"{needs[name]} under {name}", refused[name]
    others = [each for each in live if each != name]
    if others:
        notes.insert(0, f"{listed(others)} {'refuses' if len(others) == 1 else 'refuse'} it too")
        text += ", the binding component"
        own = share_of(binding._filter, binding._before)
        if own < share:
            text += f" with {percent_words(own)} left"
    return f"{text} ({'; '.join(notes)})" if notes else text


def _lacks_budget(need: str) -> bool:
    """Whether a component would take such a query if it had more left, from what it says."""
    return need.startswith("needs") or "left" in need


def _room(decision: Decision, need: str, eps: float) -> tuple[bool, float, bool]:
    """Orders refusals of components; the largest one binds.

    A component that lacks budget comes before one that never takes such a query, then the one with
    the larger `R_e` to three digits, then one that says what the query needs.
    """
    largest = float(f"{_largest_eps(decision, eps):.3g}")
    return _lacks_budget(need), largest, need.startswith("needs")


def _largest_eps(decision: Decision, eps: float) -> float:
    """The largest `R_e` that a component would have admitted, up to the union's `eps`."""
    component, before = decision._filter, decision._before
    share = decision.spare

    def admits(e: float) -> bool:
        return admits_or_not(component, before, pure_dp(e), None, share)

    left = largest_response(eps, admits)
    return response_eps(left) or 0.0


def admits_or_not(
    component: Filter, part: State, query: Query, relation: str | None, share: int
) -> bool:
    """Whether a component admits a query; what it cannot take or decide with its share of the
    limit on work, it does not."""
    try:
        found = attempt("it", share, lambda: component.admits(part, query, relation))
    except UnsupportedError:
        return False
    return found is True
