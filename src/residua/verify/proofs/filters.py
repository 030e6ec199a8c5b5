"""Every kind of filter: is a first state right, and is a step from one state to the next sound.

A kind has two functions, `first(config, state, tables)` and `step(config, before, after, asked)`.
Whatever is not of the right shape is refuted by the caller; a kind or loss without formulas is
undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from residua.provable import unprovable, unprovable_commit
from residua.verify.arithmetic.balls import written
from residua.verify.descriptions.configurations import misconfigured
from residua.verify.descriptions.fields import Malformed, read
from residua.verify.descriptions.mechanisms import Underivable, loss_of
from residua.verify.descriptions.states import UNREADABLE, State, Unreadable, amounts, belongs
from residua.verify.losses.costs import Infinite, Unknown
from residua.verify.losses.factors import Loss, Response, together
from residua.verify.proofs import (
    auto,
    commits,
    gaussian_budget,
    natural,
    plans,
    potentials,
    target,
    union,
)
from residua.verify.proofs.additive import missing_mass, pure, renyi
from residua.verify.proofs.concentrated import zcdp
from residua.verify.proofs.conversions import advanced_within, zcdp_within
from residua.verify.proofs.order import basic
from residua.verify.proofs.verdict import Proof, all_of, proven, refuted, undecided

Config = Mapping[str, Any]
Tables = Mapping[str, bytes]


@dataclass(frozen=True)
class Asked:
    """The query of a step, and the tables of the states before and after it."""

    mechanism: Any
    relation: str | None
    before: Tables
    after: Tables

    @property
    def loss(self) -> Loss:
        return loss_of(self.mechanism, self.relation)


def prove_first(config: Any, state: Any, tables: Tables) -> Proof:
    """Whether the first state of a budget keeps what its filter promises."""
    return _guarded(config, [state], lambda kind: kind.first(config, state, tables))


def prove_step(config: Any, before: Any, after: Any, asked: Asked) -> Proof:
    """Whether a step from one committed state to the next is sound."""

    def check(kind: Kind) -> Proof:
        why = _unprovable(config, before, after, asked)
        if why is not None:
            return undecided(f"no ledger takes this query: {why}")
        return kind.step(config, before, after, asked)

    return _guarded(config, [before, after], check)


_FIXED_COSTS = ("pure", "basic", "renyi", "renyi_curve", "zcdp", "approximate_zcdp", "gdp")
"""Kinds whose steps are proven from what they take, whatever is left."""


def prove_set_aside(
    config: Any, state: Any, place: Any, takes: tuple[Any, ...], asked: Asked
) -> Proof:
    """Whether these amounts suffice for a query, in a filter or a component, whatever is left."""
    found = _additive_part(config, state, place)
    if isinstance(found, Proof):
        return found
    component, part = found
    before = {"kind": component["kind"], "of": part.get("of"), "left": list(takes)}
    return prove_step(component, before, {**before, "left": ["0"] * len(takes)}, asked)


def prove_room(config: Any, state: Any, place: Any, total: tuple[Fraction, ...]) -> Proof:
    """Whether so much is left in a state, in a filter or a component."""
    found = _additive_part(config, state, place)
    if isinstance(found, Proof):
        return found
    try:
        left = amounts(found[1], len(total))
    except Unreadable as error:
        return refuted(str(error))
    for one, taken in zip(left, total, strict=True):
        if taken > one:
            what = f"{float(taken):.9g} is set aside"
            return refuted(f"{what}, and {float(one):.9g} is left")
    return proven("what is set aside is left")


def _additive_part(config: Any, state: Any, place: Any) -> tuple[Config, State] | Proof:
    """The filter in which amounts are set aside, and its state; why there is none, otherwise."""
    wrong = misconfigured(config) or belongs(config, state)
    if wrong:
        return refuted(wrong)
    component, part = config, state
    if place is not None:
        filters = {"union": config, "auto": state}.get(config["kind"], {}).get("filters", [])
        if type(place) is not int or not 0 <= place < len(filters):
            return refuted(f"component must be a place in a union, got {place!r:.60}")
        component, part = filters[place], state["parts"][place]
    if part is None:
        return refuted(f"component {place} is stopped")
    if component["kind"] not in _FIXED_COSTS:
        return undecided(f"costs under {component['kind']} are not known to add up")
    return component, part


def _unprovable(config: Config, before: State, after: State, asked: Asked) -> str | None:
    """Why a ledger rejects a query, if it does."""
    if config["kind"] == "renyi_commit" and before["to"] is not None:
        return None  # for the filter that was committed to to say
    if config["kind"] == "auto" and after["filters"]:
        config = {"kind": "union", "filters": after["filters"]}
    relation = asked.relation or "add-remove"
    if isinstance(asked.mechanism, Mapping) and asked.mechanism.get("kind") == "commit":
        if config["kind"] in ("union", "auto"):
            return "a union does not take commits"
        to = asked.mechanism.get("to")
        full = [read(each) for each in to] if isinstance(to, list) else to
        return unprovable_commit(full, relation)
    return unprovable(read(asked.mechanism), config, relation)


@dataclass(frozen=True)
class Kind:
    """How to check one kind of filter."""

    first: Callable[[Config, State, Tables], Proof]
    step: Callable[[Config, State, State, Asked], Proof]


def _guarded(config: Any, states: list[Any], check: Callable[[Kind], Proof]) -> Proof:
    name = config.get("kind") if isinstance(config, Mapping) else None
    kind = KINDS.get(name) if isinstance(name, str) else None
    if isinstance(config, Mapping) and (kind is None or "version" in config):
        return undecided(f"no formulas for the filter {name!r}")
    wrong = misconfigured(config)
    for state in states:
        wrong = wrong or belongs(config, state)
    if wrong:
        return refuted(wrong)
    assert kind is not None
    try:
        return check(kind)
    except Unreadable as error:
        return refuted(str(error))
    except (Malformed, Underivable, Unknown) as error:
        return undecided(str(error))
    except Infinite as error:
        return refuted(str(error))
    except UNREADABLE as error:
        return undecided(f"the records cannot be read: {error!r}")


# -- additive filters ---------------------------------------------------------------------------


def _equal(count: int, whole: Callable[[Config], tuple[Fraction, ...]]) -> Any:
    def first(config: Config, state: State, tables: Tables) -> Proof:
        left, most = amounts(state, count), whole(config)
        if any(a > b for a, b in zip(left, most, strict=True)):
            return refuted("the first state holds more than the configuration gives")
        return proven("the first state is what the configuration gives")

    return first


def _spending(
    count: int, check: Callable[[Config, tuple[Fraction, ...], Loss], Proof]
) -> Callable[[Config, State, State, Asked], Proof]:
    def step(config: Config, before: State, after: State, asked: Asked) -> Proof:
        a, b = amounts(before, count), amounts(after, count)
        spent = tuple(x - y for x, y in zip(a, b, strict=True))
        if min(spent) < 0:
            return refuted("an amount rises")
        loss = asked.loss
        if loss.is_identity:
            return proven("no loss")
        return check(config, spent, loss)

    return step


def _renyi_curve(config: Config, spent: tuple[Fraction, ...], loss: Loss) -> Proof:
    orders = [written(alpha) for alpha, _ in config["curve"]]
    return all_of([renyi(a, s, loss) for a, s in zip(orders, spent, strict=True)])


def _curve_first(config: Config, state: State, tables: Tables) -> Proof:
    count = len(config["curve"])
    whole = _equal(count, lambda c: tuple(written(rho) for _, rho in c["curve"]))
    found: Proof = whole(config, state, tables)
    return found


def _curve_step(config: Config, before: State, after: State, asked: Asked) -> Proof:
    return _spending(len(config["curve"]), _renyi_curve)(config, before, after, asked)


def _approximate_zcdp_first(config: Config, state: State, tables: Tables) -> Proof:
    rho, left = amounts(state, 2)
    eps, delta = written(config["eps"]), written(config["delta"])
    aside = written(config["delta_conversion"])
    if not (aside > 0 and aside + left <= delta):
        return refuted("delta is given out twice")
    if config["conversion"] == "whitehouse":
        return advanced_within(rho, eps, aside)
    return zcdp_within(rho, eps, aside)


def _approximate_zcdp(config: Config, spent: tuple[Fraction, ...], loss: Loss) -> Proof:
    from residua.verify.proofs.additive import enough_taken, largest_loss

    parts = [Loss(variance=loss.variance, stated=loss.stated)]
    for factor, n in loss.factors:
        core = factor.core()
        if core is None:
            raise Unknown("mass at infinity does not split off")
        if not (isinstance(core, Response) and core.eps == 0):
            parts.append(Loss(factors=((core, n),)))
    kept = together(parts)
    lost = enough_taken("delta", spent[1], missing_mass(loss))
    unbounded = loss.stated or any(factor.unbounded for factor, _ in kept.factors)
    if config["conversion"] == "whitehouse" and not unbounded:
        cost = largest_loss(kept.rest)
        if cost.rest is None:
            needed = cost.exact**2 / 2 + loss.variance / 2
            enough = spent[0] >= needed
            word = proven("rho falls by eps²/2") if enough else refuted("rho falls by too little")
            return all_of([word, lost])
    return all_of([zcdp(spent[0], kept), lost])


# -- Gaussian budgets ---------------------------------------------------------------------------


def _square(config: Config) -> tuple[Fraction, ...]:
    return (written(config["mu"]) ** 2,)


def _gdp_residue(config: Config, before: State, after: State, asked: Asked) -> Proof:
    (a,), (b,) = amounts(before, 1), amounts(after, 1)
    if b > a:
        return refuted("mu² rises")
    loss = asked.loss
    return proven("no loss") if loss.is_identity else gaussian_budget.gdp_residue(a, b, loss)


def _approximate_gdp_residue(config: Config, before: State, after: State, asked: Asked) -> Proof:
    (v, d), (m2, d_after) = amounts(before, 2), amounts(after, 2)
    if m2 > v or d_after > d:
        return refuted("an amount rises")
    loss = asked.loss
    if loss.is_identity:
        return proven("no loss")
    return gaussian_budget.approximate_gdp_residue((v, d), (m2, d_after), loss)


def _menu(config: Config, before: State, after: State, asked: Asked) -> Proof:
    tables = asked.before, asked.after
    return potentials.step(config, before, after, asked.mechanism, asked.relation, tables)


def _plan(config: Config, before: State, after: State, asked: Asked) -> Proof:
    return plans.step(config, before, after, asked.mechanism, asked.relation)


def _natural(config: Config, before: State, after: State, asked: Asked) -> Proof:
    return natural.natural_step(config, before, after, asked.mechanism, asked.relation)


def _profile(config: Config, before: State, after: State, asked: Asked) -> Proof:
    tables = asked.before, asked.after
    return natural.profile_step(config, before, after, asked.loss, tables)


def _renyi_commit(config: Config, before: State, after: State, asked: Asked) -> Proof:
    def inner_step(to: Any, one: Any, two: Any) -> Proof:
        return prove_step(to, one, two, asked)

    def inner_first(to: Any, _: Any, state: Any) -> Proof:
        return prove_first(to, state, asked.after)

    return commits.step(
        config, before, after, asked.mechanism, asked.relation, inner_step, inner_first
    )


def _union_first(config: Config, state: State, tables: Tables) -> Proof:
    return union.first(config, state, tables, prove_first)


def _step_of(asked: Asked) -> union.StepProof:
    """Steps of components that were asked for the same."""

    def step(place: int, component: Any, one: Any, two: Any) -> Proof:
        tables = (union.tables_at(place, each) for each in (asked.before, asked.after))
        return prove_step(component, one, two, Asked(asked.mechanism, asked.relation, *tables))

    return step


def _union(config: Config, before: State, after: State, asked: Asked) -> Proof:
    return union.step(config, before, after, _step_of(asked))


def _auto(config: Config, before: State, after: State, asked: Asked) -> Proof:
    def begins(component: Any, state: Any) -> Proof:
        return prove_first(component, state, {})

    no_loss = asked.loss.is_identity
    return auto.step(config, before, after, no_loss, begins, _step_of(asked))


KINDS: dict[str, Kind] = {
    "pure": Kind(
        _equal(1, lambda c: (written(c["eps"]),)), _spending(1, lambda c, s, loss: pure(s, loss))
    ),
    "basic": Kind(
        _equal(2, lambda c: (written(c["eps"]), written(c["delta"]))),
        _spending(2, lambda c, s, loss: basic(s, loss)),
    ),
    "renyi": Kind(
        _equal(1, lambda c: (written(c["rho"]),)),
        _spending(1, lambda c, s, loss: renyi(written(c["alpha"]), s[0], loss)),
    ),
    "renyi_curve": Kind(_curve_first, _curve_step),
    "zcdp": Kind(
        _equal(1, lambda c: (written(c["rho"]),)), _spending(1, lambda c, s, loss: zcdp(s[0], loss))
    ),
    "approximate_zcdp": Kind(_approximate_zcdp_first, _spending(2, _approximate_zcdp)),
    "gdp": Kind(
        _equal(1, _square), _spending(1, lambda c, s, loss: gaussian_budget.gdp(s[0], loss))
    ),
    "gdp_residue": Kind(_equal(1, _square), _gdp_residue),
    "approximate_gdp_residue": Kind(
        _equal(2, lambda c: (written(c["mu"]) ** 2, written(c["delta"]))), _approximate_gdp_residue
    ),
    "target_residue": Kind(target.first, lambda c, a, b, q: target.step(c, a, b, q.loss)),
    "menu": Kind(potentials.first, _menu),
    "plan": Kind(plans.first, _plan),
    "renyi_commit": Kind(commits.first, _renyi_commit),
    "union": Kind(_union_first, _union),
    "auto": Kind(auto.first, _auto),
    "natural": Kind(natural.natural_first, _natural),
    "additive_profile": Kind(natural.profile_first, _profile),
}
