"""The target residue filter: a Gaussian residue that need hold only where it can be read.

What is left is read only at `t = eps - z`, `z` being the loss so far. A state has the potential

    φ(t) = h_{G_√v}(e^t) + Σ r_i e^{κ_i(κ_i+1)v/2 - κ_i t} + s,

a Gaussian, *reserves* of several orders for heavy tails (`pld/residue/reserve.py`) and a *slack*
for mass at infinity. A query `L` may lead to any state whose potential `φ'` satisfies

    E_L[φ'(t - Z)] <= φ(t)      in both directions, for all t >= t0.

`t0` is the larger one of two bounds. `z` is at most the sum of the largest losses so far, so that
`t` is never below `eps` less that sum. And where one of the exponentials is at least 1 there is
nothing to show, since no more than 1 can be lost:

    κ_i t <= ln r_i + κ_i(κ_i+1)v/2.

**Free.** `(1 - e^t)_+ <= φ(t)`, since `G_√v` is above no loss. By induction from the last query to
the first, the expectation of `(1 - e^{eps-Z})_+` over what is still to come is at most
`min(1, φ(t))` for every `t` that can be reached, and so at most the first potential at `eps`, which
is at most `delta`.

A query takes the least of `v` for which that is proven by one of these:

* the GDP residue, on the whole line (`gdp_residue.py`);
* where `t0 > 0`, the cost from there on (`reachable.py`) of one randomized response, Laplace noise
  or bounded range, or else of the `R_e` that is above it;
* everything, if its largest loss is at most `t0`: then `h_L(e^t) = 0` from there on;
* a cost that draws on the reserves (`reserve.py`), from `t0` on or on the whole line.

What is not drawn of a reserve `r` becomes `r e^{κ(κ+1)c/2} / E e^{κZ}`. Whatever plain addition of
`eps` admits is admitted. Gaussian noise takes `v` as it is; its losses are unbounded, so that from
then on the reserves determine `t0`. Mass at infinity that splits off takes slack.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import zip_longest
from typing import Any, ClassVar, NamedTuple

from residua import checks
from residua.bounds import LARGEST_EPS, float_down, float_up
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters import amounts, wording
from residua.filters.additive.gdp import lift_tiny
from residua.filters.amounts import State
from residua.filters.balance import RESERVES, Detail, make_detail, non_reserve_details
from residua.filters.base import Filter
from residua.filters.costs import (
    gaussian_variance,
    largest_loss,
    may_lose_everything,
    missing_mass,
    renyi_costs,
    split,
    stated_gdp,
    stated_renyi,
    without_gaussian,
    without_infinity,
)
from residua.filters.decision import Decision, make_decision
from residua.filters.noise import largest_response
from residua.filters.query import Query
from residua.filters.residue.gdp_residue import rest_bounds
from residua.filters.target import largest_mu, target
from residua.filters.wording import SQUARES
from residua.mechanisms.mechanism import Mechanism
from residua.pld.constructors import approximate_dp, gaussian, pure_dp
from residua.pld.pld import Pld
from residua.pld.residue.reachable import cost_from
from residua.pld.residue.reserve import Reserves, reserve_cost, rung
from residua.pld.residue.symmetric_family import central_law
from residua.pld.residue.symmetric_family import renyi_cost as least_cost
from residua.work_limit import remembered, remembered_property

MULTIPLES = (Fraction(7, 20), Fraction(7, 10), Fraction(6, 5), Fraction(2))
"""The `κ` of the reserves beside `order - 1`: the low ones pay for rare large losses, the high ones
bound the loss so far."""
_SMALL = Fraction(1, 64)
"""A query that costs a smaller share than this is not looked at again with all reserves, from `t0`
on: there would be little to gain."""
_LARGEST_ORDER = 1e12
"""The largest order that may be given."""
_ORDERS = f"above 1 and at most {_LARGEST_ORDER:g}"
_LEAST_RESERVE = Fraction(1, 10**100)
"""What is left of a reserve or of the slack below this is not drawn on: it would be lost in
rounding."""
_RELATIVE = 1e-14
"""Allowance for arithmetic with floats, `κ` among them."""
_NO_ROOM = "exceeds what is left"


@dataclass(frozen=True)
class Reach(State):
    """What is left of `mu²`, reserves and slack, and the largest loss so far."""

    left: Fraction
    reached: Fraction | None
    """The sum of the largest losses; None where losses are unbounded."""
    reserves: tuple[Fraction, ...]
    slack: Fraction


Asked = tuple[Query, str | None]
"""A query, and the relation under which it is asked."""


class _Cost(NamedTuple):
    """The cost of a loss: in `mu²`, in slack and in the first reserves."""

    cost: Fraction
    slack: Fraction = Fraction(0)
    reserves: tuple[Fraction, ...] = ()


@dataclass(frozen=True)
class TargetResidueFilter(Filter):
    """Keeps `(eps, delta)`: a Gaussian residue, checked where it can be read.

    Args:
        eps: the `eps` of the guarantee.
        delta: its `delta`.
        reserve: the share of `delta` that is kept for queries with heavy tails, such as subsampled
            Gaussian noise, for compositions, and to bound the loss so far after Gaussian noise; the
            same for each of several orders. Without it queries with heavy tails cost what a
            Gaussian above them costs, and the whole line counts after Gaussian noise.
        slack: the share of `delta` that is kept for mass at infinity, such as that of
            `ApproximateDp`.
        order: the Rényi order that the orders of the reserves are multiples of, but for 1; by
            default the one that suits `(eps, delta)`.
    """

    eps: float
    delta: float
    reserve: float = 0.0
    slack: float = 0.0
    order: float | None = None

    kind: ClassVar[str] = "target_residue"
    remaining_is_a_query: ClassVar[bool] = True

    def __post_init__(self) -> None:
        eps, delta = target(self.eps, self.delta)
        names = ("reserve", "slack")
        shares = {name: checks.between(name, getattr(self, name), 0.0, 1.0) for name in names}
        whole = sum(map(amounts.written, shares.values()), Fraction(0))
        checks.require(whole < 1, "reserve + slack", "below 1", float(whole))
        order = _usual_order(eps, delta) if self.order is None else self.order
        order = checks.real("order", order, _ORDERS)
        checks.require(1.0 < order <= _LARGEST_ORDER, "order", _ORDERS, order)
        checks.set_fields(self, eps=eps, delta=delta, order=order, **shares)
        super().__post_init__()

    @remembered_property
    def mu(self) -> float:
        """The Gaussian that the budget starts with: `h_{G_mu}(e^eps)` is within its share."""
        others = amounts.written(self.reserve) + amounts.written(self.slack)
        return _mu_within(self.eps, float_down(amounts.written(self.delta) * (1 - others)))

    @remembered_property
    def kappas(self) -> tuple[Fraction, ...]:
        """The orders of the reserves, less 1; none without a reserve."""
        assert self.order is not None
        base = amounts.written(self.order) - 1
        return tuple(base * each for each in MULTIPLES) if self.reserve and self.mu else ()

    def initial(self) -> Reach:
        return Reach(self.fingerprint, *self._start)

    @remembered_property
    def _start(self) -> tuple[Fraction, Fraction, tuple[Fraction, ...], Fraction]:
        v, eps, delta = (
            amounts.written(self.mu) ** 2,
            *map(amounts.written, (self.eps, self.delta)),
        )
        # A little less, to be within their shares for a slightly larger `mu` as well: what a
        # verifier works out may be larger in the last digits.
        share = delta * amounts.written(self.reserve) * (1 - Fraction(1, 10**9)) / len(MULTIPLES)
        reserves = (_times_exp(share, float(k * eps - k * (k + 1) * v / 2)) for k in self.kappas)
        return v, Fraction(0), tuple(map(_drawable, reserves)), delta * amounts.written(self.slack)

    def _from(self, state: Reach) -> Fraction | None:
        """`t0`, from below: the inequality is needed from here on. None if everywhere."""
        starts = [] if state.reached is None else [amounts.written(self.eps) - state.reached]
        left = float(state.left)
        for k, reserve in zip(self._floats, state.reserves, strict=True):
            if reserve:
                log, lift = math.log(float(reserve)), 0.5 * k * (k + 1.0) * left
                start = (log + lift - _RELATIVE * (abs(log) + lift + 1.0)) / k
                starts.append(amounts.rounded_down(start - abs(start) * _RELATIVE, 12))
        return max(starts, default=None)

    @remembered_property
    def _floats(self) -> tuple[float, ...]:
        return tuple(map(float, self.kappas))

    def check_state(self, state: Any) -> Reach:
        state = super().check_state(state)
        if not isinstance(state, Reach) or type(state.left) is not Fraction:
            raise ArgumentTypeError(
                f"state must contain what is left and reached for {self.kind},"
                f" got {checks.shown(state)}"
            )
        v, _, reserves, slack = self._start
        within = (
            0 <= state.left <= v
            and 0 <= state.slack <= slack
            and (state.reached or 0) >= 0
            and len(state.reserves) == len(reserves)
            and all(map(partial(_may_be, v - state.left), self.kappas, reserves, state.reserves))
        )
        if not within:
            raise ArgumentError(f"state must be within the capacity of {self!r}, got {state!r}")
        return state

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
                return f"may reveal everything, which needs {need}"
            state, rest = _less(state, slack=lost), kept
        if rest.terms:
            top = None if may_lose_everything(rest) else largest_loss(rest)
            room = state.left - noise
            costs = [c for c in self._costs(state, rest, top) if c.cost <= room]
            if not costs:
                return _NO_ROOM
            least = min(costs, key=lambda each: each.cost)
            reached = None if top is None or state.reached is None else state.reached + top
            reserves = self._kept(state, least, asked)
            state = _less(state, left=least.cost, slack=least.slack)
            state = replace(state, reached=reached, reserves=reserves)
        return replace(_less(state, left=noise), reached=None) if noise else state

    def _costs(self, state: Reach, rest: Pld, top: Fraction | None) -> Iterator[_Cost]:
        """Proven costs of a loss without a Gaussian part."""
        left, bounded = state.left, lift_tiny(rest)
        law, start = central_law(bounded), self._from(state)
        draws = left > 0 and state.slack > _LEAST_RESERVE and any(state.reserves)
        least, drawn = left, None
        if draws and law is not None and least_cost(law) >= _SMALL * left:
            # With the reserves less is enough than without them.
            drawn = self._drawn(state, bounded, max(start or Fraction(0), Fraction(0)))
            if drawn is not None:
                least, draws = drawn.cost, False
                yield drawn
        if start is not None and top is not None:
            cost = cost_from(left, _single(bounded, top), start, least)
            if cost is not None:
                charged = min(amounts.rounded_up(float_up(cost)), left)
                least = min(least, charged)
                yield _Cost(charged)
            if top <= start:
                yield _Cost(left)
        if left > 0 and drawn is None and (least_cost(law) < least if law else not draws):
            whole = rest_bounds(left, bounded)
            if whole is not None:
                least = min(least, whole[1])
                yield _Cost(whole[1])
        if not draws:
            return
        if law is None:
            drawn = self._drawn(state, bounded, None)
            if drawn is not None:
                least = min(least, drawn.cost)
                yield drawn
        if least >= _SMALL * left:
            drawn = self._drawn(state, bounded, max(start or Fraction(0), Fraction(0)))
            if drawn is not None:
                yield drawn

    def _drawn(self, state: Reach, rest: Pld, start: Fraction | None) -> _Cost | None:
        """The cost that draws on the reserves, from `start` on; None for one that others share."""
        # A small part of the slack: it only ends a search.
        eta = rung(state.slack / 4096)
        drawn_on, v = state.reserves, state.left
        if start is None:
            # One proof serves many steps, and draws on the two reserves of the lowest orders.
            v, some = rung(v), drawn_on[:2]
            drawn_on = tuple(rung(each) if each else each for each in some)
        kappas = tuple(float(k) for k in self.kappas[: len(drawn_on)])
        reserves = Reserves(kappas, tuple(map(float_down, drawn_on)))
        found = reserve_cost(
            v, reserves, float_down(eta), rest, 0.0 if start is None else float_down(start)
        )
        if found is None:
            return None
        return _Cost(found.cost, eta, tuple(each * found.share for each in drawn_on))

    def _kept(self, state: Reach, taken: _Cost, asked: Asked) -> tuple[Fraction, ...]:
        """What is left of the reserves: `e^{κ(κ+1)c/2}` of each beside the moment `E e^{κZ}`."""
        divergences, noise = _divergences(*asked, self._floats)
        gained, kept = 0.5 * float(taken.cost + noise), []
        for k, reserve, drawn, divergence in zip_longest(
            self._floats, state.reserves, taken.reserves, divergences
        ):
            left = reserve - (drawn or 0)
            if left <= 0 or divergence is None:
                kept.append(Fraction(0))
                continue
            more, less = k * (k + 1.0) * gained, k * divergence
            kept.append(_drawable(_times_exp(left, more - less - _RELATIVE * (more + less))))
        return tuple(kept)

    # -- what is left -------------------------------------------------------------------

    def remaining_in(self, state: State) -> Pld:
        """The largest `R_e` that would be admitted now, to six digits of `e`."""
        own = self.check_state(state)
        return largest_response(self.eps, lambda e: self._decide(own, pure_dp(e), None).admitted)

    def details_in(self, state: State) -> tuple[Detail, ...]:
        """What is left of `mu²` and, while losses are bounded, of `eps` for plain addition.

        Then what is left of the reserves and of the slack.
        """
        own, eps = self.check_state(state), amounts.written(self.eps)
        whole = amounts.written(self.mu) ** 2
        found = [make_detail(self.kind, SQUARES, own.left, whole)]
        if own.reached is not None:
            left = max(eps - own.reached, Fraction(0))
            found.append(make_detail(self.kind, "eps by addition", left, eps))
        _, _, reserves, slack = self._start
        heavy, unbounded = RESERVES
        if any(reserves):
            share = amounts.written(self.delta) * amounts.written(self.reserve)
            parts = [
                min(now / first, Fraction(1)) if first else Fraction(0)
                for now, first in zip(own.reserves, reserves, strict=True)
            ]
            left = share * sum(parts, Fraction(0)) / len(parts)
            found.append(make_detail(self.kind, heavy, left, share))
        if slack:
            found.append(make_detail(self.kind, unbounded, own.slack, slack))
        return tuple(found)

    def share_in(self, state: State) -> float:
        """The larger share: either is enough for a query to fit."""
        return max(one.share for one in non_reserve_details(self.details_in(state)))

    @property
    def most_eps(self) -> float:
        return self.eps

    def _cost_value(self, price: Fraction) -> float:
        return amounts.charged(price)

    def cost_words(self, decision: Decision) -> str:
        """The cost in `mu²`."""
        before, after = decision._before, decision.state
        assert isinstance(before, Reach) and isinstance(after, Reach)
        return wording.cost_words(((SQUARES, before.left),), ((SQUARES, after.left),))

    @property
    def guarantee(self) -> Pld:
        return approximate_dp(self.eps, self.delta)


@remembered(maxsize=1024)
def _mu_within(eps: float, share: float) -> float:
    """The `mu` of a Gaussian with `h(e^eps)` proven within a share of `delta`."""
    mu = float(amounts.rounded_down(largest_mu(eps, share), 12))
    within = mu > 0.0 and float(gaussian(mu=mu).delta(eps)) <= share
    return mu if within else 0.0


@remembered(maxsize=1024)
def _divergences(
    query: Query, relation: str | None, kappas: tuple[float, ...]
) -> tuple[tuple[float | None, ...], Fraction]:
    """The divergences of a query from above, and the variance of its Gaussian part."""
    gdp, loss = split(query, relation, stated_gdp)
    noise = gaussian_variance(loss) + (gdp[0] if gdp else 0)
    orders = tuple(k + 1.0 for k in kappas)

    def known(mechanism: Mechanism) -> tuple[Fraction, ...] | None:
        found = stated_gdp(mechanism)
        if found is not None:
            return tuple(found[0] * amounts.written(order) / 2 for order in orders)
        bounds = [stated_renyi(mechanism, order) for order in orders]
        known = tuple(bound for bound in bounds if bound is not None)
        return known if len(known) == len(bounds) else None

    stated, others = split(query, relation, known)
    kept = without_infinity(others)
    rests = renyi_costs(others if kept is None else kept, orders)
    both = zip(rests, stated or (Fraction(0),) * len(orders), strict=True)
    return tuple(None if rest is None else float_up(rest + known) for rest, known in both), noise


def _usual_order(eps: float, delta: float) -> float:
    """One more than `eps / mu²`: about the slope of the first Gaussian's log curve at `eps`.

    Within 1e-3 and 4e5, which are far from the ends of what may be given.
    """
    mu = largest_mu(eps, delta)
    kappa = eps / mu**2 if mu > 0.0 else math.inf
    return float(1 + Fraction(f"{min(max(kappa, 1e-3), 4e5):.4g}"))


def _drawable(reserve: Fraction) -> Fraction:
    """A reserve, or nothing where it is too small to be of use."""
    return reserve if reserve > _LEAST_RESERVE else Fraction(0)


def _may_be(taken: Fraction, k: Fraction, first: Fraction, reserve: Fraction) -> bool:
    """Whether a reserve is at most what queries that took so much of `mu²` can have made of it."""
    if reserve <= first:
        return reserve >= 0
    most = 0.5 * float(k) * float(k + 1) * float(taken)
    return first > 0 and math.log(float(reserve) / float(first)) <= most * (1.0 + 1e-9) + 1e-9


def _less(state: Reach, left: Fraction = Fraction(0), slack: Fraction = Fraction(0)) -> Reach:
    """A state with less left, rounded down where the rationals grow long."""
    return replace(
        state,
        left=amounts.shorten(state.left - left),
        slack=amounts.shorten(state.slack - slack),
    )


@lru_cache(maxsize=4096)
def _times_exp(amount: Fraction, power: float) -> Fraction:
    """`amount e^power`, rounded down."""
    found = float(amount) * math.exp(min(power, 700.0))
    return amounts.rounded_down(found * (1.0 - _RELATIVE * (8.0 + abs(power))), 12)


def _single(rest: Pld, top: Fraction) -> Pld:
    """A loss whose cost has a closed form: the query itself, or the `R_e` above it."""
    if central_law(rest) is not None or top > LARGEST_EPS:
        return rest
    return pure_dp(amounts.charged(top))
