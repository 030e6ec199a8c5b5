"""The natural filter and the additive profile filter.

Natural: what was spent, composed, must stay below the budget, round by round. What that is worth
against adaptive analysts is the budget itself where losses simply add up (`R_eps`) or the family is
closed and totally ordered (Gaussians, `R_{0,delta}`, multiples of one query); for any queries and
so many rounds it is the `(eps', delta')` that the ledger names with the plan that shows it. The
exact worst case of a catalogue is not re-proven here.

Profile: a symmetric query takes, for each size `e_i`, the probability of a loss of that size or
more, and one round.

**The worst case over adaptive analysts.** Queries are symmetric and at most `k`. Sizes are cut at
`e_1 < e_2 < …`; `s_i` bounds the sum over queries of the probability of a loss of size `e_i` or
more. Then the interaction lies below
`c_{i-1} - c_i` randomized responses of each size `e_i`, unless there are more than `c_i` draws from
`e_i` upwards (`c_0 = k`, none from the last one upwards). With a total `s` the probability of `n`
draws or more is at most `(1+w)^{-(n-1)} e^{sw} / (ew)` for any `w > 0` (Markov's inequality for one
draw, and `e^{-pw}(1+pw) <= 1` for the others).

**Totals of the natural filter.** What composes to `(eps, delta)`-DP does so when losses of size `e`
or more become `RR_e` and all others nothing. With `H(m)` the height of `m` of these at `e^eps`,
which does not fall, and their number a sum of independent indicators of mean `s`, `E H <= delta`.
So `H(1) (1 - e^-s) <= delta`; and any rising line below `H` on `0..k` is at most `delta` at `s`.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb

from residua.provable.forms import LARGEST_SIZE
from residua.verify.arithmetic import BITS, Ball, ball, bits, exact, near, normal, upper, work
from residua.verify.descriptions.configurations import Config, State, Tables, Unreadable, amounts
from residua.verify.descriptions.mechanisms import StepQuery, loss_of
from residua.verify.losses.factors import (
    Loss,
    Point,
    Response,
    Revealed,
    Revealing,
    Unknown,
    together,
    without_common,
)
from residua.verify.losses.hockey_stick import larger_height, law_of
from residua.verify.losses.laws import Central
from residua.verify.proofs.additive import Cost, enough_taken, largest_loss, missing_mass
from residua.verify.proofs.order import below, within
from residua.verify.proofs.verdict import Proof, all_of, proven, refuted, undecided


def natural_first(config: Config, state: State, tables: Tables) -> Proof:
    """Whether nothing is spent, and the budget is known to hold against adaptive analysts."""
    if not loss_of(state["loss"], None).is_identity or state["rounds"] != 0:
        return refuted("something is spent before anything was asked")
    budget = loss_of(config["budget"], None)
    if pure_budget(budget) is not None:
        return proven("losses of a history add up: the budget is the guarantee")
    catalogue = config.get("catalogue")
    if isinstance(catalogue, str):
        return proven(f"the family {catalogue} is closed and totally ordered")
    if catalogue is not None and _are_ordered([loss_of(each, None) for each in catalogue]):
        return proven("the catalogue is totally ordered: the budget is the guarantee")
    if budget.point is not None and config.get("rounds") is not None and "guarantee" in tables:
        return _computed(budget, budget.point, config["rounds"], _plan(tables, "guarantee"))
    return undecided("what this natural filter guarantees adaptive analysts is not re-proven")


def _are_ordered(members: list[Loss]) -> bool:
    """Whether compositions of these are totally ordered: one kind, or multiples of one query."""
    if any(member.stated for member in members):
        return False
    plain = all(not member.factors for member in members)
    all_or_nothing = all(_outside(member, "pure_delta") is None for member in members)
    return plain or all_or_nothing or len({_primitive(member) for member in members}) == 1


def _primitive(loss: Loss) -> tuple[Any, ...]:
    """The primitive loss that a loss is a multiple of."""
    share = math.gcd(*(n for _, n in loss.factors)) or 1
    return frozenset((f, n // share) for f, n in loss.factors), loss.variance / share


def _computed(budget: Loss, point: Point, rounds: int, plan: dict[str, Any]) -> Proof:
    """The guarantee of so many rounds of symmetric queries, all prefixes within the budget."""
    eps, delta = plan["eps"], plan["delta"]
    if delta > min(float(f"{10.0 * float(point.delta):.15g}"), 1.0):
        return undecided("the guarantee is for a larger delta than the budget's")
    if eps > LARGEST_SIZE:
        return proven("against adaptive analysts nothing finite is promised")
    if within(budget.times(rounds), exact(eps), exact(delta)).verdict == "proven":
        return proven(f"the budget composed with itself lies within ({eps!r}, {delta!r})")
    if not plan["points"]:
        return undecided("the guarantee is not that of the budget composed with itself")
    totals = [largest_total(e, point.eps, point.delta, rounds) for e in plan["points"]]
    return keeps(plan["points"], plan["draws"], totals, rounds, eps, delta)


def natural_step(config: Config, before: State, after: State, query: StepQuery) -> Proof:
    """Whether a query is composed with what was spent, and that stays below the budget."""
    loss = query.loss
    spent, now = loss_of(before["loss"], None), loss_of(after["loss"], None)
    if loss.is_identity:
        if spent != now or after["rounds"] < before["rounds"]:
            return refuted("the state changes without a loss")
        return proven("no loss")
    if after["rounds"] != before["rounds"] + 1:
        return refuted("a round is not counted")
    rounds = config.get("rounds")
    if rounds is not None and after["rounds"] > rounds:
        return refuted("more rounds than allowed")
    if not loss.symmetric:
        return undecided("no formula for the supremum of both directions")
    catalogue = config.get("catalogue")
    if isinstance(catalogue, str):
        wrong = _outside(loss, catalogue)
        if wrong:
            return refuted(wrong)
    lost, charge = without_common(spent, now)
    if not lost.is_identity or charge.stated or not below(loss, charge):
        return undecided("what is spent is not what was spent before plus the query")
    members = [loss_of(each, None) for each in catalogue] if isinstance(catalogue, list) else []
    if members and (Loss(), Loss()) not in [without_common(charge, each) for each in members]:
        return undecided("what was charged is not of the catalogue")
    return _stays_below(now, loss_of(config["budget"], None))


def _outside(loss: Loss, family: str) -> str | None:
    if family == "gaussian":
        return "not in the family gaussian" if loss.factors or loss.stated else None
    only = all(isinstance(f, Revealed) for f, _ in loss.factors)
    return None if only and not loss.variance and not loss.stated else f"not in the family {family}"


def pure_budget(budget: Loss) -> Fraction | None:
    """`eps` where the budget is `R_eps`."""
    point = budget.point
    return point.written_eps if point is not None and point.delta == 0 else None


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
    if budget.point is not None:
        return within(spent, budget.point.eps, budget.point.delta)
    return undecided("what was spent is not shown to lie below the budget")


# -- profiles -----------------------------------------------------------------------------------


def _plan(tables: Tables, name: str) -> dict[str, Any]:
    content = tables.get(name)
    if content is None:
        raise Unknown("the sizes of the profile are not here")
    try:
        plan = json.loads(content)
        sizes, draws = plan["points"], plan["draws"]
        # So many operations for each size, beside what a proof declares itself.
        work(100 * len(sizes))
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


def profile_first(config: Config, state: State, tables: Tables) -> Proof:
    """Whether the plan is the one that is promised, and its totals keep `(eps, delta)`."""
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
    if plan["eps"] > LARGEST_SIZE:
        return proven("no finite eps is promised")
    return keeps(sizes, draws, totals, int(rounds), plan["eps"], plan["delta"])


def profile_step(_config: Config, before: State, after: State, query: StepQuery) -> Proof:
    """Whether each total falls by the probability of a loss of its size, and a round is counted."""
    loss, sizes = query.loss, _plan(query.before, "plan")["points"]
    if query.before["plan"] != query.after.get("plan"):
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
        raise Unknown("no formula for the loss sizes of a composition")
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
    seen = [(f, n) for f, n in loss.factors if not isinstance(f, Revealing)]
    ((factor, n),) = seen if len(seen) == 1 else [(None, 0)]
    return n == 1 and isinstance(factor, Response) and factor.eps == size


# -- adaptive --------------------------------------------------------------------------------


def of_size(size: float | Fraction, copies: int) -> Loss:
    """Several equal randomized responses."""
    return Loss(factors=((Response(exact(size)), copies),)) if copies else Loss()


def keeps(
    sizes: list[float],
    draws: list[int],
    totals: list[Fraction],
    rounds: int,
    eps: float,
    delta: float,
) -> Proof:
    """Whether symmetric queries with these totals stay within `(eps, delta)`, however chosen."""
    allowed = (rounds, *(min(n, rounds) for n in draws), 0)
    copies = [a - b for a, b in pairwise(allowed)]
    if min(copies) < 0:
        return undecided("more draws of a larger size are allowed than of a smaller one")
    failure = totals[-1]
    with bits(BITS):
        for total, most in zip(totals, draws, strict=False):
            if most < rounds:
                failure += overflow(total, most)
    left = exact(delta) - failure
    if left <= 0:
        return undecided("more draws than allowed for are likely")
    whole = together(of_size(size, n) for n, size in zip(copies, sizes, strict=True))
    found = within(whole, exact(eps), left)
    if found.verdict != "proven":
        return undecided(found.reason)
    return proven(f"all rounds lie within ({eps!r}, {delta!r}) against adaptive analysts")


def overflow(total: Fraction, draws: int) -> Fraction:
    """The probability of more draws than so many, from above."""
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


def largest_total(size: float, eps: Fraction, delta: Fraction, rounds: int) -> Fraction:
    """The most that probabilities of losses of a size or more sum to, if all is `(eps, delta)`."""
    with bits(BITS):
        known = _heights(size, eps, delta, rounds)
        limit = ball(delta)
        found = Fraction(rounds)
        if len(known) > 1 and known[1] > limit:
            found = min(found, upper(-(1 - limit / known[1]).log()))
        line = _under(known, near(limit), rounds)
        if line is not None:
            start, slope = line
            found = min(found, upper((limit - start) / slope))
        return max(found, Fraction(0))


def _heights(size: float, eps: Fraction, delta: Fraction, rounds: int) -> list[Ball]:
    """`H(0), H(1), …` until it is high: it does not fall afterwards."""
    few = min(int(eps / exact(size)), rounds)
    known = [arb(0)] * (few + 1)
    limit, enough = float(delta), 0.5
    while len(known) <= rounds and near(known[-1]) <= enough:
        height = larger_height(of_size(size, len(known)), ball(eps))
        assert height is not None
        if near(known[-1]) <= limit < near(height):
            enough = min(enough, limit + rounds * near(height))
        known.append(height)
    return known


def _under(known: list[Ball], limit: float, rounds: int) -> tuple[Ball, Ball] | None:
    """A line `start + slope m` that lies below all heights, and meets them near `limit`."""
    points = [(m, near(h)) for m, h in enumerate(known)]
    if len(known) <= rounds:
        points.append((rounds, near(known[-1])))
    at = 0
    while points[at][1] <= limit:
        ahead = [((h - points[at][1]) / (m - points[at][0]), j)
                 for j, (m, h) in enumerate(points[at + 1:], at + 1)]  # fmt: skip
        if not ahead:
            return None
        steep, following = min(ahead)
        if points[following][1] > limit:
            break
        at = following
    if not steep > 0.0:
        return None
    slope = arb(steep)
    # What is taken for the start must do at every number of draws.
    start = known[0]
    for m, height in [*enumerate(known), (rounds, known[-1])]:
        start = start.min(height - slope * m)
    return start, slope
