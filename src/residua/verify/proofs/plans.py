"""The plan filter: a budget that is the composition of what is left of a plan.

The first budget must lie within `(eps, delta)`. A query that is on the plan, or lies below one that
is, takes one of that kind. Any other must lie, together with what is left, below what was left
before: shown for the Gaussian part of a plan by the residue condition, for its bounded part by
comparing curves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from residua.records import canonical
from residua.verify.arithmetic.balls import exact
from residua.verify.descriptions.mechanisms import loss_of
from residua.verify.descriptions.states import State, Unreadable
from residua.verify.losses.factors import Loss, Response, together
from residua.verify.proofs.comparing import bounded_below, single_below
from residua.verify.proofs.gaussian_budget import gdp_residue
from residua.verify.proofs.natural import point_budget
from residua.verify.proofs.order import below, within
from residua.verify.proofs.verdict import Proof, proven, refuted, undecided


def _kinds(config: Mapping[str, Any], count: int) -> list[tuple[Loss, int]] | None:
    """The kinds on a plan with how often each is there; None if it is not clear which are equal."""
    plan = config["plan"]
    losses = [loss_of(each, None) for each in plan]
    by_loss: dict[Loss, int] = {}
    for loss in losses:
        by_loss[loss] = by_loss.get(loss, 0) + 1
    if len(by_loss) == count:
        return list(by_loss.items())
    by_text: dict[str, tuple[Loss, int]] = {}
    for each, loss in zip(plan, losses, strict=True):
        text = canonical(each)
        by_text[text] = (loss, by_text.get(text, (loss, 0))[1] + 1)
    return list(by_text.values()) if len(by_text) == count else None


def _left(state: State) -> list[int]:
    left = state.get("left")
    if not isinstance(left, list) or not all(type(n) is int and n >= 0 for n in left):
        raise Unreadable(f"what is left of a plan must be counts, got {left!r}")
    return left


def first(config: Mapping[str, Any], state: State, tables: Mapping[str, bytes]) -> Proof:
    left = _left(state)
    kinds = _kinds(config, len(left))
    if kinds is None:
        return undecided("it is not clear which queries of the plan are equal")
    if any(n > most for n, (_, most) in zip(left, kinds, strict=True)):
        return refuted("more is left than was planned")
    whole = together(loss.times(n) for n, (loss, _) in zip(left, kinds, strict=True))
    return within(whole, exact(config["eps"]), exact(config["delta"]))


def _single_below(loss: Loss, kind: Loss) -> bool:
    """Whether both are single bounded queries, and the curve of the one lies below the other's."""
    for each in (loss, kind):
        if each.variance or each.stated or len(each.factors) != 1 or each.factors[0][1] != 1:
            return False
    return single_below(loss.factors[0][0], kind.factors[0][0]).verdict == "proven"


def _within_point(loss: Loss, point: Response) -> bool:
    return within(loss, point.eps, point.delta).verdict == "proven"


def step(
    config: Mapping[str, Any], before: State, after: State, mechanism: Any, relation: str | None
) -> Proof:
    had, has = _left(before), _left(after)
    kinds = _kinds(config, len(had))
    if kinds is None or len(has) != len(had):
        return undecided("it is not clear which queries of the plan are equal")
    taken = [a - b for a, b in zip(had, has, strict=True)]
    if min(taken) < 0:
        return refuted("more is left of the plan than before")
    loss = loss_of(mechanism, relation)
    if loss.is_identity:
        return proven("no loss")
    for n, (kind, _) in zip(taken, kinds, strict=True):
        if n > 0 and below(loss, kind.times(n)):
            return proven("takes off the plan what lies above it")
    if any(n > 0 and _single_below(loss, kind) for n, (kind, _) in zip(taken, kinds, strict=True)):
        return proven("takes off the plan what lies above it, by its curve")
    points = [point_budget(kind) for n, (kind, _) in zip(taken, kinds, strict=True) if n > 0]
    if any(_within_point(loss, point) for point in points if point is not None):
        return proven("takes off the plan an (eps, delta) that it lies within")
    covers = together(kind.times(n) for n, (kind, _) in zip(taken, kinds, strict=True))
    if bounded_below(loss, covers).verdict == "proven":
        return proven("takes off the plan what lies above it, at every loss")
    whole = together(kind.times(n) for n, (kind, _) in zip(had, kinds, strict=True))
    rest = together(kind.times(n) for n, (kind, _) in zip(has, kinds, strict=True))
    if sum(taken) == 0:
        return refuted("nothing is taken off the plan")
    if below(rest + loss, whole):
        return proven("what is left and the query lie below the plan")
    if not loss.factors or loss.stated:
        return undecided("no formula for a query off the plan")
    # What is left of each part lies below what was there: the query must fit into one of them.
    if rest.variance < whole.variance:
        found = gdp_residue(whole.variance, rest.variance, loss)
        if found.verdict == "proven":
            return found
    if whole.factors and not loss.variance:
        found = bounded_below(Loss(factors=rest.factors) + loss, Loss(factors=whole.factors))
        if found.verdict == "proven":
            return proven(f"what is left of the plan and the query: {found.reason}")
    return undecided("a query off the plan, not shown to fit into what it takes off")
