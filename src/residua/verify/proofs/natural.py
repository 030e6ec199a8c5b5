"""The natural filter and the additive profile filter.

Natural: what was spent, composed, must stay below the budget, round by round. What that is worth
against adaptive analysts is the budget itself where losses simply add up (`R_eps`) or the family is
closed and totally ordered (Gaussians, `R_{0,delta}`, multiples of one query); for any queries it is
the `(eps', delta')` that the ledger names, shown by the budget composed with itself or by the
moments of histories. The exact worst case of a catalogue is not re-proven here.

Profile: a symmetric query takes, for each size `e_i`, the probability of a loss of that size or
more, and one round.

**Moments.** The budget keeps `(t, d)`, and so does every history. With `c = 1 - e^{t-jump}` the
probabilities `p` of losses above `jump` are at most `d/c` each, and their sum `s` keeps
`s c - s²/2 <= d`, for at the event that one occurs P has at least `1 - e^-s` and Q at most
`e^-jump s`. Without these, `M = E e^{order Z}` is at most `e^{order level} + r M` by the first time
that the loss exceeds `level`, where `r = d max(e^{order z} / (1 - e^{t-z}))` at `z = level` and
`level + jump` (the function is log-convex). `e^{order Z}` over the moments of the queries asked is
a martingale, so Markov's inequality gives `d' <= s + M e^{-order e'} max_x (1 - x) x^order`.

**Sizes.** Queries are symmetric and at most `k`. Sizes are cut at `e_1 < e_2 < …`; `s_i` bounds the
sum over queries of the probability of a loss of size `e_i` or more. Then the interaction lies below
`c_{i-1} - c_i` randomized responses of each size `e_i`, unless there are more than `c_i` draws from
`e_i` upwards (`c_0 = k`, none from the last one upwards). With a total `s` the probability of `n`
draws or more is at most `(1+w)^{-(n-1)} e^{sw} / (ew)` for any `w > 0` (Markov's inequality for one
draw, and `e^{-pw}(1+pw) <= 1` for the others).
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb

from residua.provable.forms import LARGEST_SIZE
from residua.verify.arithmetic import BITS, Ball, ball, bits, exact, normal, upper, work
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
from residua.verify.losses.hockey_stick import law_of
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
    if budget.point is not None and "guarantee" in tables:
        return _computed(budget, budget.point, config.get("rounds"), _guarantee(tables))
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


def _computed(budget: Loss, point: Point, rounds: int | None, table: dict[str, float]) -> Proof:
    """The guarantee for any queries, all prefixes within the budget."""
    eps, delta = table["eps"], table["delta"]
    if delta > min(float(f"{10.0 * float(point.delta):.15g}"), 1.0):
        return undecided("the guarantee is for a larger delta than the budget's")
    if eps > LARGEST_SIZE:
        return proven("against adaptive analysts nothing finite is promised")
    if "order" in table:
        jump, level, order = (exact(table[name]) for name in ("jump", "level", "order"))
        return _by_moments(point, jump, level, order, exact(eps), exact(delta))
    if rounds is None:
        return undecided("the guarantee does not say how it is shown for any number of rounds")
    if within(budget.times(rounds), exact(eps), exact(delta)).verdict == "proven":
        return proven(f"the budget composed with itself lies within ({eps!r}, {delta!r})")
    return undecided("the guarantee is not that of the budget composed with itself")


def _guarantee(tables: Tables) -> dict[str, float]:
    """The guarantee that the ledger names, and where its proof by moments cuts."""
    try:
        table = json.loads(tables["guarantee"])
        names = {"eps", "delta", "v"}
        if table.keys() not in (names, names | {"jump", "level", "order"}) or table.pop("v") != 2:
            raise ValueError("its fields are not those of a guarantee")
        if not all(type(value) is float and 0.0 <= value < math.inf for value in table.values()):
            raise ValueError("its fields must be positive numbers")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"the table of a guarantee cannot be read: {error}") from None
    assert isinstance(table, dict)
    return table


def _by_moments(
    point: Point, jump: Fraction, level: Fraction, order: Fraction, eps: Fraction, delta: Fraction
) -> Proof:
    """Whether moments of histories show `(eps, delta)`."""
    t, d = point.eps, point.delta
    if not (t < min(jump, level) and order > 0):
        return undecided("the guarantee does not cut losses beyond the budget's eps")
    with bits(BITS):
        rarity = 1 - ball(t - jump).exp()
        under_root = rarity**2 - 2 * ball(d)
        if not under_root > 0 or not ball(d) / rarity < 2 * under_root.sqrt():
            return undecided("losses above the guarantee's jump are not rare")
        rare = 2 * ball(d) / (rarity + under_root.sqrt())
        k = ball(order)
        risks = [
            ball(d) * (k * ball(z)).exp() / (1 - ball(t - z).exp()) for z in (level, level + jump)
        ]
        if not all(risk < 1 for risk in risks):
            return undecided("the moment of the guarantee is not bounded")
        moment = (k * ball(level)).exp() / (1 - risks[0].max(risks[1]))
        markov = (k * k.log() - (k + 1) * (k + 1).log() - k * ball(eps)).exp()
        if not rare + moment * markov <= ball(delta):
            return undecided("the moments of histories do not show the guarantee")
    return proven(f"all rounds lie within ({float(eps)!r}, {float(delta)!r}), however chosen")


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
