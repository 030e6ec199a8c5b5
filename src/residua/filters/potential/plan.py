"""The plan filter: a budget made of the queries that are expected.

The budget `B` is the composition of the longest prefix of the plan that fits `R_{eps,delta}`. A
composition is a multiset, so what is left of `B` is kept as counts: how many of each planned
mechanism, and how much of the planned Gaussian variance, which adds up exactly.

A query is taken off `B` part by part, `L ⊕ (B - S) ⪯ B`:

* parts that are on the plan, and Gaussian noise up to the variance that is left, are taken off
  exactly: no curve is evaluated, and nothing is lost;
* a part dominated by a planned mechanism `W` takes that one off, `n` of them `n`;
* one part that is neither takes the least number of one planned kind, or the least Gaussian
  variance, for which `(B - S) ⊕ L ⪯ B` is proven: of kinds whose outcomes can be written out
  together, as the verifier does.

Free: all of these are the residue condition. On the plan nothing is lost at all; far off it, much
may be.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

from residua import checks
from residua.errors import ArgumentError
from residua.filters import amounts
from residua.filters.amounts import State
from residua.filters.balance import Detail, make_detail
from residua.filters.base import Filter
from residua.filters.costs import gaussian_variance, leaves, without_gaussian
from residua.filters.decision import Decision, make_decision
from residua.filters.query import Query, as_list, as_query, describe, loss_of, mechanism_if_known
from residua.filters.residue.gdp_residue import rest_bounds
from residua.filters.target import alone_words, moderate_target, needed_alone
from residua.filters.wording import SQUARES
from residua.mechanisms.composition import SelfComposed
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.relations import ADD_REMOVE
from residua.pld.constructors import approximate_dp, gaussian, identity
from residua.pld.families.factors import Factor
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.families.symmetric import RandomizedResponse
from residua.pld.pld import Pld
from residua.provable import LARGEST_SHARE
from residua.provable.forms import MOST_OUTCOMES
from residua.work_limit import remembered, remembered_property

_NOT_COVERED = "is not covered by what is left of the plan"


@dataclass(frozen=True)
class Planned(State):
    """How many of each mechanism on the plan are left, and how much variance of its Gaussians.

    The mechanisms are in the order of their first appearance.
    """

    left: tuple[int, ...]
    variance: Fraction


class _Taken(NamedTuple):
    """A part of a plan: some of each mechanism, and Gaussian variance."""

    counts: tuple[int, ...]
    variance: Fraction


@dataclass(frozen=True)
class PlanFilter(Filter):
    """Keeps `(eps, delta)` for the longest prefix of a plan that fits, or what replaces it.

    `plan` is a list of queries; `SelfComposed(query, n)` in it is the same as `query` `n` times.
    """

    eps: float
    delta: float
    plan: tuple[Query, ...]

    kind: ClassVar[str] = "plan"
    repeated_queries: ClassVar[frozenset[str]] = frozenset({"plan"})

    def __post_init__(self) -> None:
        eps, delta = moderate_target(self.eps, self.delta)
        plan = _normal(as_list(self.plan, "plan"))
        checks.require(len(plan) > 0, "plan", "a non-empty list of queries", self.plan)
        for query in plan:
            if isinstance(query, Mechanism) and ADD_REMOVE not in query.supported:
                known = " and ".join(query.supported) or "no relation"
                raise ArgumentError(
                    "plan must consist of queries with a pair for add-remove, got"
                    f" {describe(query)}, which has one for {known} only; plan a bound such as"
                    " PureDp instead, and ask for the query itself"
                )
        checks.set_fields(self, eps=eps, delta=delta, plan=plan)
        super().__post_init__()

    @remembered_property
    def kinds(self) -> tuple[Pld, ...]:
        """The losses of the different mechanisms on the plan, less those of Gaussians."""
        return _layout(self.plan).kinds

    @remembered_property
    def kept(self) -> int:
        """The length of the longest prefix that fits."""
        return _longest_prefix(self.plan, self.eps, self.delta)

    @remembered_property
    def _whole(self) -> _Taken:
        return _layout(self.plan).prefix(self.kept)

    def initial(self) -> Planned:
        return Planned(self.fingerprint, *self._whole)

    def check_state(self, state: Any) -> Planned:
        state = super().check_state(state)
        counts, variance = self._whole
        if (
            not isinstance(state, Planned)
            or len(state.left) != len(counts)
            or not all(0 <= n <= most for n, most in zip(state.left, counts, strict=True))
            or not 0 <= state.variance <= variance
        ):
            raise ArgumentError(f"state must be within the capacity of {self!r}, got {state!r}")
        return state

    @property
    def guarantee(self) -> Pld:
        """The composition of the plan, as far as it was kept."""
        return _layout(self.plan).composed(self.kept)

    # -- decisions ----------------------------------------------------------------------

    def _decide(self, state: Planned, query: Query, relation: str | None) -> Decision:
        taken = self._taken(state, loss_of(query, relation))
        if taken is None:
            return make_decision(self, state, None, None, query, relation, _NOT_COVERED)
        after = Planned(state.of, _less(state.left, taken.counts), _left(state, taken))
        return make_decision(self, state, after, taken, query, relation)

    def _taken(self, state: Planned, loss: Pld) -> _Taken | None:
        """The part that a query takes off, or None if the plan does not cover it."""
        counts, rest = self._exactly(state.left, loss)
        noise = gaussian_variance(loss)
        enough = noise <= state.variance
        if not rest and enough:
            return _Taken(counts, noise)
        left = _less(state.left, counts)
        if rest and enough:
            others = self._above_each(left, rest)
            if others is not None:
                return _Taken(_more(counts, others), noise)
            if sum(rest.values()) == 1:
                variance = state.variance - noise
                found = self._instead(Planned(state.of, left, variance), Pld(None, rest))
                if found is not None:
                    return _Taken(_more(counts, found.counts), noise + found.variance)
        if not rest:
            # Gaussian noise beyond what is planned, below one (eps, delta) that is.
            place = self._point_above(left, Pld(loss.gaussian, {}))
            if place is not None:
                return _Taken(_more(counts, self._one(place, 1)), Fraction(0))
        return None

    def _exactly(self, left: Sequence[int], loss: Pld) -> tuple[tuple[int, ...], Counter[Factor]]:
        """How many of each mechanism a loss is made of, and the factors that are not left."""
        need = Counter(dict(loss.terms))
        counts = [0] * len(left)
        for i in self._holding(loss) if need else ():
            terms = self.kinds[i].terms
            n = min([left[i], *(need[factor] // each for factor, each in terms.items())])
            if n > 0:
                counts[i] = n
                need -= Counter({factor: n * each for factor, each in terms.items()})
        return tuple(counts), need

    def _holding(self, loss: Pld) -> list[int]:
        """The places of planned mechanisms that a loss may be made of."""
        found = {i for factor in loss.terms for i in self._places.get(factor, ())}
        return sorted(found)

    @remembered_property
    def _places(self) -> dict[Factor, list[int]]:
        found: dict[Factor, list[int]] = {}
        for i, kind in enumerate(self.kinds):
            for factor in kind.terms:
                found.setdefault(factor, []).append(i)
        return found

    def _above_each(self, left: tuple[int, ...], rest: Counter[Factor]) -> tuple[int, ...] | None:
        """For each factor as many of one planned mechanism that dominates it; None without one."""
        taken = (0,) * len(left)
        for factor, n in rest.items():
            one = Pld(None, {factor: 1})
            free = _less(left, taken)
            fitting = [
                i
                for i, kind in enumerate(self.kinds)
                if free[i] >= n and _is_comparable(one, kind) and _below(one, kind)
            ]
            if not fitting:
                return None
            least = min(fitting, key=lambda i: float(self.kinds[i].delta(0.0)))
            taken = _more(taken, self._one(least, n))
        return taken

    def _point_above(self, left: tuple[int, ...], noise: Pld) -> int | None:
        """The place of the least `(eps, delta)` on the plan that Gaussian noise is within."""
        fitting = [
            i
            for i, kind in enumerate(self.kinds)
            if left[i] and _is_single(kind)
            and isinstance(next(iter(kind.terms)), RandomizedResponse) and _below(noise, kind)
        ]  # fmt: skip
        return min(fitting, key=lambda i: float(self.kinds[i].delta(0.0)), default=None)

    def _instead(self, state: Planned, rest: Pld) -> _Taken | None:
        """The least part of one kind, or of the variance, that may give way to a single query."""
        found: list[tuple[float, _Taken]] = []
        if state.variance and rest.mass_at_infinity == 0.0 == rest.mass_at_minus_infinity:
            bounds = rest_bounds(state.variance, rest)
            if bounds is not None and bounds[1] <= state.variance:
                size = float(bounds[1]) / (2.0 * math.pi)
                found.append((size, _Taken((0,) * len(state.left), bounds[1])))
        if _is_listed(dict(zip(self.kinds, state.left, strict=True))):
            for i, kind in enumerate(self.kinds):
                n = self._least(state.left, i, rest)
                if n is not None:
                    size = n * float(kind.delta(0.0)) ** 2
                    found.append((size, _Taken(self._one(i, n), Fraction(0))))
        return min(found, key=lambda each: each[0])[1] if found else None

    def _least(self, left: tuple[int, ...], i: int, loss: Pld) -> int | None:
        """The least number of one kind that a query may take off; None if all do not suffice."""
        whole = self._composed(left)

        def suffices(n: int) -> bool:
            return _below(self._composed(_less(left, self._one(i, n))) + loss, whole)

        if not left[i] or not suffices(left[i]):
            return None
        low, high = 0, 1
        while not suffices(min(high, left[i])):
            low, high = high, 2 * high
        high = min(high, left[i])
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if suffices(middle) else (middle, high)
        return high

    def _one(self, place: int, n: int) -> tuple[int, ...]:
        return tuple(n if i == place else 0 for i in range(len(self.kinds)))

    @property
    def can_skip(self) -> bool:
        return True

    def skip(
        self, state: State, queries: Sequence[Query], most: int, relation: str | None = None
    ) -> tuple[int, State]:
        """In closed form where every query is on the plan."""
        now = self.check_state(state)
        whole = sum((loss_of(as_query(one), relation) for one in queries), identity())
        shared = any(len(self._places.get(factor, ())) > 1 for factor in whole.terms)
        counts, rest = self._exactly(now.left, whole)
        if not queries or rest or shared:
            return 0, now
        for left, taken in zip(now.left, counts, strict=True):
            most = min(most, left // taken) if taken else most
        rounds, (variance,) = amounts.whole_rounds(
            (now.variance,), [(gaussian_variance(loss_of(one, relation)),) for one in queries], most
        )
        left_over = tuple(a - rounds * b for a, b in zip(now.left, counts, strict=True))
        return rounds, Planned(now.of, left_over, variance)

    # -- what is shown ------------------------------------------------------------------

    def _composed(self, counts: Sequence[int]) -> Pld:
        return sum((n * kind for kind, n in zip(self.kinds, counts, strict=True) if n), identity())

    def remaining_in(self, state: State) -> Pld:
        """The composition of what is left of the plan, its Gaussian rounded down."""
        assert isinstance(state, Planned)
        return self._composed(state.left) + _gaussian(amounts.root_down(state.variance))

    def spent_in(self, state: State) -> Pld:
        """The composition of what was taken off the plan, its Gaussian rounded up."""
        assert isinstance(state, Planned)
        whole = self._whole
        taken = _Taken(_less(whole.counts, state.left), whole.variance - state.variance)
        return self._cost_value(taken)

    def _cost_value(self, price: _Taken) -> Pld:
        return self._composed(price.counts) + _gaussian(amounts.root_up(price.variance))

    def details_in(self, state: State) -> tuple[Detail, ...]:
        """What is left of the planned queries, and of the planned Gaussian noise."""
        assert isinstance(state, Planned)
        whole, found = self._whole, []
        if self.kinds:
            left, planned = Fraction(sum(state.left)), Fraction(sum(whole.counts))
            found.append(make_detail(self.kind, "planned queries", left, planned))
        if whole.variance:
            found.append(make_detail(self.kind, SQUARES, state.variance, whole.variance))
        return tuple(found)

    def share_in(self, state: State) -> float:
        """The larger share: either is enough for a query to fit."""
        return max((one.share for one in self.details_in(state)), default=0.0)

    def _need(self, decision: Decision) -> str:
        loss = loss_of(decision.query, decision._relation)
        needed = needed_alone(loss, self.delta)
        return f"{decision._why_not} ({alone_words(needed, self.delta)})"


# -- plans --------------------------------------------------------------------------------------


def _normal(given: tuple[Query, ...]) -> tuple[Query, ...]:
    """A plan in the form in which it is written: equal neighbours are one repeated query."""
    runs: list[tuple[Query, int]] = []
    for each in map(mechanism_if_known, given):
        query, count = each, 1
        while isinstance(query, SelfComposed):
            count, query = count * query.count, query.mechanism
        runs.append((query, count))
    plan: list[Query] = []
    for query, same in groupby((run for run in runs if run[1]), key=lambda run: run[0]):
        n = sum(count for _, count in same)
        if isinstance(query, Mechanism):
            plan.append(query if n == 1 else SelfComposed(query, n))
        else:
            plan += [query] * n
    return tuple(plan)


class _Layout(NamedTuple):
    """The parts of a plan."""

    kinds: tuple[Pld, ...]
    """The losses of its different mechanisms that are not Gaussian."""
    runs: tuple[tuple[tuple[int, ...], Pld, int], ...]
    """Its entries: how many of each kind one has, its Gaussian, and how often it is repeated."""

    def _parts(self, length: int) -> list[tuple[tuple[int, ...], Pld, int]]:
        parts = []
        for counts, noise, n in self.runs:
            parts.append((counts, noise, min(n, length)))
            length -= parts[-1][2]
        return parts

    @property
    def length(self) -> int:
        return sum(n for _, _, n in self.runs)

    def prefix(self, length: int) -> _Taken:
        """The parts of the first so many queries."""
        counts, variance = [0] * len(self.kinds), Fraction(0)
        for each, noise, n in self._parts(length):
            counts = [a + n * b for a, b in zip(counts, each, strict=True)]
            variance += n * gaussian_variance(noise)
        return _Taken(tuple(counts), variance)

    def composed(self, length: int) -> Pld:
        """The composition of the first so many queries."""
        counts = self.prefix(length).counts
        total = sum((n * kind for kind, n in zip(self.kinds, counts, strict=True)), identity())
        return total + sum((n * noise for _, noise, n in self._parts(length)), identity())


@remembered(maxsize=64)
def _layout(plan: tuple[Query, ...]) -> _Layout:
    kinds: dict[Query, Pld] = {}
    entries: list[tuple[Counter[Query], Pld, int]] = []
    for planned in plan:
        query, repeat = planned, 1
        if isinstance(query, SelfComposed):
            repeat, query = query.count, query.mechanism
        parts = leaves(query) if isinstance(query, Mechanism) else _factors(query)
        counts: Counter[Query] = Counter()
        noise = identity()
        for leaf, n in parts:
            loss = loss_of(leaf)
            noise += n * Pld(loss.gaussian, {})
            if loss.terms:
                kinds[leaf] = without_gaussian(loss)
                counts[leaf] += n
        entries.append((counts, noise, repeat))
    runs = [(tuple(counts[leaf] for leaf in kinds), noise, n) for counts, noise, n in entries]
    return _Layout(tuple(kinds.values()), tuple(runs))


def _factors(loss: Pld) -> list[tuple[Query, int]]:
    """A loss that does not describe itself, factor by factor."""
    found: list[tuple[Query, int]] = [(Pld(None, {f: 1}), n) for f, n in loss.terms.items()]
    return [*found, (Pld(loss.gaussian, {}), 1)]


def usable_delta(counts: dict[Pld, int], eps: float, delta: float) -> float:
    """The `delta` that a plan of so many of each loss may use.

    Unless its outcomes can be written out, it leaves between 1e-6 and 1e-2 of it: the verifier
    composes on a lattice then, and its bounds are a little wider, the more so the smaller the
    queries are beside `eps`.
    """
    if _is_listed(counts):
        return delta
    least = min(float(kind.delta(0.0)) for kind, n in counts.items() if n and kind.terms)
    share = 1e-2 * min(1.0, eps / (LARGEST_SHARE * least))
    return delta * (1.0 - max(share, 1e-6))


@remembered(maxsize=64)
def _longest_prefix(plan: tuple[Query, ...], eps: float, delta: float) -> int:
    layout = _layout(plan)
    counts = layout.prefix(layout.length).counts
    whole = approximate_dp(
        eps, usable_delta(dict(zip(layout.kinds, counts, strict=True)), eps, delta)
    )

    def fits(n: int) -> bool:
        return layout.composed(n) <= whole

    low, high = 0, layout.length
    if fits(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


# -- parts of plans -----------------------------------------------------------------------------


def _less(left: Sequence[int], taken: Sequence[int]) -> tuple[int, ...]:
    return tuple(a - b for a, b in zip(left, taken, strict=True))


def _more(one: Sequence[int], two: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(one, two, strict=True))


def _left(state: Planned, taken: _Taken) -> Fraction:
    left = amounts.subtract(state.variance, taken.variance)
    assert left is not None
    return left


def _gaussian(mu: float) -> Pld:
    return gaussian(mu=mu) if mu else identity()


def _is_single(kind: Pld) -> bool:
    return list(kind.terms.values()) == [1]


def _is_comparable(one: Pld, kind: Pld) -> bool:
    """Whether it can be proven that a single query lies below one on the plan."""
    sampled = [any(isinstance(f, GaussianMixture) for f in each.terms) for each in (one, kind)]
    return sampled[0] == sampled[1] and (_is_single(kind) or _is_listed({kind: 1}))


def _is_listed(counts: dict[Pld, int]) -> bool:
    """Whether these have few enough outcomes together to write them all out."""
    outcomes = 1.0
    for kind, n in counts.items():
        for factor, each in kind.terms.items():
            copies, atoms = n * each, factor.atom_count
            if copies == 0:
                continue
            if atoms is None:
                return False
            coin = isinstance(factor, RandomizedResponse) and factor.delta == 0.0
            outcomes *= copies + 1.0 if coin else float(atoms) ** min(copies, 64)
            if outcomes > MOST_OUTCOMES:
                return False
    return True


@remembered(maxsize=4096)
def _below(low: Pld, high: Pld) -> bool:
    # Most of what is refused is refuted at once; the order looks for where, which may take long.
    if low.gaussian and not high.gaussian and high.renyi(math.inf) < math.inf:
        return False
    if float(low.delta_bounds(0.0).lo) > float(high.delta_bounds(0.0).hi):
        return False
    return low <= high
