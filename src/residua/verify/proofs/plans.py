"""The plan filter: a budget that is the composition of what is left of a plan.

A state has counts of the different mechanisms on the plan that are not Gaussian, in the
order of their first appearance, and the Gaussian variance that is left. The first budget must lie
within `(eps, delta)`. A step takes some mechanisms and some variance off. What is both in the query
and among what is taken cancels, exactly; what the query has beyond that must lie below what is
taken beyond that, part by part or by comparing curves, or, together with what is left, below what
was left before: for the Gaussian part of a plan by the residue condition, for its bounded part by
the curves of both.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from residua.provable import planned
from residua.records import canonical
from residua.verify.arithmetic import exact
from residua.verify.descriptions.configurations import Config, State, Tables, Unreadable, amount
from residua.verify.descriptions.mechanisms import StepQuery, loss_of
from residua.verify.losses.factors import Loss, Response, Revealed, together, without_common
from residua.verify.proofs.gaussian_budget import gdp_residue
from residua.verify.proofs.order import below, bounded_below, single_below, within
from residua.verify.proofs.verdict import Proof, proven, refuted, undecided


class _Plan(NamedTuple):
    """The parts of a plan: mechanisms with the number of each, and Gaussian variance."""

    kinds: list[Loss]
    counts: list[int]
    variance: Fraction

    def composed(self, counts: list[int], variance: Fraction) -> Loss:
        parts = [loss.times(n) for loss, n in zip(self.kinds, counts, strict=True)]
        return together([*parts, Loss(variance=variance)])


def _plan(config: Config) -> _Plan:
    losses: dict[str, Loss] = {}
    counts: dict[str, int] = {}
    variance = Fraction(0)
    for leaf, n in planned(config):
        loss, text = loss_of(leaf, None), canonical(leaf)
        variance += n * loss.variance
        if loss.factors or loss.stated:
            losses[text] = loss.rest
            counts[text] = counts.get(text, 0) + n
    return _Plan(list(losses.values()), list(counts.values()), variance)


def first_state(config: Config) -> dict[str, Any]:
    """The first state of a plan: all of it."""
    plan = _plan(config)
    return {"left": plan.counts, "variance": str(plan.variance)}


def _left(plan: _Plan, state: State) -> tuple[list[int], Fraction]:
    left = state["left"]
    if not isinstance(left, list) or not all(type(n) is int and n >= 0 for n in left):
        raise Unreadable(f"what is left of a plan must be counts, got {left!r:.60}")
    if len(left) != len(plan.kinds):
        raise Unreadable(f"the plan has {len(plan.kinds)} kinds of query, got {len(left)} counts")
    return left, amount(state["variance"])


def first(config: Config, state: State, _tables: Tables) -> Proof:
    """Whether what is left at the start was planned, and keeps `(eps, delta)`."""
    plan = _plan(config)
    left, variance = _left(plan, state)
    if any(n > most for n, most in zip(left, plan.counts, strict=True)) or variance > plan.variance:
        return refuted("more is left than was planned")
    whole = plan.composed(left, variance)
    return within(whole, exact(config["eps"]), exact(config["delta"]))


def step(config: Config, before: State, after: State, query: StepQuery) -> Proof:
    """Whether what is taken off the plan covers a query."""
    plan = _plan(config)
    (had, old), (has, new) = _left(plan, before), _left(plan, after)
    taken = [a - b for a, b in zip(had, has, strict=True)]
    if new > old or min(taken, default=0) < 0:
        return refuted("more is left of the plan than before")
    loss = query.loss
    if loss.is_identity:
        return proven("no loss")
    if not any(taken) and old == new:
        return refuted("nothing is taken off the plan")
    asked, covers = without_common(loss, plan.composed(taken, old - new))
    if asked.is_identity:
        return proven("takes off the plan what it is made of")
    if below(asked, covers):
        return proven("takes off the plan what lies above it")
    if asked.stated:
        return undecided("no formula for a query off the plan")
    if _single_below(asked, covers):
        return proven("takes off the plan what lies above it, by its curve")
    if _within_a_point(asked, covers):
        return proven("takes off the plan an (eps, delta) that it lies within")
    if bounded_below(asked, covers.rest):
        return proven("takes off the plan what lies above it, at every loss")
    if asked.factors and covers.variance:
        found = gdp_residue(new + covers.variance, new, asked)
        if found.verdict == "proven":
            return found
    if covers.factors and not asked.variance:
        rest = plan.composed(has, Fraction(0))
        if bounded_below(rest + asked, rest + covers.rest):
            return proven("the query and what is left of the plan lie below what was left before")
    return undecided("a query off the plan, not shown to fit into what it takes off")


def _single_below(loss: Loss, covers: Loss) -> bool:
    """Whether the loss is one bounded query whose curve lies below that of one that is taken."""
    if loss.variance or len(loss.factors) != 1 or loss.factors[0][1] != 1:
        return False
    one = loss.factors[0][0]
    return any(single_below(one, each) for each, _ in covers.factors)


def _within_a_point(loss: Loss, covers: Loss) -> bool:
    """Whether the loss lies within a response that is taken with all that reveals everything."""
    kept, sizes = Fraction(1), []
    for factor, n in covers.factors:
        if isinstance(factor, Revealed):
            kept *= (1 - factor.delta) ** n
        elif isinstance(factor, Response):
            sizes.append(factor.eps)
    if kept < 1:
        sizes.append(Fraction(0))
    return any(within(loss, eps, 1 - kept).verdict == "proven" for eps in sizes)
