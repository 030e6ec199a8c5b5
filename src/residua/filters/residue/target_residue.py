"""The target residue filter: a Gaussian residue that is needed only where it can be read.

The budget is the largest `G_mu` with `h_{G_mu}(e^eps) <= delta`. What is left of it after some
queries is read only at `e^{eps-z}`, `z` being the loss so far. While every query had bounded
losses, `z` is at most their sum `b`, and a query `L` may take `G_mu` to any `G_m` with

    h_{G_m ⊕ L}(e^t) <= h_{G_mu}(e^t)      for all t >= eps - b.

**Free.** Let `φ(z) = h_{G_mu}(e^{eps-z})` be the potential of a state. The condition says
`E_L[φ'(z + Z)] <= φ(z)` for every `z <= b` and, `L` being charged in both directions, in the other
direction too; and `(1 - e^{eps-z})_+ <= φ(z)`, since `G_mu` is above no loss. By induction over the
queries the expectation of `(1 - e^{eps-Z})_+` over the whole run is at most the first potential,
which is at most `delta`.

A query takes the least of these that is proven:

* the GDP residue, on the whole line (`gdp_residue.py`);
* where `eps - b > 0`, the cost from there on (`reachable.py`) of one randomized response, Laplace
  noise or bounded range, or else of the `R_e` that is above it;
* everything, if `b` and its largest loss are together at most `eps`: then `h_L(e^t) = 0` for all
  `t >= eps - b`.

So whatever plain addition of `eps` admits is admitted. Gaussian noise takes `mu²` as it is; its
losses are unbounded, so that from then on the whole line counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from residua import checks
from residua.bounds import float_up
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters import amounts, wording
from residua.filters.additive.gdp import lifted
from residua.filters.balance import Detail, make_detail
from residua.filters.base import MOST_EPS, Filter
from residua.filters.decision import Decision, make_decision
from residua.filters.declared_costs import split, stated_gdp
from residua.filters.divergence import gaussian_variance, without_gaussian
from residua.filters.losses import largest_loss
from residua.filters.noise import largest_response
from residua.filters.query import Query
from residua.filters.residue.gdp_residue import rest_bounds
from residua.filters.state import State
from residua.filters.target import target
from residua.filters.wording import SQUARES
from residua.pld.constructors import approximate_dp, gaussian, pure_dp
from residua.pld.pld import Pld
from residua.pld.residue.reachable import central_law, cost_from
from residua.pld.residue.slack import largest_mu


@dataclass(frozen=True)
class Reach(State):
    """What is left of `mu²`, and the largest loss so far; None where losses are unbounded."""

    left: Fraction
    reached: Fraction | None


@dataclass(frozen=True)
class TargetResidueFilter(Filter):
    """Keeps `(eps, delta)`: a Gaussian residue, checked where it can be read."""

    eps: float
    delta: float

    kind: ClassVar[str] = "target_residue"
    remaining_is_a_query: ClassVar[bool] = True

    def __post_init__(self) -> None:
        eps, delta = target(self.eps, self.delta)
        checks.set_fields(self, eps=eps, delta=delta)
        super().__post_init__()

    @cached_property
    def mu(self) -> float:
        """The Gaussian that the budget starts with: `h_{G_mu}(e^eps) <= delta`, proven."""
        mu = float(amounts.rounded_down(largest_mu(self.eps, self.delta), 12))
        within = mu > 0.0 and float(gaussian(mu=mu).delta(self.eps)) <= self.delta
        return mu if within else 0.0

    def initial(self) -> Reach:
        return Reach(self.fingerprint, amounts.written(self.mu) ** 2, Fraction(0))

    def own(self, state: Any) -> Reach:
        state = super().own(state)
        if not isinstance(state, Reach) or type(state.left) is not Fraction:
            raise ArgumentTypeError(
                f"state must hold what is left and reached for {self.kind},"
                f" got {checks.shown(state)}"
            )
        if not 0 <= state.left <= amounts.written(self.mu) ** 2 or (state.reached or 0) < 0:
            raise ArgumentError(f"state must be within the capacity of {self!r}, got {state!r}")
        return state

    def state_from_fields(self, first: State, fields: Mapping[str, Any]) -> State:
        of, reached = fields["of"], fields["reached"]
        if not isinstance(of, str):
            raise ArgumentTypeError(f"of must be a text, got {checks.shown(of)}")
        read = None if reached is None else amounts.from_text("reached", reached)
        return Reach(of, amounts.from_text("left", fields["left"]), read)

    def _decide(self, state: Reach, query: Query, relation: str | None) -> Decision:
        stated, loss = split(query, relation, stated_gdp)
        noise = gaussian_variance(loss) + (stated[0] if stated else 0)
        after = self._after(state, lifted(without_gaussian(loss)), noise)
        if isinstance(after, str):
            return make_decision(self, state, None, None, query, relation, after)
        return make_decision(self, state, after, state.left - after.left, query, relation)

    def _after(self, state: Reach, rest: Pld, noise: Fraction) -> Reach | str:
        """The state after a query, its bounded part first; or why it is refused."""
        left, reached = state.left, state.reached
        if rest.terms:
            if max(rest.mass_at_infinity, rest.mass_at_minus_infinity) > 0.0:
                return "may lose everything, which no Gaussian covers"
            top = largest_loss(rest)
            cost = self._cost(left, reached, rest, top)
            lower = None if cost is None else amounts.without(left, cost)
            if lower is None:
                return "exceeds what is left"
            left = lower
            reached = None if top is None or reached is None else reached + top
        if noise:
            lower = amounts.without(left, noise)
            if lower is None:
                return "exceeds what is left"
            left, reached = lower, None
        return Reach(state.of, left, reached)

    def _cost(
        self, left: Fraction, reached: Fraction | None, rest: Pld, top: Fraction | None
    ) -> Fraction | None:
        """The least proven cost of a loss without a Gaussian part."""
        found = []
        if left > 0 and (whole := rest_bounds(left, rest)) is not None:
            found.append(whole[1])
        if reached is not None and top is not None:
            start = amounts.written(self.eps) - reached
            cost = cost_from(left, _single(rest, top), start)
            if cost is not None:
                found.append(min(amounts.rounded_up(float_up(cost)), left))
            if top <= start:
                found.append(left)
        return min(found, default=None)

    def remaining_in(self, state: State) -> Pld:
        """The largest `R_e` that would be admitted now, to six digits of `e`."""
        own = self.own(state)
        return largest_response(self.eps, lambda e: self._decide(own, pure_dp(e), None).admitted)

    def details_in(self, state: State) -> tuple[Detail, ...]:
        """What is left of `mu²` and, while losses are bounded, of `eps` for plain addition."""
        own, eps = self.own(state), amounts.written(self.eps)
        whole = amounts.written(self.mu) ** 2
        found = [make_detail(self.kind, SQUARES, own.left, whole)]
        if own.reached is not None:
            left = max(eps - own.reached, Fraction(0))
            found.append(make_detail(self.kind, "eps by addition", left, eps))
        return tuple(found)

    def share_in(self, state: State) -> float:
        """The larger share: either is enough for a query to fit."""
        return max(one.share for one in self.details_in(state))

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


def _single(rest: Pld, top: Fraction) -> Pld:
    """A loss whose cost has a closed form: the query itself, or the `R_e` above it."""
    if central_law(rest) is not None or top > MOST_EPS:
        return rest
    return pure_dp(amounts.charged(top))
