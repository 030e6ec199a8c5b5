"""The available balance of a budget: what open holds and ancestors leave of it.

With `s` the state of a budget and `h_1 … h_k` its open holds (`rules.py`), an `eps`-DP query and
copies of the last query are asked as spends are: before the holds, of the budget and of every
ancestor that it charges. The share is that of the state after the holds. An ancestor with the same
units limits what is left in them. One in other units allows less where the largest query is
smaller; the share is smaller in the same proportion then, and there are no details.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from residua.errors import UnsupportedError
from residua.filters.additive.base import Additive
from residua.filters.amounts import State
from residua.filters.balance import (
    Balance,
    Detail,
    make_balance,
    ratio,
    share_of,
    smallest_share,
)
from residua.filters.counting import Count, count_copies, count_copies_before
from residua.filters.noise import largest_eps
from residua.filters.query import Query
from residua.ledger.domain.rules import BudgetSnapshot, admits, holds_after, provable, state_held
from residua.mechanisms.black_boxes import PureDp
from residua.pld.pld import Pld


def available(snapshots: Sequence[BudgetSnapshot], guarantee: Pld, last: Query | None) -> Balance:
    """The balance of the first budget, as far as its holds and the other budgets allow.

    Args:
        snapshots: the budget and the ancestors that it charges.
        guarantee: what is promised of it.
        last: the query that it admitted last.
    """
    own, *others = snapshots
    alike = [other for other in others if _same_units(own, other)]
    foreign = len(alike) < len(others)
    largest = _largest(snapshots)
    details = _limited(own, alike)
    held = state_held(own)
    share = smallest_share(details) if alike else share_of(own.filter, held, own.relation)
    assert share is not None
    if foreign:
        alone = _largest([own, *alike])
        if largest < alone:
            share, details = ratio(ratio(largest, alone) * share, 1.0), ()
    copies = None
    if last is not None:
        counts = [_copies_of(snapshot, last) for snapshot in snapshots]
        copies = min(counts, key=lambda count: (count.copies, count.ended))
    return make_balance(share, guarantee, largest, copies, details)


def _same_units(own: BudgetSnapshot, other: BudgetSnapshot) -> bool:
    """Whether what is left of an ancestor is what is left for the units of a budget."""
    if not isinstance(own.filter, Additive) or not isinstance(other.filter, Additive):
        return False
    units = {one.unit for one in own.filter.details_in(own.state)}
    if not units <= {one.unit for one in other.filter.details_in(other.state)}:
        return False
    # A `rho` is one of zCDP, or of an order.
    orders = (getattr(each.filter, "alpha", None) for each in (own, other))
    same_kind = type(own.filter) is type(other.filter) and len(set(orders)) == 1
    return "rho" not in units or same_kind


def _limited(own: BudgetSnapshot, alike: Sequence[BudgetSnapshot]) -> tuple[Detail, ...]:
    """What is left of a budget by unit, or less where an ancestor has less of a unit."""
    details = own.filter.details_in(state_held(own))
    for other in alike:
        left = {one.unit: one.left for one in other.filter.details_in(state_held(other))}
        details = tuple(_at_most(one, left[one.unit]) for one in details)
    return details


def _at_most(detail: Detail, left: float) -> Detail:
    least = min(detail.left, left)
    return replace(detail, left=least, share=ratio(least, detail.capacity))


def _largest(snapshots: Sequence[BudgetSnapshot]) -> float:
    """The largest `eps` with an `eps`-DP query that could be spent on all of these."""
    most = min(snapshot.filter.most_eps for snapshot in snapshots)

    def fits(eps: float) -> bool:
        try:
            return all(admits(snapshot, PureDp(eps)) for snapshot in snapshots)
        except UnsupportedError:
            return False

    def proven(eps: float) -> bool:
        return provable(snapshots, PureDp(eps))

    found = largest_eps(fits, most)
    if not found or proven(found):
        return found
    return largest_eps(lambda eps: proven(eps) and fits(eps), most)


def _copies_of(snapshot: BudgetSnapshot, query: Query) -> Count:
    """How many copies of a query could be spent on a budget, one after another."""
    filter, state, holds, relation, *_ = snapshot
    if not holds:
        return count_copies(filter, state, query, relation)

    def follows(after: State) -> bool:
        return holds_after(snapshot, after) is not None

    return count_copies_before(filter, state, query, follows, relation)
