"""The rule of holds: what may be spent, held and committed, as pure functions of a filter.

A budget has a committed state, the fold of the filter's `decide` over the committed queries in the
order of their commits, and open holds, in the order in which they were made. A hold's mechanism has
not started. With `s` the state and `h_1 … h_k` the holds,

* a spend `q` is admitted if `s, q, h_1, …, h_k` can all follow one another;
* a hold `q` is admitted if `s, h_1, …, h_k, q` can;
* a commit of `h_i` is admitted if `s, h_i, h_1, …, h_k` without `h_i` can; for the first hold that
  is always so.

The state moves by the one query that is released, never by a hold. So what is released is an
ordinary run of the filter, whatever happens to holds, and nothing that was committed comes back.

Where the filter, or a live component of a union, has fixed costs that add up, the holds fit if the
sum of these costs is left: each hold *sets aside* its cost there once, and a spend compares one sum
(`SetAside`). Holds in such a part can be committed in any order.

Elsewhere the holds are folded. The states after `s, h_1`, after `s, h_1, h_2` and so on are kept as
far as they are known. A new hold extends them by one decision. So does a commit of the first hold,
which moves `s` to the first of them and leaves the others as they are. A spend, or a commit out of
order, folds all holds again, and after a cancelled hold those behind it are folded again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from residua.errors import ArgumentError, TooExpensive
from residua.filters import amounts
from residua.filters.additive.base import Additive
from residua.filters.amounts import Left, State
from residua.filters.base import Filter
from residua.filters.costs import leaves
from residua.filters.decision import NOTHING_FITS, Decision
from residua.filters.noise import least_noise, least_noise_within
from residua.filters.potential.renyi_commit import Commit, RenyiCommitFilter
from residua.filters.query import describe
from residua.ledger.domain.described_query import DescribedQuery
from residua.ledger.domain.set_aside import Held, SetAside, set_aside_in, without_hold
from residua.mechanisms.mechanism import Mechanism
from residua.pld.constructors import identity
from residua.pld.pld import Pld
from residua.provable import unprovable
from residua.sizes import MOST_HOLDS
from residua.work_limit import OPERATIONS, UNLIMITED, attempt, remembered, work

SEARCH_LIMIT = OPERATIONS // 30
"""Operations that the search for what would fit takes at most in a refusal: less than a second."""
_CANDIDATE_PART = 60_000
"""Operations that the search counts for each part of a candidate, which is made, described and
looked up again, beside what its decision counts."""


class BudgetSnapshot(NamedTuple):
    """A snapshot of a budget: its filter, committed state, open holds in order, and neighbours."""

    filter: Filter
    state: State
    holds: tuple[DescribedQuery, ...]
    relation: str
    unit: str
    held: Held = ()
    """As far as it is known."""

    def without(self, place: int) -> BudgetSnapshot:
        """The same with one hold fewer."""
        left = self.holds[:place] + self.holds[place + 1 :]
        return self._replace(holds=left, held=without_hold(self.held, place))

    def decide(self, query: DescribedQuery, state: State | None = None) -> Decision:
        """What its filter decides on a query, in the committed state or another one."""
        at = self.state if state is None else state
        return decided(self.filter, at, query.query, self.relation)

    @property
    def states(self) -> tuple[State, ...]:
        """The states after the first holds, one after another, as far as they are known."""
        return () if self.set_aside else cast(tuple[State, ...], self.held)

    @property
    def set_aside(self) -> tuple[SetAside, ...]:
        """What the first holds set aside, as far as it is known."""
        known = bool(self.held) and isinstance(self.held[0], SetAside)
        return cast(tuple[SetAside, ...], self.held) if known else ()


Fits = Callable[[BudgetSnapshot, DescribedQuery], bool]


class BudgetDecision(NamedTuple):
    """A rule's decision on one budget: the committed state after it, and why."""

    admitted: bool
    state: State
    reason: str
    held: Held = ()
    """For each hold that is open after it, where it is admitted."""
    kept: int = 0
    """How many of these, from the first on, were known before: the holds that nothing changed."""


Rule = Callable[[BudgetSnapshot, DescribedQuery, Sequence[BudgetSnapshot]], BudgetDecision]
"""`spend` or `hold`."""


def judge(
    snapshots: Mapping[str, BudgetSnapshot], rule: Rule, query: DescribedQuery
) -> dict[str, BudgetDecision]:
    """A rule's decision on each budget that a request charges, up to the first that refuses.

    Raises where a step with the query could not be proven afterwards.
    """
    for name, snapshot in snapshots.items():
        why = query.unprovable(_in_force(snapshot, query.query), snapshot.relation)
        if why is not None:
            raise ArgumentError(
                f"query must be one that can be verified on the budget {name!r}: {why};"
                " nothing was spent"
            )
    every = tuple(snapshots.values())
    decisions: dict[str, BudgetDecision] = {}
    for name, snapshot in snapshots.items():
        decisions[name] = rule(snapshot, query, every)
        if not decisions[name].admitted:
            break
    return decisions


