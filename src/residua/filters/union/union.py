"""The union of filters: a query is admitted if one live component admits it.

Let `F_1 … F_m` be filters with the same `eps`, and let every analyst who stays within `F_j` satisfy
`H_{e^eps} <= delta_j` in both directions. The union keeps a state for each component. A query is
admitted if a live component admits it; components that admit it move on, components that do not are
stopped for good; a query that every live component refuses changes nothing.

**Theorem.** The whole interaction is `(eps, Σ delta_j)`-DP.

*Proof.* Let `M` be an analyst of the union, and `M_j` the same analyst who passes for ever from the
first query on that the union admits and `F_j` does not. `M_j` is an analyst of `F_j`, so
`E[(1 - e^{eps - Z_j})_+] <= delta_j`, where the loss `Z_j` of the stopped transcript is a function
of the transcript of `M`. On every transcript some component is live to the end, and its `Z_j` is
the loss `Z` of the whole. So `(1 - e^{eps - Z})_+ <= Σ_j (1 - e^{eps - Z_j})_+` at every point;
take expectations. The other direction is the same. In an infinite run the live sets decrease and
are never empty, so one component lives for ever: bound finite prefixes and take the limit. ∎

The proof needs decisions that depend on the public history alone, states that refusals leave as
they were, and that a stopped component never comes back. Sharing one `delta` between components is
not sound: see `adversary/unsound`.

A component without a stated `(eps, delta)` (GDP, zCDP, Rényi) counts with the `delta` of its
guarantee at `eps`, the larger of both directions. A pure component has `delta_j = 0` and is free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

from residua import checks
from residua.bounds import float_up
from residua.errors import ArgumentError, ArgumentTypeError, TooExpensive, UnsupportedError
from residua.filters.amounts import State
from residua.filters.balance import ONE_QUERY, Detail, largest_pure_eps, ratio, share_of
from residua.filters.base import AdditivePart, Filter, is_unspent, unspent_copy
from residua.filters.costs import largest_eps, response_point
from residua.filters.decision import Decision, make_decision
from residua.filters.noise import largest_response
from residua.filters.query import Query, as_mechanism, directions, relation_of
from residua.filters.union.refusals import admits_or_not, need_words
from residua.filters.wording import join_parts, sentence
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.relations import ADD_REMOVE
from residua.pld.constructors import approximate_dp, pure_dp
from residua.pld.pld import Pld
from residua.provable import unprovable
from residua.sizes import MOST_COMPONENTS
from residua.work_limit import OPERATIONS, attempt, remembered_property


@dataclass(frozen=True)
class Parts(State):
    """A state of each component; None for those that are stopped."""

    parts: tuple[State | None, ...]

    @property
    def live(self) -> tuple[int, ...]:
        """The places of the live components."""
        return tuple(i for i, part in enumerate(self.parts) if part is not None)


@dataclass(frozen=True)
class UnionFilter(Filter):
    """Admits what at least one live component admits; the others are stopped for good.

    Args:
        filters: the components, none of which has spent anything. Unions among them are replaced
            by their components.
        eps: the `eps` of the guarantee; by default the largest one that a component states.

    Raises:
        ArgumentError: no components, or too many; a component has spent something, or no known
            guarantee; a component states an `eps` above the union's; no `eps` is given and no
            component states one; the deltas add up to 1 or more.
    """

    filters: tuple[Filter, ...]
    eps: float | None = None

    kind: ClassVar[str] = "union"
    remaining_is_a_query: ClassVar[bool] = True
    nested_filters: ClassVar[frozenset[str]] = frozenset({"filters"})

    def __post_init__(self) -> None:
        components = _components(self.filters)
        eps = largest_eps(_largest_guaranteed(components) if self.eps is None else self.eps)
        for each in components:
            # A plan promises no more than its queries, whatever the eps that they had to fit.
            own = None if each.kind == "plan" else _stated(each, "eps")
            if own is not None and own > eps:
                raise ArgumentError(
                    f"eps must be at least that of every component, got {eps!r},"
                    f" and {each.kind} has {own!r}"
                )
        deltas = [_delta_bound(component, eps) for component in components]
        total = sum(map(Fraction, deltas), Fraction(0))
        if total >= 1:
            counts = zip(components, deltas, strict=True)
            raise ArgumentError(
                f"filters must have deltas that add up to less than 1 at eps {eps:g},"
                f" got {float(total):.6g} in total"
                f" ({', '.join(f'{each.kind} {delta:g}' for each, delta in counts)})"
            )
        checks.set_fields(self, filters=components, eps=eps)
        super().__post_init__()

    # -- the promise --------------------------------------------------------------------

    @remembered_property
    def deltas(self) -> tuple[float, ...]:
        """The `delta` of each component at `eps`, rounded up."""
        assert self.eps is not None
        return tuple(_delta_at(component, self.eps) for component in self.filters)

    @remembered_property
    def delta(self) -> float:
        """The `delta` of the whole: the sum, rounded up."""
        return float_up(sum(map(Fraction, self.deltas), Fraction(0)))

    @property
    def guarantee(self) -> Pld:
        assert self.eps is not None
        return approximate_dp(self.eps, self.delta)

    # -- decisions ----------------------------------------------------------------------

    @property
    def _share(self) -> int:
        """Of the limit on work, for the decision of one component."""
        return OPERATIONS // len(self.filters)

    def initial(self) -> Parts:
        return Parts(self.fingerprint, tuple(each.initial() for each in self.filters))

    def _decide(self, state: Parts, query: Query, relation: str | None) -> Decision:
        why_not = _unverifiable(self.filters, query, relation)
        answers = [
            None if part is None else _answer(component, part, query, relation, why, self._share)
            for component, part, why in zip(self.filters, state.parts, why_not, strict=True)
        ]
        errors = [each for each in answers if isinstance(each, UnsupportedError)]
        if errors and len(errors) == len(state.live):
            raise errors[0]
        decisions = tuple(each if isinstance(each, Decision) else None for each in answers)
        if not any(each is not None and each.admitted for each in decisions):
            return make_decision(self, state, None, decisions, query, relation)
        parts = tuple(
            each.state if each is not None and each.admitted else None for each in decisions
        )
        return make_decision(self, state, Parts(state.of, parts), decisions, query, relation)

    def stops_of(self, decision: Decision) -> tuple[str, ...]:
        """The names of the components that an admitted query stops."""
        before, after = decision._before, decision.state
        assert isinstance(before, Parts) and isinstance(after, Parts)
        return tuple(self.names[i] for i in before.live if after.parts[i] is None)

    @remembered_property
    def names(self) -> tuple[str, ...]:
        """The names of the components: their kinds, numbered where a kind occurs twice."""
        kinds = [component.kind for component in self.filters]
        several, seen = Counter(kinds), Counter[str]()
        names = []
        for kind in kinds:
            seen[kind] += 1
            names.append(f"{kind} {seen[kind]}" if several[kind] > 1 else kind)
        return tuple(names)

    def remaining_in(self, state: State) -> Pld:
        """The largest `R_e` that would be admitted now, to six digits of `e`."""
        own = self.check_state(state)
        return largest_response(self.most_eps, lambda eps: self.admits(own, pure_dp(eps), None))

    def admits(self, state: State, query: Query, relation: str | None = None) -> bool:
        """Whether `decide` admits a query, without working out the state that follows."""
        own = self.check_state(state)
        why_not = _unverifiable(self.filters, query, relation)
        return any(
            part is not None
            and why is None
            and admits_or_not(component, part, query, relation, self._share)
            for component, part, why in zip(self.filters, own.parts, why_not, strict=True)
        )

    def additive_parts(self, state: State) -> tuple[AdditivePart, ...]:
        """Those of the live components: a component that admits everything stays live."""
        own = self.check_state(state)
        return tuple(
            AdditivePart(self, place, each.left)
            for place, (component, part) in enumerate(zip(self.filters, own.parts, strict=True))
            if part is not None
            for each in component.additive_parts(part)
        )

    def additive_cost(
        self, place: int | None, query: Query, relation: str | None = None
    ) -> tuple[Fraction, ...] | None:
        if place is None or _unverifiable(self.filters, query, relation)[place] is not None:
            return None
        component = self.filters[place]

        def cost() -> tuple[Fraction, ...] | None:
            return component.additive_cost(None, query, relation)

        try:
            found = attempt("it", self._share, cost)
        except UnsupportedError:
            return None
        return None if isinstance(found, TooExpensive) else found

    @property
    def can_skip(self) -> bool:
        return all(component.can_skip for component in self.filters)

    def skip(
        self, state: State, queries: Sequence[Query], most: int, relation: str | None = None
    ) -> tuple[int, State]:
        """As many whole rounds as all live components admit, then one that may stop some."""
        now, done = self.check_state(state), 0
        while done < most and all(self.filters[i].can_skip for i in now.live):
            rounds, now = self._rounds(now, queries, most - done, relation)
            done += rounds
            after: State = now
            for query in queries if done < most else ():
                decision = self._decide(self.check_state(after), query, relation)
                if not decision.admitted:
                    return done, now
                after = decision.state
            done, now = min(done + 1, most), self.check_state(after)
        return done, now

    def _rounds(
        self, state: Parts, queries: Sequence[Query], most: int, relation: str | None
    ) -> tuple[int, Parts]:
        """Rounds that every live component admits for sure, and the state after them."""
        for query in queries:
            why_not = _unverifiable(self.filters, query, relation)
            if any(why_not[i] is not None for i in state.live):
                return 0, state
        for i in state.live:
            part = state.parts[i]
            assert part is not None
            most = min(most, self.filters[i].skip(part, queries, most, relation)[0])
        parts = (
            None if part is None else component.skip(part, queries, most, relation)[1]
            for component, part in zip(self.filters, state.parts, strict=True)
        )
        return most, Parts(state.of, tuple(parts))

    def most_rounds(
        self,
        parts: Sequence[State | None],
        queries: Sequence[Query],
        most: int,
        relation: str | None = None,
    ) -> int:
        """The most whole rounds that one live component admits for sure by itself.

        It stays live as long as it admits every query, so the union admits them too.
        """
        why_not = [_unverifiable(self.filters, query, relation) for query in queries]
        rounds = [
            component.skip(part, queries, most, relation)[0]
            for i, (component, part) in enumerate(zip(self.filters, parts, strict=True))
            if part is not None and all(why[i] is None for why in why_not)
        ]
        return max(rounds, default=0)

    def details_in(self, state: State) -> tuple[Detail, ...]:
        """The units of every component; nothing is left in one that is stopped."""
        parts = zip(self.names, self.filters, self.check_state(state).parts, strict=True)
        return tuple(detail for part in parts for detail in _component_details(*part))

    def share_in(self, state: State) -> float:
        """The largest share of a live component, which is enough for a query to fit."""
        parts = zip(self.filters, self.check_state(state).parts, strict=True)
        return max(share_of(component, part) for component, part in parts if part is not None)

    @property
    def most_eps(self) -> float:
        assert self.eps is not None
        return self.eps

    # -- states -------------------------------------------------------------------------

    def check_state(self, state: Any) -> Parts:
        state = super().check_state(state)
        if not isinstance(state, Parts) or len(state.parts) != len(self.filters):
            raise ArgumentTypeError(
                f"state must have {len(self.filters)} parts for {self.kind},"
                f" got {checks.shown(state)}"
            )
        if not state.live:
            raise ArgumentError("state must have a live component, got only stopped ones")
        for component, part in zip(self.filters, state.parts, strict=True):
            if part is not None:
                component.check_state(part)
        return state

    def _adopt(self, state: State) -> State:
        assert isinstance(state, Parts)
        return super()._adopt(replace(state, parts=adopt_parts(self.filters, state.parts)))

    def state_to_json(self, state: State) -> str:
        from residua.filters.codec import canonical, plain_states

        own = self.check_state(state)
        parts = plain_states(self.filters, own.parts)
        return canonical({"kind": self.kind, "of": own.of, "parts": parts})

    def state_from_fields(self, fields: Mapping[str, Any]) -> State:
        from residua.filters.codec import states_from_plain

        return Parts(fields["of"], states_from_plain(self.filters, fields["parts"]))

    def tables(self, state: State) -> dict[str, bytes]:
        """The tables of the live components, each under the place of its component."""
        own = self.check_state(state)
        return {
            f"{i}.{name}": table
            for i in own.live
            for name, table in self.filters[i].tables(own.parts[i]).items()  # type: ignore[arg-type]
        }

    # -- wording ------------------------------------------------------------------------

    def _cost_value(self, price: tuple[Decision | None, ...]) -> dict[str, Any]:
        both = zip(self.names, price, strict=True)
        return {
            name: each.cost for name, each in both if each is not None and each.cost is not None
        }

    def cost_words(self, decision: Decision) -> str:
        both = zip(self.names, decision._price, strict=True)
        costs = [f"{name} {each.cost_words}" for name, each in both if each and each.admitted]
        stopped = self.stops_of(decision)
        return join_parts(costs) + (f" and stops {join_parts(stopped)}" if stopped else "")

    def _need(self, decision: Decision) -> str:
        """The binding component's reason, and which others refuse the query or are stopped."""
        before = decision._before
        assert isinstance(before, Parts) and self.eps is not None
        live = [self.names[i] for i in before.live]
        answers = dict(zip(self.names, decision._price, strict=True))
        return need_words(answers, live, self.share_in(before), self.eps)


