"""The target residue filter: a Gaussian residue that must hold only where it can be read.

A state is what is left of `mu²` (`v`), the largest loss that the queries so far add up to (null
where losses are unbounded), their log moment `K` (null where it is not kept), a reserve `r` and a
slack `s`. Its potential at `t = eps - z`, `z` being the loss so far, is

    φ(t) = h_{G_√v}(e^t) + r e^{κ(κ+1)v/2 - κt} + s.

With probability `1 - β` the loss `z` is never above the barrier `(K + ln(1/β)) / λ`, where `K`
grows by at least `ln E e^{λZ}` with each query (Ville's inequality). Let `b` be the smaller one of
that and the sum of the largest losses. At the start `φ(eps) + β <= delta`. After a query `L` the
next potential must satisfy
`E_L[φ'(t - Z)] <= φ(t)` for all `t >= eps - b`, in both directions. Mass at infinity that splits
off takes slack, Gaussian noise takes `v` alone. For the rest, with `c` what it takes of `v` and `M`
its moment `E e^{κZ}` in the worse direction, one of these is enough:

* `r' <= r`, and the step of a GDP residue filter, on the whole line: what lies below a Gaussian has
  smaller moments than it;
* `r' M <= r e^{κ(κ+1)c/2}`, and the losses of `L` are at most `t0 = eps - b`: then `h_L(e^t) = 0`
  from there on, and `G_√v` may be gone;
* the same, `L` is one randomized response, Laplace noise or bounded range, and the inequality of
  the Gaussians holds at `t0 > 0`: the difference of both sides has the sign of
  `∫ g(y) e^{-y²/2m²} cosh(ty/m²) dy` over `y > 0`, `g` changes its sign once, from plus to minus,
  and `cosh(ty/m²) / cosh(t0 y/m²)` increases in `y`; so what is at most 0 at `t0` stays so;
* the same for `R_e` in place of `L`, `e` its largest loss: `L ⪯ R_e`;
* with `α = r - r' M e^{-κ(κ+1)c/2} > 0` and `η` the slack that is taken,

      h_{L ⊕ G_√(v-c)}(e^t) <= h_{G_√v}(e^t) + α e^{κ(κ+1)v/2 - κt} + η      for all t.

  Composed with a Gaussian that also holds for every larger `v`, so it is proven at the next lower
  value of a fixed list, where many steps share one proof. For `t >= 0` in both directions is
  enough: the other half follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb

from residua.verify.arithmetic.balls import Ball, ball, bits, rational, upper, written
from residua.verify.descriptions.states import State, Unreadable, amount
from residua.verify.losses.costs import Infinite, Unknown
from residua.verify.losses.dominating import FINENESS, law_above
from residua.verify.losses.factors import Loss, Noise, Response
from residua.verify.losses.hockey_stick import heights
from residua.verify.losses.laws import gaussian_curve
from residua.verify.proofs.additive import (
    Cost,
    divergence,
    enough_taken,
    largest_loss,
    missing_mass,
)
from residua.verify.proofs.gaussian_budget import gdp_residue, law_of, without_mass
from residua.verify.proofs.residue import prove_residue
from residua.verify.proofs.verdict import Proof, all_of, proven, refuted, undecided

_BITS = (128, 256, 512)
_DOWN = Context(prec=6, rounding=ROUND_FLOOR)
_SPACING = 48
"""Values of `v` in a decade at which steps are proven."""


def first(config: Mapping[str, Any], state: State, tables: Mapping[str, bytes]) -> Proof:
    """Whether the first potential keeps `(eps, delta)`, and nothing has been lost."""
    left, reached, moment, reserve, slack = _read(state)
    if reached != 0 or moment:
        return refuted("something is lost before anything was asked")
    eps, k = written(config["eps"]), written(config["order"]) - 1
    shares = {name: written(config[name]) for name in ("reserve", "slack", "barrier")}
    delta = written(config["delta"])
    if slack > delta * shares["slack"]:
        return refuted("the slack is more than its share of delta")
    parts = (
        ("Gaussian", 1 - sum(shares.values()), left, lambda: gaussian_curve(*_at(eps, left))),
        ("reserve", shares["reserve"], reserve, lambda: _first_reserve(eps, k, left, reserve)),
    )
    for name, share, there, height in parts:
        proof = _within(name, share * delta, height) if there else None
        if proof is not None and proof.verdict != "proven":
            return proof
    return proven("the first potential keeps (eps, delta)")


def _at(eps: Fraction, v: Fraction) -> tuple[Ball, Ball]:
    return ball(eps), ball(v).sqrt()


def _first_reserve(eps: Fraction, k: Fraction, v: Fraction, reserve: Fraction) -> Ball:
    """What the reserve adds to the first potential at `eps`."""
    return ball(reserve) * ball(k * (k + 1) * v / 2 - k * eps).exp()


def _within(name: str, share: Fraction, height: Callable[[], Ball]) -> Proof:
    """Whether a part of the first potential is within its share of `delta`."""
    for precision in _BITS:
        with bits(precision):
            found = height()
            if found <= ball(share):
                return proven(f"the first {name} is within its share")
            if found > ball(share):
                return refuted(f"the first {name} exceeds its share of delta at eps")
    return undecided(f"the first {name} is not told from its share of delta")


def step(config: Mapping[str, Any], before: State, after: State, loss: Loss) -> Proof:
    """Whether a step from one state to the next is sound."""
    (v, b, grown, r, s), (left, reached, moment, kept, slack) = _read(before), _read(after)
    if left > v:
        return refuted("mu² rises")
    if slack > s:
        return refuted("the slack rises")
    if b is None and reached is not None:
        return refuted("losses that were unbounded are bounded again")
    if b is not None and reached is not None and reached < b:
        return refuted("the largest loss so far falls")
    if grown is None and moment is not None:
        return refuted("a barrier that was given up is kept again")
    if grown is not None and moment is not None and moment < grown:
        return refuted("the moment of the barrier falls")
    if kept > r:
        return refuted("the reserve rises")
    if loss.is_identity:
        return proven("no loss")
    m2 = left + loss.variance
    if m2 > v:
        return refuted("mu² falls by less than the Gaussian part")
    lost = missing_mass(loss)
    rest = without_mass(loss.rest)
    if rest is None:
        return undecided("mass at infinity that does not split off")
    masses = enough_taken("the slack", s - slack, lost)
    bounded = Loss(variance=loss.variance, factors=rest.factors, stated=rest.stated)
    far = all_of([_reach(b, reached, _largest(bounded)), _grows(config, grown, moment, loss)])
    if not rest.factors and not rest.stated:
        return all_of([masses, far, proven("mu² falls by at least its cost")])
    with bits(_BITS[0]):
        taken = lost.exact + (upper(lost.rest()) if lost.rest is not None else 0)
    reach = _barrier(config, b, grown)
    found = _rest(config, (v, reach, r), (m2, kept), max(s - slack - taken, Fraction(0)), rest)
    return all_of([masses, far, found])


def _crossing(config: Mapping[str, Any]) -> Fraction:
    """`β`, the probability that the barrier is ever crossed."""
    return written(config["delta"]) * written(config["barrier"])


def _barrier(
    config: Mapping[str, Any], b: Fraction | None, moment: Fraction | None
) -> Fraction | None:
    """The largest loss so far, but for the probability of crossing the barrier."""
    crossing = _crossing(config)
    if moment is None or not crossing:
        return b
    with bits(_BITS[0]):
        order = written(config["barrier_order"]) - 1
        far = upper((ball(moment) - ball(crossing).log()) / ball(order))
    return far if b is None else min(b, far)


def _grows(
    config: Mapping[str, Any], before: Fraction | None, after: Fraction | None, loss: Loss
) -> Proof:
    """Whether the log moment grows by at least that of the query."""
    if before is None or after is None:
        return proven("no barrier is kept")
    order = written(config["barrier_order"])
    rest = without_mass(loss.rest)
    assert rest is not None
    bounded = Loss(variance=loss.variance, factors=rest.factors, stated=loss.stated)
    try:
        return enough_taken(
            "the barrier", (after - before) / (order - 1), divergence(bounded, order)
        )
    except (Infinite, Unknown):
        return undecided("no formula for the moment of the query")


def _rest(
    config: Mapping[str, Any],
    before: tuple[Fraction, Fraction | None, Fraction],
    after: tuple[Fraction, Fraction],
    eta: Fraction,
    rest: Loss,
) -> Proof:
    """The step for what has neither a Gaussian part nor mass at infinity."""
    (v, b, r), (m2, kept), k = before, after, written(config["order"]) - 1
    near = _from_where_it_is_read(config, b, m2, v, rest)
    if near is not None and near.verdict == "proven":
        moments = _moments(r, kept, k, v - m2, rest)
        if moments.verdict == "proven":
            return near
    drawn = Fraction(0)
    if eta and m2 < v and not rest.stated:
        drawn = _drawn(r, kept, k, v - m2, rest)
    if drawn > 0:
        proof = _with_reserve(_rung(v), v - m2, drawn, _floor(eta), k, rest)
        if proof.verdict == "proven":
            return proof
    whole = gdp_residue(v, m2, rest)
    if whole.verdict == "proven":
        return whole
    if drawn > 0:
        # Less may fit on the whole line than with the reserve: that refutes nothing.
        return proof
    if near is None or b is None or near.verdict == "proven":
        return whole
    # On the whole line less may fit than where it is read.
    return near


def _moments(r: Fraction, kept: Fraction, k: Fraction, cost: Fraction, rest: Loss) -> Proof:
    """Whether the reserve that is kept allows for the moment of a query."""
    if not kept:
        return proven("no reserve is kept")
    for precision in _BITS:
        with bits(precision):
            needed = ball(kept) * _moment(k, cost, rest)
            if needed <= ball(r):
                return proven("the reserve falls by at least its cost")
            if needed > ball(r):
                return undecided("the reserve falls by less than is known to suffice")
    return undecided("the reserve is not known well enough")


def _moment(k: Fraction, cost: Fraction, rest: Loss) -> Ball:
    """`M e^{-κ(κ+1)c/2}`."""
    try:
        found = divergence(rest, k + 1)
    except (Infinite, Unknown):
        return arb("inf")
    whole = ball(found.exact) if found.rest is None else ball(found.exact) + found.rest()
    return (ball(k) * whole - ball(k * (k + 1) * cost / 2)).exp()


def _drawn(r: Fraction, kept: Fraction, k: Fraction, cost: Fraction, rest: Loss) -> Fraction:
    """What is drawn from the reserve, to six digits from below; 0 if that is not known."""
    with bits(_BITS[0]):
        drawn = ball(r) - (ball(kept) * _moment(k, cost, rest) if kept else 0)
        if not (drawn.is_finite() and drawn > 0):
            return Fraction(0)
        return _floor(rational(arb(drawn.lower())))


def _floor(amount: Fraction) -> Fraction:
    """A positive amount to six digits, from below: steps that are alike share one proof."""
    return Fraction(_DOWN.divide(Decimal(amount.numerator), Decimal(amount.denominator)))


def _rung(v: Fraction) -> Fraction:
    """The next lower value of `mu²` at which steps are proven."""
    place = -_SPACING * 330
    step = 1 << 15
    while step:
        if _value(place + step) <= v:
            place += step
        step >>= 1
    return min(_value(place), v)


@lru_cache(maxsize=4096)
def _value(place: int) -> Fraction:
    decade, step = divmod(place, _SPACING)
    return Fraction(Decimal(round(1000.0 * 10.0 ** (step / _SPACING))).scaleb(decade - 3))


@lru_cache(maxsize=256)
def _with_reserve(
    v: Fraction, cost: Fraction, drawn: Fraction, eta: Fraction, k: Fraction, rest: Loss
) -> Proof:
    """The inequality with reserve and slack, for a loss without mass at infinity."""
    if cost >= v:
        return undecided("a query that draws on the reserve takes all of mu²")

    def reserve() -> tuple[Ball, Ball]:
        return ball(drawn).log() + ball(k * (k + 1) * v / 2), ball(k)

    proof = undecided("too many outcomes, or no formula for their law")
    make = law_of(rest)
    for fine in (None, *FINENESS):
        law = make if fine is None else law_above(rest, eta, fine)
        if law is None:
            continue
        try:
            proof = prove_residue(law, v - cost, v, eta, reserve)
        except Unknown:
            break
        if proof.verdict == "proven":
            return proven(f"draws on the reserve: {proof.reason}")
    return undecided(f"not shown with the reserve: {proof.reason}")


def _read(state: State) -> tuple[Fraction, Fraction | None, Fraction | None, Fraction, Fraction]:
    for name in ("left", "reserve", "slack"):
        if isinstance(state.get(name), list):
            raise Unreadable(f"{name} must be one amount, got {state[name]!r:.60}")
    left, reserve, slack = (amount(state.get(name)) for name in ("left", "reserve", "slack"))
    reached, moment = (
        None if state.get(name) is None else amount(state[name]) for name in ("reached", "moment")
    )
    return left, reached, moment, reserve, slack


def _largest(loss: Loss) -> Cost | None:
    """The largest loss of a query; None where it has none."""
    if loss.variance or loss.stated or any(factor.unbounded for factor, _ in loss.factors):
        return None
    try:
        return largest_loss(loss)
    except (Infinite, Unknown):
        return None


def _reach(b: Fraction | None, reached: Fraction | None, top: Cost | None) -> Proof:
    """Whether the largest loss so far grows by at least that of the query."""
    if reached is None or b is None:
        return proven("losses are taken to be unbounded")
    if top is None:
        return refuted("the losses of the query are unbounded, and count as bounded")
    return enough_taken("the largest loss", reached - b, top)


def _from_where_it_is_read(
    config: Mapping[str, Any], b: Fraction | None, m2: Fraction, v: Fraction, rest: Loss
) -> Proof | None:
    """The inequality from `t0` on; None where only the whole line can be checked."""
    if b is None or rest.stated:
        return None
    start, top = written(config["eps"]) - b, _largest(rest)
    if start < 0 or top is None:
        return None
    covered = enough_taken("eps", start, top)
    if covered.verdict == "proven":
        return proven("the losses of all queries add up to at most eps")
    if start == 0:
        return None
    one = len(rest.factors) == 1 and rest.factors[0][1] == 1
    factor = rest.factors[0][0]
    central = one and (isinstance(factor, Noise) or _is_coin(factor))
    proof = undecided("the curves are not told apart where the budget is first read")
    for precision in _BITS:
        with bits(precision):
            law = rest if central else _response(top)
            found = heights(Loss(variance=m2, factors=law.factors), ball(start))
            if found is None or not v:
                return None
            budget = gaussian_curve(ball(start), ball(v).sqrt())
            if found[0] <= budget:
                return proven("the budget covers the query wherever it can be read")
            if found[0] > budget and central:
                return refuted("the budget does not cover the query where it is first read")
            if found[0] > budget:
                return undecided("the budget is not shown to cover the query where it is read")
    return proof


def _is_coin(factor: Any) -> bool:
    return isinstance(factor, Response) and factor.delta == 0


def _response(top: Cost) -> Loss:
    """The randomized response above everything with this largest loss."""
    eps = top.exact if top.rest is None else top.exact + upper(top.rest())
    zero = Fraction(0)
    return Loss(factors=((Response(eps, zero, eps, zero), 1),))