def judge_commit(
    snapshots: Mapping[str, BudgetSnapshot], places: Mapping[str, int]
) -> dict[str, BudgetDecision]:
    """Whether each budget releases the hold at its place."""
    return {name: commit(snapshot, places[name]) for name, snapshot in snapshots.items()}


@remembered(maxsize=1024)
def decided(filter: Filter, state: State, query: Any, relation: str) -> Decision:
    """`filter.decide`, remembered: it is pure, and dry runs and spends ask the same."""
    return filter.decide(state, query, relation=relation)


def fold(
    snapshot: BudgetSnapshot, state: State, queries: Sequence[DescribedQuery]
) -> tuple[State, ...] | None:
    """The states after each of these, one after another; None where one does not fit."""
    states = []
    for each in queries:
        decision = snapshot.decide(each, state)
        if not decision.admitted:
            return None
        state = decision.state
        states.append(state)
    return tuple(states)


def _set_aside(snapshot: BudgetSnapshot, state: State) -> tuple[tuple[SetAside, ...], int] | None:
    """What the holds set aside, in a part that has room for them all, and how much was known.

    In the part where they did before, while that has room; else in the first one that has.
    """
    known = snapshot.set_aside
    parts = snapshot.filter.additive_parts(state) if snapshot.holds else ()
    if known:
        parts = tuple(sorted(parts, key=lambda part: part.place != known[0].place))
    for part in parts:
        kept = known if known and known[0].place == part.place else ()
        found = set_aside_in(part, snapshot.holds, snapshot.relation, kept)
        if found is not None:
            return found, len(kept)
    return None


def adds_up(filter: Filter) -> bool:
    """Whether a filter as a whole has fixed costs: its sums decide whether holds fit."""
    return isinstance(filter, Additive) and filter.fixed_costs


def holds_after(snapshot: BudgetSnapshot, state: State) -> tuple[Held, int] | None:
    """What all holds need once the committed state is this, and how much of it was known.

    None where they do not fit.
    """
    if not snapshot.holds:
        return (), 0
    found = _set_aside(snapshot, state)
    if found is not None or adds_up(snapshot.filter):
        return found
    states = fold(snapshot, state, snapshot.holds)
    return None if states is None else (states, 0)


def states_held(snapshot: BudgetSnapshot) -> tuple[State, ...] | None:
    """The states after each open hold, those that are known extended; None if one does not fit."""
    known = snapshot.states
    last = known[-1] if known else snapshot.state
    rest = fold(snapshot, last, snapshot.holds[len(known) :])
    return None if rest is None else (*known, *rest)


def state_held(snapshot: BudgetSnapshot) -> State:
    """The state after all open holds; the committed one where one does not fit."""
    state = snapshot.state
    if snapshot.holds and adds_up(snapshot.filter) and isinstance(state, Left):
        found = _set_aside(snapshot, state)
        if found is None:
            return state
        taken = zip(*[each.takes for each in found[0]], strict=True)
        left = (a - sum(costs) for a, costs in zip(state.left, taken, strict=True))
        return Left(state.of, tuple(map(amounts.shorten, left)))
    return (state, *(states_held(snapshot) or ()))[-1]


def spend(
    snapshot: BudgetSnapshot, query: DescribedQuery, among: Sequence[BudgetSnapshot] = ()
) -> BudgetDecision:
    """Whether a query may be released now, before all holds.

    `among` has the snapshots of all budgets that the request charges, this one too: what a
    refusal says would fit, fits them all.
    """
    decision, held = _spend_before_holds(snapshot, query)
    if held is None:
        why = _refusal(snapshot, query, decision, tuple(among) or (snapshot,), spends)
        return BudgetDecision(False, snapshot.state, why)
    return BudgetDecision(True, decision.state, admitted(query, decision), *held)


def _spend_before_holds(
    snapshot: BudgetSnapshot, query: DescribedQuery
) -> tuple[Decision, tuple[Held, int] | None]:
    """What the filter decides, and what the holds need then; None where not all fit."""
    decision = snapshot.decide(query)
    return decision, holds_after(snapshot, decision.state) if decision.admitted else None