def adopt_parts(
    filters: Sequence[Filter], parts: Sequence[State | None]
) -> tuple[State | None, ...]:
    """States of other copies of these filters, as states of these."""
    both = zip(filters, parts, strict=True)
    return tuple(None if part is None else each._adopt(part) for each, part in both)


def _components(given: Any) -> tuple[Filter, ...]:
    if isinstance(given, Mapping):
        raise ArgumentTypeError(f"filters must be a list of filters, got {checks.shown(given)}")
    found: list[Filter] = []
    for each in checks.items("filters", given, "a list of filters"):
        if not isinstance(each, Filter):
            raise ArgumentTypeError(f"filters must contain only filters, got {checks.shown(each)}")
        if not is_unspent(each):
            raise ArgumentError(
                f"filters must be unspent: {each.kind} has admitted queries; make a new one"
            )
        found += each.filters if isinstance(each, UnionFilter) else [unspent_copy(each)]
    if not 1 <= len(found) <= MOST_COMPONENTS:
        got = len(found) or "none"
        raise ArgumentError(
            f"filters must contain between 1 and {MOST_COMPONENTS} filters, got {got}"
        )
    return tuple(found)


def _stated(component: Filter, name: str) -> float | None:
    """The `eps` or the `delta` that a component states, for its guarantee where that is another."""
    if component.kind == "natural":
        return None
    found = getattr(component, f"target_{name}", None)
    found = getattr(component, name, None) if found is None else found
    return found if isinstance(found, float) else None


