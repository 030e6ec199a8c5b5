"""Unions: every component by the proofs of its filter, and the rule of unions on top.

If the analysts of component `j` are within `(eps, delta_j)`, those of the union are within
`(eps, Σ delta_j)`: on every transcript some component is live to the end, and the whole loss is its
loss. That needs no more than this. A component that is live after a step was live before it, and
its own rule allows the step; a component that is stopped stays so; one at least is live. To stop a
component is always sound.

What a component is called here is its place; its tables are named `"<place>.<name>"`.

**The automatic filter** is a union whose components are chosen at the first query. A state has the
components' configurations and a state or null for each; before the first query both lists are
empty. The step that opens the filter is proven if every component keeps an `eps` of at most the
filter's, the deltas add up to at most `delta`, as they are written, and the step from the first
states of the components is one of their union. The records do not hold those first states, so they
are worked out here, from the configurations: never less than what the library starts with. A plan
must fit as a whole. Afterwards the components must not change.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import Any

from flint import arb

from residua.records import canonical
from residua.verify.arithmetic import LADDER, ball, bits, rational, written
from residua.verify.descriptions.configurations import (
    UNREADABLE,
    Config,
    State,
    Tables,
    fingerprint,
)
from residua.verify.descriptions.mechanisms import StepQuery
from residua.verify.losses.factors import Infinite, Unknown
from residua.verify.losses.laws import gaussian_curve
from residua.verify.proofs import plans, target
from residua.verify.proofs.partitions import union_delta
from residua.verify.proofs.verdict import Proof, all_of, proven, refuted, undecided

FirstProof = Callable[[Any, Any, Tables], Proof]
StepProof = Callable[[Any, Any, Any, StepQuery], Proof]

_DIGITS = 110
"""Binary digits of what is worked out: more than the library keeps."""


def first(config: Config, state: State, tables: Tables, prove: FirstProof) -> Proof:
    """Whether every component begins as its own filter does; none is stopped yet."""
    if config["kind"] == "union" and _deltas(config) >= 1:
        return undecided("the deltas of the components at eps add up to 1 or more")
    proofs = []
    for place, (component, part) in enumerate(_pairs(config, state)):
        if part is None:
            return refuted(f"component {place} is stopped at the start")
        proofs.append(_name_component(place, prove(component, part, tables_at(place, tables))))
    return all_of(proofs)


def _deltas(config: Config) -> float:
    """The deltas of the components that have a formula, at the union's `eps`, added up."""
    total = 0.0
    for each in config["filters"]:
        with suppress(Infinite, Unknown, *UNREADABLE):
            total += union_delta({"eps": config["eps"], "filters": [each]})
    return total


def step(config: Config, before: State, after: State, query: StepQuery, prove: StepProof) -> Proof:
    """Whether the live components are some of those before, each moved by a proven step."""
    proofs, stopped = [], []
    pairs = zip(_pairs(config, before), after["parts"], strict=True)
    for place, ((component, one), two) in enumerate(pairs):
        if two is None:
            stopped += [str(place)] if one is not None else []
        elif one is None:
            return refuted(f"component {place} comes back after it was stopped")
        else:
            tables = (tables_at(place, each) for each in (query.before, query.after))
            own = StepQuery(query.mechanism, query.relation, *tables)
            proofs.append(_name_component(place, prove(component, one, two, own)))
    if not proofs:
        return refuted("no component of the union is live")
    ended = [proven(f"stops {', '.join(stopped)}")] if stopped else []
    return all_of([*proofs, *ended])


def tables_at(place: int, tables: Tables) -> Tables:
    """The tables of one component, by the names that its own filter has for them."""
    mark = f"{place}."
    return {
        name.removeprefix(mark): table for name, table in tables.items() if name.startswith(mark)
    }


def _pairs(config: Config, state: State) -> list[tuple[Any, Any]]:
    return list(zip(config["filters"], state["parts"], strict=True))


def _name_component(place: int, proof: Proof) -> Proof:
    return Proof(proof.verdict, f"component {place}: {proof.reason}")


# -- the automatic filter -------------------------------------------------------------------------


def auto_first(_config: Config, state: State, _tables: Tables) -> Proof:
    """Whether nothing is chosen yet."""
    if state["filters"] or state["parts"]:
        return refuted("components are chosen before anything was asked")
    return proven("nothing was admitted yet")


