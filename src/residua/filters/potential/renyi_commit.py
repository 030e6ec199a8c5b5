"""The Rényi filter that can commit: any mechanism at one fixed order, then anything that fits.

While it is open, a query takes its Rényi divergence at the order `alpha`. At any moment, chosen
after looking at every answer so far, what is left may be committed once, to another filter or to a
batch of queries whose budget lies below the potential that is left. That
wins back most of what Rényi accounting loses. Any number of choices may be open until then: one
potential covers them all.

**The potential** is `φ_ρ(x) = c_α e^{(α-1)ρ} x^{-(α-1)}`, `c_α = (1-1/α)^{α-1} / α`. It lies above
every curve of Rényi divergence `ρ` at the order `α` (`(1-x)_+ <= φ_0(x)`, averaged). Any budget `B`
with `h_B <= φ_ρ`, in both directions, may take the place of what is left when `ρ` is left:
`E_L[φ_{ρ-ρ_L}(x e^{-Z})] <= φ_ρ(x)`, so the potential covers all such choices at once.

`potential_cost` is the least such `ρ`, from above: the supremum over `t` of

    g(t) = t + ln(h_B(e^t) / c_α) / (α-1),

never more than the Rényi divergence.

* Left of `best + ln(c_α)/(α-1)` the bound `h <= 1` gives `g <= best`.
* Right of some `t` so does `h(e^t) <= c_{λ+1} E e^{λZ} e^{-λt}` for a `λ > α - 1`.
* On a cell between, `h` lies below its chord in `x`, and `(A - m y) y^{α-1}` is largest at
  `y = A (α-1) / (m α)` or at an end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from residua import checks
from residua.bounds import Floats
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters import amounts, wording
from residua.filters.additive.renyi import MOST_ORDER, order
from residua.filters.amounts import State
from residua.filters.balance import Detail, make_detail
from residua.filters.base import Filter
from residua.filters.budgets import RenyiBudget
from residua.filters.costs import renyi_cost, split, stated_renyi
from residua.filters.decision import Decision, make_decision
from residua.filters.noise import least_noise_within
from residua.filters.query import Query, as_mechanism, as_query, loss_of
from residua.filters.residue.gdp_residue import GdpResidueFilter
from residua.filters.target import best_order, renyi_budget, target
from residua.filters.wording import Amounts
from residua.mechanisms.composition import Composed, SelfComposed
from residua.mechanisms.mechanism import Mechanism
from residua.pld.constructors import approximate_dp, gaussian, identity
from residua.pld.pld import Pld
from residua.work_limit import remembered, remembered_property, work

_SLACK = 1e-12
"""The relative error of arithmetic on the potential of a budget."""


@dataclass(frozen=True)
class Commit:
    """A request to commit what is left: to a filter, or to queries that are run as one batch.

    A batch with mechanisms in it stays one: what it loses depends on the relation it is under.
    """

    to: Filter | Query

    def __post_init__(self) -> None:
        to: Any = self.to
        if isinstance(to, list | tuple):
            checks.require(len(to) > 0, "to", "a filter or a non-empty batch of queries", to)
            to = _batch([as_query(one, "to") for one in to])
        elif not isinstance(to, Filter):
            to = as_query(to, "to")
        object.__setattr__(self, "to", to)

    def budget(self, relation: str | None) -> Pld:
        """What is to lie below the potential."""
        return self.to.guarantee if isinstance(self.to, Filter) else loss_of(self.to, relation)


def _batch(queries: list[Query]) -> Query:
    """All of these as one query."""
    losses = [query for query in queries if isinstance(query, Pld)]
    if len(losses) == len(queries):
        return sum(losses, identity())
    counts: dict[Mechanism, int] = {}
    for each in map(as_mechanism, queries):
        counts[each] = counts.get(each, 0) + 1
    parts = tuple(one if n == 1 else SelfComposed(one, n) for one, n in counts.items())
    return parts[0] if len(parts) == 1 else Composed(parts)


@dataclass(frozen=True)
class Potential(State):
    """What is left of `rho`; after a commit, the filter that goes on and its state."""

    left: Fraction
    committed: bool = False
    to: Filter | None = None
    inner: State | None = None


@dataclass(frozen=True)
class RenyiCommitFilter(Filter):
    """Admits while divergences of order `alpha` fit `(eps, delta)`; may commit once."""

    eps: float
    delta: float
    alpha: float | None = None

    kind: ClassVar[str] = "renyi_commit"

    def __post_init__(self) -> None:
        eps, delta = target(self.eps, self.delta)
        if self.alpha is None:
            alpha = min(float(best_order(amounts.written(eps), amounts.written(delta))), MOST_ORDER)
        else:
            alpha = order("alpha", self.alpha)
        checks.set_fields(self, eps=eps, delta=delta, alpha=alpha)
        super().__post_init__()

    @property
    def _alpha(self) -> float:
        assert self.alpha is not None
        return self.alpha

    @remembered_property
    def rho(self) -> Fraction:
        """The whole of `rho` at the start."""
        written = amounts.written
        return renyi_budget(written(self._alpha), written(self.eps), written(self.delta))

    def initial(self) -> Potential:
        return Potential(self.fingerprint, self.rho)

    def check_state(self, state: Any) -> State:
        state = super().check_state(state)
        if not isinstance(state, Potential) or type(state.left) is not Fraction:
            raise ArgumentTypeError(f"state must contain an amount, got {checks.shown(state)}")
        if not 0 <= state.left <= self.rho:
            raise ArgumentError(f"state must be within the capacity of {self!r}, got {state!r}")
        if state.to is not None:
            if not self._within(state.to.guarantee, self.rho):
                raise ArgumentError(
                    f"state must be committed to what fits {self!r}, got {checks.shown(state.to)}"
                )
            state.to.check_state(state.inner)
        if (state.to is not None or state.left > 0) and state.committed != (state.to is not None):
            raise ArgumentError(f"state must be open or committed to something, got {state!r}")
        return state

    def _adopt(self, state: State) -> State:
        assert isinstance(state, Potential)
        if state.to is not None and state.inner is not None:
            state = replace(state, inner=state.to._adopt(state.inner))
        return super()._adopt(state)

    def state_from_fields(self, fields: Mapping[str, Any]) -> Potential:
        from residua.filters.codec import from_dict, state_from_json

        left = amounts.from_text("left", fields["left"])
        of, committed, given, inner = (fields[n] for n in ("of", "committed", "to", "inner"))
        checks.flag("committed", committed)
        if given is None and inner is None:
            return Potential(of, left, committed)
        if not isinstance(given, Mapping) or not isinstance(inner, Mapping):
            raise ArgumentTypeError(
                "to and inner must both be JSON objects or both be null, got"
                f" {checks.shown(given)} and {checks.shown(inner)}"
            )
        to = from_dict(given)
        return Potential(of, left, committed, to, state_from_json(to, {"kind": to.kind, **inner}))

    def tables(self, state: State) -> dict[str, bytes]:
        now = self.check_state(state)
        assert isinstance(now, Potential)
        return {} if now.to is None or now.inner is None else now.to.tables(now.inner)

    def deciding_filter(
        self, state: State, query: Any = None, relation: str | None = None
    ) -> Filter:
        """The filter that was committed to, if one was."""
        assert isinstance(state, Potential)
        return self if state.to is None else state.to

    def _price(self, query: Query, relation: str | None) -> Fraction | None:
        """The cost of a query while the filter is open; None if infinite."""

        def stated(mechanism: Mechanism) -> tuple[Fraction, ...] | None:
            cost = stated_renyi(mechanism, self._alpha)
            return None if cost is None else (cost,)

        known, loss = split(query, relation, stated)
        rest = renyi_cost(loss, self._alpha)
        return None if rest is None else rest + (known[0] if known else 0)

    def _within(self, budget: Pld, left: Fraction) -> bool:
        """Whether a budget lies below the potential that is left."""
        cost = potential_cost(budget, self._alpha)
        return cost < float("inf") and Fraction(cost) <= left

    def _check_query(self, query: Any) -> Any:
        return query if isinstance(query, Commit) else as_query(query)

    def _effective_relation(self, asked: Any, relation: str | None) -> str | None:
        return super()._effective_relation(
            asked.to if isinstance(asked, Commit) else asked, relation
        )

    def _decide(self, state: Potential, query: Any, relation: str | None) -> Decision:
        if isinstance(query, Commit):
            return self._decide_commit(state, query, relation)
        if state.to is not None and state.inner is not None:
            inner = state.to._decide(state.inner, query, relation)
            after = Potential(state.of, state.left, True, state.to, inner.state)
            return make_decision(
                self, state, after if inner.admitted else None, inner.cost, query, relation
            )
        cost = self._price(query, relation)
        if cost is None:
            why = f"has infinite Rényi divergence of order {self._alpha:g}"
            return make_decision(self, state, None, None, query, relation, why)
        if not cost <= state.left:
            return make_decision(self, state, None, amounts.charged(cost), query, relation)
        after = Potential(state.of, amounts.shorten(state.left - cost), state.committed)
        return make_decision(self, state, after, amounts.charged(cost), query, relation)

    @property
    def can_skip(self) -> bool:
        return True

    def skip(
        self, state: State, queries: Sequence[Query], most: int, relation: str | None = None
    ) -> tuple[int, State]:
        """In closed form while it is open; then what the filter it went to says."""
        now = self.check_state(state)
        assert isinstance(now, Potential)
        if any(isinstance(query, Commit) for query in queries):
            return 0, now
        if now.to is not None and now.inner is not None:
            rounds, inner = now.to.skip(now.inner, queries, most, relation)
            return rounds, Potential(now.of, now.left, True, now.to, inner)
        costs = [self._price(as_query(one), relation) for one in queries]
        known = [(cost,) for cost in costs if cost is not None]
        if not queries or len(known) < len(costs):
            return 0, now
        rounds, (left,) = amounts.whole_rounds((now.left,), known, most)
        return rounds, Potential(now.of, left, now.committed)

    def _decide_commit(self, state: Potential, commit: Commit, relation: str | None) -> Decision:
        if state.committed:
            raise ArgumentError(f"only one commit is possible, got a second one to {commit.to!r}")
        budget = commit.budget(relation)
        cost = potential_cost(budget, self._alpha)
        after = None
        if self._within(budget, state.left):
            to = commit.to if isinstance(commit.to, Filter) else None
            after = Potential(state.of, Fraction(0), True, to, to.initial() if to else None)
        why = f"needs rho {amounts.shown(cost, up=True)}"
        return make_decision(self, state, after, cost, commit, relation, "" if after else why)  # type: ignore[arg-type]

    def _largest(self, before: State, query: Any, relation: str | None, within: int) -> Any:
        if not isinstance(query, Commit):
            return super()._largest(before, query, relation, within)
        assert isinstance(before, Potential)

        def fits(budget: Any) -> bool:
            return self._within(loss_of(budget, relation), before.left)

        to = query.to.guarantee if isinstance(query.to, Filter) else query.to
        return least_noise_within(to, fits, within)

    def _reason(
        self, decision: Decision, left: str | None = None, advice: str | None = None
    ) -> str:
        before = decision._before
        assert isinstance(before, Potential)
        if before.to is not None and before.inner is not None:
            inner = before.to._decide(before.inner, decision.query, decision._relation)
            return before.to._reason(replace(inner, is_check=decision.is_check), left, advice)
        return super()._reason(decision, left, advice)

    def commit(self, to: Any, *, relation: str | None = None) -> Decision:
        """Commit what is left to a filter, a query or a list of queries (a batch).

        A batch that is admitted may be run, whole, and ends the budget. Mechanisms in it are taken
        under the relation, as in `request`.
        """
        return self.spend(Commit(to), relation=relation)  # type: ignore[arg-type]

    def largest_gaussian(self, state: State | None = None) -> GdpResidueFilter:
        """The GDP residue filter with the largest `mu` that what is left may be committed to."""
        now = self.state if state is None else self.check_state(state)
        assert isinstance(now, Potential)

        def fits(mu: float) -> bool:
            return mu == 0.0 or self._within(gaussian(mu=mu), now.left)

        low, high = 0.0, 1.0
        while fits(high):
            low, high = high, 2.0 * high
        while high - low > 1e-6 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if fits(middle) else (low, middle)
            if high < 1e-9:
                break
        return GdpResidueFilter(float(amounts.rounded_down(low, 7)))

    def remaining_in(self, state: State) -> Any:
        assert isinstance(state, Potential)
        if state.to is not None and state.inner is not None:
            return state.to.remaining_in(state.inner)
        return RenyiBudget(self._alpha, amounts.reported(state.left))

    def _amounts_in(self, state: State, left: Any) -> Amounts:
        """None once it has committed to another filter, which has different units."""
        assert isinstance(state, Potential)
        if state.to is not None or not isinstance(left, RenyiBudget):
            return ()
        own = left == self.remaining_in(state)
        return (("rho", state.left if own else amounts.written(left.rho)),)

    def details_in(self, state: State) -> tuple[Detail, ...]:
        """The units of the filter that was committed to, once there is one."""
        assert isinstance(state, Potential)
        if state.to is not None and state.inner is not None:
            return state.to.details_in(state.inner)
        return (make_detail(self.kind, "rho", state.left, self.rho),)

    def share_in(self, state: State) -> float | None:
        """After a commit, that of the filter that was committed to: its capacity counts then."""
        assert isinstance(state, Potential)
        if state.to is not None and state.inner is not None:
            return state.to.share_in(state.inner)
        return super().share_in(state)

    @property
    def guarantee(self) -> Pld:
        return approximate_dp(self.eps, self.delta)

    def left_words(self, state: State, left: Any = None) -> str:
        assert isinstance(state, Potential)
        if state.to is not None and state.inner is not None:
            return state.to.left_words(state.inner, left)
        found = self._amounts_in(state, self.remaining_in(state) if left is None else left)
        return wording.left_words(found) or super().left_words(state, left)

    def cost_words(self, decision: Decision) -> str:
        """A commit takes all that is left."""
        before, after = decision._before, decision.state
        assert isinstance(before, Potential) and isinstance(after, Potential)
        if before.to is not None and before.inner is not None:
            inner = before.to._decide(before.inner, decision.query, decision._relation)
            return before.to.cost_words(inner)
        return wording.cost_words((("rho", before.left),), (("rho", after.left),))

    def _need(self, decision: Decision) -> str:
        if decision._why_not:
            return decision._why_not
        before = decision._before
        assert isinstance(before, Potential)
        cost = amounts.written(decision._price)
        return f"needs {wording.need_words((('rho', before.left),), (cost,))}"


# -- the potential of a budget ---------------------------------------------------------------


def log_constant(alpha: float) -> float:
    """`ln c_α`, to a few units in the last place."""
    return (alpha - 1.0) * math.log1p(-1.0 / alpha) - math.log(alpha)


@remembered(maxsize=1024)
def potential_cost(budget: Pld, alpha: float) -> float:
    """The least `ρ` with `h <= φ_ρ` for the budget and its reversal, upper bound (inf if none)."""
    cost = _one_way(budget, alpha)
    return cost if budget.is_symmetric else max(cost, _one_way(budget.reverse(), alpha))


def _one_way(budget: Pld, alpha: float) -> float:
    if budget.is_identity:
        return 0.0
    if budget.mass_at_infinity > 0.0:
        return math.inf
    s = alpha - 1.0
    constant = log_constant(alpha)
    top = budget.renyi(math.inf)
    # A first guess of where the supremum is: the tilted mean, by a difference of log moments.
    divergence = budget.renyi(alpha)
    moment = s * divergence
    if not math.isfinite(moment):
        return math.inf
    spread = 1e-3 * alpha
    centre = ((s + spread) * budget.renyi(alpha + spread) - moment) / spread
    sample = np.linspace(0.0, 2.0 * centre, 65)
    best = float(np.max(_heights(budget, np.minimum(sample, top), s, constant)[1]))
    left = best + constant / s - 1e-9
    right = min(top, _right_end(budget, s, constant, best))
    if not right > left:
        return float(min(best + _SLACK * (1.0 + abs(best) + 1.0 / s), divergence))
    t = np.linspace(left, right, 64)
    h, g = _heights(budget, t, s, constant)
    # Cells are halved until the supremum is known to seven digits.
    for _ in range(60):
        best = max(best, float(np.max(g)))
        above = _cell_tops(t[:-1], t[1:], h[:-1], h[1:], s, constant)
        open_ = np.flatnonzero(above > best + 1e-7 * abs(best))
        if not open_.size or t.size > 1 << 14:
            break
        middle = 0.5 * (t[open_] + t[open_ + 1])
        new_h, new_g = _heights(budget, middle, s, constant)
        t, h, g = (
            np.insert(old, open_ + 1, new) for old, new in ((t, middle), (h, new_h), (g, new_g))
        )
    found = max(best, float(np.max(above))) + _SLACK * (1.0 + abs(best) + 1.0 / s)
    return float(min(found, divergence))


def _heights(budget: Pld, t: Floats, s: float, constant: float) -> tuple[Floats, Floats]:
    """`h(e^t)` from above, and `g` of it."""
    h = np.asarray(budget.delta(t))
    with np.errstate(divide="ignore"):
        return h, t + (np.log(h) - constant) / s


def _right_end(budget: Pld, s: float, constant: float, best: float) -> float:
    """A `t` beyond which `g <= best`, by Chernoff's bound at the tilt that serves best."""
    ends = []
    for ratio in (1.1, 1.3, 1.6, 2.0, 3.0, 5.0, 10.0):
        tilt = ratio * s
        moment = tilt * budget.renyi(1.0 + tilt)
        if math.isfinite(moment):
            numerator = log_constant(1.0 + tilt) + moment - constant - s * best
            ends.append(numerator / (tilt - s))
    end = float(min(ends, default=math.inf))
    return end + 1e-9 * (1.0 + abs(end))


def _cell_tops(
    a: Floats, b: Floats, at_a: Floats, at_b: Floats, s: float, constant: float
) -> Floats:
    """Upper bound of `g` on each cell, from the chord of `h` in `x = e^a y`."""
    work(40.0 * a.size)
    width = np.expm1(b - a)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.maximum(at_a - at_b, 0.0) / width
        level = at_a + slope
        y = np.clip(np.nan_to_num(level * s / (slope * (s + 1.0)), nan=1.0), 1.0, 1.0 + width)
        chord = np.maximum(level - slope * y, at_b)
        return a + np.log(y) + (np.log(chord) - constant) / s