def _largest_guaranteed(components: Sequence[Filter]) -> float:
    """The largest `eps` of the components whose guarantee is `R_{eps,delta}`."""
    found = [each for each in map(_guaranteed_eps, components) if each is not None]
    if not found:
        kinds = sentence(tuple(dict.fromkeys(each.kind for each in components)))
        raise ArgumentError(f"eps must be given: no component states one, got {kinds}")
    return max(found)


def _guaranteed_eps(component: Filter) -> float | None:
    """The `eps` of a component whose guarantee is `R_{eps,delta}`; None for any other."""
    promise = _promise(component)
    point = (0.0, 0.0) if promise.is_identity else response_point(promise)
    return None if point is None else point[0]


def _delta_at(component: Filter, eps: float) -> float:
    """The `delta` of a component's guarantee at `eps`, rounded up, in the worse direction."""
    return max(float(each.delta(eps)) for each in directions(_promise(component)))


def _delta_bound(component: Filter, eps: float) -> float:
    """A `delta` that a component keeps at `eps`: the one that it states, if it does."""
    own, delta = _stated(component, "eps"), _stated(component, "delta")
    if own is not None and delta is not None and own <= eps:
        return delta
    return _delta_at(component, eps)


def _promise(component: Filter) -> Pld:
    promise: Any = component.guarantee
    if not isinstance(promise, Pld):
        raise ArgumentError(
            f"filters must have a known guarantee, got {component.kind} with"
            f" {checks.shown(promise)}"
        )
    return promise