def auto_step(
    config: Config,
    before: State,
    after: State,
    query: StepQuery,
    prove_first: FirstProof,
    prove: StepProof,
) -> Proof:
    """Whether a step opens the filter soundly, or is one of the union that it has become.

    `prove_first` and `prove` check a first state and a step of a component.
    """
    filters = after["filters"]
    if query.loss.is_identity and canonical(before) == canonical(after):
        return proven("no loss")
    wrong = _promise_too_much(config, filters)
    if wrong is not None:
        return refuted(wrong)
    if before["filters"]:
        if canonical(before["filters"]) != canonical(filters):
            return refuted("the components change")
        return step(after, before, after, query, prove)
    begun = {**after, "parts": [first_state(each) for each in filters]}
    return all_of([first(after, begun, {}, prove_first), step(after, begun, after, query, prove)])


def _promise_too_much(config: Config, filters: list[Config]) -> str | None:
    """Why components do not keep `(eps, delta)` together, if so."""
    if not filters:
        return "a query is admitted by no component"
    total = Fraction(0)
    for place, each in enumerate(filters):
        if each["kind"] not in _FIRST_STATES:
            return f"component {place} is of a kind that auto does not have: {each['kind']}"
        if written(each["eps"]) > written(config["eps"]):
            return f"the eps of component {place} is more than that of the filter"
        total += written(each.get("delta", 0.0))
    if total > written(config["delta"]):
        return "the deltas of the components add up to more than that of the filter"
    return None


def first_state(config: Config) -> State:
    """The first state of a component: at least what the library starts with."""
    return {
        "kind": config["kind"],
        "of": fingerprint(config),
        **_FIRST_STATES[config["kind"]](config),
    }


def _pure(config: Config) -> dict[str, Any]:
    return {"left": [str(written(config["eps"]))]}


def _target_residue(config: Config) -> dict[str, Any]:
    eps, delta = written(config["eps"]), written(config["delta"])
    reserve, slack = (written(config[name]) for name in ("reserve", "slack"))
    v = _largest_mu(eps, delta * (1 - reserve - slack)) ** 2
    orders = target.kappas(config) if reserve and v else ()
    kept = []
    for k in orders:
        with bits(LADDER[1]):
            share = ball(delta * reserve / len(orders))
            most = share * ball(k * eps - k * (k + 1) * v / 2).exp()
            kept.append(str(rational(arb((most * (1 - arb(2) ** -_DIGITS)).lower()))))
    return {"left": str(v), "reached": "0", "reserves": kept, "slack": str(delta * slack)}


def _renyi_commit(config: Config) -> dict[str, Any]:
    rho = _largest_rho(*(written(config[name]) for name in ("alpha", "eps", "delta")))
    return {"left": str(rho), "committed": False, "to": None, "inner": None}


def _largest_mu(eps: Fraction, delta: Fraction) -> Fraction:
    """A `mu` with `h_{G_mu}(e^eps) <= delta`, the largest but for its last binary digits."""
    with bits(LADDER[1]):
        at, most = ball(eps), ball(delta)

        def keeps(mu: Fraction) -> bool:
            return bool(gaussian_curve(at, ball(mu)) <= most)

        low, gap = Fraction(0), Fraction(1)
        while keeps(gap):
            gap *= 2
        for _ in range(_DIGITS + 20):
            gap /= 2
            low = low + gap if keeps(low + gap) else low
    return low


def _largest_rho(alpha: Fraction, eps: Fraction, delta: Fraction) -> Fraction:
    """The `rho` at the order `alpha` that `(eps, delta)` gives, less its last binary digits."""
    with bits(LADDER[1]):
        a = ball(alpha)
        rho = ball(eps) + (ball(delta) * a).log() / (a - 1) - (1 - 1 / a).log()
        least = arb(rho.lower()) * (1 - arb(2) ** -_DIGITS)
        return rational(arb(least.lower())) if least > 0 else Fraction(0)


_FIRST_STATES: dict[str, Callable[[Config], dict[str, Any]]] = {
    "pure": _pure,
    "target_residue": _target_residue,
    "renyi_commit": _renyi_commit,
    "plan": plans.first_state,
}
"""What the first state of each kind of component holds beside its kind and fingerprint."""
