"""The GDP residue filter with slack: a budget `G_mu ⊕ R_{0,delta}`.

Tran et al. 2026 extend the GDP filter to such approximate GDP budgets; here a query takes the
residue.

A query takes `c` of `mu²` and `η` of `delta` if `L ⊕ G_sqrt(mu²-c) ⪯ G_mu ⊕ R_{0,η}`: then `L ⊕
G_m ⊕ R_{0,delta-η} ⪯ G_mu ⊕ R_{0,η} ⊕ R_{0,delta-η} ⪯ G_mu ⊕ R_{0,delta}`, the residue condition.
What a query loses with certainty of name, mass at infinity that splits off, is taken from `delta`
as it is. Queries that fit the Gaussian get along without slack. Others (a subsampled Gaussian's
tail fits only a Gaussian as large as the one that was sampled) take slack as well, the `η`
with which the two amounts would last equally long from the start.

Costs do not increase with `mu` at a given `η` (compose both sides with a Gaussian), so they are
worked out once for all `mu²` within two percent, at the lower end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.bounds import float_down
from residua.errors import TooExpensive
from residua.filters import amounts, wording
from residua.filters.additive.base import Additive
from residua.filters.additive.gdp import lift_tiny
from residua.filters.amounts import Left, State
from residua.filters.costs import (
    gaussian_variance,
    missing_mass,
    stated_gdp,
    without_gaussian,
    without_infinity,
)
from residua.filters.decision import Decision
from residua.filters.noise import least_above, least_noise_within
from residua.filters.query import Query, as_query, loss_of
from residua.filters.target import largest_mu, target
from residua.filters.wording import SQUARES
from residua.mechanisms.mechanism import Mechanism
from residua.pld.constructors import approximate_dp, gaussian
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.pld import Pld
from residua.pld.residue.gdp_parameter import gdp_parameter
from residua.pld.residue.gdp_residue import gdp_residue_cost
from residua.pld.residue.slack import slack_cost
from residua.work_limit import attempt, remembered

_NO_ROOM = "does not fit what is left"
_STEP = math.log(1.02)
"""The logarithm of the ratio of neighbouring `mu²` for which costs are worked out."""


@dataclass(frozen=True)
class ApproximateGdpResidueFilter(Additive):
    """Admits what fits `G_mu` but for some slack, of which there is `delta` in all."""

    mu: float
    delta: float

    kind: ClassVar[str] = "approximate_gdp_residue"

    def __post_init__(self) -> None:
        mu = checks.between("mu", self.mu, 0.0, 1e6)
        checks.require(mu == 0.0 or mu >= 1e-100, "mu", "0 or at least 1e-100", mu)
        delta = checks.real("delta", self.delta, "in [0, 1)")
        checks.require(0.0 <= delta < 1.0, "delta", "in [0, 1)", self.delta)
        checks.set_fields(self, mu=mu, delta=delta + 0.0)
        super().__post_init__()

    @classmethod
    def within(
        cls, eps: float, delta: float, expect: Pld | Mechanism | None = None
    ) -> ApproximateGdpResidueFilter:
        """The filter that keeps `(eps, delta)`, a fifth of `delta` being slack.

        Half of it, if queries like `expect` need slack, and hardly any, if they do not.
        """
        e, d = target(eps, delta)
        share = 0.2
        if expect is not None:
            share = 0.5 if _needs_slack(loss_of(as_query(expect, "expect"))) else 1e-3
        slack = float(amounts.rounded_down(share * d, 6))
        mu = largest_mu(e, (d - slack) * (1.0 - 1e-9))
        return cls(float(amounts.rounded_down(mu, 9)), slack)

    def _amounts(self) -> tuple[Fraction, ...]:
        return amounts.written(self.mu) ** 2, amounts.written(self.delta)

    def _declared_costs(self, mechanism: Mechanism) -> tuple[Fraction, ...] | None:
        gdp = stated_gdp(mechanism)
        return None if gdp is None else (*gdp, Fraction(0))

    def _costs(self, left: tuple[Fraction, ...], loss: Pld) -> tuple[Fraction, ...] | str:
        v, d = left
        noise, missing = gaussian_variance(loss), Fraction(0)
        rest = without_gaussian(loss)
        kept = without_infinity(rest)
        if kept is not None:
            missing, rest = missing_mass(rest), kept
        rest = lift_tiny(rest)
        if not rest.terms:
            return noise, missing
        if v > 0 and not _needs_slack(rest):
            alone = gdp_residue_cost(v, rest)
            if alone is not None:
                return noise + amounts.rounded_up(float(alone.hi)), missing
        found = None
        if v > 0 and d > missing:
            whole, slack = map(float_down, self._whole)
            usual = _usual_slack(whole, slack, rest)
            found = _with_slack(_rung(v), float_down(d - missing), usual, rest)
        if found is None:
            return _NO_ROOM
        cost, eta = found
        return noise + amounts.rounded_up(cost), missing + Fraction(eta)

    def _largest(
        self, before: State, query: Query, relation: str | None, within: int
    ) -> Query | TooExpensive | None:
        """With slack: what is dominated by what is left, which is soon said, and then decided."""
        assert isinstance(before, Left)
        v, d = before.left
        loss = loss_of(query, relation)
        if v == 0 or not _needs_slack(loss):
            return super()._largest(before, query, relation, within)
        # What is admitted fits what is left, and but for Gaussian parts the lower end of its rung.
        mu = amounts.root_up(v) if gaussian_variance(loss) else math.sqrt(_rung(v))
        most = gaussian(mu=mu) + approximate_dp(0.0, amounts.charged(d))
        start = least_noise_within(query, lambda asked: loss_of(asked, relation) <= most, within)
        if start is None or isinstance(start, TooExpensive):
            return start

        def above() -> Query | None:
            return least_above(start, lambda asked: self._decide(before, asked, relation).admitted)

        return attempt("this", within, above)

    def _need(self, decision: Decision) -> str:
        """The Gaussian that the query alone would need, where that says why."""
        if decision._why_not != _NO_ROOM:
            return super()._need(decision)
        loss = loss_of(decision.query, decision._relation)
        (unit, v), (_, d) = self._amounts_left(decision._before)
        slack = amounts.reported(d) if _needs_slack(loss) else 0.0
        nu = _parameter_with(slack, loss) if slack else gdp_parameter(loss)
        if not nu < math.inf or not amounts.written(nu) ** 2 > v:
            return _NO_ROOM
        with_slack = f" with {wording.left_words((('delta', d),))}" if slack else ""
        return f"needs {wording.need_words(((unit, v),), (amounts.written(nu) ** 2,))}{with_slack}"

    @property
    def _units(self) -> tuple[str, ...]:
        return (SQUARES, "delta")

    def _amounts_of(self, left: Pld) -> tuple[Fraction, ...] | None:
        rest = without_gaussian(left)
        if rest != approximate_dp(0.0, amounts.reported(missing_mass(rest))):
            return None
        return gaussian_variance(left), missing_mass(rest)

    def remaining_in(self, state: State) -> Pld:
        assert isinstance(state, Left)
        v, d = state.left
        return gaussian(mu=amounts.root_down(v)) + approximate_dp(0.0, amounts.reported(d))

    def spent_in(self, state: State) -> Pld:
        assert isinstance(state, Left)
        whole = self._whole
        v, d = whole[0] - state.left[0], whole[1] - state.left[1]
        return gaussian(mu=amounts.root_up(v)) + approximate_dp(0.0, amounts.charged(d))

    @property
    def guarantee(self) -> Pld:
        return gaussian(mu=self.mu) + approximate_dp(0.0, self.delta)


def _needs_slack(loss: Pld) -> bool:
    """Whether tails are heavier than the bulk, or mass at infinity does not split off."""
    heavy = any(isinstance(factor, GaussianMixture) for factor in loss.terms)
    return heavy or without_infinity(loss) is None


def _parameter_with(slack: float, loss: Pld) -> float:
    """About the least `mu` with `L ⪯ G_mu ⊕ R_{0,slack}`, from above; infinite if there is none."""

    def fits(mu: float) -> bool:
        return loss <= gaussian(mu=mu) + approximate_dp(0.0, slack)

    low, high = 1e-6, 1e3
    if not fits(high):
        return math.inf
    for _ in range(24):  # To six digits: it is shown.
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _rung(v: Fraction) -> float:
    """The lower end of the two percent in which `mu² > 0` lies."""
    low = float_down(v)
    rung = math.exp(_STEP * math.floor(math.log(low) / _STEP))
    return rung if rung <= low else rung / 1.02


def _with_slack(v: float, d: float, eta: float, rest: Pld) -> tuple[float, float] | None:
    """`(c, η)` for the usual `η`, or the first multiple that will do; None if nothing fits."""
    while eta < d:
        cost = slack_cost(v, rest, eta)
        if cost is not None:
            return float(cost.hi), eta
        eta *= 2.0
    cost = slack_cost(v, rest, d)
    return None if cost is None else (float(cost.hi), d)


@remembered(maxsize=1024)
def _usual_slack(v: float, d: float, rest: Pld) -> float:
    """The `η` with which `v` and `d` last for about as many queries.

    The cost at three quarters of `v` stands for all of them. At first 64 queries are planned for;
    a few rounds come close enough.
    """
    count, tried = 64.0, 1.0
    for _ in range(6):
        cost = slack_cost(0.75 * v, rest, d / count)
        if cost is None:
            count = max(count / 8.0, 1.0)
            continue
        tried = count
        bears = v / float(cost.hi) if cost.hi > 0.0 else count
        if abs(bears - count) <= 0.1 * count:
            break
        count = max(math.sqrt(count * bears), 1.0)
    # Costs rise steeply towards the end: what is left of delta then is of no use.
    return d / max(0.75 * tried, 1.0)
