"""Proofs of the target residue filter, whose residue must hold only where `(eps, delta)` reads it.

A state is what is left of `mu²` (`v`), the largest loss that the queries so far add up to (null
where losses are unbounded), reserves `r_i` of fixed orders, and a slack `s`. Its potential at
`t = eps - z`, `z` being the loss so far, is

    φ(t) = h_{G_√v}(e^t) + Σ r_i e^{κ_i(κ_i+1)v/2 - κ_i t} + s.

At the start `φ(eps) <= delta`. After a query `L` the next potential must satisfy
`E_L[φ'(t - Z)] <= φ(t)` in both directions, for all `t` that can be reached and at which every
exponential is below 1: no more than 1 can be lost. Let `t0` be the least of these. Mass at infinity
that splits off takes slack, Gaussian noise takes `v` alone. For the rest, with `c` what it takes of
`v` and `M_i` its moment `E e^{κ_i Z}` in the worse direction, the reserves must satisfy
`r_i' M_i <= (r_i - α_i) e^{κ_i(κ_i+1)c/2}`, and the inequality

    h_{L ⊕ G_√(v-c)}(e^t) <= h_{G_√v}(e^t) + Σ α_i e^{κ_i(κ_i+1)v/2 - κ_i t} + η,      t >= t0,

must hold, `η` being the slack that is taken. One of these is enough:

* the losses of `L` are at most `t0`: then `h_L(e^t) = 0` from there on, and `G_√v` may be gone;
* the inequality is proven over cells, from `t0` on or on the whole line;
* the step of a GDP residue filter, on the whole line; then `r_i' <= r_i` will also do, since what
  lies below a Gaussian has smaller moments than it.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import NamedTuple

from flint import arb

from residua.verify.arithmetic import LADDER, Ball, ball, bits, rational, written
from residua.verify.descriptions.configurations import Config, State, Tables, Unreadable, amount
from residua.verify.descriptions.mechanisms import StepQuery
from residua.verify.losses.factors import Infinite, Loss, Unknown
from residua.verify.losses.laws import gaussian_curve
from residua.verify.proofs.additive import (
    Cost,
    divergence,
    enough_taken,
    largest_loss,
    missing_mass,
)
from residua.verify.proofs.gaussian_budget import gdp_residue, prove_law
from residua.verify.proofs.verdict import Proof, all_of, prove_at_most, proven, refuted, undecided

_MULTIPLES = (Fraction(7, 20), Fraction(7, 10), Fraction(6, 5), Fraction(2))
"""The orders of the reserves beside the `order` of the filter, all of them less 1."""


def first(config: Config, state: State, _tables: Tables) -> Proof:
    """Whether the first potential keeps `(eps, delta)`, and nothing has been lost."""
    left, reached, reserves, slack = _read(state)
    if reached != 0:
        return refuted("something is lost before anything was asked")
    eps, delta = written(config["eps"]), written(config["delta"])
    spare, kept = (written(config[name]) for name in ("reserve", "slack"))
    if slack > delta * kept:
        return refuted("the slack is more than its share of delta")
    orders = kappas(config)
    if len(reserves) not in (0, len(orders)):
        return refuted(f"there are {len(reserves)} reserves")
    parts: list[tuple[str, Fraction, Fraction, Callable[[], Ball]]] = [
        ("Gaussian", 1 - spare - kept, left, lambda: gaussian_curve(*_at(eps, left)))
    ]
    for k, reserve in zip(orders, reserves, strict=False):
        there = partial(_first_reserve, eps, k, left, reserve)
        parts.append(("reserve", spare / len(orders), reserve, there))
    for name, share, amount_left, height in parts:
        proof = _within(name, share * delta, height) if amount_left else None
        if proof is not None and proof.verdict != "proven":
            return proof
    return proven("the first potential keeps (eps, delta)")


def kappas(config: Config) -> tuple[Fraction, ...]:
    """The orders of the reserves, less 1."""
    return tuple((written(config["order"]) - 1) * each for each in _MULTIPLES)


def _at(eps: Fraction, v: Fraction) -> tuple[Ball, Ball]:
    return ball(eps), ball(v).sqrt()


def _first_reserve(eps: Fraction, k: Fraction, v: Fraction, reserve: Fraction) -> Ball:
    """The contribution of the reserve to the first potential at `eps`."""
    return ball(reserve) * ball(k * (k + 1) * v / 2 - k * eps).exp()


def _within(name: str, share: Fraction, height: Callable[[], Ball]) -> Proof:
    """Whether a part of the first potential is within its share of `delta`."""
    return prove_at_most(
        lambda: (height(), ball(share)),
        f"the first {name} is within its share of delta",
        f"the first {name} exceeds its share of delta at eps",
    )


def step(config: Config, before: State, after: State, query: StepQuery) -> Proof:
    """Whether a step from one state to the next is sound."""
    loss = query.loss
    (v, b, reserves, s), (left, reached, kept, slack) = _read(before), _read(after)
    if left > v:
        return refuted("mu² rises")
    if slack > s:
        return refuted("the slack rises")
    if b is None and reached is not None:
        return refuted("losses that were unbounded are bounded again")
    if b is not None and reached is not None and reached < b:
        return refuted("the largest loss so far falls")
    if len(reserves) != len(kept):
        return refuted("the number of reserves changes")
    m2 = left + loss.variance
    if m2 > v:
        return refuted("mu² falls by less than the Gaussian part")
    orders = kappas(config)[: len(reserves)]
    if not all(map(partial(_may_be_kept, v - m2), orders, reserves, kept)):
        return refuted("a reserve rises")
    if loss.is_identity:
        return proven("no loss")
    lost = missing_mass(loss)
    rest = loss.rest.core
    if rest is None:
        return undecided("mass at infinity that does not split off")
    masses = enough_taken("the slack", s - slack, lost)
    bounded = Loss(variance=loss.variance, factors=rest.factors, stated=rest.stated)
    far = _reach(b, reached, _largest(bounded))
    if not rest.factors and not rest.stated:
        return all_of([masses, far, proven("mu² falls by at least its cost")])
    eta = max(s - slack - lost.upper, Fraction(0))
    start = _from(written(config["eps"]), b, v, orders, reserves)
    found = _rest(_Step(v, m2, start, orders, reserves, kept, eta), rest)
    return all_of([masses, far, found])


def _may_be_kept(cost: Fraction, k: Fraction, before: Fraction, after: Fraction) -> bool:
    """Whether a reserve is at most what a query without a moment leaves, if it takes `cost`.

    Moments are at least 1, so that no query leaves more.
    """
    if after <= before:
        return True
    with bits(LADDER[0]):
        return bool(ball(after) <= ball(before) * ball(k * (k + 1) * cost / 2).exp())


class _Step(NamedTuple):
    """What is left of everything before and after a query without its Gaussian part."""

    v: Fraction
    m2: Fraction
    start: Fraction | None
    """`t0`; None if the whole line counts."""
    orders: tuple[Fraction, ...]
    reserves: tuple[Fraction, ...]
    kept: tuple[Fraction, ...]
    eta: Fraction


def _from(
    eps: Fraction,
    b: Fraction | None,
    v: Fraction,
    orders: tuple[Fraction, ...],
    reserves: tuple[Fraction, ...],
) -> Fraction | None:
    """`t0`, from below: the inequality is needed from here on. None if everywhere."""
    found = [] if b is None else [eps - b]
    with bits(LADDER[0]):
        for k, reserve in zip(orders, reserves, strict=True):
            if reserve:
                log = ball(reserve).log() + ball(k * (k + 1) * v / 2)
                found.append(rational(arb((log / ball(k)).lower())))
    return max(found, default=None)


def _rest(step: _Step, rest: Loss) -> Proof:
    """The step for what has neither a Gaussian part nor mass at infinity."""
    drawn = _drawn(step, rest)
    if drawn is not None:
        found = _with_reserves(step, drawn, rest)
        if found.verdict == "proven":
            return found
    elif any(new > old for old, new in zip(step.reserves, step.kept, strict=True)):
        return undecided("the reserves fall by less than is known to suffice")
    whole = gdp_residue(step.v, step.m2, rest)
    # Less may fit on the whole line than where it is read, or with the reserves.
    return whole if whole.verdict == "proven" or drawn is None else found


def _drawn(step: _Step, rest: Loss) -> tuple[Fraction, ...] | None:
    """The `α_i`, from below; None if one of them is not known to be at least 0."""
    found = []
    for k, reserve, kept in zip(step.orders, step.reserves, step.kept, strict=True):
        with bits(LADDER[0]):
            needed = ball(kept) * _moment(k, step.v - step.m2, rest) if kept else arb(0)
            drawn = ball(reserve) - needed
            if not (drawn.is_finite() and drawn >= 0):
                return None
            found.append(max(rational(arb(drawn.lower())), Fraction(0)))
    return tuple(found)


def _moment(k: Fraction, cost: Fraction, rest: Loss) -> Ball:
    """`M e^{-κ(κ+1)c/2}`."""
    try:
        found = divergence(rest, k + 1)
    except (Infinite, Unknown):
        return arb("inf")
    whole = ball(found.exact) + found.rest()
    return (ball(k) * whole - ball(k * (k + 1) * cost / 2)).exp()


def _with_reserves(step: _Step, drawn: tuple[Fraction, ...], rest: Loss) -> Proof:
    """The inequality where it is read, for a loss without mass at infinity."""
    if rest.stated:
        return undecided("no formula for the loss of a stated Rényi bound")
    start, top = max(step.start or Fraction(0), Fraction(0)), _largest(rest)
    if not step.m2 and top and enough_taken("eps", start, top).verdict == "proven":
        return proven("the losses of all queries add up to at most eps")

    def reserves() -> tuple[tuple[Ball, Ball], ...]:
        return tuple(
            (ball(a).log() + ball(k * (k + 1) * step.v / 2), ball(k))
            for a, k in zip(drawn, step.orders, strict=True)
            if a
        )

    tight = not any(drawn)
    return prove_law(rest, step.m2, step.v, step.eta, tight, reserves, start)


def _read(state: State) -> tuple[Fraction, Fraction | None, tuple[Fraction, ...], Fraction]:
    for name in ("left", "slack"):
        if isinstance(state.get(name), list):
            raise Unreadable(f"{name} must be one amount, got {state[name]!r:.60}")
    left, slack = (amount(state.get(name)) for name in ("left", "slack"))
    reached = None if state.get("reached") is None else amount(state["reached"])
    reserves = state.get("reserves")
    if not isinstance(reserves, list) or len(reserves) > len(_MULTIPLES):
        raise Unreadable(f"reserves must be a short list, got {reserves!r:.60}")
    return left, reached, tuple(map(amount, reserves)), slack


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
