"""Every kind of filter: is a first state right, and is a step from one state to the next sound.

A kind has two functions, `first(config, state, tables)` and `step(config, before, after, query)`.
Whatever is not of the right shape is refuted by the caller; a kind or loss without formulas is
undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from residua.provable import unprovable, unprovable_commit
from residua.verify.arithmetic import nine_digits, written
from residua.verify.descriptions.configurations import (
    UNREADABLE,
    Config,
    State,
    Tables,
    Unreadable,
    amounts,
    belongs,
    misconfigured,
)
from residua.verify.descriptions.fields import read
from residua.verify.descriptions.mechanisms import StepQuery
from residua.verify.losses.factors import Infinite, Loss, Unknown
from residua.verify.proofs import (
    commits,
    natural,
    plans,
    potentials,
    target,
    union,
)
from residua.verify.proofs.additive import (
    advanced_within,
    enough_taken,
    largest_loss,
    missing_mass,
    pure,
    renyi,
    zcdp_within,
)
from residua.verify.proofs.concentrated import zcdp
from residua.verify.proofs.gaussian_budget import approximate_gdp_residue, gdp_residue
from residua.verify.proofs.order import basic
from residua.verify.proofs.verdict import Proof, all_of, proven, refuted, undecided


def prove_first(config: Any, state: Any, tables: Tables) -> Proof:
    """Whether the first state of a budget keeps what its filter promises."""
    return _guarded(config, [state], lambda kind: kind.first(config, state, tables))


def prove_step(config: Any, before: Any, after: Any, query: StepQuery) -> Proof:
    """Whether a step from one committed state to the next is sound."""

    def check(kind: Kind) -> Proof:
        why = _unprovable(config, before, after, query)
        if why is not None:
            return undecided(f"no ledger takes this query: {why}")
        return kind.step(config, before, after, query)

    return _guarded(config, [before, after], check)


FIXED_COSTS = ("pure", "basic", "renyi", "renyi_curve", "zcdp", "approximate_zcdp", "gdp")
"""Kinds whose steps are proven from what they take, whatever is left: open holds add up."""


def prove_set_aside(
    config: Any, state: Any, place: Any, takes: tuple[Any, ...], query: StepQuery
) -> Proof:
    """Whether these amounts suffice for a query, in a filter or a component, whatever is left."""
    found = _additive_part(config, state, place)
    if isinstance(found, Proof):
        return found
    component, part = found
    before = {"kind": component["kind"], "of": part.get("of"), "left": list(takes)}
    return prove_step(component, before, {**before, "left": ["0"] * len(takes)}, query)


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
            what = f"{nine_digits(taken)} is set aside"
            return refuted(f"{what}, and {nine_digits(one)} is left")
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
    if component["kind"] not in FIXED_COSTS:
        return undecided(f"costs under {component['kind']} are not known to add up")
    return component, part


def _unprovable(config: Config, before: State, after: State, query: StepQuery) -> str | None:
    """Why a ledger rejects a query, if it does."""
    if config["kind"] == "renyi_commit" and before["to"] is not None:
        return None  # for the filter that was committed to to say
    if config["kind"] == "auto" and after["filters"]:
        config = {"kind": "union", "filters": after["filters"]}
    relation = query.relation or "add-remove"
    if isinstance(query.mechanism, Mapping) and query.mechanism.get("kind") == "commit":
        if config["kind"] in ("union", "auto"):
            return "a union does not take commits"
        to = query.mechanism.get("to")
        full = [read(each) for each in to] if isinstance(to, list) else to
        return unprovable_commit(full, relation)
    return unprovable(read(query.mechanism), config, relation)


@dataclass(frozen=True)
class Kind:
    """How to check one kind of filter."""

    first: Callable[[Config, State, Tables], Proof]
    step: Callable[[Config, State, State, StepQuery], Proof]


def _guarded(config: Any, states: list[Any], check: Callable[[Kind], Proof]) -> Proof:
    name = config.get("kind") if isinstance(config, Mapping) else None
    kind = KINDS.get(name) if isinstance(name, str) else None
    if isinstance(config, Mapping) and (kind is None or "version" in config):
        return undecided(f"no formulas for the filter {name!r}")
    try:
        wrong = misconfigured(config)
        for state in states:
            wrong = wrong or belongs(config, state)
        if wrong or kind is None:
            return refuted(wrong or "no filter")
        return check(kind)
    except Unreadable as error:
        return refuted(str(error))
    except Unknown as error:
        return undecided(str(error))
    except Infinite as error:
        return refuted(str(error))
    except UNREADABLE as error:
        return undecided(f"the records cannot be read: {error!r}")


# -- filters that subtract -----------------------------------------------------------------------

Amounts = tuple[Fraction, ...]
Check = Callable[[Config, Amounts, Amounts, Loss], Proof]
"""Whether a loss costs no more than was taken, given also what is left."""


def _subtracting(whole: Callable[[Config], Amounts], check: Check) -> Kind:
    """A filter that begins with some amounts and takes costs off them."""
    return Kind(partial(_at_most, whole), partial(_spending, whole, check))


def _at_most(
    whole: Callable[[Config], Amounts], config: Config, state: State, _tables: Tables
) -> Proof:
    most = whole(config)
    if any(a > b for a, b in zip(amounts(state, len(most)), most, strict=True)):
        return refuted("the first state holds more than the configuration gives")
    return proven("the first state is what the configuration gives")


def _spending(
    whole: Callable[[Config], Amounts],
    check: Check,
    config: Config,
    before: State,
    after: State,
    query: StepQuery,
) -> Proof:
    count = len(whole(config))
    had, has = amounts(before, count), amounts(after, count)
    spent = tuple(old - new for old, new in zip(had, has, strict=True))
    if min(spent) < 0:
        return refuted("an amount rises")
    loss = query.loss
    return proven("no loss") if loss.is_identity else check(config, spent, has, loss)


def _written(*names: str) -> Callable[[Config], Amounts]:
    return lambda config: tuple(written(config[name]) for name in names)


def _square(config: Config) -> Amounts:
    return (written(config["mu"]) ** 2,)


def _renyi(config: Config, spent: Amounts, _has: Amounts, loss: Loss) -> Proof:
    alphas = [alpha for alpha, _ in config["curve"]] if "curve" in config else [config["alpha"]]
    orders = map(written, alphas)
    return all_of([renyi(a, s, loss) for a, s in zip(orders, spent, strict=True)])


def _approximate_zcdp_first(config: Config, state: State, _tables: Tables) -> Proof:
    rho, left = amounts(state, 2)
    eps, delta = written(config["eps"]), written(config["delta"])
    aside = written(config["delta_conversion"])
    if not (aside > 0 and aside + left <= delta):
        return refuted("delta is distributed twice")
    if config["conversion"] == "whitehouse":
        return advanced_within(rho, eps, aside)
    return zcdp_within(rho, eps, aside)


def _approximate_zcdp(config: Config, spent: Amounts, _has: Amounts, loss: Loss) -> Proof:
    kept = loss.core
    if kept is None:
        raise Unknown("mass at infinity does not split off")
    lost = enough_taken("delta", spent[1], missing_mass(loss))
    unbounded = loss.stated or any(factor.unbounded for factor, _ in kept.factors)
    if config["conversion"] == "whitehouse" and not unbounded:
        cost = largest_loss(kept.rest)
        if cost.is_exact:
            needed = cost.exact**2 / 2 + loss.variance / 2
            enough = spent[0] >= needed
            word = proven("rho falls by eps²/2") if enough else refuted("rho falls by too little")
            return all_of([word, lost])
    return all_of([zcdp(spent[0], kept), lost])


def _gdp_residue(_config: Config, spent: Amounts, has: Amounts, loss: Loss) -> Proof:
    """With or without a delta beside `mu²`."""
    left, deltas = (*has, Fraction(0))[:2], (*spent, Fraction(0))[:2]
    before = tuple(a + b for a, b in zip(left, deltas, strict=True))
    return approximate_gdp_residue(before, left, loss)


# -- all kinds -----------------------------------------------------------------------------------


KINDS: dict[str, Kind] = {
    "pure": _subtracting(_written("eps"), lambda _c, spent, _h, loss: pure(spent[0], loss)),
    "basic": _subtracting(_written("eps", "delta"), lambda _c, spent, _h, loss: basic(spent, loss)),
    "renyi": _subtracting(_written("rho"), _renyi),
    "renyi_curve": _subtracting(
        lambda config: tuple(written(rho) for _, rho in config["curve"]), _renyi
    ),
    "zcdp": _subtracting(_written("rho"), lambda _c, spent, _h, loss: zcdp(spent[0], loss)),
    "approximate_zcdp": Kind(
        _approximate_zcdp_first, partial(_spending, _written("eps", "delta"), _approximate_zcdp)
    ),
    "gdp": _subtracting(
        _square, lambda _c, spent, _h, loss: gdp_residue(spent[0], Fraction(0), loss)
    ),
    "gdp_residue": _subtracting(_square, _gdp_residue),
    "approximate_gdp_residue": _subtracting(
        lambda config: (*_square(config), written(config["delta"])), _gdp_residue
    ),
    "target_residue": Kind(target.first, target.step),
    "menu": Kind(potentials.first, potentials.step),
    "plan": Kind(plans.first, plans.step),
    "renyi_commit": Kind(
        commits.first, partial(commits.step, prove_first=prove_first, prove_step=prove_step)
    ),
    "union": Kind(partial(union.first, prove=prove_first), partial(union.step, prove=prove_step)),
    "auto": Kind(
        union.auto_first, partial(union.auto_step, prove_first=prove_first, prove=prove_step)
    ),
    "natural": Kind(natural.natural_first, natural.natural_step),
    "additive_profile": Kind(natural.profile_first, natural.profile_step),
}