def hold(
    snapshot: BudgetSnapshot, query: DescribedQuery, among: Sequence[BudgetSnapshot] = ()
) -> BudgetDecision:
    """Whether a query may be held, after all other holds. The state stays."""
    if len(snapshot.holds) >= MOST_HOLDS:
        return BudgetDecision(
            False,
            snapshot.state,
            f"refused: the budget has {len(snapshot.holds)} open holds, and may have {MOST_HOLDS}"
            " at most; commit or cancel one, or wait until one expires",
        )
    tried = _hold_after_holds(snapshot, query)
    if tried is None:  # holds that fit once fit still: nothing comes before them unasked
        return BudgetDecision(False, snapshot.state, "refused: the open holds no longer fit")
    decision, held = tried
    if held is not None:
        reason = admitted(query, decision)
        if _depends_on_order(snapshot.filter):
            reason += " when it is committed; until then more may be held"
        return BudgetDecision(True, snapshot.state, reason, *held)
    why = _refusal(snapshot, query, decision, tuple(among) or (snapshot,), holds)
    return BudgetDecision(False, snapshot.state, why)


def _hold_after_holds(
    snapshot: BudgetSnapshot, query: DescribedQuery
) -> tuple[Decision, tuple[Held, int] | None] | None:
    """What the filter decides on one more hold, and what all holds need then, if all fit.

    None where those that are open do not fit.
    """
    with_it = snapshot._replace(holds=(*snapshot.holds, query))
    held: tuple[Held, int] | None = _set_aside(with_it, snapshot.state)
    if held is not None or adds_up(snapshot.filter):
        decision = snapshot.decide(query)
    else:
        states = states_held(snapshot)
        if states is None:
            return None
        decision = snapshot.decide(query, (snapshot.state, *states)[-1])
        held = (*states, decision.state), len(snapshot.states)
    return decision, held if decision.admitted else None


def _depends_on_order(filter: Filter) -> bool:
    """Whether a query's cost depends on what was spent before it.

    What may be spent before an open hold can then be less than the hold's cost suggests.
    """
    return not adds_up(filter) and not isinstance(filter, RenyiCommitFilter)


def commit(snapshot: BudgetSnapshot, place: int) -> BudgetDecision:
    """Whether the hold at a place may be released now, before all other holds."""
    others, query = snapshot.without(place), snapshot.holds[place]
    if place == 0 and snapshot.states:
        decision = snapshot.decide(query)
        if decision.admitted and decision.state == snapshot.states[0]:
            after = others._replace(state=decision.state, held=snapshot.states[1:])
            held = states_held(after)
            if held is not None:
                reason = admitted(query, decision)
                return BudgetDecision(True, decision.state, reason, held, len(after.states))
    if place == 0 or spends(others, query):
        return spend(others, query)
    why = f"{query} is held, but {place} holds were made before it"
    return BudgetDecision(
        False, snapshot.state, f"refused: {why}, and would not fit after it; commit those first"
    )


def spends(snapshot: BudgetSnapshot, query: DescribedQuery) -> bool:
    """Whether a spend would be admitted."""
    return _spend_before_holds(snapshot, query)[1] is not None


def holds(snapshot: BudgetSnapshot, query: DescribedQuery) -> bool:
    """Whether a hold would be admitted."""
    if len(snapshot.holds) >= MOST_HOLDS:
        return False
    tried = _hold_after_holds(snapshot, query)
    return tried is not None and tried[1] is not None


def largest(
    snapshots: Sequence[BudgetSnapshot],
    query: DescribedQuery,
    rule: Fits = spends,
    within: int = UNLIMITED,
) -> Mechanism | None:
    """The query of this kind with the least noise that all would admit; None if there is none.

    Where that takes more operations than `within` to find, the last query found to fit, or None.
    """
    # No noise changes the relation and the unit that a query declares.
    asked = (query.contradicts(each.relation, each.unit) for each in snapshots)
    if not isinstance(query.query, Mechanism) or any(why is not None for why in asked):
        return None

    def fits(candidate: object) -> bool:
        assert isinstance(candidate, Mechanism)
        turned = DescribedQuery(candidate, "")
        return all(rule(snapshot, turned) for snapshot in snapshots)

    return _advice(query.query, fits, snapshots, within)[0]


def remaining(snapshots: Sequence[BudgetSnapshot]) -> object:
    """What is left of the first budget, as far as its ancestors and the holds allow.

    In the unit of its filter, rounded down; where that is a PLD, or the ancestors have the same
    unit, asking for it passes.
    """
    first, filter = snapshots[0], snapshots[0].filter
    # What fits before the holds may be more than what they leave: it is looked for from above.
    state = first.state if filter.remaining_is_a_query else state_held(first)
    left = filter.remaining_in(state)
    if len(snapshots) == 1 and not (first.holds and isinstance(left, Pld)):
        return left
    others = [other.filter.remaining_in(state_held(other)) for other in snapshots[1:]]
    if not isinstance(left, Pld):
        for also in others:
            if type(also) is type(left) and hasattr(left, "at_most"):
                left = left.at_most(also)
        return left
    candidates = [left, *(also for also in others if isinstance(also, Pld))]

    def fits(candidate: object) -> bool:
        assert isinstance(candidate, Pld)
        return all(_takes(snapshot, candidate) for snapshot in snapshots)

    for candidate in candidates:
        if fits(candidate):
            return candidate
    found = least_noise(left, fits)
    return identity() if found is None else found


