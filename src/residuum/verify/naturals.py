"""The natural filter and the additive profile filter.

Natural: what was spent, composed, must stay below the budget, round by round. What that is worth
against adaptive analysts is the budget itself where losses simply add up (`R_eps`) or the family is
closed and totally ordered (Gaussians, `R_{0,delta}`); other guarantees are not re-proven here.

Profile: a symmetric query takes, for each size `e_i`, the probability of a loss of that size or
more, and one round. Then the interaction lies below `c_{i-1} - c_i` randomized responses of each
size, unless there are more than `c_i` draws from `e_i` upwards. With totals `s` the probability
of `n` draws or more is at most `(1+w)^{-(n-1)} e^{sw} / (ew)` for any `w > 0` (Markov's inequality
for one draw, and `e^{-pw}(1+pw) <= 1` for the others).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb

from residuum.verify.additive import Cost, Unknown, enough_taken, largest_loss, missing_mass
from residuum.verify.balls import Ball, ball, bits, exact, normal, upper, written
from residuum.verify.descriptions import loss_of
from residuum.verify.factors import Loss, Response
from residuum.verify.gaussian_budget import law_of
from residuum.verify.laws import Central
from residuum.verify.order import below, within
from residuum.verify.states import State, Unreadable, amounts
from residuum.verify.verdict import Proof, all_of, proven, refuted, undecided

_BITS = 160


def natural_first(config: Mapping[str, Any], state: State, tables: Mapping[str, bytes]) -> Proof:
    if not loss_of(state["loss"], None).is_identity or state["rounds"] != 0:
        return refuted("something is spent before anything was asked")
    budget = loss_of(config["budget"], None)
    if _eps_of(budget) is not None:
        return proven("losses of a history add up: the budget is the guarantee")
    if isinstance(config.get("catalogue"), str):
        return proven(f"the family {config['catalogue']} is closed and totally ordered")
    return undecided("what this natural filter guarantees adaptive analysts is not re-proven")


def natural_step(
    config: Mapping[str, Any], before: State, after: State, mechanism: Any, relation: str | None
) -> Proof:
    loss = loss_of(mechanism, relation)
    spent, now = loss_of(before["loss"], None), loss_of(after["loss"], None)
    if loss.is_identity:
        return proven("no loss") if spent == now else refuted("the state moves for nothing")
    if after["rounds"] != before["rounds"] + 1:
        return refuted("a round is not counted")
    rounds = config.get("rounds")
    if rounds is not None and after["rounds"] > rounds:
        return refuted("more rounds than there are")
    if not loss.symmetric:
        return undecided("no formula for the supremum of both directions")
    catalogue = config.get("catalogue")
    if isinstance(catalogue, str):
        wrong = _outside(loss, catalogue)
        if wrong:
            return refuted(wrong)
        charges = [loss]
    elif catalogue is None:
        charges = [loss]
    else:
        members = [loss_of(each, None) for each in catalogue]
        charges = [member for member in members if below(loss, member)]
    if now not in [spent + charge for charge in charges]:
        return undecided("what was spent is not what was spent before and the query")
    return _stays_below(now, loss_of(config["budget"], None))


def _outside(loss: Loss, family: str) -> str | None:
    if family == "gaussian":
        return "not of the family gaussian" if loss.factors or loss.stated else None
    only = all(isinstance(f, Response) and f.eps == 0 for f, _ in loss.factors)
    return None if only and not loss.variance and not loss.stated else f"not of the family {family}"


def _eps_of(budget: Loss) -> Fraction | None:
    """`eps` where the budget is `R_eps`."""
    if budget.variance or budget.stated or len(budget.factors) != 1:
        return None
    (factor, n) = budget.factors[0]
    if isinstance(factor, Response) and factor.delta == 0 and n == 1:
        return factor.written_eps
    return None


def _stays_below(spent: Loss, budget: Loss) -> Proof:
    if below(spent, budget):
        return proven("what was spent lies below the budget")
    eps = _eps_of(budget)
    if eps is not None:
        if missing_mass(spent).exact or spent.variance:
            return refuted("what was spent is unbounded")
        return enough_taken("what was spent", eps, largest_loss(spent))
    if not budget.factors and not budget.stated and not spent.factors and not spent.stated:
        return refuted("what was spent exceeds the budget")
    if not budget.variance and len(budget.factors) == 1 and budget.factors[0][1] == 1:
        factor = budget.factors[0][0]
        if isinstance(factor, Response):
            return within(spent, factor.eps, factor.delta)
    return undecided("what was spent is not shown to lie below the budget")


# -- profiles -----------------------------------------------------------------------------------


def _plan(tables: Mapping[str, bytes]) -> dict[str, Any]:
    content = tables.get("plan")
    if content is None:
        raise Unknown("the sizes of the profile are not here")
    try:
        plan = json.loads(content)
        sizes, draws = plan["points"], plan["draws"]
        good = all(a < b for a, b in pairwise((0.0, *sizes))) and len(draws) == len(sizes) - 1
        if not good or plan["v"] != 1 or not all(type(n) is int and n >= 0 for n in draws):
            raise ValueError("sizes must increase, draws must be counts")
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"the table of a profile cannot be read: {error}") from None
    assert isinstance(plan, dict)
    return plan


def profile_first(config: Mapping[str, Any], state: State, tables: Mapping[str, bytes]) -> Proof:
    plan = _plan(tables)
    sizes, draws = plan["points"], plan["draws"]
    rounds, *totals = amounts(state, len(sizes) + 1)
    if rounds != config["rounds"]:
        return refuted("rounds are not what the configuration gives")
    allowed = (int(rounds), *(min(n, int(rounds)) for n in draws), 0)
    copies = [a - b for a, b in pairwise(allowed)]
    if min(copies) < 0 or plan["delta"] != config["target_delta"]:
        return refuted("the plan of the profile does not fit the configuration")
    if "target_eps" not in config:
        return undecided("the configuration does not say which eps is promised")
    if plan["eps"] != config["target_eps"]:
        return refuted("the plan of the profile is not for the eps that is promised")
    if plan["eps"] > 600.0:
        return proven("no finite eps is promised")
    failure = totals[-1]
    with bits(_BITS):
        for total, most in zip(totals, draws, strict=False):
            if most < rounds:
                failure += _overflow(total, most)
    left = exact(plan["delta"]) - failure
    if left <= 0:
        return undecided("more draws than allowed for are likely")
    whole = Loss()
    for n, size in zip(copies, sizes, strict=True):
        if n:
            one = Response(exact(size), Fraction(0), written(size), Fraction(0))
            whole += Loss(factors=((one, n),))
    found = within(whole, exact(plan["eps"]), left)
    if found.verdict != "proven":
        return undecided(found.reason)
    return proven(f"all rounds lie within ({plan['eps']!r}, {plan['delta']!r})")


def _overflow(total: Fraction, draws: int) -> Fraction:
    n = draws + 1
    if total >= n:
        return Fraction(1)
    if n == 1 or total == 0:
        return total
    s = float(total)
    gap = n - s
    w = arb((gap + math.sqrt(gap * gap + 4.0 * s)) / (2.0 * s))
    bound = (ball(total) * w - (n - 1) * (1 + w).log() - 1 - w.log()).exp()
    return min(Fraction(1), total, upper(bound))


def profile_step(
    config: Mapping[str, Any],
    before: State,
    after: State,
    loss: Loss,
    tables: tuple[Mapping[str, bytes], Mapping[str, bytes]],
) -> Proof:
    sizes = _plan(tables[0])["points"]
    if tables[0]["plan"] != tables[1].get("plan"):
        return refuted("the plan of the profile is not the one the first state was proven with")
    had, has = amounts(before, len(sizes) + 1), amounts(after, len(sizes) + 1)
    spent = [a - b for a, b in zip(had, has, strict=True)]
    if min(spent) < 0:
        return refuted("an amount rises")
    if loss.is_identity:
        return proven("no loss")
    if not loss.symmetric or loss.stated:
        return undecided("only symmetric losses are covered")
    if spent[0] < 1:
        return refuted("a round is not counted")
    proofs = []
    for size, taken in zip(sizes, spent[1:], strict=True):
        at = exact(size)

        def rest(at: Fraction = at) -> Ball:
            return _tail(loss, at)

        proofs.append(
            enough_taken(f"the probability from {size:g}", taken, Cost(Fraction(0), rest))
        )
    return all_of(proofs)


def _tail(loss: Loss, size: Fraction) -> Ball:
    """`Pr[|Z| >= size]`."""
    e = ball(size)
    if not loss.factors:
        v = ball(loss.variance)
        root = v.sqrt()
        return normal((v / 2 - e) / root) + normal((-e - v / 2) / root)
    make = None if loss.variance else law_of(loss)
    if make is None:
        raise Unknown("no formula for the sizes of a composition")
    law = make()
    if isinstance(law, Central):
        if e > law.e:
            return arb(0)
        rise = (law.e / 2).sinh() - (e / 2).sinh()
        inside = law.w + 4 * law.height * rise
        return inside if e <= law.e else arb(0).union(inside)
    total = law.p_inf
    for p, z in zip(law.p, law.z, strict=True):
        if abs(z) >= e:
            total += p
        elif not abs(z) < e:
            total += arb(0).union(p) if not _exactly_there(loss, size) else p
    return total


def _exactly_there(loss: Loss, size: Fraction) -> bool:
    """Whether losses that cannot be told from `size` are that size."""
    only = [f for f, n in loss.factors if isinstance(f, Response) and n == 1]
    return len(only) == len(loss.factors) == 1 and only[0].eps == size