def _answer(
    component: Filter, part: State, query: Query, relation: str | None, why: str | None, share: int
) -> Decision | UnsupportedError:
    """A component's decision; a refusal where its step has no proof or takes too much work."""
    if why is not None:
        why = f"has no proof: {why}"
        return make_decision(component, part, None, None, query, relation, why)
    try:
        return component._decide_within(part, query, relation, share, is_checked=True)
    except UnsupportedError as error:
        return error


def _component_details(name: str, component: Filter, part: State | None) -> tuple[Detail, ...]:
    """What is left of a component by unit; of one without units, its largest query."""
    found = component.details_in(component.initial() if part is None else part)
    if not found:
        whole = largest_pure_eps(component, component.initial())
        left = 0.0 if part is None else largest_pure_eps(component, part)
        found = (Detail(name, ONE_QUERY, left, whole, ratio(left, whole)),)
    if part is None:
        return tuple(replace(one, component=name, left=0.0, share=0.0, live=False) for one in found)
    return tuple(replace(one, component=name) for one in found)


def _unverifiable(
    filters: tuple[Filter, ...], query: Query, relation: str | None
) -> tuple[str | None, ...]:
    """Why the verifier could not prove the step of each component; None where it can.

    Where it could prove none of them, no ledger takes the query, and all decide in memory.
    """
    if isinstance(query, Mechanism):
        relation = relation_of(query, relation)
    return _without_proofs(filters, query, relation or ADD_REMOVE)


@lru_cache(maxsize=256)
def _descriptions(filters: tuple[Filter, ...]) -> tuple[dict[str, Any], ...]:
    return tuple(each.to_dict() for each in filters)


@lru_cache(maxsize=1024)
def _without_proofs(
    filters: tuple[Filter, ...], query: Query, relation: str
) -> tuple[str | None, ...]:
    try:
        plain = as_mechanism(query).to_dict()
        found = tuple(unprovable(plain, each, relation) for each in _descriptions(filters))
    except ArgumentError:
        # What has no description is decided in memory alone.
        return (None,) * len(filters)
    return found if None in found else (None,) * len(filters)
