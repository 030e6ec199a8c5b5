"""The Rényi filter with commit.

Open, it is the Rényi filter at one order. A commit gives what is left, `ρ`, to a budget `B'` with
`h_B' <= φ_ρ` everywhere, in both directions, where

    φ_ρ(x) = c_α e^{(α-1)ρ} x^{-(α-1)},   c_α = (1-1/α)^{α-1} / α.

Left of where `φ_ρ` is 1 that is clear. To the right the curve lies below its chords in `x` and
`φ_ρ` above its tangents; beyond the largest loss the curve is 0, and beyond some point Chernoff's
bound at a larger order takes over, `h(x) <= c_β M(β-1) x^{-(β-1)}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flint import arb

from residua.verify.arithmetic import BITS, Ball, ball, bits, near, written
from residua.verify.descriptions.configurations import Config, State, Tables, Unreadable, amount
from residua.verify.descriptions.mechanisms import StepQuery, loss_of
from residua.verify.losses.factors import Loss, Unknown, together
from residua.verify.losses.hockey_stick import curve_of
from residua.verify.proofs.additive import log_moment, renyi, renyi_within
from residua.verify.proofs.partitions import guarantee_of
from residua.verify.proofs.verdict import (
    Proof,
    all_of,
    line_in_x,
    prove_below,
    proven,
    refuted,
    undecided,
)

FirstProof = Callable[[Any, Any, Tables], Proof]
StepProof = Callable[[Any, Any, Any, StepQuery], Proof]


def first(config: Config, state: State, _tables: Tables) -> Proof:
    """Whether nothing is committed, and what is left implies `(eps, delta)`-DP."""
    if state["committed"] or state["to"] is not None or state["inner"] is not None:
        return refuted("committed before anything was asked")
    eps, delta = written(config["eps"]), written(config["delta"])
    return renyi_within(written(config["alpha"]), amount(state["left"]), eps, delta)


def step(
    config: Config,
    before: State,
    after: State,
    query: StepQuery,
    prove_first: FirstProof,
    prove_step: StepProof,
) -> Proof:
    """Whether a step is one at the order of the filter, a commit, or one of what it led to.

    `prove_first` and `prove_step` check the filter that was committed to.
    """
    had, has = amount(before["left"]), amount(after["left"])
    if has > had:
        return refuted("rho rises")
    if before.get("to") is not None:
        to = before["to"]
        if after.get("to") != to or after.get("committed") is not True:
            return refuted("what was committed to changes")
        return prove_step(to, _inner(to, before), _inner(to, after), query)
    if isinstance(query.mechanism, Mapping) and query.mechanism.get("kind") == "commit":
        return _commit(config, before, after, query, prove_first)
    if after["committed"] != before["committed"] or not after["to"] is after["inner"] is None:
        return refuted("committed without a request")
    loss = query.loss
    if loss.is_identity:
        return proven("no loss")
    return renyi(written(config["alpha"]), had - has, loss)


def _inner(to: Any, state: State) -> Any:
    inner = state.get("inner")
    if not isinstance(to, Mapping) or not isinstance(inner, Mapping):
        raise Unreadable("a commit must name a filter and its state")
    return {"kind": to.get("kind"), **inner}


def _commit(
    config: Config, before: State, after: State, query: StepQuery, prove_first: FirstProof
) -> Proof:
    if before.get("committed") or after.get("committed") is not True:
        return refuted("only one commit is possible, and it must be recorded as one")
    if amount(after["left"]) != 0:
        return refuted("something is left beside what was committed")
    to = query.mechanism.get("to")
    proofs = []
    if isinstance(to, list):
        if not after["to"] is after["inner"] is None:
            return refuted("a batch was committed to, and a filter goes on")
        budget = together(loss_of(each, query.relation) for each in to)
    else:
        if after.get("to") != to or not isinstance(to, Mapping):
            return refuted("another filter goes on than was committed to")
        budget = guarantee_of(to)
        proofs.append(prove_first(to, _inner(to, after), query.after))
    left, alpha = amount(before["left"]), written(config["alpha"])
    with bits(BITS):
        for back in budget.directions:
            proofs.append(_below_potential(budget, back, ball(alpha), ball(left)))
    return all_of(proofs)


def _below_potential(budget: Loss, back: bool, alpha: Ball, rho: Ball) -> Proof:
    if budget.is_identity:
        return proven("nothing is committed to")
    s = alpha - 1
    log_c = s * (1 - 1 / alpha).log() - alpha.log()
    height = curve_of(budget, back)
    if height is None:
        raise Unknown("no formula for the curve of what is committed to")
    start = near(rho + log_c / s)
    while not rho + log_c / s >= arb(start):
        start -= 1e-9 * (1.0 + abs(start))
    end = _end(budget, back, alpha, rho, log_c)
    if end is None:
        return undecided("no order shows that the far tail stays below the potential")
    if start >= end:
        return proven("the budget lies below the potential")

    def tangent(t: Ball) -> Callable[[Ball], Ball]:
        level = (log_c + s * (rho - t)).exp()
        return line_in_x(t, level, -s * level)

    return prove_below(height, tangent, start, end)


def _end(budget: Loss, back: bool, alpha: Ball, rho: Ball, log_c: Ball) -> float | None:
    """A `t` from which on the curve is 0, or Chernoff's bound lies below the potential."""
    tops = [factor.top(back) for factor, _ in budget.factors]
    if not budget.variance and all(top is not None for top in tops):
        total = arb(0)
        for top, (_, n) in zip(tops, budget.factors, strict=True):
            assert top is not None
            total += n * top
        return near(total) * (1 + 1e-9) + 1e-9
    s, best = alpha - 1, None
    # Larger orders, some close and some far: any one of them will do.
    for ratio in (1.1, 1.3, 1.6, 2.0, 3.0, 5.0, 10.0):
        tilt = s * arb(ratio)
        beta = 1 + tilt
        moment = ball(budget.variance) * tilt * beta / 2
        if budget.factors:
            moment += log_moment(budget, tilt, back)
        log_d = tilt * (1 - 1 / beta).log() - beta.log()
        # log_d + moment - tilt t <= log_c + s (rho - t)
        at = near((log_d + moment - log_c - s * rho) / (tilt - s))
        at += 1e-9 * (1.0 + abs(at))
        shown = log_d + moment - tilt * arb(at) <= log_c + s * (rho - arb(at))
        if shown and (best is None or at < best):
            best = at
    return best
