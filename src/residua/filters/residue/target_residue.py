"""The target residue filter: a Gaussian residue that is needed only where it can be read.

What is left is read only at `t = eps - z`, `z` being the loss so far. A state has the potential

    φ(t) = h_{G_√v}(e^t) + r e^{κ(κ+1)v/2 - κt} + s,

a Gaussian, a *reserve* for heavy tails (`pld/residue/reserve.py`) and a *slack* for mass at
infinity. `z` is at most the sum of the largest losses so far. It is also at most the *barrier*

    (K + ln(1/β)) / λ,      K = Σ ln E e^{λZ} over the queries so far,

but for an event of probability `β`: `e^{λz - K}` is a supermartingale, and Ville's inequality says
that it ever reaches `1/β` with at most that probability. Let `b` be the smaller of both. A query
`L` may lead to any state whose potential `φ'` satisfies

    E_L[φ'(t - Z)] <= φ(t)      for all t >= eps - b, in both directions.

**Free.** `(1 - e^t)_+ <= φ(t)`, since `G_√v` is above no loss. Stop where the barrier is crossed.
By induction over the queries the expectation of `(1 - e^{eps-Z})_+` over the whole run is at most
the first potential at `eps`, and `β`: together at most `delta`.

A query takes the least of `v` for which that is proven by one of these:

* the GDP residue, on the whole line (`gdp_residue.py`). What lies below a Gaussian has smaller
  moments than it, so the reserve stays as it is;
* where `eps - b > 0`, the cost from there on (`reachable.py`) of one randomized response, Laplace
  noise or bounded range, or else of the `R_e` that is above it;
* everything, if `b` and its largest loss are together at most `eps`: then `h_L(e^t) = 0` for all
  `t >= eps - b`;
* for any other query, a cost that draws on the reserve (`reserve.py`).

So whatever plain addition of `eps` admits is admitted. Gaussian noise takes `v` as it is; its
losses are unbounded, so that from then on the barrier counts. Mass at infinity that splits off
takes slack.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

from residua import checks
from residua.bounds import float_down, float_up
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters import amounts, wording
from residua.filters.additive.gdp import lifted
from residua.filters.balance import RESERVES, Detail, counted_details, make_detail
from residua.filters.base import MOST_EPS, Filter
from residua.filters.decision import Decision, make_decision
from residua.filters.declared_costs import split, stated_gdp, stated_renyi
from residua.filters.divergence import gaussian_variance, renyi_cost, without_gaussian
from residua.filters.losses import (
    largest_loss,
    may_lose_everything,
    missing_mass,
    without_infinity,
)
from residua.filters.noise import largest_response
from residua.filters.query import Query
from residua.filters.residue.gdp_residue import rest_bounds
from residua.filters.state import State
from residua.filters.target import target
from residua.filters.wording import SQUARES
from residua.mechanisms.mechanism import Mechanism
from residua.pld.constructors import approximate_dp, gaussian, pure_dp
from residua.pld.pld import Pld
from residua.pld.residue.reachable import central_law, cost_from
from residua.pld.residue.reserve import reserve_cost, rung
from residua.pld.residue.slack import largest_mu

_KAPPA, _HALF_KAPPA = 16.0, 0.8
"""`κ eps` of the reserve: so much at large `eps`, half of it at this one. Less pays better for rare
large losses, which count for more where `eps` is small; more for many small ones."""
_SLACK_SHARE = Fraction(1, 4096)
"""How much of the slack a query takes that draws on the reserve: it only ends a search."""
_LEAST_ORDER, _LARGEST_ORDER = 1e-3, 1e12
"""Of an order that is chosen, less 1, and of any."""
_ORDERS = f"above 1 and at most {_LARGEST_ORDER:g}"
_LEAST_RESERVE = Fraction(1, 10**250)
"""What is left of reserve or slack below this is not drawn on: it would be lost in rounding."""
_A_LITTLE_LESS = 1 - Fraction(1, 10**9)
"""Of the first reserve, so that it is within its share for a slightly larger `mu` as well: what a
verifier works out may be larger in the last digits."""
_NO_ROOM = "exceeds what is left"


@dataclass(frozen=True)
class Reach(State):
    """What is left of `mu²`, reserve and slack, and what is known of the loss so far."""

    left: Fraction
    reached: Fraction | None
    """The sum of the largest losses; None where losses are unbounded."""
    moment: Fraction | None
    """The `K` of the barrier; None where it does not matter any more."""
    reserve: Fraction
    slack: Fraction


Asked = tuple[Query, str | None]
"""A query, and the relation under which it is asked."""


class _Cost(NamedTuple):
    """What a loss takes: of `mu²`, of the slack, and what is left of the reserve."""

    cost: Fraction
    slack: Fraction
    reserve: Fraction


@dataclass(frozen=True)
class TargetResidueFilter(Filter):
    """Keeps `(eps, delta)`: a Gaussian residue, checked where it can be read.

    Args:
        eps: the `eps` of the guarantee.
        delta: its `delta`.
        reserve: the share of `delta` that is kept for queries with heavy tails, such as subsampled
            Gaussian noise, and for compositions. Without it they cost what a Gaussian above them
            costs.
        slack: the share of `delta` that is kept for mass at infinity, such as that of
            `ApproximateDp`.
        barrier: the share of `delta` that is the probability `β` of crossing the barrier. Without
            it the whole line counts after Gaussian noise.
        order: the Rényi order of the reserve; by default one that suits `eps`.
        barrier_order: the Rényi order `λ + 1` of the barrier, likewise.
    """

    eps: float
    delta: float
    reserve: float = 0.0
    slack: float = 0.0
    barrier: float = 0.0
    order: float | None = None
    barrier_order: float | None = None

    kind: ClassVar[str] = "target_residue"
    remaining_is_a_query: ClassVar[bool] = True

    def __post_init__(self) -> None:
        eps, delta = target(self.eps, self.delta)
        names = ("reserve", "slack", "barrier")
        shares = {name: checks.between(name, getattr(self, name), 0.0, 1.0) for name in names}
        whole = sum(map(amounts.written, shares.values()), Fraction(0))
        checks.require(whole < 1, "reserve + slack + barrier", "below 1", float(whole))
        crossing = math.log(shares["barrier"] or 1.0) + math.log(delta)
        orders = {"order": _KAPPA / (eps + _HALF_KAPPA), "barrier_order": -2.0 * crossing / eps}
        for name, usual in orders.items():
            given = getattr(self, name)
            order = 1.0 + max(float(f"{usual:.4g}"), _LEAST_ORDER) if given is None else given
            order = checks.real(name, order, _ORDERS)
            checks.require(1.0 < order <= _LARGEST_ORDER, name, _ORDERS, order)
            orders[name] = order
        checks.set_fields(self, eps=eps, delta=delta, **shares, **orders)
        super().__post_init__()

    @cached_property
    def mu(self) -> float:
        """The Gaussian that the budget starts with: `h_{G_mu}(e^eps)` is within its share."""
        others = sum(map(amounts.written, (self.reserve, self.slack, self.barrier)), Fraction(0))
        share = float_down(amounts.written(self.delta) * (1 - others))
        mu = float(amounts.rounded_down(largest_mu(self.eps, share), 12))
        within = mu > 0.0 and float(gaussian(mu=mu).delta(self.eps)) <= share
        return mu if within else 0.0

    @cached_property
    def _kappa(self) -> Fraction:
        assert self.order is not None
        return amounts.written(self.order) - 1

    def initial(self) -> Reach:
        return Reach(self.fingerprint, *self._start)

    @cached_property
    def _start(self) -> tuple[Fraction, Fraction, Fraction | None, Fraction, Fraction]:
        v, k = amounts.written(self.mu) ** 2, self._kappa
        delta, reserve = amounts.written(self.delta), Fraction(0)
        if self.reserve and v:
            power = k * amounts.written(self.eps) - k * (k + 1) * v / 2
            reserve = _times_exp(delta * amounts.written(self.reserve) * _A_LITTLE_LESS, power)
        moment = Fraction(0) if self.barrier and v else None
        return v, Fraction(0), moment, reserve, delta * amounts.written(self.slack)

    @cached_property
    def _offset(self) -> Fraction:
        """`ln(1/β) / λ`, rounded up."""
        assert self.barrier_order is not None
        far = -(math.log(self.barrier) + math.log(self.delta)) / (self.barrier_order - 1.0)
        return amounts.rounded_up(far * (1.0 + 1e-14) + 1e-300)

    def _reached(self, state: Reach) -> Fraction | None:
        """The largest loss so far, but for the probability of crossing the barrier."""
        if state.moment is None:
            return state.reached
        assert self.barrier_order is not None
        barrier = state.moment / (amounts.written(self.barrier_order) - 1) + self._offset
        return barrier if state.reached is None else min(state.reached, barrier)

    def own(self, state: Any) -> Reach:
        state = super().own(state)
        if not isinstance(state, Reach) or type(state.left) is not Fraction:
            raise ArgumentTypeError(
                f"state must hold what is left and reached for {self.kind},"
                f" got {checks.shown(state)}"
            )
        v, _, _, reserve, slack = self._start
        within = (
            0 <= state.left <= v and 0 <= state.slack <= slack and 0 <= state.reserve <= reserve
        )
        if not within or min(state.reached or 0, state.moment or 0) < 0:
            raise ArgumentError(f"state must be within the capacity of {self!r}, got {state!r}")
        return state

    def state_from_fields(self, first: State, fields: Mapping[str, Any]) -> State:
        of = fields["of"]
        if not isinstance(of, str):
            raise ArgumentTypeError(f"of must be a text, got {checks.shown(of)}")
        left, reserve, slack = (
            amounts.from_text(name, fields[name]) for name in ("left", "reserve", "slack")
        )
        reached, moment = (
            None if fields[name] is None else amounts.from_text(name, fields[name])
            for name in ("reached", "moment")
        )
        return Reach(of, left, reached, moment, reserve, slack)

    # -- decisions ----------------------------------------------------------------------

    def _decide(self, state: Reach, query: Query, relation: str | None) -> Decision:
        stated, loss = split(query, relation, stated_gdp)
        noise = gaussian_variance(loss) + (stated[0] if stated else 0)
        after = self._after(state, without_gaussian(loss), noise, (query, relation))
        if isinstance(after, str):
            return make_decision(self, state, None, None, query, relation, after)
        return make_decision(self, state, after, state.left - after.left, query, relation)

    def _after(self, state: Reach, rest: Pld, noise: Fraction, asked: Asked) -> Reach | str:
        """The state after a query, its Gaussian part last; or why it is refused."""
        if noise > state.left:
            return _NO_ROOM
        if may_lose_everything(rest) and (kept := without_infinity(rest)) is not None:
            lost = missing_mass(rest)
            if lost > state.slack:
                need = wording.need_words((("delta", state.slack),), (lost,))
                return f"may lose everything, which needs {need}"
            state, rest = _less(state, slack=lost), kept
        if rest.terms:
            top = None if may_lose_everything(rest) else largest_loss(rest)
            room = state.left - noise
            costs = [c for c in self._costs(state, rest, top, asked) if c.cost <= room]
            if not costs:
                return _NO_ROOM
            least = min(costs, key=lambda each: each.cost)
            reached = None if top is None or state.reached is None else state.reached + top
            state = _less(state, left=least.cost, slack=least.slack)
            state = replace(state, reached=reached, reserve=least.reserve)
        if noise:
            state = replace(_less(state, left=noise), reached=None)
        return replace(state, moment=self._moment_after(state.moment, asked))

    def _moment_after(self, moment: Fraction | None, asked: Asked) -> Fraction | None:
        """The `K` of the barrier after a query; None from where it is of no use."""
        if moment is None:
            return None
        assert self.barrier_order is not None
        divergence, _ = self._divergence(*asked, self.barrier_order)
        if divergence is None:
            return None
        k = amounts.written(self.barrier_order) - 1
        after = amounts.rounded_up(float_up(moment + k * divergence), 12)
        return after if after / k + self._offset < amounts.written(self.eps) else None

    def _costs(
        self, state: Reach, rest: Pld, top: Fraction | None, asked: Asked
    ) -> Iterator[_Cost]:
        """Proven costs of a loss without a Gaussian part."""
        left, nothing, bounded = state.left, Fraction(0), lifted(rest)
        single = central_law(bounded) is not None
        if left > 0 and (single or not state.reserve or not state.slack):
            whole = rest_bounds(left, bounded)
            if whole is not None:
                yield _Cost(whole[1], nothing, state.reserve)
        reached = self._reached(state)
        if reached is not None and top is not None:
            start = amounts.written(self.eps) - reached
            cost = cost_from(left, _single(bounded, top), start)
            if cost is not None:
                charged = min(amounts.rounded_up(float_up(cost)), left)
                yield _Cost(charged, nothing, self._kept(state.reserve, charged, asked))
            if top <= start:
                yield _Cost(left, nothing, self._kept(state.reserve, left, asked))
        if left > 0 and min(state.reserve, state.slack) > _LEAST_RESERVE and not single:
            yield from self._drawn(state, bounded, asked)

    def _drawn(self, state: Reach, rest: Pld, asked: Asked) -> Iterator[_Cost]:
        """The cost that draws on the reserve, if there is one."""
        assert self.order is not None
        eta = rung(state.slack * _SLACK_SHARE)
        found = reserve_cost(
            rung(state.left), rung(state.reserve), float_down(eta), self.order, rest
        )
        if found is not None:
            kept = self._kept(state.reserve - found.drawn, found.cost, asked)
            yield _Cost(found.cost, eta, kept)

    def _kept(self, reserve: Fraction, cost: Fraction, asked: Asked) -> Fraction:
        """What is left of a reserve: `e^{κ(κ+1)c/2}` of it beside the moment `E e^{κZ}`."""
        if not reserve:
            return reserve
        assert self.order is not None
        divergence, noise = self._divergence(*asked, self.order)
        if divergence is None:
            return Fraction(0)
        k = self._kappa
        power = k * (k + 1) * (cost + noise) / 2 - k * divergence
        return reserve if power >= 0 else _times_exp(reserve, power)

    def _divergence(
        self, query: Query, relation: str | None, order: float
    ) -> tuple[Fraction | None, Fraction]:
        """The divergence of a query from above, and the variance of its Gaussian part."""
        gdp, loss = split(query, relation, stated_gdp)
        noise = gaussian_variance(loss) + (gdp[0] if gdp else 0)

        def known(mechanism: Mechanism) -> tuple[Fraction] | None:
            found = stated_gdp(mechanism)
            if found is not None:
                return (found[0] * amounts.written(order) / 2,)
            bound = stated_renyi(mechanism, order)
            return None if bound is None else (bound,)

        stated, others = split(query, relation, known)
        kept = without_infinity(others)
        rest = renyi_cost(others if kept is None else kept, order)
        return None if rest is None else rest + (stated[0] if stated else 0), noise

    # -- what is left -------------------------------------------------------------------

    def remaining_in(self, state: State) -> Pld:
        """The largest `R_e` that would be admitted now, to six digits of `e`."""
        own = self.own(state)
        return largest_response(self.eps, lambda e: self._decide(own, pure_dp(e), None).admitted)

    def details_in(self, state: State) -> tuple[Detail, ...]:
        """What is left of `mu²` and, while losses are bounded, of `eps` for plain addition.

        Then what is left of the reserve and the slack, and how far the barrier is below `eps`.
        """
        own, eps = self.own(state), amounts.written(self.eps)
        whole = amounts.written(self.mu) ** 2
        found = [make_detail(self.kind, SQUARES, own.left, whole)]
        if own.reached is not None:
            left = max(eps - own.reached, Fraction(0))
            found.append(make_detail(self.kind, "eps by addition", left, eps))
        delta, (_, _, moment, reserve, slack) = amounts.written(self.delta), self._start
        heavy, unbounded, below = RESERVES
        if reserve:
            share = delta * amounts.written(self.reserve)
            found.append(make_detail(self.kind, heavy, share * own.reserve / reserve, share))
        if slack:
            found.append(make_detail(self.kind, unbounded, own.slack, slack))
        if moment is not None and eps > self._offset:
            assert self.barrier_order is not None
            order, room = amounts.written(self.barrier_order) - 1, eps - self._offset
            left = (
                Fraction(0) if own.moment is None else max(room - own.moment / order, Fraction(0))
            )
            found.append(make_detail(self.kind, below, left, room))
        return tuple(found)

    def share_in(self, state: State) -> float:
        """The larger share: either is enough for a query to fit."""
        return max(one.share for one in counted_details(self.details_in(state)))

    @property
    def most_eps(self) -> float:
        return self.eps

    def _cost_value(self, price: Fraction) -> float:
        return amounts.charged(price)

    def cost_words(self, decision: Decision) -> str:
        """What is taken of `mu²`."""
        before, after = decision._before, decision.state
        assert isinstance(before, Reach) and isinstance(after, Reach)
        return wording.cost_words(((SQUARES, before.left),), ((SQUARES, after.left),))

    @property
    def guarantee(self) -> Pld:
        return approximate_dp(self.eps, self.delta)


def _less(state: Reach, left: Fraction = Fraction(0), slack: Fraction = Fraction(0)) -> Reach:
    """A state with less left, rounded down where the rationals grow long."""
    return replace(
        state,
        left=amounts.shortened(state.left - left),
        slack=amounts.shortened(state.slack - slack),
    )


@lru_cache(maxsize=4096)
def _times_exp(amount: Fraction, power: Fraction) -> Fraction:
    """`amount e^power`, rounded down."""
    found = float(amount) * math.exp(min(float(power), 700.0))
    return amounts.rounded_down(found * (1.0 - 1e-14 * (8.0 + abs(float(power)))), 12)


def _single(rest: Pld, top: Fraction) -> Pld:
    """A loss whose cost has a closed form: the query itself, or the `R_e` above it."""
    if central_law(rest) is not None or top > MOST_EPS:
        return rest
    return pure_dp(amounts.charged(top))