def _takes(snapshot: BudgetSnapshot, loss: Pld) -> bool:
    decision = snapshot.filter.decide(snapshot.state, loss, relation=snapshot.relation)
    return decision.admitted and holds_after(snapshot, decision.state) is not None


def admitted(query: DescribedQuery, decision: Decision) -> str:
    """The reason of an admission."""
    return f"admitted: {query} costs {decision.cost_words}"


def _refusal(
    snapshot: BudgetSnapshot,
    query: DescribedQuery,
    decision: Decision,
    among: tuple[BudgetSnapshot, ...],
    rule: Fits,
) -> str:
    """The reason of a refusal, with what would fit unless that takes too long to work out."""
    alone = len(among) == 1 and not snapshot.holds
    if alone and isinstance(query.query, Commit):
        return decision.reason
    left, advice = _left_and_advice(snapshot, query, among, rule)
    if decision.admitted or (snapshot.holds and rule is holds):
        return f"refused: {query} does not fit; {left}; {advice}"
    return decision.refusal_reason(left, advice)


@remembered(maxsize=256)
def _left_and_advice(
    snapshot: BudgetSnapshot, query: DescribedQuery, among: tuple[BudgetSnapshot, ...], rule: Fits
) -> tuple[str | None, str]:
    """What is left of this budget (None: as its filter says it), and what all would admit.

    Remembered, as decisions are: it is worked out before a request queues.
    """
    left = None
    if snapshot.holds:
        left = _left_beside_holds(snapshot)
    elif len(among) > 1:
        left = snapshot.filter.share_left_words(snapshot.state, "left in this budget")
    if not isinstance(query.query, Mechanism):
        return left, "what would fit is not computed for a commit"

    def fits(candidate: object) -> bool:
        assert isinstance(candidate, Mechanism)
        return all(admits(each, candidate, rule) for each in among)

    return left, _advice(query.query, fits, among)[1]


def admits(snapshot: BudgetSnapshot, query: Mechanism, rule: Fits = spends) -> bool:
    """Whether a rule admits a candidate, without laying out a grid or filling the memory for it."""
    if snapshot.holds:
        return rule(snapshot, DescribedQuery(query, ""))
    return snapshot.filter.admits(snapshot.state, query, snapshot.relation)


def _left_beside_holds(snapshot: BudgetSnapshot) -> str:
    n, filter = len(snapshot.holds), snapshot.filter
    held = state_held(snapshot)
    left_beside = f"left beside {'an open hold' if n == 1 else f'{n} open holds'}"
    if filter.share_in(held) is not None:
        return filter.share_left_words(held, left_beside)
    left = attempt("this", SEARCH_LIMIT, lambda: remaining((snapshot,)))
    words = filter.left_words(held, None if isinstance(left, TooExpensive) else left)
    return f"{words} {left_beside}"


def provable(snapshots: Sequence[BudgetSnapshot], query: Mechanism) -> bool:
    """Whether a query is one that could be asked for on all of these."""
    plain = query.to_dict()
    return all(
        unprovable(plain, _in_force(each, query).to_dict(), each.relation) is None
        for each in snapshots
    )


def _in_force(snapshot: BudgetSnapshot, query: Mechanism | Commit) -> Filter:
    """The filter that decides."""
    return snapshot.filter.deciding_filter(snapshot.state, query, snapshot.relation)


def _advice(
    query: Mechanism,
    fits: Callable[[object], bool],
    snapshots: Sequence[BudgetSnapshot],
    within: int = SEARCH_LIMIT,
) -> tuple[Mechanism | None, str]:
    """The query with the least noise that fits, and what to say of it.

    If that takes too much work to find, the last query that was found to fit.
    """
    parts = len(leaves(query))

    def soon(candidate: object) -> bool:
        work(parts * _CANDIDATE_PART)
        known = isinstance(candidate, Mechanism) and provable(snapshots, candidate)
        return known and fits(candidate)

    found = least_noise_within(query, soon, within)
    if isinstance(found, TooExpensive):
        return None, "what would fit takes too much work to find: read largest"
    if not isinstance(found, Mechanism):
        return None, NOTHING_FITS
    return found, f"{describe(found)} would fit"
