"""The automatic filter: a union (`union.py`) whose components are chosen at the first query.

Before anything is released the whole budget may still be chosen, so the first query that is
admitted decides which filters share `delta`. From then on the filter is their union: they are part
of the state and never change.

**Free.** Every component keeps an `eps` of at most the filter's, their deltas add up to at most
`delta`, and all of them start with nothing spent. So the whole interaction is within `(eps, delta)`
by the theorem of unions; what is chosen depends on the first query, its relation and `expect`, and
on no answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters import amounts
from residua.filters.additive.basic import PureFilter
from residua.filters.amounts import State
from residua.filters.balance import Detail
from residua.filters.base import AdditivePart, Filter
from residua.filters.costs import may_lose_everything, split, stated_renyi
from residua.filters.decision import Decision, make_decision
from residua.filters.noise import largest_response
from residua.filters.potential.plan import PlanFilter
from residua.filters.potential.renyi_commit import Commit, RenyiCommitFilter
from residua.filters.query import Query, as_list, loss_of, mechanism_if_known
from residua.filters.residue.target_residue import Reach, TargetResidueFilter
from residua.filters.target import alone_words, moderate_target, needed_alone
from residua.filters.union.union import Parts, UnionFilter, adopt_parts
from residua.filters.wording import rounded
from residua.mechanisms.composition import SelfComposed
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.noise import DiscreteGaussian
from residua.pld.constructors import approximate_dp, pure_dp
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.pld import Pld
from residua.provable import MOST_PLANNED, unprovable_filter
from residua.work_limit import remembered

COMPONENTS = ("pure", "target_residue", "renyi_commit", "plan")
"""The kinds of filter that may be components: their first states follow from what they keep."""
_RESERVE = 0.12
"""The share of a target residue filter (`target_residue.py`) that is for its reserves."""


@remembered(maxsize=256)
def components_for(
    eps: float, delta: float, losses: tuple[Pld, ...], stated: bool = False
) -> tuple[Filter, ...]:
    """The filters that share `(eps, delta)` where these losses are expected.

    Plain addition costs no `delta`. The target residue filter does most of the work. It is helped
    by a plan of the first query if that is sampled with little noise, since no filter that is open
    to everything covers its rare large losses as well; otherwise by Rényi accounting, which bears
    queries that state Rényi or zCDP bounds only. The deltas, as they are written, add up to at most
    `delta`.

    Args:
        eps: the target.
        delta: likewise.
        losses: of the first query and of those expected.
        stated: whether one of these states Rényi or zCDP bounds only.
    """
    if delta < 1e-28:
        # Its shares would be too small for some components.
        return PureFilter(eps), TargetResidueFilter(eps, delta)
    # Queries with a `delta` take theirs from the slack.
    slack = 0.5 if any(map(may_lose_everything, losses)) else 0.01
    whole = TargetResidueFilter(eps, delta, _RESERVE, slack)
    unit = None if stated else _least_noisy_sampled(losses[0])
    helper: PlanFilter | RenyiCommitFilter | None = None if unit is None else _plan_for(unit, whole)
    if helper is None:
        # Where a query states a Rényi or zCDP bound only, nothing else can take it.
        share = amounts.written(0.5 if stated else 0.01)
        helper = RenyiCommitFilter(eps, _share(delta, share))
    rest = _share(delta, 1 - amounts.written(helper.delta) / amounts.written(delta))
    if isinstance(helper, PlanFilter):
        # Large losses are likely enough to need a plan: larger reserves pay for them.
        open_to_all = _for_heavy_tails(TargetResidueFilter(eps, rest, 0.6, slack))
    else:
        open_to_all = TargetResidueFilter(eps, rest, _RESERVE, slack)
    return PureFilter(eps), helper, open_to_all


def _for_heavy_tails(filter: TargetResidueFilter) -> TargetResidueFilter:
    """The same filter with reserves of lower orders, which pay for large losses."""
    assert filter.order is not None
    return replace(filter, order=float(f"{1.0 + 0.3 * (filter.order - 1.0):.4g}"))


def _plan_for(unit: Pld, whole: TargetResidueFilter) -> PlanFilter | None:
    """A plan of a sampled query; None where `whole` does as well or there is no proof for one."""
    eps, delta = whole.eps, whole.delta
    if not isinstance(planned := mechanism_if_known(unit), Mechanism):
        return None
    most = _most_copies(unit, eps, delta)
    # A plan takes half of `delta`: what fits a plan of rare large losses grows almost in proportion
    # to it, and so does what the other components lose. Without one, `whole` has all of it.
    if most < 2 or _room(whole, unit) >= 0.55 * most:
        return None
    share = _share(delta, amounts.written(0.5))
    fits = PlanFilter(eps, share, (SelfComposed(planned, most),)).kept
    plan = PlanFilter(eps, share, (SelfComposed(planned, max(fits, 1)),))
    return None if fits < 2 or unprovable_filter(plan.to_dict()) else plan


def _room(filter: TargetResidueFilter, unit: Pld) -> float:
    """About how many copies of a query a filter admits, from some eight decisions."""
    state, copies = filter.initial(), 0.0
    stage = state.left / 8
    while state.left > 0 and (decision := filter.decide(state, unit)).admitted:
        after = decision.state
        assert isinstance(after, Reach)
        n = math.ceil(min(stage, state.left) / (state.left - after.left))
        reserves = (
            Fraction(float(old) * (float(new) / float(old)) ** n) if new else new
            for old, new in zip(state.reserves, after.reserves, strict=True)
        )
        copies += n
        left = max(state.left - n * (state.left - after.left), Fraction(0))
        state = replace(after, left=left, reserves=tuple(reserves))
    return copies


def _least_noisy_sampled(loss: Pld) -> Pld | None:
    """Of the queries with Gaussian noise on a sample that a loss is made of, the least noisy one.

    Equal losses may hold their queries in another order, and are one to a cache.
    """
    found = [f for f in loss.terms if isinstance(f, GaussianMixture)]
    return Pld(None, {min(found, key=astuple): 1}) if found else None


def _most_copies(unit: Pld, eps: float, delta: float) -> int:
    """How many copies fit `(eps, delta)`, to about one percent."""
    whole = approximate_dp(eps, delta)
    low, high = 0, 1
    while high < MOST_PLANNED and high * unit <= whole:
        low, high = high, 2 * high
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (middle, high) if middle * unit <= whole else (low, middle)
    return min(low, MOST_PLANNED)


def _share(delta: float, share: Fraction) -> float:
    """A share of `delta` as it is written, rounded down to six digits."""
    return float(rounded(amounts.written(delta) * share))


@dataclass(frozen=True)
class Open(State):
    """The components, none before the first query, and a state of each that is live."""

    filters: tuple[Filter, ...] = ()
    parts: tuple[State | None, ...] = ()


@dataclass(frozen=True)
class AutoFilter(Filter):
    """Keeps `(eps, delta)` for whatever is asked; `expect` names queries that may come.

    It becomes a union of filters that suit the first query and the expected ones.
    """

    eps: float
    delta: float
    expect: tuple[Query, ...] | None = None

    kind: ClassVar[str] = "auto"
    remaining_is_a_query: ClassVar[bool] = True

    def __post_init__(self) -> None:
        eps, delta = moderate_target(self.eps, self.delta)
        given = () if self.expect is None else self.expect
        if isinstance(given, Pld | Mechanism):
            given = (given,)
        expect = tuple(mechanism_if_known(q) for q in as_list(given, "expect"))
        checks.set_fields(self, eps=eps, delta=delta, expect=expect or None)
        super().__post_init__()

    @property
    def guarantee(self) -> Pld:
        return approximate_dp(self.eps, self.delta)

    def initial(self) -> Open:
        return Open(self.fingerprint)

    def union_for(self, query: Query, relation: str | None = None) -> UnionFilter:
        """The union that the filter becomes if this is the first query."""
        asked = [_split(query, relation), *(_split(each, None) for each in self.expect or ())]
        stated = any(known is not None for known, _ in asked)
        chosen = components_for(self.eps, self.delta, tuple(loss for _, loss in asked), stated)
        return _union(chosen, self.eps, self.delta)

    def _deciding_union(
        self, state: Open, query: Query, relation: str | None
    ) -> tuple[UnionFilter, Parts]:
        """The union that decides, and its state."""
        if not state.filters:
            union = self.union_for(query, relation)
            return union, union.initial()
        return self._union_in(state)

    def _union_in(self, state: Open) -> tuple[UnionFilter, Parts]:
        """The union that the filter has become, and its state."""
        union = _union(state.filters, self.eps, self.delta)
        return union, Parts(union.fingerprint, state.parts)

    def deciding_filter(
        self, state: State, query: Any = None, relation: str | None = None
    ) -> Filter:
        """The union that decides; before the first query the one that it would open."""
        assert isinstance(state, Open)
        if state.filters:
            return _union(state.filters, self.eps, self.delta)
        if query is None or isinstance(query, Commit) or _is_nothing(query, relation):
            return self
        return self.union_for(query, relation)

    # -- decisions ----------------------------------------------------------------------

    def _decide(self, state: Open, query: Query, relation: str | None) -> Decision:
        if not state.filters and _is_nothing(query, relation):
            return make_decision(self, state, state, None, query, relation)
        union, parts = self._deciding_union(state, query, relation)
        inner = union._decide(parts, query, relation)
        after = self._after(state, union, inner.state) if inner.admitted else None
        return make_decision(self, state, after, inner, query, relation)

    def _after(self, state: Open, union: UnionFilter, parts: State) -> Open:
        assert isinstance(parts, Parts)
        return Open(state.of, union.filters, parts.parts)

    def admits(self, state: Any, query: Query, relation: str | None = None) -> bool:
        """Whether `decide` admits a query, without working out the state that follows."""
        if not state.filters and _is_nothing(query, relation):
            return True
        union, parts = self._deciding_union(state, query, relation)
        return union.admits(parts, query, relation)

    def additive_parts(self, state: State) -> tuple[AdditivePart, ...]:
        own = self.check_state(state)
        if not own.filters:
            return ()
        union, parts = self._union_in(own)
        return union.additive_parts(parts)

    def skip(
        self, state: State, queries: Sequence[Query], most: int, relation: str | None = None
    ) -> tuple[int, State]:
        """As the union does that the first of these queries opens."""
        now = self.check_state(state)
        first = next((one for one in queries if not _is_nothing(one, relation)), None)
        if first is None:
            return (most if queries else 0), now
        union, parts = self._deciding_union(now, first, relation)
        rounds, after = union.skip(parts, queries, most, relation)
        return rounds, self._after(now, union, after) if rounds else now

    def stops_of(self, decision: Decision) -> tuple[str, ...]:
        """The names of the components that an admitted query stops."""
        inner = decision._price
        return inner.stops if isinstance(inner, Decision) else ()

    def remaining_in(self, state: State) -> Pld:
        """The largest `R_e` that would be admitted now, to six digits of `e`."""
        own = self.check_state(state)
        return largest_response(self.eps, lambda eps: self.admits(own, pure_dp(eps)))

    # -- states -------------------------------------------------------------------------

    def check_state(self, state: Any) -> Open:
        state = super().check_state(state)
        if not isinstance(state, Open):
            raise ArgumentTypeError(f"state must be one of {self.kind}, got {checks.shown(state)}")
        if state.filters:
            union, parts = self._union_in(state)
            union.check_state(parts)
        elif state.parts:
            raise ArgumentError(f"state must have components for its parts, got {state!r}")
        return state

    def _adopt(self, state: State) -> State:
        assert isinstance(state, Open)
        return super()._adopt(replace(state, parts=adopt_parts(state.filters, state.parts)))

    def state_to_json(self, state: State) -> str:
        from residua.filters.codec import canonical, plain_states

        own = self.check_state(state)
        filters = [component.to_dict() for component in own.filters]
        parts = plain_states(own.filters, own.parts)
        return canonical({"kind": self.kind, "of": own.of, "filters": filters, "parts": parts})

    def state_from_fields(self, fields: Mapping[str, Any]) -> State:
        from residua.filters.codec import from_dict, states_from_plain

        filters = tuple(
            map(from_dict, checks.items("filters", fields["filters"], "a list of filters"))
        )
        return Open(fields["of"], filters, states_from_plain(filters, fields["parts"]))

    # -- wording ------------------------------------------------------------------------

    def details_in(self, state: State) -> tuple[Detail, ...]:
        """The units of the components; none before they are chosen."""
        own = self.check_state(state)
        if not own.filters:
            return ()
        union, parts = self._union_in(own)
        return union.details_in(parts)

    def share_in(self, state: State) -> float:
        """The largest share of a live component; all of it before they are chosen."""
        own = self.check_state(state)
        if not own.filters:
            return 1.0
        union, parts = self._union_in(own)
        return union.share_in(parts)

    @property
    def most_eps(self) -> float:
        return self.eps

    def _cost_value(self, price: Decision) -> Any:
        return price.cost

    def cost_words(self, decision: Decision) -> str:
        inner = decision._price
        return inner.cost_words if isinstance(inner, Decision) else "nothing"

    def _need(self, decision: Decision) -> str:
        """The query's own needs if those are too much, else the union's reason."""
        inner = decision._price
        assert isinstance(inner, Decision)
        needed = needed_alone(loss_of(decision.query, decision._relation), self.delta)
        if needed > self.eps:
            return f"exceeds what is left ({alone_words(needed, self.delta)})"
        return inner.need


def _is_nothing(query: Query, relation: str | None) -> bool:
    """Whether a query has no loss at all, so that it opens nothing."""
    known, loss = _split(query, relation)
    return known is None and loss.is_identity


def _split(query: Query, relation: str | None) -> tuple[tuple[Fraction, ...] | None, Pld]:
    def stated(mechanism: Mechanism) -> tuple[Fraction, ...] | None:
        cost = None if isinstance(mechanism, DiscreteGaussian) else stated_renyi(mechanism, 2.0)
        return None if cost is None else (cost,)

    return split(query, relation, stated)


@remembered(maxsize=256)
def _union(filters: tuple[Filter, ...], eps: float, delta: float) -> UnionFilter:
    """The union of components that keep `(eps, delta)` together."""
    for each in filters:
        if each.kind not in COMPONENTS:
            raise ArgumentError(
                f"filters must be among {', '.join(COMPONENTS)} to be components of auto,"
                f" got {each.kind}"
            )
    total = sum((amounts.written(getattr(each, "delta", 0.0)) for each in filters), Fraction(0))
    if total > amounts.written(delta):
        raise ArgumentError(
            f"filters must have deltas that add up to at most {delta!r}, got {float(total)!r}"
        )
    return UnionFilter(filters, eps)
