"""The natural filter and the additive profile filter.

Natural: what was spent, composed, must stay below the budget, round by round. What that is worth
against adaptive analysts is the budget itself where losses simply add up (`R_eps`) or the family is
closed and totally ordered (Gaussians, `R_{0,delta}`, multiples of one query); for any queries and
so many rounds it is the `(eps', delta')` that the ledger names with the plan that shows it
(`adaptive.py`). The exact worst case of a catalogue is not re-proven here.

Profile: a symmetric query takes, for each size `e_i`, the probability of a loss of that size or
more, and one round.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb

from residua.verify.arithmetic.balls import Ball, ball, exact, normal
from residua.verify.descriptions.mechanisms import loss_of
from residua.verify.descriptions.states import State, Unreadable, amounts
from residua.verify.losses.costs import Unknown
from residua.verify.losses.factors import Loss, Response, together
from residua.verify.losses.laws import Central
from residua.verify.proofs.adaptive import keeps, largest_total
from residua.verify.proofs.additive import Cost, enough_taken, largest_loss, missing_mass
from residua.verify.proofs.gaussian_budget import law_of
from residua.verify.proofs.order import below, within
from residua.verify.proofs.verdict import Proof, all_of, proven, refuted, undecided

FAMILIES = ("gaussian", "pure_delta")
_FINITE = 600.0


def natural_first(config: Mapping[str, Any], state: State, tables: Mapping[str, bytes]) -> Proof:
    if not loss_of(state["loss"], None).is_identity or state["rounds"] != 0:
        return refuted("something is spent before anything was asked")
    budget = loss_of(config["budget"], None)
    if pure_budget(budget) is not None:
        return proven("losses of a history add up: the budget is the guarantee")
    catalogue = config.get("catalogue")
    if isinstance(catalogue, str):
        if catalogue not in FAMILIES:
            return undecided(f"no formula for the family {catalogue}")
        return proven(f"the family {catalogue} is closed and totally ordered")
    if catalogue is not None:
        why = _free([loss_of(each, None) for each in catalogue])
        if why is not None:
            return proven(f"{why}: the budget is the guarantee")
    point = point_budget(budget)
    if point is not None and config.get("rounds") is not None and "guarantee" in tables:
        return _computed(point, config["rounds"], _plan(tables, "guarantee"))
    return undecided("what this natural filter guarantees adaptive analysts is not re-proven")


def _free(members: list[Loss]) -> str | None:
    """Why compositions of these are totally ordered, if they are."""
    if any(member.stated for member in members):
        return None
    if all(not member.factors for member in members):
        return "Gaussians are totally ordered"
    if all(_outside(member, "pure_delta") is None for member in members):
        return "losses of everything or nothing are totally ordered"
    if len({_primitive(member) for member in members}) == 1:
        return "multiples of one query are totally ordered"
    return None


def _primitive(loss: Loss) -> tuple[Any, ...]:
    """The primitive loss that a loss is a multiple of."""
    share = math.gcd(*(n for _, n in loss.factors)) or 1
    return frozenset((f, n // share) for f, n in loss.factors), loss.variance / share


def _computed(point: Response, rounds: int, plan: dict[str, Any]) -> Proof:
    """The guarantee of so many rounds of symmetric queries, all prefixes within the budget."""
    eps, delta = plan["eps"], plan["delta"]
    if delta > min(float(f"{10.0 * float(point.delta):.15g}"), 1.0):
        return undecided("the guarantee is for a larger delta than the budget's")
    if eps > _FINITE:
        return proven("against adaptive analysts nothing finite is promised")
    whole = Loss(factors=((point, rounds),))
    if within(whole, exact(eps), exact(delta)).verdict == "proven":
        return proven(f"the budget composed with itself lies within ({eps!r}, {delta!r})")
    if not plan["points"]:
        return undecided("the guarantee is not that of the budget composed with itself")
    totals = [largest_total(e, point.eps, point.delta, rounds) for e in plan["points"]]
    return keeps(plan["points"], plan["draws"], totals, rounds, eps, delta)


def natural_step(
    config: Mapping[str, Any], before: State, after: State, mechanism: Any, relation: str | None
) -> Proof:
    loss = loss_of(mechanism, relation)
    spent, now = loss_of(before["loss"], None), loss_of(after["loss"], None)
    if loss.is_identity:
        if spent != now or after["rounds"] < before["rounds"]:
            return refuted("the state moves for nothing")
        return proven("no loss")
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
    charge = _between(_parted(spent), _parted(now))
    if charge is None or not below(_parted(loss), charge):
        return undecided("what was spent is not what was spent before and the query")
    if catalogue is not None and not isinstance(catalogue, str):
        members = [_parted(loss_of(each, None)) for each in catalogue]
        if not any(_same(charge, member) for member in members):
            return undecided("what was charged is not of the catalogue")
    return _stays_below(now, loss_of(config["budget"], None))


def _parted(loss: Loss) -> Loss:
    """The same with every `R_{eps,delta}` as `R_eps ⊕ R_{0,delta}`, which it is."""
    zero, parts = Fraction(0), [Loss(loss.variance, stated=loss.stated)]
    for factor, n in loss.factors:
        if isinstance(factor, Response) and factor.eps and factor.delta:
            lost = Response(zero, factor.delta, zero, factor.written_delta)
            parts.append(Loss(factors=((factor.core(), n), (lost, n))))
        else:
            parts.append(Loss(factors=((factor, n),)))
    return together(parts)


def _same(one: Loss, two: Loss) -> bool:
    """Whether two compositions have the same parts, in whatever order."""
    return one.variance == two.variance and (
        (dict(one.factors), dict(one.stated)) == (dict(two.factors), dict(two.stated))
    )


def _between(before: Loss, after: Loss) -> Loss | None:
    """The factors that a composition gained; None where it lost some."""
    had, has = dict(before.factors), dict(after.factors)
    grown = {factor: n - had.pop(factor, 0) for factor, n in has.items()}
    more = after.variance - before.variance
    if before.stated or after.stated or had or more < 0 or min(grown.values(), default=0) < 0:
        return None
    return Loss(more, tuple((factor, n) for factor, n in grown.items() if n))


def _outside(loss: Loss, family: str) -> str | None:
    if family == "gaussian":
        return "not of the family gaussian" if loss.factors or loss.stated else None
    only = all(isinstance(f, Response) and f.eps == 0 for f, _ in loss.factors)
    return None if only and not loss.variance and not loss.stated else f"not of the family {family}"


def pure_budget(budget: Loss) -> Fraction | None:
    """`eps` where the budget is `R_eps`."""
    point = point_budget(budget)
    return point.written_eps if point is not None and point.delta == 0 else None


def point_budget(budget: Loss) -> Response | None:
    """The factor where the budget is `R_{eps,delta}`."""
    if budget.variance or budget.stated or len(budget.factors) != 1 or budget.factors[0][1] != 1:
        return None
    factor = budget.factors[0][0]
    return factor if isinstance(factor, Response) else None


def _stays_below(spent: Loss, budget: Loss) -> Proof:
    if below(spent, budget):
        return proven("what was spent lies below the budget")
    eps = pure_budget(budget)
    if eps is not None:
        if missing_mass(spent).exact or spent.variance:
            return refuted("what was spent is unbounded")
        return enough_taken("what was spent", eps, largest_loss(spent))
    if not budget.factors and not budget.stated and not spent.factors and not spent.stated:
        return refuted("what was spent exceeds the budget")
    point = point_budget(budget)
    if point is not None:
        return within(spent, point.eps, point.delta)
    return undecided("what was spent is not shown to lie below the budget")


# -- profiles -----------------------------------------------------------------------------------


def _plan(tables: Mapping[str, bytes], name: str) -> dict[str, Any]:
    content = tables.get(name)
    if content is None:
        raise Unknown("the sizes of the profile are not here")
    try:
        plan = json.loads(content)
        sizes, draws = plan["points"], plan["draws"]
        good = all(a < b for a, b in pairwise((0.0, *sizes)))
        good = good and len(draws) == max(0, len(sizes) - 1)
        if not good or plan["v"] != 1 or not all(type(n) is int and n >= 0 for n in draws):
            raise ValueError("sizes must increase, draws must be counts")
        if not all(type(plan[name]) is float for name in ("eps", "delta")):
            raise ValueError("eps and delta must be numbers")
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"the table of a profile cannot be read: {error}") from None
    assert isinstance(plan, dict)
    return plan


def profile_first(config: Mapping[str, Any], state: State, tables: Mapping[str, bytes]) -> Proof:
    plan = _plan(tables, "plan")
    sizes, draws = plan["points"], plan["draws"]
    rounds, *totals = amounts(state, len(sizes) + 1)
    if rounds != config["rounds"]:
        return refuted("rounds are not what the configuration gives")
    if plan["delta"] != config["target_delta"]:
        return refuted("the plan of the profile does not fit the configuration")
    if "target_eps" not in config:
        return undecided("the configuration does not say which eps is promised")
    if plan["eps"] != config["target_eps"]:
        return refuted("the plan of the profile is not for the eps that is promised")
    if plan["eps"] > _FINITE:
        return proven("no finite eps is promised")
    return keeps(sizes, draws, totals, int(rounds), plan["eps"], plan["delta"])


def profile_step(
    config: Mapping[str, Any],
    before: State,
    after: State,
    loss: Loss,
    tables: tuple[Mapping[str, bytes], Mapping[str, bytes]],
) -> Proof:
    sizes = _plan(tables[0], "plan")["points"]
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
    if all(abs(z) >= e for z in law.z) or _exactly_there(loss, size):
        return arb(1)
    total = law.p_inf
    for p, z in zip(law.p, law.z, strict=True):
        if abs(z) >= e:
            total += p
        elif not abs(z) < e:
            total += arb(0).union(p)
    return total


def _exactly_there(loss: Loss, size: Fraction) -> bool:
    """Whether losses that cannot be separated from `size` are that size."""
    only = [f for f, n in loss.factors if isinstance(f, Response) and n == 1]
    return len(only) == len(loss.factors) == 1 and only[0].eps == size
